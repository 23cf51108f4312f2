//! What a wave begins with where its first vector instructions have to be certain ones (gfx125x,
//! [`EventHazards::FIRST_VECTOR`]): the inserted code at the entry has them before anything else, as compilers' code
//! has.

use smallvec::SmallVec;

use crate::asm::{c, s2, v};
use crate::frame::entry::Entry;
use wavetap_amdgpu::{EventHazards, Flags, Inst, Latency, Opcode, RegFile, Role, Target, Value};
use wavetap_analysis::kernel::{Body, Flow};
use wavetap_base::error::Result;

/// The instructions of such a sequence.
pub(crate) type Sequence = SmallVec<[Inst; 4]>;

/// The most instructions of a sequence.
const MOST: usize = 4;
/// HW_REG_MODE in a `hwreg` operand, of which a compiler sets a bit before the sequence.
const MODE: u8 = 1;
/// A pair that nothing sets before a wave starts, for an address that is defined (LLVM and ROCm's rocm-libraries choose
/// this one).
const ADDRESS: u16 = 64;
/// `scope` of all waves of a shader engine (gfx12).
const SCOPE_SHADER_ENGINE: u8 = 1;

/// The sequence: that of the original, so that it stays one that its runtime knows, or that of LLVM since August 2026.
/// None where none is needed.
pub(crate) fn sequence(body: &Body, entry: &Entry) -> Result<Sequence> {
    let target = body.target();
    if !target.event_hazards().contains(EventHazards::FIRST_VECTOR) {
        return Ok(Sequence::new());
    }
    if let Some(found) = of_original(body, entry) {
        return Ok(found);
    }
    let mut prefetch = wavetap_amdgpu::build(target, "global_prefetch_b8", &[v(0), s2(ADDRESS)])?;
    prefetch.modifiers.scope = SCOPE_SHADER_ENGINE;
    Ok([
        wavetap_amdgpu::build(target, "s_mov_b64", &[s2(ADDRESS), c(0)])?,
        wavetap_amdgpu::build(target, "v_nop", &[])?,
        prefetch,
    ]
    .into_iter()
    .collect())
}

/// One more than the highest numbered scalar register that a sequence writes.
pub(crate) fn end_of_scalars(target: Target, sequence: &Sequence) -> u32 {
    let end = target.addressable_sgprs() as u16;
    let written = sequence.iter().flat_map(Inst::writes);
    let numbered = written.filter(|reg| reg.file == RegFile::Scalar && reg.first < end);
    numbered.map(|reg| u32::from(reg.first) + u32::from(reg.dwords)).max().unwrap_or(0)
}

/// The sequence with which the original begins: `v_nop` and a vector memory instruction that changes nothing, in either
/// order, and before them at most a write of a literal to MODE and an address.
fn of_original(body: &Body, entry: &Entry) -> Option<Sequence> {
    let mut found = Sequence::new();
    let (mut nop, mut memory) = (false, false);
    let mut at = body.entry();
    while found.len() < MOST {
        let inst = body.inst(at);
        let sets_address = || {
            let literal = matches!(inst.operand(Role::Src0).map(|operand| operand.value), Some(Value::InlineInt(0)));
            inst.opcode() == Opcode::S_MOV_B64 && literal && inst.writes().all(|reg| reg.first >= entry.scalars())
        };
        match inst {
            _ if !nop && inst.opcode() == Opcode::V_NOP => nop = true,
            _ if !memory && is_harmless_memory(inst) => memory = true,
            _ if found.is_empty() && inst.sets_hwreg() == Some(MODE) && has_literal(inst) => {}
            _ if !memory && sets_address() => {}
            _ => return None,
        }
        found.push(inst.clone());
        if nop && memory {
            return Some(found);
        }
        match (body.flow(at), body.next(at)) {
            (Flow::Next, Some(next)) => at = next,
            _ => return None,
        }
    }
    None
}

fn has_literal(inst: &Inst) -> bool {
    inst.operands.iter().any(|operand| matches!(operand.value, Value::Literal(_)))
}

/// Whether it is vector memory that neither reads nor writes memory for the wave: a prefetch or a write-back.
fn is_harmless_memory(inst: &Inst) -> bool {
    inst.variant.latency == Latency::Vmem
        && !inst.variant.flags.intersects(Flags::LOAD | Flags::STORE)
        && inst.writes().next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::entry::{EntryNeeds, ScratchAccess};
    use wavetap_amdgpu::Reg;
    use wavetap_analysis::kernel::{BodyKind, Image};
    use wavetap_object::code_object::{Field, KernelDescriptor};

    /// The names of the sequence before a kernel that begins with these words.
    fn names(target: &str, words: &[u32]) -> Vec<&'static str> {
        let target = Target::by_name(target).expect("a target");
        let end = [0xbfb0_0000_u32];
        let code: Vec<u8> = words.iter().chain(&end).flat_map(|word| word.to_le_bytes()).collect();
        let mut image = Image::new();
        image.add_code(0x1000, &code);
        let body = Body::decode(target, &image, "kernel", BodyKind::Kernel, 0x1000).expect("a body");
        let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
        descriptor.set(Field::ENABLE_WAVEFRONT_SIZE32, 1).expect("fits");
        let entry =
            Entry::extend(target, &mut descriptor, EntryNeeds::All, ScratchAccess::Given, None).expect("an entry");
        sequence(&body, &entry).expect("a sequence").iter().map(Inst::name).collect()
    }

    const REPLAY: [u32; 2] = [0xb980_0641, 1];
    const ADDRESS: u32 = 0xbec0_0180;
    const NOP: u32 = 0x7e00_0000;
    const PREFETCH: [u32; 3] = [0xee17_4040, 0x0004_0000, 0];
    const OF_KERNARG: [u32; 3] = [0xee17_4000, 0x0004_0000, 0];

    #[test]
    fn that_of_the_original_or_the_newest() {
        let newest = ["s_mov_b64", "v_nop", "global_prefetch_b8"];
        for target in ["gfx1250", "gfx1251"] {
            let words = [&REPLAY[..], &[ADDRESS, NOP], &PREFETCH].concat();
            assert_eq!(names(target, &words), ["s_setreg_imm32_b32", newest[0], newest[1], newest[2]]);
            assert_eq!(names(target, &words[2..]), newest);
            assert_eq!(names(target, &[&OF_KERNARG[..], &[NOP]].concat()), ["global_prefetch_b8", "v_nop"]);
            // v_mov_b32 v1, 0 first; nothing; a prefetch alone; an address in a register that is set at entry.
            assert_eq!(names(target, &[0x7e02_0280, NOP]), newest);
            assert_eq!(names(target, &[]), newest);
            assert_eq!(names(target, &OF_KERNARG), newest);
            assert_eq!(names(target, &[&[0xbe80_0180, NOP][..], &OF_KERNARG].concat()), newest);
        }
        assert!(names("gfx1200", &[]).is_empty());
        let first = wavetap_amdgpu::build(
            Target::by_name("gfx1250").expect("a target"),
            "s_mov_b64",
            &[s2(super::ADDRESS), c(0)],
        )
        .expect("built");
        assert_eq!(first.writes().next(), Some(Reg::scalar(64, 2)));
    }
}
