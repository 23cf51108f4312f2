//! Every row of the instruction tables against LLVM's disassembler: random fillings of the row's fields must decode to
//! the same size and the same text, and encode to the same bytes.
//!
//! A few legal fillings of each row are tried, 16 of each in the long run, and `WAVETAP_ISA_FILLINGS` of each where
//! that is set; `WAVETAP_ISA_SEED` gives other ones. What differs on purpose is in `reasons.rs`, each with its
//! evidence.

mod compare;
mod images;
mod names;
mod reason;
mod reasons;
mod reasons_19;

use std::path::PathBuf;

use llvm_oracle::{Answer, Oracle, Query};
use rewriter_tests::fillings::{instruction_sets, llvm_processor};
use rewriter_tests::place::LLVM_19;
use wavetap::isa::Target;

use compare::{Llvm, check, check_fillings};

/// The target that an instruction set is named for, with a wave size.
fn set(name: &str, wave_size: u32) -> Target {
    let found = instruction_sets()
        .into_iter()
        .find(|target| target.instruction_set() == name && target.wave_size() == wave_size);
    found.unwrap_or_else(|| panic!("no instruction set {name} with waves of {wave_size}"))
}

fn llvm_22(target: Target) -> Llvm {
    let oracle = Oracle::new().expect("the oracle is built");
    let reasons = reasons::REASONS.iter().collect();
    Llvm {
        name: "LLVM 22",
        oracle,
        processor: llvm_processor(target, target.instruction_set()),
        reasons,
        quick_fillings: 2,
    }
}

/// The same beside LLVM 19, for a processor that it knows.
fn in_llvm_19(name: &str, wave_size: u32) {
    let Some(library) = llvm_19() else { return };
    let target = Target::by_name(name).and_then(|target| target.with_wave_size(wave_size));
    let target = target.unwrap_or_else(|| panic!("no target {name} with waves of {wave_size}"));
    let oracle = Oracle::of_library(library).expect("the oracle is built");
    let reasons = reasons_19::REASONS.iter().chain(reasons::REASONS).collect();
    check_fillings(
        target,
        &mut Llvm { name: "LLVM 19", oracle, processor: llvm_processor(target, name), reasons, quick_fillings: 1 },
    );
}

/// Debian's LLVM 19, if it is installed.
fn llvm_19() -> Option<PathBuf> {
    let library = PathBuf::from(LLVM_19);
    if library.is_file() {
        return Some(library);
    }
    println!("SKIPPED the comparison with LLVM 19: there is no {LLVM_19}");
    None
}

macro_rules! sets {
    ($($name:ident: $set:literal, $wave_size:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let target = set($set, $wave_size);
                check_fillings(target, &mut llvm_22(target));
            }
        )*

        mod every_number_of {
            $(
                #[test]
                fn $name() {
                    let target = super::set($set, $wave_size);
                    super::check(target, &mut super::llvm_22(target), super::names::trials(target));
                }
            )*
        }

        #[test]
        fn every_instruction_set_is_tested() {
            let tested = [$(($set, $wave_size)),*];
            for target in instruction_sets() {
                assert!(tested.contains(&(target.instruction_set(), target.wave_size())), "{} {}",
                    target.instruction_set(), target.wave_size());
            }
        }
    };
}

sets! {
    gfx803: "gfx803", 64;
    gfx810: "gfx810", 64;
    gfx9_generic: "gfx9-generic", 64;
    gfx900: "gfx900", 64;
    gfx904: "gfx904", 64;
    gfx906: "gfx906", 64;
    gfx908: "gfx908", 64;
    gfx90a: "gfx90a", 64;
    gfx9_4_generic: "gfx9-4-generic", 64;
    gfx942: "gfx942", 64;
    gfx950: "gfx950", 64;
    gfx1010_w64: "gfx1010", 64;
    gfx1010_w32: "gfx1010", 32;
    gfx1011_w64: "gfx1011", 64;
    gfx1011_w32: "gfx1011", 32;
    gfx1013_w64: "gfx1013", 64;
    gfx1013_w32: "gfx1013", 32;
    gfx1030_w64: "gfx1030", 64;
    gfx1030_w32: "gfx1030", 32;
    gfx1100_w64: "gfx1100", 64;
    gfx1100_w32: "gfx1100", 32;
    gfx1150_w64: "gfx1150", 64;
    gfx1150_w32: "gfx1150", 32;
    gfx1200_w64: "gfx1200", 64;
    gfx1200_w32: "gfx1200", 32;
    gfx1250: "gfx1250", 32;
    gfx1251: "gfx1251", 32;
}

macro_rules! in_llvm_19 {
    ($($name:ident: $target:literal, $wave_size:literal;)*) => {
        mod beside_llvm_19 {
            $(
                #[test]
                fn $name() {
                    super::in_llvm_19($target, $wave_size);
                }
            )*
        }

        #[test]
        fn every_processor_of_llvm_19_is_tested() {
            let Some(library) = llvm_19() else { return };
            let mut oracle = Oracle::of_library(library).expect("the oracle is built");
            let tested = [$($target),*];
            for target in Target::all().filter(|target| target.has_instructions()) {
                // Processors with the same instructions need not be tested twice, but LLVM 22 does not know all of
                // them.
                let known = oracle.ask(Query { target: target.name(), bytes: &[0, 0, 0x80, 0xbf], pc: 0 })
                    != Answer::Crash;
                let alike = |name: &&str| Target::by_name(name).is_some_and(|tested| tested.instruction_set()
                    == target.instruction_set());
                assert!(!known || tested.iter().any(alike), "{}", target.name());
            }
        }
    };
}

in_llvm_19! {
    gfx803: "gfx803", 64;
    gfx810: "gfx810", 64;
    gfx9_generic: "gfx9-generic", 64;
    gfx900: "gfx900", 64;
    gfx904: "gfx904", 64;
    gfx906: "gfx906", 64;
    gfx908: "gfx908", 64;
    gfx90a: "gfx90a", 64;
    gfx940: "gfx940", 64;
    gfx941: "gfx941", 64;
    gfx942: "gfx942", 64;
    gfx1010_w64: "gfx1010", 64;
    gfx1010_w32: "gfx1010", 32;
    gfx1011_w64: "gfx1011", 64;
    gfx1011_w32: "gfx1011", 32;
    gfx1013_w64: "gfx1013", 64;
    gfx1013_w32: "gfx1013", 32;
    gfx1030_w64: "gfx1030", 64;
    gfx1030_w32: "gfx1030", 32;
    gfx1100_w64: "gfx1100", 64;
    gfx1100_w32: "gfx1100", 32;
    gfx1150_w64: "gfx1150", 64;
    gfx1150_w32: "gfx1150", 32;
    gfx1200_w64: "gfx1200", 64;
    gfx1200_w32: "gfx1200", 32;
}
