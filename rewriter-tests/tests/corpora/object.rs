//! The checks on one code object.

use wavetap::cfg::{Cfg, Program};
use wavetap::code_object::CodeObject;
use wavetap::isa::{self, Target};
use wavetap::kernel::{Body, CallTarget, Flow};
use wavetap::offload_bundle::Found;
use wavetap::pipeline::Object;

use crate::HANDLED;
use crate::differential::{Differential, Word};
use crate::tally::Counts;

/// Complaints of one kind about one object: the first few say it all.
const FEW: usize = 4;

/// Checks everything about a code object.
pub fn check(file: &str, found: &Found<'_>, differential: &mut Differential<'_>) -> Counts {
    let id = found.target.map_or_else(String::new, ToString::to_string);
    let mut counts = Counts { objects: 1, ..Counts::default() };
    let mut wrong = Vec::new();
    match CodeObject::parse(found.bytes) {
        Ok(code) => {
            counts.processor = code.processor().unwrap_or("unknown").to_owned();
            counts.kernels = code.kernels().len();
            counts.functions = code.functions().len();
            counts.code_bytes = code.kernels().iter().map(|kernel| kernel.code.end - kernel.code.start).sum::<u64>()
                + code.functions().iter().map(|function| function.code.end - function.code.start).sum::<u64>();
            counts.section_bytes =
                code.elf().sections.iter().filter(|section| section.is_executable()).map(|section| section.size).sum();
            container(&code, &id, &mut wrong);
            counts.handled = code.target().is_some();
            match code.target() {
                Some(target) => {
                    sweep(&code, target, file, differential, &mut counts, &mut wrong);
                    match Object::decode(found) {
                        Ok(object) => reachable(&object, &mut counts, &mut wrong),
                        Err(error) => wrong.push(error.to_string()),
                    }
                }
                None if HANDLED.contains(&counts.processor.as_str()) => {
                    wrong.push("its target is not handled".to_owned())
                }
                None => {}
            }
        }
        Err(error) => wrong.push(error.to_string()),
    }
    counts.wrong = wrong.into_iter().map(|wrong| format!("{file} {id}: {wrong}")).collect();
    counts
}

/// What bundle, ELF header and metadata say is the same.
fn container(code: &CodeObject<'_>, bundled_as: &str, wrong: &mut Vec<String>) {
    if code.target_id() != bundled_as {
        wrong.push(format!("the bundle says {bundled_as}, the ELF header {}", code.target_id()));
    }
    let Some(metadata) = code.metadata() else {
        wrong.push("no metadata".to_owned());
        return;
    };
    if metadata.kernels.len() != code.kernels().len() {
        wrong.push(format!("{} kernels, {} in the metadata", code.kernels().len(), metadata.kernels.len()));
    }
    let nameless = code.kernels().iter().filter(|kernel| kernel.metadata.is_none());
    wrong.extend(nameless.take(FEW).map(|kernel| format!("no metadata for {}", kernel.name)));
    let unsized_kernels = code.kernels().iter().filter(|kernel| !kernel.sized);
    wrong.extend(unsized_kernels.take(FEW).map(|kernel| format!("no size for {}", kernel.name)));
}

