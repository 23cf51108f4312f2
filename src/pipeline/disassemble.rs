//! Annotated disassembly.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::object::{Object, objects, place_name};
use super::options::Selection;
use crate::cfg::{BodyId, Cfg};
use crate::code_object::demangle;
use crate::dataflow::{Operation, WaitSummaries, Waits};
use crate::entity::{BlockId, InstId};
use crate::error::Result;
use crate::isa;
use crate::kernel::{Body, BodyKind, CallTarget, Flow};
use crate::offload_bundle::Input;
use crate::report::disassembly::{BlockText, BodyText, Disassembly, InstText, SCHEMA};

/// Disassembles the selected kernels and the functions they may call; without a selection of kernels, all functions.
///
/// # Errors
/// Malformed or unsupported if the input or a selected code object cannot be taken apart.
pub fn disassemble(data: &[u8], selection: &Selection) -> Result<Disassembly> {
    let input = Input::parse(data)?;
    let mut disassembly = Disassembly { schema: SCHEMA.to_owned(), bodies: Vec::new(), undecodable: Vec::new() };
    for object in objects(&input, selection)? {
        let summaries = WaitSummaries::compute(&object.program);
        let mut bodies: Vec<&Body> = selected(&object, selection).into_iter().map(|id| object.program.body(id)).collect();
        bodies.sort_by_key(|body| body.entry_address());
        disassembly.bodies.extend(bodies.into_iter().map(|body| body_text(&object, body, &summaries)));
        let undecodable = object.program.undecodable().iter().filter(|(name, _, _)| selection.has_kernel(name));
        disassembly.undecodable.extend(undecodable.map(|(_, _, error)| format!("{error}, in {}", place_name(object.place))));
    }
    Ok(disassembly)
}

fn selected(object: &Object<'_>, selection: &Selection) -> Vec<BodyId> {
    let program = &object.program;
    if selection.kernels.is_empty() {
        return program.ids().collect();
    }
    let mut bodies: Vec<BodyId> = program.ids().filter(|id| selection.has_kernel(program.body(*id).name())).collect();
    let called: Vec<BodyId> = bodies.iter().flat_map(|id| program.callees(*id).bodies).collect();
    bodies.extend(called);
    bodies.sort_unstable();
    bodies.dedup();
    bodies
}

fn body_text(object: &Object<'_>, body: &Body, summaries: &WaitSummaries) -> BodyText {
    let cfg = Cfg::build(body);
    let loops = cfg.loops();
    let waits = waits_by_inst(body, &Waits::compute(body, &cfg, summaries));
    let label = |block: BlockId| format!(".B{}", block.0);
    let blocks = cfg
        .ids()
        .map(|id| {
            let block = cfg.block(id);
            BlockText {
                label: label(id),
                loop_depth: loops.depth(id),
                predecessors: block.predecessors.iter().map(|edge| label(edge.block)).collect(),
                instructions: block
                    .insts()
                    .map(|inst| InstText {
                        address: body.address(inst),
                        bytes: bytes(object, body, inst),
                        instruction: isa::print(body.target(), body.inst(inst)),
                        to: destination(object, body, inst, |to| label(cfg.block_of(to))),
                        waits_for: waits.get(&inst).cloned().unwrap_or_default(),
                        source: object.source(body.address(inst)),
                    })
                    .collect(),
            }
        })
        .collect();
    BodyText {
        name: body.name().to_owned(),
        demangled: demangle(body.name()).into_owned(),
        target: object.target_id.clone(),
        kernel: body.kind() == BodyKind::Kernel,
        blocks,
    }
}

/// Addresses of the operations that each wait waits for.
fn waits_by_inst(body: &Body, waits: &Waits<'_>) -> BTreeMap<InstId, Vec<String>> {
    let mut by_inst: BTreeMap<InstId, Vec<String>> = BTreeMap::new();
    for wait in waits.all() {
        let texts = by_inst.entry(wait.inst).or_default();
        for waited in &wait.operations {
            let text = match waited.operation {
                Operation::Inst(id) => format!("{:x}", body.address(id)),
                Operation::Callee(id) => format!("what the call at {:x} left outstanding", body.address(id)),
                Operation::Caller => "what the caller had outstanding".to_owned(),
            };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    by_inst
}

fn destination(object: &Object<'_>, body: &Body, inst: InstId, label: impl Fn(InstId) -> String) -> Option<String> {
    match body.flow(inst) {
        Flow::Jump(to) | Flow::Branch(to) => Some(label(to)),
        Flow::Call(CallTarget::Known(address)) | Flow::TailCall(CallTarget::Known(address)) => {
            Some(object.image.entry_name(address).map_or_else(|| format!("{address:#x}"), |name| demangle(name).into_owned()))
        }
        Flow::Call(CallTarget::Unknown) | Flow::TailCall(CallTarget::Unknown) | Flow::IndirectJump => Some("an unknown place".to_owned()),
        Flow::Next | Flow::Return | Flow::End => None,
    }
}

fn bytes(object: &Object<'_>, body: &Body, inst: InstId) -> String {
    let code = object.image.code_from(body.address(inst)).unwrap_or_default();
    code.iter().take(body.inst(inst).size.into()).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
