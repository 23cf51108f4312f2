//! What the instruction tables come to, as a page for each instruction set: the facts of its processors, rows and
//! operations by encoding family with digests of what the rows say, and the operations that the set before it lacks or
//! has more. A change of the tables is a change of these pages, by name.
//!
//! After a change that is meant:
//!
//!     BLESS=1 cargo test -p rewriter-tests --test isa_golden
//!
//! A digest tells that something changed, not what. `WAVETAP_ISA_ROWS=folder` writes every row of every set as a line:
//! make two folders, `diff -r` them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use rewriter_tests::place;
use wavetap::isa::{self, Bits, Counter, NameList, Target, Variant};

/// Columns of a line of text in the pages.
const WIDTH: usize = 150;
/// Most lines of a page: more would not be read.
const MOST_LINES: usize = 300;
/// Most lines of a difference that a failure shows.
const SHOWN: usize = 60;
/// Characters of a digest.
const DIGEST: usize = 8;
/// What the rows of a family say, each with a digest of its own.
const ASPECTS: [&str; 4] = ["bits", "operands", "text", "effects"];
/// Kinds of numbers that have names.
const LISTS: [NameList; 9] = [
    NameList::HardwareRegisters,
    NameList::Messages,
    NameList::SystemOperations,
    NameList::ExportTargets,
    NameList::BufferFormats,
    NameList::ImageDimensions,
    NameList::DelayInstructions,
    NameList::DelaySkips,
    NameList::Scopes,
];

fn bits(bits: &Bits) -> String {
    bits.runs().iter().map(|run| format!("{}+{}@{}", run.low, run.length, run.shift)).collect::<Vec<_>>().join(",")
}

/// Everything that a row says but the sets that have it, by [`ASPECTS`].
fn aspects(row: &Variant) -> [String; 4] {
    let layout = row.layout;
    let mut fields: Vec<String> =
        layout.modifiers.iter().map(|(modifier, place)| format!("{modifier:?} {}", bits(place))).collect();
    fields.sort();
    let signed = if layout.signed_offset { " signed" } else { "" };
    let encoding = format!(
        "op {} mask {:#x} match {:#x} wave {} bytes {}{signed} [{}]",
        row.op,
        row.mask,
        row.matches,
        row.wave_size,
        layout.bytes,
        fields.join("; ")
    );
    let operands: Vec<String> = row
        .operands
        .iter()
        .map(|spec| {
            let kind = spec.kind;
            let marks: Vec<&str> = [(kind.even, "even"), (kind.signs, "signs"), (kind.mask, "mask")]
                .iter()
                .filter(|(is, _)| *is)
                .map(|(_, name)| *name)
                .collect();
            format!(
                "{:?} {:?} {:?} {:?} {:?} x{}/{} {:?} {} at {}",
                spec.role,
                spec.access,
                kind.coding,
                kind.accepts.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join("|"),
                spec.ty,
                spec.dwords,
                kind.shown,
                kind.form,
                marks.join(" "),
                bits(&spec.bits)
            )
        })
        .collect();
    let text = format!("{} {} {:?} {:?}", row.name, row.mnemonic, row.written, row.printed);
    // Of a pair of operations, what each half reads.
    let halves = row.halves.map(|halves| format!(" halves {halves:?}")).unwrap_or_default();
    let effects = format!(
        "reads {:?} writes {:?} branch {:?} memory {:?} {} counters {:?} latency {:?} flags {:?}{halves}",
        row.implicit_reads,
        row.implicit_writes,
        row.branch,
        row.memory,
        row.memory_bytes,
        row.counters,
        row.latency,
        row.flags
    );
    // An image instruction's registers follow from facts of the operation, too.
    let image = row.image.map(|image| format!("; image {image:?}")).unwrap_or_default();
    [encoding, operands.join("; ") + &image, text, effects]
}

