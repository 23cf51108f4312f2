//! Small programs whose answers were worked out by hand, and are in the sources: `puzzles/*.asm`, assembled by
//! `iga64 -a -p=XeHPC`. Instructions are numbered from 0.
//!
//! - `wait 4 $1.dst must 1 may 3`: what a wait of instruction 4 waits for, by the name that it has. Nothing else waits.
//! - `from 4 1 3`: all definitions that reach it; `stored`: of what it stores.
//! - `target 1 3 5`: where a branch goes.

use std::collections::BTreeMap;

use wavetap_base::entity::InstId;
use wavetap_code::{Code, Definition, Flow, Operation, Values, WaitCertainty, reaching};
use wavetap_intel::container::Target;
use wavetap_intel::isa::decode;

macro_rules! puzzles {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let name = stringify!($name);
            let source = include_str!(concat!("puzzles/", stringify!($name), ".asm"));
            check(name, source, include_bytes!(concat!("puzzles/", stringify!($name), ".krn")));
        })*
    };
}

puzzles! { accumulators combined divergent flags loops payload reuse second_wait }

fn definitions(code: &Code<'_>, id: InstId) -> Vec<u32> {
    let reads = code.inst(id).reads.iter().flat_map(|read| reaching(code, id, read.location));
    let mut found: Vec<u32> = reads
        .filter_map(|definition| match definition {
            Definition::Inst(id) => Some(id.0),
            Definition::Entry | Definition::Call(_) => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn check(name: &str, source: &str, bytes: &[u8]) {
    let instructions = decode(bytes, 0..bytes.len() as u64).expect("known instructions");
    let code = wavetap_intel::program_code(name, Target::PonteVecchio, 32, &instructions).expect("well-formed code");
    let mut waits: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
    for wait in code.waits() {
        let all = waits.entry((wait.inst.0, wait.name.clone().expect("a name").into_owned())).or_default();
        for waited in &wait.operations {
            let certainty = match waited.certainty {
                WaitCertainty::Must => "must",
                WaitCertainty::May => "may",
                other => panic!("{name}: {other:?}"),
            };
            let Operation::Inst(id) = waited.operation else { panic!("{name}: {waited:?}") };
            all.push(format!("{certainty} {}", id.0));
        }
    }
    let mut lines = 0;
    for line in source.lines().filter_map(|line| line.strip_prefix("// ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind @ ("wait" | "from" | "stored" | "target"), number, rest @ ..] = &words[..] else { continue };
        let Ok(number) = number.parse() else { continue };
        lines += 1;
        let id = InstId(number);
        match *kind {
            "wait" => {
                let mut found = waits.remove(&(number, rest[0].to_owned())).unwrap_or_else(|| panic!("{name}: {line}"));
                found.sort_by_key(|text| text.split(' ').nth(1).and_then(|id| id.parse::<u32>().ok()));
                assert_eq!(found.join(" "), rest[1..].join(" "), "{name}: {line}");
            }
            "from" => {
                let expected: Vec<u32> = rest.iter().map(|id| id.parse().expect("a number")).collect();
                assert_eq!(definitions(&code, id), expected, "{name}: {line}");
            }
            "stored" => {
                let expected: Vec<InstId> = rest.iter().map(|id| InstId(id.parse().expect("a number"))).collect();
                assert_eq!(code.producers(id, Values::Stored), expected, "{name}: {line}");
            }
            _ => {
                let Flow::Branch { targets, .. } = &code.inst(id).flow else { panic!("{name}: {line}") };
                let mut expected: Vec<u64> =
                    rest.iter().map(|id| code.address(InstId(id.parse().expect("a number")))).collect();
                expected.dedup();
                assert_eq!(targets[..], expected, "{name}: {line}");
            }
        }
    }
    assert!(lines > 0, "{name}: no answers");
    assert!(waits.is_empty(), "{name}: waits without answers: {waits:?}");
}
