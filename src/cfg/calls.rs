//! A whole code object's code: every kernel and function, and who calls whom.

use std::collections::BTreeMap;

use crate::entity::InstId;
use crate::error::Error;
use crate::isa::Target;
use crate::kernel::{Body, BodyKind, CallTarget, Flow, Image};

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
    /// Whether any function at all may be called: some call or jump goes to an unknown place, or to code that cannot be decoded.
    pub unknown: bool,
}

/// The code of one code object: its kernels, its functions, those only found because they are called, and the call graph.
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
    pub fn build(target: Target, image: &Image<'_>, entries: impl IntoIterator<Item = (String, BodyKind, u64)>) -> Program {
        let decode = |target, name: &str, kind, address| Body::decode(target, image, name, kind, address);
        Self::build_with(target, image, entries, decode)
    }

    pub(super) fn build_with(
        target: Target,
        image: &Image<'_>,
        entries: impl IntoIterator<Item = (String, BodyKind, u64)>,
        decode: impl Fn(Target, &str, BodyKind, u64) -> Result<Body, Error>,
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
        let mut seen = std::collections::BTreeSet::new();
        while let Some((name, kind, address)) = work.pop() {
            if !seen.insert(address) {
                continue;
            }
            let lanes = image.wave_size(address).or(common).or_else(|| wave_sizes.get(&address).copied());
            let target = lanes.and_then(|lanes| target.with_wave_size(lanes)).unwrap_or(target);
            match decode(target, &name, kind, address) {
                Ok(body) => {
                    for (_, call) in body.calls() {
                        if let CallTarget::Known(to) = call {
                            wave_sizes.entry(to).or_insert(target.wave_size());
                            let name = image.entry_name(to).map_or_else(|| format!("function_at_{to:#x}"), str::to_owned);
                            // Entries that were asked for come first, with the kind that was asked for.
                            work.insert(0, (name, BodyKind::Function, to));
                        }
                    }
                    let id = BodyId(program.bodies.len() as u32);
                    program.by_entry.insert(address, id);
                    program.bodies.push(body);
                }
                Err(error) => program.undecodable.push((name, address, error)),
            }
        }
        program.forget_ambiguous();
        program
    }

    /// Functions that waves of different sizes call mean different things to these: calls of them count as unknown.
    fn forget_ambiguous(&mut self) {
        let callers = self.bodies.iter().flat_map(|body| body.calls().map(|(_, target)| (body.target().wave_size(), target)));
        let ambiguous: std::collections::BTreeSet<u64> = callers
            .filter_map(|(lanes, target)| {
                let CallTarget::Known(address) = target else { return None };
                (self.body(self.at(address)?).target().wave_size() != lanes).then_some(address)
            })
            .collect();
        for address in ambiguous {
            if let Some(id) = self.by_entry.remove(&address) {
                let error = Error::unsupported("waves of 32 and of 64 lanes call it").at(address);
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
        let mut reached = std::collections::BTreeSet::new();
        let mut unknown = false;
        let mut work = vec![id];
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

    /// Whether a function that is called here cannot come back: no path of it, or of those that it ends by going to, returns.
    #[must_use]
    pub fn never_returns(&self, target: CallTarget) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        let mut work = vec![target];
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

    /// The first call of a body that nothing is behind although what it calls may come back, or is not known.
    #[must_use]
    pub fn runs_past_its_end(&self, body: &Body) -> Option<InstId> {
        body.last_calls().find(|(_, target)| !self.never_returns(*target)).map(|(inst, _)| inst)
    }

    /// Whether some body calls or jumps to an unknown place.
    #[must_use]
    pub fn has_unknown_calls(&self) -> bool {
        self.ids().any(|id| self.body(id).jumps_away() || self.call_sites(id).any(|(_, callee)| callee.is_none()))
    }

    /// Whether it is one body that calls nothing and goes nowhere else: what is known of it does not depend on other code of its object.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        let calls_nothing = |body: &Body| body.calls().next().is_none() && !body.jumps_away();
        self.undecodable.is_empty() && self.bodies.len() == 1 && self.bodies.iter().all(calls_nothing)
    }
}
