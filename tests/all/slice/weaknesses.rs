//! Where the public artifact of LEO (arXiv 2604.20032, yuninxia/leo_sc26_ae) goes wrong on AMD hardware, and what ours
//! answers there.
//!
//! [`TABLE`] has every weakness that is known, with its test. The kernels are small, so that the right answer can be
//! seen in them.

use std::panic::catch_unwind;

use wavetap::code_object::CodeObject;
use wavetap::isa::{Demand, Target};
use wavetap::pipeline::Selection;
use wavetap::pipeline::{self, Evidence};
use wavetap::profile::pc_samples;
use wavetap::report::slice::{KernelSlice, WaitCertainty};
use wavetap::slice::blame::Blame;

use super::assembled::{address, assemble, assembler_is_there, instructions, last_chains, only, path, slice, waited};

const TABLE: &[(&str, fn())] = &[
    ("every object is disassembled as gfx90a code", each_object_is_decoded_for_its_own_processor),
    ("branches and lines that are long as text are dropped", long_instructions_and_branches_are_there),
    ("accumulation registers share numbers with vector registers", accumulation_registers_are_registers_of_their_own),
    ("nearly every instruction with a 64-bit operand is taken for indirect access", pairs_of_registers_are_traced),
    (
        "the first operand is the destination, of comparisons and LDS atomics too",
        first_operands_are_not_always_destinations,
    ),
    (
        "VCC, SCC, second destinations and destinations that are read are ignored",
        implicit_and_second_registers_are_followed,
    ),
    ("labels are lost: each function is one basic block", loops_are_followed),
    ("all kernels of a module are analysed together", kernels_are_apart),
    ("s_load and ds_load are no loads", every_load_is_one),
    ("s_load, ds_add and ds_bpermute are no memory operations", every_memory_operation_is_one),
    ("lgkmcnt counts no flat, time, message, scalar store or scalar atomic", every_operation_counts_where_it_does),
    ("vscnt and the counters of gfx12 are ignored", each_counter_waits_for_its_own),
    ("an earlier wait for more takes nothing away", earlier_waits_complete_what_they_complete),
    ("hidden stalls count as others", hidden_stalls_are_set_apart),
    ("the blame of each s_waitcnt is divided equally", what_arrives_last_is_blamed),
    ("source lines are looked up every 16 bytes", every_instruction_has_its_own_line),
    ("occupancy is that of another processor", occupancy_is_the_processors_own),
];

#[test]
fn each_weakness_is_none_of_ours() {
    if !assembler_is_there() {
        return;
    }
    let failed: Vec<&str> =
        TABLE.iter().filter(|(_, test)| catch_unwind(test).is_err()).map(|(weakness, _)| *weakness).collect();
    assert!(failed.is_empty(), "as in LEO: {failed:#?}");
}

fn sliced(target: &str, body: &str) -> KernelSlice {
    only(slice(&assemble(target, &[("k", body)])))
}

/// The operations of a wait by name, with how sure each is.
fn names(kernel: &KernelSlice, counter: &str, nth: usize) -> Vec<(String, WaitCertainty)> {
    let name = |text: String| text.split(' ').next().unwrap_or_default().to_owned();
    waited(kernel, counter, nth).into_iter().map(|(text, certainty)| (name(text), certainty)).collect()
}

fn must(name: &str) -> (String, WaitCertainty) {
    (name.to_owned(), WaitCertainty::Must)
}

fn may(name: &str) -> (String, WaitCertainty) {
    (name.to_owned(), WaitCertainty::May)
}

/// The one chain of the last wait.
fn last_path(kernel: &KernelSlice) -> Vec<String> {
    let chains = last_chains(kernel);
    let [chain] = chains.as_slice() else { panic!("{chains:?}") };
    path(chain).into_iter().map(str::to_owned).collect()
}

