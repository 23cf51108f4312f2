//! How exact what the emulator computed in a run is: a class for each instruction that was executed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::hex;
use super::map::Source;
use wavetap_base::error::{Error, Result};

/// Schema of [`FidelityProfile`] as JSON.
pub const SCHEMA: &str = "wavetap.fidelity/1";

/// A choice of the emulator where AMD's manuals say less than an emulator has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Matrix instructions on floats.
    MatrixSums,
    /// Matrix instructions and dot products in formats in which CDNA2 flushes denormals and the emulator does not.
    ProductDenormals,
    /// Matrix instructions on XF32.
    MatrixXf32,
    /// Dot products of floats.
    DotSums,
    /// Functions whose accuracy is in no manual.
    Accuracy,
    /// Rounding by random bits.
    StochasticRounding,
    /// Loads that transpose.
    TransposingLoads,
    /// Atomics that add floats.
    AtomicSums,
    /// Images through a sampler.
    TextureFilter,
    /// Numbers that are fractions in memory.
    Fractions,
    /// Clocks.
    Clocks,
    /// Where a wave runs.
    Placement,
}

impl Choice {
    /// All of them.
    pub const ALL: [Choice; 12] = [
        Choice::MatrixSums,
        Choice::ProductDenormals,
        Choice::MatrixXf32,
        Choice::DotSums,
        Choice::Accuracy,
        Choice::StochasticRounding,
        Choice::TransposingLoads,
        Choice::AtomicSums,
        Choice::TextureFilter,
        Choice::Fractions,
        Choice::Clocks,
        Choice::Placement,
    ];

    /// Its name, by which `docs/reference/fidelity.md` explains it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Choice::MatrixSums => "matrix-sums",
            Choice::ProductDenormals => "product-denormals",
            Choice::MatrixXf32 => "matrix-xf32",
            Choice::DotSums => "dot-sums",
            Choice::Accuracy => "accuracy",
            Choice::StochasticRounding => "stochastic-rounding",
            Choice::TransposingLoads => "transposing-loads",
            Choice::AtomicSums => "atomic-sums",
            Choice::TextureFilter => "texture-filter",
            Choice::Fractions => "fractions",
            Choice::Clocks => "clocks",
            Choice::Placement => "placement",
        }
    }

    /// What the emulator does, and what may differ on a GPU.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Choice::MatrixSums => {
                "products are added one by one in the order of K, each sum rounded once; a GPU adds several at once, \
                    so inexact sums may differ in their last bits"
            }
            Choice::ProductDenormals => {
                "as matrix-sums and dot-sums; also, denormals are preserved, and CDNA2 flushes them in these formats"
            }
            Choice::MatrixXf32 => {
                "as matrix-sums; also, factors lose 13 bits of fraction by truncation, as measured on CDNA3"
            }
            Choice::DotSums => {
                "products are added one by one, the accumulator first, each sum rounded; order and widths inside a GPU \
                    are in no manual, so inexact sums may differ in their last bits"
            }
            Choice::Accuracy => {
                "the accuracy of these functions is in no manual; the emulator computes them in double precision and \
                    rounds once"
            }
            Choice::StochasticRounding => {
                "the topmost random bits are added below the last bit; manuals do not say which bits a GPU takes"
            }
            Choice::TransposingLoads => {
                "which lane gets which number is in no text of a manual; the emulator has the layout that AMD's tests \
                    and compilers expect"
            }
            Choice::AtomicSums => {
                "sums of floats depend on the order of waves, which differs between runs on a GPU, too; the emulator \
                    adds in the order of its own schedule, and of lanes within a wave"
            }
            Choice::TextureFilter => {
                "coordinates have eight bits of fraction, and the weighted sum is rounded once; the precision inside a \
                    GPU is in no manual"
            }
            Choice::Fractions => {
                "a number that is a fraction in memory (UNORM, SNORM) is its quotient, rounded to the nearest float; \
                    no manual says how a GPU rounds it"
            }
            Choice::Clocks => "time is counted in instructions, or modelled with --timing; a GPU shows another time",
            Choice::Placement => "which compute unit, SIMD and slot a wave has depends on the emulator's own order",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How exact what the emulator computes for an instruction is, from the most exact to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "exactness", rename_all = "kebab-case")]
pub enum Exactness {
    /// What AMD's manuals say, to the bit; which NaN it is may differ.
    Documented,
    /// Manuals bound the error of the hardware; the emulator has the true value, rounded once.
    WithinUlps {
        /// The bound in units in the last place.
        ulps: u64,
    },
    /// Manuals do not say all that has to be known.
    Choice {
        /// What the emulator does.
        choice: Choice,
    },
    /// The emulator has no meaning for it: a kernel that executes it ends with a fault.
    Unsupported,
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exactness::Documented => f.pad("as documented"),
            Exactness::WithinUlps { ulps } if ulps.is_power_of_two() && *ulps > 1 => {
                f.pad(&format!("within 2^{} ULP", ulps.ilog2()))
            }
            Exactness::WithinUlps { ulps } => f.pad(&format!("within {ulps} ULP")),
            Exactness::Choice { choice } => f.pad(&format!("choice: {choice}")),
            Exactness::Unsupported => f.pad("not supported"),
        }
    }
}

