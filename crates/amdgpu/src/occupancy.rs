//! How many workgroups run at the same time, on a compute unit and in waves of a SIMD, and what limits that.

use std::fmt;

use super::target::Target;

/// What a kernel asks of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Vector registers of a lane; with [`Target::unified_accum`] the AGPRs too.
    pub vgprs: u32,
    /// Scalar registers of a wave, VCC and the like included.
    pub sgprs: u32,
    /// Bytes of LDS of a workgroup.
    pub lds_bytes: u32,
    /// Work items of a workgroup.
    pub workgroup_size: u32,
    /// Whether a workgroup has the two compute units of a workgroup processor. Of no effect where there are none.
    pub wgp_mode: bool,
}

/// What keeps a SIMD from holding more waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The SIMD has no room for more waves.
    Waves,
    /// Vector registers.
    VectorRegisters,
    /// Scalar registers.
    ScalarRegisters,
    /// LDS.
    Lds,
    /// The number of waves of a workgroup, which all run or none: a further workgroup does not fit in what is left.
    Workgroup,
    /// Barriers: each workgroup of more than one wave needs one.
    Barriers,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Waves => "waves of a SIMD",
            Limit::VectorRegisters => "vector registers",
            Limit::ScalarRegisters => "scalar registers",
            Limit::Lds => "LDS",
            Limit::Workgroup => "workgroup size",
            Limit::Barriers => "barriers",
        })
    }
}

/// How many workgroups run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Workgroups of a compute unit, or of two where they are a workgroup's; 0 if a workgroup does not fit at all.
    pub workgroups: u32,
    /// Their waves on the fullest SIMD.
    pub waves: u32,
    /// What keeps a further workgroup out.
    pub limit: Limit,
}

/// What becomes of a kernel's occupancy with workgroups of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Work-items of a workgroup.
    pub workgroup_size: u32,
    /// Waves of a SIMD before.
    pub before: u32,
    /// After.
    pub after: u32,
}

impl Loss {
    /// How many waves of a SIMD are lost.
    #[must_use]
    pub fn waves(&self) -> u32 {
        self.before.saturating_sub(self.after)
    }
}

/// Scalar registers of a SIMD, and their unit, as AMD's HIP runtime counts them on targets whose waves share them (CLR,
/// `ihipOccupancyMaxActiveBlocksPerMultiprocessor`).
const RUNTIME_SGPRS: u32 = 800;
const RUNTIME_SGPR_GRANULE: u32 = 16;

impl Target {
    /// Whether every wave has all scalar registers that code can number, whatever it asks for.
    #[must_use]
    pub fn all_sgprs(self) -> bool {
        self.data.sgpr_granule > self.data.addressable_sgprs
    }

    /// Waves per SIMD that `vgprs` registers of a lane allow (at least one register is allocated); 0 if no wave may
    /// have so many.
    #[must_use]
    pub fn waves_by_vgprs(self, vgprs: u32) -> u32 {
        let allocated = vgprs.max(1).next_multiple_of(self.vgpr_granule());
        (self.vgpr_total() / allocated).min(self.data.max_waves_per_simd)
    }

    /// Waves per SIMD that `sgprs` scalar registers (VCC and the like included) allow; 0 if no wave may have so many.
    #[must_use]
    pub fn waves_by_sgprs(self, sgprs: u32) -> u32 {
        self.data.sgpr_limits.iter().find(|(most, _)| sgprs <= *most).map_or(0, |(_, waves)| *waves)
    }

    /// Compute units that a workgroup has.
    fn compute_units(self, wgp_mode: bool) -> u32 {
        if wgp_mode && self.has_wgp_mode() { 2 } else { 1 }
    }

    /// Waves per SIMD that `lds_bytes` of LDS allow workgroups of `waves` waves; 0 if a workgroup does not fit.
    #[must_use]
    pub fn waves_by_lds(self, lds_bytes: u32, waves: u32, wgp_mode: bool) -> u32 {
        let units = self.compute_units(wgp_mode);
        self.workgroups_by_lds(lds_bytes, units)
            .saturating_mul(waves.max(1))
            .div_ceil(units * self.simds_per_cu())
            .min(self.data.max_waves_per_simd)
    }

