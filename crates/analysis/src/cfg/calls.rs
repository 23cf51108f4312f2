//! A whole code object's code: every kernel and function, and who calls whom.
//!
//! Two nested iterations. The inner one discovers bodies: decoding a body finds the functions that it calls, until no
//! call leads to new code. The outer one adds knowledge: at first a call is taken to change every register. When all
//! bodies are known, what each function preserves is computed, and bodies that have both resolved and unresolved calls
//! or jumps are decoded again with it ([`PreservedRegs`]); this may resolve more calls, which may lead to new bodies.
//!
//! Invariant: a body is only replaced by one with fewer unknown places, so the iteration ends. What was derived from an
//! incomplete program stays correct, because an unknown call counts as a call of anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernel::{Body, BodyKind, CallTarget, Flow, Image, PreservedRegs, preserved_by};
use wavetap_amdgpu::Target;
use wavetap_base::entity::InstId;
use wavetap_base::error::Error;

/// Index of a body in a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub u32);

impl BodyId {
    /// The index as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Everything that a body can execute by calling, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Callees {
    /// The functions, ascending; the body itself only if it is recursive.
    pub bodies: Vec<BodyId>,
    /// Whether any function at all may be called: some call or jump goes to an unknown place, or to code that cannot be
    /// decoded.
    pub unknown: bool,
}

/// The code of one code object: its kernels, its functions, those only found because they are called, and the call
/// graph.
///
/// A body that cannot be decoded is kept with its error: the others stay usable, and calls to it count as unknown.
#[derive(Debug, Clone)]
pub struct Program {
    target: Target,
    bodies: Vec<Body>,
    by_entry: BTreeMap<u64, BodyId>,
    undecodable: Vec<(String, u64, Error)>,
}

impl Program {
    /// Decodes all kernels and functions of an image and all that they call.
    #[must_use]
    pub fn of(target: Target, image: &Image<'_>) -> Program {
        Self::build(target, image, image.entries().map(|(address, name, kind)| (name.to_owned(), kind, address)))
    }

    /// Decodes the bodies at `entries` (name, kind, address) and all that they call.
    #[must_use]
    pub fn build(
        target: Target,
        image: &Image<'_>,
        entries: impl IntoIterator<Item = (String, BodyKind, u64)>,
    ) -> Program {
        let decode = |target, name: &str, kind, address, preserved: &PreservedRegs| {
            Body::decode_with(target, image, name, kind, address, preserved)
        };
        Self::build_with(target, image, entries, decode)
    }

    pub(super) fn build_with(
        target: Target,
        image: &Image<'_>,
        entries: impl IntoIterator<Item = (String, BodyKind, u64)>,
        decode: impl Fn(Target, &str, BodyKind, u64, &PreservedRegs) -> Result<Body, Error>,
    ) -> Program {
        let mut program = Program { target, bodies: Vec::new(), by_entry: BTreeMap::new(), undecodable: Vec::new() };
        let mut work: Vec<_> = entries.into_iter().collect();
        // A function has the waves of its callers: where these differ, kernels come first.
        let common = image.common_wave_size();
        if common.is_none() {
            work.sort_by_key(|(_, kind, _)| *kind == BodyKind::Function);
        }
        work.reverse();
        let mut wave_sizes = BTreeMap::new();
        let mut seen = BTreeSet::new();
        loop {
            // Discovery: decoding a body finds what it calls. Those that were asked for come first.
            while let Some((name, kind, address)) = work.pop() {
                if !seen.insert(address) {
                    continue;
                }
                let lanes = image.wave_size(address).or(common).or_else(|| wave_sizes.get(&address).copied());
                let target = lanes.and_then(|lanes| target.with_wave_size(lanes)).unwrap_or(target);
                match decode(target, &name, kind, address, &PreservedRegs::default()) {
                    Ok(body) => {
                        // Entries that were asked for come first, with the kind that was asked for.
                        called(&body, image, &mut wave_sizes).for_each(|function| work.insert(0, function));
                        program.by_entry.insert(address, BodyId(program.bodies.len() as u32));
                        program.bodies.push(body);
                    }
                    Err(error) => program.undecodable.push((name, address, error)),
                }
            }
            program.forget_ambiguous();
            // Until here a call left no register alone. What its function is seen to leave alone may tell where the
            // next one goes, and that more of who calls it: what follows is right as what was there before is, and ends
            // with the unknown places.
            for id in program.knows_more(&decode) {
                work.extend(called(program.body(id), image, &mut wave_sizes));
            }
            if work.iter().all(|(_, _, address)| seen.contains(address)) {
                return program;
            }
        }
    }

