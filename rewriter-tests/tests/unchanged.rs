//! Nothing selected, nothing changed: a rewrite without probe, without kernel or for a target that is not there gives
//! the input's bytes, for the samples and, with `./test.sh --full`, for every library of the corpora. What was
//! rewritten is not rewritten again.

use std::fs;
use std::path::PathBuf;

use rewriter_tests::corpora::CORPORA;
use rewriter_tests::{full, place};
use wavetap::code_object::CodeObject;
use wavetap::error::Kind;
use wavetap::offload_bundle::{Input, Method, write_compressed};
use wavetap::pipeline::{Options, Packing, Selection, probe, rewrite};

/// Samples, and all libraries of the corpora if the long tests were asked for.
fn files() -> Vec<PathBuf> {
    let samples = place::sample_names().into_iter().map(|name| place::samples().join(name));
    let libraries = CORPORA.iter().filter(|_| full()).flat_map(|corpus| {
        let files = corpus.files();
        assert_eq!(files.len(), corpus.libraries, "{}: rewriter-tests/fetch-corpora.sh fetches it", corpus.name);
        files
    });
    samples.chain(libraries).collect()
}

fn branches(kernels: &[&str], targets: &[&str], packing: Packing) -> Options {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    let selection = Selection { kernels: owned(kernels), targets: owned(targets) };
    Options { probes: vec![probe::BRANCHES], selection, packing, ..Options::default() }
}

/// The forms in which device code lies in a host file: the file, its bundles one after the other, plain and compressed,
/// the first code object.
fn forms(file: &[u8]) -> Vec<Vec<u8>> {
    let input = Input::parse(file).expect("parses");
    let mut forms = vec![file.to_vec()];
    let bundle = &input.bundles[0];
    forms.push(bundle.content.to_vec());
    for (version, method) in [(2, Method::Zstd), (3, Method::Zlib)] {
        forms.push(write_compressed(&bundle.content, version, method).expect("packed"));
    }
    forms.push(input.code_objects().next().expect("some code").bytes.to_vec());
    forms
}

#[test]
fn nothing_selected_gives_the_same_bytes() {
    for path in files() {
        let file = fs::read(&path).expect("readable");
        for (number, form) in forms(&file).iter().enumerate() {
            for packing in [Packing::AsFound, Packing::Plain, Packing::Compressed] {
                for (what, options) in [
                    ("no probe", Options { packing, ..Options::default() }),
                    ("no kernel", branches(&["no_such_kernel"], &[], packing)),
                    ("no target", branches(&[], &["gfx000"], packing)),
                ] {
                    let place = || format!("{}, form {number}, {packing:?}, {what}", path.display());
                    let rewritten = rewrite(form, &options).unwrap_or_else(|error| panic!("{}: {error}", place()));
                    assert!(rewritten.bytes == *form, "{}: other bytes", place());
                    assert!(
                        rewritten.maps.iter().all(|map| map.kernels.is_empty() && map.refused.is_empty()),
                        "{}",
                        place()
                    );
                }
            }
        }
    }
}

/// Other kinds of file, each as it is: shared libraries, several bundles, relocatable device code, bare code objects.
#[test]
fn nothing_selected_gives_the_same_bytes_of_every_kind_of_file() {
    let folder = place::variants().unwrap_or_else(|failure| panic!("{failure}"));
    let mut compared = 0;
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let file = fs::read(entry.path()).expect("readable");
        let is_code = Input::parse(&file).is_ok_and(|input| input.code_objects().next().is_some());
        if !is_code {
            continue;
        }
        let options = branches(&["no_such_kernel"], &[], Packing::AsFound);
        let rewritten = match rewrite(&file, &options) {
            // What is not linked yet.
            Err(error) if error.kind() == Kind::Unsupported => continue,
            rewritten => rewritten.unwrap_or_else(|error| panic!("{}: {error}", entry.path().display())),
        };
        assert!(rewritten.bytes == file, "{}: other bytes", entry.path().display());
        compared += 1;
    }
    assert!(compared >= 18, "{compared} files");
}

#[test]
fn what_is_rewritten_is_refused_in_every_form() {
    for path in files() {
        let file = fs::read(&path).expect("readable");
        for (number, form) in forms(&file).iter().enumerate() {
            // One kernel of each object: that is quick, and enough.
            let input = Input::parse(form).expect("parses");
            let mut kernels: Vec<String> = Vec::new();
            for found in input.code_objects() {
                let code = CodeObject::parse(found.bytes).expect("parses");
                if let Some(kernel) = code.kernels().iter().min_by_key(|kernel| kernel.code.end - kernel.code.start) {
                    kernels.push(kernel.name.clone());
                }
            }
            kernels.sort();
            kernels.dedup();
            let kernels: Vec<&str> = kernels.iter().map(String::as_str).collect();
            let once = rewrite(form, &branches(&kernels, &[], Packing::AsFound)).expect("rewritten");
            if once.maps.iter().all(|map| map.kernels.is_empty()) {
                assert!(once.bytes == *form, "{}, form {number}", path.display());
                continue;
            }
            for options in [
                branches(&[], &[], Packing::AsFound),
                branches(&["no_such_kernel"], &[], Packing::AsFound),
                branches(&[], &["gfx000"], Packing::Plain),
                Options::default(),
            ] {
                let error = rewrite(&once.bytes, &options).expect_err("refused");
                assert_eq!(error.kind(), Kind::Unsupported, "{error}");
                assert!(error.message().contains("rewritten before"), "{}, form {number}: {error}", path.display());
            }
        }
    }
}
