//! `code.json` of AMD's viewer of thread traces (ROCprof Compute Viewer): the instructions of the traced kernels with
//! their cycles. `rocprofv3 --att` writes it into each folder `ui_output_agent_*_dispatch_*`; `wavetap export viewer`
//! writes it from modelled time.
//!
//! The columns are named by `header`, as text with commas or as a list. A row whose text begins with `;` names the
//! function that begins at its address. `Latency` is the cycles of all waves at the instruction, of which `Stall` are
//! those before it was issued; `Idle` is not part of it: the cycles before the instruction in which its wave did
//! nothing.

use serde::Serialize;

/// Name of the file in its folder.
pub const CODE_FILE: &str = "code.json";
/// What the text of a row begins with that names a function.
pub const FUNCTION_MARK: char = ';';
/// Version of the format that is written.
pub const VERSION: &str = "3.0.0";
/// The columns that are written, in their order. The second one has never had a meaning.
pub const HEADER: &str = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle";

/// A row of [`CodeFile`], in the order of [`HEADER`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row(
    /// The instruction as printed, or [`FUNCTION_MARK`] and a function's name.
    pub String,
    /// Always 0.
    pub u32,
    /// Its number in the file, from 0: what the files of waves call it.
    pub usize,
    /// The source line, `file:line`, or nothing.
    pub String,
    /// The code object's number.
    pub u64,
    /// Virtual address in the code object.
    pub u64,
    /// Executions.
    pub u64,
    /// Cycles of waves at it.
    pub u64,
    /// Of these, those before it was issued.
    pub u64,
    /// Cycles before it in which its wave did nothing.
    pub u64,
);

/// The file, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeFile {
    /// The rows.
    pub code: Vec<Row>,
    /// [`HEADER`].
    pub header: &'static str,
    /// True: nothing was measured. The viewer ignores it.
    pub modelled: bool,
    /// [`VERSION`].
    pub version: &'static str,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::pc_samples::{SampleKind, read as read_any};

    fn rows() -> Vec<Row> {
        vec![
            Row("; _Z1kv".to_owned(), 0, 0, String::new(), 4, 0x1000, 0, 0, 0, 0),
            Row("s_waitcnt vmcnt(0)".to_owned(), 0, 1, "k.hip:7".to_owned(), 4, 0x1000, 8, 900, 860, 16),
            Row("s_cbranch_scc0 3".to_owned(), 0, 2, String::new(), 4, 0x1004, 0, 0, 0, 0),
            Row("s_endpgm".to_owned(), 0, 3, "k.hip:9".to_owned(), 4, 0x1008, 8, 32, 0, 0),
        ]
    }

    fn written(code: Vec<Row>, modelled: bool) -> String {
        serde_json::to_string(&CodeFile { code, header: HEADER, modelled, version: VERSION }).expect("JSON")
    }

    #[test]
    fn columns_are_where_the_viewer_looks_for_them() {
        let json: Value = serde_json::from_str(&written(rows(), true)).expect("JSON");
        assert_eq!(
            json["code"][1],
            serde_json::json!(["s_waitcnt vmcnt(0)", 0, 1, "k.hip:7", 4, 4096, 8, 900, 860, 16])
        );
        assert_eq!(HEADER.split(", ").count(), 10);
    }

    #[test]
    fn what_was_written_is_read() {
        for modelled in [false, true] {
            let samples = read_any(written(rows(), modelled).as_bytes()).expect("a trace");
            assert_eq!((samples.kind, samples.modelled), (SampleKind::ThreadTrace, modelled));
            let [object] = samples.objects.as_slice() else { panic!("{samples:?}") };
            assert_eq!((object.id, object.kernels.as_slice()), (4, &["_Z1kv".to_owned()][..]));
            let wait = &object.places[&0x1000];
            assert_eq!((wait.samples, wait.issued, wait.idle, wait.executions), (900, 40, Some(16), Some(8)));
            assert_eq!(object.places[&0x1004].executions, Some(0), "its text is compared with the code, too");
        }
    }

    /// Files of PC samples have more columns, and their header is a list.
    #[test]
    fn columns_are_found_by_their_names() {
        let text = r#"{"version": "9",
            "header": ["Hit", "Latency", "Stall", "Idle", "ISA", "Codeobj", "Vaddr", "PC_Issued"],
            "code": [[3, 24, 12, 0, "s_nop 0", 1, 256, []]]}"#;
        let samples = read_any(text.as_bytes()).expect("a trace");
        let place = &samples.objects[0].places[&256];
        assert_eq!((place.samples, place.issued, place.executions), (24, 12, Some(3)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let text = written(rows(), false);
        let wrong = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            read_any(text.replace(from, to).as_bytes()).expect_err(to).to_string()
        };
        assert!(wrong("900,860", "900,901").contains("code[1]: 901 cycles of Stall in 900 of Latency"));
        assert!(wrong("900,860", "900,-1").contains("code[1]: Stall is -1, and not a number from 0"));
        assert!(wrong("900,860", "1e300,860").contains("code[1]: Latency is 1e+300"));
        assert!(wrong("900,860", "900").contains("code[1]: 9 values where the header has 10 columns"));
        assert!(wrong("4104", "4096").contains("code[3]: a second instruction at 0x1000"));
        assert!(wrong("\"s_endpgm\"", "null").contains("code[3]: ISA is null, and not an instruction"));
        assert!(wrong("\"s_endpgm\"", "\" \"").contains("and not an instruction"));
        assert!(wrong("Hit,", "Hits,").contains("\"header\" has no column Hit"));
        assert!(wrong(HEADER, "").contains("\"header\" has no column ISA"));
        assert!(wrong("\"header\"", "\"head\"").contains("nor code.json of a thread trace"));
        assert!(wrong("\"code\"", "\"rows\"").contains("nor code.json of a thread trace"));
        assert!(wrong("\"code\":[[", "\"code\":[[[").contains("nor code.json of a thread trace"));
        let never = rows().into_iter().map(|row| Row(row.0, 0, row.2, row.3, row.4, row.5, 0, 0, 0, 0)).collect();
        assert!(read_any(written(never, false).as_bytes()).expect_err("none").to_string().contains("no traced wave"));
        assert!(read_any(written(Vec::new(), false).as_bytes()).is_err());
        for end in 0..text.len() {
            assert!(read_any(&text.as_bytes()[..end]).is_err(), "cut after {end} bytes");
        }
    }
}