/// Every word of the executable sections, one after the other: what decodes encodes to itself, and is what LLVM says it
/// is.
fn sweep(
    code: &CodeObject<'_>,
    target: Target,
    file: &str,
    differential: &mut Differential<'_>,
    counts: &mut Counts,
    wrong: &mut Vec<String>,
) {
    let mut words = Vec::new();
    for section in code.elf().sections.iter().filter(|section| section.is_executable() && section.has_contents()) {
        let bytes = match code.elf().contents(section) {
            Ok(bytes) => bytes,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        let mut at = 0;
        while at + 4 <= bytes.len() {
            let size = match isa::decode(target, &bytes[at..]) {
                Ok(inst) => {
                    let size = usize::from(inst.size);
                    let own = &bytes[at..at + size];
                    match isa::encode(target, &inst) {
                        Ok(again) if again == own => {}
                        Ok(again) => {
                            wrong.push(format!("{} {own:02x?} encodes to {again:02x?}", inst.variant.mnemonic))
                        }
                        Err(error) => {
                            wrong.push(format!("{} {own:02x?} does not encode: {error}", inst.variant.mnemonic))
                        }
                    }
                    size
                }
                Err(_) => {
                    counts.none += usize::from(bytes[at..at + 4] != [0; 4]);
                    4
                }
            };
            if let Some(word) = differential.new_word(target, &bytes[at..], size) {
                words.push(Word { place: format!("{file} {:#x}", section.address + at as u64), bytes: word });
            }
            at += size;
        }
    }
    differential.compare(target, &words);
}

/// Everything that control reaches is decoded, and the blocks cover the code.
fn reachable(object: &Object<'_>, counts: &mut Counts, wrong: &mut Vec<String>) {
    let program: &Program = &object.program;
    wrong.extend(
        program.undecodable().iter().take(FEW).map(|(name, address, error)| format!("{name} at {address:#x}: {error}")),
    );
    // By address, all code that some body has, so that what a kernel's range holds beyond its own body is known.
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for body in program.bodies() {
        let cfg = Cfg::build(body);
        counts.reached += body.len();
        counts.blocks += cfg.len();
        counts.unknown += body.ids().filter(|id| goes_anywhere(body.flow(*id))).count();
        wrong.extend(graph(body, &cfg).map(|what| format!("{}: {what}", body.name())));
        for block in cfg.blocks() {
            spans.push((body.address(block.first), body.end_address(block.last)));
        }
    }
    spans.sort_unstable();
    let kernels = object.code.kernels().iter().map(|kernel| (&kernel.name, &kernel.code));
    let functions = object.code.functions().iter().map(|function| (&function.name, &function.code));
    let mut uncovered = Vec::new();
    for (name, code) in kernels.chain(functions) {
        let mut at = code.start;
        let from = spans.partition_point(|(_, end)| *end <= code.start);
        let inside = spans[from..].iter().copied().take_while(|(start, _)| *start < code.end);
        for (start, end) in inside.chain([(code.end, code.end)]) {
            if start > at {
                uncovered.extend(no_padding(object, at, start).map(|what| format!("{name}: {what}")));
            }
            at = at.max(end);
        }
    }
    counts.unreached += uncovered.len();
    wrong.extend(uncovered.into_iter().take(FEW));
}

fn goes_anywhere(flow: Flow) -> bool {
    matches!(flow, Flow::IndirectJump | Flow::Call(CallTarget::Unknown) | Flow::TailCall(CallTarget::Unknown))
}

/// What is wrong with a graph: each instruction is in one block, blocks follow each other, and the entry reaches them
/// all.
fn graph<'b>(body: &'b Body, cfg: &'b Cfg) -> impl Iterator<Item = String> + 'b {
    let instructions: usize = cfg.blocks().iter().map(|block| block.insts().len()).sum();
    let lost =
        (instructions != body.len()).then(|| format!("{instructions} of {} instructions are in blocks", body.len()));
    let unreached = (cfg.reverse_postorder().len() != cfg.len())
        .then(|| format!("{} of {} blocks are reached", cfg.reverse_postorder().len(), cfg.len()));
    let torn = cfg.ids().filter(|id| {
        let insts: Vec<_> = cfg.block(*id).insts().collect();
        insts.windows(2).any(|pair| body.end_address(pair[0]) != body.address(pair[1]))
            || insts.iter().any(|inst| cfg.block_of(*inst) != *id)
    });
    lost.into_iter().chain(unreached).chain(torn.map(|id| format!("block {} is torn", id.0)))
}

/// The words from one address to another that are neither zeros nor instructions that compilers pad with.
fn no_padding(object: &Object<'_>, from: u64, to: u64) -> impl Iterator<Item = String> {
    let bytes = object.image.code_from(from).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min((to - from) as usize)];
    let (mut at, mut found) = (0, Vec::new());
    while at + 4 <= bytes.len() {
        let word = &bytes[at..];
        match isa::decode(object.target, word) {
            Ok(inst) => {
                if !matches!(inst.name(), "s_nop" | "s_code_end") {
                    found.push(format!("{:#x} is not reached: {}", from + at as u64, isa::print(object.target, &inst)));
                }
                at += usize::from(inst.size);
            }
            Err(error) => {
                if word[..4] != [0; 4] {
                    found.push(format!("{:#x} is not reached: {error}", from + at as u64));
                }
                at += 4;
            }
        }
    }
    found.into_iter()
}
