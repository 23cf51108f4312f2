//! A kernel's disassembly beside its source lines, each with what is known of it.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};

use super::flow::{self, Row};
use super::parts::{bar, data_table, share_text};
use super::{KernelCode, Page, Shown};
use crate::disassembly::{BlockText, CodeText, InstText};
use crate::slice::{Chain, CountSource};
use crate::stalls::{Stalls, causes};
use crate::style::counted;
use crate::table::grouped;
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::{BranchCounts, ScalarCounts};

/// Source lines shown around those that have instructions.
const AROUND: u32 = 3;
/// Files of a kernel that are shown, those with most instructions first.
const FILES: usize = 6;
/// Smallest share of the kernel's waits that has a bar.
const BAR_FROM: f64 = 0.01;
/// Source lines that are named before the code: those that cost most.
const HOTTEST: usize = 5;

/// What is known of an instruction, or of all of a source line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Facts<'k> {
    executions: Option<u64>,
    lanes: Option<f64>,
    /// In how many of its executions lanes did not agree.
    divergence: Option<f64>,
    /// How often a uniform branch was taken.
    taken: Option<f64>,
    /// Predicted cycles of waits.
    waits: Option<u64>,
    /// Modelled cycles of waves.
    modelled: Option<u64>,
    lines: Option<(f64, f64)>,
    excess: Option<f64>,
    class: Option<&'k str>,
}

/// A column that is there if some instruction has something to say in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Executions,
    Lanes,
    Divergent,
    Waits,
    Modelled,
    Lines,
    Excess,
    Class,
}

impl Column {
    /// In the order of the page: what costs, how often, and why.
    const ALL: [Column; 8] = [
        Column::Modelled,
        Column::Waits,
        Column::Executions,
        Column::Lanes,
        Column::Divergent,
        Column::Excess,
        Column::Lines,
        Column::Class,
    ];

    /// Whether it is shown only when it is chosen: what is rarely needed, and what a better number stands for.
    fn is_rare(self, all: Sums) -> bool {
        match self {
            Column::Lines | Column::Class => true,
            Column::Waits => all.modelled > 0,
            _ => false,
        }
    }

    fn head(self) -> (&'static str, &'static str) {
        match self {
            Column::Executions => ("Exec.", "how often waves executed it"),
            Column::Lanes => ("Lanes", "active lanes on average"),
            Column::Divergent => (
                "Diverg.",
                "of a branch that narrows EXEC: in how many executions its lanes did not agree; t: how often a \
                    uniform branch was taken",
            ),
            Column::Waits => {
                ("Waits (predicted)", "predicted cycles of all waves: what is left of the latency, nothing was timed")
            }
            Column::Modelled => ("Modelled", "cycles of all waves in the timing model, nothing was measured"),
            Column::Lines => ("Lines", "lines of L1, or cycles of LDS, of an execution / as many as its bytes need"),
            Column::Excess => (
                "Excess",
                "lines, or cycles of LDS, beyond that, in all executions: by the code, or, where some were recorded, \
                    the mean of those times all executions",
            ),
            Column::Class => ("Class", "class in the instruction mix"),
        }
    }

    fn is_known(self, facts: &Facts<'_>) -> bool {
        match self {
            Column::Executions => facts.executions.is_some(),
            Column::Lanes => facts.lanes.is_some(),
            Column::Divergent => facts.divergence.is_some() || facts.taken.is_some(),
            Column::Waits => facts.waits.is_some(),
            Column::Modelled => facts.modelled.is_some(),
            Column::Lines => facts.lines.is_some(),
            Column::Excess => facts.excess.is_some(),
            Column::Class => facts.class.is_some(),
        }
    }

