//! Samples of every kind of file, put to kernels that are known to the byte.

use std::collections::BTreeMap;

use wavetap::error::Result;
use wavetap::pipeline::Selection;
use wavetap::pipeline::{self, Evidence};
use wavetap::profile::pc_samples::{self, PcSamples, SampleKind};
use wavetap::report::slice::{KernelSlice, Slice};
use wavetap::slice::Blame;

use super::assembled::{Placed, address, assemble, assembler_is_there, instructions, slice as unsampled};
use crate::random::Random;

/// Two kernels that share instructions; the first has a wait twice.
const ONE: &str = " s_load_dwordx2 s[2:3], s[0:1], 0x10\n s_waitcnt lgkmcnt(0)\n global_load_dword v1, v0, s[2:3]\n \
    s_waitcnt vmcnt(0)\n v_lshlrev_b32_e32 v2, 2, v1\n global_load_dword v3, v2, s[2:3]\n s_waitcnt vmcnt(0)\n \
    v_add_u32_e32 v1, v1, v3\n global_store_dword v0, v1, s[2:3]";
const TWO: &str = " s_load_dwordx2 s[2:3], s[0:1], 0x10\n s_waitcnt lgkmcnt(0)\n global_load_dword v1, v0, s[2:3]\n \
    s_waitcnt vmcnt(0)\n v_mul_f32_e32 v1, v1, v1\n global_store_dword v0, v1, s[2:3]";

fn object() -> Vec<u8> {
    assemble("gfx90a", &[("one", ONE), ("two", TWO)])
}

fn with(object: &[u8], files: &[&str], blame: Blame) -> Result<Slice> {
    let samples = files.iter().map(|text| pc_samples::read(text.as_bytes())).collect::<Result<Vec<PcSamples>>>()?;
    pipeline::slice(object, &Selection::default(), Evidence { samples: &samples, blame, ..Evidence::default() })
}

fn kernel<'a>(slice: &'a Slice, name: &str) -> &'a KernelSlice {
    slice.kernels.iter().find(|kernel| kernel.name == name).expect("the kernel")
}

fn seen(kernel: &KernelSlice) -> BTreeMap<u64, u64> {
    kernel.samples.as_ref().expect("samples").places.iter().map(|place| (place.address, place.samples)).collect()
}

/// Source lines by address: the lines of the assembly.
fn lines(object: &[u8]) -> BTreeMap<u64, u32> {
    use wavetap::code_object::CodeObject;
    let table = CodeObject::parse(object).expect("an object").line_table().expect("lines").expect("a table");
    let line = |placed: Placed| (placed.address, table.location(placed.address).expect("a line").line);
    instructions(object).into_iter().map(line).collect()
}

const HOST_TRAP: &str =
    "\"Sample_Timestamp\",\"Exec_Mask\",\"Dispatch_Id\",\"Instruction\",\"Instruction_Comment\",\"Correlation_Id\"\n";

/// A table of host-trap samples: `times` of each instruction of a kernel, as its place in the kernel, in one dispatch.
fn table(object: &[u8], kernel: &str, dispatch: u64, with_lines: bool) -> String {
    let lines = lines(object);
    let mut text = String::new();
    for (times, placed) in instructions(object).iter().filter(|placed| placed.kernel == kernel).enumerate() {
        let comment =
            if with_lines { format!("/somewhere/else/k.s:{}", lines[&placed.address]) } else { String::new() };
        // As another printer may write it.
        let instruction = placed.text.replace(", 0x10", ", 16");
        for _ in 0..=times {
            text += &format!("123,65535,{dispatch},\"{instruction}\",\"{comment}\",1\n");
        }
    }
    text
}

#[test]
fn tables_without_addresses_are_matched_by_text_and_line() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let file = format!("{HOST_TRAP}{}{}", table(&object, "one", 1, true), table(&object, "two", 2, true));
    let slice = with(&object, &[&file], Blame::Exposed).expect("they fit");
    for name in ["one", "two"] {
        let kernel = kernel(&slice, name);
        let expected: BTreeMap<u64, u64> = instructions(&object)
            .iter()
            .filter(|placed| placed.kernel == name)
            .zip(1..)
            .map(|(placed, times)| (placed.address, times))
            .collect();
        assert_eq!(seen(kernel), expected);
        let samples = kernel.samples.as_ref().expect("samples");
        assert_eq!((samples.kind, samples.approximate), (SampleKind::HostTrapCsv, true));
        assert!(
            samples.caveat.contains("approximate") && samples.caveat.contains("up to two instructions late"),
            "{}",
            samples.caveat
        );
    }
    assert!(slice.samples[0].ambiguous.is_empty());
}

