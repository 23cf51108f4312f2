//! Kernels of a code object, rewritten one at a time: for code that is loaded already, and stays as it is.
//!
//! [`rewrite`](super::rewrite()) makes one object with all kernels; here each kernel is an object of its own
//! ([`kernel_object`]), which is loaded beside the original when the kernel is first dispatched. Planning, code and
//! rules are the same. Code is made and verified as if that object were loaded right after the original's image
//! ([`RewrittenKernel::address`]); for where it is in fact, [`KernelRewriter::code_at`] changes its distances to the
//! image.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use wavetap_amdgpu::Target;
use wavetap_analysis::kernel::Image;
use wavetap_base::bytes::align_up;
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_instrument::layout::Distance;
use wavetap_instrument::object::{ObjectPlacement, ObjectPlanner, SelectedKernels};
use wavetap_instrument::probe;
use wavetap_instrument::refusal::{RefusalReason, refused};
use wavetap_object::code_object::{CodeObject, Features, Kernel, KernelMetadata, LineTable, digest};
use wavetap_object::emit::kernel_object::{self, KernelObject, Original};
use wavetap_profile::control::Control;
use wavetap_profile::map::{KernelMap, ObjectMap, Refused};
use wavetap_verify::{AddedKernel, check_added, check_moved};

use super::object::source_line;
use super::options::Options;
use super::rewrite::code_object::{line_table, malformed, unsupported_target};

#[cfg(test)]
mod tests;

/// Objects of single kernels begin at multiples of this.
const PAGE: u64 = 4096;

/// A code object whose kernels are rewritten one at a time.
///
/// ```
/// use wavetap::pipeline::{KernelRewriter, Options, probe};
///
/// let options = Options { probes: vec![probe::BRANCHES], ..Options::default() };
/// assert!(KernelRewriter::new(b"no program".to_vec(), &options).is_err());
/// ```
#[derive(Debug)]
pub struct KernelRewriter {
    options: Options,
    bytes: Vec<u8>,
    digest: OnceLock<String>,
    /// Whether there are source lines, which are read when a kernel first needs them.
    has_lines: bool,
    lines: Mutex<OnceCell<Option<LineTable>>>,
    original: Original,
    target: Option<Target>,
    target_id: String,
    version: u32,
    features: Features,
    /// Those that are selected and can be read, by mangled name.
    kernels: FxHashMap<String, Kernel>,
    /// What cannot be rewritten, as is known beforehand.
    refused: Vec<Refused>,
    /// Without the code, which borrows the bytes: addresses, and where in them it is.
    image: Image<'static>,
    code: Vec<(u64, Range<usize>)>,
    image_end: u64,
}

/// A rewritten kernel.
#[derive(Debug)]
#[non_exhaustive]
pub struct RewrittenKernel {
    /// The object that is loaded. Its code is right only where [`KernelRewriter::code_at`] says so.
    pub object: Vec<u8>,
    /// Its site table: of this kernel alone.
    pub map: Arc<ObjectMap>,
    /// The kernel in the original.
    pub original: Kernel,
    /// With the new descriptor, metadata and entry, the last by the addresses of [`RewrittenKernel::address`].
    rewritten: Kernel,
    code: Vec<u8>,
    distances: Vec<Distance>,
    /// Where the object is taken to be loaded, by the original's virtual addresses.
    pub address: u64,
}

impl RewrittenKernel {
    /// Whether its code reaches for nothing in the original's image.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.distances.is_empty()
    }

    /// What the new kernel's metadata says.
    #[must_use]
    pub fn metadata(&self) -> Option<&KernelMetadata> {
        self.rewritten.metadata.as_deref()
    }
}

impl KernelRewriter {
    /// Reads a code object.
    ///
    /// # Errors
    /// Malformed if it breaks its format; unsupported if it was rewritten before, or probes cannot be combined.
    pub fn new(bytes: Vec<u8>, options: &Options) -> Result<KernelRewriter> {
        probe::check_together(&options.probes)?;
        let code = CodeObject::parse(&bytes)?;
        if code.is_rewritten() {
            return Err(Error::unsupported("the code object was rewritten before"));
        }
        let target_id = code.target_id();
        let mut refusals = malformed(&code, &target_id, options);
        let chosen = code.kernels().iter().filter(|kernel| options.selection.has(kernel) && kernel.metadata.is_some());
        let mut kernels: FxHashMap<String, Kernel> =
            chosen.map(|kernel| (kernel.name.clone(), kernel.clone())).collect();
        let rewritable = code.target().filter(|target| target.rewritable());
        if rewritable.is_none() {
            let detail = unsupported_target(&code);
            let mut all: Vec<Kernel> = kernels.drain().map(|(_, kernel)| kernel).collect();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            let refuse = |kernel| refused(&target_id, kernel, RefusalReason::UnsupportedTarget, &detail, None);
            refusals.extend(all.iter().map(refuse));
        }
        let image = Image::of(&code)?;
        let start = bytes.as_ptr() as usize;
        let place = |(address, code): (u64, &[u8])| {
            let offset = code.as_ptr() as usize - start;
            (address, offset..offset + code.len())
        };
        Ok(KernelRewriter {
            options: options.clone(),
            digest: OnceLock::new(),
            has_lines: code.elf().section(".debug_line").is_some(),
            lines: Mutex::default(),
            original: Original::of(&code)?,
            target: rewritable,
            target_id,
            version: code.version().into(),
            features: code.features(),
            kernels,
            refused: refusals,
            code: image.code().map(place).collect(),
            image: image.without_code(),
            image_end: code.image_end(),
            bytes,
        })
    }

