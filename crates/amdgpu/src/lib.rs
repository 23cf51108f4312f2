//! The instruction set: decode, encode, print, and what each instruction reads, writes and waits for.
//!
//! Everything target-specific is data: `isa-tables/*.yaml` is compiled into the library by the build script.
#![forbid(unsafe_code)]

mod assemble;
mod boards;
mod caches;
mod clock;
mod decode;
mod digits;
mod dispatch;
mod encode;
mod hazards;
pub mod host_times;
mod image;
mod image_descriptor;
mod inst;
mod layout;
mod lds_banks;
mod load;
mod machine;
mod names;
mod occupancy;
mod opcode;
mod pair;
mod print;
mod print_names;
mod spelling;
mod table;
mod target;
mod vgpr_msb;
mod vocabulary;
mod wait;

pub use boards::Board;
pub use clock::{ConstantClock, ShaderClock};
pub use decode::Plan;
pub use hazards::{EventHazards, WaitStates};
pub use image::{Image, ImageAddress};
pub use image_descriptor::{ImageDescriptors, TypedBuffer};
pub use inst::{Dpp, Half, Inst, Matrix, Modifiers, Operand, Reg, RegFile, Sdwa, Value, scalar};
pub use layout::{Bits, Kind, Layout, Run};
pub use lds_banks::{LdsCycles, LdsOperation, LdsPhases};
pub use machine::Estimate;
pub use names::{Field, HwregField};
pub use occupancy::{Demand, Limit, Loss, Occupancy};
pub use opcode::{
    AtomicInfo, CompareInfo, LoadInfo, MaskInfo, MatrixInfo, MinMaxInfo, Opcode, OpcodeFlags, SampleInfo, ScaleInfo,
    StoreInfo, VectorInfo,
};
pub use pair::HalfOperation;
pub use print_names::{BUFFER_DATA_FORMATS, BUFFER_NUMBER_FORMATS};
pub use spelling::{has_operation, largest_offset, operation};
pub use table::{Branch, Condition, OperandSpec, Variant, Written};
pub use target::{LatencyRange, Target};
pub use vgpr_msb::VgprMsb;
pub use vocabulary::{
    Accepts, Access, AtomicOp, Coding, Counter, Counters, D16, Encoding, Flags, Form, Gradients, ImageData, ImageField,
    Implicit, Latency, MachineFact, MaskOp, Memory, MinMaxOp, Modifier, NameList, NumberFormat, Predicate, Role,
    SamplerField, ValueType, VectorOp,
};
pub use wait::{AluWait, WaitCount, alu_wait, issued, wait_count, wait_immediate, waits_for};

use wavetap_base::error::Result;

/// Every row of the tables that `target` has, with its wave size.
pub fn variants(target: Target) -> impl Iterator<Item = &'static Variant> {
    load::tables().variants.iter().filter(move |variant| variant.is_of(target))
}

/// Decodes the instruction at the start of `bytes` (little-endian code).
///
/// # Errors
/// Malformed if no instruction of `target` has this encoding or `bytes` ends within it.
#[inline]
pub fn decode(target: Target, bytes: &[u8]) -> Result<Inst> {
    let mut inst = Inst::blank();
    decode::decode_into(&mut inst, target, bytes)?;
    Ok(inst)
}

/// Decodes the instruction at the start of `bytes` to `inst`, whatever was there: for going over much code, where
/// moving each instruction to its place is a good part of the time that [`decode`] takes.
///
/// ```
/// use wavetap_amdgpu::{self as isa, Inst, Target};
/// let target = Target::by_name("gfx90a").unwrap();
/// let code = [0x80, 0x02, 0x02, 0x7e, 0x00, 0x00, 0x81, 0xbf]; // v_mov_b32_e32 v1, 0; s_endpgm
/// let (mut inst, mut at, mut names) = (Inst::blank(), 0, Vec::new());
/// while at < code.len() {
///     isa::decode_into(&mut inst, target, &code[at..])?;
///     names.push(inst.name());
///     at += usize::from(inst.size);
/// }
/// assert_eq!(names, ["v_mov_b32", "s_endpgm"]);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
///
/// # Errors
/// As [`decode`]. Then `inst` is part of an instruction and means nothing.
#[inline]
pub fn decode_into(inst: &mut Inst, target: Target, bytes: &[u8]) -> Result<()> {
    inst.operands.clear();
    inst.modifiers = Modifiers::default();
    decode::decode_into(inst, target, bytes)
}

/// Encodes an instruction. An instruction that was decoded gives its own bytes back.
///
/// # Errors
/// Unsupported if an operand or modifier does not fit the variant's fields.
pub fn encode(target: Target, inst: &Inst) -> Result<Vec<u8>> {
    encode::encode(target, inst)
}

/// The instruction as LLVM's disassembler prints it, operands separated by `, `; a branch target is printed as its
/// displacement.
#[must_use]
pub fn print(target: Target, inst: &Inst) -> String {
    print::print(target, inst)
}

/// Builds an instruction from its mnemonic (as LLVM prints it, `v_add_u32_e32`) and operand values in the assembler's
/// order; operands and modifiers can be changed afterwards on the result.
///
/// Words that a form always has (`vcc`, `off`) may be given or left out; the byte offset of a scalar memory form may be
/// the last value. Modifiers are what an assembler takes when they are not written. A mnemonic that only other
/// instruction sets have stands for this one's ([`operation`]).
///
/// ```
/// use wavetap_amdgpu::{self as isa, Reg, Target, Value};
/// let target = Target::by_name("gfx90a").unwrap();
/// let values = [Value::Reg(Reg::scalar(0, 2)), Value::Reg(Reg::scalar(4, 2)), Value::Imm(16)];
/// let load = isa::build(target, "s_load_dwordx2", &values)?;
/// assert_eq!(isa::encode(target, &load)?, [0x02, 0x00, 0x06, 0xc0, 0x10, 0x00, 0x00, 0x00]);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
///
/// # Errors
/// Unsupported if the target has no such mnemonic or the operands do not fit it.
pub fn build(target: Target, mnemonic: &str, operands: &[Value]) -> Result<Inst> {
    assemble::build(target, mnemonic, operands)
}
