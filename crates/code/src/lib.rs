//! GPU code as a slicer reads it, whichever vendor made it.
//!
//! A [`Code`] is one kernel or function: its [`Instruction`]s with text, what they read and write, what they leave in
//! flight and what they wait for; blocks and edges ([`Graph`]), and what each [`Wait`] waits for. It knows no register
//! file, no wait counter and no mnemonic: these are numbers and names that its builder gives.
//!
//! | | AMD | NVIDIA | Intel |
//! |---|---|---|---|
//! | [`Counter`] | `vmcnt`, `lgkmcnt` | `SB0` to `SB5` | `$0.dst`, `$0.src`, …; `F` of `F@n` |
//! | [`Issue`] | loads, stores | write scoreboard: [`Event::Result`], read: [`Event::Operands`] | a token set: both |
//! | [`Issue::order`] | one number a kind | one for `SBk` of `DEPBAR.LE` | none for tokens, one for a pipe |
//! | [`WaitFor`] | `s_waitcnt vmcnt(N)`: N | wait mask: 0; `DEPBAR.LE SBk, N`: N | `$t.dst`: 0; `F@n`: n - 1 |
//! | [`Instruction::unit`] | none | LDS, LDSM, SHFL; MUFU, conversions; `cp.async` | none |
//! | [`Guard`] | none: EXEC is a [`ReadRole::Mask`] | `@P0`, `@!P0` | `(f0.0)`, `(~f0.0)` |
//!
//! A builder decodes, calls [`CodeBuilder::push`] for each instruction in address order and then
//! [`CodeBuilder::build`]. The graph follows from [`Flow`], what waits wait for from [`Issue`] and [`WaitFor`]
//! ([`in_flight`]), and values from reads, writes and guards ([`Reaching`]); a builder that knows better gives its own.
//!
//! ```
//! use wavetap_code::*;
//!
//! let (r2, r4) = (Location { file: 0, first: 2, units: 2 }, Location { file: 0, first: 4, units: 1 });
//! let (sb0, end) = (CounterId(0), Flow::Exit { exit: Exit::End, falls_through: false });
//! let mut code = CodeBuilder::new("k", Properties::new("sm_80", 32), vec![Counter::named("SB0")]);
//! let load = code.push(Instruction {
//!     reads: [Read { location: r2, role: ReadRole::Address }].into_iter().collect(),
//!     writes: [Write { location: r4, partial: false }].into_iter().collect(),
//!     issues: [Issue { counter: sb0, event: Event::Result, order: None }].into_iter().collect(),
//!     class: Class::Global,
//!     latency: Cycles { min: 30, typical: 500, max: 800 },
//!     ..Instruction::new(0, 16, "LDG.E R4, [R2.64]")
//! });
//! let add = code.push(Instruction {
//!     reads: [Read { location: r4, role: ReadRole::Value }].into_iter().collect(),
//!     waits: [WaitFor { counter: sb0, count: 0, name: Some("SB0".into()), guarded: false }].into_iter().collect(),
//!     ..Instruction::new(16, 16, "FADD R5, R4, R4")
//! });
//! code.push(Instruction { flow: end, ..Instruction::new(32, 16, "EXIT") });
//! let code = code.build()?;
//! assert_eq!(code.waits()[0].operations[0].operation, Operation::Inst(load));
//! assert_eq!(code.producers(add, Values::All), [load]);
//! # Ok::<(), wavetap_base::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod access;
mod body;
mod cycles;
mod function;
mod graph;
pub mod in_flight;
mod instruction;
mod lines;
mod stall;
mod waits;

pub use access::{LaneAccess, WorkgroupSource};
pub use body::{Code, CodeBuilder, DataFlow, Definition, MaskSource, Origin, Properties, Reaching, Values, reaching};
pub use cycles::Cycles;
pub use function::{Entries, Function};
pub use graph::{Block, Edge, EdgeKind, Graph, Loop, Loops};
pub use instruction::{
    CallEffect, Class, Counter, CounterId, Event, Exit, Flow, Guard, Instruction, Issue, Location, Read, ReadRole,
    WaitFor, Write,
};
pub use lines::{InlinedCall, SourceLine, SourceLines};
pub use stall::StallReason;
pub use waits::{Operation, Wait, WaitCertainty, WaitedOperation};

#[cfg(test)]
mod tests;