    /// The original's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its target id.
    #[must_use]
    pub fn target_id(&self) -> &str {
        &self.target_id
    }

    /// MD5 of the original, lower-case hex.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| digest(&self.bytes))
    }

    /// What cannot be rewritten, as is known before a kernel is asked for.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Whether a kernel is to be rewritten.
    #[must_use]
    pub fn has(&self, kernel: &str) -> bool {
        self.kernels.contains_key(kernel)
    }

    /// The processor, of an object that has kernels to rewrite.
    fn target(&self) -> Result<Target> {
        self.target.ok_or_else(|| Error::internal(format!("code for {} has kernels to rewrite", self.target_id)))
    }

    fn image(&self) -> Image<'_> {
        let mut image: Image<'_> = self.image.clone();
        for (address, range) in &self.code {
            image.add_code(*address, self.bytes.get(range.clone()).unwrap_or_default());
        }
        image
    }

    /// Rewrites a kernel, by its mangled name.
    ///
    /// # Errors
    /// Why it cannot be rewritten.
    pub fn rewrite(&self, name: &str) -> std::result::Result<RewrittenKernel, Box<Refused>> {
        let Some(kernel) = self.kernels.get(name) else {
            let known = self.refused.iter().find(|refused| refused.name == name);
            let not_selected = || self.refused_by_name(name, "it was not selected");
            return Err(Box::new(known.cloned().unwrap_or_else(not_selected)));
        };
        let refuse = |reason, detail: &str| Box::new(refused(&self.target_id, kernel, reason, detail, None));
        match self.rewrite_kernel(kernel) {
            Ok(rewritten) => rewritten,
            Err(error) if error.kind() == Kind::Unsupported => {
                Err(refuse(RefusalReason::UnsupportedObject, &error.to_string()))
            }
            Err(error) if error.kind() == Kind::Malformed => Err(refuse(RefusalReason::Malformed, &error.to_string())),
            Err(error) => Err(refuse(RefusalReason::Unverified, &error.to_string())),
        }
    }

    fn refused_by_name(&self, name: &str, detail: &str) -> Refused {
        wavetap_instrument::refusal::refused_by_name(&self.target_id, name, RefusalReason::UnsupportedObject, detail)
    }

    fn rewrite_kernel(&self, kernel: &Kernel) -> Result<std::result::Result<RewrittenKernel, Box<Refused>>> {
        let image = self.image();
        let mut selected = SelectedKernels::new(vec![kernel], Vec::new());
        // Each round but the last one leaves `auto` a place less to choose.
        loop {
            let made = match self.rewrite_selected(kernel, &image, &mut selected)? {
                Ok(made) => made,
                Err(refused) => return Ok(Err(refused)),
            };
            let findings = check_added(&self.added(&image, &made)?);
            let Some(finding) = findings.first() else { return Ok(Ok(made)) };
            selected.reject(&self.target_id, Some(&kernel.name), &finding.to_string(), &finding.message);
        }
    }

    /// Rewrites the only kernel of `selected`, unless it is refused.
    fn rewrite_selected(
        &self,
        kernel: &Kernel,
        image: &Image<'_>,
        selected: &mut SelectedKernels<'_>,
    ) -> Result<std::result::Result<RewrittenKernel, Box<Refused>>> {
        let target = self.target()?;
        let address = align_up(self.image_end, PAGE);
        let (control, base) = (address + kernel_object::CONTROL, address + kernel_object::CODE);
        let planner = ObjectPlanner::new(target, image, self.options.measurement(), control, self.version);
        let (added, maps) = match selected.place(&self.target_id, &planner, base, 1)? {
            ObjectPlacement::Placed { added, maps } => (added, maps),
            ObjectPlacement::DoesNotFit(error) => return Err(error),
        };
        let (Some(mut map), [(_, descriptor)], [symbol]) =
            (maps.into_iter().next(), &added.descriptors[..], &added.symbols[..])
        else {
            let refusal = selected.refusals().into_iter().next();
            return refusal
                .map(|refusal| Err(Box::new(refusal)))
                .ok_or_else(|| Error::internal(format!("kernel {} was neither rewritten nor refused", kernel.name)));
        };
        {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let lines = lines.get_or_init(|| self.read_lines());
            for site in &mut map.sites {
                site.source = source_line(lines.as_ref(), site.address);
            }
        }
        let mut metadata =
            kernel.metadata.as_deref().cloned().ok_or_else(|| Error::internal("a kernel without metadata"))?;
        for number in &added.numbers {
            set(&mut metadata, number.key, number.number)?;
        }
        let mut descriptor = *descriptor;
        descriptor.set_entry_byte_offset(symbol.address.wrapping_sub(kernel.descriptor_address) as i64);
        let rewritten = Kernel {
            descriptor,
            entry: symbol.address,
            code: symbol.address..symbol.address + symbol.size,
            metadata: Some(Arc::new(metadata.clone())),
            ..kernel.clone()
        };
        let object = KernelObject {
            original: &self.original,
            name: &kernel.name,
            metadata: &metadata,
            descriptor: &descriptor,
            entry: symbol.address - address,
            control: &Control::initial(1, added.stride),
            code: &added.code,
        };
        let object = object.write().within(|| "writing the object of one kernel".into())?;
        let map = ObjectMap {
            target: self.target_id.clone(),
            original: self.digest().to_owned(),
            stride: added.stride,
            kernels: vec![map],
            refused: Vec::new(),
        };
        let (code, distances) = (added.code, added.distances);
        let original = kernel.clone();
        let map = Arc::new(map);
        Ok(Ok(RewrittenKernel { object, map, original, rewritten, code, distances, address }))
    }

    fn read_lines(&self) -> Option<LineTable> {
        let code = self.has_lines.then(|| CodeObject::parse(&self.bytes).ok())?;
        line_table(&code?)
    }

    /// What the checker looks at.
    fn added<'a>(&self, image: &'a Image<'a>, made: &'a RewrittenKernel) -> Result<AddedKernel<'a>> {
        let map: &KernelMap =
            made.map.kernels.first().ok_or_else(|| Error::internal("a site table without its kernel"))?;
        Ok(AddedKernel {
            original: &made.original,
            rewritten: &made.rewritten,
            target: self.target()?,
            features: self.features,
            image,
            image_end: self.image_end,
            code: &made.code,
            address: made.address + kernel_object::CODE,
            map,
            stride: made.map.stride,
        })
    }

    /// The code of a kernel that this rewrote, for where it runs: its object is loaded at `object`, the original at
    /// `original` (the addresses of their virtual address 0).
    ///
    /// # Errors
    /// Internal if the checker finds that something else changed.
    pub fn code_at(&self, kernel: &RewrittenKernel, original: u64, object: u64) -> Result<Vec<u8>> {
        let by = object.wrapping_sub(original).wrapping_sub(kernel.address);
        let mut code = kernel.code.clone();
        for Distance { low, high } in &kernel.distances {
            let [low, high] = [low, high].map(|at| *at as usize..*at as usize + 4);
            let word = |at: &Range<usize>| {
                let bytes = code.get(at.clone()).and_then(|bytes| bytes.first_chunk::<4>());
                bytes
                    .map(|bytes| u32::from_le_bytes(*bytes))
                    .ok_or_else(|| Error::internal("a distance after the code"))
            };
            let distance = u64::from(word(&low)?) | u64::from(word(&high)?) << 32;
            let moved = distance.wrapping_sub(by).to_le_bytes();
            code[low].copy_from_slice(&moved[..4]);
            code[high].copy_from_slice(&moved[4..]);
        }
        let image = self.image();
        match check_moved(&self.added(&image, kernel)?, &code, by).first() {
            None => Ok(code),
            Some(finding) => Err(Error::internal(format!("the checker does not accept code that moved: {finding}"))),
        }
    }
}

/// Sets a number of a kernel's metadata.
fn set(metadata: &mut KernelMetadata, key: &str, number: u64) -> Result<()> {
    let place = match key {
        ".sgpr_count" => &mut metadata.sgpr_count,
        ".vgpr_count" => &mut metadata.vgpr_count,
        ".agpr_count" => &mut metadata.agpr_count,
        ".group_segment_fixed_size" => &mut metadata.group_segment_fixed_size,
        ".private_segment_fixed_size" => &mut metadata.private_segment_fixed_size,
        other => return Err(Error::internal(format!("{other} is no number that changes"))),
    };
    *place = number;
    Ok(())
}
