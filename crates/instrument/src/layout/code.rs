//! One kernel's new code, with the functions that go with it: order, sizes and labels first, bytes when the address is
//! known.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Distance;
use super::piece::{KeptScc, Piece, Place, adds_whole, branch_word, call_word, encode, getpc_pair};
use super::reach::{Sequence, Words, displacement};
use wavetap_amdgpu::{Branch, Counter, EventHazards, Opcode, OpcodeFlags, Reg, Role, Target, Value, scalar};
use wavetap_analysis::cfg::{BodyId, Program};
use wavetap_analysis::kernel::edit::{Edits, Item, Label, Snippet};
use wavetap_analysis::kernel::{
    Body, BodyKind, BundlingConstraint, BundlingConstraints, CallTarget, Flow, Image, Reason, Refusal, Stop,
};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::{Error, Result};

/// The displacement with which a branch hangs some processors ([`EventHazards::BRANCH_OFFSET`]).
const HANGING_DISPLACEMENT: i16 = 0x3f;

/// A kernel's code with its edits, ready to be placed at any 256-aligned address.
#[derive(Debug, Clone)]
pub struct Code {
    target: Target,
    sequence: Sequence,
    /// Offset of each piece, and of the end.
    offsets: Vec<u64>,
}

impl Code {
    /// Orders a kernel's instructions and the edits' snippets, and after them those of the functions that it gets
    /// copies of.
    ///
    /// The entry is at offset 0, where the prologue starts.
    ///
    /// # Errors
    /// Refused if the kernel cannot be placed elsewhere or a branch would not reach; failed if an item cannot be
    /// encoded, the edits are not sorted, or they name a function that `program` does not have.
    pub fn plan(program: &Program, kernel: BodyId, image: &Image<'_>, edits: &Edits) -> Result<Code, Stop> {
        let function = |entry| {
            let id = program.at(entry).ok_or_else(|| Error::internal("an edited function is none").at(entry))?;
            Ok(program.body(id))
        };
        let functions: Result<Vec<&Body>> = edits.functions.iter().map(|edited| function(edited.entry)).collect();
        Self::of_bodies(program.body(kernel), &functions?, image, edits)
    }

    /// [`Code::plan`] for bodies; those of [`Edits::functions`], in that order.
    pub(super) fn of_bodies(
        kernel: &Body,
        functions: &[&Body],
        image: &Image<'_>,
        edits: &Edits,
    ) -> Result<Code, Stop> {
        let target = kernel.target();
        let mut entries = FxHashMap::default();
        let mut first = kernel.len();
        for function in functions {
            entries.insert(function.entry_address(), Place(first + function.entry().index()));
            first += function.len();
        }
        let mut planner = Planner { target, sequence: Sequence::new(first), asides: Vec::new(), first: 0, entries };
        planner.snippet(&edits.prologue)?;
        if kernel.entry() != InstId(0) {
            let word = branch_word(target, Opcode::S_BRANCH)?;
            planner.push(Piece::Branch { word, to: Place(kernel.entry().index()), origin: None });
        }
        planner.body(kernel, image, &edits.inserts, edits.spare_scalar)?;
        for (function, edited) in functions.iter().zip(&edits.functions) {
            planner.body(function, image, &edited.inserts, edits.spare_scalar)?;
        }
        let Planner { sequence, .. } = planner;
        let filler = encode(target, Opcode::S_NOP, &[Value::Imm(0)])?;
        let hazards = target.event_hazards();
        let hangs = hazards.contains(EventHazards::BRANCH_OFFSET);
        // With a branch between them, LDS and vector memory need this wait.
        let before_jump = if hazards.contains(EventHazards::LDS_BRANCH_VMEM) {
            encode(target, Opcode::S_WAITCNT_VSCNT, &[Value::Reg(Reg::scalar(scalar::NULL, 1)), Value::Imm(0)])?
        } else {
            Vec::new()
        };
        let words = Words { s_branch: branch_word(target, Opcode::S_BRANCH)?, before_jump };
        let mut sequence = sequence.connect(&words)?;
        // What fills may push a target out of reach.
        while hangs && sequence.avoid_displacement(HANGING_DISPLACEMENT, &filler) {
            sequence = sequence.connect(&words)?;
        }
        Ok(Code { target, offsets: sequence.offsets(), sequence })
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// The bytes for code that starts at `base`.
    ///
    /// # Errors
    /// Internal if an instruction of our own cannot be encoded.
    pub fn bytes(&self, base: u64) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(self.size() as usize);
        self.write(base, &mut out)?;
        Ok(out)
    }