    /// Decodes again what calls known and unknown places, given what is known of functions, until no place becomes
    /// known; tells which bodies changed.
    fn knows_more(
        &mut self,
        decode: &impl Fn(Target, &str, BodyKind, u64, &PreservedRegs) -> Result<Body, Error>,
    ) -> BTreeSet<BodyId> {
        let mut changed = BTreeSet::new();
        loop {
            let calls_both = |id: &BodyId| {
                unknown_places(self.body(*id)) > 0 && self.call_sites(*id).any(|(_, callee)| callee.is_some())
            };
            let callers: Vec<BodyId> = self.ids().filter(calls_both).collect();
            if callers.is_empty() {
                return changed;
            }
            let preserved = self.preserved(&callers);
            let mut more = false;
            for id in callers {
                let body = self.body(id);
                // What cannot be decoded with what more is known is what it was.
                let Ok(again) = decode(body.target(), body.name(), body.kind(), body.entry_address(), &preserved)
                else {
                    continue;
                };
                if unknown_places(&again) < unknown_places(body) {
                    self.bodies[id.index()] = again;
                    changed.insert(id);
                    more = true;
                }
            }
            if !more {
                return changed;
            }
        }
    }

    /// Decodes a body as it is in another image: one with the same code, and other entries. What functions leave alone
    /// is as it is here.
    ///
    /// # Errors
    /// As [`Body::decode`].
    pub fn decode_in(&self, image: &Image<'_>, id: BodyId) -> Result<Body, Error> {
        let body = self.body(id);
        let within: Vec<BodyId> = std::iter::once(id).chain(self.callees(id).bodies).collect();
        Body::decode_with(
            body.target(),
            image,
            body.name(),
            body.kind(),
            body.entry_address(),
            &self.preserved(&within),
        )
    }

    /// What functions that these bodies call leave alone, with all that they call; a function of which not all is known
    /// is not there.
    fn preserved(&self, callers: &[BodyId]) -> PreservedRegs {
        let functions: BTreeSet<BodyId> =
            callers.iter().flat_map(|id| self.call_sites(*id).filter_map(|(_, callee)| callee)).collect();
        let mut own: BTreeMap<BodyId, u128> = BTreeMap::new();
        let mut own_of = |id: BodyId| *own.entry(id).or_insert_with(|| preserved_by(self.body(id)));
        let all = functions.into_iter().filter_map(|id| {
            let callees = self.callees(id);
            let preserved = callees.bodies.into_iter().fold(own_of(id), |preserved, callee| preserved & own_of(callee));
            (!callees.unknown && preserved != 0).then_some((self.body(id).entry_address(), preserved))
        });
        all.collect()
    }

    /// Functions that waves of different sizes call mean different things to these: calls of them count as unknown.
    fn forget_ambiguous(&mut self) {
        let callers =
            self.bodies.iter().flat_map(|body| body.calls().map(|(_, target)| (body.target().wave_size(), target)));
        let ambiguous: BTreeSet<u64> = callers
            .filter_map(|(lanes, target)| {
                let CallTarget::Known(address) = target else { return None };
                (self.body(self.at(address)?).target().wave_size() != lanes).then_some(address)
            })
            .collect();
        for address in ambiguous {
            if let Some(id) = self.by_entry.remove(&address) {
                let error = Error::unsupported("wave32 and wave64 code calls it").at(address);
                self.undecodable.push((self.body(id).name().to_owned(), address, error));
            }
        }
    }

