//! In which ways the kernels are compiled, and trials of the kernels of a source in one of them.

use std::path::PathBuf;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use wavetap::isa::Target;

use super::{miscompiled, sources};
use crate::Failure;
use crate::kernels::build::{self, Sources, Variant};
use crate::kernels::{Buffers, Reference, Test};

/// A source, and how it is compiled.
pub struct Compiled {
    /// For people: source and way.
    pub name: String,
    /// The sources that it is of.
    pub sources: Sources,
    /// Which.
    pub file: PathBuf,
    /// How.
    pub variant: Variant,
}

/// A target of each kind as the quick runs compile for it: wave size, level, code object version.
const EACH_KIND: &[(&str, u32, &str, u8)] = &[
    ("gfx803", 64, "O2", 4),
    ("gfx906", 64, "O2", 4),
    ("gfx90a", 64, "O2", 5),
    ("gfx942", 64, "O3", 5),
    ("gfx1030", 32, "O2", 5),
    ("gfx1100", 32, "O3", 5),
    ("gfx1201", 32, "O2", 5),
    ("gfx1250", 32, "O2", 6),
];
/// Levels of each target in the full runs.
const LEVELS: [&str; 3] = ["O1", "O0", "O3"];

/// A level for a target, in a version of code objects in which that is right.
#[must_use]
pub fn variant(target: Target, level: &'static str) -> Variant {
    let version = match target.name() {
        // They came with the sixth version.
        name if name.ends_with("-generic") => 6,
        // Without optimisation, clang 19's functions have no pointer to the hidden arguments there that the fifth
        // version would read.
        name if name.starts_with("gfx8") && level == "O0" => 4,
        _ => 5,
    };
    Variant { target, level, version }
}

/// The ways in which kernels are compiled that run on the emulator as they are: in the full run for each target and
/// wave size at several levels, in the quick one for a target of each kind. `WAVETAP_KERNEL_TARGETS` chooses.
///
/// # Errors
/// If there is no compiler.
pub fn variants() -> Result<Vec<Variant>, Failure> {
    let known = build::known_processors()?;
    let mut variants = Vec::new();
    let targets = Target::all().filter(|target| target.emulated() && known.contains(target.name()));
    for target in targets.filter(|target| crate::chosen(target.name())) {
        for target in [64, 32].into_iter().filter_map(|lanes| target.with_wave_size(lanes)) {
            if crate::full() {
                variants.extend(LEVELS.map(|level| variant(target, level)));
            } else {
                let is_it = |way: &&(&str, u32, &str, u8)| (way.0, way.1) == (target.name(), target.wave_size());
                let quick = EACH_KIND.iter().filter(is_it);
                variants.extend(quick.map(|&(_, _, level, version)| Variant { target, level, version }));
            }
        }
    }
    Ok(variants)
}

/// The written and the made-up sources, compiled in these ways; in the quick run of the made-up ones another for each
/// way.
///
/// # Errors
/// If there are none.
pub fn compiled(variants: Vec<Variant>) -> Result<Vec<Compiled>, Failure> {
    let (written, made_up) = (Sources::written()?, sources()?);
    let mut all = Vec::new();
    for (n, variant) in variants.into_iter().enumerate() {
        let count = made_up.files().len();
        let some: Vec<usize> = if crate::full() { (0..count).collect() } else { vec![n * 7 % count] };
        let written = written.files().iter().map(|file| (&written, file));
        for (sources, file) in written.chain(some.into_iter().map(|n| (&made_up, &made_up.files()[n]))) {
            let name = format!("{} {variant}", file.file_stem().unwrap_or_default().to_string_lossy());
            all.push(Compiled { name, sources: sources.clone(), file: file.clone(), variant });
        }
    }
    Ok(all)
}

impl Compiled {
    /// Compiles it.
    ///
    /// # Errors
    /// If that fails, or the CPU's program does.
    pub fn build(&self) -> Result<Built, Failure> {
        Ok(Built {
            object: build::object_of(&self.file, self.variant)?,
            variant: self.variant,
            reference: self.sources.reference(self.variant.target.wave_size())?,
            file: self.file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            only: std::env::var("WAVETAP_KERNEL").unwrap_or_default(),
        })
    }

    /// A trial: whether `run` is content with it.
    pub fn trial(self, run: impl FnOnce(&Built) -> Result<(), Failure> + Send + 'static) -> Trial {
        Trial::test(self.name.clone(), move || run(&self.build()?).map_err(Failed::from))
    }
}

/// The kernels of a source, compiled in one way, and what the CPU made of them.
pub struct Built {
    /// The code object.
    pub object: Vec<u8>,
    /// How it was compiled.
    pub variant: Variant,
    reference: Arc<Reference>,
    file: String,
    /// What is in the names of the kernels that are tried.
    only: String,
}

impl Built {
    /// Tries each kernel that the target has and `WAVETAP_KERNEL` chooses; but for those that the compiler makes wrong
    /// code of.
    ///
    /// # Errors
    /// What is wrong with any of them.
    pub fn each(&self, mut check: impl FnMut(&Test, &Buffers) -> Result<(), Failure>) -> Result<(), Failure> {
        self.each_even_miscompiled(|test, buffers| {
            if miscompiled(&test.name, self.variant).is_some() { Ok(()) } else { check(test, buffers) }
        })
    }

    /// [`Built::each`], those with wrong code as well.
    ///
    /// # Errors
    /// As there.
    pub fn each_even_miscompiled(
        &self,
        mut check: impl FnMut(&Test, &Buffers) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let processor = self.variant.target.name();
        let mut wrong = Vec::new();
        for test in self.reference.tests.iter().filter(|test| test.file == self.file && test.runs_on(processor)) {
            if !test.name.contains(&self.only) {
                continue;
            }
            if let Err(failure) = check(test, &self.reference.buffers(test)?) {
                let name = &test.name;
                wrong.push(format!(
                    "{name} (alone: WAVETAP_KERNEL={name} WAVETAP_KERNEL_TARGETS={processor}): {failure}"
                ));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("{}:\n{}", self.variant, wrong.join("\n"))) }
    }
}