    /// How many workgroups of a kernel a compute unit holds at the same time, or two where they are a workgroup's, and
    /// what keeps a further one out. Where several things do, the first of the order of [`Limit`] is named.
    ///
    /// All waves of a workgroup run or none, so registers that are left for a part of a workgroup are left over.
    /// Compilers print another figure, the least of [`Target::waves_by_vgprs`] and its like, in which they count.
    /// Workgroups are taken to be spread evenly. Scratch memory, which limits the whole device, is not considered.
    ///
    /// ```
    /// use wavetap_amdgpu::{Demand, Limit, Target};
    /// let target = Target::by_name("gfx900").unwrap();
    /// // Registers for 24 waves on four SIMDs: one workgroup of 16 and half of another.
    /// let demand = Demand { vgprs: 40, sgprs: 32, lds_bytes: 0, workgroup_size: 1024, wgp_mode: false };
    /// let occupancy = target.occupancy(&demand);
    /// assert_eq!((target.waves_by_vgprs(40), occupancy.workgroups, occupancy.waves), (6, 1, 4));
    /// assert_eq!(occupancy.limit, Limit::VectorRegisters);
    /// ```
    #[must_use]
    pub fn occupancy(self, demand: &Demand) -> Occupancy {
        let units = self.compute_units(demand.wgp_mode);
        let simds = units * self.simds_per_cu();
        let waves = demand.workgroup_size.max(1).div_ceil(self.wave_size());
        let of_waves = |waves_per_simd: u32| waves_per_simd.saturating_mul(simds) / waves;
        let most = of_waves(self.max_waves_per_simd());
        let (mut workgroups, mut limit) =
            (most, if most * waves < self.max_waves_per_simd() * simds { Limit::Workgroup } else { Limit::Waves });
        for (by, allowed) in [
            (Limit::VectorRegisters, of_waves(self.waves_by_vgprs(demand.vgprs))),
            (Limit::ScalarRegisters, of_waves(self.waves_by_sgprs(demand.sgprs))),
            (Limit::Lds, self.workgroups_by_lds(demand.lds_bytes, units)),
            (Limit::Barriers, if waves > 1 { units * self.data.max_groups } else { u32::MAX }),
        ] {
            if allowed < workgroups {
                (workgroups, limit) = (allowed, by);
            }
        }
        Occupancy { workgroups, waves: workgroups.saturating_mul(waves).div_ceil(simds), limit }
    }

    /// [`Occupancy::workgroups`].
    #[must_use]
    pub fn workgroups(self, demand: &Demand) -> u32 {
        self.occupancy(demand).workgroups
    }

    /// Whole workgroups that AMD's HIP runtime says a multiprocessor holds
    /// (`hipOccupancyMaxActiveBlocksPerMultiprocessor`), 0 for sizes that no workgroup has. A multiprocessor is two
    /// compute units where a workgroup may have both, whatever the kernel does.
    ///
    /// It is not [`Target::workgroups`]: the runtime counts fewer waves of a SIMD on some targets, no barriers, LDS to
    /// the byte, and where a multiprocessor has two compute units the LDS of one.
    #[must_use]
    pub fn workgroups_by_runtime(self, demand: &Demand) -> u32 {
        if !(1..=self.max_workgroup()).contains(&demand.workgroup_size) {
            return 0;
        }
        let simds = self.compute_units(true) * self.simds_per_cu();
        let waves = demand.workgroup_size.div_ceil(self.wave_size());
        let by_vgprs = self.vgpr_total() / demand.vgprs.max(1).next_multiple_of(self.vgpr_granule());
        let by_sgprs = match demand.sgprs {
            _ if self.all_sgprs() => u32::MAX,
            sgprs => RUNTIME_SGPRS / sgprs.max(1).next_multiple_of(RUNTIME_SGPR_GRANULE),
        };
        let by_waves = simds * self.data.runtime_waves_per_simd.min(by_vgprs).min(by_sgprs) / waves;
        by_waves.min(self.lds_bytes().checked_div(demand.lds_bytes).unwrap_or(u32::MAX))
    }

    /// The size of workgroups that AMD's HIP runtime advises for a kernel with at most that of `demand`
    /// (`hipOccupancyMaxPotentialBlockSize`), and how many workgroups of it a multiprocessor holds.
    #[must_use]
    pub fn workgroup_by_runtime(self, demand: &Demand) -> (u32, u32) {
        let most = demand.workgroup_size.clamp(1, self.max_workgroup()).next_multiple_of(self.wave_size());
        let wave = Demand { workgroup_size: self.wave_size(), lds_bytes: 0, ..*demand };
        let size = (self.workgroups_by_runtime(&wave) * self.wave_size()).min(most).max(self.wave_size());
        (size, self.workgroups_by_runtime(&Demand { workgroup_size: size, ..*demand }))
    }

    /// Workgroups with so much LDS that compute units have room for; 0 if a workgroup may not have so much.
    fn workgroups_by_lds(self, lds_bytes: u32, units: u32) -> u32 {
        if lds_bytes > self.lds_bytes() {
            return 0;
        }
        units * self.lds_bytes() / lds_bytes.max(1).next_multiple_of(self.lds_granule())
    }

