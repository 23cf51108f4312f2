//! What is at an address of a code object, in words.

use std::collections::BTreeMap;

use wavetap_object::code_object::{CodeObject, demangle};

/// The named ranges of a code object.
#[derive(Debug)]
pub(super) struct Symbols {
    /// By start.
    ranges: BTreeMap<u64, Named>,
    /// The allocated sections, by start.
    sections: BTreeMap<u64, Named>,
}

/// Something with a name.
#[derive(Debug)]
struct Named {
    end: u64,
    mangled: String,
    demangled: String,
}

impl Named {
    fn new(end: u64, name: &str) -> Named {
        Named { end, mangled: name.to_owned(), demangled: demangle(name).into_owned() }
    }
}

impl Symbols {
    pub(super) fn of(code: &CodeObject<'_>) -> Symbols {
        let mut ranges = BTreeMap::new();
        let table = if code.symbols().is_empty() { code.dynamic_symbols() } else { code.symbols() };
        for symbol in table.iter().filter(|symbol| symbol.is_defined() && symbol.is_object()) {
            let end = symbol.address.saturating_add(symbol.size.max(1));
            ranges.insert(symbol.address, Named::new(end, symbol.name));
        }
        for function in code.functions() {
            ranges.insert(function.code.start, Named::new(function.code.end, &function.name));
        }
        for kernel in code.kernels() {
            ranges.insert(kernel.entry, Named::new(kernel.code.end, &kernel.name));
        }
        let sections = code.elf().sections.iter().filter(|section| section.is_alloc() && section.size > 0);
        let sections = sections
            .map(|section| (section.address, Named::new(section.address + section.size, section.name)))
            .collect();
        Symbols { ranges, sections }
    }

    /// Adds a function that no symbol names.
    pub(super) fn add(&mut self, start: u64, end: u64, name: &str) {
        self.ranges.entry(start).or_insert_with(|| Named::new(end, name));
    }

    /// `table`, `table+0x10`, `.rodata+0x40`, demangled; none outside of the object.
    pub(super) fn name(&self, address: u64) -> Option<String> {
        [&self.ranges, &self.sections].into_iter().find_map(|ranges| {
            let (start, named) = ranges.range(..=address).next_back()?;
            (address < named.end).then(|| with_offset(&named.demangled, address - start))
        })
    }

    /// The last symbol at or before an address in its section, mangled, and the distance.
    pub(super) fn nearest(&self, address: u64) -> Option<String> {
        let (section, named) = self.sections.range(..=address).next_back().filter(|(_, named)| address < named.end)?;
        let symbol = self.ranges.range(*section..=address).next_back();
        let (start, named) = symbol.unwrap_or((section, named));
        Some(with_offset(&named.mangled, address - start))
    }
}

fn with_offset(name: &str, offset: u64) -> String {
    if offset == 0 { name.to_owned() } else { format!("{name}+{offset:#x}") }
}
