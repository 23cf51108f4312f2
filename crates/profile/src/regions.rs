//! What a program did inside its own ranges (roctx): one of them alone.
//!
//! A dispatch is in all ranges that were open when it was submitted. The name of its region is theirs, outermost first,
//! separated by `/`.

use wavetap_base::error::{Error, Result};
use wavetap_base::glob;

use super::accesses::DispatchAccesses;
use super::bounds::OutOfBounds;
use super::file::{KernelTotals, Profile, WaveCounts};

/// Between the names of ranges, one inside the other.
pub const SEPARATOR: char = '/';

/// The name of the region of what was dispatched when no further region got counts of its own: in which ranges, is not
/// known.
pub const FURTHER: &str = "further ranges";

/// Whether a region is, or is inside of, a range whose name matches `pattern`; a pattern with separators is compared
/// with as many ranges, one inside the other.
#[must_use]
pub fn is_inside(region: &str, pattern: &str) -> bool {
    let ends = |from: usize| {
        let rest = region[from..].match_indices(SEPARATOR).map(move |(at, _)| from + at);
        rest.chain([region.len()])
    };
    let starts = std::iter::once(0).chain(region.match_indices(SEPARATOR).map(|(at, _)| at + SEPARATOR.len_utf8()));
    !region.is_empty() && starts.into_iter().any(|from| ends(from).any(|to| glob::matches(pattern, &region[from..to])))
}

