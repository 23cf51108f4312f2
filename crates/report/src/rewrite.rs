//! What a rewrite did, as data and as text.

use serde::{Deserialize, Serialize};

use super::style::Style;
use super::table::{Align, Table, grouped};
use super::text::refused_line;
use wavetap_profile::map::{Candidate, CounterMode, KernelMap, ObjectMap, Refused, Resources, VectorSource};
use wavetap_profile::placement::CounterPlacement;
use wavetap_profile::probes::branches;

/// Schema of a rewrite's summary.
pub const SCHEMA: &str = "wavetap.rewrite/1";
/// Schema of the map file of a whole input.
pub const MAPS_SCHEMA: &str = "wavetap.maps/1";

/// The map file: the maps of all rewritten code objects of one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Maps {
    /// [`MAPS_SCHEMA`].
    pub schema: String,
    /// One map for each code object that was looked at.
    pub objects: Vec<ObjectMap>,
}

/// What a rewrite did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// Kernels that count now.
    pub kernels: Vec<InstrumentedKernel>,
    /// Kernels that were left as they were.
    pub refused: Vec<Refused>,
}

/// A kernel that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstrumentedKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// Where its counters live.
    pub mode: CounterMode,
    /// Of what that was chosen: the fewest predicted cycles of those with which most waves run.
    #[serde(default)]
    pub candidates: Vec<Candidate>,
    /// How many branches it counts.
    pub branches: usize,
    /// How many counters these and all else that it counts have.
    #[serde(default)]
    pub counters: u32,
    /// How many counters a record has, from which those follow; as many where all are kept.
    #[serde(default)]
    pub kept_counters: u32,
    /// The placement that its counters have in place of the one that was asked for, where that takes more work to find
    /// than an analysis may take for code of its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_fallback: Option<CounterPlacement>,
    /// Functions it may call whose branches are not counted.
    pub uncounted_callees: Vec<String>,
    /// Where its probes' vector registers come from.
    #[serde(default)]
    pub vector_registers: VectorSource,
    /// Before.
    pub before: Resources,
    /// After.
    pub after: Resources,
}

impl Maps {
    /// The maps of one input.
    #[must_use]
    pub fn new(objects: Vec<ObjectMap>) -> Maps {
        Maps { schema: MAPS_SCHEMA.to_owned(), objects }
    }
}

impl Summary {
    /// What these maps say.
    #[must_use]
    pub fn of(objects: &[ObjectMap]) -> Summary {
        let counters = |kernel: &KernelMap| kernel.sites.iter().map(|site| site.kind.counters()).sum();
        let kernels = objects.iter().flat_map(|object| {
            object.kernels.iter().map(|kernel| InstrumentedKernel {
                name: kernel.name.clone(),
                demangled: kernel.demangled.clone(),
                target: object.target.clone(),
                mode: kernel.mode,
                candidates: kernel.candidates.clone(),
                branches: kernel.sites.iter().filter(|site| site.kind.probe == branches::PROBE).count(),
                counters: counters(kernel),
                kept_counters: kernel.placement.as_ref().map_or_else(|| counters(kernel), |placement| placement.kept),
                placement_fallback: kernel.placement_fallback,
                uncounted_callees: kernel.uncounted_callees.clone(),
                vector_registers: kernel.vector_registers,
                before: kernel.before,
                after: kernel.after,
            })
        });
        let refused = objects.iter().flat_map(|object| object.refused.iter().cloned());
        Summary { schema: SCHEMA.to_owned(), kernels: kernels.collect(), refused: refused.collect() }
    }

    /// All that these say, in this order.
    #[must_use]
    pub fn join(parts: Vec<Summary>) -> Summary {
        let mut all = Summary::of(&[]);
        for part in parts {
            all.kernels.extend(part.kernels);
            all.refused.extend(part.refused);
        }
        all
    }