fn each_object_is_decoded_for_its_own_processor() {
    let older = " global_load_dword v1, v0, s[0:1]\n s_waitcnt vmcnt(0)";
    let gfx11 = " global_load_b32 v1, v0, s[0:1]\n s_waitcnt vmcnt(0)";
    let gfx12 = " global_load_b32 v1, v0, s[0:1]\n s_wait_loadcnt 0x0";
    let targets = [
        ("gfx906", older),
        ("gfx90a", older),
        ("gfx942", older),
        ("gfx1030", older),
        ("gfx1100", gfx11),
        ("gfx1200", gfx12),
    ];
    for (target, body) in targets {
        let kernel = sliced(target, body);
        assert_eq!(kernel.target, target);
        let [wait] = kernel.waits.as_slice() else { panic!("{target}: {:?}", kernel.waits) };
        assert_eq!(wait.operations.len(), 1, "{target}");
        assert!(
            wait.operations[0].instruction.as_deref().is_some_and(|text| text.starts_with("global_load")),
            "{target}"
        );
    }
}

fn long_instructions_and_branches_are_there() {
    let kernel = sliced(
        "gfx90a",
        " v_mfma_f32_32x32x8f16 a[0:15], v[2:3], v[4:5], a[0:15] cbsz:1 abid:1 blgp:1\n v_accvgpr_read_b32 v9, a3\n \
            s_cbranch_scc1 .Lover\n s_nop 0\n.Lover:\n buffer_load_dwordx4 v[20:23], v9, s[8:11], s12 offen \
            offset:4095 glc slc\n s_waitcnt vmcnt(0)",
    );
    let [wait, load, read, matrix] = last_path(&kernel).try_into().expect("four steps");
    assert_eq!(wait, "s_waitcnt vmcnt(0)");
    assert!(
        load.starts_with("buffer_load_dwordx4 v[20:23]")
            && read.starts_with("v_accvgpr_read_b32")
            && matrix.starts_with("v_mfma")
    );
}

fn accumulation_registers_are_registers_of_their_own() {
    let kernel = sliced(
        "gfx90a",
        " v_accvgpr_write_b32 a4, v3\n global_load_dword v4, v0, s[0:1]\n v_accvgpr_read_b32 v10, a4\n s_waitcnt \
            vmcnt(0)\n global_load_dword v1, v10, s[0:1]\n s_waitcnt vmcnt(0)",
    );
    assert_eq!(
        last_path(&kernel),
        [
            "s_waitcnt vmcnt(0)",
            "global_load_dword v1, v10, s[0:1]",
            "v_accvgpr_read_b32 v10, a4",
            "v_accvgpr_write_b32 a4, v3"
        ]
    );
}

fn pairs_of_registers_are_traced() {
    let kernel = sliced(
        "gfx90a",
        " global_load_dwordx2 v[0:1], v0, s[0:1]\n s_waitcnt vmcnt(0)\n v_lshlrev_b64 v[2:3], 2, v[0:1]\n \
            global_load_dword v5, v[2:3], off\n s_waitcnt vmcnt(0)",
    );
    let expected = [
        "s_waitcnt vmcnt(0)",
        "global_load_dword v5, v[2:3], off",
        "v_lshlrev_b64 v[2:3], 2, v[0:1]",
        "global_load_dwordx2 v[0:1], v0, s[0:1]",
    ];
    assert_eq!(last_path(&kernel), expected);
    // Only the register that is meant: v[0:1] is written as a whole, of which v1 is another's.
    let kernel = sliced(
        "gfx90a",
        " global_load_dwordx2 v[0:1], v0, s[0:1]\n s_waitcnt vmcnt(0)\n v_exp_f32_e32 v0, v8\n v_add_u32_e32 v2, v1, \
            v1\n global_load_dword v5, v2, s[0:1]\n s_waitcnt vmcnt(0)",
    );
    assert_eq!(last_path(&kernel)[2..], ["v_add_u32_e32 v2, v1, v1", "global_load_dwordx2 v[0:1], v0, s[0:1]"]);
}

