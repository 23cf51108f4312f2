//! Which of the two places of a race is named first, whichever of them a run came to first.

use super::{AccessKind, Class, CodePlace, Finding};

impl Finding {
    /// Has the place that writes named first of a race between two places in kernels. Of two that write, the one whose
    /// source file and line, kernel and address come first is named first. What is found at the same places in another
    /// order of waves, or for another target, then has them in the same order.
    pub fn order_ends(&mut self) {
        let is_race = matches!(self.class, Class::LdsRace | Class::GlobalRace | Class::StreamRace | Class::SameValue);
        if let (true, Some(access), Some(at), Some(other)) = (is_race, &mut self.access, &mut self.at, &mut self.other)
            && let Some(other_at) = &mut other.at
            && key(other.kind, other_at) < key(access.kind, at)
        {
            std::mem::swap(at, other_at);
            std::mem::swap(&mut access.kind, &mut other.kind);
            std::mem::swap(&mut self.by, &mut other.by);
            other.later = !other.later;
        } else {
            return;
        }
        if let Some(message) = self.message_of_ends() {
            self.message = message;
        }
    }

    /// What is wrong, with the two accesses in the order in which they are named.
    fn message_of_ends(&self) -> Option<String> {
        let (access, other) = (self.access.as_ref()?, self.other.as_ref()?);
        let address = &access.address;
        let what = if self.class == Class::LdsRace { format!("byte {address} of LDS") } else { address.clone() };
        let whom = match (&self.by, &other.by) {
            (Some(by), Some(of)) if by.launch != of.launch => format!(" of launch {}", of.launch),
            (Some(by), Some(of)) if by.workgroup != of.workgroup => format!(" of workgroup {:?}", of.workgroup),
            (_, Some(of)) => format!(" of wave {}", of.wave),
            (_, None) => String::new(),
        };
        let order = if other.later { "before" } else { "after" };
        Some(format!("{} of {what}, not ordered {order} {}{whom}", access.kind, other.kind.with_article()))
    }
}

/// Places are named in the order of these.
fn key(kind: AccessKind, at: &CodePlace) -> (bool, Option<(&str, u32)>, &str, u64) {
    let source = at.source.as_ref().map(|source| (source.file.as_str(), source.line));
    (kind == AccessKind::Load, source, &at.kernel, at.address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Access, Executor, OtherAccess};
    use crate::map::Source;

    fn place(line: u32) -> CodePlace {
        CodePlace {
            kernel: "k".to_owned(),
            address: 4 * u64::from(line),
            instruction: String::new(),
            source: Some(Source { file: "k.hip".to_owned(), line }),
            function: None,
            inlined_at: Vec::new(),
        }
    }

    /// A race that was found by an access at a line, after another one.
    fn race(by: (AccessKind, u32), after: (AccessKind, u32)) -> Finding {
        let wave = |line: u32| Some(Executor { launch: 1, workgroup: [0; 3], wave: line, lanes: Vec::new() });
        let mut finding = Finding::new(Class::LdsRace, "as it was found");
        finding.at = Some(place(by.1));
        finding.by = wave(by.1);
        finding.access = Some(Access { kind: by.0, address: "0x10".to_owned(), size: 1 });
        finding.other = Some(OtherAccess {
            kind: after.0,
            at: Some(place(after.1)),
            by: wave(after.1),
            call: None,
            later: false,
            missing: "a barrier".to_owned(),
        });
        finding
    }

    #[test]
    fn places_do_not_depend_on_which_comes_first() {
        use AccessKind::{Atomic, Load, Store};
        for (first, second) in [
            ((Store, 20), (Atomic, 26)),
            ((Store, 26), (Load, 20)),
            ((Atomic, 26), (Load, 20)),
            ((Store, 20), (Store, 26)),
        ] {
            for (mut finding, swapped) in [(race(first, second), false), (race(second, first), true)] {
                finding.order_ends();
                let other = finding.other.as_ref().expect("another access");
                let lines = [&finding.at, &other.at].map(|at| at.as_ref().expect("a place").source.clone());
                assert_eq!(lines.map(|source| source.expect("a line").line), [first.1, second.1]);
                assert_eq!((finding.access.as_ref().expect("one").kind, other.kind), (first.0, second.0));
                assert_eq!(finding.by.as_ref().map(|by| by.wave), Some(first.1), "with who did it");
                assert_eq!(other.later, swapped);
                let expected = format!(
                    "{} of byte 0x10 of LDS, not ordered before {} of wave {}",
                    first.0,
                    second.0.with_article(),
                    second.1
                );
                assert_eq!(finding.message, if swapped { expected } else { "as it was found".to_owned() });
            }
        }
    }

    #[test]
    fn what_has_one_place_in_a_kernel_stays_as_it_is() {
        let mut finding = race((AccessKind::Load, 26), (AccessKind::Store, 20));
        finding.other.as_mut().expect("another access").at = None;
        let before = finding.clone();
        finding.order_ends();
        assert_eq!(finding, before);
    }
}