/// The rows of a set with what they say, by family.
type Families = BTreeMap<String, Vec<(&'static Variant, [String; 4])>>;

/// The rows of the target's set, for waves of either size.
fn rows(target: Target) -> Families {
    let mut families = Families::new();
    let mut seen = BTreeSet::new();
    let waves = [32, 64].into_iter().filter_map(|lanes| target.with_wave_size(lanes));
    for row in waves.flat_map(isa::variants) {
        if seen.insert(std::ptr::from_ref(row)) {
            families.entry(format!("{:?}", row.encoding).to_lowercase()).or_default().push((row, aspects(row)));
        }
    }
    for rows in families.values_mut() {
        rows.sort_by(|a, b| (a.0.name, &a.1).cmp(&(b.0.name, &b.1)));
    }
    families
}

/// The operations of a set; of a pair both halves.
fn operations(families: &Families) -> BTreeSet<&'static str> {
    families.values().flatten().flat_map(|(row, _)| row.name.split("::")).collect()
}

fn digest<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut digest = Md5::new();
    for line in lines {
        digest.update(line);
        digest.update("\n");
    }
    let mut hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(DIGEST);
    hex
}

/// Words in lines of [`WIDTH`].
fn wrapped(out: &mut String, words: impl Iterator<Item = String>) {
    let mut column = 0;
    for word in words {
        if column > 0 && column + 1 + word.len() > WIDTH {
            out.push('\n');
            column = 0;
        }
        out.push_str(if column == 0 { "  " } else { " " });
        out.push_str(&word);
        column += 1 + word.len();
    }
    out.push('\n');
}

/// The facts of a processor.
fn facts(target: Target) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> =
        target.facts().map(|(fact, value)| (fact.to_owned(), value.replace(", ", ",").replace(' ', "+"))).collect();
    let counters: Vec<String> = Counter::ALL
        .iter()
        .filter_map(|counter| Some(format!("{}:{}", counter.name(), target.largest_wait(*counter)?)))
        .collect();
    facts.push(("counters".to_owned(), counters.join(",")));
    for list in LISTS {
        let names: Vec<String> = target.names(list).iter().map(|(number, name)| format!("{number} {name}")).collect();
        facts.push((format!("{list:?}"), format!("{}:{}", names.len(), digest(names.iter().map(String::as_str)))));
    }
    let fields: Vec<String> =
        target.dependency_fields().map(|field| format!("{}@{}+{}", field.name, field.bit, field.width)).collect();
    facts.push(("dependency_fields".to_owned(), fields.join(",")));
    let latencies: BTreeMap<String, String> = isa::variants(target)
        .map(|row| {
            let range = target.latency(row.latency);
            (format!("latency.{:?}", row.latency), format!("{}/{}/{}", range.min, range.typical, range.max))
        })
        .collect();
    facts.extend(latencies);
    facts
}

/// The page of the set that these processors share; `before` has the set before it.
fn page(targets: &[Target], before: Option<Target>) -> String {
    let mut out = format!(
        "# Instruction set {}: what the tables have. Written by the test isa_golden, which says what this is and how \
            to make it again.\n\n",
        targets[0].instruction_set()
    );
    let shared = facts(targets[0]);
    for target in targets {
        if *target == targets[0] {
            let _ = writeln!(out, "target {}", target.name());
            for (fact, value) in &shared {
                let _ = writeln!(out, "  {fact}={value}");
            }
        } else {
            let own = facts(*target);
            let differs =
                own.iter().filter(|fact| !shared.contains(fact)).map(|(fact, value)| format!("{fact}={value}"));
            let _ = writeln!(out, "target {} as {}, but", target.name(), targets[0].name());
            wrapped(&mut out, differs);
        }
    }
    let families = rows(targets[0]);
    let _ = write!(out, "\n{:<12} {:>5} {:>10}", "family", "rows", "operations");
    for aspect in ASPECTS {
        let _ = write!(out, "  {aspect:>DIGEST$}");
    }
    out.push('\n');
    for (family, rows) in &families {
        let names: BTreeSet<&str> = rows.iter().map(|(row, _)| row.name).collect();
        let _ = write!(out, "{family:<12} {:>5} {:>10}", rows.len(), names.len());
        for aspect in 0..ASPECTS.len() {
            // With the name, so that two rows that exchange what they say are a change.
            let lines: Vec<String> =
                rows.iter().map(|(row, texts)| format!("{} {} {}", row.name, row.op, texts[aspect])).collect();
            let _ = write!(out, "  {}", digest(lines.iter().map(String::as_str)));
        }
        out.push('\n');
    }
    let all = operations(&families);
    let _ = writeln!(out, "{:<12} {:>5} {:>10}", "all", families.values().map(Vec::len).sum::<usize>(), all.len());
    let (older, earlier) =
        before.map_or((BTreeSet::new(), "nothing"), |before| (operations(&rows(before)), before.instruction_set()));
    for (what, names) in [("more than", all.difference(&older)), ("fewer than", older.difference(&all))] {
        let names: Vec<String> = names.map(|name| (*name).to_owned()).collect();
        let _ = writeln!(out, "\n{} operations {what} {earlier}", names.len());
        if !names.is_empty() {
            wrapped(&mut out, names.into_iter());
        }
    }
    out
}

