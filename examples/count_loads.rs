//! Counts the load instructions of each kernel by the memory that they read, from the code alone.
//!
//!     cargo run --example count_loads -- hip-samples/bin/two_kernels gfx90a

use std::collections::BTreeMap;

use wavetap::isa::{Flags, Memory};
use wavetap::{Program, Selection};

fn main() -> wavetap::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, target] = &arguments[..] else {
        eprintln!("usage: count_loads FILE TARGET");
        std::process::exit(2);
    };
    let selection = Selection { targets: vec![target.clone()], ..Selection::default() };
    let unread = Program::open(path)?.each_object(&selection, |object| {
        for kernel in object.kernels() {
            let mut loads: BTreeMap<Memory, u32> = BTreeMap::new();
            for inst in kernel.insts().iter().filter(|inst| inst.variant.flags.contains(Flags::LOAD)) {
                *loads.entry(inst.variant.memory).or_default() += 1;
            }
            println!("{} {}: {loads:?}", object.target_id, kernel.name());
        }
        Ok(())
    })?;
    unread.iter().for_each(|problem| eprintln!("not read: {problem}"));
    Ok(())
}
