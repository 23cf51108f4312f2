//! What the latency probe measured, as a table.

use super::time::{rounded, share};
use super::{OfKernel, Tables};
use crate::style::{Style, counted, place};
use crate::table::{Align, Table, grouped, push_table};
use wavetap_amdgpu::{ShaderClock, Target};
use wavetap_explain::{MeasuredLatency, MeasuredLoad};
use wavetap_profile::probes::latency::{LatencyBucket, LatencyKind};

/// Loads listed for each kernel: those with the most net cycles. JSON has all of them.
const LOADS_SHOWN: usize = 20;

impl Tables for Option<MeasuredLatency> {
    fn tables(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
        if let Some(measured) = self {
            latency_lines(measured, kernel.target, style, lines);
        }
    }
}

/// The lines of a kernel.
fn latency_lines(latency: &MeasuredLatency, target: Option<Target>, style: Style, lines: &mut Vec<String>) {
    lines.push(String::new());
    lines.push(
        "  measured latency, in cycles of the shader's clock: from before each load until its wait is over".to_owned(),
    );
    let empty = rounded(latency.empty.mean().unwrap_or_default());
    lines.push(format!("    two readings of the clock with nothing between them take {empty}: net is mean less that"));
    lines.push(style.dim("    not measured: scalar loads, loads from LDS, images, stores"));
    lines.extend(target.and_then(Target::shader_clock).map(|clock| style.dim(&format!("    {}", reads(clock)))));
    let executed = latency.by_cost();
    let all: f64 = executed.iter().map(|load| latency.net(load)).sum();
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("load", Align::Code),
        ("source", Align::Place),
        ("executions", Align::Right),
        ("mean", Align::Right),
        ("net", Align::Right),
        ("least", Align::Right),
        ("p50", Align::Right),
        ("p90", Align::Right),
        ("p99", Align::Right),
        ("most", Align::Right),
        ("share", Align::Right),
        ("measured", Align::Words),
    ]);
    for load in executed.iter().take(LOADS_SHOWN) {
        let MeasuredLoad { counts, .. } = load;
        // Cycles of a clock that wrapped around are too few.
        let least = if counts.wrapped > 0 { "≥ " } else { "" };
        table.row([
            format!("{:#x}", load.address),
            load.instruction.clone(),
            place(load.source.as_ref()),
            grouped(counts.executions),
            counts.mean().map(|mean| format!("{least}{}", rounded(mean))).unwrap_or_default(),
            format!("{least}{}", rounded(latency.net(load) / counts.executions.max(1) as f64)),
            counts.shortest.map(grouped).unwrap_or_default(),
            percentile(load, 50),
            percentile(load, 90),
            percentile(load, 99),
            format!("{least}{}", grouped(counts.longest)),
            share(latency.net(load), all),
            how(load).to_owned(),
        ]);
    }
    push_table("loads by net cycles", &table, style, lines);
    if executed.len() > LOADS_SHOWN {
        lines.push(format!("  and {} more: --format json has all", executed.len() - LOADS_SHOWN));
    }
    let never = latency.loads.len() - executed.len();
    if never > 0 {
        lines.push(format!("  {} never executed with an active lane", counted(never as u64, "load was", "loads were")));
    }
    let idle: u64 = latency.loads.iter().map(|load| load.counts.idle).sum();
    if idle > 0 {
        lines.push(format!("  {} without an active lane left out", counted(idle, "execution", "executions")));
    }
    let wrapped = latency.loads.iter().map(|load| load.counts.wrapped).sum::<u64>() + latency.empty.wrapped;
    if wrapped > 0 {
        lines.push(style.warn(&format!(
            "  {} took so long that the clock of 20 bits may have wrapped around: their cycles are at least those \
                shown, and they may be in too low a bucket",
            counted(wrapped, "execution", "executions")
        )));
    }
}

/// The cycles of the bucket in which so many of a hundred executions end.
pub(crate) fn percentile(load: &MeasuredLoad, percent: u64) -> String {
    match load.counts.percentile(percent) {
        Some(LatencyBucket { from, below: Some(below), .. }) => format!("{}–{}", grouped(from), grouped(below - 1)),
        Some(LatencyBucket { from, below: None, .. }) => format!("≥ {}", grouped(from)),
        None => String::new(),
    }
}