fn first_operands_are_not_always_destinations() {
    let kernel = sliced(
        "gfx90a",
        " s_load_dword s4, s[0:1], 0x0\n s_waitcnt lgkmcnt(0)\n s_cmp_lg_u32 s4, 0\n v_mov_b32_e32 v2, s4\n ds_add_u32 \
            v2, v3\n global_load_dword v1, v2, s[0:1]\n s_waitcnt vmcnt(0)",
    );
    let expected = [
        "s_waitcnt vmcnt(0)",
        "global_load_dword v1, v2, s[0:1]",
        "v_mov_b32_e32 v2, s4",
        "s_load_dword s4, s[0:1], 0x0",
    ];
    assert_eq!(last_path(&kernel), expected);
}

fn implicit_and_second_registers_are_followed() {
    let behind = |producers: &str| {
        let kernel = sliced("gfx90a", &format!("{producers}\n global_load_dword v1, v2, s[0:1]\n s_waitcnt vmcnt(0)"));
        last_path(&kernel).into_iter().skip(2).collect::<Vec<_>>()
    };
    // VCC.
    let expected = ["v_cndmask_b32_e32 v2, v3, v4, vcc", "v_cmp_gt_u32_e32 vcc, v5, v6"];
    assert_eq!(behind(" v_cmp_gt_u32_e32 vcc, v5, v6\n v_cndmask_b32_e32 v2, v3, v4, vcc"), expected);
    // SCC.
    let expected = ["v_mov_b32_e32 v2, s6", "s_cselect_b32 s6, s4, s5", "s_cmp_lg_u32 s8, s9"];
    assert_eq!(behind(" s_cmp_lg_u32 s8, s9\n s_cselect_b32 s6, s4, s5\n v_mov_b32_e32 v2, s6"), expected);
    // A carry that is a second destination.
    let expected = ["v_cndmask_b32_e64 v2, v3, v4, s[10:11]", "v_mad_u64_u32 v[12:13], s[10:11], v5, v6, v[8:9]"];
    assert_eq!(
        behind(" v_mad_u64_u32 v[12:13], s[10:11], v5, v6, v[8:9]\n v_cndmask_b32_e64 v2, v3, v4, s[10:11]"),
        expected
    );
    // A destination that is read.
    assert_eq!(
        behind(" v_exp_f32_e32 v2, v7\n v_fmac_f32_e32 v2, v3, v4"),
        ["v_fmac_f32_e32 v2, v3, v4", "v_exp_f32_e32 v2, v7"]
    );
}

fn loops_are_followed() {
    let kernel = sliced(
        "gfx90a",
        " s_mov_b32 s4, 4\n global_load_dword v1, v0, s[0:1]\n.Lagain:\n s_waitcnt vmcnt(0)\n v_add_u32_e32 v2, v2, \
            v1\n global_load_ubyte v1, v0, s[0:1]\n s_sub_u32 s4, s4, 1\n s_cmp_lg_u32 s4, 0\n s_cbranch_scc1 \
            .Lagain\n s_waitcnt vmcnt(0)",
    );
    assert_eq!(names(&kernel, "vmcnt", 0), [may("global_load_dword"), may("global_load_ubyte")]);
    assert_eq!(names(&kernel, "vmcnt", 1), [must("global_load_ubyte")]);
}

