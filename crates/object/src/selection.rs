//! Which code objects and kernels of an input are meant: by patterns of names, by targets, by entries of bundles.

use std::collections::BTreeSet;

use crate::code_object::{CodeObject, Kernel, demangle};
use crate::offload_bundle::{EntryPlace, Found, Input, TargetId};
use wavetap_base::error::{Error, Result};
use wavetap_base::{glob, nearest};

/// Which kernels of which code objects. The default selects all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Patterns of kernel names, any of which has to match; none selects every kernel.
    pub kernels: Vec<String>,
    /// Targets (`gfx90a`, `gfx90a:xnack-`), any of which has to match; none selects every target.
    pub targets: Vec<String>,
}

impl Selection {
    /// Whether the kernel with this mangled name is selected.
    ///
    /// A pattern is compared with the mangled name, the demangled name, and the demangled name without its parameters
    /// and return type.
    ///
    /// ```
    /// use wavetap_object::selection::Selection;
    ///
    /// let selection = Selection { kernels: vec!["reduce*".into()], ..Selection::default() };
    /// assert!(selection.has_kernel("_Z10reduce_sumPfi"));
    /// assert!(!selection.has_kernel("_Z4scanPfi"));
    /// ```
    #[must_use]
    pub fn has_kernel(&self, mangled: &str) -> bool {
        if self.kernels.is_empty() {
            return true;
        }
        let demangled = demangle(mangled);
        let bare = bare_name(&demangled);
        self.kernels.iter().any(|pattern| [mangled, &demangled, bare].iter().any(|name| glob::matches(pattern, name)))
    }

    /// Whether a kernel is selected: by the name of its descriptor's symbol, or by the one that its metadata gives it,
    /// where that is another.
    #[must_use]
    pub fn has(&self, kernel: &Kernel) -> bool {
        let other = kernel.metadata.as_ref().map(|metadata| metadata.name.as_str()).filter(|name| *name != kernel.name);
        self.has_kernel(&kernel.name) || other.is_some_and(|name| self.has_kernel(name))
    }

    /// The selection of the kernels that match one pattern, of whatever target.
    #[must_use]
    pub fn of_kernel(pattern: &str) -> Selection {
        Selection { kernels: vec![pattern.to_owned()], targets: Vec::new() }
    }

    /// Refuses patterns that match none of these kernels, by their mangled names.
    ///
    /// # Errors
    /// Malformed, naming kernels near the pattern.
    pub fn check_kernels(&self, names: &[&str]) -> Result<()> {
        let matches = |pattern: &str| {
            let one = Selection::of_kernel(pattern);
            names.iter().any(|name| one.has_kernel(name))
        };
        self.kernels.iter().find(|pattern| !matches(pattern)).map_or(Ok(()), |pattern| Err(no_kernel(pattern, names)))
    }

    /// Refuses patterns that match no kernel of the selected code objects of an input, entries that it does not have
    /// and targets for which it has no code. Where a code object cannot be read, a pattern may mean one of its kernels.
    ///
    /// # Errors
    /// Malformed, naming what there is.
    pub fn check(&self, input: &Input<'_>, entries: &[String]) -> Result<()> {
        let objects = self.objects(input, entries)?;
        let mut missing: Vec<&String> = self.kernels.iter().collect();
        let mut names: BTreeSet<String> = BTreeSet::new();
        for found in &objects {
            if missing.is_empty() {
                break;
            }
            let Ok(code) = CodeObject::parse(found.bytes) else { return Ok(()) };
            let found: Vec<&str> = code.kernel_names().collect();
            missing.retain(|pattern| {
                let one = Selection::of_kernel(pattern);
                !found.iter().any(|name| one.has_kernel(name))
            });
            names.extend(found.into_iter().map(str::to_owned));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        missing.first().map_or(Ok(()), |pattern| Err(no_kernel(pattern, &names)))
    }

    /// The code objects of an input that the HIP runtime will see, or, of all that it has, those of the entries with
    /// these ids (`0.2`); of these the ones for selected targets.
    ///
    /// # Errors
    /// Malformed if an id or a target selects nothing.
    pub fn objects<'i>(&self, input: &'i Input<'_>, entries: &[String]) -> Result<Vec<Found<'i>>> {
        let mut objects: Vec<Found<'i>> = if entries.is_empty() {
            input.code_objects().collect()
        } else {
            let all: Vec<Found<'i>> =
                if input.bundles.is_empty() { input.code_objects().collect() } else { input.bundled().collect() };
            if let Some(missing) = entries.iter().find(|id| !all.iter().any(|found| found.id() == **id)) {
                let ids: Vec<String> = all.iter().map(Found::id).collect();
                return Err(Error::malformed(format!(
                    "no code object {missing:?} (bundle.entry); there are {}",
                    ids.join(", ")
                )));
            }
            all.into_iter().filter(|found| entries.contains(&found.id())).collect()
        };
        if self.targets.is_empty() {
            return Ok(objects);
        }
        let id = |found: &Found<'_>| match found.target {
            Some(target) => Ok(target.to_string()),
            None => Ok::<String, Error>(CodeObject::parse(found.bytes)?.target_id()),
        };
        let ids = objects.iter().map(id).collect::<Result<Vec<String>>>()?;
        for wanted in &self.targets {
            let one = Selection { targets: vec![wanted.clone()], ..Selection::default() };
            if !ids.iter().any(|id| one.has_target(id)) {
                let mut existing = ids.clone();
                existing.sort();
                existing.dedup();
                let message = format!("no code for {wanted:?}; there is code for {}", existing.join(", "));
                return Err(Error::malformed(message));
            }
        }
        let mut ids = ids.iter();
        objects.retain(|_| ids.next().is_some_and(|id| self.has_target(id)));
        Ok(objects)
    }

    /// Whether code objects for this target id are selected. A pattern that names fewer features matches more.
    #[must_use]
    pub fn has_target(&self, target: &str) -> bool {
        let Some(id) = TargetId::parse(target) else { return self.targets.is_empty() };
        let agrees = |wanted: Option<bool>, found: Option<bool>| wanted.is_none() || wanted == found;
        self.targets.is_empty()
            || self.targets.iter().filter_map(|wanted| TargetId::parse(wanted)).any(|wanted| {
                wanted.processor == id.processor && agrees(wanted.xnack, id.xnack) && agrees(wanted.sramecc, id.sramecc)
            })
    }
}

