//! Which bits of a wave's registers and scratch something has written: for reports of uninitialised values.
//!
//! As valgrind's memcheck, it lets undefined bits be copied and computed with, and stops where they matter: a branch,
//! EXEC, an address, the choice of a lane, data that goes to memory of others. [`crate::strict::undefined`] has the
//! rules; this is the state.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{RegFile, scalar};

use crate::lanes::LANES;
use crate::op::registers::{SCALAR_SLOTS, SLOTS, register, register_name, slot};

/// A register of every lane.
type Row = [u32; LANES];

/// Where bits come from that nothing has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndefinedOrigin {
    /// A register, by slot.
    Register(u16),
    /// A byte of LDS, loaded by the instruction at a code address.
    Lds(u32, u64),
    /// A byte of the lane's private memory.
    Scratch(u32, u64),
    /// The scalar condition code.
    Condition,
    /// Global memory at an address, loaded by the instruction at a code address, and what was done with it since then.
    Global { at: u64, by: u64, since: Since },
    /// A byte of LDS or of scratch that was loaded by the instruction at a code address, and had been stored with
    /// undefined bits.
    Stored { scratch: bool, at: u32, by: u64, stored: Stored },
}

/// What was done with undefined bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Since {
    /// They are in another place.
    Moved,
    /// Others were computed from them.
    Computed,
    /// They decided which of two values it is.
    Selected,
}

/// Undefined bits that were stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// By the instruction at this code address.
    pub by: u64,
    /// Where they came from first.
    source: OriginSource,
}

/// Where undefined bits come from in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OriginSource {
    Register(u16),
    Lds(u32),
    Scratch(u32),
    Condition,
    Global(u64),
}

impl Stored {
    /// By the instruction at a code address, from where.
    pub(crate) fn new(by: u64, from: UndefinedOrigin) -> Stored {
        let source = match from {
            UndefinedOrigin::Register(at) => OriginSource::Register(at),
            UndefinedOrigin::Lds(at, _) => OriginSource::Lds(at),
            UndefinedOrigin::Scratch(at, _) => OriginSource::Scratch(at),
            UndefinedOrigin::Condition => OriginSource::Condition,
            UndefinedOrigin::Global { at, .. } => OriginSource::Global(at),
            UndefinedOrigin::Stored { stored, .. } => stored.source,
        };
        Stored { by, source }
    }
}

/// Undefined bits of a row: the lanes that have any, and which; no bits are all bits.
#[derive(Clone)]
pub(crate) struct UndefinedBits {
    pub lanes: u64,
    bits: Option<Box<Row>>,
}

impl UndefinedBits {
    /// Nothing was written.
    pub(crate) const ALL: UndefinedBits = UndefinedBits { lanes: u64::MAX, bits: None };

    pub(crate) fn get(&self, lane: usize) -> u32 {
        if self.lanes >> lane & 1 == 0 { 0 } else { self.bits.as_ref().map_or(u32::MAX, |row| row[lane]) }
    }

    pub(crate) fn set(&mut self, lane: usize, bits: u32) {
        if bits == 0 {
            self.lanes &= !(1 << lane);
            return;
        }
        if bits != u32::MAX || self.bits.is_some() {
            self.bits.get_or_insert_with(|| Box::new([u32::MAX; LANES]))[lane] = bits;
        }
        self.lanes |= 1 << lane;
    }
}

/// The undefined bits of a wave.
pub(crate) struct InitShadow {
    /// By slot: VGPRs and AGPRs.
    vector: Vec<UndefinedBits>,
    scalar: [u32; 128],
    /// SCC is undefined.
    pub scc: bool,
    origins: Vec<Option<UndefinedOrigin>>,
    /// By dword of the private segment; none was never written.
    scratch: Vec<Option<UndefinedBits>>,
    /// By its dword: the last store of undefined bits there.
    stored: FxHashMap<u32, Stored>,
}

impl InitShadow {
    /// With nothing defined; empty outside strict mode.
    pub(crate) fn new(strict: bool) -> InitShadow {
        let (vectors, slots) = if strict { (SCALAR_SLOTS, SLOTS) } else { (0, 0) };
        let mut shadow = InitShadow {
            vector: vec![UndefinedBits::ALL; vectors],
            scalar: [u32::MAX; 128],
            scc: true,
            origins: vec![None; slots],
            scratch: Vec::new(),
            stored: FxHashMap::default(),
        };
        shadow.define(scalar::EXEC, 2);
        shadow.define(scalar::NULL, 1);
        shadow
    }

    /// Scalar registers have been written.
    pub(crate) fn define(&mut self, first: u16, count: u16) {
        for code in first..first + count {
            self.scalar[usize::from(code & 127)] = 0;
        }
    }

    /// Lanes of a vector register have been written.
    pub(crate) fn define_lanes(&mut self, register: u16, lanes: u64) {
        if let Some(bits) = self.vector.get_mut(usize::from(register)) {
            bits.lanes &= !lanes;
        }
    }

    pub(crate) fn scalar(&self, code: u16) -> u32 {
        self.scalar[usize::from(code & 127)]
    }

    pub(crate) fn set_scalar(&mut self, code: u16, bits: u32) {
        self.scalar[usize::from(code & 127)] = if code == scalar::NULL { 0 } else { bits };
    }

    pub(crate) fn pair(&self, code: u16) -> u64 {
        u64::from(self.scalar(code)) | u64::from(self.scalar(code + 1)) << 32
    }

