//! Registers by number, name and slot.

use wavetap_amdgpu::RegFile;

/// The slot of a register: vector registers come first, by number.
pub(crate) fn slot(file: RegFile, index: u16) -> usize {
    match file {
        RegFile::Vector => usize::from(index & 0x3ff),
        RegFile::Accum => ACCUM_SLOTS + usize::from(index & 0xff),
        RegFile::Scalar => SCALAR_SLOTS + usize::from(index & 0x7f),
    }
}

/// The first slot of an AGPR: gfx1250 has 1024 vector registers.
pub(crate) const ACCUM_SLOTS: usize = 1024;

/// The first slot of a scalar register.
pub(crate) const SCALAR_SLOTS: usize = ACCUM_SLOTS + 256;

pub(crate) const SLOTS: usize = SCALAR_SLOTS + 128;

/// The register of a slot.
pub(crate) fn register(slot: usize) -> (RegFile, u16) {
    match slot {
        0..ACCUM_SLOTS => (RegFile::Vector, slot as u16),
        ACCUM_SLOTS..SCALAR_SLOTS => (RegFile::Accum, (slot - ACCUM_SLOTS) as u16),
        _ => (RegFile::Scalar, (slot - SCALAR_SLOTS) as u16),
    }
}

/// The assembler's name of a register.
pub(crate) fn register_name(file: RegFile, index: u16) -> String {
    match (file, index) {
        (RegFile::Vector, n) => format!("v{n}"),
        (RegFile::Accum, n) => format!("a{n}"),
        (RegFile::Scalar, 102) => "flat_scratch_lo".into(),
        (RegFile::Scalar, 103) => "flat_scratch_hi".into(),
        (RegFile::Scalar, 106) => "vcc_lo".into(),
        (RegFile::Scalar, 107) => "vcc_hi".into(),
        (RegFile::Scalar, 124) => "m0".into(),
        (RegFile::Scalar, 126) => "exec_lo".into(),
        (RegFile::Scalar, 127) => "exec_hi".into(),
        (RegFile::Scalar, n @ 108..=123) => format!("ttmp{}", n - 108),
        (RegFile::Scalar, n) => format!("s{n}"),
    }
}