fn kernels_are_apart() {
    let object = assemble(
        "gfx90a",
        &[
            ("one", " global_load_dword v1, v0, s[0:1]"),
            ("two", " s_waitcnt vmcnt(0)\n global_load_ubyte v1, v0, s[0:1]\n s_waitcnt vmcnt(0)"),
        ],
    );
    let (first, second) = (address(&object, "two", "s_waitcnt", 0), address(&object, "two", "s_waitcnt", 1));
    let record = |offset| format!(r#"{{"record": {{"pc": {{"code_object_id": 1, "code_object_offset": {offset}}}}}}}"#);
    let json = format!(
        r#"{{"rocprofiler-sdk-tool": [{{"buffer_records": {{"pc_sample_host_trap": [{},{}]}}}}]}}"#,
        record(first),
        record(second)
    );
    let samples = [pc_samples::read(json.as_bytes()).expect("samples")];
    for blame in [Blame::Exposed, Blame::Leo] {
        let given = Evidence { samples: &samples, blame, ..Evidence::default() };
        let slice = pipeline::slice(&object, &Selection::default(), given).expect("a slice");
        let kernel = |name: &str| slice.kernels.iter().find(|kernel| kernel.name == name).expect("the kernel");
        // What another kernel has issued before, in memory, is no cause here.
        assert_eq!(names(kernel("two"), "vmcnt", 0), []);
        assert_eq!(names(kernel("two"), "vmcnt", 1), [must("global_load_ubyte")]);
        assert_eq!(kernel("one").samples.as_ref().map(|samples| samples.samples), Some(0));
        assert_eq!(kernel("two").samples.as_ref().map(|samples| samples.samples), Some(2));
        let outside = instructions(&object).into_iter().filter(|placed| placed.kernel == "one").any(|placed| {
            kernel("two").chains.iter().flat_map(|chain| &chain.path).any(|step| step.address == placed.address)
        });
        assert!(!outside);
    }
}

fn every_load_is_one() {
    let kernel = sliced("gfx90a", " s_load_dword s4, s[0:1], 0x0\n s_waitcnt lgkmcnt(0)");
    assert_eq!(names(&kernel, "lgkmcnt", 0), [must("s_load_dword")]);
    let chains = last_chains(&kernel);
    assert_eq!((chains[0].share, path(chains[0])[1]), (1.0, "s_load_dword s4, s[0:1], 0x0"));
    let kernel = sliced("gfx1100", " ds_load_b32 v1, v0\n s_waitcnt lgkmcnt(0)");
    assert_eq!(names(&kernel, "lgkmcnt", 0), [must("ds_load_b32")]);
    assert_eq!(last_chains(&kernel)[0].share, 1.0);
}

fn every_memory_operation_is_one() {
    for operation in [
        "ds_add_rtn_u32 v1, v0, v2",
        "ds_bpermute_b32 v1, v0, v2",
        "ds_add_u32 v0, v2",
        "s_load_dwordx2 s[4:5], s[0:1], 0x0",
    ] {
        let kernel = sliced("gfx90a", &format!(" {operation}\n s_waitcnt lgkmcnt(0)"));
        assert_eq!(names(&kernel, "lgkmcnt", 0), [must(operation.split(' ').next().expect("a name"))]);
        assert_eq!(last_path(&kernel)[1], operation);
    }
}

fn every_operation_counts_where_it_does() {
    let operations = [
        ("gfx90a", "flat_load_dword v1, v[2:3]"),
        ("gfx90a", "s_memtime s[4:5]"),
        ("gfx90a", "s_memrealtime s[4:5]"),
        ("gfx90a", "s_sendmsg sendmsg(MSG_INTERRUPT)"),
        ("gfx906", "s_store_dword s4, s[2:3], 0x0"),
        ("gfx906", "s_atomic_add s4, s[2:3], 0x0"),
    ];
    for (target, operation) in operations {
        let kernel = sliced(target, &format!(" {operation}\n s_waitcnt lgkmcnt(0)"));
        assert_eq!(names(&kernel, "lgkmcnt", 0), [must(operation.split(' ').next().expect("a name"))], "{target}");
    }
    let kernel = sliced("gfx90a", " flat_load_dword v1, v[2:3]\n s_waitcnt vmcnt(0)");
    assert_eq!(names(&kernel, "vmcnt", 0), [must("flat_load_dword")], "in both counters");
    // What the counter does not count is not waited for.
    let kernel = sliced(
        "gfx90a",
        " global_load_dword v1, v0, s[0:1]\n ds_read_b32 v2, v0\n s_waitcnt lgkmcnt(0)\n s_waitcnt vmcnt(0)",
    );
    assert_eq!(
        (names(&kernel, "lgkmcnt", 0), names(&kernel, "vmcnt", 0)),
        (vec![must("ds_read_b32")], vec![must("global_load_dword")])
    );
}

fn each_counter_waits_for_its_own() {
    let kernel = sliced(
        "gfx1030",
        " global_load_dword v1, v0, s[0:1]\n global_store_dword v0, v2, s[0:1]\n s_waitcnt vmcnt(0)\n s_waitcnt_vscnt \
            null, 0x0",
    );
    assert_eq!(
        (names(&kernel, "vmcnt", 0), names(&kernel, "vscnt", 0)),
        (vec![must("global_load_dword")], vec![must("global_store_dword")])
    );
    let kernel = sliced(
        "gfx1200",
        " s_load_b32 s4, s[0:1], 0x0\n global_load_b32 v1, v0, s[0:1]\n global_store_b32 v0, v2, s[0:1]\n ds_load_b32 \
            v3, v0\n s_wait_loadcnt 0x0\n s_wait_storecnt 0x0\n s_wait_dscnt 0x0\n s_wait_kmcnt 0x0",
    );
    for (counter, operation) in [
        ("loadcnt", "global_load_b32"),
        ("storecnt", "global_store_b32"),
        ("dscnt", "ds_load_b32"),
        ("kmcnt", "s_load_b32"),
    ] {
        assert_eq!(names(&kernel, counter, 0), [must(operation)], "{counter}");
    }
    // On gfx9 stores count with the loads.
    let kernel =
        sliced("gfx90a", " global_load_dword v1, v0, s[0:1]\n global_store_dword v0, v2, s[0:1]\n s_waitcnt vmcnt(0)");
    assert_eq!(names(&kernel, "vmcnt", 0), [must("global_load_dword"), must("global_store_dword")]);
}

fn earlier_waits_complete_what_they_complete() {
    let kernel = sliced(
        "gfx90a",
        " global_load_dword v1, v0, s[0:1]\n global_load_ubyte v2, v0, s[0:1]\n global_load_sbyte v3, v0, s[0:1]\n \
            s_waitcnt vmcnt(2)\n s_waitcnt vmcnt(0)",
    );
    assert_eq!(names(&kernel, "vmcnt", 0), [must("global_load_dword")]);
    assert_eq!(names(&kernel, "vmcnt", 1), [must("global_load_ubyte"), must("global_load_sbyte")]);
}

fn hidden_stalls_are_set_apart() {
    let object = assemble(
        "gfx90a",
        &[(
            "k",
            " global_load_dword v1, v0, s[0:1]\n s_waitcnt vmcnt(0)\n global_load_ubyte v2, v1, s[0:1]\n s_waitcnt \
                vmcnt(0)",
        )],
    );
    let record = |nth, work| {
        let offset = address(&object, "k", "s_waitcnt", nth);
        format!(
            r#"{{"record": {{"pc": {{"code_object_id": 1, "code_object_offset": {offset}}}, "wave_issued": 0,
            "snapshot": {{"stall_reason": "WAITCNT",
            "arb_state_issue_valu": {work}, "arb_state_stall_valu": 0}}}}}}"#
        )
    };
    let mut records = vec![record(0, 1); 9];
    records.push(record(1, 0));
    let json = format!(
        r#"{{"rocprofiler-sdk-tool": [{{"buffer_records": {{"pc_sample_stochastic": [{}]}}}}]}}"#,
        records.join(",")
    );
    let samples = [pc_samples::read(json.as_bytes()).expect("samples")];
    let slice = pipeline::slice(&object, &Selection::default(), Evidence { samples: &samples, ..Evidence::default() })
        .expect("a slice");
    let kernel = only(slice);
    assert_eq!((kernel.chains[0].address, kernel.chains[0].kernel_share), (address(&object, "k", "s_waitcnt", 1), 1.0));
}

