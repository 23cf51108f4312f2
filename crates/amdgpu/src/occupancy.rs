//! How many waves a SIMD holds at the same time, and what limits that.

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

/// How many waves a SIMD holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Waves on the fullest SIMD; 0 if a workgroup does not fit at all.
    pub waves: u32,
    /// What keeps it from holding more.
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

    /// Waves per SIMD that `lds_bytes` of LDS allow a workgroup of `waves` waves; 0 if the workgroup does not fit.
    #[must_use]
    pub fn waves_by_lds(self, lds_bytes: u32, waves: u32, wgp_mode: bool) -> u32 {
        if lds_bytes > self.lds_bytes() {
            return 0;
        }
        let units = self.compute_units(wgp_mode);
        self.groups_by_lds(lds_bytes, units)
            .saturating_mul(waves.max(1))
            .div_ceil(units * self.simds_per_cu())
            .min(self.data.max_waves_per_simd)
    }

    /// How many waves of a kernel a SIMD holds, and what keeps it from holding more. Where several things do, the first
    /// of the order of [`Limit`] is named.
    ///
    /// Workgroups are taken to be spread evenly. Scratch memory, which limits the whole device, is not considered.
    #[must_use]
    pub fn occupancy(self, demand: &Demand) -> Occupancy {
        let units = self.compute_units(demand.wgp_mode);
        let simds = units * self.simds_per_cu();
        let waves = demand.workgroup_size.max(1).div_ceil(self.wave_size());
        let by_groups = |groups: u32| groups.saturating_mul(waves).div_ceil(simds);
        let most = self.max_waves_per_simd();
        let mut occupancy = Occupancy { waves: most, limit: Limit::Waves };
        for (limit, waves) in [
            (Limit::VectorRegisters, self.waves_by_vgprs(demand.vgprs)),
            (Limit::ScalarRegisters, self.waves_by_sgprs(demand.sgprs)),
            (Limit::Lds, self.waves_by_lds(demand.lds_bytes, waves, demand.wgp_mode)),
            (Limit::Workgroup, by_groups(most * simds / waves)),
            (Limit::Barriers, if waves > 1 { by_groups(units * self.data.max_groups) } else { most }),
        ] {
            if waves < occupancy.waves {
                occupancy = Occupancy { waves, limit };
            }
        }
        occupancy
    }

    /// Whole workgroups that a compute unit holds at the same time, or two where they are a workgroup's; 0 if one does
    /// not fit.
    ///
    /// [`Target::occupancy`] is the figure that compilers print, which lets registers leave room for a part of a
    /// workgroup. This one does not: all waves of a workgroup run or none.
    ///
    /// ```
    /// use wavetap_amdgpu::{Demand, Target};
    /// let target = Target::by_name("gfx900").unwrap();
    /// // Room for 24 waves on four SIMDs: one workgroup of 16 and half of another.
    /// let demand = Demand { vgprs: 40, sgprs: 32, lds_bytes: 0, workgroup_size: 1024, wgp_mode: false };
    /// assert_eq!((target.occupancy(&demand).waves, target.workgroups(&demand)), (6, 1));
    /// ```
    #[must_use]
    pub fn workgroups(self, demand: &Demand) -> u32 {
        let units = self.compute_units(demand.wgp_mode);
        let waves = demand.workgroup_size.max(1).div_ceil(self.wave_size());
        let of_simd =
            self.max_waves_per_simd().min(self.waves_by_vgprs(demand.vgprs)).min(self.waves_by_sgprs(demand.sgprs));
        let by_waves = units * self.simds_per_cu() * of_simd / waves;
        let by_barriers = if waves > 1 { units * self.data.max_groups } else { u32::MAX };
        let by_lds = if demand.lds_bytes > self.lds_bytes() { 0 } else { self.groups_by_lds(demand.lds_bytes, units) };
        by_waves.min(by_barriers).min(by_lds)
    }

    /// Workgroups with so much LDS that compute units have room for.
    fn groups_by_lds(self, lds_bytes: u32, units: u32) -> u32 {
        units * self.lds_bytes() / lds_bytes.max(1).next_multiple_of(self.lds_granule())
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