    /// The processor. Its bodies may have waves of another size, see [`Body::target`].
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// All bodies.
    #[must_use]
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// All body indices.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = BodyId> + use<> {
        (0..self.bodies.len() as u32).map(BodyId)
    }

    /// One body.
    ///
    /// # Panics
    /// If `id` is not of this program.
    #[must_use]
    pub fn body(&self, id: BodyId) -> &Body {
        &self.bodies[id.index()]
    }

    /// The body that is entered at `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<BodyId> {
        self.by_entry.get(&address).copied()
    }

    /// The body of this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<BodyId> {
        self.ids().find(|id| self.body(*id).name() == name)
    }

    /// Kernels and functions that cannot be decoded: name, entry address and why.
    #[must_use]
    pub fn undecodable(&self) -> &[(String, u64, Error)] {
        &self.undecodable
    }

    /// The body that a call enters, if that is known and could be decoded.
    #[must_use]
    pub fn callee(&self, target: CallTarget) -> Option<BodyId> {
        match target {
            CallTarget::Known(address) => self.at(address),
            CallTarget::Unknown => None,
        }
    }

    /// The calls of a body, tail calls included: where, and which body; none where that is unknown.
    pub fn call_sites(&self, id: BodyId) -> impl Iterator<Item = (InstId, Option<BodyId>)> + '_ {
        self.body(id).calls().map(|(inst, target)| (inst, self.callee(target)))
    }

    /// Everything that `id` can execute besides its own instructions.
    #[must_use]
    pub fn callees(&self, id: BodyId) -> Callees {
        let mut reached = BTreeSet::new();
        let mut unknown = false;
        let mut work = vec![id];
        // Reachability.
        while let Some(caller) = work.pop() {
            unknown |= self.body(caller).jumps_away();
            for (_, callee) in self.call_sites(caller) {
                match callee {
                    Some(callee) if reached.insert(callee) => work.push(callee),
                    Some(_) => {}
                    None => unknown = true,
                }
            }
        }
        Callees { bodies: reached.into_iter().collect(), unknown }
    }

    /// Whether a function that is called here cannot return: no path of it, or of those that it ends by going to,
    /// returns.
    #[must_use]
    pub fn never_returns(&self, target: CallTarget) -> bool {
        let mut seen = BTreeSet::new();
        let mut work = vec![target];
        // Reachability: the search ends at the first return.
        while let Some(target) = work.pop() {
            let Some(id) = self.callee(target) else { return false };
            if !seen.insert(id) {
                continue;
            }
            let body = self.body(id);
            if body.jumps_away() || body.ids().any(|inst| body.flow(inst) == Flow::Return) {
                return false;
            }
            let last = body.calls().filter(|(inst, _)| matches!(body.flow(*inst), Flow::TailCall(_)));
            work.extend(last.chain(body.last_calls()).map(|(_, target)| target));
        }
        true
    }

    /// The first call of a body that nothing follows although what it calls may return, or is not known.
    #[must_use]
    pub fn runs_past_its_end(&self, body: &Body) -> Option<InstId> {
        body.last_calls().find(|(_, target)| !self.never_returns(*target)).map(|(inst, _)| inst)
    }

    /// Whether some body calls or jumps to an unknown place.
    #[must_use]
    pub fn has_unknown_calls(&self) -> bool {
        self.ids().any(|id| self.body(id).jumps_away() || self.call_sites(id).any(|(_, callee)| callee.is_none()))
    }

    /// Whether it is one body that calls nothing and goes nowhere else: what is known of it does not depend on other
    /// code of its object.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        let calls_nothing = |body: &Body| body.calls().next().is_none() && !body.jumps_away();
        self.undecodable.is_empty() && self.bodies.len() == 1 && self.bodies.iter().all(calls_nothing)
    }
}

/// Places that a body calls or jumps to, and nothing says which.
fn unknown_places(body: &Body) -> usize {
    body.ids().filter(|id| matches!(body.flow(*id), Flow::Call(CallTarget::Unknown) | Flow::IndirectJump)).count()
}

/// The functions that a body calls, as entries; they have the waves of the body if nothing else has told already.
fn called(
    body: &Body,
    image: &Image<'_>,
    wave_sizes: &mut BTreeMap<u64, u32>,
) -> impl Iterator<Item = (String, BodyKind, u64)> {
    body.calls().filter_map(|(_, call)| {
        let CallTarget::Known(to) = call else { return None };
        wave_sizes.entry(to).or_insert(body.target().wave_size());
        let name = image.entry_name(to).map_or_else(|| format!("function_at_{to:#x}"), str::to_owned);
        Some((name, BodyKind::Function, to))
    })
}