    /// Appends [`Code::bytes`].
    pub(super) fn write(&self, base: u64, out: &mut Vec<u8>) -> Result<()> {
        for (piece, &offset) in self.sequence.pieces.iter().zip(&self.offsets) {
            let displacement = match piece {
                Piece::Branch { to, .. } => displacement(offset, self.offsets[self.sequence.places[to.0]])
                    .ok_or_else(|| Error::internal("a branch that was planned does not reach").at(base + offset))?,
                _ => 0,
            };
            piece.write(self.target, base + offset, displacement, out)?;
        }
        Ok(())
    }

    /// Where distances to the original image are in the bytes ([`Piece::distance`]).
    pub(super) fn distances(&self) -> impl Iterator<Item = Distance> + '_ {
        let pieces = self.sequence.pieces.iter().zip(&self.offsets);
        pieces.filter_map(|(piece, offset)| {
            piece.distance().map(|[low, high]| Distance { low: offset + low, high: offset + high })
        })
    }

    /// Original and new address of every original instruction, by original address, for code that starts at `base`.
    #[must_use]
    pub fn addresses(&self, base: u64) -> Vec<(u64, u64)> {
        self.sequence.moved.iter().map(|&(original, piece)| (original, base + self.offsets[piece])).collect()
    }
}

/// An element of code that is placed after a body: a piece, or a place before the next one.
enum Aside {
    Start,
    Piece(Piece),
    Place(Place),
}

struct Planner {
    target: Target,
    sequence: Sequence,
    /// What is placed after the body that is being ordered.
    asides: Vec<Aside>,
    /// The place of the first instruction of the body that is being ordered.
    first: usize,
    /// Where the copies of functions are entered, by the original's entry.
    entries: FxHashMap<u64, Place>,
}

impl Planner {
    fn push(&mut self, piece: Piece) {
        self.sequence.pieces.push(piece);
    }

    /// A body with what is inserted.
    fn body(
        &mut self,
        body: &Body,
        image: &Image<'_>,
        inserts: &[(ProgramPoint, Snippet)],
        spare_scalar: Option<Reg>,
    ) -> Result<(), Stop> {
        if !inserts.is_sorted_by_key(|(point, _)| *point) {
            return Err(Error::internal("edits are not sorted by their place").into());
        }
        let slots = image.slot_in(body.span()).is_some();
        // Members of a clause that are still to come: not even an island may come between them.
        let mut members: u16 = 0;
        let dissolved = dissolved(body, inserts);
        let mut inserts = inserts.iter().peekable();
        for id in body.ids() {
            if slots && let Some(slot) = image.slot_in(body.address(id)..body.end_address(id)) {
                let detail = format!("{}: the loader changes it (relocation at {slot:#x})", body.inst(id).name());
                return Err(Refusal::at(Reason::Undecodable, body.address(id), detail).into());
            }
            self.sequence.bind(self.place(id));
            if members == 0 {
                self.sequence.seam();
            }
            let is_dissolved = dissolved.contains(&id);
            members = match clause_members(body.inst(id)) {
                Some(_) if is_dissolved => 0,
                members_of_new => members_of_new.unwrap_or(members.saturating_sub(1)),
            };
            while let Some((_, snippet)) =
                inserts.next_if(|(point, _)| *point == (ProgramPoint { inst: id, side: Side::Before }))
            {
                self.snippet(snippet)?;
            }
            if is_dissolved {
                self.sequence.moved.push((body.address(id), self.sequence.pieces.len()));
                self.push(Piece::Bytes(encode(self.target, Opcode::S_NOP, &[Value::Imm(0)])?.as_slice().into()));
            } else {
                self.original(body, image, spare_scalar, id)?;
            }
            while let Some((_, snippet)) =
                inserts.next_if(|(point, _)| *point == (ProgramPoint { inst: id, side: Side::After }))
            {
                self.snippet(snippet)?;
            }
        }
        if inserts.next().is_some() {
            return Err(Error::internal("an edit names an instruction that the kernel does not have").into());
        }
        for aside in std::mem::take(&mut self.asides) {
            match aside {
                Aside::Start => self.sequence.seam(),
                Aside::Piece(piece) => self.push(piece),
                Aside::Place(place) => self.sequence.bind(place),
            }
        }
        self.first += body.len();
        Ok(())
    }

    /// The place of an instruction of the body that is being ordered.
    fn place(&self, id: InstId) -> Place {
        Place(self.first + id.index())
    }

