//! What a person asks of the pipeline.

use wavetap_base::glob;
use wavetap_instrument::ProbeKind;
use wavetap_object::code_object::{Kernel, demangle};
use wavetap_object::emit::Packing;
use wavetap_object::offload_bundle::TargetId;

/// Where counters live while a kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Counters {
    /// LDS, unless memory lets more waves run (with workgroups of the best size), or the kernel's launches may need the
    /// LDS themselves.
    #[default]
    Auto,
    /// LDS.
    Lds,
    /// Memory.
    Global,
    /// Registers.
    Register,
}

impl Counters {
    /// Its name, as in `--counters`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Counters::Auto => "auto",
            Counters::Lds => "lds",
            Counters::Global => "global",
            Counters::Register => "register",
        }
    }
}

/// How to rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What to measure; nothing leaves the input as it is.
    pub probes: Vec<ProbeKind>,
    /// Where the counters live.
    pub counters: Counters,
    /// Which kernels.
    pub selection: Selection,
    /// How changed bundles are written.
    pub packing: Packing,
    /// How many of a SIMD's waves a kernel may lose to its counters, at most; any number if not said. A kernel that
    /// would lose more is refused.
    pub max_occupancy_loss: Option<u32>,
    /// Whether the maps that are given back have the addresses of every instruction. They are inside the rewritten code
    /// objects in any case, and for large inputs need more memory than the code.
    pub keep_addresses: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            probes: Vec::new(),
            counters: Counters::default(),
            selection: Selection::default(),
            packing: Packing::default(),
            max_occupancy_loss: None,
            keep_addresses: true,
        }
    }
}

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
    /// use wavetap::pipeline::Selection;
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

/// `ns::reduce<float>` of `void ns::reduce<float>(float*, int)`.
fn bare_name(demangled: &str) -> &str {
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
    fn selection_by_target() {
        let selection = |target: &str| Selection { targets: vec![target.to_owned()], ..Selection::default() };
        assert!(Selection::default().has_target("gfx90a:xnack+"));
        assert!(selection("gfx90a").has_target("gfx90a:xnack+"));
        assert!(selection("gfx90a:xnack+").has_target("gfx90a:xnack+"));
        assert!(!selection("gfx90a:xnack-").has_target("gfx90a:xnack+"));
        assert!(!selection("gfx906").has_target("gfx90a"));
    }
}
