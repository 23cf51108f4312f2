//! Processor and features as the ELF header's flags name them (AMDGPUUsage, "ELF Header").

use std::fmt;

/// Mask of `EF_AMDGPU_MACH` in the flags.
const MACH_MASK: u32 = 0xff;

/// `EF_AMDGPU_MACH` values and processor names. Only to name what an object was made for; whether it is handled is [`crate::isa::Target`]'s business.
const PROCESSORS: [(u32, &str); 55] = [
    (0x20, "gfx600"),
    (0x21, "gfx601"),
    (0x22, "gfx700"),
    (0x23, "gfx701"),
    (0x24, "gfx702"),
    (0x25, "gfx703"),
    (0x26, "gfx704"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
    (0x2b, "gfx810"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3a, "gfx602"),
    (0x3b, "gfx705"),
    (0x3c, "gfx805"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x40, "gfx940"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x49, "gfx1250"),
    (0x4a, "gfx1151"),
    (0x4b, "gfx941"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"),
    (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"),
    (0x55, "gfx1152"),
    (0x58, "gfx1153"),
    (0x59, "gfx12-generic"),
    (0x5a, "gfx1251"),
    (0x5f, "gfx9-4-generic"),
];

/// The processor that the ELF flags name.
#[must_use]
pub fn processor_name(e_flags: u32) -> Option<&'static str> {
    PROCESSORS.iter().find(|(mach, _)| *mach == e_flags & MACH_MASK).map(|(_, name)| *name)
}

/// The version of a generic processor (`EF_AMDGPU_GENERIC_VERSION`, since code object version 6); `None` where the processor is not generic.
pub(super) fn generic_version(e_flags: u32) -> Option<u8> {
    u8::try_from(e_flags >> 24).ok().filter(|version| *version != 0)
}

/// What a code object demands of a device setting (`EF_AMDGPU_FEATURE_*_V4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// The processor does not have the setting.
    Unsupported,
    /// Either setting.
    Any,
    /// It must be off.
    Off,
    /// It must be on.
    On,
}

impl Feature {
    /// The two-bit value of the flags.
    fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Feature::Unsupported,
            1 => Feature::Any,
            2 => Feature::Off,
            _ => Feature::On,
        }
    }

    /// What a target id says of it: nothing where either setting will do.
    #[must_use]
    pub fn required(self) -> Option<bool> {
        match self {
            Feature::Unsupported | Feature::Any => None,
            Feature::Off => Some(false),
            Feature::On => Some(true),
        }
    }
}

/// The settings that code objects since version 4 name in their flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Page faults on memory accesses are replayed.
    pub xnack: Feature,
    /// SRAM error correction.
    pub sramecc: Feature,
}

impl Features {
    pub(super) fn from_flags(e_flags: u32) -> Self {
        Features { xnack: Feature::from_bits(e_flags >> 8), sramecc: Feature::from_bits(e_flags >> 10) }
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, feature) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if let Some(on) = feature.required() {
                write!(f, ":{name}{}", if on { '+' } else { '-' })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags as `llvm-readelf` of LLVM 22 reads them.
    #[test]
    fn flags() {
        for (flags, processor, features, generic) in [
            (0x0100_055f, "gfx9-4-generic", "", Some(1)),
            (0x0000_055a, "gfx1251", "", None),
            (0x0000_0549, "gfx1250", "", None),
            (0x0000_0058, "gfx1153", "", None),
            (0x0000_012b, "gfx810", "", None),
            (0x0000_0e4f, "gfx950", ":sramecc+:xnack-", None),
            (0x0000_0b3f, "gfx90a", ":sramecc-:xnack+", None),
        ] {
            assert_eq!(processor_name(flags), Some(processor), "{flags:#x}");
            assert_eq!(Features::from_flags(flags).to_string(), features, "{flags:#x}");
            assert_eq!(generic_version(flags), generic, "{flags:#x}");
        }
        assert_eq!(processor_name(0xff), None);
    }
}