#[test]
fn what_may_be_in_several_places_is_given_to_none() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    // Without lines the two waits of `one` are alike, and its dispatch is of `one` by what `two` does not have.
    let file = format!("{HOST_TRAP}{}", table(&object, "one", 1, false));
    let slice = with(&object, &[&file], Blame::Exposed).expect("they fit");
    let waits = [address(&object, "one", "s_waitcnt vmcnt(0)", 0), address(&object, "one", "s_waitcnt vmcnt(0)", 1)];
    let [ambiguous] = slice.samples[0].ambiguous.as_slice() else { panic!("{:?}", slice.samples) };
    assert_eq!((ambiguous.instruction.as_str(), ambiguous.samples), ("s_waitcnt vmcnt(0)", 4 + 7));
    assert_eq!(ambiguous.candidates.iter().map(|candidate| candidate.address).collect::<Vec<_>>(), waits);
    let one = kernel(&slice, "one");
    assert!(waits.iter().all(|wait| !seen(one).contains_key(wait)));
    assert!(
        one.chains.iter().filter(|chain| waits.contains(&chain.address)).all(|chain| chain.samples == Some(0.0)),
        "nothing is smeared"
    );
    assert_eq!(seen(kernel(&slice, "two")), BTreeMap::new());

    // A dispatch of which only what both have was seen can be either's.
    let file = format!("{HOST_TRAP}1,1,5,\"s_waitcnt lgkmcnt(0)\",\"\",1\n");
    let slice = with(&object, &[&file], Blame::Exposed).expect("it fits");
    let candidates: Vec<&str> =
        slice.samples[0].ambiguous[0].candidates.iter().map(|candidate| candidate.kernel.as_str()).collect();
    assert_eq!(candidates, ["one", "two"]);
    assert!(slice.kernels.iter().all(|kernel| seen(kernel).is_empty()));
}

/// Every kernel ends and waits: that a kernel has such an instruction once says nothing.
#[test]
fn what_any_program_may_have_sampled_is_given_to_no_kernel() {
    if !assembler_is_there() {
        return;
    }
    let object = assemble("gfx90a", &[("only", TWO)]);
    let rows = "1,1,5,\"s_waitcnt vmcnt(0)\",\"\",1\n1,1,5,\"s_endpgm\",\"\",1\n";
    let slice = with(&object, &[&format!("{HOST_TRAP}{rows}")], Blame::Exposed).expect("nothing contradicts");
    assert_eq!(seen(kernel(&slice, "only")), BTreeMap::new());
    assert_eq!(slice.samples[0].ambiguous.iter().map(|each| each.samples).sum::<u64>(), 2);
    // With what only it has they are its.
    let more = "1,1,5,\"v_mul_f32_e32 v1, v1, v1\",\"\",1\n1,1,5,\"global_load_dword v1, v0, s[2:3]\",\"\",1\n\
        1,1,5,\"global_store_dword v0, v1, s[2:3]\",\"\",1\n";
    let slice = with(&object, &[&format!("{HOST_TRAP}{rows}{more}")], Blame::Exposed).expect("they fit");
    assert_eq!(seen(kernel(&slice, "only")).values().sum::<u64>(), 5);
}

