//! Annotated disassembly as text: a heading for each function, arrows for branches, live registers, and notes after
//! the instructions.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::arrows::{Arrow, gutter};
use super::branches::counts_text;
use super::disassembly::{
    BlockText, CodeKind, CodeText, HexAddress, InlinedFrame, InstText, KernelFacts, Live, ObjectFacts, Sureness,
    WaitText, Waited, WaitedText,
};
use super::style::{Style, counted, place};
use super::table::grouped;
use wavetap_object::code_object::printable;
use wavetap_profile::map::Source;

/// Where notes begin, counted from the instruction.
const NOTE_COLUMN: usize = 44;

/// Addresses named in one note; JSON has all.
const ADDRESSES_SHOWN: usize = 8;

/// What a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing {
    /// How it is decorated.
    pub style: Style,
    /// The words of each instruction.
    pub bytes: bool,
    /// Branches as arrows.
    pub arrows: bool,
    /// Live registers after each instruction.
    pub registers: bool,
    /// Source lines.
    pub source: bool,
    /// What waits wait for, and where operations are waited for.
    pub waits: bool,
}

impl Default for Listing {
    fn default() -> Self {
        Listing { style: Style::default(), bytes: false, arrows: true, registers: true, source: true, waits: true }
    }
}

/// One line, before arrows are drawn beside it.
struct Row {
    text: String,
    /// The address of the instruction in it.
    inst: Option<u64>,
    /// The address of the block that it begins.
    label: Option<u64>,
}

impl Listing {
    /// The line that begins an object.
    #[must_use]
    pub fn object(&self, facts: &ObjectFacts) -> String {
        let lines = if facts.line_table { "source lines" } else { "no source lines" };
        let facts_text = self.style.dim(&format!("code object v{}, {lines}", facts.code_object_version));
        format!("{} ({})  {facts_text}\n\n", self.style.bold(&facts.target), facts.id)
    }

