//! Every target with what it begins with, and with every input that once found something (`fuzz/inputs/TARGET/*`).

use std::fs;
use std::path::Path;

use wavetap_fuzz::TARGETS;

#[test]
fn first_inputs_and_former_findings() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} begins with nothing", target.name);
        assert!(
            seeds.iter().all(|seed| seed.len() <= target.max_len),
            "{}: a first input is longer than max_len",
            target.name
        );
        seeds.iter().for_each(|seed| (target.run)(seed));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(target.name);
        for file in fs::read_dir(folder).into_iter().flatten().flatten() {
            let input = fs::read(file.path()).expect("an input");
            println!("{}", file.path().display());
            (target.run)(&input);
        }
    }
}