#[test]
fn tables_of_other_code_are_refused() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let wrong = |rows: &str| {
        with(&object, &[&format!("{HOST_TRAP}{rows}")], Blame::Exposed).expect_err("they do not fit").to_string()
    };
    let message = wrong("1,1,3,\"s_endpgm\",\"\",1\n1,1,3,\"v_sub_f32_e32 v1, v2, v3\",\"other.hip:9\",1\n");
    assert!(message.contains("line 3: no kernel has `v_sub_f32_e32 v1, v2, v3` of other.hip:9"), "{message}");
    // Each is somewhere, but not both in one kernel.
    let message = wrong("1,1,3,\"v_mul_f32_e32 v1, v1, v1\",\"\",1\n1,1,3,\"v_add_u32_e32 v1, v1, v3\",\"\",1\n");
    assert!(message.contains("no kernel has all instructions that were sampled in dispatch 3"), "{message}");
    // At another line than the file's.
    assert!(
        wrong("1,1,3,\"v_mul_f32_e32 v1, v1, v1\",\"k.s:1\",1\n")
            .contains("no kernel has `v_mul_f32_e32 v1, v1, v1` of k.s:1")
    );
    // Beside a dispatch that fits it is code of another file.
    let both = format!("{HOST_TRAP}{}7,7,9,\"v_sub_f32_e32 v1, v2, v3\",\"\",7\n", table(&object, "two", 2, true));
    let slice = with(&object, &[&both], Blame::Exposed).expect("one fits");
    assert_eq!(slice.samples[0].elsewhere, 1);
    let [foreign] = slice.samples[0].foreign.as_slice() else { panic!("{:?}", slice.samples) };
    assert_eq!((foreign.id, foreign.samples), (9, 1));
}

/// A thread trace of a kernel: each execution of a wait is stalled 100 cycles, and issued for 4.
fn trace(object: &[u8], kernel: &str) -> String {
    let mut text =
        format!("CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source\n7,0,\"; {kernel}\",0,0,0,0,\n");
    for placed in instructions(object).iter().filter(|placed| placed.kernel == kernel) {
        let stall = if placed.text.starts_with("s_waitcnt") { 800 } else { 0 };
        text += &format!("7,{},\"{}\",8,{},{stall},24,k.s:1\n", placed.address, placed.text, stall + 32);
    }
    text
}

/// The same as `code.json` of a folder for AMD's viewer.
fn code_json(object: &[u8], kernel: &str) -> String {
    let mut rows = vec![format!(r#"["; {kernel}", 0, 0, "", 7, 0, 0, 0, 0, 0]"#)];
    for placed in instructions(object).iter().filter(|placed| placed.kernel == kernel) {
        let (number, stall) = (rows.len(), if placed.text.starts_with("s_waitcnt") { 800 } else { 0 });
        let Placed { address, text, .. } = placed;
        let latency = stall + 32;
        rows.push(format!(r#"["{text}", 0, {number}, "k.s:1", 7, {address}, 8, {latency}, {stall}, 24]"#));
    }
    let header = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle";
    format!(r#"{{"code": [{}], "header": "{header}", "version": "3.0.0"}}"#, rows.join(",\n"))
}

#[test]
fn thread_traces_are_exact() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    for file in [trace(&object, "two"), code_json(&object, "two")] {
        thread_trace_is_exact(&object, &file);
    }
    // Each instruction of such a file is compared whole: builds differ in operands.
    let other = assemble("gfx90a", &[("one", ONE), ("two", &TWO.replace("v1, v1, v1", "v1, v1, v0"))]);
    let why = with(&object, &[&code_json(&other, "two")], Blame::Exposed).expect_err("another build").to_string();
    let product = address(&object, "two", "v_mul_f32", 0);
    assert!(
        why.contains(&format!(
            "the samples saw `v_mul_f32_e32 v1, v1, v0` at {product:#x}, and the code has `v_mul_f32_e32 v1, v1, v1`"
        )),
        "{why}"
    );
    let why = with(&object, &[&code_json(&object, "two").replace("; two", "; three")], Blame::Exposed);
    assert!(why.expect_err("another kernel").to_string().contains("a kernel three, which is not in this file"));
}

fn thread_trace_is_exact(object: &[u8], file: &str) {
    let slice = with(object, &[file], Blame::Exposed).expect("it fits");
    let two = kernel(&slice, "two");
    let samples = two.samples.as_ref().expect("samples");
    assert_eq!((samples.kind, samples.unit.as_str(), samples.approximate), (SampleKind::ThreadTrace, "cycles", false));
    assert!(samples.caveat.contains("traced compute unit only"));
    let wait = samples.places.iter().find(|place| place.instruction == "s_waitcnt vmcnt(0)").expect("the wait");
    assert_eq!((wait.samples, wait.issued, wait.idle, wait.executions), (832, 32, Some(24), Some(8)));
    let chains: f64 = two.chains.iter().filter_map(|chain| chain.samples).sum();
    assert!((chains - 1600.0).abs() < 1e-9, "the stalls of both waits, and no idle time: {chains}");

    let wrong = |from: &str, to: &str| {
        with(object, &[&file.replace(from, to)], Blame::Exposed).expect_err("it does not fit").to_string()
    };
    assert!(wrong("v_mul_f32", "v_mul_f64").contains("the samples saw `v_mul_f64_e32 v1, v1, v1`"));
    let load = address(object, "two", "global_load", 0);
    let moved = |separator| wrong(&format!("7,{separator}{load},"), &format!("7,{separator}{},", load + 4));
    let separator = if file.starts_with('{') { " " } else { "" };
    assert!(moved(separator).contains("where none begins"));
}

/// A sample at an offset, as JSON; `work` says whether another wave of the SIMD went ahead.
fn stochastic(offset: u64, work: bool) -> String {
    let issued = u8::from(work);
    format!(
        r#"{{"record": {{"pc": {{"code_object_id": 1, "code_object_offset": {offset}}}, "wave_issued": 0,
        "snapshot": {{"stall_reason": "WAITCNT",
        "arb_state_issue_valu": {issued}, "arb_state_stall_valu": 0}}}}}}"#
    )
}