    /// `all` is what the kernel has of waits, or of modelled cycles.
    fn cell(self, facts: &Facts<'_>, all: Sums) -> Markup {
        let of_all = |value: Option<u64>, all: u64| {
            let share = value.unwrap_or(0) as f64 / all.max(1) as f64;
            text_cell(value, |cycles| html! { @if share >= BAR_FROM { (bar(share)) } (grouped(cycles)) })
        };
        match self {
            Column::Executions => text_cell(facts.executions, |count| html! { (grouped(count)) }),
            Column::Lanes => text_cell(facts.lanes, |lanes| html! { (format!("{lanes:.1}")) }),
            Column::Divergent => match (facts.divergence, facts.taken) {
                (Some(share), _) if share > 0.0 => html! { td.n { (bar(share)) (share_text(share)) } },
                (Some(_), _) => html! { td.n { "0" } },
                (None, Some(share)) => html! { td.n { "t " (share_text(share)) } },
                (None, None) => html! { td {} },
            },
            Column::Waits => of_all(facts.waits, all.waits),
            Column::Modelled => of_all(facts.modelled, all.modelled),
            Column::Lines => text_cell(facts.lines, |(lines, ideal)| html! { (format!("{lines:.1} / {ideal:.1}")) }),
            Column::Excess => text_cell(facts.excess, |excess| html! { (grouped(excess.round() as u64)) }),
            Column::Class => html! { td.c { (facts.class.unwrap_or_default()) } },
        }
    }
}

/// A cell with a number, or an empty one.
fn text_cell<T>(value: Option<T>, text: impl FnOnce(T) -> Markup) -> Markup {
    match value {
        Some(value) => html! { td.n { (text(value)) } },
        None => html! { td {} },
    }
}

/// Sums of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    waits: u64,
    modelled: u64,
}

/// The listing of a kernel, and its source if lines are known.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, known: &KernelCode, code: &CodeText) -> Markup {
    let facts = facts(page, shown, known, code);
    let files = Files::of(code);
    let all = Sums {
        waits: facts.values().filter_map(|facts| facts.waits).fold(0, u64::saturating_add),
        modelled: facts.values().filter_map(|facts| facts.modelled).fold(0, u64::saturating_add),
    };
    let listing = listing(shown, code, &facts, &files, all);
    let lines = lines_of(code, &facts, &files);
    html! {
        details.part.code open {
            summary { h3 { "Code" } }
            p.facts {
                (counted(code.instructions.len() as u64, "instruction", "instructions"))
                @if let Some(counted) = &code.counted {
                    @if !counted.is_everything() { "; it may have run more often than is counted" }
                }
                @if let Some(problem) = &code.problem { "; control flow was not followed: " (problem) }
                @if files.all.is_empty() {
                    "; no source lines: compile with -gline-tables-only, which changes no instruction"
                }
            }
            (hottest(page, shown, &files, &lines, all))
            div.panes.single[files.all.is_empty()] {
                @if !files.all.is_empty() { (source_pane(page, shown, &files, &lines, all)) }
                (listing)
            }
        }
    }
}

/// What is known of each instruction.
fn facts<'k>(page: &Page<'k>, shown: &Shown<'k>, known: &'k KernelCode, code: &CodeText) -> BTreeMap<u64, Facts<'k>> {
    let mut all: BTreeMap<u64, Facts<'k>> = BTreeMap::new();
    for inst in &code.instructions {
        let block = block_of(code, inst.address);
        let executions = block.and_then(|block| block.executions);
        all.insert(inst.address, Facts { executions, ..Facts::default() });
    }
    for inst in &known.instructions {
        let Some(facts) = all.get_mut(&inst.address) else { continue };
        facts.class = Some(&inst.class);
        facts.executions = inst.executions.or(facts.executions);
        facts.lanes = inst.lanes.filter(|_| inst.executions.is_some_and(|executions| executions > 0));
    }
    for branch in &shown.kernel.sections.branches {
        let Some(facts) = all.get_mut(&branch.address) else { continue };
        match branch.counts {
            BranchCounts::Exec(exec) => {
                facts.executions = facts.executions.or(Some(exec.executions));
                facts.lanes = facts.lanes.or(exec.average_lanes().map(|(before, _)| before));
                let share = exec.divergences() as f64 / exec.executions.max(1) as f64;
                facts.divergence = (exec.executions > 0).then_some(share);
            }
            BranchCounts::Scalar(ScalarCounts { executions, taken }) => {
                facts.executions = facts.executions.or(Some(executions));
                facts.taken = (executions > 0).then(|| taken as f64 / executions as f64);
            }
        }
    }
    // Cycles of one execution are not those of all.
    let counted = |chain: &&Chain| chain.evidence.executions != CountSource::Unknown;
    for chain in shown.kernel.chains.iter().filter(counted) {
        if let Some(facts) = all.get_mut(&chain.address) {
            facts.waits = Some(facts.waits.unwrap_or(0).saturating_add(chain.predicted_cycles));
        }
    }
    for each in page.time_of(shown.kernel).map(|time| time.instructions.as_slice()).unwrap_or_default() {
        if let Some(facts) = all.get_mut(&each.address) {
            facts.modelled = Some(each.modelled_cycles());
        }
    }
    for access in known.memory.iter().flat_map(|memory| &memory.accesses) {
        let Some(facts) = all.get_mut(&access.address) else { continue };
        facts.lines = access.cost();
        facts.excess = access.excess;
        // Of flat addresses in several memories no one number is the cost.
        if let [measured] = access.measured.as_slice() {
            let ideal = measured.cycles.zip(measured.conflicts).map(|(cycles, conflicts)| cycles - conflicts);
            facts.lines = measured.lines.or(measured.cycles).zip(measured.ideal_lines.or(ideal));
            facts.excess = measured.total.map(|total| total.excess);
        }
    }
    all
}

