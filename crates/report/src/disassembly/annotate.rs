//! One piece of code with everything that is known of it, as data.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::symbols::Symbols;
use super::{
    BlockText, CodeText, Destination, HalfText, HexAddress, InlinedFrame, InstText, Live, LoopText, Peak, Pressure,
    SourceText, Sureness, WaitText, Waited, WaitedText,
};
use wavetap_amdgpu::{Inst, Reg, RegFile, Target, scalar};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{
    Certainty, Liveness, Operation, RegSet, Summaries, UsedRegisters, WaitSummaries, Waits,
};
use wavetap_analysis::kernel::{Body, CallTarget, Flow, Image, formed_addresses};
use wavetap_base::entity::{BlockId, InstId};
use wavetap_object::code_object::LineTable;
use wavetap_profile::map::Source;

/// Equal words that nothing reaches are shown as one from this many on.
const SHORTEST_RUN: usize = 3;

/// What is known of the code object around.
pub(super) struct Surroundings<'a> {
    pub(super) image: &'a Image<'a>,
    pub(super) symbols: &'a Symbols,
    pub(super) lines: Option<&'a LineTable>,
    pub(super) source_text: Option<&'a SourceText<'a>>,
    pub(super) summaries: &'a Summaries,
    pub(super) wait_summaries: &'a WaitSummaries,
}

/// Fills in `code`'s blocks, loops, pressure and instructions. `bytes` starts at its address and may go on after its
/// end; `body` is its control flow, if that is known.
pub(super) fn annotate(
    code: &mut CodeText,
    target: Target,
    bytes: &[u8],
    body: Option<&Body>,
    around: &Surroundings<'_>,
) {
    let flow = body.map(|body| FlowFacts::of(body, around));
    let range = code.address..code.end;
    let mut texts = sweep(target, bytes, &range, body);
    for text in &mut texts {
        if let (Some(flow), Some(body)) = (&flow, body)
            && let Some(id) = body.at(text.address).filter(|_| text.reachable)
        {
            flow.annotate(text, id, body, &range, around.symbols);
        } else if let Some(to) = text.to.as_mut().and_then(|to| Some((to.address?.0, to))) {
            *to.1 = destination_at(to.0, around.symbols);
        }
    }
    if let (Some(flow), Some(body)) = (&flow, body) {
        code.blocks = flow.blocks(body, &range);
        code.loops = flow.loops(body, &range);
        code.pressure = pressure(&texts);
    }
    code.instructions = collapse(texts);
    if let Some(lines) = around.lines {
        add_sources(&mut code.instructions, lines, around.source_text);
    }
}

/// Every word of a range: reachable instructions as the body has them, the rest as far as it can be decoded.
fn sweep(target: Target, bytes: &[u8], range: &Range<u64>, body: Option<&Body>) -> Vec<InstText> {
    let addresses: Vec<u64> = body.map(|body| body.ids().map(|id| body.address(id)).collect()).unwrap_or_default();
    let mut next = addresses.partition_point(|address| *address < range.start);
    let mut texts = Vec::new();
    let mut at = range.start;
    let mut unreached = Inst::blank();
    while at < range.end {
        let rest = &bytes[(at - range.start) as usize..];
        while addresses.get(next).is_some_and(|address| *address < at) {
            next += 1;
        }
        let reached =
            addresses.get(next).filter(|address| **address == at).and(body).map(|body| body.inst(InstId(next as u32)));
        // What is not reached must not run into what is.
        let limit = if reached.is_some() {
            range.end
        } else {
            addresses.get(next).map_or(range.end, |next| range.end.min(*next))
        };
        let fits = |inst: &Inst| at + u64::from(inst.size) <= limit;
        let text = match reached.filter(|inst| fits(inst)) {
            Some(inst) => InstText { reachable: true, ..instruction(target, inst, at, rest) },
            None => match wavetap_amdgpu::decode_into(&mut unreached, target, rest) {
                Ok(()) if fits(&unreached) => {
                    InstText { to: branch_target(&unreached, at), ..instruction(target, &unreached, at, rest) }
                }
                _ => data(at, &rest[..rest.len().min((limit - at) as usize)]),
            },
        };
        at += (text.bytes.len() / 2) as u64;
        texts.push(text);
    }
    texts
}

