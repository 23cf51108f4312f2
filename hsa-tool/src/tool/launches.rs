//! What a program launches, where nothing is counted: packets stay as they are.

use std::collections::HashMap;

use wavetap::code_object::demangle;
use wavetap::collect::rank;
use wavetap::profile::file::{Backend, KernelTotals, Origin, Profile};
use wavetap::profile::launches::waves;

use super::LoadedKernel;
use super::dispatches::shape;
use crate::packets::Packet;

/// The list.
pub(super) struct Launches {
    pub(super) profile: Profile,
    /// By the MD5 of the code object and the name of the kernel.
    places: HashMap<(String, String), usize>,
    /// By the place of the kernel and the region.
    region_places: HashMap<(usize, String), usize>,
}

impl Launches {
    pub(super) fn new(backend: Backend) -> Launches {
        Launches {
            profile: rank::profile(Origin::Launches, backend),
            places: HashMap::new(),
            region_places: HashMap::new(),
        }
    }

    /// Adds a dispatch, and gives the place of its kernel; none if nothing is known of what that needs.
    pub(super) fn add(&mut self, kernel: &LoadedKernel, region: Option<&str>, packet: &Packet) -> Option<usize> {
        let (name, object) = (&*kernel.name, &kernel.object);
        let before = object.resources.get(name).copied()?;
        let place = *self.places.entry((object.digest().to_owned(), name.to_owned())).or_insert_with(|| {
            self.profile.kernels.push(KernelTotals {
                name: name.to_owned(),
                demangled: demangle(name).into_owned(),
                target: object.target.clone(),
                object: object.digest().to_owned(),
                before: Some(before),
                ..KernelTotals::default()
            });
            self.profile.kernels.len() - 1
        });
        let of_region = region.map(|name| {
            *self.region_places.entry((place, name.to_owned())).or_insert_with(|| {
                self.profile.regions.push(self.profile.kernels[place].without_counts(name.to_owned()));
                self.profile.regions.len() - 1
            })
        });
        let Profile { kernels, regions, .. } = &mut self.profile;
        for totals in kernels.get_mut(place).into_iter().chain(of_region.and_then(|at| regions.get_mut(at))) {
            totals.dispatches += 1;
            let waves = waves(packet.grid(), packet.workgroup(), before.wave_size);
            totals.waves = totals.waves.saturating_add(waves);
            shape(packet, packet.group_segment().saturating_sub(before.lds_bytes)).add_to(&mut totals.launches);
        }
        Some(place)
    }
}
