//! Annotated disassembly as text: a heading for each function, arrows for branches, live registers, and notes after
//! the instructions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use super::arrows::{Arrow, MOST_LANES, gutter};
use super::branches::counts_text;
use super::disassembly::{
    BlockText, CodeKind, CodeText, HexAddress, InlinedFrame, InstText, KernelFacts, Live, ObjectFacts, Sureness,
    WaitText, Waited, WaitedText,
};
use super::fit;
use super::style::{Style, counted, place};
use super::table::grouped;
use wavetap_object::code_object::printable;
use wavetap_profile::map::Source;

/// Where notes begin, counted from the instruction.
const NOTE_COLUMN: usize = 44;
/// The least columns of notes beside an instruction: with fewer they stand below it.
const LEAST_NOTES: usize = 20;
/// The least columns of instructions and notes: with fewer, the words of instructions are in several lines.
const LEAST_TEXT: usize = 48;
/// Columns of two words of an instruction.
const TWO_WORDS: usize = 17;

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
#[derive(Default)]
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
        self.style.fit(format!("{} ({})  {facts_text}\n\n", self.style.bold(&facts.target), facts.id))
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
            return self.style.fit(format!("{}\n\n", self.style.dim(&format!("between functions, {words}"))));
        }
        let mut out = String::new();
        for line in self.heading(code) {
            out.push_str(&self.style.fit(line));
            out.push('\n');
        }
        let rows = self.rows(code, self.style.width.map(|width| width.saturating_sub(self.lanes(code))));
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

    /// The most columns of arrows.
    fn lanes(&self, code: &CodeText) -> usize {
        let to = code.instructions.iter().filter_map(|inst| inst.to.as_ref()?.address.map(|to| to.0));
        let lanes = if self.arrows { to.collect::<BTreeSet<u64>>().len().min(MOST_LANES) } else { 0 };
        if lanes > 0 { lanes + 1 } else { 0 }
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

    /// The rows, none of which is wider than `room`.
    fn rows(&self, code: &CodeText, room: Option<usize>) -> Vec<Row> {
        let blocks: BTreeMap<u64, &BlockText> = code.blocks.iter().map(|block| (block.address, block)).collect();
        let columns = Columns::of(self, code, room);
        let mut rows = Vec::new();
        let push = |rows: &mut Vec<Row>, row: Row| match room {
            Some(room) => {
                let mut texts = fit::wrapped(&row.text, room).into_iter();
                let first = texts.next().unwrap_or_default();
                rows.push(Row { text: first, ..row });
                rows.extend(texts.map(|text| Row { text, ..Row::default() }));
            }
            None => rows.push(row),
        };
        if columns.live {
            push(&mut rows, Row { text: self.style.dim(&columns.head()), ..Row::default() });
        }
        let mut shown: (Option<&Source>, &[InlinedFrame]) = (None, &[]);
        let mut before_reached = true;
        for inst in &code.instructions {
            if let Some(block) = blocks.get(&inst.address) {
                push(&mut rows, Row { text: self.block(block, code), inst: None, label: Some(block.address) });
            }
            let here = (inst.source.as_ref(), inst.inlined.as_slice());
            if self.source && here != shown && here.0.is_some() {
                let text = format!("{:indent$}; {}", "", origin(inst), indent = columns.indent());
                push(&mut rows, Row { text: self.style.dim(&text), ..Row::default() });
                shown = here;
            }
            let mut notes = self.notes(inst);
            if !code.blocks.is_empty() && !inst.reachable && before_reached {
                notes.push("not reached".to_owned());
            }
            before_reached = inst.reachable;
            let mut texts = self.instruction(inst, &columns, &notes, room).into_iter();
            let text = texts.next().unwrap_or_default();
            rows.push(Row { text, inst: Some(inst.address), label: None });
            rows.extend(texts.map(|text| Row { text, ..Row::default() }));
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

    /// An instruction with its notes: one line, or several where `room` is too little for one.
    fn instruction(&self, inst: &InstText, columns: &Columns, notes: &[String], room: Option<usize>) -> Vec<String> {
        let text = &inst.instruction;
        let paint = |text: &str| {
            if inst.instruction.starts_with('.') {
                self.style.bad(text)
            } else if inst.to.is_some() {
                self.style.flow(text)
            } else if !inst.waits.is_empty() {
                self.style.warn(text)
            } else {
                text.to_owned()
            }
        };
        let diverges = inst.counts.is_some_and(|counts| counts.diverges());
        let paint_note = |text: &str| if diverges { self.style.warn(text) } else { self.style.dim(text) };
        let note = if notes.is_empty() { String::new() } else { format!("; {}", notes.join("; ")) };
        let room = room.map_or(usize::MAX, |room| room.saturating_sub(columns.indent()));
        let texts = if room == usize::MAX { vec![text.clone()] } else { fit::cell(text, room) };
        // Beside the last line of the instruction, or below it.
        let wanted = NOTE_COLUMN.min(room / 2);
        let last = texts.last().map_or(0, |text| fit::width(text));
        let beside = wanted.max(last + 2);
        let is_below = beside.saturating_add(fit::width(&note).min(LEAST_NOTES)) > room;
        let at = if is_below { wanted } else { beside };
        let notes = match note.as_str() {
            "" => Vec::new(),
            _ if room == usize::MAX => vec![note],
            note => fit::cell(note, room.saturating_sub(at)),
        };
        let words = inst.words().collect::<Vec<_>>().join(" ");
        let words = if columns.words > 0 { fit::cell(&words, columns.words) } else { Vec::new() };
        let first_note = if is_below { texts.len() } else { texts.len() - 1 };
        let lines = texts.len().max(first_note + notes.len()).max(words.len());
        let line = |number: usize| {
            let mut line = if number == 0 {
                self.style.dim(&format!("{:>width$x}", inst.address, width = columns.address))
            } else {
                " ".repeat(columns.address)
            };
            if columns.words > 0 {
                let words = words.get(number).map_or("", String::as_str);
                // Writing to a String cannot fail.
                let _ = write!(line, "  {}", self.style.dim(&format!("{words:<width$}", width = columns.words)));
            }
            if columns.live {
                let numbers = columns.numbers(inst.live.as_ref());
                let numbers = if number == 0 { numbers } else { " ".repeat(numbers.len()) };
                let _ = write!(line, "  {}", self.style.dim(&numbers));
            }
            let text = texts.get(number).map_or("", String::as_str);
            let _ = write!(line, "  {}", paint(text));
            if let Some(note) = number.checked_sub(first_note).and_then(|number| notes.get(number)) {
                let _ = write!(line, "{}{}", " ".repeat(at - fit::width(text)), paint_note(note));
            }
            line
        };
        (0..lines).map(line).collect()
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
    fn of(listing: &Listing, code: &CodeText, room: Option<usize>) -> Columns {
        let words = code
            .instructions
            .iter()
            .map(|inst| inst.bytes.len() + inst.bytes.len().saturating_sub(1) / 8)
            .max()
            .unwrap_or(0);
        let live = |of: fn(&Live) -> u16| {
            code.instructions.iter().filter_map(|inst| inst.live.as_ref()).any(|live| of(live) > 0)
        };
        let columns = Columns {
            address: format!("{:x}", code.end).len().max(6),
            words: if listing.bytes { words } else { 0 },
            live: listing.registers && code.instructions.iter().any(|inst| inst.live.is_some()),
            agprs: live(|live| live.agprs),
        };
        let is_narrow = room.is_some_and(|room| room < columns.indent() + LEAST_TEXT);
        Columns { words: if is_narrow { columns.words.min(TWO_WORDS) } else { columns.words }, ..columns }
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
