//! Code that a program loads is made to count before it is loaded: modules that a just-in-time compiler has made, and
//! libraries. The emulator's HIP runtime has [`Rewriting::prepare`] make what it loads in the place of a code object;
//! the HSA tool has [`Rewriting::at_dispatch`] make what is loaded beside one, for kernels that are dispatched.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_collect::config::AtLoad;
use wavetap_instrument::refusal::{RefusalReason, all_refused, refused_by_name};
use wavetap_object::code_object::CodeObject;
use wavetap_profile::map::Refused;

use crate::pipeline::{self, CounterPlacement, Counters, KernelRewriter, Options, RewrittenKernel, Selection, probe};

/// How code objects are rewritten that a process loads.
#[derive(Debug, Clone)]
pub struct Rewriting {
    options: Options,
    /// The folder where originals are kept, by their MD5, for whoever explains the counts.
    originals: Option<PathBuf>,
}

/// A code object as it is loaded.
#[derive(Debug)]
pub struct Prepared {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Of an object of which no kernel counts although it was to be rewritten, the kernels that were selected and
    /// cannot. A rewritten object says so itself.
    pub refused: Option<Vec<Refused>>,
    /// Why it could not be rewritten.
    pub problem: Option<Error>,
}

impl Prepared {
    /// An object that was not to be rewritten.
    #[must_use]
    pub fn unchanged(bytes: Vec<u8>) -> Self {
        Prepared { bytes, refused: None, problem: None }
    }
}

impl Rewriting {
    /// As the configuration of the run says.
    ///
    /// # Errors
    /// If a name is unknown: the variable, its value and what is expected.
    pub fn of(config: AtLoad) -> std::result::Result<Self, String> {
        let AtLoad { probes, counters, placement, single_waves, kernels, max_occupancy_loss, originals } = config;
        let named = |name: &String| probe::by_name(name).ok_or_else(|| format!("{name} is no probe"));
        let mut probes = probes.iter().map(named).collect::<std::result::Result<Vec<_>, _>>()?;
        if probes.is_empty() {
            probes.push(probe::BRANCHES);
        }
        let counters = match counters.as_str() {
            "auto" => Counters::Auto,
            "lds" => Counters::Lds,
            "global" => Counters::Global,
            "register" => Counters::Register,
            other => return Err(format!("WAVETAP_REWRITE={other}: auto, lds, global or register expected")),
        };
        let placement = match placement {
            None => CounterPlacement::default(),
            Some(name) => CounterPlacement::by_name(&name)
                .ok_or_else(|| format!("WAVETAP_REWRITE_PLACEMENT={name}: minimal or all expected"))?,
        };
        let selection = Selection { kernels, targets: Vec::new() };
        let options =
            Options { probes, counters, placement, selection, max_occupancy_loss, single_waves, ..Options::default() };
        Ok(Rewriting { options, originals })
    }

    /// The code object that is loaded instead of this one. One that counts already, or that cannot be rewritten, is
    /// loaded as it is: a program's modules load whether or not they can be counted.
    #[must_use]
    pub fn prepare(&self, bytes: Vec<u8>) -> Prepared {
        let Ok(code) = CodeObject::parse(&bytes) else { return Prepared::unchanged(bytes) };
        if code.is_rewritten() {
            return Prepared::unchanged(bytes);
        }
        let target = code.target_id();
        match self.rewrite(&bytes) {
            Ok(prepared) => prepared,
            Err(error) => {
                let malformed = error.kind() == Kind::Malformed;
                let reason = if malformed { RefusalReason::Malformed } else { RefusalReason::UnsupportedObject };
                let refused = all_refused(&target, "", reason, &error.to_string()).refused;
                Prepared { bytes, refused: Some(refused), problem: Some(error) }
            }
        }
    }

    /// A code object whose kernels are to be rewritten when they are dispatched.
    ///
    /// # Errors
    /// Malformed if it breaks its format; unsupported if it was rewritten before.
    pub fn at_dispatch(&self, bytes: Vec<u8>) -> Result<AtDispatch> {
        Ok(AtDispatch {
            rewriter: KernelRewriter::new(bytes, &self.options)?,
            originals: self.originals.clone(),
            is_kept: OnceLock::new(),
            kernels: Mutex::default(),
        })
    }

