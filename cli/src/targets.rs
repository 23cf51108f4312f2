//! Names of processors on the command line.

use wavetap::code_object::processor_name;
use wavetap::isa::Target;
use wavetap::offload_bundle::TargetId;

/// Names that are suggested for one that is not known.
const SUGGESTED: usize = 4;
/// `EF_AMDGPU_MACH` is one byte.
const MACHINES: u32 = 0xff;

/// A target id as people write it, `gfx90a:xnack-`: its processor must exist.
pub fn parse(text: &str) -> Result<String, String> {
    let names = || (0..=MACHINES).filter_map(processor_name);
    match TargetId::parse(text) {
        Some(id) if names().any(|name| name == id.processor) || Target::by_name(&id.processor).is_some() => {
            Ok(text.to_owned())
        }
        Some(id) => {
            let mut near: Vec<(usize, &str)> = names().map(|name| (distance(name, &id.processor), name)).collect();
            near.sort_unstable();
            near.dedup();
            let near: Vec<&str> = near.into_iter().take(SUGGESTED).map(|(_, name)| name).collect();
            Err(format!("there is no such processor; near it are {}", near.join(", ")))
        }
        None => Err("a processor was expected, with features or without: gfx90a, gfx90a:sramecc+:xnack-".to_owned()),
    }
}

/// How many characters have to be inserted, left out or replaced.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_exist() {
        for name in ["gfx90a", "gfx90a:xnack-", "gfx9-generic", "gfx1250", "gfx803", "gfx701"] {
            assert_eq!(parse(name).as_deref(), Ok(name));
        }
        assert!(parse("gfx999").unwrap_err().contains("gfx90"), "{:?}", parse("gfx999"));
        assert!(parse("gfx943").unwrap_err().contains("gfx942"));
        for wrong in ["", "gfx90a:fast+", "MI300 "] {
            assert!(parse(wrong).unwrap_err().contains("expected"), "{wrong}");
        }
    }

    #[test]
    fn distances() {
        assert_eq!(distance("gfx942", "gfx943"), 1);
        assert_eq!(distance("gfx90a", "gfx90"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