fn what_arrives_last_is_blamed() {
    let adds = " v_add_u32_e32 v9, v9, v9\n".repeat(30);
    let object = assemble(
        "gfx90a",
        &[(
            "k",
            &format!(" global_load_dword v1, v0, s[0:1]\n{adds} global_load_ubyte v2, v0, s[0:1]\n s_waitcnt vmcnt(0)"),
        )],
    );
    let kernel = only(slice(&object));
    let chains = last_chains(&kernel);
    // Either may take longer than it usually does; the later one is to blame for more.
    let [last, first] = &chains[..] else { panic!("{chains:?}") };
    assert_eq!(
        [path(last)[1], path(first)[1]],
        ["global_load_ubyte v2, v0, s[0:1]", "global_load_dword v1, v0, s[0:1]"]
    );
    assert!(last.share > 0.6 && (last.share + first.share - 1.0).abs() < 1e-9, "{last:?} {first:?}");
    // As LEO is published, too, the shares differ: 31 instructions farther is a 32nd.
    let leo = pipeline::slice(&object, &Selection::default(), Evidence { blame: Blame::Leo, ..Evidence::default() })
        .expect("a slice");
    let shares: Vec<f64> = leo.kernels[0].chains.iter().map(|chain| chain.share).collect();
    assert!((shares[0] - 32.0 / 33.0).abs() < 1e-9 && (shares[1] - 1.0 / 33.0).abs() < 1e-9, "{shares:?}");
}

