//! What a person is told of a fault: the address in the original code, and its source line.

use std::path::Path;

use wavetap::code_object::CodeObject;
use wavetap::emulator::{Fault, Overrun};
use wavetap::profile::control::MAP_SECTION;
use wavetap::profile::map::ObjectMap;

/// The same fault with the addresses that the original has.
pub(crate) fn in_original(object: Option<&[u8]>, fault: &mut Fault) {
    let Some(code) = object.and_then(|bytes| CodeObject::parse(bytes).ok()) else { return };
    let map = map(&code);
    fault.map_addresses(|address| original(map.as_ref(), address));
}

/// A fault of the code of this object, if it is known.
pub(crate) fn text(object: Option<&[u8]>, fault: &Fault) -> String {
    let Some(code) = object.and_then(|bytes| CodeObject::parse(bytes).ok()) else { return fault.to_string() };
    let map = map(&code);
    let mut fault = fault.clone();
    fault.map_addresses(|address| original(map.as_ref(), address));
    format!("{fault}{}", source(&code, fault.address))
}

/// An access after an allocation, by the code of this object, if it is known.
pub(crate) fn text_of_overrun(object: Option<&[u8]>, overrun: &Overrun) -> String {
    let Some(code) = object.and_then(|bytes| CodeObject::parse(bytes).ok()) else { return overrun.to_string() };
    let mut overrun = overrun.clone();
    overrun.place.address = original(map(&code).as_ref(), overrun.place.address);
    format!("{overrun}{}", source(&code, overrun.place.address))
}

/// The line that an instruction of the original is from, as the rest of a sentence.
fn source(code: &CodeObject<'_>, address: u64) -> String {
    let location = code.line_table().ok().flatten().and_then(|lines| lines.location(address));
    let named = location.filter(|location| location.line > 0).map(|location| {
        let file = Path::new(&location.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!(", {file}:{}", location.line)
    });
    named.unwrap_or_default()
}

/// What an address of a rewritten object is in the original; that of an original is itself.
fn original(map: Option<&ObjectMap>, address: u64) -> u64 {
    let mut pairs = map.into_iter().flat_map(|map| &map.kernels).flat_map(|kernel| &kernel.addresses);
    pairs.find(|pair| pair.rewritten == address).map_or(address, |pair| pair.original)
}

/// Where instructions of a kernel are in its object, by their addresses in the original.
pub(crate) fn rewritten(bytes: &[u8], kernel: &str) -> impl Fn(u64) -> u64 {
    let map = CodeObject::parse(bytes).ok().and_then(|code| map(&code));
    let kernel = map.and_then(|map| map.kernels.into_iter().find(|known| known.name == kernel));
    move |address| {
        let mut pairs = kernel.iter().flat_map(|kernel| &kernel.addresses);
        pairs.find(|pair| pair.original == address).map_or(address, |pair| pair.rewritten)
    }
}

fn map(code: &CodeObject<'_>) -> Option<ObjectMap> {
    let section = code.elf().section(MAP_SECTION).and_then(|section| code.elf().contents(section).ok())?;
    ObjectMap::unpack(section).ok()
}