    /// As text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut table = Table::new(&[
            ("kernel", Align::Name),
            ("target", Align::Left),
            ("branches", Align::Right),
            ("counters in", Align::Left),
            ("cycles/wave", Align::Right),
            ("code", Align::Right),
            ("SGPRs", Align::Right),
            ("VGPRs", Align::Right),
            ("LDS", Align::Right),
            ("waves/SIMD", Align::Right),
        ]);
        for kernel in &self.kernels {
            let (before, after) = (kernel.before, kernel.after);
            table.row([
                style.name(&kernel.demangled).into_owned(),
                kernel.target.clone(),
                kernel.branches.to_string(),
                kernel.mode.place().to_owned(),
                kernel.added_cycles().map_or_else(String::new, |cycles| format!("+{}", grouped(cycles))),
                change(before.code_bytes, after.code_bytes),
                change(before.sgprs.into(), after.sgprs.into()),
                change(before.vgprs.into(), after.vgprs.into()),
                change(before.lds_bytes.into(), after.lds_bytes.into()),
                change(before.waves_per_simd.into(), after.waves_per_simd.into()),
            ]);
        }
        let mut lines = Vec::new();
        if table.is_empty() {
            lines.push("no kernel was instrumented: the output is the input, byte for byte".to_owned());
        } else {
            lines.extend(table.lines(0, style));
        }
        for kernel in self.kernels.iter().filter(|kernel| !kernel.uncounted_callees.is_empty()) {
            lines.push(format!(
                "{}: not counted: branches within called functions ({})",
                style.name(&kernel.demangled),
                kernel.uncounted_callees.join(", ")
            ));
        }
        lines.extend(
            self.kernels
                .iter()
                .filter_map(|kernel| Some(format!("{}: {}", style.name(&kernel.demangled), moved(kernel)?))),
        );
        lines.extend(
            self.kernels
                .iter()
                .filter_map(|kernel| Some(format!("{}: {}", style.name(&kernel.demangled), chosen(kernel)?))),
        );
        for kernel in &self.kernels {
            if let Some(placement) = kernel.placement_fallback {
                lines.push(format!(
                    "{}: placement {}: fewer counters take more work to find than an analysis may take for its length",
                    style.name(&kernel.demangled),
                    placement.name()
                ));
            }
        }
        if !self.refused.is_empty() {
            lines.push("left uncounted".to_owned());
            lines.extend(self.refused.iter().map(|kernel| refused_line(kernel, style)));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl InstrumentedKernel {
    /// Cycles that its inserted code takes of a wave, as far as that is predicted.
    fn added_cycles(&self) -> Option<u64> {
        self.candidates.iter().find(|candidate| candidate.mode == self.mode)?.added_cycles
    }
}

/// Why its counters are not in registers, where that was tried.
fn chosen(kernel: &InstrumentedKernel) -> Option<String> {
    let registers = kernel.candidates.iter().find(|candidate| candidate.mode == CounterMode::Register)?;
    if kernel.mode == CounterMode::Register {
        return None;
    }
    let waves = |waves: Option<u32>| waves.map_or_else(String::new, |waves| format!("{waves} waves/SIMD, "));
    let why = match (&registers.refused, registers.added_cycles) {
        (Some(refused), _) => refused.clone(),
        (None, Some(cycles)) => format!("{}+{} cycles/wave", waves(registers.waves_per_simd), grouped(cycles)),
        (None, None) => return None,
    };
    Some(format!("counters in {}; in registers: {why}", kernel.mode.place()))
}

/// What its probes cost where no vector register is unused.
fn moved(kernel: &InstrumentedKernel) -> Option<String> {
    const AROUND: &str = "no vector register is unused: around each probe some go to";
    match kernel.vector_registers {
        VectorSource::Unused => None,
        VectorSource::Lanes => Some(format!("{AROUND} scalar registers, a lane at a time")),
        VectorSource::Accumulation => Some(format!("{AROUND} AGPRs")),
        VectorSource::Scratch => {
            let bytes = change(kernel.before.scratch_bytes.into(), kernel.after.scratch_bytes.into());
            Some(format!("{AROUND} scratch memory ({bytes} bytes a work-item)"))
        }
    }
}

/// `24 → 32`, or one number where nothing changed.
fn change(before: u64, after: u64) -> String {
    if before == after { grouped(after) } else { format!("{} → {}", grouped(before), grouped(after)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_without_unused_registers_say_where_theirs_go() {
        let kernel = |vector_registers| InstrumentedKernel {
            name: "k".to_owned(),
            demangled: "k".to_owned(),
            target: "gfx1100".to_owned(),
            mode: CounterMode::Lds,
            candidates: Vec::new(),
            branches: 1,
            counters: 5,
            kept_counters: 2,
            placement_fallback: None,
            uncounted_callees: Vec::new(),
            vector_registers,
            before: Resources { scratch_bytes: 16, ..Resources::default() },
            after: Resources { scratch_bytes: 36, ..Resources::default() },
        };
        let text = |source| {
            let summary = Summary { schema: SCHEMA.to_owned(), kernels: vec![kernel(source)], refused: Vec::new() };
            summary.render(Style::default())
        };
        assert!(!text(VectorSource::Unused).contains("no vector register is unused"));
        let mut over_budget = kernel(VectorSource::Unused);
        over_budget.placement_fallback = Some(CounterPlacement::All);
        let summary = Summary { schema: SCHEMA.to_owned(), kernels: vec![over_budget], refused: Vec::new() };
        assert!(summary.render(Style::default()).contains("k: placement all: fewer counters take more work to find"));
        assert!(text(VectorSource::Lanes).contains("go to scalar registers, a lane at a time\n"));
        assert!(text(VectorSource::Accumulation).contains("go to AGPRs\n"));
        assert!(text(VectorSource::Scratch).contains(
            "k: no vector register is unused: around each probe some go to scratch memory (16 → 36 bytes a work-item)\n"
        ));
    }
}
