//! What the time probe measured, as tables.

use super::{OfKernel, Tables};
use crate::style::{Style, counted, place};
use crate::table::{Align, Table, grouped, push_table};
use wavetap_amdgpu::{ShaderClock, Target};
use wavetap_explain::{MeasuredTime, TimedBlock};
use wavetap_profile::probes::time::{BlockTime, WaveTime};

/// Blocks listed for each kernel: those with the most net cycles. JSON has all of them.
const BLOCKS_SHOWN: usize = 12;

impl Tables for Option<MeasuredTime> {
    fn tables(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
        if let Some(measured) = self {
            time_lines(measured, kernel.target, kernel.dispatches, style, lines);
        }
    }
}

/// The lines of a kernel that was dispatched so often.
fn time_lines(measured: &MeasuredTime, target: Option<Target>, dispatches: u64, style: Style, lines: &mut Vec<String>) {
    let WaveTime { waves, cycles, shortest, longest, first_begin, last_begin, last_end } = measured.waves;
    lines.push(String::new());
    lines.push("  measured time, in cycles of the shader's clock".to_owned());
    let mean = cycles as f64 / waves as f64;
    lines.push(format!(
        "    {} ran for {} each with the probe: {} the shortest, {} the longest",
        counted(waves, "wave", "waves"),
        rounded(mean),
        grouped(shortest),
        grouped(longest)
    ));
    if dispatches == 1 {
        lines.push(format!(
            "    they began within {} of the constant clock, and the last one ended {} after the first began",
            counted(last_begin.saturating_sub(first_begin), "tick", "ticks"),
            grouped(last_end.saturating_sub(first_begin))
        ));
    }
    let empty = measured.empty.mean().unwrap_or_default();
    let all: f64 = measured.blocks.iter().map(|block| net(&block.counts, empty)).sum();
    let probe: u64 = measured.blocks.iter().map(|block| block.counts.probe_cycles).sum();
    lines.push(format!(
        "    {} of that is the probe's own",
        share((probe + measured.empty.cycles) as f64, cycles as f64)
    ));
    let in_each = rounded(empty);
    lines.push(format!("    a block without instructions takes {in_each} cycles: net is each less that"));
    lines.extend(target.and_then(Target::shader_clock).map(|clock| style.dim(&format!("    {}", reads(clock)))));
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("first instruction", Align::Code),
        ("source", Align::Place),
        ("executions", Align::Right),
        ("cycles", Align::Right),
        ("each", Align::Right),
        ("net", Align::Right),
        ("share", Align::Right),
    ]);
    let mut blocks: Vec<&TimedBlock> = measured.blocks.iter().collect();
    blocks.sort_by(|a, b| net(&b.counts, empty).total_cmp(&net(&a.counts, empty)));
    for block in blocks.iter().take(BLOCKS_SHOWN) {
        let TimedBlock { counts, .. } = block;
        // Cycles of a clock that wrapped around are too few.
        let least = if counts.wrapped > 0 { "≥ " } else { "" };
        table.row([
            format!("{:#x}", block.address),
            block.instruction.clone(),
            place(block.source.as_ref()),
            grouped(counts.executions),
            format!("{least}{}", grouped(counts.own_cycles())),
            counts.mean().map(|mean| format!("{least}{}", rounded(mean))).unwrap_or_default(),
            format!("{least}{}", rounded(net(counts, empty) / counts.executions.max(1) as f64)),
            share(net(counts, empty), all),
        ]);
    }
    push_table("basic blocks by time, without the probe's own", &table, style, lines);
    if blocks.len() > BLOCKS_SHOWN {
        lines.push(format!("  and {} more: --format json has all", blocks.len() - BLOCKS_SHOWN));
    }
    let wrapped: u64 = measured.blocks.iter().map(|block| block.counts.wrapped).sum();
    let wrapped = wrapped + measured.empty.wrapped;
    if wrapped > 0 {
        lines.push(style.warn(&format!(
            "  {} took so long that the clock of 20 bits may have wrapped around: their cycles are at least those \
                shown, and of waves the same holds",
            counted(wrapped, "execution", "executions")
        )));
    }
}