fn every_instruction_has_its_own_line() {
    // Of 4 and of 8 bytes, each on a line of its own.
    let body = " s_load_dword s4, s[0:1], 0x0\n s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v2, s4\n v_add_u32_e32 v3, v2, \
        v2\n v_mov_b32_e32 v5, 0x12345678\n global_load_dword v1, v3, s[0:1]\n s_nop 0\n s_waitcnt vmcnt(0)";
    let object = assemble("gfx90a", &[("k", body)]);
    let lines = CodeObject::parse(&object).expect("an object").line_table().expect("lines").expect("a table");
    let all: Vec<u32> =
        instructions(&object).iter().map(|placed| lines.location(placed.address).expect("a line").line).collect();
    assert_eq!(all.len(), 9);
    assert!(all.windows(2).all(|pair| pair[1] == pair[0] + 1), "{all:?}");
    let kernel = only(slice(&object));
    for chain in &kernel.chains {
        for step in &chain.path {
            let placed =
                instructions(&object).iter().position(|placed| placed.address == step.address).expect("an instruction");
            assert_eq!(step.source.as_ref().map(|source| source.line), Some(all[placed]));
        }
    }
}

fn occupancy_is_the_processors_own() {
    let waves = |target: &str, vgprs| {
        let demand = Demand { vgprs, sgprs: 16, lds_bytes: 0, workgroup_size: 256, wgp_mode: false };
        Target::by_name(target).expect("a target").occupancy(&demand).waves
    };
    // 512 registers of a lane for a SIMD of gfx90a and gfx942, in eights, for at most 8 waves; 256 in fours for 10
    // waves of gfx906.
    for target in ["gfx90a", "gfx942"] {
        let found: Vec<u32> =
            [24, 64, 65, 128, 129, 136, 256, 512].into_iter().map(|vgprs| waves(target, vgprs)).collect();
        assert_eq!(found, [8, 8, 7, 4, 3, 3, 2, 1], "{target}");
    }
    assert_eq!([24, 25, 128].map(|vgprs| waves("gfx906", vgprs)), [10, 9, 2]);
}
