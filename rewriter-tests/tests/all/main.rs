//! The tests that need neither a process nor a harness of their own, by what they are about: one program, since each
//! more takes seconds to link, and since all
//! cores are busy to the end.
//!
//! `cargo test -p rewriter-tests --test all wrong_inputs::` runs those of one module.

mod clocks;
mod counted_disassembly;
mod counted_dispatches;
mod doctor;
mod every_processor;
mod full_workgroups;
mod hardware_demands;
mod memory_rules;
mod odd_parts;
mod overlapping_dispatches;
mod placed_code;
mod planned;
mod real_code;
mod test_times;
mod triton_objects;
mod verify_code;
mod verify_object;
mod waits_real_code;
mod wrong_inputs;