/// Between what it was measured.
pub(crate) fn how(load: &MeasuredLoad) -> &'static str {
    match load.kind {
        LatencyKind::AtItsWait => "at its wait",
        LatencyKind::ClauseAtItsWait => "from its clause to its wait",
        LatencyKind::Drained => "drained",
        LatencyKind::DrainedClause => "drained with its clause",
    }
}

/// What reading the clock does to what it measures.
fn reads(clock: ShaderClock) -> &'static str {
    match clock {
        ShaderClock::Memory => {
            "read by s_memtime: waits for outstanding scalar loads and LDS operations before each load and after its \
                wait"
        }
        ShaderClock::Register(_) => {
            "read from HW_REG_SHADER_CYCLES (20 bits) and checked by the constant clock: waits for outstanding scalar \
                loads and LDS operations before each load and after its wait"
        }
        ShaderClock::Halves { .. } => "read from HW_REG_SHADER_CYCLES_LO and _HI: waits for nothing",
        ShaderClock::Instruction => "read by s_get_shader_cycles_u64: waits for nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wavetap_profile::file::SiteTotals;
    use wavetap_profile::probes::latency::{BUCKET_BOUNDS, EMPTY, FIELDS_BEFORE_BUCKETS};
    use wavetap_profile::schema::{Counts, KindSchema};

    /// A site whose executions took so many cycles each.
    fn site(address: u64, kind: &Arc<KindSchema>, cycles: &[u64], wrapped: u64, idle: u64) -> SiteTotals {
        let mut values = Counts::zero(kind).values().to_vec();
        values[0] = cycles.len() as u64;
        values[1] = cycles.iter().sum();
        values[2] = wrapped;
        values[3] = cycles.iter().copied().min().unwrap_or(u64::MAX);
        values[4] = idle;
        values[5] = cycles.iter().copied().max().unwrap_or_default();
        for cycles in cycles {
            let bucket = BUCKET_BOUNDS.iter().rposition(|from| from <= cycles).unwrap();
            values[FIELDS_BEFORE_BUCKETS + bucket] += 1;
        }
        let instruction = "global_load_dword v0, v[2:3], off".to_owned();
        SiteTotals { address, instruction, source: None, counts: Counts::new(kind, values).unwrap() }
    }

    fn text(sites: &[SiteTotals], target: &str) -> String {
        let mut lines = Vec::new();
        let style = Style::default();
        latency_lines(&MeasuredLatency::of(sites).unwrap(), Target::by_name(target), style, &mut lines);
        lines.join("\n")
    }

    #[test]
    fn lines_say_what_was_measured() {
        let mut sites = vec![
            site(0x1000, &EMPTY, &[70, 80], 0, 0),
            site(0x1000, LatencyKind::AtItsWait.schema(), &[200, 200, 200, 700], 0, 3),
            site(0x1040, LatencyKind::DrainedClause.schema(), &[575], 0, 0),
            site(0x1080, LatencyKind::Drained.schema(), &[], 0, 0),
        ];
        let found = text(&sites, "gfx90a");
        for expected in [
            "two readings of the clock with nothing between them take 75.0: net is mean less that",
            "s_memtime: waits for outstanding scalar loads",
            "1 load was never executed with an active lane",
            "3 executions without an active lane left out",
        ] {
            assert!(found.contains(expected), "{expected}\n{found}");
        }
        let row = |address: &str| -> String {
            let row = found.lines().find(|line| line.trim_start().starts_with(address)).unwrap();
            row.split_whitespace().skip(5).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("0x1000"), "4 325 250 200 192–255 512–767 512–767 700 66.7 % at its wait");
        assert_eq!(row("0x1040"), "1 575 500 575 512–767 512–767 512–767 575 33.3 % drained with its clause");
        assert!(!found.contains("0x1080") && !found.contains("wrapped"), "{found}");
        sites[2] = site(0x1040, LatencyKind::ClauseAtItsWait.schema(), &[900_000], 1, 0);
        let found = text(&sites, "gfx1100");
        for expected in ["≥ 900,000", "≥ 786,432", "1 execution took so long", "from its clause to its wait"] {
            assert!(found.contains(expected), "{expected}\n{found}");
        }
        assert!(MeasuredLatency::of(&sites[1..]).is_none());
    }
}
