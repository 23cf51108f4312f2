//! One code object: what of it is selected, instrumented, written and checked.

use std::sync::Arc;

use crate::pipeline::object::source_line;
use crate::pipeline::options::Options;
use wavetap_amdgpu::Target;
use wavetap_analysis::kernel::Image;
use wavetap_base::error::{Error, Kind, Result};
use wavetap_instrument::object::{AddedCode, ObjectPlacement, ObjectPlanner, SelectedKernels};
use wavetap_instrument::refusal::{RefusalReason, all_refused, refused, refused_by_name};
use wavetap_object::code_object::{CodeObject, Kernel, LineTable, MalformedPart, PartKind, digest, metadata};
use wavetap_object::emit::code_object::{Changes, Plan};
use wavetap_object::offload_bundle::Found;
use wavetap_profile::control::{self, Control};
use wavetap_profile::map::{KernelMap, ObjectMap, Refused};
use wavetap_profile::record::HEADER;
use wavetap_verify::VerifiedTemplate;

/// Where kernels are planned at the same time, so many for each thread: they are unequal in size, and memory for more
/// of them is spent.
const KERNELS_AT_ONCE: usize = 8;

/// What is done at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// Code objects.
    Objects,
    /// Kernels of a code object.
    Kernels,
}

/// What became of a code object.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is not selected.
    NotSelected,
    /// It is selected: its map, and its new bytes if a kernel was instrumented.
    Selected { map: ObjectMap, bytes: Option<Arc<Vec<u8>>> },
}

impl Outcome {
    fn unchanged(map: ObjectMap) -> Outcome {
        Outcome::Selected { map, bytes: None }
    }

    /// A code object whose kernels are not known is not changed, unless it is another target's.
    pub(super) fn unread(found: &Found<'_>, options: &Options, error: &Error) -> Outcome {
        let target = found.target.map_or_else(|| "?".to_owned(), ToString::to_string);
        if found.target.is_some() && !options.selection.has_target(&target) {
            return Outcome::NotSelected;
        }
        let unsupported = error.kind() == Kind::Unsupported;
        let reason = if unsupported { RefusalReason::UnsupportedObject } else { RefusalReason::Malformed };
        Outcome::unchanged(all_refused(&target, &digest(found.bytes), reason, &error.to_string()))
    }
}

/// What became of a code object that was rewritten by itself.
pub(super) struct Fresh<'i> {
    pub(super) outcome: Outcome,
    /// What was made of it, if others may be made from that.
    pub(super) template: Option<Template<'i>>,
}

impl From<Outcome> for Fresh<'_> {
    fn from(outcome: Outcome) -> Self {
        Fresh { outcome, template: None }
    }
}

/// A code object all of whose selected kernels were instrumented, and accepted at once.
pub(super) struct Template<'i> {
    code: CodeObject<'i>,
    image: Image<'i>,
    control: u64,
    added: AddedCode,
    bytes: Arc<Vec<u8>>,
    /// The site table as the checker read it.
    map: ObjectMap,
}

impl Template<'_> {
    /// Whether what was made of this object is what would be made of another one.
    fn is_of(&self, code: &CodeObject<'_>, image: &Image<'_>, plan: &Plan<'_, '_>) -> bool {
        let alike = self.code.target().zip(code.target()).is_some_and(|(one, other)| one.is_like(other));
        alike
            && self.image == *image
            && self.code.kernels() == code.kernels()
            && self.code.features() == code.features()
            && self.code.version() == code.version()
            && (self.control, self.added.base) == (plan.control_address(), plan.code_address())
    }
}

/// How code objects are rewritten.
#[derive(Clone, Copy)]
pub(super) struct Rewriter<'o> {
    pub(super) options: &'o Options,
    pub(super) width: Width,
    /// Whether what was made is kept for other objects.
    pub(super) makes_template: bool,
}

/// A code object before anything is planned.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
enum Opened<'i> {
    /// With kernels to instrument.
    Subject { code: CodeObject<'i>, processor: Target, map: ObjectMap },
    /// Without.
    Done(Outcome),
}