    /// The lines of one piece of code, with a blank one after.
    #[must_use]
    pub fn code(&self, code: &CodeText) -> String {
        if let (None, [padding]) = (&code.name, code.instructions.as_slice()) {
            let words = format!(
                "{:x}-{:x}: {}, {}",
                code.address,
                code.end,
                padding.instruction,
                counted(padding.times, "time", "times")
            );
            return format!("{}\n\n", self.style.dim(&format!("between functions, {words}")));
        }
        let mut out = String::new();
        for line in self.heading(code) {
            out.push_str(&line);
            out.push('\n');
        }
        let rows = self.rows(code);
        let gutters =
            if self.arrows { gutter(rows.len(), &arrows(code, &rows)) } else { vec![String::new(); rows.len()] };
        for (row, gutter) in rows.iter().zip(gutters) {
            let gutter = if gutter.trim().is_empty() { gutter } else { self.style.flow(&gutter) };
            let line = format!("{gutter}{}", row.text);
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
        out
    }

    fn heading(&self, code: &CodeText) -> Vec<String> {
        let mut lines = Vec::new();
        let range = format!("{:x}-{:x}: {} bytes", code.address, code.end, grouped(code.end - code.address));
        let section = if code.section.is_empty() { "" } else { &code.section };
        let itself = code.name.as_deref().filter(|_| code.kind == CodeKind::Kernel);
        let profile_lines = code.counted.as_ref().map(|counted| counted.lines(itself, self.style)).unwrap_or_default();
        let profile_lines = profile_lines.into_iter().map(|line| format!("  {line}"));
        let Some(name) = &code.name else {
            lines.push(self.style.dim(&format!("code that no symbol names, {section} {range}")));
            lines.extend(profile_lines);
            return lines;
        };
        lines.push(self.style.bold(&self.style.name(code.demangled.as_deref().unwrap_or(name))));
        let what = if code.kind == CodeKind::Kernel { "kernel" } else { "function" };
        let mut facts = vec![
            format!("{what} {}", self.style.name(&printable(name))),
            code.target.clone(),
            format!("{section} {range}").trim_start().to_owned(),
        ];
        let insts: u64 =
            code.instructions.iter().filter(|inst| !inst.instruction.starts_with('.')).map(|inst| inst.times).sum();
        facts.push(counted(insts, "instruction", "instructions"));
        if !code.blocks.is_empty() {
            facts.push(counted(code.blocks.len() as u64, "block", "blocks"));
        }
        if !code.loops.is_empty() {
            facts.push(counted(code.loops.len() as u64, "loop", "loops"));
        }
        lines.push(self.style.dim(&format!("  {}", facts.join(", "))));
        if let Some(kernel) = &code.kernel {
            lines.extend(kernel_lines(kernel).iter().map(|line| self.style.dim(&format!("  {line}"))));
        }
        if let Some(pressure) = &code.pressure {
            let mut peaks = Vec::new();
            for (peak, file) in [(pressure.vgprs, "VGPRs"), (pressure.agprs, "AGPRs"), (pressure.sgprs, "SGPRs")] {
                if peak.live > 0 {
                    peaks.push(format!("{} {file} after {:x}", peak.live, peak.at));
                }
            }
            if !peaks.is_empty() && self.registers {
                let at_most = if code.kind == CodeKind::Function { "at most " } else { "" };
                lines.push(self.style.dim(&format!("  live at the same time: {at_most}{}", peaks.join(", "))));
            }
        }
        if let Some(problem) = &code.problem {
            lines.push(self.style.warn(&format!("  control flow is not followed: {problem}")));
        }
        lines.extend(profile_lines);
        lines
    }

    fn rows(&self, code: &CodeText) -> Vec<Row> {
        let blocks: BTreeMap<u64, &BlockText> = code.blocks.iter().map(|block| (block.address, block)).collect();
        let columns = Columns::of(self, code);
        let mut rows = Vec::new();
        let plain = |text| Row { text, inst: None, label: None };
        if columns.live {
            rows.push(plain(self.style.dim(&columns.head())));
        }
        let mut shown: (Option<&Source>, &[InlinedFrame]) = (None, &[]);
        let mut before_reached = true;
        for inst in &code.instructions {
            if let Some(block) = blocks.get(&inst.address) {
                rows.push(Row { text: self.block(block, code), inst: None, label: Some(block.address) });
            }
            let here = (inst.source.as_ref(), inst.inlined.as_slice());
            if self.source && here != shown && here.0.is_some() {
                rows.push(plain(self.style.dim(&format!(
                    "{:indent$}; {}",
                    "",
                    origin(inst),
                    indent = columns.indent()
                ))));
                shown = here;
            }
            let mut notes = self.notes(inst);
            if !code.blocks.is_empty() && !inst.reachable && before_reached {
                notes.push("not reached".to_owned());
            }
            before_reached = inst.reachable;
            rows.push(Row { text: self.instruction(inst, &columns, &notes), inst: Some(inst.address), label: None });
        }
        rows
    }

    fn block(&self, block: &BlockText, code: &CodeText) -> String {
        let mut facts = Vec::new();
        let header = block.loop_header.as_ref();
        if header == Some(&block.label) {
            let each = code.loops.iter().find(|each| each.header == block.label);
            facts.push(format!("loop of depth {}", block.loop_depth));
            facts.extend(each.map(|each| counted(each.blocks.len() as u64, "block", "blocks")));
            facts.extend(each.map(|each| format!("back from {}", each.latches.join(" "))));
        } else if let Some(header) = header {
            facts.push(format!("in the loop of {header}, depth {}", block.loop_depth));
        }
        let latches = code
            .loops
            .iter()
            .find(|each| each.header == block.label)
            .map(|each| each.latches.as_slice())
            .unwrap_or_default();
        let from: Vec<&str> =
            block.predecessors.iter().filter(|from| !latches.contains(from)).map(String::as_str).collect();
        if !from.is_empty() {
            facts.push(format!("from {}", from.join(" ")));
        }
        match block.executions {
            Some(0) => facts.push("not executed in this run".to_owned()),
            executions => facts.extend(executions.map(|count| counted(count, "execution", "executions"))),
        }
        let label = self.style.bold(&format!("{}:", block.label));
        if facts.is_empty() {
            label
        } else {
            format!("{label}{}", self.style.dim(&format!("  ; {}", facts.join(", "))))
        }
    }

    fn instruction(&self, inst: &InstText, columns: &Columns, notes: &[String]) -> String {
        let mut line = self.style.dim(&format!("{:>width$x}", inst.address, width = columns.address));
        if columns.words > 0 {
            let words = inst.words().collect::<Vec<_>>().join(" ");
            let _ = write!(line, "  {}", self.style.dim(&format!("{words:<width$}", width = columns.words)));
        }
        if columns.live {
            let _ = write!(line, "  {}", self.style.dim(&columns.numbers(inst.live.as_ref())));
        }
        let text = &inst.instruction;
        let shown = if text.starts_with('.') {
            self.style.bad(text)
        } else if inst.to.is_some() {
            self.style.flow(text)
        } else if !inst.waits.is_empty() {
            self.style.warn(text)
        } else {
            text.clone()
        };
        let _ = write!(line, "  {shown}");
        if !notes.is_empty() {
            let gap = NOTE_COLUMN.saturating_sub(text.chars().count()).max(2);
            let notes = format!("; {}", notes.join("; "));
            let diverges = inst.counts.is_some_and(|counts| counts.diverges());
            let notes = if diverges { self.style.warn(&notes) } else { self.style.dim(&notes) };
            let _ = write!(line, "{}{notes}", " ".repeat(gap));
        }
        line
    }

    fn notes(&self, inst: &InstText) -> Vec<String> {
        let mut notes = Vec::new();
        if inst.times > 1 {
            notes.push(format!("{} times", grouped(inst.times)));
        }
        notes.extend(
            inst.to.as_ref().map(|to| {
                if to.name == "unknown" { "→ an unknown place".to_owned() } else { format!("→ {}", to.name) }
            }),
        );
        notes.extend(inst.counts.as_ref().map(counts_text));
        notes.extend(inst.names.as_ref().and_then(|names| Some(format!("= {:x} {}", names.address?.0, names.name))));
        if self.waits {
            notes.extend(waits(&inst.waits));
            if !inst.waited_at.is_empty() {
                notes.push(format!("waited for at {}", addresses(&inst.waited_at)));
            }
        }
        notes
    }
}

/// What a kernel's descriptor and metadata say, in lines.
fn kernel_lines(kernel: &KernelFacts) -> Vec<String> {
    let mut registers = vec![format!("{} VGPRs", kernel.used_vgprs())];
    registers.extend(kernel.agprs.filter(|count| *count > 0).map(|count| format!("{count} of them AGPRs")));
    registers.push(format!("{} SGPRs", kernel.used_sgprs()));
    let spills = kernel.spills();
    if !spills.is_empty() {
        registers.push(format!("spilled: {spills}"));
    }
    let mut memory =
        vec![format!("LDS {}", grouped(kernel.lds_bytes)), format!("scratch {}", grouped(kernel.scratch_bytes))];
    if kernel.dynamic_stack {
        memory.push("and a stack of unknown size".to_owned());
    }
    memory.push(format!("arguments {}", grouped(kernel.kernarg_bytes)));
    let workgroup = kernel.workgroup();
    if !workgroup.is_empty() {
        memory.push(format!("workgroup {workgroup}"));
    }
    memory.push(format!("wave{}", kernel.wave_size));
    let mut lines = vec![format!("{}; {}", registers.join(", "), memory.join(", "))];
    lines.extend(kernel.occupancy.as_ref().map(|occupancy| occupancy.sentence()));
    lines
}

/// `atomic.h:153 atomicAdd ← k.hip:7 | if (x)`: the line, the functions that it was inlined through and where, its
/// text.
fn origin(inst: &InstText) -> String {
    let mut text = place(inst.source.as_ref());
    for frame in &inst.inlined {
        let _ = frame.function.as_ref().map(|function| write!(text, " {function}"));
        let _ = write!(text, " ← {}", if frame.at.is_some() { place(frame.at.as_ref()) } else { "?".to_owned() });
    }
    if let Some(source) = &inst.source_text {
        let _ = write!(text, " | {}", source.trim());
    }
    text
}

/// What a wait waits for, in words; counters are named where they wait for different things.
fn waits(waits: &[WaitText]) -> Vec<String> {
    let sentence = |wait: &WaitText| {
        if wait.operations.is_empty() {
            return "nothing".to_owned();
        }
        let of = |certainty| wait.operations.iter().filter(move |operation| operation.certainty == certainty);
        let groups = [
            ("", waited(of(Sureness::Must))),
            ("on some paths ", waited(of(Sureness::May))),
            ("maybe (in any order) ", waited(of(Sureness::Unordered))),
        ];
        let groups = groups.into_iter().filter(|(_, what)| !what.is_empty());
        let mut groups: Vec<String> = groups.map(|(how, what)| format!("{how}{what}")).collect();
        if wait.operations.iter().any(|operation| operation.what == Waited::Caller) {
            groups.push("what the caller left".to_owned());
        }
        groups.join(", ")
    };
    let sentences: Vec<String> = waits.iter().map(sentence).collect();
    match sentences.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => vec![format!("waits for {first}")],
        _ => waits
            .iter()
            .zip(&sentences)
            .map(|(wait, sentence)| format!("{} waits for {sentence}", wait.counter))
            .collect(),
    }
}