impl Profile {
    /// The names of its regions, in order of first dispatch.
    #[must_use]
    pub fn region_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.regions.iter().filter_map(|kernel| kernel.region.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What was dispatched inside ranges whose names match a pattern ([`is_inside`]), as if nothing else had been. What
    /// the host had the device do is not in it: that is not known of regions.
    ///
    /// # Errors
    /// Unsupported if there are no such ranges; the message says which there are. Unsupported, too, if dispatches whose
    /// ranges are not known ([`FURTHER`]) may have been in them. Limit if a sum overflows.
    pub fn of_region(&self, pattern: &str) -> Result<Profile> {
        let unknown = self.regions.iter().filter(|kernel| kernel.region.as_deref() == Some(FURTHER));
        let unknown: u64 = unknown.map(|kernel| kernel.dispatches).sum();
        if unknown > 0 && !is_inside(FURTHER, pattern) {
            return Err(Error::unsupported(format!(
                "region {pattern}: in which ranges {unknown} dispatches were is not known, as there were too many \
                    ({FURTHER}): `wavetap profile --region {pattern}` counts those that are meant"
            )));
        }
        let is_in = |region: &Option<String>| region.as_deref().is_some_and(|region| is_inside(region, pattern));
        let mut inside = Profile {
            complete: self.complete,
            ended: self.ended,
            processes: self.processes,
            rank: self.rank,
            hostname: self.hostname.clone(),
            refused: self.refused.clone(),
            uncounted: self.uncounted.iter().filter(|uncounted| is_in(&uncounted.region)).cloned().collect(),
            ..Profile::new(self.origin, self.backend)
        };
        for kernel in self.regions.iter().filter(|kernel| is_in(&kernel.region)) {
            match inside.kernels.iter_mut().find(|known| known.is_same_kernel(kernel)) {
                Some(known) => known.merge(kernel)?,
                None => inside.kernels.push(KernelTotals { region: None, ..kernel.clone() }),
            }
            inside.regions.push(kernel.clone());
        }
        if inside.kernels.is_empty() && inside.uncounted.is_empty() {
            return Err(self.no_region(pattern));
        }
        let place = |kernel: u32| {
            let of = self.kernels.get(kernel as usize)?;
            inside.kernels.iter().position(|known| known.is_same_kernel(of)).map(|place| place as u32)
        };
        let waves = self.waves.iter().filter(|wave| is_in(&wave.region));
        inside.waves =
            waves.filter_map(|wave| Some(WaveCounts { kernel: place(wave.kernel)?, ..wave.clone() })).collect();
        let accesses = self.accesses.iter().filter(|accesses| is_in(&accesses.region));
        inside.accesses = accesses
            .filter_map(|accesses| Some(DispatchAccesses { kernel: place(accesses.kernel)?, ..accesses.clone() }))
            .collect();
        let bad = self.out_of_bounds.iter().filter(|bad| is_in(&bad.region));
        inside.out_of_bounds =
            bad.filter_map(|bad| Some(OutOfBounds { kernel: place(bad.kernel)?, ..bad.clone() })).collect();
        Ok(inside)
    }

    fn no_region(&self, pattern: &str) -> Error {
        const SHOWN: usize = 12;
        let names = self.region_names();
        if names.is_empty() {
            return Error::unsupported(format!(
                "region {pattern}: nothing was dispatched inside a range (roctxRangePush, roctxRangeStart)"
            ));
        }
        let more = names.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        Error::unsupported(format!("region {pattern}: nothing was dispatched in it; there are {shown}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Backend, Origin, SiteTotals};
    use crate::probes::branches::ScalarCounts;

    #[test]
    fn a_region_is_inside_of_each_of_its_ranges() {
        for (region, pattern, inside) in [
            ("step", "step", true),
            ("step/decode/attention", "decode", true),
            ("step/decode/attention", "step/decode", true),
            ("step/decode/attention", "decode/attention", true),
            ("step/decode/attention", "step/attention", false),
            ("step/decode/attention", "dec*", true),
            ("step/decode/attention", "dec", false),
            ("step 12", "step ?", false),
            ("step 12", "step ??", true),
            ("", "*", false),
        ] {
            assert_eq!(is_inside(region, pattern), inside, "{region} {pattern}");
        }
    }

    fn kernel(name: &str, region: Option<&str>, (dispatches, taken): (u64, u64)) -> KernelTotals {
        let counts = ScalarCounts { executions: 10 * dispatches, taken }.into();
        let site = SiteTotals { address: 0x100, instruction: "s_cbranch_scc1 4".to_owned(), source: None, counts };
        KernelTotals {
            name: name.to_owned(),
            demangled: name.to_owned(),
            region: region.map(str::to_owned),
            dispatches,
            waves: 4 * dispatches,
            sites: vec![site],
            ..KernelTotals::default()
        }
    }

    fn profile() -> Profile {
        Profile {
            kernels: vec![kernel("a", None, (6, 60)), kernel("b", None, (2, 5))],
            regions: vec![
                kernel("a", Some("step"), (1, 10)),
                kernel("a", Some("step/decode"), (3, 20)),
                kernel("b", Some("step/decode"), (2, 5)),
            ],
            ..Profile::new(Origin::Counters, Backend::Emulator)
        }
    }

    #[test]
    fn one_region_alone_has_what_was_dispatched_in_it() {
        let mut profile = profile();
        let wave = |kernel, region: Option<&str>| WaveCounts {
            kernel,
            dispatch: None,
            region: region.map(str::to_owned),
            workgroup: [0; 3],
            wave: 0,
            counters: vec![1, 0],
        };
        profile.waves = vec![wave(0, None), wave(1, Some("step/decode"))];
        let step = profile.of_region("step").unwrap();
        assert_eq!(step.kernels, [kernel("a", None, (4, 30)), kernel("b", None, (2, 5))]);
        let decode = profile.of_region("decode").unwrap();
        assert_eq!(decode.kernels, [kernel("a", None, (3, 20)), kernel("b", None, (2, 5))]);
        assert_eq!(decode.waves, [wave(1, Some("step/decode"))]);
        let none = profile.of_region("prefill").unwrap_err().to_string();
        assert!(none.ends_with("there are step, step/decode"), "{none}");
        let mut many = profile.clone();
        many.regions.push(kernel("a", Some(FURTHER), (2, 1)));
        let unknown = many.of_region("decode").unwrap_err().to_string();
        assert!(unknown.contains("in which ranges 2 dispatches were is not known"), "{unknown}");
        assert_eq!(many.of_region(FURTHER).unwrap().kernels, [kernel("a", None, (2, 1))]);
        let json = profile.to_json().unwrap();
        assert_eq!(Profile::from_json(&json).unwrap(), profile);
        let mut twice = profile.clone();
        twice.merge(&profile).unwrap();
        assert_eq!(twice.of_region("decode").unwrap().kernels[0].dispatches, 6);
    }
}
