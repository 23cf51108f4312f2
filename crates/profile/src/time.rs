//! The time file: what the emulator's timing model says of a run. Every number of cycles in it is *modelled*, and is
//! called so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::accuracy::Accuracy;
use super::hex;
use super::map::Source;
use wavetap_base::error::{Error, Result};

/// Schema of a time file.
pub const SCHEMA: &str = "wavetap.time/1";

/// The modelled time of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeProfile {
    /// [`SCHEMA`].
    pub schema: String,
    /// Always true: nothing was measured.
    pub modelled: bool,
    /// Latencies that were set by the user, `valu32=8`.
    #[serde(default)]
    pub latencies: Vec<String>,
    /// The board that was modelled, where one was named; else the usual one of each target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// How far modelled times may be from measured ones, for each board whose machine was modelled; empty in files of
    /// versions that did not note it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accuracy: Vec<Accuracy>,
    /// Megahertz of the clock whose cycles these are, as the device reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Whether the run ended; false in what a killed run leaves.
    pub complete: bool,
    /// Processes whose time this is.
    #[serde(default = "super::file::one", skip_serializing_if = "super::file::is_one")]
    pub processes: u32,
    /// Kernels in order of first dispatch.
    pub kernels: Vec<KernelTime>,
}

/// Modelled time of all dispatches of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelTime {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
    /// Waves that ran.
    pub waves: u64,
    /// Most waves that were on a SIMD at once.
    pub most_waves_per_simd: u32,
    /// Cycles of its dispatches, summed.
    pub modelled_cycles: u64,
    /// Cycles that waves were resident, summed: those of all instructions together.
    pub modelled_wave_cycles: u64,
    /// Of these, at instructions that a rewrite added.
    pub modelled_added_cycles: u64,
    /// Each dispatch.
    pub dispatches: Vec<DispatchTime>,
    /// Caches and LDS.
    pub memory: MemoryTime,
    /// How busy each part of the machine was; empty in files of versions that did not note it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceTime>,
    /// Instructions by address.
    pub instructions: Vec<InstructionCycles>,
    /// Of its first dispatch, what the waves of the first compute unit did; if the run was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<TracedWaves>,
}

/// What the waves of a compute unit did in a dispatch, instruction by instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedWaves {
    /// The dispatch's ordinal in the run.
    pub dispatch: u64,
    /// Waves that there was no room for.
    pub lost: u64,
    /// What kinds of instructions they executed, by address.
    pub types: Vec<InstructionType>,
    /// The others, in the order in which they ended.
    pub waves: Vec<TracedWave>,
}

/// What kind of instruction is at an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstructionType {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// `SMEM`, `SALU`, `VMEM`, `FLAT`, `LDS`, `VALU`, `BRANCH`, `IMMED` or `MESSAGE`, as AMD's decoder of thread traces
    /// has them.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What a wave did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedWave {
    /// Its workgroup.
    pub workgroup: [u32; 3],
    /// Its number in the workgroup.
    pub wave: u32,
    /// SIMD of its compute unit, or pair of them.
    pub simd: u32,
    /// Cycle of the dispatch in which it began.
    pub modelled_begin: u64,
    /// Cycle after its last one.
    pub modelled_end: u64,
    /// What it executed, in this order: of each the original virtual address, the modelled cycle of the dispatch from
    /// which the wave's cycles were charged to it, the modelled cycles of its issue slot, and all its modelled cycles.
    /// Each begins when the one before has ended, unless instructions are between them that a rewrite added.
    pub instructions: Vec<TracedInstruction>,
}

/// An instruction that a wave executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedInstruction(
    /// Original virtual address.
    pub u64,
    /// Modelled cycle of the dispatch from which the wave's cycles were charged to it.
    pub u64,
    /// Modelled cycles of its issue slot.
    pub u64,
    /// All modelled cycles that were charged to it.
    pub u64,
);

/// Modelled time of a dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DispatchTime {
    /// Its ordinal in the run.
    pub dispatch: u64,
    /// From its first wave's start to the write-back of L2 after its last one's end.
    pub modelled_cycles: u64,
    /// When its first wave started, on the modelled clock of its process's device: what the shader clock showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled_start: Option<u64>,
    /// The ranges of the program in which it was dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Where only a part of its workgroups was modelled, which: cycles and what was counted of caches are worked out
    /// from those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extrapolated: Option<ExtrapolatedTime>,
}

/// What the time of a dispatch was worked out from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtrapolatedTime {
    /// Workgroups that were modelled.
    pub modelled_workgroups: u64,
    /// Workgroups of the dispatch.
    pub workgroups: u64,
    /// By how many thousandths the time would be another, with a probability of 95 percent, had others been modelled.
    pub error_permille: u32,
}

