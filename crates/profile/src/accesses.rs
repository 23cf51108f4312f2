//! Recorded accesses to memory: what follows the counters in the record of a wave in a sampled workgroup.
//!
//! | offset after the counters | size | field |
//! |---|---|---|
//! | 0 | 8 | how many slots are free (set by the host, counted down; below 0 they are none) |
//! | 8 | | slots; they are taken from the last to the first |
//!
//! A slot has [`slot_bytes`] bytes:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | the site: the offset of its counter in the record |
//! | 4 | 4 | how many scalar registers the address is made of |
//! | 8 | 8 | EXEC |
//! | 16 | 24 | what these held, in the order of the operands; the rest is undefined |
//! | 40 | 24 | undefined |
//! | 64 | 8 for each lane | what vector registers held, of active lanes: one or two dwords, the rest 0 |

mod packed;

use serde::{Deserialize, Serialize};

use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

/// Size of the count of free slots in bytes.
pub const CURSOR: u32 = 8;
/// Size of a slot's header in bytes.
pub const SLOT_HEADER: u32 = 64;
/// Bytes of a lane in a slot.
pub const SLOT_LANE: u32 = 8;
/// The most dwords of scalar registers that an address is made of.
pub const MOST_SCALARS: usize = 6;
/// Offset of the scalar registers in a slot.
const SCALARS: u64 = 16;

/// Size of a slot of waves with so many lanes, in bytes.
#[must_use]
pub const fn slot_bytes(lanes: u32) -> u32 {
    SLOT_HEADER + lanes * SLOT_LANE
}

/// An execution of a memory instruction by a wave, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedAccess {
    /// The site: its index among the kernel's.
    pub site: u32,
    /// EXEC.
    pub lanes: u64,
    /// What scalar registers held.
    pub scalars: Vec<u32>,
    /// What vector registers held in the active lanes, from the first on.
    pub values: Vec<u64>,
}

/// What a wave has recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveAccesses {
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The wave's index in the workgroup.
    pub wave: u32,
    /// Its accesses, in the order in which it executed them.
    #[serde(with = "packed")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub accesses: Vec<RecordedAccess>,
    /// Executions after these that were not recorded.
    pub dropped: u64,
}

/// Global memory that is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocatedRange {
    /// The first address.
    #[serde(with = "crate::hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// Which flat addresses are not of global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Apertures {
    /// Bits 63:32 of those in LDS.
    pub shared: u32,
    /// Bits 63:32 of those in scratch; where addresses name the lane, those that differ below bit 58 alone are, too.
    pub private: u32,
}

/// What the sampled workgroups of a dispatch have recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DispatchAccesses {
    /// Index into [`crate::file::Profile::kernels`].
    pub kernel: u32,
    /// The dispatch's ordinal.
    pub dispatch: u32,
    /// The ranges of the program in which it was dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Workgroups of the grid in x, y, z.
    pub workgroups: [u32; 3],
    /// Work-items of a workgroup that is not partial.
    pub workgroup_size: [u32; 3],
    /// Workgroups that were sampled.
    pub sampled: u32,
    /// Which flat addresses are not of global memory.
    pub apertures: Apertures,
    /// What was allocated of global memory, by rising address.
    pub allocations: Vec<AllocatedRange>,
    /// Their waves.
    pub waves: Vec<WaveAccesses>,
}

/// The accesses that a wave of `lanes` lanes has recorded after its counters.
/// `site_at` gives the index of the site whose counter is at an offset in the record.
///
/// # Errors
/// Malformed if they contradict each other.
pub fn recorded(
    after_counters: &[u8],
    lanes: u32,
    site_at: impl Fn(u32) -> Option<u32>,
) -> Result<Vec<RecordedAccess>> {
    let slot = u64::from(slot_bytes(lanes));
    let room = (after_counters.len() as u64).saturating_sub(CURSOR.into()) / slot;
    let free = bytes::u64_at(after_counters, 0, "free slots")?.cast_signed();
    let used = match u64::try_from(free) {
        Ok(free) if free > room => {
            return Err(Error::malformed(format!("{free} slots are free of {room} for accesses")));
        }
        Ok(free) => room - free,
        Err(_) => room,
    };
    let mut found = Vec::new();
    for number in 0..used {
        let start = u64::from(CURSOR) + (room - 1 - number) * slot;
        let slot = bytes::slice(after_counters, start, slot, "recorded access")?;
        let (offset, lanes) = (bytes::u32_at(slot, 0, "recorded site")?, bytes::u64_at(slot, 8, "recorded EXEC")?);
        let site = site_at(offset).ok_or_else(|| Error::malformed(format!("an access of no site: {offset}")))?;
        let count = bytes::u32_at(slot, 4, "recorded scalars")? as usize;
        if count > MOST_SCALARS {
            return Err(Error::malformed(format!(
                "{count} scalars of a recorded access, at most {MOST_SCALARS} may be"
            )));
        }
        let places = (SCALARS..).step_by(4).take(count);
        let scalars = places.map(|at| bytes::u32_at(slot, at, "recorded scalar")).collect::<Result<_>>()?;
        if lanes == 0 || slot_bytes(u64::BITS - lanes.leading_zeros()) as usize > slot.len() {
            return Err(Error::malformed(format!("EXEC of a recorded access is {lanes:#x}")));
        }
        let mut values = Vec::with_capacity(lanes.count_ones() as usize);
        for lane in (0..u64::from(u64::BITS)).filter(|lane| lanes >> lane & 1 != 0) {
            let at = u64::from(SLOT_HEADER) + lane * u64::from(SLOT_LANE);
            values.push(bytes::u64_at(slot, at, "recorded lane")?);
        }
        found.push(RecordedAccess { site, lanes, scalars, values });
    }
    Ok(found)
}