/// The processors by instruction set, in the order of the sets.
fn sets() -> Vec<Vec<Target>> {
    let mut sets: BTreeMap<usize, Vec<Target>> = BTreeMap::new();
    for target in Target::all().filter(|target| target.has_instructions()) {
        sets.entry(target.instruction_table()).or_default().push(target);
    }
    // The processor that gives the set its name first.
    for targets in sets.values_mut() {
        targets.sort_by_key(|target| target.name() != target.instruction_set());
    }
    sets.into_values().collect()
}

fn folder() -> PathBuf {
    place::root().join("rewriter-tests/golden/isa")
}

/// What only one of the two pages has: lines of the families' table, and words of the rest, which is wrapped.
fn difference(expected: &str, found: &str) -> Vec<String> {
    fn parts(page: &str) -> BTreeSet<&str> {
        page.lines()
            .flat_map(|line| if line.starts_with("  ") { line.split_whitespace().collect() } else { vec![line] })
            .collect()
    }
    let (expected, found) = (parts(expected), parts(found));
    let lost = expected.difference(&found).map(|part| format!("  - {part}"));
    lost.chain(found.difference(&expected).map(|part| format!("  + {part}"))).collect()
}

fn write_rows(folder: &Path, target: Target) {
    let mut text = String::new();
    for (family, rows) in rows(target) {
        for (_, [bits, operands, names, effects]) in rows {
            let _ = writeln!(text, "{family} {names} | {bits} | {operands} | {effects}");
        }
    }
    std::fs::create_dir_all(folder).expect("a folder for the rows");
    std::fs::write(folder.join(format!("{}.txt", target.instruction_set())), text).expect("a file for the rows");
}