/// The error of a pattern that matches none of these kernels.
#[must_use]
pub fn no_kernel(pattern: &str, mangled: &[&str]) -> Error {
    Error::malformed(format!("no kernel matches {pattern:?} ({})", near(pattern, mangled)))
}

/// What there is in place of what a pattern means: demangled names without parameters.
#[must_use]
pub fn near(pattern: &str, mangled: &[&str]) -> String {
    let demangled: Vec<_> = mangled.iter().map(|name| demangle(name)).collect();
    let bare: Vec<&str> = demangled.iter().map(|name| bare_name(name)).collect();
    let wanted: String = pattern.chars().filter(|c| !"*?".contains(*c)).collect();
    nearest::hint(bare_name(&wanted), &bare, "`wavetap inspect` lists all")
}

/// A code object that was found in an input, its tables read.
#[derive(Debug)]
pub struct Opened<'i> {
    /// Where it is; none when the input is the code object itself.
    pub place: Option<EntryPlace>,
    /// The target id it was bundled under, or its own.
    pub target_id: String,
    /// Its bytes.
    pub bytes: &'i [u8],
    /// Symbols, descriptors, metadata.
    pub code: CodeObject<'i>,
}

impl<'i> Opened<'i> {
    /// Reads the tables of a code object.
    ///
    /// # Errors
    /// As [`CodeObject::parse`].
    pub fn open(found: &Found<'i>) -> Result<Opened<'i>> {
        let code = CodeObject::parse(found.bytes)?;
        Ok(Opened { place: found.place, target_id: found.target_id(&code), bytes: found.bytes, code })
    }
}

impl Found<'_> {
    /// The id it was bundled under, or that of the code object that it is.
    #[must_use]
    pub fn target_id(&self, code: &CodeObject<'_>) -> String {
        self.target.map_or_else(|| code.target_id(), ToString::to_string)
    }
}

/// A demangled name without its parameters and return type: `ns::reduce<float>` of
/// `void ns::reduce<float>(float*, int)`.
#[must_use]
pub fn bare_name(demangled: &str) -> &str {
    // Parameters begin at the first parenthesis outside of template arguments and `(anonymous namespace)`.
    let mut depth = 0_u32;
    let mut end = demangled.len();
    for (at, c) in demangled.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !demangled[at..].starts_with("(anonymous namespace)") => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let name = &demangled[..end];
    // A template's return type stands in front.
    let mut depth = 0_u32;
    let mut start = 0;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &name[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_parameters() {
        for (name, bare) in [
            ("reduce(float*, int)", "reduce"),
            ("void ns::reduce<float, (int)4>(float*)", "ns::reduce<float, (int)4>"),
            ("(anonymous namespace)::k(int)", "(anonymous namespace)::k"),
            ("plain", "plain"),
        ] {
            assert_eq!(bare_name(name), bare);
        }
    }

    #[test]
    fn selection_by_any_form_of_the_name() {
        for pattern in ["_Z6reducePfi", "reduce", "reduce(float*, int)", "red*", "*float*"] {
            let selection = Selection { kernels: vec![pattern.to_owned()], ..Selection::default() };
            assert!(selection.has_kernel("_Z6reducePfi"), "{pattern}");
        }
        let selection = Selection { kernels: vec!["educ".to_owned(), "reduce2".to_owned()], ..Selection::default() };
        assert!(!selection.has_kernel("_Z6reducePfi"));
    }

    #[test]
    fn patterns_that_match_nothing_are_refused_with_names_near_them() {
        let names = ["_Z6reducePfi", "_ZN2ns4scanIfEEvPT_"];
        let check = |patterns: &[&str]| {
            let kernels = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            Selection { kernels, targets: Vec::new() }.check_kernels(&names).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&["red*", "ns::scan<float>"]), Ok(()));
        let error = "no kernel matches \"redcue*\" (there are reduce, ns::scan<float>)";
        assert_eq!(check(&["*scan*", "redcue*"]), Err(error.to_owned()));
    }

    #[test]
    fn selection_by_target() {
        let selection = |target: &str| Selection { targets: vec![target.to_owned()], ..Selection::default() };
        assert!(Selection::default().has_target("gfx90a:xnack+"));
        assert!(selection("gfx90a").has_target("gfx90a:xnack+"));
        assert!(selection("gfx90a:xnack+").has_target("gfx90a:xnack+"));
        assert!(!selection("gfx90a:xnack-").has_target("gfx90a:xnack+"));
        assert!(!selection("gfx906").has_target("gfx90a"));
    }
}
