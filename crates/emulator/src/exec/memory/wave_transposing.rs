//! Loads that transpose rows of a matrix between all lanes of a wave ([`crate::op::wave_transpose`]).

use wavetap_amdgpu::Opcode;

use super::{lds, vmem};
use crate::fault::stop::{ExecResult, undefined};
use crate::lanes::LANES;
use crate::op::semantics::Semantics;
use crate::op::wave_transpose::{WAVE, WORDS, bits_of, exchange};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

fn from_lds(core: &mut Core, op: &Op) -> ExecResult {
    if core.wave.exec() == 0 {
        return undefined(format!("{} with all lanes off", op.inst.name()));
    }
    load(core, op, |core, op| lds::read_elements(core, op, &[lds::single_offset(op)], 4 * WORDS))
}

fn from_memory(core: &mut Core, op: &Op) -> ExecResult {
    load(core, op, vmem::load)
}

fn load(core: &mut Core, op: &Op, each: impl Fn(&mut Core, &Op) -> ExecResult) -> ExecResult {
    let (Some(bits), Some(dst)) = (bits_of(op.inst.opcode()), op.dst) else { return undefined("meaning") };
    let exec = core.wave.exec();
    if exec != 0 && exec != u64::MAX >> (LANES - WAVE) {
        return undefined(format!("{} with lanes that are off", op.inst.name()));
    }
    each(core, op)?;
    if exec == 0 {
        return Ok(());
    }
    let Some(registers) =
        core.file(dst.file).get_mut(usize::from(dst.first)..).and_then(|rest| rest.first_chunk_mut::<WORDS>())
    else {
        return undefined("a load without destination");
    };
    let result = exchange(bits, &registers.each_ref().map(|register| register.0));
    for (register, row) in registers.iter_mut().zip(result) {
        register.0 = row;
    }
    Ok(())
}

/// The meaning of such a load.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    bits_of(opcode)?;
    let semantics = Semantics::Load { bytes: 8, signed: false, d16: None };
    Some((
        if matches!(opcode, Opcode::DS_LOAD_TR8_B64 | Opcode::DS_LOAD_TR4_B64) { from_lds } else { from_memory },
        semantics,
    ))
}
