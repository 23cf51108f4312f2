//! Code that a program loads is made to count before it is loaded: modules that a just-in-time compiler has made, and
//! libraries. Whoever loads it into a process, the emulator's HIP runtime or the HSA tool, has [`Rewriting::prepare`]
//! make what is loaded in its place.

use std::fs;
use std::path::{Path, PathBuf};

use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_collect::config::AtLoad;
use wavetap_instrument::refusal::{RefusalReason, all_refused};
use wavetap_object::code_object::CodeObject;
use wavetap_profile::map::Refused;

use crate::pipeline::{self, CounterPlacement, Counters, Options, ProbeKind, Selection};

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
        let named = |name: &String| ProbeKind::by_name(name).ok_or_else(|| format!("{name} is no probe"));
        let mut probes = probes.iter().map(named).collect::<std::result::Result<Vec<_>, _>>()?;
        if probes.is_empty() {
            probes.push(ProbeKind::Branches);
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
