//! A pool of registers, waves and LDS of ended workgroups, so that small dispatches allocate next to nothing.

use super::counts::OpCount;
use super::worker::Workgroup;
use crate::lanes::Registers;
use crate::state::wave::Wave;

/// Most vector registers that are kept: 16 MB.
const MOST_REGISTERS: usize = 1 << 16;
/// Most workgroups whose lists and LDS are kept.
const MOST_GROUPS: usize = 64;

/// The pool of a thread.
#[derive(Default)]
pub(crate) struct Pool {
    /// Counters of executions, at first 0.
    pub counts: Vec<OpCount>,
    registers: Registers,
    waves: Vec<Vec<Wave>>,
    lds: Vec<Vec<u8>>,
}

impl Pool {
    /// Makes a file of vector registers hold so many zeros.
    pub(crate) fn registers(&mut self, file: &mut Registers, count: usize) {
        if file.len() > count {
            self.registers.extend(file.drain(count..));
            self.registers.truncate(MOST_REGISTERS);
        }
        file.iter_mut().for_each(|register| register.0.fill(0));
        for _ in file.len()..count {
            let mut register = self.registers.pop().unwrap_or_default();
            register.0.fill(0);
            file.push(register);
        }
    }

    /// Zeros for the LDS of a workgroup.
    pub(crate) fn lds(&mut self, size: usize) -> Vec<u8> {
        let mut lds = self.lds.pop().unwrap_or_default();
        lds.clear();
        lds.resize(size, 0);
        lds
    }

    /// Waves that have ended, which can begin again, or none.
    pub(crate) fn waves(&mut self) -> Vec<Wave> {
        self.waves.pop().unwrap_or_default()
    }

    /// Takes the waves and LDS of a workgroup that has ended, outside strict mode.
    pub(crate) fn take(&mut self, group: Workgroup) {
        if self.waves.len() < MOST_GROUPS {
            self.waves.push(group.waves);
            self.lds.push(group.lds);
        }
    }
}
