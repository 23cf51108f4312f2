//! Kernels that are rewritten one at a time: the same as those of a whole object, and right wherever they are loaded.

use super::*;
use crate::pipeline::{Counters, probe, rewrite};
use wavetap_object::offload_bundle::Input;

/// The code of samples for a target.
fn samples(target: &str) -> Vec<(&'static str, Vec<u8>)> {
    let object = |name: &'static str| {
        let file = std::fs::read(format!("{}/hip-samples/bin/{name}", env!("CARGO_MANIFEST_DIR"))).expect("a sample");
        let input = Input::parse(&file).expect("parses");
        let mut found = input.code_objects();
        let found = found.find(|found| found.target.as_ref().is_some_and(|id| id.processor == target));
        (name, found.expect("code for the target").bytes.to_vec())
    };
    ["divergence", "calls", "o0", "dynamic_lds", "histogram"].map(object).to_vec()
}

fn options(counters: Counters) -> Options {
    Options { probes: vec![probe::BRANCHES], counters, ..Options::default() }
}

/// All instructions where they are from the kernel's entry, so that maps of different places are the same.
fn from_entry(mut map: KernelMap) -> KernelMap {
    let first = map.addresses.iter().map(|pair| pair.rewritten).min().unwrap_or(0);
    map.addresses.iter_mut().for_each(|pair| pair.rewritten -= first);
    map
}

#[test]
fn a_kernel_is_rewritten_as_with_its_whole_object() {
    let mut kernels = 0;
    for (name, object) in samples("gfx90a").into_iter().chain(samples("gfx942")) {
        for counters in [Counters::Auto, Counters::Lds, Counters::Global, Counters::Register] {
            let options = options(counters);
            let whole = rewrite(&object, &options).expect("rewritten").maps.remove(0);
            let rewriter = KernelRewriter::new(object.clone(), &options).expect("a code object");
            assert_eq!(rewriter.digest(), whole.original);
            for kernel in CodeObject::parse(&object).expect("parses").kernels() {
                let expected = whole.kernels.iter().find(|map| map.name == kernel.name).cloned().map(from_entry);
                let refused = whole.refused.iter().find(|refused| refused.name == kernel.name);
                match rewriter.rewrite(&kernel.name) {
                    Ok(made) => {
                        assert_eq!(made.map.kernels.len(), 1);
                        let map = made.map.kernels[0].clone();
                        assert_eq!(Some(from_entry(map)), expected, "{name}, {counters:?}, {}", kernel.name);
                        let object = CodeObject::parse(&made.object).expect("parses");
                        assert_eq!(object.target_id(), whole.target);
                        assert!(object.kernels().len() == 1 && object.is_rewritten());
                    }
                    Err(why) => assert_eq!(Some(&*why), refused, "{name}, {counters:?}, {}", kernel.name),
                }
                kernels += 1;
            }
        }
    }
    assert!(kernels > 50, "{kernels} kernels");
}

/// A kernel whose code has distances to the original image.
fn with_distances() -> (KernelRewriter, RewrittenKernel) {
    let object = samples("gfx90a").into_iter().find(|(name, _)| *name == "o0").expect("the sample").1;
    let rewriter = KernelRewriter::new(object, &options(Counters::Global)).expect("a code object");
    let mut names: Vec<&String> = rewriter.kernels.keys().collect();
    names.sort();
    let mut made = names.into_iter().filter_map(|name| rewriter.rewrite(name).ok());
    let made = made.find(|made| made.distances.len() > 1).expect("a kernel that reads the program counter");
    (rewriter, made)
}

#[test]
fn code_reaches_the_original_from_wherever_it_is() {
    let (rewriter, made) = with_distances();
    let image = 0x7f00_0012_3000;
    // After the image, before it, and at a distance whose low half is that of the place it was made for.
    for object in [image + made.address, image + 0x10_0000, image - 0x50_0000_1000, image + made.address + (7 << 32)] {
        let code = rewriter.code_at(&made, image, object).expect("right");
        let word = |at: u64| u64::from(u32::from_le_bytes(code[at as usize..][..4].try_into().expect("four bytes")));
        for (number, Distance { low, high }) in made.distances.iter().enumerate() {
            // From the instruction that reads the program counter on, it is the original's again.
            let distance = word(*low) | word(*high) << 32;
            let planned = u64::from(u32::from_le_bytes(made.code[*low as usize..][..4].try_into().expect("four")))
                | u64::from(u32::from_le_bytes(made.code[*high as usize..][..4].try_into().expect("four"))) << 32;
            let there = |distance: u64, base: u64| base.wrapping_add(distance);
            assert_eq!(there(distance, object), there(planned, image + made.address), "distance {number}");
        }
    }
}

#[test]
fn other_code_is_rejected_wherever_it_is() {
    let (rewriter, mut made) = with_distances();
    let (image, by) = (rewriter.image(), 0xffff_8000_1000);
    let added = rewriter.added(&image, &made).expect("a kernel");
    let object = made.address.wrapping_add(by);
    let right = rewriter.code_at(&made, 0, object).expect("right");
    assert_eq!(check_moved(&added, &right, by), []);
    assert!(!check_moved(&added, &right, by + 4).is_empty(), "another distance");
    assert!(!check_moved(&added, &made.code, by).is_empty(), "code that did not move");
    assert!(!check_moved(&added, &right[4..], by).is_empty(), "a part of it");
    let Distance { low, high } = made.distances[0];
    for at in [0, low, high, low - 4, right.len() as u64 - 1] {
        let mut damaged = right.clone();
        damaged[at as usize] ^= 1;
        assert!(!check_moved(&added, &damaged, by).is_empty(), "byte {at:#x}");
    }
    // One that was forgotten.
    made.distances.pop();
    let error = rewriter.code_at(&made, 0, object).unwrap_err();
    assert!(error.kind() == Kind::Internal && error.to_string().contains("not the same"), "{error}");
}

#[test]
fn what_cannot_be_rewritten_is_refused() {
    let (_, object) = samples("gfx90a").remove(0);
    let code = CodeObject::parse(&object).expect("parses");
    let name = code.kernels()[0].name.clone();
    let selection = super::super::Selection { kernels: vec!["nothing".to_owned()], ..Default::default() };
    let rewriter = KernelRewriter::new(object.clone(), &Options { selection, ..options(Counters::Lds) });
    let rewriter = rewriter.expect("a code object");
    assert!(!rewriter.has(&name) && rewriter.refused().is_empty());
    assert!(rewriter.rewrite(&name).unwrap_err().detail.contains("not selected"));
    let rewritten = rewrite(&object, &options(Counters::Lds)).expect("rewritten").bytes;
    let error = KernelRewriter::new(rewritten, &options(Counters::Lds)).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (Kind::Unsupported, "the code object was rewritten before".into()));
}
