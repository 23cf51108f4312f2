//! The kernels of a program, by name.

use std::collections::BTreeMap;

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_object::selection::bare_name;
use wavetap_report::disassembly::KernelFacts;
use wavetap_report::inspect::Inspected;

use super::Program;

/// Names that an error lists at most.
const LISTED: usize = 8;

/// A kernel of a program, for all processors that there is code for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProgramKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Its code for each processor, in the order of the file.
    pub versions: Vec<KernelVersion>,
}

/// A kernel's code for one processor.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelVersion {
    /// Target id: `gfx90a`, `gfx942:xnack-`.
    pub target: String,
    /// The bundle and its entry that the code is in (`0.2`); empty for a code object by itself.
    pub id: String,
    /// MD5 of the code object, which joins it with profiles.
    pub object: String,
    /// Virtual address of the kernel's first instruction.
    pub entry: u64,
    /// Bytes of code.
    pub code_bytes: u64,
    /// Registers, LDS, scratch, occupancy.
    pub facts: KernelFacts,
}

impl ProgramKernel {
    /// Whether this is its name: mangled, demangled, or demangled without parameters and return type.
    ///
    /// ```
    /// # use wavetap::Program;
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/vectoradd");
    /// let kernel = Program::open(path)?.kernel("vectoradd")?;
    /// assert_eq!(kernel.name, "_Z9vectoraddPKfS0_Pfi");
    /// assert!(kernel.is_named(&kernel.name) && kernel.is_named(&kernel.demangled));
    /// # Ok::<(), wavetap::Error>(())
    /// ```
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        [&*self.name, &*self.demangled, bare_name(&self.demangled)].contains(&name)
    }

    /// Its code for a target (`gfx90a`).
    ///
    /// # Errors
    /// Unsupported if there is none, or code for several variants of the target: which there is.
    pub fn on(&self, target: &str) -> Result<&KernelVersion> {
        let selection = wavetap_object::selection::Selection { kernels: Vec::new(), targets: vec![target.to_owned()] };
        let mut fitting = self.versions.iter().filter(|version| selection.has_target(&version.target));
        let all = || self.versions.iter().map(|version| version.target.as_str()).collect::<Vec<_>>().join(", ");
        match (fitting.next(), fitting.next()) {
            (Some(version), None) => Ok(version),
            (None, _) => Err(Error::unsupported(format!("no code for {target:?}; there is code for {}", all()))),
            (Some(_), Some(_)) => {
                Err(Error::unsupported(format!("several variants of {target:?}; there is code for {}", all())))
            }
        }
        .within(|| format!("kernel {}", self.demangled))
    }
}

impl Program {
    /// All kernels, in the order in which the file has them. A code object that cannot be read has none; see
    /// [`Program::inspect`] for what is wrong with it.
    ///
    /// # Errors
    /// Malformed if the file breaks its format.
    pub fn kernels(&self) -> Result<Vec<ProgramKernel>> {
        let mut kernels: Vec<ProgramKernel> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for object in self.inspect(&Inspected::default())?.objects {
            for kernel in object.kernels {
                let place = *places.entry(kernel.name.clone()).or_insert(kernels.len());
                if place == kernels.len() {
                    let (name, demangled) = (kernel.name, kernel.demangled);
                    kernels.push(ProgramKernel { name, demangled, versions: Vec::new() });
                }
                kernels[place].versions.push(KernelVersion {
                    target: object.target.clone(),
                    id: object.id.clone(),
                    object: object.digest.clone(),
                    entry: kernel.entry,
                    code_bytes: kernel.code_bytes,
                    facts: kernel.facts,
                });
            }
        }
        Ok(kernels)
    }

    /// The kernel of this name: mangled, demangled, or demangled without parameters and return type.
    ///
    /// # Errors
    /// Malformed if the file breaks its format; unsupported if no kernel has this name, or several have (overloads and
    /// instances of a template): which there are.
    pub fn kernel(&self, name: &str) -> Result<ProgramKernel> {
        let kernels = self.kernels()?;
        let list = |kernels: &[&ProgramKernel]| {
            let names: Vec<&str> = kernels.iter().take(LISTED).map(|kernel| kernel.demangled.as_str()).collect();
            let more = kernels.len().saturating_sub(LISTED);
            if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
        };
        let found: Vec<&ProgramKernel> = kernels.iter().filter(|kernel| kernel.is_named(name)).collect();
        let problem = match &found[..] {
            [one] => return Ok((*one).clone()),
            [] if kernels.is_empty() => "there is no kernel".to_owned(),
            [] => format!("no kernel is called {name:?}; there are {}", list(&kernels.iter().collect::<Vec<_>>())),
            several => format!("several kernels are called {name:?}: {}", list(several)),
        };
        Err(Error::unsupported(problem).within(self.path().display().to_string()))
    }
}