    pub(crate) fn vector(&self, slot: usize) -> &UndefinedBits {
        &self.vector[slot]
    }

    pub(crate) fn vector_mut(&mut self, slot: usize) -> &mut UndefinedBits {
        &mut self.vector[slot]
    }

    /// The lanes in which a vector register has undefined bits.
    pub(crate) fn lanes(&self, slot: usize) -> u64 {
        self.vector[slot].lanes
    }

    /// The lanes in which any of some vector registers that follow each other has undefined bits.
    #[inline]
    pub(crate) fn lanes_of(&self, (first, count): (u16, u16)) -> u64 {
        let rows = &self.vector[usize::from(first)..usize::from(first) + usize::from(count)];
        rows.iter().fold(0, |lanes, bits| lanes | bits.lanes)
    }

    /// Lanes of vector registers that follow each other have been written.
    #[inline]
    pub(crate) fn define_rows(&mut self, (first, count): (u16, u16), lanes: u64) {
        let rows = &mut self.vector[usize::from(first)..usize::from(first) + usize::from(count)];
        rows.iter_mut().for_each(|bits| bits.lanes &= !lanes);
    }

    pub(crate) fn scratch(&self, at: u32) -> Option<&UndefinedBits> {
        self.scratch.get(at as usize / 4)?.as_ref()
    }

    pub(crate) fn scratch_mut(&mut self, at: u32) -> &mut UndefinedBits {
        let at = at as usize / 4;
        if self.scratch.len() <= at {
            self.scratch.resize(at + 1, None);
        }
        self.scratch[at].get_or_insert(UndefinedBits::ALL)
    }

    /// A dword of the private segment and a vector register.
    pub(crate) fn scratch_and_vector(&mut self, at: u32, slot: usize) -> (&mut UndefinedBits, &mut UndefinedBits) {
        self.scratch_mut(at);
        // It is there now.
        let InitShadow { vector, scratch, .. } = self;
        (scratch[at as usize / 4].get_or_insert(UndefinedBits::ALL), &mut vector[slot])
    }

    /// An instruction has stored undefined bits to a byte of scratch.
    pub(crate) fn note_stored(&mut self, at: u32, stored: Stored) {
        self.stored.insert(at / 4, stored);
    }

    /// Where undefined bits come from that the instruction at a code address loads from a byte of scratch.
    pub(crate) fn origin_in_scratch(&self, at: u32, by: u64) -> UndefinedOrigin {
        self.stored.get(&(at / 4)).map_or(UndefinedOrigin::Scratch(at, by), |&stored| UndefinedOrigin::Stored {
            scratch: true,
            at,
            by,
            stored,
        })
    }

    pub(crate) fn set_origin(&mut self, slot: usize, origin: UndefinedOrigin) {
        self.origins[slot] = Some(origin);
    }

    pub(crate) fn origin(&self, slot: usize) -> UndefinedOrigin {
        self.origins[slot].unwrap_or(UndefinedOrigin::Register(slot as u16))
    }
}

/// The name of the register of a slot.
pub(crate) fn name_of(at: usize) -> String {
    let (file, index) = register(at);
    register_name(file, index)
}

/// The slot of a scalar register.
pub(crate) fn scalar_slot(code: u16) -> usize {
    slot(RegFile::Scalar, code)
}

impl UndefinedOrigin {
    /// Of what is computed from such bits, or selected by them.
    pub(crate) fn then(self, next: Since) -> UndefinedOrigin {
        match self {
            UndefinedOrigin::Global { at, by, since } => UndefinedOrigin::Global { at, by, since: since.max(next) },
            other => other,
        }
    }

    /// Whether the bits of global memory have decided which value it is: as a branch on them would have.
    pub(crate) fn is_selected(self) -> bool {
        matches!(self, UndefinedOrigin::Global { since: Since::Selected, .. })
    }

    /// Whether the bits are those of global memory, from which they have only been moved.
    pub(crate) fn is_moved_from_memory(self) -> bool {
        matches!(self, UndefinedOrigin::Global { since: Since::Moved, .. })
    }

    /// In words.
    pub(crate) fn text(self) -> Box<str> {
        match self {
            UndefinedOrigin::Register(at) => format!("{} was never written", name_of(usize::from(at))),
            UndefinedOrigin::Lds(at, by) => {
                format!("loaded at {by:#x} from byte {at:#x} of LDS, which was never written")
            }
            UndefinedOrigin::Scratch(at, by) => format!(
                "loaded at {by:#x} from byte {at:#x} of scratch, which was never \
                written"
            ),
            UndefinedOrigin::Condition => "scc was never written".to_owned(),
            UndefinedOrigin::Global { at, by, .. } => {
                format!("loaded at {by:#x} from memory at {at:#x}, which was never written")
            }
            UndefinedOrigin::Stored { scratch, at, by, stored } => {
                let memory = if scratch { "scratch" } else { "LDS" };
                let source = match stored.source {
                    OriginSource::Register(at) => name_of(usize::from(at)),
                    OriginSource::Lds(at) => format!("byte {at:#x} of LDS"),
                    OriginSource::Scratch(at) => format!("byte {at:#x} of scratch"),
                    OriginSource::Condition => "scc".to_owned(),
                    OriginSource::Global(at) => format!("memory at {at:#x}"),
                };
                let written = stored.by;
                format!(
                    "loaded at {by:#x} from byte {at:#x} of {memory}, written at {written:#x} with bits of \
                    {source}, which was never written"
                )
            }
        }
        .into()
    }
}
