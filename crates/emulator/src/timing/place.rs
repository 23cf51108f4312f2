//! Which workgroup is on which compute unit, or pair of them: as many as registers, LDS and barriers allow.
//!
//! Workgroups are placed whole, in the order of the grid. Units take turns: the search begins at the unit after the
//! last one and takes the first with room for all waves of the workgroup; each wave then goes to the SIMD of that unit
//! with the fewest waves. A unit without workgroups takes any, so that a workgroup that could not be launched still
//! runs. A full unit holds as many workgroups as `Target::workgroups` says, which a test compares.

use wavetap_amdgpu::{Demand, Target};

/// What is free on a compute unit or workgroup processor.
#[derive(Debug, Clone)]
struct Unit {
    /// Waves of each SIMD.
    waves: Vec<u32>,
    lds: u32,
    groups: u32,
}

/// All compute units or workgroup processors, with what each workgroup of the kernel takes.
#[derive(Debug)]
pub(crate) struct Places {
    units: Vec<Unit>,
    /// Compute units in each.
    pub cus: usize,
    pub simds_per_cu: usize,
    /// Waves that a SIMD holds of this kernel.
    pub most_waves: u32,
    /// Bytes of LDS that a workgroup takes, and that there are.
    lds: (u32, u32),
    most_groups: u32,
    next: usize,
}

impl Places {
    pub(crate) fn new(target: Target, demand: &Demand, compute_units: usize) -> Places {
        let cus = if demand.wgp_mode && target.has_wgp_mode() { 2 } else { 1 };
        let simds_per_cu = target.simds_per_cu() as usize;
        let most = target
            .max_waves_per_simd()
            .min(target.waves_by_vgprs(demand.vgprs))
            .min(target.waves_by_sgprs(demand.sgprs));
        let unit = Unit { waves: vec![0; simds_per_cu * cus], lds: 0, groups: 0 };
        let lds = if demand.lds_bytes == 0 { 0 } else { demand.lds_bytes.next_multiple_of(target.lds_granule()) };
        // Those of a single wave need no barrier.
        let several = demand.workgroup_size > target.wave_size();
        Places {
            units: vec![unit; compute_units.div_ceil(cus).max(1)],
            cus,
            simds_per_cu,
            most_waves: most.max(1),
            lds: (lds, target.lds_bytes() * cus as u32),
            most_groups: if several { target.max_groups() * cus as u32 } else { u32::MAX },
            next: 0,
        }
    }

    /// Waves that all SIMDs hold.
    pub(crate) fn waves(&self) -> usize {
        self.units.len() * self.cus * self.simds_per_cu * self.most_waves as usize
    }

    pub(crate) fn simds(&self) -> usize {
        self.cus * self.simds_per_cu
    }

    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// The compute unit of a SIMD.
    pub(crate) fn compute_unit(&self, unit: usize, simd: usize) -> usize {
        unit * self.cus + simd / self.simds_per_cu
    }

    pub(crate) fn resident(&self, unit: usize) -> u32 {
        self.units[unit].waves.iter().sum()
    }

    fn fits(&self, unit: &Unit, waves: u32) -> bool {
        let free: u32 = unit.waves.iter().map(|there| self.most_waves.saturating_sub(*there)).sum();
        // What does not even fit alone could not be launched; here it runs, alone.
        unit.groups == 0 || (free >= waves && unit.lds + self.lds.0 <= self.lds.1 && unit.groups < self.most_groups)
    }

    /// Whether there is a place for a workgroup of so many waves.
    pub(crate) fn has_room(&self, waves: u32) -> bool {
        self.units.iter().any(|unit| self.fits(unit, waves))
    }

    /// A place for a workgroup: the unit, and the SIMD of each wave. Units take turns, and in them SIMDs.
    pub(crate) fn enter(&mut self, waves: u32) -> Option<(usize, Vec<usize>)> {
        let count = self.units.len();
        let at = (0..count).map(|n| (self.next + n) % count).find(|&n| self.fits(&self.units[n], waves))?;
        self.next = (at + 1) % count;
        let unit = &mut self.units[at];
        unit.groups += 1;
        unit.lds += self.lds.0;
        let mut simds = Vec::new();
        for _ in 0..waves {
            let simd = (0..unit.waves.len()).min_by_key(|&simd| unit.waves[simd]).unwrap_or(0);
            unit.waves[simd] += 1;
            simds.push(simd);
        }
        Some((at, simds))
    }

    pub(crate) fn wave_ends(&mut self, unit: usize, simd: usize) {
        self.units[unit].waves[simd] -= 1;
    }

    pub(crate) fn group_ends(&mut self, unit: usize) {
        self.units[unit].groups -= 1;
        self.units[unit].lds -= self.lds.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_groups_as_the_target_says() {
        for (name, wgp_mode) in [
            ("gfx900", false),
            ("gfx90a", false),
            ("gfx942", false),
            ("gfx1030", true),
            ("gfx1030", false),
            ("gfx1100", true),
        ] {
            let target = Target::by_name(name).unwrap();
            for (vgprs, lds_bytes, workgroup_size) in
                [(32, 0, 256), (64, 0, 64), (128, 4096, 256), (24, 20000, 512), (256, 60000, 64), (40, 512, 1024)]
            {
                let demand = Demand { vgprs, sgprs: 32, lds_bytes, workgroup_size, wgp_mode };
                let mut places = Places::new(target, &demand, 2);
                let waves = workgroup_size.div_ceil(target.wave_size());
                // What does not fit runs alone.
                let expected = target.workgroups(&demand).max(1);
                let units = places.units();
                let mut groups = 0;
                while places.enter(waves).is_some() {
                    groups += 1;
                }
                assert_eq!(groups, expected * units as u32, "{name} {demand:?}");
            }
        }
    }
}
