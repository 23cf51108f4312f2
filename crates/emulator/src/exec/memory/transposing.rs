//! Loads that transpose rows of a matrix between the lanes of a group ([`crate::op::transpose`]).

use wavetap_amdgpu::{Inst, Opcode};

use super::{lds, vmem};
use crate::fault::stop::{ExecResult, undefined};
use crate::lanes::{LANES, active};
use crate::op::semantics::Semantics;
use crate::op::transpose::{Layout, MOST};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

fn from_lds(core: &mut Core, op: &Op) -> ExecResult {
    load(core, op, |core, op, layout| {
        let offset = lds::single_offset(op);
        if layout.alignment != 0 {
            let exec = core.wave.exec();
            let addresses = lds::addresses(core, op)?;
            if let Some(lane) = active(exec).find(|&lane| !(addresses[lane] + offset).is_multiple_of(layout.alignment))
            {
                let (name, at) = (op.inst.name(), addresses[lane] + offset);
                return undefined(format!(
                    "{name} at {at:#x} in lane {lane}, which is no multiple of {}",
                    layout.alignment
                ));
            }
        }
        lds::read_elements(core, op, &[offset], layout.bytes.into())
    })
}

fn from_memory(core: &mut Core, op: &Op) -> ExecResult {
    load(core, op, |core, op, _| vmem::load(core, op))
}

fn load(core: &mut Core, op: &Op, each: impl Fn(&mut Core, &Op, Layout) -> ExecResult) -> ExecResult {
    let Some(layout) = Layout::of(op.inst.opcode()) else { return undefined("meaning") };
    let lanes = usize::from(op.inst.wave_size);
    if core.wave.exec() != u64::MAX >> (LANES - lanes) {
        return undefined(format!("{} with lanes that are off", op.inst.name()));
    }
    let Some(dst) = op.dst else { return undefined("a load without destination") };
    each(core, op, layout)?;
    let registers = &mut core.file(dst.file)[usize::from(dst.first)..usize::from(dst.first) + layout.words()];
    let mut loaded = [[0_u32; LANES]; MOST];
    for (copy, register) in loaded.iter_mut().zip(registers.iter()) {
        *copy = register.0;
    }
    for (register, row) in registers.iter_mut().zip(layout.exchange(&loaded, lanes)) {
        register.0 = row;
    }
    Ok(())
}

/// The meaning of such a load.
pub(crate) fn meaning(opcode: Opcode, inst: &Inst) -> Option<Meaning> {
    let layout = Layout::of(opcode)?;
    let semantics = Semantics::Load { bytes: layout.bytes, signed: false, d16: None };
    match opcode {
        Opcode::GLOBAL_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR_B128 if inst.wave_size == 32 => {
            Some((from_memory, semantics))
        }
        Opcode::GLOBAL_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR_B128 => None,
        _ => Some((from_lds, semantics)),
    }
}