/// What caches and LDS did in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MemoryTime {
    /// Lines that vector loads found in L1.
    pub l1_hits: u64,
    /// Lines that they did not.
    pub l1_misses: u64,
    /// Lines found in L2.
    pub l2_hits: u64,
    /// Lines that came from memory.
    pub l2_misses: u64,
    /// Changed lines that L2 wrote back to have room for others.
    pub l2_written_back: u64,
    /// Changed lines that were in L2 when the waves of dispatches had ended, and were then written back.
    pub l2_left: u64,
    /// Lines that went to memory or came from it.
    pub memory_lines: u64,
    /// Bytes that stores wrote to L2.
    pub stored_bytes: u64,
    /// Cycles of LDS because of bank conflicts.
    pub modelled_lds_conflict_cycles: u64,
    /// Atomic operations that waited for another one of the same instruction.
    pub serialized_atomics: u64,
    /// Cycles of channels of L2 that atomics kept busy.
    pub modelled_atomic_cycles: u64,
}

/// How busy the parts of the machine of one kind were, in all dispatches of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourceTime {
    /// Which: `simd` and `compute_unit` with a wave, whatever it does; `vector_alu`, `transcendental` (where it is
    /// apart), `matrix`, and `scalar` of a SIMD; `l1` and `lds` of a compute unit; channels of `l2`; `mall`; `memory`.
    pub resource: String,
    /// Cycles that they were busy, summed over the parts.
    pub modelled_busy: u64,
    /// Cycles of the dispatches, once for each part.
    pub modelled_available: u64,
}

/// Modelled cycles of an instruction, summed over waves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstructionCycles {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// How often waves executed it.
    pub executions: u64,
    /// Cycles of its issue slots.
    pub modelled_issued: u64,
    /// Cycles that waves stood at it, by reason (as rocprofiler-sdk calls them, without their common beginning).
    pub modelled_stalled: BTreeMap<String, u64>,
    /// Of the cycles that waves waited at it for memory: for which operations, of several the one that was done last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modelled_waits_for: Vec<WaitedFor>,
    /// Cycles that it kept a SIMD's vector ALU.
    #[serde(default, skip_serializing_if = "is_none")]
    pub modelled_vector_alu: u64,
    /// Lines of the vector L1 cache that its accesses were in, summed over executions.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lines: u64,
    /// Cycles of LDS because of its bank conflicts.
    #[serde(default, skip_serializing_if = "is_none")]
    pub modelled_lds_conflict_cycles: u64,
}

/// An operation in flight that waves waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitedFor {
    /// The instruction that it is of.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// Cycles, summed over waves.
    pub modelled_cycles: u64,
}

/// Whether there are none.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

impl InstructionCycles {
    /// Adds cycles that waves waited at it for the operation of an instruction.
    pub fn add_wait(&mut self, address: u64, cycles: u64) {
        match self.modelled_waits_for.binary_search_by_key(&address, |known| known.address) {
            Ok(at) => self.modelled_waits_for[at].modelled_cycles += cycles,
            Err(at) => self.modelled_waits_for.insert(at, WaitedFor { address, modelled_cycles: cycles }),
        }
    }

    /// All cycles of waves at it.
    #[must_use]
    pub fn modelled_cycles(&self) -> u64 {
        self.modelled_issued + self.modelled_stalled.values().sum::<u64>()
    }
}

impl ResourceTime {
    /// Which part of the time they were busy, 0 to 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.modelled_busy as f64 / self.modelled_available.max(1) as f64
    }
}

impl KernelTime {
    /// A kernel without dispatches.
    #[must_use]
    pub fn new(name: &str, demangled: &str, target: &str, object: &str) -> KernelTime {
        KernelTime {
            name: name.to_owned(),
            demangled: demangled.to_owned(),
            target: target.to_owned(),
            object: object.to_owned(),
            waves: 0,
            most_waves_per_simd: 0,
            modelled_cycles: 0,
            modelled_wave_cycles: 0,
            modelled_added_cycles: 0,
            dispatches: Vec::new(),
            memory: MemoryTime::default(),
            resources: Vec::new(),
            instructions: Vec::new(),
            traced: None,
        }
    }