    fn rewrite(&self, bytes: &[u8]) -> Result<Prepared> {
        // Threads of its own, which end with it: those of a pool that lasts are not there in a process that splits off
        // later.
        let pool = rayon::ThreadPoolBuilder::new()
            .build()
            .map_err(|error| Error::limit(format!("no threads to rewrite with: {error}")))?;
        let rewritten = pool.install(|| pipeline::rewrite(bytes, &self.options))?;
        if let (Some(folder), Some(map)) = (&self.originals, rewritten.maps.first()) {
            keep(folder, &map.original, bytes)?;
        }
        let counts = rewritten.maps.iter().any(|map| !map.kernels.is_empty());
        let refused = (!counts).then(|| rewritten.maps.into_iter().flat_map(|map| map.refused).collect());
        Ok(Prepared { bytes: rewritten.bytes, refused, problem: None })
    }
}

/// What became of a kernel.
type Outcome = std::result::Result<Arc<RewrittenKernel>, Box<Refused>>;

/// A loaded code object whose kernels are rewritten when they are first dispatched. A library has thousands of kernels,
/// of which a program dispatches few.
#[derive(Debug)]
pub struct AtDispatch {
    rewriter: KernelRewriter,
    originals: Option<PathBuf>,
    /// Whether the original is in that folder, or why not.
    is_kept: OnceLock<std::result::Result<(), String>>,
    kernels: Mutex<HashMap<String, Arc<OnceLock<Outcome>>>>,
}

impl AtDispatch {
    /// What rewrites the kernels.
    #[must_use]
    pub fn rewriter(&self) -> &KernelRewriter {
        &self.rewriter
    }

    /// A kernel, by its mangled name, which is rewritten when it is first asked for.
    ///
    /// # Errors
    /// Why it cannot be rewritten.
    pub fn kernel(&self, name: &str) -> Outcome {
        let once = {
            let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(kernels.entry(name.to_owned()).or_default())
        };
        once.get_or_init(|| {
            if let Err(problem) = self.keep() {
                let target = self.rewriter.target_id();
                return Err(Box::new(refused_by_name(target, name, RefusalReason::UnsupportedObject, problem)));
            }
            self.rewriter.rewrite(name).map(Arc::new)
        })
        .clone()
    }

    fn keep(&self) -> std::result::Result<(), &str> {
        let kept = self.is_kept.get_or_init(|| match &self.originals {
            Some(folder) => {
                keep(folder, self.rewriter.digest(), self.rewriter.bytes()).map_err(|error| error.to_string())
            }
            None => Ok(()),
        });
        kept.as_ref().copied().map_err(String::as_str)
    }
}

/// Writes an original to the folder, unless it is there. Several processes may do so at once.
fn keep(folder: &Path, digest: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(format!("{digest}.co"));
    if path.exists() {
        return Ok(());
    }
    let unfinished = folder.join(format!("{digest}.{}", std::process::id()));
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, &path));
    written.map_err(Error::from).within(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_collect::config::RunConfig;

    fn parse(pairs: &[(&str, &str)]) -> std::result::Result<Option<Rewriting>, String> {
        let variable = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let config = RunConfig::read(variable).map_err(|error| error.to_string())?;
        config.at_load.map(Rewriting::of).transpose()
    }

    #[test]
    fn nothing_is_rewritten_unless_the_environment_asks_for_it() {
        assert!(parse(&[("WAVETAP_REWRITE_KERNELS", "a")]).unwrap().is_none());
        let all = [
            ("WAVETAP_REWRITE", "global"),
            ("WAVETAP_REWRITE_KERNELS", "a*\nb c\n"),
            ("WAVETAP_REWRITE_MAX_LOSS", "2"),
        ];
        let rewriting = parse(&all).unwrap().unwrap();
        assert_eq!(rewriting.options.selection.kernels, ["a*", "b c"]);
        assert_eq!((rewriting.options.counters, rewriting.options.max_occupancy_loss), (Counters::Global, Some(2)));
    }

    #[test]
    fn nonsense_is_refused() {
        let error = parse(&[("WAVETAP_REWRITE", "registers")]).unwrap_err();
        assert!(error.starts_with("WAVETAP_REWRITE"), "{error}");
        let error = parse(&[("WAVETAP_REWRITE", "lds"), ("WAVETAP_REWRITE_MAX_LOSS", "few")]).unwrap_err();
        assert!(error.starts_with("WAVETAP_REWRITE_MAX_LOSS"), "{error}");
    }
}