fn instruction(target: Target, inst: &Inst, address: u64, bytes: &[u8]) -> InstText {
    let bytes = hex(&bytes[..usize::from(inst.size).min(bytes.len())]);
    let halves = inst.halves().into_iter().flatten().map(|half| HalfText {
        operation: half.alone(),
        reads: vector_registers(half.reads()),
        writes: vector_registers(half.writes()),
    });
    InstText {
        address,
        bytes,
        instruction: wavetap_amdgpu::print(target, inst),
        halves: halves.collect(),
        times: 1,
        ..InstText::default()
    }
}

/// The names of the vector registers among `regs`, one by one.
fn vector_registers(regs: impl Iterator<Item = Reg>) -> Vec<String> {
    let vectors = regs.filter(|reg| reg.file == RegFile::Vector);
    vectors.flat_map(|reg| (reg.first..reg.first + u16::from(reg.dwords)).map(|number| format!("v{number}"))).collect()
}

/// Where a direct branch goes that no control flow is known of; without a name yet.
fn branch_target(inst: &Inst, address: u64) -> Option<Destination> {
    let displacement = inst.branch_displacement()?;
    let to = (address + u64::from(inst.size)).wrapping_add_signed(displacement.checked_mul(4)?);
    Some(Destination { name: String::new(), symbol: None, address: Some(HexAddress(to)), block: false })
}

/// What is at an address.
fn destination_at(address: u64, symbols: &Symbols) -> Destination {
    let name = symbols.name(address).unwrap_or_else(|| format!("{address:#x}"));
    Destination { name, symbol: symbols.nearest(address), address: Some(HexAddress(address)), block: false }
}