fn waited<'a>(operations: impl Iterator<Item = &'a WaitedText>) -> String {
    let (mut places, mut others) = (Vec::new(), Vec::new());
    for operation in operations {
        match (operation.what, operation.address) {
            (Waited::Instruction, Some(address)) => places.push(address),
            (Waited::Callee, Some(address)) => others.push(format!("what the call at {:x} left", address.0)),
            _ => {}
        }
    }
    if !places.is_empty() {
        others.insert(0, addresses(&places));
    }
    others.join(", ")
}

fn addresses(places: &[HexAddress]) -> String {
    let mut text =
        places.iter().take(ADDRESSES_SHOWN).map(|place| format!("{:x}", place.0)).collect::<Vec<_>>().join(", ");
    if places.len() > ADDRESSES_SHOWN {
        let _ = write!(text, " and {} more", places.len() - ADDRESSES_SHOWN);
    }
    text
}

/// The branches of the code as ways between rows.
fn arrows(code: &CodeText, rows: &[Row]) -> Vec<Arrow> {
    let mut row_of: HashMap<u64, usize> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        // A label stands before its instruction, and arrows go there.
        if let Some(address) = row.label.or(row.inst) {
            row_of.entry(address).or_insert(index);
        }
    }
    let mut ways: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let insts: HashMap<u64, &InstText> = code.instructions.iter().map(|inst| (inst.address, inst)).collect();
    for (index, row) in rows.iter().enumerate() {
        let Some(inst) = row
            .inst
            .and_then(|address| insts.get(&address))
            .filter(|inst| inst.is_branch() || inst.to.as_ref().is_some_and(|to| to.block))
        else {
            continue;
        };
        let to = inst.to.as_ref().and_then(|to| to.address).and_then(|to| row_of.get(&to.0));
        if let Some(to) = to {
            ways.entry(*to).or_default().push(index);
        }
    }
    ways.into_iter().map(|(to, from)| Arrow { to, from }).collect()
}

