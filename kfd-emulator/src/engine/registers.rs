//! The registers by which commands describe a dispatch. Their numbers and fields are those of AMD's register headers
//! (`gc_9_4_3`, `gc_11_0_0`, `gc_12_0_0`), which agree where nothing else is said.

use wavetap_amdgpu::Target;
use wavetap_emulator::RegisterDispatch;

/// The first compute register, and how many there are.
const FIRST: u32 = 0x2e00;
const COUNT: usize = 0x80;

/// Registers, from the first one on (`COMPUTE_*`).
mod register {
    pub(super) const START: usize = 0x04;
    pub(super) const NUM_THREAD: usize = 0x07;
    pub(super) const PGM_LO: usize = 0x0c;
    pub(super) const PGM_HI: usize = 0x0d;
    pub(super) const PGM_RSRC1: usize = 0x12;
    pub(super) const PGM_RSRC2: usize = 0x13;
    pub(super) const TMPRING_SIZE: usize = 0x18;
    pub(super) const RESTART: usize = 0x1b;
    /// `COMPUTE_PGM_RSRC3`, from gfx10 on and before.
    pub(super) const PGM_RSRC3: [usize; 2] = [0x28, 0x2d];
    pub(super) const USER_DATA: usize = 0x40;
}

/// Bits of `COMPUTE_DISPATCH_INITIATOR`: the compute shader is enabled, the first workgroup is 0, waves have 32 lanes.
const SHADER_ENABLED: u32 = 1;
const FROM_ZERO: u32 = 1 << 2;
const WAVE32: u32 = 1 << 15;
/// Bits that only hint at the order of workgroups, at caches, and at preemption: those of ORDER_MODE, both volatile
/// lines, TUNNEL_ENABLE and DISABLE_DISP_PREMPT_EN.
const HINTS: u32 = 1 << 6 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 17;

/// Bits of the second resource word: scratch is enabled; its LDS.
const SCRATCH: u32 = 1;
const LDS_SHIFT: u32 = 15;
const LDS_MASK: u32 = 0x1ff;

/// Unit of LDS in the second resource word by the LDS that a workgroup may have (AMDGPUUsage, GRANULATED_LDS_SIZE).
fn lds_unit(target: Target) -> u32 {
    match target.lds_bytes() {
        0x2_8000 => 1280,
        0x5_0000 => 1024,
        _ => 512,
    }
}

/// The registers of a queue.
pub(crate) struct Registers {
    values: Box<[u32; COUNT]>,
}

impl Default for Registers {
    fn default() -> Self {
        Registers { values: Box::new([0; COUNT]) }
    }
}

impl Registers {
    /// Sets a register; false if there is none of the number.
    pub(crate) fn set(&mut self, number: u32, value: u32) -> bool {
        let at = number.checked_sub(FIRST).and_then(|at| self.values.get_mut(at as usize));
        at.map(|register| *register = value).is_some()
    }

    /// Where the kernel begins.
    pub(crate) fn entry(&self) -> u64 {
        (u64::from(self.values[register::PGM_LO]) | u64::from(self.values[register::PGM_HI]) << 32) << 8
    }

    /// The dispatch that they describe with so many workgroups, or why there is none.
    pub(crate) fn dispatch(
        &self,
        target: Target,
        groups: [u32; 3],
        initiator: u32,
    ) -> Result<RegisterDispatch, String> {
        let unknown = initiator & !(SHADER_ENABLED | FROM_ZERO | WAVE32 | HINTS);
        if initiator & SHADER_ENABLED == 0 || unknown != 0 {
            return Err(format!("with an initiator {initiator:#x} that the emulated device does not have"));
        }
        let three = |first: usize| [self.values[first], self.values[first + 1], self.values[first + 2]];
        if initiator & FROM_ZERO == 0 && three(register::START) != [0; 3] {
            return Err("that does not start with the first workgroup".into());
        }
        if three(register::RESTART) != [0; 3] {
            return Err("that goes on with one that was interrupted".into());
        }
        let mut workgroup = [0; 3];
        for (size, register) in workgroup.iter_mut().zip(three(register::NUM_THREAD)) {
            // The upper half is that of partial workgroups, which are not enabled.
            *size = register as u16;
        }
        let (rsrc1, rsrc2) = (self.values[register::PGM_RSRC1], self.values[register::PGM_RSRC2]);
        let rsrc3 = self.values[register::PGM_RSRC3[usize::from(target.generation() < 10)]];
        // WAVESIZE counts 256 dwords before gfx11, 64 dwords from there on.
        let unit = if target.generation() < 11 { 1024 } else { 256 };
        let wave_size = self.values[register::TMPRING_SIZE] >> 12 & 0x3_ffff;
        Ok(RegisterDispatch {
            entry: self.entry(),
            rsrc: [rsrc1, rsrc2, rsrc3],
            user_data: self.values[register::USER_DATA..]
                .iter()
                .take(target.max_user_sgprs() as usize)
                .copied()
                .collect(),
            workgroup,
            groups,
            lds_bytes: (rsrc2 >> LDS_SHIFT & LDS_MASK) * lds_unit(target),
            wave_scratch_bytes: if rsrc2 & SCRATCH == 0 { 0 } else { wave_size * unit },
            wave32: initiator & WAVE32 != 0,
        })
    }
}
