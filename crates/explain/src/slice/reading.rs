//! A chain in one sentence.

use wavetap_memory::WorkgroupSource;
use wavetap_slice::{Cause, Chain, LaneAccess, SelfBlame, StallClass, Step};

/// What a chain blames, in words. `wave_size` is how many lanes the kernel's waves have.
pub(super) fn reading(chain: &Chain, wave_size: u32) -> String {
    let percent = 100.0 * chain.share;
    let blamed = chain.path.get(1);
    match &chain.cause {
        Cause::Operation { name, likely } => predicted(chain, name, *likely, wave_size),
        Cause::Callee { likely } => predicted(chain, "what the function called left outstanding", *likely, wave_size),
        Cause::Itself(why) => format!("waves wait here for {}", self_blame_text(*why)),
        Cause::Leo { name } => {
            format!("LEO blames {name} at {} for {percent:.0} % of this stall", place(blamed))
        }
        Cause::LeoItself(class) => {
            format!("LEO finds no cause: {percent:.0} % of this stall is its own, for {}", class_text(*class))
        }
    }
}

fn predicted(chain: &Chain, what: &str, likely: bool, wave_size: u32) -> String {
    let evidence = &chain.evidence;
    let scattered = match evidence.access.filter(|access| access.scattered()) {
        Some(access) => format!("; {}", lanes_text(&access)),
        None => String::new(),
    };
    let lanes =
        evidence.active_lanes.map_or_else(String::new, |lanes| format!("; {lanes:.1} of {wave_size} lanes active"));
    if evidence.observed.is_some() {
        let (percent, place) = (100.0 * chain.share, place(chain.path.get(1)));
        return format!("{percent:.0} % of this wait was for {what} at {place}{lanes}{scattered}");
    }
    let predicted = if likely { "predicted to be" } else { "by prediction not waited for, and if at all then" };
    let (percent, place) = (100.0 * chain.share, place(chain.path.get(1)));
    format!("{percent:.0} % of this wait is {predicted} for {what} at {place}{lanes}{scattered}")
}

/// The source line of a step, or its address.
fn place(step: Option<&Step>) -> String {
    let Some(step) = step else { return String::new() };
    match &step.source {
        Some(source) => format!("{}:{}", source.file.rsplit('/').next().unwrap_or(&source.file), source.line),
        None => format!("{:#x}", step.address),
    }
}

/// Why waves stall at an instruction itself, in words after "for".
fn self_blame_text(why: SelfBlame) -> &'static str {
    match why {
        SelfBlame::MemoryLatency => "memory that should have been there by prediction",
        SelfBlame::Dependency => "a result of the ALU",
        SelfBlame::Barrier => "other waves at the barrier",
        SelfBlame::InstructionFetch => "the next instruction to be fetched",
        SelfBlame::IssueContention => "its turn: other waves were issued first",
        SelfBlame::BusyPipe => "a unit that was busy",
        SelfBlame::Sleep => "as long as the program sleeps",
        SelfBlame::Other => "a reason that is not looked into",
        SelfBlame::Unknown => "a reason that the samples do not tell",
    }
}

fn class_text(class: StallClass) -> &'static str {
    match class {
        StallClass::IndirectAccess => "indirect access",
        StallClass::MemoryLatency => "memory latency",
        StallClass::SaturatedComputation => "saturated computation",
        StallClass::Synchronisation => "synchronisation",
        StallClass::BusyPipe => "a busy pipe",
        StallClass::InstructionFetch => "instruction fetch",
        StallClass::Scheduler => "the scheduler",
    }
}