    /// How busy the parts of a kind were.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&ResourceTime> {
        self.resources.iter().find(|resource| resource.resource == name)
    }

    /// Adds the time of other dispatches of the same kernel.
    fn merge(&mut self, other: &KernelTime) {
        self.waves += other.waves;
        self.most_waves_per_simd = self.most_waves_per_simd.max(other.most_waves_per_simd);
        self.modelled_cycles += other.modelled_cycles;
        self.modelled_wave_cycles += other.modelled_wave_cycles;
        self.modelled_added_cycles += other.modelled_added_cycles;
        self.dispatches.extend_from_slice(&other.dispatches);
        if self.traced.is_none() {
            self.traced.clone_from(&other.traced);
        }
        let (memory, more) = (&mut self.memory, &other.memory);
        memory.l1_hits += more.l1_hits;
        memory.l1_misses += more.l1_misses;
        memory.l2_hits += more.l2_hits;
        memory.l2_misses += more.l2_misses;
        memory.l2_written_back += more.l2_written_back;
        memory.l2_left += more.l2_left;
        memory.memory_lines += more.memory_lines;
        memory.stored_bytes += more.stored_bytes;
        memory.modelled_lds_conflict_cycles += more.modelled_lds_conflict_cycles;
        memory.serialized_atomics += more.serialized_atomics;
        memory.modelled_atomic_cycles += more.modelled_atomic_cycles;
        for each in &other.resources {
            match self.resources.iter_mut().find(|mine| mine.resource == each.resource) {
                Some(mine) => {
                    mine.modelled_busy += each.modelled_busy;
                    mine.modelled_available += each.modelled_available;
                }
                None => self.resources.push(each.clone()),
            }
        }
        for each in &other.instructions {
            match self.instructions.binary_search_by_key(&each.address, |mine| mine.address) {
                Ok(at) => {
                    let mine = &mut self.instructions[at];
                    mine.executions += each.executions;
                    mine.modelled_issued += each.modelled_issued;
                    mine.modelled_vector_alu += each.modelled_vector_alu;
                    mine.lines += each.lines;
                    mine.modelled_lds_conflict_cycles += each.modelled_lds_conflict_cycles;
                    for (reason, cycles) in &each.modelled_stalled {
                        *mine.modelled_stalled.entry(reason.clone()).or_default() += cycles;
                    }
                    each.modelled_waits_for.iter().for_each(|wait| mine.add_wait(wait.address, wait.modelled_cycles));
                }
                Err(at) => self.instructions.insert(at, each.clone()),
            }
        }
    }
}

impl TimeProfile {
    /// Of a run that has dispatched nothing yet.
    #[must_use]
    pub fn new(latencies: Vec<String>) -> TimeProfile {
        TimeProfile {
            schema: SCHEMA.to_owned(),
            modelled: true,
            latencies,
            board: None,
            accuracy: Vec::new(),
            clock_mhz: None,
            complete: false,
            processes: 1,
            kernels: Vec::new(),
        }
    }

    /// Adds what `other` has to it: later dispatches, or those of another process. The number of processes and whether
    /// the run ended stay as they are.
    pub fn merge(&mut self, other: &TimeProfile) {
        if self.board.is_none() {
            self.board.clone_from(&other.board);
        }
        for accuracy in &other.accuracy {
            if !self.accuracy.contains(accuracy) {
                self.accuracy.push(accuracy.clone());
            }
        }
        // Several devices have several clocks, of which none is everyone's.
        self.clock_mhz = match (self.kernels.is_empty(), other.kernels.is_empty()) {
            (true, _) => other.clock_mhz,
            (_, true) => self.clock_mhz,
            _ => self.clock_mhz.filter(|mhz| other.clock_mhz == Some(*mhz)),
        };
        for kernel in &other.kernels {
            let same = |mine: &&mut KernelTime| {
                mine.name == kernel.name && mine.object == kernel.object && mine.target == kernel.target
            };
            match self.kernels.iter_mut().find(same) {
                Some(mine) => mine.merge(kernel),
                None => self.kernels.push(kernel.clone()),
            }
        }
    }

    /// The file's contents.
    ///
    /// # Errors
    /// Internal if it cannot be serialised.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        let mut json = serde_json::to_vec_pretty(self).map_err(|e| Error::internal(format!("modelled time: {e}")))?;
        json.push(b'\n');
        Ok(json)
    }

    /// Reads a time file.
    ///
    /// # Errors
    /// Malformed if it is not one.
    pub fn from_json(json: &[u8]) -> Result<TimeProfile> {
        let read: TimeProfile = serde_json::from_slice(json).map_err(|e| {
            let is_profile = super::file::Profile::from_json(json).is_ok();
            let why = if is_profile { "it is a profile of counts".to_owned() } else { e.to_string() };
            Error::malformed(format!("not a file of modelled time: {why}"))
        })?;
        if read.schema != SCHEMA {
            return Err(Error::unsupported(format!(
                "schema {:?} of modelled time, this program knows {SCHEMA:?}",
                read.schema
            )));
        }
        Ok(read)
    }
}
