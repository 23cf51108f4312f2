//! The state of a wave.

use wavetap_amdgpu::{VgprMsb, scalar};

use super::clock_wait::ClockWait;
use super::fp_mode::FpMode;
use super::gws::GwsRequest;
use crate::float::Env;
use crate::lanes::Registers;
use crate::shadow::hazard::Hazards;
use crate::shadow::in_flight::InFlight;
use crate::shadow::wave_checks::WaveChecks;
use crate::trace::origins::WaveOrigins;

/// What a wave is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    AtBarrier,
    /// Has signalled the barrier, and waits until all have (gfx12).
    AtSplitBarrier,
    /// Waits for waves of other workgroups, too: see [`Wave::gws_request`].
    AtGws,
    /// `s_sleep` and friends: lets others run first.
    Yielding,
    Ended,
}

/// The state of a wave.
pub(crate) struct Wave {
    /// By operand code: `s0..s101`, FLAT_SCRATCH, XNACK_MASK, VCC, TTMPs, M0, EXEC.
    pub sgpr: [u32; 128],
    pub vgpr: Registers,
    pub agpr: Registers,
    pub scc: bool,
    pub mode: u32,
    /// What MODE means for arithmetic.
    pub env: Env,
    /// What it means for fast paths.
    pub fp_mode: FpMode,
    /// The high bits of vector register numbers, which MODE has as well.
    pub vgpr_msb: VgprMsb,
    /// The address after the last instruction that wrote a literal to MODE (gfx125x).
    pub after_mode_write: Option<u64>,
    /// Bits 1:0 of the scheduling mode (gfx12): whether the hardware interlocks VGPRs between VALU and
    /// memory, as it does at first.
    pub scheduling: u32,
    pub trapsts: u32,
    pub pc: u64,
    /// The instruction took a branch.
    pub jumped: bool,
    pub status: Status,
    /// Scalar registers below this one are allocated.
    pub sgpr_count: u16,
    /// Device address of the wave's scratch.
    pub scratch: u64,
    /// FLAT_SCRATCH where it is no pair of scalar registers (gfx10).
    pub flat_scratch: u64,
    /// Lanes that take part: all 64, or the first 32.
    pub lanes: u64,
    /// The phase of the workgroup's barrier when the wave signalled it (gfx12).
    pub signalled: u64,
    /// Its outstanding request to global wave sync.
    pub gws_request: Option<GwsRequest>,
    /// It waits for a clock.
    pub clock_wait: Option<Box<ClockWait>>,
    /// The workgroup's slot among those running.
    pub group: usize,
    /// Workgroup id.
    pub group_id: [u32; 3],
    /// Index within the workgroup.
    pub index: u32,
    pub in_flight: InFlight,
    pub hazards: Hazards,
    pub checks: WaveChecks,
    /// Where its values came from, if that is recorded.
    pub origins: Option<Box<WaveOrigins>>,
}

impl Wave {
    pub(crate) fn exec(&self) -> u64 {
        self.mask(scalar::EXEC)
    }

    /// The lane mask at an operand code: as many bits as the wave has lanes.
    pub(crate) fn mask(&self, code: u16) -> u64 {
        self.pair(code) & self.lanes
    }

    pub(crate) fn pair(&self, code: u16) -> u64 {
        u64::from(self.sgpr[usize::from(code)]) | u64::from(self.sgpr[usize::from(code) + 1]) << 32
    }

    pub(crate) fn set_pair(&mut self, code: u16, value: u64) {
        self.sgpr[usize::from(code)] = value as u32;
        self.sgpr[usize::from(code) + 1] = (value >> 32) as u32;
    }

    pub(crate) fn set_mode(&mut self, mode: u32) {
        self.mode = mode;
        self.env = Env::from_mode(mode);
        self.fp_mode = FpMode::of(mode);
    }

    /// Sets the high bits of vector register numbers.
    pub(crate) fn set_vgpr_msb(&mut self, msb: VgprMsb) {
        self.vgpr_msb = msb;
        self.mode = msb.in_mode(self.mode);
    }
}
