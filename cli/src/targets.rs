//! Names of processors on the command line.

use wavetap::code_object::processor_name;
use wavetap::isa::Target;
use wavetap::nearest;
use wavetap::offload_bundle::TargetId;

/// `EF_AMDGPU_MACH` is one byte.
const MACHINES: u32 = 0xff;

/// A target id as people write it, `gfx90a:xnack-`: its processor must exist.
pub fn parse(text: &str) -> Result<String, String> {
    let names = || (0..=MACHINES).filter_map(processor_name);
    if other_vendor(text) {
        return Ok(text.to_owned());
    }
    match TargetId::parse(text) {
        Some(id) if names().any(|name| name == id.processor) || Target::by_name(&id.processor).is_some() => {
            Ok(text.to_owned())
        }
        Some(id) => {
            let near = nearest::nearest(&id.processor, names());
            Err(format!("there is no such processor; near it are {}", near.join(", ")))
        }
        None => Err("a processor was expected, with features or without: gfx90a, gfx90a:sramecc+:xnack-".to_owned()),
    }
}

/// Whether it is a processor of NVIDIA or Intel as these name them: whether there is code for it, the file says.
fn other_vendor(text: &str) -> bool {
    const INTEL: [&str; 1] = ["pvc"];
    let model = |text: &str| text.trim_end_matches(['a', 'f']).parse::<u16>().is_ok();
    text.strip_prefix("sm_").is_some_and(model) || INTEL.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_exist() {
        for name in ["sm_80", "sm_90a", "pvc", "gfx90a", "gfx90a:xnack-", "gfx9-generic", "gfx1250", "gfx803", "gfx701"]
        {
            assert_eq!(parse(name).as_deref(), Ok(name));
        }
        assert!(parse("gfx999").unwrap_err().contains("gfx90"), "{:?}", parse("gfx999"));
        assert!(parse("gfx943").unwrap_err().contains("gfx942"));
        for wrong in ["", "gfx90a:fast+", "MI300 "] {
            assert!(parse(wrong).unwrap_err().contains("expected"), "{wrong}");
        }
    }
}