/// A word that is no instruction, or what is left of one.
fn data(address: u64, bytes: &[u8]) -> InstText {
    let text = |bytes: &[u8], instruction| InstText {
        address,
        bytes: hex(bytes),
        instruction,
        times: 1,
        ..InstText::default()
    };
    match bytes {
        [a, b, c, d, ..] => text(&bytes[..4], format!(".long {:#010x}", u32::from_le_bytes([*a, *b, *c, *d]))),
        rest => text(
            rest,
            format!(".byte {}", rest.iter().map(|byte| format!("{byte:#04x}")).collect::<Vec<_>>().join(", ")),
        ),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Runs of equal words that nothing reaches become one: padding.
fn collapse(texts: Vec<InstText>) -> Vec<InstText> {
    let same = |a: &InstText, b: &InstText| !a.reachable && !b.reachable && a.bytes == b.bytes;
    let mut out: Vec<InstText> = Vec::with_capacity(texts.len());
    for run in texts.chunk_by(same) {
        match run {
            [first, ..] if run.len() >= SHORTEST_RUN => {
                // No compiler pads with the instruction that zeros happen to be.
                let zeros = first.bytes == "00000000";
                let instruction = if zeros { ".long 0x00000000".to_owned() } else { first.instruction.clone() };
                out.push(InstText { times: run.len() as u64, instruction, to: None, ..first.clone() });
            }
            _ => out.extend_from_slice(run),
        }
    }
    out
}

fn add_sources(texts: &mut [InstText], lines: &LineTable, source_text: Option<&SourceText<'_>>) {
    let convert = |location: Option<wavetap_object::code_object::SourceLocation>| {
        location
            .filter(|location| location.line > 0)
            .map(|location| Source { file: location.file, line: location.line })
    };
    let mut shown = (None, Vec::new());
    for text in texts.iter_mut().filter(|text| text.times == 1) {
        text.source = convert(lines.location(text.address));
        if text.source.is_none() {
            continue;
        }
        let frames = lines.frames(text.address);
        // Each frame but the outermost was inlined where the next one is.
        text.inlined = frames
            .iter()
            .zip(frames.iter().skip(1))
            .map(|(inner, outer)| InlinedFrame {
                function: inner.function.clone(),
                at: convert(outer.location.clone()),
            })
            .collect();
        let place = (text.source.clone(), text.inlined.clone());
        if place != shown {
            text.source_text = text.source.as_ref().and_then(|source| source_text?(&source.file, source.line));
            shown = place;
        }
    }
}

/// What the analyses say of a body.
struct FlowFacts {
    cfg: Cfg,
    loops: wavetap_analysis::cfg::Loops,
    live: Vec<Live>,
    waits: BTreeMap<InstId, Vec<WaitText>>,
    waited_at: BTreeMap<InstId, Vec<HexAddress>>,
    addresses: BTreeMap<InstId, u64>,
}

impl FlowFacts {
    fn of(body: &Body, around: &Surroundings<'_>) -> FlowFacts {
        let cfg = Cfg::build(body);
        let loops = cfg.loops();
        // Where control leaves for unknown code everything is live: of that, what this body names.
        let named = UsedRegisters::of_body(body).named;
        let liveness = Liveness::of_lanes(body, &cfg, around.summaries);
        let live = body.ids().map(|id| count(liveness.after(id).intersection(named))).collect();
        let mut waits: BTreeMap<InstId, Vec<WaitText>> = BTreeMap::new();
        let mut waited_at: BTreeMap<InstId, Vec<HexAddress>> = BTreeMap::new();
        for wait in Waits::compute(body, &cfg, around.wait_summaries).all() {
            let here = HexAddress(body.address(wait.inst));
            let mut operations = Vec::new();
            for waited in &wait.operations {
                let (what, address) = match waited.operation {
                    Operation::Inst(id) => (Waited::Instruction, Some(id)),
                    Operation::Callee(id) => (Waited::Callee, Some(id)),
                    Operation::Caller => (Waited::Caller, None),
                };
                if let Some(places) =
                    address.map(|id| waited_at.entry(id).or_default()).filter(|places| !places.contains(&here))
                {
                    places.push(here);
                }
                let certainty = match waited.certainty {
                    Certainty::Must => Sureness::Must,
                    Certainty::May => Sureness::May,
                    Certainty::Unordered => Sureness::Unordered,
                };
                operations.push(WaitedText {
                    what,
                    address: address.map(|id| HexAddress(body.address(id))),
                    certainty,
                });
            }
            operations.sort_by_key(|operation| operation.address);
            waits.entry(wait.inst).or_default().push(WaitText {
                counter: wait.counter.name().to_owned(),
                count: wait.count,
                operations,
            });
        }
        let addresses = formed_addresses(body, around.image).into_iter().collect();
        FlowFacts { cfg, loops, live, waits, waited_at, addresses }
    }

    fn annotate(&self, text: &mut InstText, id: InstId, body: &Body, range: &Range<u64>, symbols: &Symbols) {
        text.to = self.destination(body, id, range, symbols);
        text.names = self
            .addresses
            .get(&id)
            .filter(|address| symbols.name(**address).is_some())
            .map(|address| destination_at(*address, symbols));
        text.waits = self.waits.get(&id).cloned().unwrap_or_default();
        text.waited_at = self.waited_at.get(&id).cloned().unwrap_or_default();
        text.live = self.live.get(id.index()).copied();
    }

    fn destination(&self, body: &Body, id: InstId, range: &Range<u64>, symbols: &Symbols) -> Option<Destination> {
        let unknown = || Destination { name: "unknown".to_owned(), symbol: None, address: None, block: false };
        match body.flow(id) {
            Flow::Jump(to) | Flow::Branch(to) => {
                let address = body.address(to);
                let inside = range.contains(&address);
                let known = destination_at(address, symbols);
                Some(if inside {
                    Destination { name: label(self.cfg.block_of(to)), block: true, ..known }
                } else {
                    known
                })
            }
            Flow::Call(CallTarget::Known(address)) | Flow::TailCall(CallTarget::Known(address)) => {
                Some(destination_at(address, symbols))
            }
            Flow::Call(CallTarget::Unknown) | Flow::TailCall(CallTarget::Unknown) | Flow::IndirectJump => {
                Some(unknown())
            }
            Flow::Next | Flow::Return | Flow::End => None,
        }
    }

    /// Whether a block is listed: a body may run on into other code.
    fn inside(&self, block: BlockId, body: &Body, range: &Range<u64>) -> bool {
        range.contains(&body.address(self.cfg.block(block).first))
    }

    fn blocks(&self, body: &Body, range: &Range<u64>) -> Vec<BlockText> {
        let labels = |edges: &[wavetap_analysis::cfg::Edge]| {
            let mut blocks: Vec<BlockId> =
                edges.iter().map(|edge| edge.block).filter(|id| self.inside(*id, body, range)).collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks.into_iter().map(label).collect()
        };
        let block = |id: BlockId| {
            let block = self.cfg.block(id);
            BlockText {
                label: label(id),
                address: body.address(block.first),
                end: body.end_address(block.last),
                loop_depth: self.loops.depth(id),
                loop_header: self.loops.innermost(id).map(|index| label(self.loops.all()[index].header)),
                predecessors: labels(&block.predecessors),
                successors: labels(&block.successors),
                executions: None,
                executions_source: None,
            }
        };
        self.cfg.ids().filter(|id| self.inside(*id, body, range)).map(block).collect()
    }

    fn loops(&self, body: &Body, range: &Range<u64>) -> Vec<LoopText> {
        let labels = |blocks: &[BlockId]| {
            blocks.iter().filter(|id| self.inside(**id, body, range)).map(|id| label(*id)).collect()
        };
        let text = |each: &wavetap_analysis::cfg::Loop| LoopText {
            header: label(each.header),
            latches: labels(&each.latches),
            depth: each.depth,
            blocks: labels(&each.blocks),
        };
        self.loops.all().iter().filter(|each| self.inside(each.header, body, range)).map(text).collect()
    }
}

fn label(block: BlockId) -> String {
    format!(".B{}", block.0)
}

/// Registers by file; of the scalar ones those that a kernel asks for, and VCC.
fn count(set: RegSet) -> Live {
    let mut live = Live::default();
    for reg in set.iter() {
        match reg.file {
            RegFile::Vector => live.vgprs += 1,
            RegFile::Accum => live.agprs += 1,
            RegFile::Scalar
                if reg.first < scalar::FLAT_SCRATCH || (scalar::VCC..scalar::VCC + 2).contains(&reg.first) =>
            {
                live.sgprs += 1
            }
            RegFile::Scalar => {}
        }
    }
    live
}

fn pressure(texts: &[InstText]) -> Option<Pressure> {
    let peak = |of: fn(&Live) -> u16| {
        let mut peak: Option<Peak> = None;
        for (live, at) in texts.iter().filter_map(|text| Some((of(text.live.as_ref()?), text.address))) {
            if peak.is_none_or(|peak| live > peak.live) {
                peak = Some(Peak { live, at });
            }
        }
        peak
    };
    Some(Pressure { vgprs: peak(|live| live.vgprs)?, agprs: peak(|live| live.agprs)?, sgprs: peak(|live| live.sgprs)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_operations_is_shown_as_both() {
        let target = Target::by_name("gfx1100").expect("a target");
        // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0; s_endpgm
        let code = [0x01, 0x01, 0x10, 0xca, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0xb0, 0xbf];
        let texts = sweep(target, &code, &(0..12), None);
        let half = |reads: &str, writes: &str| HalfText {
            operation: "v_mov_b32".to_owned(),
            reads: vec![reads.to_owned()],
            writes: vec![writes.to_owned()],
        };
        assert_eq!(texts[0].halves, [half("v1", "v0"), half("v0", "v1")]);
        assert!(texts[1].halves.is_empty());
    }
}