    fn snippet(&mut self, snippet: &Snippet) -> Result<()> {
        let mut labels: FxHashMap<Label, Place> = FxHashMap::default();
        for item in &snippet.items {
            if let Item::Label(label) = item {
                let place = self.sequence.new_place();
                if labels.insert(*label, place).is_some() {
                    return Err(Error::internal("a snippet has a label twice"));
                }
            }
        }
        let place = |label: &Label| {
            labels.get(label).copied().ok_or_else(|| Error::internal("a snippet branches to a label it does not have"))
        };
        let mut is_aside = false;
        for item in &snippet.items {
            let piece = match item {
                Item::Inst(inst) => Piece::Bytes(SmallVec::from_slice(&wavetap_amdgpu::encode(self.target, inst)?)),
                Item::Label(label) if is_aside => {
                    self.asides.push(Aside::Place(place(label)?));
                    continue;
                }
                Item::Label(label) => {
                    self.sequence.bind(place(label)?);
                    continue;
                }
                Item::Branch { opcode, label } => {
                    Piece::Branch { word: branch_word(self.target, *opcode)?, to: place(label)?, origin: None }
                }
                Item::Address { pair, address, settle } => {
                    Piece::Address { pair: *pair, address: *address, settle: *settle }
                }
                Item::Aside => {
                    is_aside = true;
                    self.asides.push(Aside::Start);
                    continue;
                }
                Item::AsideEnd => {
                    let to = self.sequence.new_place();
                    self.sequence.bind(to);
                    let word = branch_word(self.target, Opcode::S_BRANCH)?;
                    is_aside = false;
                    // It may go elsewhere.
                    let last = self.asides.last();
                    if !matches!(last, Some(Aside::Piece(Piece::Branch { word: last, .. })) if *last == word) {
                        self.asides.push(Aside::Piece(Piece::Branch { word, to, origin: None }));
                    }
                    continue;
                }
            };
            match is_aside {
                true => self.asides.push(Aside::Piece(piece)),
                false => self.push(piece),
            }
        }
        Ok(())
    }

    /// An original instruction: copied, or changed where it depends on its address.
    fn original(&mut self, body: &Body, image: &Image<'_>, spare_scalar: Option<Reg>, id: InstId) -> Result<(), Stop> {
        let (inst, address) = (body.inst(id), body.address(id));
        let bytes = image
            .code_from(address)
            .and_then(|bytes| bytes.get(..usize::from(inst.size)))
            .ok_or_else(|| Error::internal("an instruction lies outside the code").at(address))?;
        let refuse =
            |reason, detail: &str| Err(Refusal::at(reason, address, format!("{}: {detail}", inst.name())).into());
        self.sequence.moved.push((address, self.sequence.pieces.len()));
        match (body.flow(id), inst.variant.branch) {
            (Flow::Jump(to) | Flow::Branch(to), Branch::Jump | Branch::Conditional(_)) => {
                let Some(&[a, b, c, d]) = bytes.first_chunk::<4>() else {
                    return refuse(Reason::Undecodable, "a branch shorter than a word");
                };
                self.push(Piece::Branch {
                    word: u32::from_le_bytes([a, b, c, d]),
                    to: self.place(to),
                    origin: Some(address),
                });
            }
            (Flow::Jump(to), Branch::IndirectJump) => {
                let word = branch_word(self.target, Opcode::S_BRANCH)?;
                self.push(Piece::Branch { word, to: self.place(to), origin: Some(address) });
            }
            (Flow::Call(CallTarget::Known(to)), _) if self.entries.contains_key(&to) => {
                // `s_call_b64` leaves its return address where the original does.
                let Some(link) = inst.operand(Role::Sdst).map(|operand| operand.value) else {
                    return refuse(Reason::DirectCall, "a call without a return address");
                };
                let word = call_word(self.target, link)?;
                self.push(Piece::Branch { word, to: self.entries[&to], origin: Some(address) });
            }
            (Flow::TailCall(CallTarget::Known(to)), _) if self.entries.contains_key(&to) => {
                let word = branch_word(self.target, Opcode::S_BRANCH)?;
                self.push(Piece::Branch { word, to: self.entries[&to], origin: Some(address) });
            }
            (_, Branch::Call) => return refuse(Reason::DirectCall, "a direct call is not moved"),
            (Flow::IndirectJump, _) => return refuse(Reason::IndirectJump, "its target is not known"),
            (Flow::Return | Flow::TailCall(_), _) if body.kind() == BodyKind::Kernel => {
                return refuse(Reason::KernelReturns, "a kernel does not return or tail-call");
            }
            // A return goes where the call came from; a tail call leaves for the original function, which returns
            // there.
            (Flow::Return | Flow::TailCall(_), Branch::IndirectJump) => {
                self.push(Piece::Bytes(SmallVec::from_slice(bytes)))
            }
            (Flow::Return | Flow::TailCall(_), _) => {
                return refuse(Reason::IndirectJump, "a jump out of a function that is not moved");
            }
            (_, Branch::Obsolete) => {
                return refuse(Reason::IndirectJump, "it changes the flow of control through hardware state");
            }
            (Flow::Jump(_) | Flow::Branch(_), _) => return refuse(Reason::IndirectJump, "a branch of an unknown kind"),
            (Flow::Next | Flow::Call(_) | Flow::End, _) => {
                self.push(Piece::Bytes(SmallVec::from_slice(bytes)));
                if let Some(pair) = getpc_pair(inst) {
                    let original = body.end_address(id);
                    let settle = settles(self.target);
                    let at_once = !settle && adds_whole(self.target);
                    let keep_scc_in = match spare_scalar {
                        _ if at_once || scc_is_dead_after(body, id) => None,
                        Some(register) => {
                            Some(KeptScc { register, untranslated: self.target.largest_wait(Counter::X).is_some() })
                        }
                        None => {
                            return refuse(
                                Reason::PcRead,
                                "SCC must survive and no scalar register is free to keep it in",
                            );
                        }
                    };
                    self.push(if at_once {
                        Piece::WholeProgramCounter { pair, original }
                    } else {
                        Piece::ProgramCounter { pair, original, keep_scc_in, settle }
                    });
                }
            }
        }
        // What falls through must meet the same instruction as before.
        let next = body.next(id);
        if next.is_none() && (matches!(body.flow(id), Flow::Call(_)) || inst.variant.branch == Branch::Trap) {
            // Nothing comes back from there; what lies after here is not what lay after the original.
            self.push(Piece::Bytes(encode(self.target, Opcode::S_ENDPGM, &[Value::Imm(0)])?.as_slice().into()));
        } else if body.flow(id).falls_through() && next != Some(InstId(id.0 + 1)) {
            return Err(Refusal::at(
                Reason::Undecodable,
                address,
                "control falls through to something that is not decoded",
            )
            .into());
        }
        Ok(())
    }
}