fn json(kind: &str, records: &[String]) -> String {
    format!(r#"{{"rocprofiler-sdk-tool": [{{"buffer_records": {{"{kind}": [{}]}}}}]}}"#, records.join(","))
}

#[test]
fn hidden_stalls_do_not_rank_and_are_shown_apart() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let (first, second) =
        (address(&object, "one", "s_waitcnt vmcnt(0)", 0), address(&object, "one", "s_waitcnt vmcnt(0)", 1));
    let mut records = vec![stochastic(first, true); 30];
    records.extend(vec![stochastic(first, false); 2]);
    records.extend(vec![stochastic(second, false); 8]);
    let slice = with(&object, &[&json("pc_sample_stochastic", &records)], Blame::Exposed).expect("they fit");
    let top = &kernel(&slice, "one").chains[0];
    assert_eq!((top.address, top.samples, top.exposed_samples), (second, Some(8.0), Some(8.0)));
    assert!((top.kernel_share - 0.8).abs() < 1e-9, "8 of 10 that cost something: {}", top.kernel_share);
    let hidden: Vec<Option<u64>> =
        kernel(&slice, "one").samples.as_ref().expect("samples").places.iter().map(|place| place.hidden).collect();
    assert_eq!(hidden, [Some(30), Some(0)]);
    // LEO ranks by all.
    let leo = with(&object, &[&json("pc_sample_stochastic", &records)], Blame::Leo).expect("they fit");
    assert_eq!((leo.blame, kernel(&leo, "one").chains[0].address), (Blame::Leo, first));
    // Samples that do not tell rank by what there is.
    let silent: Vec<String> = records.iter().map(|record| record.replace("arb_state", "other")).collect();
    let slice = with(&object, &[&json("pc_sample_stochastic", &silent)], Blame::Exposed).expect("they fit");
    assert_eq!(
        (kernel(&slice, "one").chains[0].address, kernel(&slice, "one").chains[0].exposed_samples),
        (first, None)
    );
}

#[test]
fn the_most_trusted_samples_of_a_kernel_count() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let at = |kernel| stochastic(address(&object, kernel, "s_waitcnt lgkmcnt(0)", 0), false);
    let host_trap = json("pc_sample_host_trap", &[at("one"), at("two")]);
    let trace = trace(&object, "two");
    for files in [[host_trap.as_str(), &trace], [&trace, &host_trap]] {
        let slice = with(&object, &files, Blame::Exposed).expect("they fit");
        let kind = |name| kernel(&slice, name).samples.as_ref().expect("samples").kind;
        assert_eq!((kind("one"), kind("two")), (SampleKind::HostTrap, SampleKind::ThreadTrace));
    }
    let one = with(&object, &[&host_trap], Blame::Exposed).expect("they fit");
    let samples = kernel(&one, "one").samples.clone().expect("samples");
    assert!(samples.approximate && samples.caveat.contains("up to two instructions late"));
}