#[test]
fn tables_are_the_committed_ones() {
    let bless = std::env::var_os("BLESS").is_some();
    let sets = sets();
    let mut wrong = Vec::new();
    let mut files = BTreeSet::new();
    for (place, targets) in sets.iter().enumerate() {
        if let Some(folder) = std::env::var_os("WAVETAP_ISA_ROWS") {
            write_rows(Path::new(&folder), targets[0]);
        }
        let text = page(targets, place.checked_sub(1).map(|before| sets[before][0]));
        let name = format!("{}.txt", targets[0].instruction_set());
        let lines = text.lines().count();
        assert!(lines <= MOST_LINES, "{name} has {lines} lines, which nobody reads");
        let file = folder().join(&name);
        files.insert(name.clone());
        if bless {
            std::fs::create_dir_all(folder()).expect("a folder for the pages");
            std::fs::write(&file, &text).expect("a page can be written");
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if expected != text {
            wrong.push(format!("{name}:"));
            wrong.extend(difference(&expected, &text));
        }
    }
    let stale =
        std::fs::read_dir(folder()).expect("the folder of the pages").map(|entry| entry.expect("readable").file_name());
    let stale: Vec<_> = stale.filter(|name| name.to_str().is_none_or(|name| !files.contains(name))).collect();
    assert!(stale.is_empty(), "pages of no instruction set: {stale:?}");
    let more = wrong.len().saturating_sub(SHOWN);
    wrong.truncate(SHOWN);
    assert!(
        wrong.is_empty(),
        "the tables are not those of rewriter-tests/golden/isa:\n{}\n({more} more lines)\n\
         WAVETAP_ISA_ROWS=folder writes the rows, to compare them with those before the change. If this is meant:\n    \
         BLESS=1 cargo test -p rewriter-tests --test isa_golden",
        wrong.join("\n")
    );
}

#[test]
fn everything_that_a_row_says_is_in_one_aspect() {
    use wavetap::isa::{
        Access, Branch, Counters, Flags, Implicit, Kind, Latency, Layout, Memory, Modifier, OperandSpec, Written,
    };
    let target = Target::by_name("gfx90a").expect("a target");
    let row = isa::variants(target)
        .find(|row| row.mnemonic == "global_load_dwordx2" && row.operands.len() == 3)
        .expect("a row");
    // The kind of an operand and the layout have no copy; what is made here lives as long as the test.
    let kind = |change: &dyn Fn(&mut Kind)| -> &'static [OperandSpec] {
        let old = row.operands[0].kind;
        let mut new = Kind { ..*old };
        change(&mut new);
        Box::leak(Box::new([OperandSpec { kind: Box::leak(Box::new(new)), ..row.operands[0] }]))
    };
    let layout = |change: &dyn Fn(&mut Layout)| -> &'static Layout {
        let mut new = Layout { modifiers: row.layout.modifiers.clone(), ..*row.layout };
        change(&mut new);
        Box::leak(Box::new(new))
    };
    let operand = |change: &dyn Fn(&mut OperandSpec)| -> &'static [OperandSpec] {
        let mut new = row.operands[0];
        change(&mut new);
        Box::leak(Box::new([new]))
    };
    let one = Variant { operands: operand(&|_| ()), ..*row };
    let changes = [
        (0, Variant { op: 1, ..*row }),
        (0, Variant { mask: 0, ..*row }),
        (0, Variant { matches: 0, ..*row }),
        (0, Variant { wave_size: 32, ..*row }),
        (0, Variant { layout: layout(&|layout| layout.bytes = 4), ..*row }),
        (0, Variant { layout: layout(&|layout| layout.signed_offset = false), ..*row }),
        (0, Variant { layout: layout(&|layout| layout.modifiers.truncate(1)), ..*row }),
        (0, Variant { layout: layout(&|layout| layout.modifiers[0].1 = layout.modifiers[1].1), ..*row }),
        (1, Variant { operands: operand(&|spec| spec.access = Access::ReadWrite), ..one }),
        (1, Variant { operands: operand(&|spec| spec.role = row.operands[1].role), ..one }),
        (1, Variant { operands: operand(&|spec| spec.bits = row.operands[1].bits), ..one }),
        (1, Variant { operands: operand(&|spec| spec.dwords = 9), ..one }),
        (1, Variant { operands: kind(&|kind| kind.shown = 9), ..one }),
        (1, Variant { operands: kind(&|kind| kind.even = !kind.even), ..one }),
        (1, Variant { operands: kind(&|kind| kind.signs = true), ..one }),
        (1, Variant { operands: kind(&|kind| kind.mask = true), ..one }),
        (1, Variant { operands: kind(&|kind| kind.accepts = isa::Accepts::M0), ..one }),
        (1, Variant { operands: kind(&|kind| kind.coding = isa::Coding::Accum), ..one }),
        (1, Variant { operands: kind(&|kind| kind.form = isa::Form::Hex), ..one }),
        (2, Variant { name: "other", ..*row }),
        (2, Variant { mnemonic: "other", ..*row }),
        (2, Variant { written: &[Written::Off], ..*row }),
        (2, Variant { printed: &[Modifier::Lds], ..*row }),
        (3, Variant { implicit_reads: Implicit::empty(), ..*row }),
        (3, Variant { implicit_writes: Implicit::SCC, ..*row }),
        (3, Variant { halves: Some([Implicit::VCC, Implicit::EXEC]), ..*row }),
        (3, Variant { branch: Branch::End, ..*row }),
        (3, Variant { memory: Memory::None, ..*row }),
        (3, Variant { memory_bytes: 4, ..*row }),
        (3, Variant { counters: Counters::EXP, ..*row }),
        (3, Variant { latency: Latency::Salu, ..*row }),
        (3, Variant { flags: Flags::STORE, ..*row }),
    ];
    for (at, (aspect, changed)) in changes.iter().enumerate() {
        let before = aspects(if changed.operands.len() == 1 { &one } else { row });
        let after = aspects(changed);
        let different: Vec<usize> = (0..ASPECTS.len()).filter(|&aspect| before[aspect] != after[aspect]).collect();
        assert_eq!(different, [*aspect], "change {at}");
    }
}
