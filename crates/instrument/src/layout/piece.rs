//! The elements of placed code: each has a size that does not depend on where it is placed.

use smallvec::SmallVec;

use wavetap_amdgpu::{Opcode, OpcodeFlags, Reg, Role, Target, Value};
use wavetap_base::error::{Error, Result};

/// An index into the label table of a [`super::Code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(pub usize);

/// One element of placed code.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Bytes that are the same everywhere.
    Bytes(SmallVec<[u8; 16]>),
    /// A direct branch; the low 16 bits of the word are the displacement to fill in.
    Branch { word: u32, to: Place, origin: Option<u64> },
    /// Loads an address into a pair: `s_getpc_b64`, `s_add_u32`, `s_addc_u32`. Destroys SCC. With `settle`, waits are
    /// between what they write and what reads it.
    Address { pair: Reg, address: u64, settle: bool },
    /// Turns the new program counter in a pair into the original one: `s_add_u32`, `s_addc_u32`, with SCC kept in a
    /// register around them where it is live. The pair holds the address of this piece's first byte. With `settle`,
    /// waits are between what scalar instructions write and what reads it, halves of one pair included, and after all
    /// of it.
    ProgramCounter { pair: Reg, original: u64, keep_scc_in: Option<KeptScc>, settle: bool },
    /// The same in one instruction, which leaves SCC alone: `s_add_nc_u64` with a 64-bit literal.
    WholeProgramCounter { pair: Reg, original: u64 },
}

/// Size of `s_getpc_b64` and of other instructions without a literal.
const SHORT: u64 = 4;
/// The fields of `s_waitcnt_depctr` and `s_wait_alu`: a wait for what scalar instructions write (`sa_sdst`, bit 0).
const SCALAR_RESULTS: i64 = 0xfffe;
/// Size of a scalar instruction with a literal.
const LONG: u64 = 8;

/// Size of a scalar instruction with a 64-bit literal.
const LONGEST: u64 = 12;

/// Where SCC is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KeptScc {
    pub(super) register: Reg,
    /// Memory instructions may have to read the register again as long as addresses are not translated.
    pub(super) untranslated: bool,
}

impl Piece {
    pub(super) fn size(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Branch { .. } => SHORT,
            Piece::Address { settle, .. } => SHORT + 2 * LONG + if *settle { 2 * SHORT } else { 0 },
            Piece::WholeProgramCounter { .. } => LONGEST,
            Piece::ProgramCounter { keep_scc_in, settle, .. } => {
                let keeping = keep_scc_in.as_ref().map_or(0, |kept| (2 + u64::from(kept.untranslated)) * SHORT);
                2 * LONG + keeping + if *settle { 3 * SHORT } else { 0 }
            }
        }
    }

    /// Where the halves of the distance to the original image are, low and high, from the piece's start: literals that
    /// change where code moves and the image does not.
    pub(super) fn distance(&self) -> Option<[u64; 2]> {
        match self {
            Piece::WholeProgramCounter { .. } => Some([SHORT, LONG]),
            Piece::ProgramCounter { keep_scc_in, settle, .. } => {
                let wait = if *settle { SHORT } else { 0 };
                let keeping = keep_scc_in.as_ref().map_or(0, |kept| (1 + u64::from(kept.untranslated)) * SHORT);
                let low = wait + keeping + SHORT;
                Some([low, low + LONG + wait])
            }
            Piece::Bytes(_) | Piece::Branch { .. } | Piece::Address { .. } => None,
        }
    }

    /// The bytes at `address`; `displacement` is what a branch needs, in dwords.
    pub(super) fn write(&self, target: Target, address: u64, displacement: i16, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        match self {
            Piece::Bytes(bytes) => out.extend(bytes),
            Piece::Branch { word, .. } => {
                out.extend((word & 0xffff_0000 | u32::from(displacement as u16)).to_le_bytes())
            }
            Piece::Address { pair, address: wanted, settle } => {
                out.extend(encode(target, Opcode::S_GETPC_B64, &[Value::Reg(*pair)])?);
                if *settle {
                    wait_for_scalars(target, out)?;
                }
                add_to_pair(target, *pair, wanted.wrapping_sub(address + SHORT), *settle, out)?;
            }
            Piece::WholeProgramCounter { pair, original } => {
                out.extend(add_whole(target, *pair, original.wrapping_sub(address))?);
            }
            Piece::ProgramCounter { pair, original, keep_scc_in, settle } => {
                if *settle {
                    wait_for_scalars(target, out)?;
                }
                if let Some(KeptScc { register, untranslated }) = keep_scc_in {
                    if *untranslated {
                        out.extend(encode(target, Opcode::S_WAIT_XCNT, &[Value::Imm(0)])?);
                    }
                    out.extend(encode(
                        target,
                        Opcode::S_CSELECT_B32,
                        &[Value::Reg(*register), Value::InlineInt(1), Value::InlineInt(0)],
                    )?);
                }
                add_to_pair(target, *pair, original.wrapping_sub(address), *settle, out)?;
                if *settle {
                    wait_for_scalars(target, out)?;
                }
                if let Some(KeptScc { register, .. }) = keep_scc_in {
                    out.extend(encode(target, Opcode::S_CMP_LG_U32, &[Value::Reg(*register), Value::InlineInt(0)])?);
                }
            }
        }
        if (out.len() - before) as u64 != self.size() {
            return Err(Error::internal("an inserted instruction has another size than planned").at(address));
        }
        Ok(())
    }
}

