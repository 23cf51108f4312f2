//! Copies to the host of what nothing has written: a note, as the host may not look at it.

use rewriter_tests::{Failure, command, hip, place};
use serde_json::Value;

/// What a note says: unwritten bytes and all bytes that are copied to the host, and the call.
type Note = (u64, u64, &'static str);

/// Cases of the program.
const CASES: [(&str, Option<Note>); 6] = [
    ("0", None),
    ("1", Some((928, 4000, "hipMemcpy"))),
    ("2", Some((928, 3996, "hipMemcpy"))),
    ("3", None),
    ("4", Some((928, 4000, "hipMemcpyAsync"))),
    ("5", None),
];

pub fn check() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let source = place::root().join("rewriter-tests/tests/check_zoo/unwritten.hip");
    let program = folder.path().join("unwritten");
    let libraries = folder.path().join("libraries");
    hip::device_libraries(&libraries)?;
    hip::compile((&source, &program), &libraries, &["gfx90a"], &[])?;
    let (wavetap, file) = (command::wavetap()?, program.display().to_string());
    for (case, expected) in CASES {
        let line =
            ["check", "--format", "json", "--report", "report", "--force", "--target", "gfx90a", "--", &file, case];
        let finished = command::run(&wavetap, &line, &[], folder.path())?.exited(0)?;
        let report = std::fs::read(folder.path().join("report")).map_err(|e| finished.failure(&e.to_string()))?;
        let report: Value = serde_json::from_slice(&report).map_err(|e| finished.failure(&e.to_string()))?;
        let found = report["findings"].as_array().ok_or("no findings")?;
        let is_right = match (&found[..], expected) {
            ([], None) => true,
            ([one], Some((unwritten, bytes, call))) => {
                let says = format!("{call} copies {bytes} bytes, of which nothing has written {unwritten}:");
                let message = one["message"].as_str().unwrap_or_default();
                let place = (&one["class"], &one["severity"], &one["call"]["function"]);
                message.starts_with(&says)
                    && place == (&"unwritten-copy".into(), &"note".into(), &call.into())
                    && one["allocation"]["size"] == 4000
            }
            _ => false,
        };
        if !is_right {
            return Err(finished.failure(&format!("case {case}: {found:#?}")));
        }
    }
    Ok(())
}