/// What reading a clock does to what it measures.
fn reads(clock: ShaderClock) -> &'static str {
    match clock {
        ShaderClock::Memory => {
            "read by s_memtime: waits for outstanding scalar loads and LDS operations at each block's begin"
        }
        ShaderClock::Register(_) => {
            "read from HW_REG_SHADER_CYCLES (20 bits) and checked by the constant clock: waits for outstanding scalar \
                loads and LDS operations at each block's begin"
        }
        ShaderClock::Halves { .. } => "read from HW_REG_SHADER_CYCLES_LO and _HI: waits for nothing",
        ShaderClock::Instruction => "read by s_get_shader_cycles_u64: waits for nothing",
    }
}

/// A number of cycles with a digit after the point where that says something.
pub(super) fn rounded(cycles: f64) -> String {
    if cycles < 100.0 { format!("{cycles:.1}") } else { grouped(cycles.round() as u64) }
}

/// The cycles of a block without those that a block without instructions has in each execution.
fn net(counts: &BlockTime, empty: f64) -> f64 {
    (counts.own_cycles() as f64 - counts.executions as f64 * empty).max(0.0)
}

/// A part of all in percent.
pub(super) fn share(part: f64, all: f64) -> String {
    if all > 0.0 { format!("{:.1} %", 100.0 * part / all) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::file::SiteTotals;
    use wavetap_profile::probes::time::{BLOCK, EMPTY};

    fn site(address: u64, kind: &std::sync::Arc<wavetap_profile::schema::KindSchema>, values: &[u64]) -> SiteTotals {
        SiteTotals {
            address,
            instruction: "s_nop 0".to_owned(),
            source: None,
            counts: wavetap_profile::schema::Counts::new(kind, values.to_vec()).unwrap(),
        }
    }

    fn text(sites: &[SiteTotals], target: &str, dispatches: u64) -> String {
        let mut lines = Vec::new();
        let style = Style::default();
        time_lines(&MeasuredTime::of(sites).unwrap(), Target::by_name(target), dispatches, style, &mut lines);
        lines.join("\n")
    }

    #[test]
    fn lines_say_what_was_measured() {
        use wavetap_profile::probes::time::WAVE;
        let mut sites = vec![
            site(0x1000, &WAVE, &[2, 1000, 400, 600, 70, 75, 90]),
            site(0x1000, &EMPTY, &[2, 120, 100, 0]),
            site(0x1000, &BLOCK, &[2, 480, 80, 0]),
            site(0x1040, &BLOCK, &[4, 400, 100, 0]),
        ];
        let found = text(&sites, "gfx90a", 1);
        for expected in [
            "2 waves ran for 500 each with the probe: 400 the shortest, 600 the longest",
            "they began within 5 ticks of the constant clock, and the last one ended 20 after the first began",
            "30.0 % of that is the probe's own",
            "a block without instructions takes 10.0 cycles: net is each less that",
            "s_memtime: waits for outstanding scalar loads",
        ] {
            assert!(found.contains(expected), "{expected}\n{found}");
        }
        let row = |address: &str| found.lines().find(|line| line.trim_start().starts_with(address)).unwrap().to_owned();
        assert!(row("0x1000").ends_with("2     400   200   190  59.4 %"), "{}", row("0x1000"));
        assert!(row("0x1040").ends_with("4     300  75.0  65.0  40.6 %"), "{}", row("0x1040"));
        assert!(!text(&sites, "gfx90a", 2).contains("they began"));
        sites[3] = site(0x1040, &BLOCK, &[4, 400, 100, 1]);
        let found = text(&sites, "gfx1100", 1);
        assert!(found.contains("≥ 300") && found.contains("1 execution took so long"), "{found}");
        assert!(MeasuredTime::of(&sites[1..]).is_none());
    }
}
