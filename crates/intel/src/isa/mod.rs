//! Instructions of Xe-HPC (Ponte Vecchio): words of 16 bytes, or 8 compacted ones.
//!
//! [`decode`] reads code; an [`Inst`] tells its operands ([`Inst::accesses`] as units of register files), its branch,
//! its message and its scoreboard bits ([`Swsb`]). What is not known is refused with its address.

mod compact;
mod decode;
mod message;
mod opcode;
mod operand;
mod pipe;
mod roles;
mod swsb;
mod text;
mod types;
mod word;

pub use decode::{Branch, ConditionModifier, FlagBits, Inst, Predicate, PredicateMode, decode, decode_one};
pub use message::{Access, Message, SharedFunction};
pub use opcode::Sync;
pub use operand::{Arf, FLAG_BITS, File, GRF_BYTES, GRF_COUNT, Modifiers, Operand, Region, Register, Units};
pub use roles::{RegisterAccess, Slot};
pub use swsb::{Distance, DistanceOf, Pipe, Swsb, TOKENS, Token, TokenUse};
pub use types::Type;
pub use word::Word;
