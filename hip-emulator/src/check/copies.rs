//! Copies whose direction or memory is not what the call says.

use wavetap::profile::check::{Allocation, Class, Finding};

use super::{Check, RawCall};
use crate::called::called_now;

/// Where one side of a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Memory of the device.
    Device,
    /// Memory of the host that both see.
    Shared,
    /// The program's own memory.
    Pageable,
}

/// One side of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopySide {
    pub(crate) address: u64,
    pub(crate) place: Place,
}

/// `hipMemcpyDefault`: the addresses say what it is.
const BY_ADDRESS: i32 = 4;

impl Check {
    /// A call has copied so many bytes to the host that nothing has written, of so many: from the address of the first
    /// on, in an allocation.
    pub(crate) fn unwritten(
        &mut self,
        call: &RawCall,
        (unwritten, bytes): (u64, u64),
        (first, allocation): (u64, Option<wavetap::emulator::Allocation>),
    ) {
        let message = format!(
            "{} copies {bytes} bytes, of which nothing has written {unwritten}: the first is at {first:#x}",
            call.function()
        );
        let mut finding = Finding::new(Class::UnwrittenCopy, message);
        finding.allocation = allocation.map(|allocation| Allocation {
            address: allocation.address,
            size: allocation.size,
            offset: (first - allocation.address) as i64,
            variable: None,
            made: None,
            freed: None,
        });
        self.add_call(finding, call);
    }

    /// A call copies, in a direction that it names.
    pub(crate) fn copies(&mut self, kind: i32, to: CopySide, from: CopySide) {
        // The four kinds are those of two bits: 0 host to host, 1 to the device, 2 from it, 3 within it.
        let named = |bit: i32| if kind & bit != 0 { Place::Device } else { Place::Pageable };
        let (said_to, said_from) = (named(1), if kind >= 2 { Place::Device } else { Place::Pageable });
        let is_wrong =
            |side: CopySide, said: Place| kind != BY_ADDRESS && side.place != Place::Shared && side.place != said;
        let of = |place| if place == Place::Device { "of the device" } else { "of the host" };
        for (side, said, word) in [(to, said_to, "destination"), (from, said_from, "source")] {
            if is_wrong(side, said) {
                let CopySide { address, place } = side;
                let message =
                    format!("the {word} {address:#x} is memory {}, and the call says {}", of(place), of(said));
                return self.add_call(Finding::new(Class::WrongKind, message), &RawCall::here());
            }
        }
        let pageable = [(to, "to"), (from, "from")].into_iter().find(|(side, _)| side.place == Place::Pageable);
        if let Some((side, word)) = pageable
            && called_now().contains("Async")
            && (to.place, from.place) != (Place::Pageable, Place::Pageable)
        {
            let message = format!("an asynchronous copy {word} {:#x}, which is not page-locked", side.address);
            self.add_call(Finding::new(Class::PageableCopy, message), &RawCall::here());
        }
    }
}