/// Widths of the columns before the instruction.
struct Columns {
    address: usize,
    words: usize,
    live: bool,
    agprs: bool,
}

impl Columns {
    fn of(listing: &Listing, code: &CodeText) -> Columns {
        let words = code
            .instructions
            .iter()
            .map(|inst| inst.bytes.len() + inst.bytes.len().saturating_sub(1) / 8)
            .max()
            .unwrap_or(0);
        let live = |of: fn(&Live) -> u16| {
            code.instructions.iter().filter_map(|inst| inst.live.as_ref()).any(|live| of(live) > 0)
        };
        Columns {
            address: format!("{:x}", code.end).len().max(6),
            words: if listing.bytes { words } else { 0 },
            live: listing.registers && code.instructions.iter().any(|inst| inst.live.is_some()),
            agprs: live(|live| live.agprs),
        }
    }

    fn indent(&self) -> usize {
        let words = if self.words > 0 { self.words + 2 } else { 0 };
        self.address + words + if self.live { self.numbers(None).len() + 2 } else { 0 } + 2
    }

    fn head(&self) -> String {
        let words = if self.words > 0 { self.words + 2 } else { 0 };
        let agprs = if self.agprs { "    A" } else { "" };
        format!("{:indent$}    V{agprs}    S  live registers", "", indent = self.address + words)
    }

    fn numbers(&self, live: Option<&Live>) -> String {
        let number = |of: fn(&Live) -> u16| live.map(|live| of(live).to_string()).unwrap_or_default();
        let agprs = if self.agprs { format!("  {:>3}", number(|live| live.agprs)) } else { String::new() };
        format!("{:>3}{agprs}  {:>3}", number(|live| live.vgprs), number(|live| live.sgprs))
    }
}