#[test]
fn shares_sum_to_one_by_either_rule() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let file = trace(&object, "one");
    for blame in [Blame::Exposed, Blame::Leo] {
        for files in [&[][..], &[file.as_str()]] {
            let slice = with(&object, files, blame).expect("it fits");
            let mut shares: BTreeMap<u64, f64> = BTreeMap::new();
            for chain in &kernel(&slice, "one").chains {
                *shares.entry(chain.address).or_default() += chain.share;
            }
            assert_eq!(shares.len(), 3, "{shares:?}");
            assert!(shares.values().all(|sum| (sum - 1.0).abs() < 1e-9), "{shares:?}");
            assert_eq!(serde_json::to_value(&slice).expect("JSON")["blame"], blame.name());
        }
    }
    assert_eq!(unsampled(&object).samples, []);
}

fn text(slice: &Slice) -> String {
    wavetap::report::slice::render(slice, wavetap::report::text::Style::default())
}

/// What has to be known to read samples is beside them in the text.
#[test]
fn the_text_says_what_samples_are_worth() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let shown = |files: &[&str]| text(&with(&object, files, Blame::Exposed).expect("they fit"));
    let of_trace = shown(&[&trace(&object, "two")]);
    assert!(
        of_trace.contains("(thread trace, measured)")
            && of_trace.contains("of the waves on the traced compute unit only"),
        "{of_trace}"
    );
    assert!(of_trace.contains("executions  cycles  stalled  idle before"), "{of_trace}");
    let of_table = shown(&[&format!("{HOST_TRAP}{}", table(&object, "one", 1, false))]);
    assert!(
        of_table.contains("(host trap, CSV, measured)")
            && of_table.contains("approximate: without addresses, found by text and source line")
    );
    assert!(of_table.contains("11 samples can be of one of several instructions, and are given to none"), "{of_table}");
    assert!(!of_table.contains("--target says"), "there is one processor");
    // A file for several processors, all of which have the instruction.
    let spmv = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/spmv")).expect("the sample");
    let of_several =
        text(&with(&spmv, &[&format!("{HOST_TRAP}1,1,1,s_endpgm,,1\n")], Blame::Exposed).expect("it fits"));
    assert!(
        of_several.contains("(gfx90a)") && of_several.contains("--target says which of the processors it was"),
        "{of_several}"
    );
    let wait = address(&object, "one", "s_waitcnt lgkmcnt(0)", 0);
    let of_json = shown(&[&json("pc_sample_stochastic", &[stochastic(wait, true), stochastic(wait, false)])]);
    assert!(
        of_json.contains("samples  issued  hidden  did not issue")
            && of_json.contains("2.0 samples, 1.0 of them exposed"),
        "{of_json}"
    );
}