fn block_of(code: &CodeText, address: u64) -> Option<&BlockText> {
    let after = code.blocks.partition_point(|block| block.address <= address);
    code.blocks.get(after.checked_sub(1)?).filter(|block| address < block.end)
}

fn listing(
    shown: &Shown<'_>,
    code: &CodeText,
    facts: &BTreeMap<u64, Facts<'_>>,
    files: &Files<'_>,
    all: Sums,
) -> Markup {
    let columns: Vec<Column> =
        Column::ALL.into_iter().filter(|column| facts.values().any(|facts| column.is_known(facts))).collect();
    let rows = flow::rows(code);
    let (drawing, room) = flow::drawing(code, &rows);
    let none = Facts::default();
    html! {
        div.pane.asm tabindex="0" role="region" aria-label="Disassembly" {
            div.listing style=(format!("--g:{room}px")) {
                (drawing)
                table data-name="code" {
                    thead { tr {
                        th { "Address" }
                        @if !files.all.is_empty() { th { "Line" } }
                        th { "Instruction" }
                        @for column in &columns {
                            @let (head, title) = column.head();
                            th.n[*column != Column::Class] title=(title) data-rare[column.is_rare(all)] { (head) }
                        }
                    } }
                    tbody {
                        @for row in &rows {
                            @match row {
                                Row::Block(block) => {
                                    tr.b { td colspan=(columns.len() + 3) { (block_text(&code.blocks[*block])) } }
                                }
                                Row::Inst(inst) => {
                                    @let inst = &code.instructions[*inst];
                                    @let facts = facts.get(&inst.address).unwrap_or(&none);
                                    (instruction(shown, inst, facts, &columns, files, all))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `.B3, in loop .B1 (depth 1), from .B1 and .B2`.
fn block_text(block: &BlockText) -> Markup {
    html! {
        b { (block.label) }
        @if let Some(header) = &block.loop_header { " in loop " (header) ", depth " (block.loop_depth) }
        @if !block.predecessors.is_empty() { " from " (block.predecessors.join(", ")) }
        @if let Some(executions) = block.executions { " · " (counted(executions, "execution", "executions")) }
    }
}

fn instruction(
    shown: &Shown<'_>,
    inst: &InstText,
    facts: &Facts<'_>,
    columns: &[Column],
    files: &Files<'_>,
    all: Sums,
) -> Markup {
    let id = shown.at(inst.address);
    html! {
        tr id=(id) class=[(facts.executions == Some(0)).then_some("z")] {
            td { a href=(format!("#{id}")) { (format!("{:x}", inst.address)) } }
            @if !files.all.is_empty() {
                td {
                    @if let Some((file, line)) = files.place(inst.source.as_ref()) {
                        a.l href=(format!("#{}", shown.line(file, line))) { (line) }
                    } @else if let Some(source) = &inst.source {
                        (crate::style::place(Some(source)))
                    }
                }
            }
            td.i {
                (inst.instruction)
                @if inst.times > 1 { " × " (grouped(inst.times)) }
                @if let Some(to) = &inst.to {
                    " → "
                    @match to.address.filter(|_| to.block) {
                        Some(address) => a href=(format!("#{}", shown.at(address.0))) { (to.name) },
                        None => (to.name),
                    }
                }
                @if let Some(names) = &inst.names { " = " (names.name) }
            }
            @for column in columns { (column.cell(facts, all)) }
        }
    }
}

/// The source files of a kernel.
struct Files<'c> {
    /// Those with most instructions first.
    all: Vec<&'c str>,
    numbers: HashMap<&'c str, usize>,
    /// How many more there are.
    left_out: usize,
}

impl<'c> Files<'c> {
    fn of(code: &'c CodeText) -> Files<'c> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for source in code.instructions.iter().filter_map(|inst| inst.source.as_ref()).filter(|line| line.line > 0) {
            *counts.entry(&source.file).or_default() += 1;
        }
        let mut all: Vec<(&str, usize)> = counts.into_iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let left_out = all.len().saturating_sub(FILES);
        let all: Vec<&str> = all.into_iter().take(FILES).map(|(file, _)| file).collect();
        let numbers = all.iter().enumerate().map(|(at, file)| (*file, at)).collect();
        Files { all, numbers, left_out }
    }

    /// The number of the file, and the line, of what is shown.
    fn place(&self, source: Option<&Source>) -> Option<(usize, u32)> {
        let source = source.filter(|source| source.line > 0)?;
        Some((*self.numbers.get(source.file.as_str())?, source.line))
    }
}

/// What is known of a line: the sum of its instructions.
#[derive(Debug, Clone, Default)]
struct LineFacts<'k> {
    first: u64,
    /// The instruction that costs most, and what.
    costliest: (u64, u64),
    instructions: Option<u64>,
    /// Whether more were executed, of which it is not known how many.
    more: bool,
    facts: Facts<'k>,
}

impl<'k> LineFacts<'k> {
    fn add(&mut self, address: u64, facts: &Facts<'k>) {
        if self.first == 0 || address < self.first {
            self.first = address;
        }
        let cost = facts.modelled.or(facts.waits).or(facts.executions).unwrap_or(0);
        if cost > self.costliest.1 {
            self.costliest = (address, cost);
        }
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        self.instructions = sum(self.instructions, facts.executions);
        self.more |= facts.executions.is_none();
        let to = &mut self.facts;
        to.waits = sum(to.waits, facts.waits);
        to.modelled = sum(to.modelled, facts.modelled);
        to.excess = match (to.excess, facts.excess) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        // The worst of its branches.
        to.divergence = to.divergence.into_iter().chain(facts.divergence).reduce(f64::max);
    }
}

/// What is known of the lines of each file.
type Lines<'k> = Vec<BTreeMap<u32, LineFacts<'k>>>;

fn lines_of<'k>(code: &CodeText, facts: &BTreeMap<u64, Facts<'k>>, files: &Files<'_>) -> Lines<'k> {
    let mut lines: Vec<BTreeMap<u32, LineFacts<'_>>> = vec![BTreeMap::new(); files.all.len()];
    for inst in &code.instructions {
        let Some((file, line)) = files.place(inst.source.as_ref()) else { continue };
        if let Some(facts) = facts.get(&inst.address) {
            lines[file].entry(line).or_default().add(inst.address, facts);
        }
    }
    lines
}

/// The lines that cost most, before the code: with their text, what they cost, and for what waves wait there.
fn hottest(page: &Page<'_>, shown: &Shown<'_>, files: &Files<'_>, lines: &Lines<'_>, all: Sums) -> Markup {
    let cost = |facts: &LineFacts<'_>| match all {
        Sums { modelled: 1.., .. } => facts.facts.modelled,
        Sums { waits: 1.., .. } => facts.facts.waits,
        _ => None,
    };
    let of_file = |(file, lines): (usize, &BTreeMap<u32, LineFacts<'_>>)| {
        lines.iter().map(|(line, facts)| (file, *line, facts.costliest.0, cost(facts).unwrap_or(0))).collect::<Vec<_>>()
    };
    let mut lines: Vec<(usize, u32, u64, u64)> = lines.iter().enumerate().flat_map(of_file).collect();
    lines.retain(|(.., cost)| *cost > 0);
    lines.sort_by_key(|(file, line, _, cost)| (std::cmp::Reverse(*cost), *file, *line));
    lines.truncate(HOTTEST);
    if lines.is_empty() {
        return Markup::default();
    }
    let is_modelled = all.modelled > 0;
    let stalls = page.time_of(shown.kernel).and_then(Stalls::of_time);
    let wait = |address: u64| {
        let reason = stalls.as_ref().and_then(|stalls| stalls.reason(address));
        let cause = causes(&shown.kernel.chains, address).next().map(|cause| cause.reading.as_str());
        html! {
            @if let Some(reason) = reason { (reason) }
            @if reason.is_some() && cause.is_some() { ": " }
            (cause.unwrap_or_default())
        }
    };
    let sum = if is_modelled { all.modelled } else { all.waits };
    let head = html! {
        th { "Line" } th { "Source" } th.n { "Share" }
        th.n { @if is_modelled { "Modelled cycles" } @else { "Predicted cycles of waits" } }
        th { "Most of it at" }
        th title="why waves stood there in the timing model; the operation that they wait for is predicted" { "Wait" }
    };
    let rows = html! {
        @for (file, line, address, cost) in lines {
            @let source = Source { file: files.all[file].to_owned(), line };
            @let share = cost as f64 / sum.max(1) as f64;
            tr {
                td { a href=(format!("#{}", shown.line(file, line))) { (crate::style::place(Some(&source))) } }
                td.i.text { (page.data.text(&source).unwrap_or_default().trim()) }
                td.n data-v=(share) { (bar(share)) (share_text(share)) }
                td.n { (grouped(cost)) }
                td { a href=(format!("#{}", shown.at(address))) { (format!("{address:x}")) } }
                td.text { (wait(address)) }
            }
        }
    };
    html! {
        h3 { "Source lines that cost most" }
        (data_table("Source lines that cost most", "hottest", &head, &rows))
    }
}

fn source_pane(page: &Page<'_>, shown: &Shown<'_>, files: &Files<'_>, lines: &Lines<'_>, all: Sums) -> Markup {
    html! {
        div.pane.src tabindex="0" role="region" aria-label="Source" {
            @for (file, lines) in lines.iter().enumerate() {
                (source_file(page, shown, (file, files.all[file]), lines, all))
            }
            @if files.left_out > 0 {
                p.facts { "and " (counted(files.left_out as u64, "file", "files")) " with fewer instructions" }
            }
        }
    }
}

fn source_file(
    page: &Page<'_>,
    shown: &Shown<'_>,
    (file, path): (usize, &str),
    lines: &BTreeMap<u32, LineFacts<'_>>,
    all: Sums,
) -> Markup {
    let columns = [Column::Modelled, Column::Waits, Column::Divergent, Column::Excess];
    let columns: Vec<Column> =
        columns.into_iter().filter(|column| lines.values().any(|line| column.is_known(&line.facts))).collect();
    let counted = lines.values().any(|line| line.instructions.is_some());
    let text = |line: u32| page.data.text(&Source { file: path.to_owned(), line });
    let found = lines.keys().any(|line| text(*line).is_some());
    let mut wanted: Vec<u32> = lines.keys().copied().collect();
    if found {
        wanted =
            wanted.iter().flat_map(|line| line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|line| lines.contains_key(line) || text(*line).is_some());
    }
    let width = columns.len() + 2 + usize::from(counted);
    html! {
        table data-name="source" {
            thead { tr {
                th { "Line" }
                th title=(path) { (path.rsplit('/').next().unwrap_or(path)) }
                @for column in &columns {
                    @let (head, title) = column.head();
                    th.n title=(title) data-rare[column.is_rare(all)] { (head) }
                }
                @if counted {
                    th.n title="instructions that waves executed; ≥: of some it is not known how often" { "Instr." }
                }
            } }
            tbody {
                @if !found {
                    tr.b { td colspan=(width) {
                        @if page.data.source_text.is_some() {
                            "the file was not found: --source-path FOLDER says where it is"
                        } @else {
                            "the text of the lines was not asked for"
                        }
                    } }
                }
                @for (at, line) in wanted.iter().enumerate() {
                    @if at > 0 && wanted[at - 1] + 1 != *line { tr.b { td colspan=(width) { "⋯" } } }
                    @let facts = lines.get(line);
                    tr id=[facts.map(|_| shown.line(file, *line))] {
                        td.n {
                            @match facts {
                                Some(facts) => a href=(format!("#{}", shown.at(facts.first))) { (line) },
                                None => (line),
                            }
                        }
                        td.i { (text(*line).unwrap_or_default()) }
                        @if let Some(facts) = facts {
                            @for column in &columns { (column.cell(&facts.facts, all)) }
                            @if counted {
                                td.n { @if facts.more { "≥ " } (grouped(facts.instructions.unwrap_or(0))) }
                            }
                        }
                    }
                }
            }
        }
    }
}