    /// The largest workgroup of a kernel that fits with `before`, of those up to its size, if it does not with `after`:
    /// a launch that was possible and is no more. All smaller workgroups fit where it does. With `is_required` no other
    /// size is looked at.
    ///
    /// ```
    /// use wavetap_amdgpu::{Demand, Target};
    /// let target = Target::by_name("gfx90a").unwrap();
    /// let before = Demand { vgprs: 128, sgprs: 32, lds_bytes: 0, workgroup_size: 1024, wgp_mode: false };
    /// let after = Demand { vgprs: 136, ..before };
    /// assert_eq!(target.lost_workgroup(&before, &after, false), Some(1024));
    /// assert_eq!(target.lost_workgroup(&before, &before, false), None);
    /// ```
    #[must_use]
    pub fn lost_workgroup(self, before: &Demand, after: &Demand, is_required: bool) -> Option<u32> {
        let fits = |demand: &Demand, workgroup_size| self.workgroups(&Demand { workgroup_size, ..*demand }) > 0;
        let largest = before.workgroup_size.clamp(1, self.max_workgroup());
        let smaller = (1..largest.div_ceil(self.wave_size())).rev().map(|waves| waves * self.wave_size());
        let size = std::iter::once(largest).chain(smaller.filter(|_| !is_required)).find(|size| fits(before, *size))?;
        (!fits(after, size)).then_some(size)
    }

    /// The most vector registers of a lane with which no launch is lost that `before` allows: as
    /// [`Target::lost_workgroup`] has it. At least those that `before` has.
    #[must_use]
    pub fn most_vgprs(self, before: &Demand, is_required: bool) -> u32 {
        let granule = self.vgpr_granule();
        let keeps = |vgprs: u32| self.lost_workgroup(before, &Demand { vgprs, ..*before }, is_required).is_none();
        let most = (1..=self.max_vgprs() / granule).rev().map(|units| units * granule).find(|vgprs| keeps(*vgprs));
        most.unwrap_or(0).max(before.vgprs)
    }

    /// The workgroup size, of those from `least` to that of `before`, with which a kernel loses most waves of a SIMD
    /// when it asks for `after` instead of `before`, and its waves then and before. The sizes of the two are not looked
    /// at otherwise.
    #[must_use]
    pub fn worst_loss(self, least: u32, before: &Demand, after: &Demand) -> Loss {
        let largest = before.workgroup_size.clamp(1, self.max_workgroup());
        let sizes = (1..largest.div_ceil(self.wave_size()))
            .map(|waves| waves * self.wave_size())
            .filter(|size| *size >= least)
            .chain([largest]);
        let losses = sizes.map(|workgroup_size| {
            let waves = |demand: &Demand| self.occupancy(&Demand { workgroup_size, ..*demand }).waves;
            Loss { workgroup_size, before: waves(before), after: waves(after) }
        });
        // Of sizes that lose the same, the largest.
        losses.max_by_key(Loss::waves).unwrap_or(Loss { workgroup_size: largest, before: 0, after: 0 })
    }

    /// [`Target::occupancy`] for the best workgroup size up to that of `demand`: what a kernel can reach that leaves
    /// its size open.
    #[must_use]
    pub fn best_occupancy(self, demand: &Demand) -> Occupancy {
        let largest = demand.workgroup_size.clamp(1, self.max_workgroup());
        let mut best = self.occupancy(&Demand { workgroup_size: largest, ..*demand });
        for waves in 1..largest.div_ceil(self.wave_size()) {
            let other = self.occupancy(&Demand { workgroup_size: waves * self.wave_size(), ..*demand });
            if other.waves > best.waves {
                best = other;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_workgroup_size_is_found() {
        let target = Target::by_name("gfx90a").expect("a target");
        let before = Demand { vgprs: 16, sgprs: 32, lds_bytes: 512, workgroup_size: 1024, wgp_mode: false };
        let after = Demand { lds_bytes: 2560, ..before };
        // 25 workgroups of one wave, on 4 SIMDs; more waves of a workgroup fill them all.
        assert_eq!(target.worst_loss(1, &before, &after), Loss { workgroup_size: 64, before: 8, after: 7 });
        assert_eq!(target.worst_loss(1024, &before, &after).waves(), 0);
        assert_eq!(target.best_occupancy(&after).waves, 8, "which the best size does not show");
        assert_eq!(target.worst_loss(1, &before, &before).waves(), 0);
    }
}