/// How exact a run on the emulator was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FidelityProfile {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether the run ended; false in what a killed run leaves.
    pub complete: bool,
    /// Processes whose instructions these are.
    #[serde(default = "super::file::one", skip_serializing_if = "super::file::is_one")]
    pub processes: u32,
    /// Kernels in order of first dispatch.
    pub kernels: Vec<KernelFidelity>,
}

/// How exact all dispatches of a kernel were, with the functions that it called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelFidelity {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
    /// Dispatches that ended.
    pub dispatches: u64,
    /// Instructions that waves executed, those that a rewrite added left out.
    pub executed: u64,
    /// Of these, those whose results are as documented.
    pub documented: u64,
    /// All others by address; also those of its code that are not supported, whether or not they were executed.
    pub instructions: Vec<InstructionFidelity>,
}

/// How exact an instruction is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstructionFidelity {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::HexText"))]
    pub address: u64,
    /// Printed instruction.
    pub instruction: String,
    /// Source line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// How often waves executed it.
    pub executions: u64,
    /// Its class.
    #[serde(flatten)]
    pub exactness: Exactness,
}

impl KernelFidelity {
    /// Adds later dispatches.
    fn merge(&mut self, other: &KernelFidelity) {
        self.dispatches += other.dispatches;
        self.executed += other.executed;
        self.documented += other.documented;
        for each in &other.instructions {
            match self.instructions.binary_search_by_key(&each.address, |mine| mine.address) {
                Ok(at) => self.instructions[at].executions += each.executions,
                Err(at) => self.instructions.insert(at, each.clone()),
            }
        }
    }
}

impl Default for FidelityProfile {
    /// Of a run that has dispatched nothing yet.
    fn default() -> FidelityProfile {
        FidelityProfile { schema: SCHEMA.to_owned(), complete: false, processes: 1, kernels: Vec::new() }
    }
}

impl FidelityProfile {
    /// Adds what `other` has to it: later dispatches, or those of another process. The number of processes and whether
    /// the run ended stay as they are.
    pub fn merge(&mut self, other: &FidelityProfile) {
        for kernel in &other.kernels {
            let same = |mine: &&mut KernelFidelity| {
                mine.name == kernel.name && mine.object == kernel.object && mine.target == kernel.target
            };
            match self.kernels.iter_mut().find(same) {
                Some(mine) => mine.merge(kernel),
                None => self.kernels.push(kernel.clone()),
            }
        }
    }

    /// Reads it from JSON.
    ///
    /// # Errors
    /// Malformed if it is none, Unsupported if it is of another version.
    pub fn from_json(json: &[u8]) -> Result<FidelityProfile> {
        let read: FidelityProfile =
            serde_json::from_slice(json).map_err(|e| Error::malformed(format!("not a report of fidelity: {e}")))?;
        if read.schema != SCHEMA {
            let schema = &read.schema;
            return Err(Error::unsupported(format!("schema {schema:?} of fidelity, this program knows {SCHEMA:?}")));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(address: u64, executions: u64, exactness: Exactness) -> InstructionFidelity {
        InstructionFidelity { address, instruction: "v_exp_f32_e32 v1, v2".into(), source: None, executions, exactness }
    }

    #[test]
    fn dispatches_add_up_and_json_gives_them_back() {
        let ulp = Exactness::WithinUlps { ulps: 1 };
        let kernel = |instructions| KernelFidelity {
            name: "k".into(),
            dispatches: 1,
            executed: 10,
            documented: 8,
            instructions,
            ..KernelFidelity::default()
        };
        let mut sum = FidelityProfile::default();
        sum.merge(&FidelityProfile {
            kernels: vec![kernel(vec![instruction(8, 2, ulp)])],
            ..FidelityProfile::default()
        });
        let sums = Exactness::Choice { choice: Choice::MatrixSums };
        sum.merge(&FidelityProfile {
            kernels: vec![kernel(vec![instruction(4, 1, sums), instruction(8, 1, ulp)])],
            ..FidelityProfile::default()
        });
        let [only] = &sum.kernels[..] else { panic!("{sum:?}") };
        assert_eq!((only.dispatches, only.executed, only.documented), (2, 20, 16));
        assert_eq!(only.instructions, [instruction(4, 1, sums), instruction(8, 3, ulp)]);
        let json = serde_json::to_vec(&sum).unwrap();
        assert_eq!(FidelityProfile::from_json(&json).unwrap(), sum);
        let text = String::from_utf8(json).unwrap();
        assert!(text.contains(r#""exactness":"choice","choice":"matrix-sums""#), "{text}");
        let other = text.replace("wavetap.fidelity/1", "wavetap.fidelity/2");
        assert!(FidelityProfile::from_json(other.as_bytes()).is_err_and(|error| error.to_string().contains("/2")));
    }

    #[test]
    fn names_are_those_of_the_json() {
        for choice in Choice::ALL {
            assert_eq!(serde_json::to_string(&choice).unwrap(), format!("\"{choice}\""));
        }
        assert_eq!(Exactness::WithinUlps { ulps: 1 << 29 }.to_string(), "within 2^29 ULP");
        assert_eq!(Exactness::WithinUlps { ulps: 1 }.to_string(), "within 1 ULP");
    }
}
