//! Processor and features as the ELF header's flags name them (AMDGPUUsage, "ELF Header").

use std::fmt;

use wavetap_amdgpu::Target;

/// Mask of `EF_AMDGPU_MACH` in the flags.
const MACH_MASK: u32 = 0xff;

/// Processors before those of [`Target`], by `EF_AMDGPU_MACH`: only to name what an object was made for.
const OLDER: [(u32, &str); 9] = [
    (0x20, "gfx600"),
    (0x21, "gfx601"),
    (0x22, "gfx700"),
    (0x23, "gfx701"),
    (0x24, "gfx702"),
    (0x25, "gfx703"),
    (0x26, "gfx704"),
    (0x3a, "gfx602"),
    (0x3b, "gfx705"),
];

/// The processor that the ELF flags name, known instructions or not.
#[must_use]
pub fn processor_name(e_flags: u32) -> Option<&'static str> {
    let older = || OLDER.iter().find(|(mach, _)| *mach == e_flags & MACH_MASK).map(|(_, name)| *name);
    Target::by_elf_flags(e_flags).map(Target::name).or_else(older)
}

/// The version of a generic processor (`EF_AMDGPU_GENERIC_VERSION`, since code object version 6); `None` where the
/// processor is not generic.
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