/// Whether what scalar instructions write has to be waited for before it is read: the pair of `s_getpc_b64` may be one
/// that vector instructions have read before, on some targets at all ([`EventHazards::VALU_READ_SGPR`]), on others in
/// wave64 as a mask of lanes ([`EventHazards::VALU_MASK_WRITE`]).
fn settles(target: Target) -> bool {
    let hazards = target.event_hazards();
    hazards.contains(EventHazards::VALU_READ_SGPR)
        || (hazards.contains(EventHazards::VALU_MASK_WRITE) && target.wave_size() == 64)
}

/// The `s_clause` of each clause that something is inserted into.
fn dissolved(body: &Body, inserts: &[(ProgramPoint, Snippet)]) -> FxHashSet<InstId> {
    if inserts.is_empty() || !body.opcode_flags().contains(OpcodeFlags::CLAUSE) {
        return FxHashSet::default();
    }
    let neighbours = BundlingConstraints::of(body);
    let torn = |point: &ProgramPoint| match neighbours.tie_after(point.previous()?)? {
        BundlingConstraint::Clause(clause) => Some(clause.start),
        BundlingConstraint::Delay(_) => None,
    };
    inserts.iter().filter_map(|(point, _)| torn(point)).collect()
}

/// How many instructions after an `s_clause` belong to it (RDNA ISA guides: length - 1 in bits 5:0).
fn clause_members(inst: &wavetap_amdgpu::Inst) -> Option<u16> {
    if !inst.variant.opcode_flags.contains(OpcodeFlags::CLAUSE) {
        return None;
    }
    match inst.operand(Role::Simm16).map(|operand| operand.value) {
        Some(Value::Imm(bits)) => Some((bits & 0x3f) as u16 + 1),
        _ => None,
    }
}

/// Whether SCC is certainly written before it is read again, judged by the straight code that follows alone.
fn scc_is_dead_after(body: &Body, id: InstId) -> bool {
    let mut at = id;
    while let Some(next) = body.next(at) {
        let inst = body.inst(next);
        if inst.reads().any(|reg| reg.overlaps(Reg::SCC)) {
            return false;
        }
        if inst.writes().any(|reg| reg.overlaps(Reg::SCC)) {
            return !matches!(inst.opcode(), Opcode::S_CMOV_B32 | Opcode::S_CMOV_B64 | Opcode::S_CMOVK_I32);
        }
        if body.flow(next) != Flow::Next {
            return false;
        }
        at = next;
    }
    false
}