/// Damaged files give a slice or an error, and no panic.
#[test]
fn damaged_files_are_sliced_or_refused() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let seeds = [
        format!("{HOST_TRAP}{}", table(&object, "two", 2, true)),
        trace(&object, "two"),
        json("pc_sample_stochastic", &[stochastic(address(&object, "two", "s_endpgm", 0), true)]),
    ];
    let mut random = Random::new(23);
    let mut below = |limit: usize| (random.next() % limit as u64) as usize;
    let (mut sliced, mut refused) = (0, 0);
    for round in 0..600 {
        let mut data = seeds[round % seeds.len()].clone().into_bytes();
        for _ in 0..1 + below(3) {
            let at = below(data.len());
            match below(4) {
                0 => data[at] = below(256) as u8,
                1 => data[at] = b"\",;\n0-x97"[below(9)],
                2 => drop(data.remove(at)),
                _ => data.insert(at, b"\",;\n0-x97"[below(9)]),
            }
        }
        let blame = [Blame::Exposed, Blame::Leo][round % 2];
        let result = pc_samples::read(&data).and_then(|samples| {
            pipeline::slice(
                &object,
                &Selection::default(),
                Evidence { samples: &[samples], blame, ..Evidence::default() },
            )
        });
        match result {
            Ok(_) => sliced += 1,
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(sliced > 50 && refused > 50, "{sliced} {refused}");

    // Sums beyond 64 bits.
    let mut huge = trace(&object, "two").replace(",832,800,", &format!(",{0},{0},", u64::MAX));
    huge += &huge.lines().skip(1).map(|row| format!("{}\n", row.replacen('7', "8", 1))).collect::<String>();
    for blame in [Blame::Exposed, Blame::Leo] {
        let slice = with(&object, &[&huge], blame).expect("they fit");
        let two = kernel(&slice, "two");
        assert_eq!(two.samples.as_ref().expect("samples").samples, u64::MAX);
        assert!((two.chains.iter().map(|chain| chain.kernel_share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(!text(&slice).is_empty());
    }
}

/// A file of host-trap samples of several code objects, each with what the file says of it, and its samples by offset.
fn host_trap(objects: &[(u64, &str, &[u64])], symbols: &[(u64, &str)]) -> String {
    let records: Vec<String> = objects
        .iter()
        .flat_map(|(id, _, offsets)| {
            offsets.iter().map(move |offset| {
                format!(r#"{{"record": {{"pc": {{"code_object_id": {id}, "code_object_offset": {offset}}}}}}}"#)
            })
        })
        .collect();
    let listed: Vec<String> = objects
        .iter()
        .filter(|(_, what, _)| *what != "-")
        .map(|(id, what, _)| format!(r#"{{"code_object_id": {id}{what}}}"#))
        .collect();
    let symbols: Vec<String> =
        symbols.iter().map(|(id, name)| format!(r#"{{"code_object_id": {id}, "kernel_name": "{name}.kd"}}"#)).collect();
    format!(
        r#"{{"rocprofiler-sdk-tool": [{{"code_objects": [{}], "kernel_symbols": [{}],
        "buffer_records": {{"pc_sample_host_trap": [{}]}}}}]}}"#,
        listed.join(","),
        symbols.join(","),
        records.join(",")
    )
}

#[test]
fn samples_of_another_code_object_are_given_to_no_kernel() {
    if !assembler_is_there() {
        return;
    }
    let object = object();
    let load = address(&object, "one", "global_load", 0);
    let size = object.len();
    let own = format!(r#", "uri": "file:///app#offset=4096&size={size}""#);
    let both = [(1, "one"), (1, "two")];
    // The same offset in each: only what is said of the objects tells them apart.
    for (what, kernels, why) in [
        (
            format!(r#", "uri": "file:///lib.so#offset=4096&size={}""#, size + 8),
            &[][..],
            "they are of a code object of",
        ),
        (r#", "load_size": 1048576"#.to_owned(), &[], "loaded into 1048576 bytes"),
        (r#", "md5": "00""#.to_owned(), &[], "with the MD5 00"),
        (String::new(), &[(2, "three")], "with a kernel three"),
        (String::new(), &[(2, "one"), (2, "three")], "with a kernel three"),
        (String::new(), &[], "nothing says which of several"),
        ("-".to_owned(), &[], "not among the code objects that the file of samples lists"),
    ] {
        let symbols = [&both[..], kernels].concat();
        let file = host_trap(&[(1, &own, &[load, load]), (2, &what, &[load, load, load])], &symbols);
        let slice = with(&object, &[&file], Blame::Exposed).unwrap_or_else(|error| panic!("{why}: {error}"));
        assert_eq!(seen(kernel(&slice, "one")), BTreeMap::from([(load, 2)]), "{why}");
        let [foreign] = slice.samples[0].foreign.as_slice() else { panic!("{why}: {:?}", slice.samples) };
        assert_eq!((foreign.id, foreign.samples, slice.samples[0].elsewhere), (2, 3, 3), "{why}");
        assert!(foreign.why.contains(why), "{why}: {}", foreign.why);
        // By themselves they are another file's.
        let alone = host_trap(&[(2, &what, &[load])], kernels);
        if what != "-" && !(what.is_empty() && kernels.is_empty()) {
            assert!(
                with(&object, &[&alone], Blame::Exposed)
                    .is_err_and(|error| error.to_string().contains("do not fit this file")),
                "{why}"
            );
        }
    }
    // Two processes number their objects alike.
    let process = |what: &str, symbol: &str| host_trap(&[(1, what, &[load])], &[(1, symbol)]);
    let (first, second) = (process(&own, "one"), process("", "three"));
    let tool = |file: &str| file.trim_start_matches(r#"{"rocprofiler-sdk-tool": ["#).trim_end_matches("]}").to_owned();
    let two = format!(r#"{{"rocprofiler-sdk-tool": [{},{}]}}"#, tool(&first), tool(&second));
    let slice = with(&object, &[&two], Blame::Exposed).expect("one of them fits");
    assert_eq!((seen(kernel(&slice, "one")), slice.samples[0].foreign.len()), (BTreeMap::from([(load, 1)]), 1));
}
