//! The output, bundle by bundle in the order of the file, so that none has to wait for those after it.

use super::host::Appended;
use super::sink::{Output, Sink};
use super::{Kept, Packing};
use crate::offload_bundle::{Bundle, Container, ENTRY_ALIGN, Entry, Input, Layout, Method, Packer};
use wavetap_base::error::{Error, Result};

/// How many of its largest entries apart a compressed bundle's entries are sought for what they have in common.
const APART: usize = 4;

/// Writes an input with something replaced: first the bundles in order, then [`Merger::finish`]. Bundles that are not
/// told of stay as they are; without any change, the output is the input's own bytes.
///
/// The contents of the input's bundles are not looked at, and may be gone.
pub struct Merger<'m, 'd> {
    input: &'m Input<'d>,
    packing: Packing,
    sink: Sink<'m>,
    /// Bundles of the input that are after what was written.
    next: usize,
    host: Option<Appended<'d>>,
    changed: bool,
}

impl<'m, 'd> Merger<'m, 'd> {
    /// Of this input, to this output.
    pub fn new(input: &'m Input<'d>, packing: Packing, output: &'m mut dyn Output) -> Merger<'m, 'd> {
        Merger { input, packing, sink: Sink::new(output), next: 0, host: None, changed: false }
    }

    /// The input is a code object, and this takes its place.
    ///
    /// # Errors
    /// Internal if it is none; those of the output.
    pub fn code_object(&mut self, new: &Kept<'_>) -> Result<()> {
        if self.input.container != Container::CodeObject || self.changed {
            return Err(Error::internal("a code object for an input that is none"));
        }
        self.changed = true;
        new.put(&mut |bytes| self.sink.append(bytes))
    }

    /// The bundle has these contents now, entry by entry. It must lie after those that were told of before.
    ///
    /// # Errors
    /// Internal if it does not; unsupported if a host file has no room for another program header or no wrapper that
    /// names the bundle; those of the output.
    pub fn bundle(&mut self, index: usize, contents: &[Kept<'_>]) -> Result<()> {
        let bundle =
            self.input.bundles.get(index).filter(|bundle| bundle.entries.len() == contents.len() && index >= self.next);
        let bundle = bundle.ok_or_else(|| {
            Error::internal(format!("a new bundle {index} that the input does not have, or not there"))
        })?;
        self.changed = true;
        match &self.input.container {
            Container::CodeObject => return Err(Error::internal("a bundle of a bare code object")),
            Container::Bundles => {
                self.unchanged_bundles(index)?;
                self.sink.append_at(ENTRY_ALIGN, &[])?;
            }
            Container::Host { .. } => {
                let host = match &mut self.host {
                    Some(host) => host,
                    none => none.insert(Appended::begin(self.input, &mut self.sink)?),
                };
                host.next_bundle(index, &mut self.sink)?;
            }
        }
        self.next = index + 1;
        self.append_bundle(bundle, contents)
    }

    /// There is no more.
    ///
    /// # Errors
    /// As [`Merger::bundle`].
    pub fn finish(mut self) -> Result<()> {
        if !self.changed {
            self.sink.append(self.input.data)?;
        } else if let Some(host) = self.host.take() {
            host.finish(self.input, &mut self.sink)?;
        } else if self.input.container == Container::Bundles {
            self.unchanged_bundles(self.input.bundles.len())?;
        }
        self.sink.finish()
    }

    /// A file of bundles: those up to this one as they were, each on a multiple of [`ENTRY_ALIGN`].
    fn unchanged_bundles(&mut self, end: usize) -> Result<()> {
        for bundle in &self.input.bundles[self.next..end] {
            let bytes = &self.input.data[bundle.offset as usize..(bundle.offset + bundle.size) as usize];
            self.sink.append_at(ENTRY_ALIGN, bytes)?;
        }
        Ok(())
    }

    /// Writes the successor of a bundle after what there is.
    fn append_bundle(&mut self, bundle: &Bundle<'_>, contents: &[Kept<'_>]) -> Result<()> {
        let sizes: Vec<(&str, usize)> = bundle
            .entries
            .iter()
            .zip(contents)
            .map(|(Entry { id, .. }, contents)| (id.as_str(), contents.size()))
            .collect();
        let layout = Layout::of(&sizes);
        let (version, method) = match (self.packing, &bundle.compressed) {
            (Packing::AsFound | Packing::Compressed, Some(header)) => (header.version, header.method),
            (Packing::Compressed, None) => (2, Method::Zstd),
            (Packing::AsFound, None) | (Packing::Plain, _) => {
                return layout.put(&mut |entry, put| contents[entry].put(put), &mut |bytes| self.sink.append(bytes));
            }
        };
        // The code for one processor is most like that for the one before or soon before.
        let largest = sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
        let start = self.sink.size();
        let mut pack = || {
            let mut packer = Packer::new(version, method, layout.size, APART * largest, &mut self.sink)?;
            layout.put(&mut |entry, put| contents[entry].put(put), &mut |bytes| packer.put(bytes))?;
            packer.finish()
        };
        let header = pack().map_err(|error| self.sink.explain(error))?;
        self.sink.put(start, &header)
    }
}