fn wait_for_scalars(target: Target, out: &mut Vec<u8>) -> Result<()> {
    out.extend(encode(target, Opcode::S_WAITCNT_DEPCTR, &[Value::Imm(SCALAR_RESULTS)])?);
    Ok(())
}

/// Adds a 64-bit constant to a register pair, with a wait between the halves if `settle`. Destroys SCC.
fn add_to_pair(target: Target, pair: Reg, value: u64, settle: bool, out: &mut Vec<u8>) -> Result<()> {
    for (half, opcode) in [(0, Opcode::S_ADD_U32), (1, Opcode::S_ADDC_U32)] {
        if settle && half == 1 {
            wait_for_scalars(target, out)?;
        }
        let register = Value::Reg(Reg::scalar(pair.first + half, 1));
        out.extend(encode(target, opcode, &[register, register, Value::Literal((value >> (32 * half)) as u32)])?);
    }
    Ok(())
}

/// Whether the target can add a 64-bit constant to a register pair in one instruction.
pub(super) fn adds_whole(target: Target) -> bool {
    add_whole(target, Reg::scalar(0, 2), u64::MAX).is_ok()
}

fn add_whole(target: Target, pair: Reg, value: u64) -> Result<Vec<u8>> {
    encode(target, Opcode::S_ADD_NC_U64, &[Value::Reg(pair), Value::Reg(pair), Value::Literal64(value)])
}

/// Bytes of an instruction of our own.
pub(super) fn encode(target: Target, opcode: Opcode, operands: &[Value]) -> Result<Vec<u8>> {
    wavetap_amdgpu::encode(target, &wavetap_amdgpu::build(target, opcode.name(), operands)?)
}

/// The word of a direct branch, its displacement left 0.
pub(super) fn branch_word(target: Target, opcode: Opcode) -> Result<u32> {
    let bytes = encode(target, opcode, &[Value::Imm(0)])?;
    match bytes.first_chunk::<4>() {
        Some(word) if bytes.len() == 4 => Ok(u32::from_le_bytes(*word)),
        _ => Err(Error::internal(format!("{opcode} is not one word long"))),
    }
}

/// The word of a direct call that leaves its return address in `link`, its displacement left 0.
pub(super) fn call_word(target: Target, link: Value) -> Result<u32> {
    let bytes = encode(target, Opcode::S_CALL_B64, &[link, Value::Imm(0)])?;
    match bytes.first_chunk::<4>() {
        Some(word) if bytes.len() == 4 => Ok(u32::from_le_bytes(*word)),
        _ => Err(Error::internal("s_call_b64 is not one word long")),
    }
}

/// The pair that `s_getpc_b64` writes, by any of its names.
pub(super) fn getpc_pair(inst: &wavetap_amdgpu::Inst) -> Option<Reg> {
    if !inst.variant.opcode_flags.contains(OpcodeFlags::GET_PC) {
        return None;
    }
    inst.operand(Role::Sdst)?.reg()
}