impl Rewriter<'_> {
    /// Rewrites one code object by itself.
    pub(super) fn rewrite<'i>(self, found: &Found<'i>) -> Result<Fresh<'i>> {
        if self.options.probes.is_empty() {
            return Ok(Outcome::NotSelected.into());
        }
        match self.rewrite_readable(found) {
            Err(error) if stays(found, &error) => Ok(Outcome::unread(found, self.options, &error).into()),
            fresh => fresh,
        }
    }

    /// Rewrites one code object from what was made of another one with the same code; nothing if that is not right for
    /// it.
    pub(super) fn rewrite_like(self, found: &Found<'_>, template: &Template<'_>) -> Result<Option<Outcome>> {
        match self.rewrite_readable_like(found, template) {
            Err(error) if stays(found, &error) => Ok(Some(Outcome::unread(found, self.options, &error))),
            outcome => outcome,
        }
    }

    fn rewrite_readable<'i>(self, found: &Found<'i>) -> Result<Fresh<'i>> {
        let (code, processor, mut map) = match self.open(found)? {
            Opened::Subject { code, processor, map } => (code, processor, map),
            Opened::Done(outcome) => return Ok(outcome.into()),
        };
        let Some(plan) = self.plan(&code, &mut map)? else { return Ok(Outcome::unchanged(map).into()) };
        let image = Image::of(&code)?;
        let lines = line_table(&code);
        let writer = Writer { code: &code, lines: &lines, plan: &plan };
        let mut kernels = SelectedKernels::new(self.selected(&code), map.refused.clone());
        // Each round leaves out the kernels that the checker rejects; there are never more rounds than kernels.
        loop {
            let mut map = map.clone();
            let Some((bytes, added)) = self.instrument(processor, &image, &writer, &mut kernels, &mut map)? else {
                map.refused = kernels.refusals();
                return Ok(Outcome::unchanged(map).into());
            };
            let map = without_addresses(map, self.options);
            // The checker decodes everything again.
            let rewritten = CodeObject::parse(&bytes)?;
            let (read, findings) = wavetap_verify::check_beside(&code, &rewritten, None, self.at_once());
            drop(rewritten);
            if findings.is_empty() {
                let bytes = Arc::new(bytes);
                let outcome = Outcome::Selected { map, bytes: Some(Arc::clone(&bytes)) };
                let control = plan.control_address();
                let template = read.filter(|_| self.makes_template && kernels.are_all()).map(|map| Template {
                    control,
                    added,
                    bytes,
                    map,
                    image,
                    code,
                });
                return Ok(Fresh { outcome, template });
            }
            for finding in findings {
                kernels.reject(&map.target, finding.kernel.as_deref(), &finding.to_string(), &finding.message);
            }
        }
    }

    fn rewrite_readable_like(self, found: &Found<'_>, template: &Template<'_>) -> Result<Option<Outcome>> {
        let (code, mut map) = match self.open(found)? {
            Opened::Subject { code, map, .. } => (code, map),
            Opened::Done(outcome) => return Ok(Some(outcome)),
        };
        let Some(plan) = self.plan(&code, &mut map)? else { return Ok(Some(Outcome::unchanged(map))) };
        let image = Image::of(&code)?;
        if !template.is_of(&code, &image, &plan) {
            return Ok(None);
        }
        let lines = line_table(&code);
        let writer = Writer { code: &code, lines: &lines, plan: &plan };
        // The source lines are another object's: this one's take their place.
        let Ok(bytes) = writer.write(&template.added, template.map.kernels.clone(), &mut map) else { return Ok(None) };
        let map = without_addresses(map, self.options);
        let earlier = CodeObject::parse(&template.bytes)?;
        let earlier = VerifiedTemplate { original: &template.code, rewritten: &earlier, map: &template.map };
        let rewritten = CodeObject::parse(&bytes)?;
        let (_, findings) = wavetap_verify::check_beside(&code, &rewritten, Some(earlier), self.at_once());
        drop(rewritten);
        Ok(findings.is_empty().then(|| Outcome::Selected { map, bytes: Some(Arc::new(bytes)) }))
    }

    fn at_once(self) -> bool {
        self.width == Width::Kernels
    }

    /// The selected kernels that the metadata describes.
    fn selected<'k>(self, code: &'k CodeObject<'_>) -> Vec<&'k Kernel> {
        let chosen = code.kernels().iter().filter(|kernel| self.options.selection.has(kernel));
        chosen.filter(|kernel| kernel.metadata.is_some()).collect()
    }

    /// Reads a code object, and tells whether it has selected kernels of a processor whose code is rewritten.
    fn open<'i>(self, found: &Found<'i>) -> Result<Opened<'i>> {
        let code = CodeObject::parse(found.bytes)?;
        let target = found.target_id(&code);
        if !self.options.selection.has_target(&target) {
            return Ok(Opened::Done(Outcome::NotSelected));
        }
        let refused = malformed(&code, &target, self.options);
        let mut map = ObjectMap { target, original: digest(found.bytes), stride: HEADER, kernels: Vec::new(), refused };
        let selected = self.selected(&code);
        if selected.is_empty() {
            return Ok(Opened::Done(Outcome::unchanged(map)));
        }
        if let Some(processor) = code.target().filter(|target| target.rewritable()) {
            return Ok(Opened::Subject { code, processor, map });
        }
        let detail = unsupported_target(&code);
        refuse(&mut map, &selected, RefusalReason::UnsupportedTarget, &detail);
        Ok(Opened::Done(Outcome::unchanged(map)))
    }

    /// Where control blocks and code are to be; nothing, and why in the map, if the object cannot be extended.
    fn plan<'w, 'd>(self, code: &'w CodeObject<'d>, map: &mut ObjectMap) -> Result<Option<Plan<'w, 'd>>> {
        // One block for each kernel, whether it will be refused or not.
        match Plan::new(code, control::SIZE * self.selected(code).len() as u64) {
            Ok(plan) => Ok(Some(plan)),
            Err(error) if error.kind() == Kind::Unsupported => {
                refuse(map, &self.selected(code), RefusalReason::UnsupportedObject, &error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The new bytes of a code object whose kernels are instrumented as far as they can be, and what was added; none if
    /// no kernel is.
    fn instrument(
        self,
        target: Target,
        image: &Image<'_>,
        writer: &Writer<'_, '_>,
        kernels: &mut SelectedKernels<'_>,
        map: &mut ObjectMap,
    ) -> Result<Option<(Vec<u8>, AddedCode)>> {
        let (plan, version) = (writer.plan, writer.code.version().into());
        let planner = ObjectPlanner::new(target, image, self.options.measurement(), plan.control_address(), version);
        let at_once = match self.width {
            Width::Objects => 1,
            Width::Kernels => KERNELS_AT_ONCE * rayon::current_num_threads(),
        };
        let placement = kernels.place(&map.target, &planner, plan.code_address(), at_once)?;
        map.refused = kernels.refusals();
        let written = match placement {
            ObjectPlacement::Placed { maps, .. } if maps.is_empty() => return Ok(None),
            ObjectPlacement::Placed { added, maps } => writer.write(&added, maps, map).map(|bytes| (bytes, added)),
            ObjectPlacement::DoesNotFit(error) => Err(error),
        };
        let error = match written {
            Ok(written) => return Ok(Some(written)),
            Err(error) => error,
        };
        let reason = match error.kind() {
            Kind::Unsupported => RefusalReason::UnsupportedObject,
            // The writer reads what it wrote, as the checker does.
            Kind::Internal => RefusalReason::Unverified,
            _ => return Err(error),
        };
        kernels.refuse_all(&map.target, reason, &error.to_string());
        Ok(None)
    }
}

/// Why code for a processor is not rewritten.
pub(in crate::pipeline) fn unsupported_target(code: &CodeObject<'_>) -> String {
    let what = if code.target().is_some() { "is decoded but not rewritten" } else { "is not in the tables" };
    let rewritten: Vec<&str> = Target::all().filter(|target| target.rewritable()).map(Target::name).collect();
    format!("code for {} {what}: only that for {} is", code.target_id(), rewritten.join(", "))
}

/// Whether an object with this error stays as it is: beside others. By itself it is a wrong input.
fn stays(found: &Found<'_>, error: &Error) -> bool {
    found.place.is_some() && !matches!(error.kind(), Kind::Internal | Kind::Io)
}

/// The source lines, if there are any. Damaged debug information costs these, nothing else.
pub(in crate::pipeline) fn line_table(code: &CodeObject<'_>) -> Option<LineTable> {
    code.line_table().unwrap_or_default()
}

/// The map as it is handed out.
fn without_addresses(mut map: ObjectMap, options: &Options) -> ObjectMap {
    if !options.keep_addresses {
        map.kernels.iter_mut().for_each(|kernel| kernel.addresses = Vec::new());
    }
    map
}

fn refuse(map: &mut ObjectMap, kernels: &[&Kernel], reason: RefusalReason, detail: &str) {
    map.refused.extend(kernels.iter().map(|kernel| refused(&map.target, kernel, reason, detail, None)));
}

/// The selected kernels that contradict the format: those that cannot be read, and those that the metadata does not
/// describe.
pub(in crate::pipeline) fn malformed(code: &CodeObject<'_>, target: &str, options: &Options) -> Vec<Refused> {
    let mut all = Vec::new();
    let chosen = code.kernels().iter().filter(|kernel| options.selection.has(kernel));
    for kernel in chosen.filter(|kernel| kernel.metadata.is_none()) {
        let entry = |part: &&MalformedPart| part.kind == PartKind::MetadataEntry && part.name == kernel.name;
        let note = |part: &&MalformedPart| part.kind == PartKind::Metadata;
        let part = code.malformed().iter().find(entry).or_else(|| code.malformed().iter().find(note));
        let detail = part.map_or_else(
            || format!("the metadata has no kernel with the descriptor {}", kernel.symbol()),
            ToString::to_string,
        );
        all.push(refused(target, kernel, RefusalReason::Malformed, &detail, None));
    }
    let unread = code
        .malformed()
        .iter()
        .filter(|part| part.kind == PartKind::Kernel && options.selection.has_kernel(&part.name));
    all.extend(
        unread.map(|part| refused_by_name(target, &part.name, RefusalReason::Malformed, &part.error.to_string())),
    );
    all
}

/// A code object that something is added to.
struct Writer<'w, 'd> {
    code: &'w CodeObject<'d>,
    lines: &'w Option<LineTable>,
    plan: &'w Plan<'w, 'd>,
}

impl Writer<'_, '_> {
    /// Completes the map with the maps of the added kernels, to which only the source lines are missing, and writes the
    /// new object.
    fn write(&self, added: &AddedCode, kernels: Vec<KernelMap>, map: &mut ObjectMap) -> Result<Vec<u8>> {
        let mut value =
            self.code.metadata().ok_or_else(|| Error::internal("a planned object has no metadata"))?.value()?;
        for change in &added.numbers {
            metadata::set_kernel_number(&mut value, &change.symbol, change.key, change.number)?;
        }
        // As values it takes ten times the room.
        let metadata = metadata::encode(&value)?;
        drop(value);
        map.kernels = kernels;
        for site in map.kernels.iter_mut().flat_map(|kernel| &mut kernel.sites) {
            site.source = source_line(self.lines.as_ref(), site.address);
        }
        map.stride = added.stride;
        let blocks = self.plan.control_size() / control::SIZE;
        self.plan.finish(&Changes {
            code: &added.code,
            symbols: &added.symbols,
            descriptors: &added.descriptors,
            metadata: &metadata,
            control: &Control::initial(blocks as usize, map.stride),
            map: &map.pack()?,
        })
    }
}
