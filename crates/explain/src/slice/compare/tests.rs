//! Two versions of a kernel whose causes are written by hand.

use super::*;
use crate::slice::{Blame, CountSource, Coverage, Cycles, Evidence, OperationSlice, Step, WaitCertainty};

fn source(line: u32) -> Option<Source> {
    Some(Source { file: "dir/k.cu".to_owned(), line })
}

fn wait(address: u64, operations: &[(u64, u32)]) -> WaitSlice {
    let operation = |&(address, line): &(u64, u32)| OperationSlice {
        address: Some(address),
        instruction: Some("load".to_owned()),
        source: source(line),
        certainty: WaitCertainty::Must,
        class: Some(Class::Global),
        latency: Cycles::fixed(500),
    };
    WaitSlice {
        address,
        instruction: "wait".to_owned(),
        source: None,
        counter: "SB0".to_owned(),
        count: 0,
        executions: None,
        executions_source: CountSource::Unknown,
        latency: Cycles::fixed(500),
        predicted_cycles: 500,
        operations: operations.iter().map(operation).collect(),
    }
}

fn chain(address: u64, (operation, line): (u64, u32), class: Class, kernel_share: f64) -> Chain {
    let step = |address, source, edge| Step { address, instruction: String::new(), source, inlined: Vec::new(), edge };
    Chain {
        address,
        counter: "SB0".to_owned(),
        share: 1.0,
        predicted_cycles: 400,
        samples: None,
        exposed_samples: None,
        kernel_share,
        self_blame: None,
        class: Some(class),
        evidence: Evidence {
            certainty: WaitCertainty::Must,
            executions: CountSource::Unknown,
            latency: Cycles::fixed(500),
            hidden_cycles: 20,
            stable: true,
            active_lanes: None,
            access: None,
            address_loaded_by: None,
            observed: None,
            confidence: None,
        },
        reading: String::new(),
        path: vec![step(address, None, Edge::Stall), step(operation, source(line), Edge::Wait)],
        mask: Vec::new(),
        through_memory: false,
    }
}

fn slice(target: &str, demangled: &str, waits: Vec<WaitSlice>, chains: Vec<Chain>) -> Slice {
    let kernel = KernelSlice {
        name: demangled.to_owned(),
        demangled: demangled.to_owned(),
        target: target.to_owned(),
        not_ranked_by_time: true,
        waits,
        chains,
        coverage: Coverage::default(),
        samples: None,
    };
    let schema = crate::slice::SCHEMA.to_owned();
    Slice {
        schema,
        predicted: true,
        blame: Blame::Exposed,
        samples: Vec::new(),
        kernels: vec![kernel],
        unread: Vec::new(),
    }
}

#[test]
fn versions_are_compared_by_kind_and_line() {
    // One waits for line 3 alone; the other for LDS, and line 3 is hidden.
    let amd = slice(
        "gfx90a",
        "add(float*, int)",
        vec![wait(8, &[(0, 3), (4, 3)])],
        vec![chain(8, (0, 3), Class::Global, 1.0)],
    );
    let waits = vec![wait(0x40, &[(0x10, 3)]), wait(0x80, &[(0x60, 7)])];
    let chains = vec![chain(0x80, (0x60, 7), Class::Shared, 0.9), chain(0x40, (0x10, 3), Class::Global, 0.1)];
    let nvidia = slice("sm_80", "void add(float*, int)", waits, chains);
    let compared = compare(&[("a.co".to_owned(), amd), ("b.cubin".to_owned(), nvidia)]);
    let [kernel] = compared.kernels.as_slice() else { panic!("one kernel: {compared:?}") };
    assert_eq!((kernel.name.as_str(), compared.alone.len()), ("add", 0));
    let shares = |causes: &[ComparedCause]| -> Vec<(String, Vec<f64>)> {
        let of = |cause: &ComparedCause| cause.versions.iter().filter_map(|version| version.share).collect();
        causes.iter().map(|cause| (cause.cause.clone(), of(cause))).collect()
    };
    let expected = |a: &str, b: &str| vec![(a.to_owned(), vec![1.0, 0.1]), (b.to_owned(), vec![0.0, 0.9])];
    assert_eq!(shares(&kernel.kinds), expected("global memory", "shared memory"));
    assert_eq!(shares(&kernel.lines), expected("k.cu:3", "k.cu:7"));
    assert_eq!(
        kernel.differences[0],
        "global memory: 100 % on gfx90a (20 of 500 cycles pass before the wait, 2 operations may be in flight at the \
            wait), 10 % on sm_80 (20 of 500 cycles pass before the wait)"
    );
    assert!(
        kernel.differences[3].contains("0 % on gfx90a (no operation of it is waited for)"),
        "{:?}",
        kernel.differences
    );
    let waits: Vec<_> = kernel.versions.iter().map(|version| (version.waits, version.operations_per_wait)).collect();
    assert_eq!(waits, [(1, 2.0), (2, 1.0)]);
    assert_eq!(kernel.versions[0].basis, ShareBasis::OneExecution);
}

#[test]
fn kernels_without_a_partner_are_named() {
    let one = slice("gfx90a", "add(int)", Vec::new(), Vec::new());
    let other = slice("sm_80", "sub(int)", Vec::new(), Vec::new());
    let compared = compare(&[("a".to_owned(), one), ("b".to_owned(), other)]);
    let alone: Vec<_> = compared.alone.iter().map(|kernel| (kernel.file.as_str(), kernel.name.as_str())).collect();
    assert_eq!((compared.kernels.len(), alone), (0, vec![("a", "add(int)"), ("b", "sub(int)")]));
}