/// How lanes lie and what is used of a line, in words.
fn lanes_text(access: &LaneAccess) -> String {
    let LaneAccess { stride, strides: [y, z], workgroup, line, used, .. } = *access;
    let unknown = "an unknown number";
    let of = |stride: Option<i64>| stride.map_or(unknown.to_owned(), |stride| stride.unsigned_abs().to_string());
    let mut text = match stride {
        Some(_) => format!("lanes are {} bytes apart", of(stride)),
        None => format!("lanes are {unknown} of bytes apart"),
    };
    if (y, z) != (Some(0), Some(0)) {
        let z = if z == Some(0) { String::new() } else { format!(" and {} in z", of(z)) };
        text = format!(
            "{text} in x, {} in y{z} (workgroups of {}×{}×{})",
            of(y),
            workgroup[0],
            workgroup[1],
            workgroup[2]
        );
    }
    text.push_str(&format!(", {used} of {line} bytes of a line are used"));
    if access.workgroup_source == WorkgroupSource::Assumed {
        text.push_str(" if workgroups have one dimension");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::map::Source;
    use wavetap_slice::counts::CountSource;
    use wavetap_slice::{Cycles, Edge, Evidence, WaitCertainty};

    const COLUMN: LaneAccess = LaneAccess {
        bytes: 4,
        stride: Some(256),
        strides: [Some(4), Some(0)],
        workgroup: [16, 16, 1],
        workgroup_source: WorkgroupSource::Launched,
        line: 64,
        used: 16,
        lines: 16,
        least_lines: 4,
    };

    fn chain(cause: Cause, access: Option<LaneAccess>) -> Chain {
        let step = |address, source: Option<&str>, edge| Step {
            address,
            instruction: String::new(),
            source: source.map(|file| Source { file: file.to_owned(), line: 7 }),
            inlined: Vec::new(),
            edge,
        };
        Chain {
            address: 0x10,
            counter: "vmcnt".to_owned(),
            share: 0.75,
            predicted_cycles: 0,
            samples: None,
            exposed_samples: None,
            kernel_share: 0.0,
            cause,
            class: None,
            evidence: Evidence {
                certainty: WaitCertainty::Must,
                executions: CountSource::Counted,
                latency: Cycles::default(),
                hidden_cycles: 0,
                stable: true,
                active_lanes: access.map(|_| 12.5),
                access,
                address_loaded_by: None,
                observed: None,
                confidence: None,
            },
            path: vec![step(0x10, None, Edge::Stall), step(0xc, Some("dir/k.hip"), Edge::Wait)],
            mask: Vec::new(),
            through_memory: false,
        }
    }

    #[test]
    fn lanes_are_described_in_all_directions_that_matter() {
        let text = "lanes are 256 bytes apart in x, 4 in y (workgroups of 16×16×1), 16 of 64 bytes of a line are used";
        assert_eq!(lanes_text(&COLUMN), text);
        let flat = LaneAccess { strides: [Some(0); 2], workgroup_source: WorkgroupSource::Assumed, used: 4, ..COLUMN };
        let text = "lanes are 256 bytes apart, 4 of 64 bytes of a line are used if workgroups have one dimension";
        assert_eq!(lanes_text(&flat), text);
        let unknown = LaneAccess { stride: None, ..flat };
        assert_eq!(lanes_text(&unknown), text.replace("256", "an unknown number of"));
    }

    #[test]
    fn each_cause_has_its_sentence() {
        let operation = |likely| Cause::Operation { name: "global_load_dword".into(), likely };
        let cases = [
            (operation(true), "75 % of this wait is predicted to be for global_load_dword at k.hip:7"),
            (
                operation(false),
                "75 % of this wait is by prediction not waited for, and if at all then for global_load_dword at \
                    k.hip:7",
            ),
            (Cause::Itself(SelfBlame::Barrier), "waves wait here for other waves at the barrier"),
            (Cause::Leo { name: "s_load_dword".into() }, "LEO blames s_load_dword at k.hip:7 for 75 % of this stall"),
            (
                Cause::LeoItself(StallClass::Scheduler),
                "LEO finds no cause: 75 % of this stall is its own, for the scheduler",
            ),
        ];
        for (cause, text) in cases {
            assert_eq!(reading(&chain(cause, None), 64), text);
        }
        let scattered = reading(&chain(operation(true), Some(COLUMN)), 64);
        assert!(scattered.contains("k.hip:7; 12.5 of 64 lanes active; lanes are 256 bytes apart"), "{scattered}");
    }
}
