//! Every kernel of libraries of third parties, rewritten with counters in LDS and in memory
//! (`rewriter-tests/fetch-corpora.sh` fetches the libraries).
//!
//! A kernel is instrumented or refused with a reason, and every result is looked at by others than the rewriter:
//! `verify` has no finding, goblin reads the file and finds every original byte where it was, and LLVM decodes all of
//! the new code and sees the original's instructions in it (`accepted.rs`). `docs/results/corpora.md` says how many are
//! instrumented for each corpus and target, and why the others are not; docs/reference/refusals.md lists the reasons.
//! Both are written by
//!
//!     rewriter-tests/fetch-corpora.sh
//!     BLESS=1 WAVETAP_FULL_TESTS=1 cargo test --release -p rewriter-tests --test rewritten_corpora -- --nocapture
//!
//! and without `BLESS` compared. The quick run takes one small library. `WAVETAP_CORPORA=librocrand,rocm72` takes the
//! libraries with these words in their path.

mod accepted;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use accepted::Accepting;
use page::Survey;
use rewriter_tests::cores::on_all_cores_with;
use rewriter_tests::corpora::CORPORA;
use rewriter_tests::{Failure, full, place};
use wavetap::code_object::CodeObject;
use wavetap::isa::Target;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, Counters, probe};

/// What the quick run looks at.
const QUICK: &str = "jax-rocm60-plugin/_prng.so";
/// As many complaints as a person can use.
const SHOWN: usize = 40;

/// A code object of a corpus.
struct Object {
    corpus: &'static str,
    /// Library and entry, for messages.
    place: String,
    /// `gfx90a`.
    processor: String,
    bytes: Vec<u8>,
}

/// The files that this run looks at.
fn files() -> Vec<(&'static str, PathBuf)> {
    let named = std::env::var("WAVETAP_CORPORA").ok();
    let wanted = |file: &Path| {
        let path = file.display().to_string();
        match &named {
            Some(names) => names.split(',').any(|name| path.contains(name)),
            None => full() || path.ends_with(QUICK),
        }
    };
    let mut files = Vec::new();
    for corpus in CORPORA {
        let there = corpus.files();
        assert!(
            !there.is_empty() || !full() || named.is_some(),
            "{0} is not there: rewriter-tests/fetch-corpora.sh {0} fetches it",
            corpus.name
        );
        files.extend(there.into_iter().filter(|file| wanted(file)).map(|file| (corpus.name, file)));
    }
    files
}

fn objects_of(corpus: &'static str, file: &Path) -> Result<Vec<Object>, Failure> {
    let wrong = |e: wavetap::error::Error| format!("{}: {e}", file.display());
    let data = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let input = Input::parse(&data).map_err(wrong)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut objects = Vec::new();
    for (n, found) in input.code_objects().enumerate() {
        let code = CodeObject::parse(found.bytes).map_err(wrong)?;
        let processor = code.target_id().split(':').next().unwrap_or_default().to_owned();
        objects.push(Object {
            corpus,
            place: format!("{name} object {n} ({processor})"),
            processor,
            bytes: found.bytes.to_vec(),
        });
    }
    Ok(objects)
}

#[test]
fn every_kernel_is_instrumented_or_refused_and_others_accept_the_result() {
    let files = files();
    if files.is_empty() {
        let named = std::env::var("WAVETAP_CORPORA");
        assert!(
            named.is_err(),
            "WAVETAP_CORPORA={}: no library is there with this in its path",
            named.unwrap_or_default()
        );
        println!("SKIPPED: rewriter-tests/fetch-corpora.sh fetches the libraries");
        return;
    }
    let mut objects = Vec::new();
    for (corpus, file) in &files {
        objects.extend(objects_of(corpus, file).unwrap_or_else(|failure| panic!("{failure}")));
    }
    let (survey, wrong) = (Mutex::new(Survey::default()), Mutex::new(Vec::new()));
    on_all_cores_with(&objects, Accepting::new, |accepting, object| {
        for (mode, counters) in [("lds", Counters::Lds), ("global", Counters::Global)] {
            if let Err(failure) = rewrite(object, mode, counters, &survey, accepting) {
                let failure = format!("{} --counters {mode}: {failure}", object.place);
                println!("{failure}");
                wrong.lock().expect("no thread panicked").push(failure);
            }
        }
    });
    let survey = survey.into_inner().expect("no thread panicked");
    println!("{}", survey.page());
    let mut wrong = wrong.into_inner().expect("no thread panicked");
    let all = full() && std::env::var_os("WAVETAP_CORPORA").is_none();
    if all {
        wrong.extend(survey.short_of_the_goals());
    }
    if all || std::env::var_os("BLESS").is_some() {
        wrong.extend(page::keep(&place::root().join("docs/results/corpora.md"), &survey.page()));
        wrong.extend(page::keep_between(&place::root().join("docs/reference/refusals.md"), &survey.reasons()));
    }
    assert!(survey.kernels() > 0, "no kernel was rewritten");
    let shown = wrong.len().min(SHOWN);
    assert!(wrong.is_empty(), "{} complaints, among them:\n{}", wrong.len(), wrong[..shown].join("\n"));
}

/// Rewrites one object in one mode, and lets others look at the result.
fn rewrite(
    object: &Object,
    mode: &'static str,
    counters: Counters,
    survey: &Mutex<Survey>,
    accepting: &mut Accepting,
) -> Result<(), Failure> {
    let options = pipeline::Options { probes: vec![probe::BRANCHES], counters, ..pipeline::Options::default() };
    let rewritten = pipeline::rewrite(&object.bytes, &options).map_err(|e| e.to_string())?;
    let code = CodeObject::parse(&object.bytes).map_err(|e| e.to_string())?;
    let [map] = rewritten.maps.as_slice() else {
        return Err(format!("{} maps for one code object", rewritten.maps.len()));
    };
    // Nothing is lost: every kernel is in one list, once.
    let mut listed: Vec<&str> =
        map.kernels.iter().map(|k| k.name.as_str()).chain(map.refused.iter().map(|r| r.name.as_str())).collect();
    let mut all: Vec<&str> = code.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
    listed.sort_unstable();
    all.sort_unstable();
    if listed != all {
        return Err(format!(
            "{} kernels instrumented and {} refused of {}",
            map.kernels.len(),
            map.refused.len(),
            all.len()
        ));
    }
    if let Some(refused) = map.refused.iter().find(|refused| refused.reason == "unverified") {
        return Err(format!("{}: the checker rejects what the rewriter made: {}", refused.name, refused.detail));
    }
    let target = Target::by_name(&object.processor).filter(|target| target.rewritable());
    survey.lock().expect("no thread panicked").add(
        object.corpus,
        &object.place,
        &object.processor,
        target.is_some(),
        mode,
        map,
    );
    match target {
        Some(target) if !map.kernels.is_empty() => accepting.look(target, &object.bytes, &rewritten.bytes, map),
        _ if rewritten.bytes == object.bytes => Ok(()),
        _ => Err("no kernel was instrumented, but the object is another one".to_owned()),
    }
}
