//! The tables: which columns they have, and the rows of a profile.

use std::borrow::Cow;

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_explain::sections::{measured, unit_name};
use wavetap_memory::Recorded;
use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals};
use wavetap_profile::launches::LaunchShape;
use wavetap_profile::map::{CounterMode, Resources};
use wavetap_profile::schema::{KindSchema, Merge};
use wavetap_report::export::records::{NamedRecords, operation_name, space_name};
use wavetap_report::findings::{FindingLog, Level, LoggedFinding};

use crate::ColumnType::{Flag, Integer, Integers, Real, Text};
use crate::{Cell, Column};

/// A profile, and what the file that it is of says beside.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The name of its file.
    pub file: &'a str,
    /// What was found, if the program is at hand.
    pub findings: Option<&'a FindingLog>,
    /// The recorded accesses with their addresses, if the program is at hand.
    pub accesses: &'a [NamedRecords],
}

/// A table by its name, with its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, which is the name of its folder.
    pub name: String,
    /// What a row is.
    pub meaning: Cow<'static, str>,
    /// Its columns, but for those that every table has.
    pub columns: Vec<Column>,
}

/// What rows are given to.
pub trait Rows {
    /// A table, which there is even if no row follows.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begin(&mut self, table: &Table) -> Result<()>;

    /// A row of a table that has begun.
    ///
    /// # Errors
    /// If it cannot be written.
    fn row(&mut self, table: &Table, row: Vec<Cell<'_>>) -> Result<()>;
}

/// A column, and what a row has in it.
struct Field<R> {
    column: Column,
    cell: fn(&R) -> Result<Cell<'_>>,
}

fn field<R>(column: Column, cell: fn(&R) -> Result<Cell<'_>>) -> Field<R> {
    Field { column, cell }
}

fn cells<'r, R>(fields: &[Field<R>], row: &'r R) -> Result<Vec<Cell<'r>>> {
    let cell = |field: &Field<R>| (field.cell)(row).within(|| format!("column {}", field.column.name));
    fields.iter().map(cell).collect()
}

fn table<R>(name: impl Into<String>, meaning: &'static str, fields: &[Field<R>]) -> Table {
    let columns = fields.iter().map(|field| field.column.clone()).collect();
    Table { name: name.into(), meaning: Cow::Borrowed(meaning), columns }
}

/// What is of one kernel.
trait OfKernel {
    /// Mangled name, demangled name, target.
    fn kernel(&self) -> [&str; 3];
}

impl OfKernel for &KernelTotals {
    fn kernel(&self) -> [&str; 3] {
        [&self.name, &self.demangled, &self.target]
    }
}

/// Columns that tell kernels apart.
fn names<R: OfKernel>() -> Vec<Field<R>> {
    vec![
        field(Column::new("kernel", Text, "mangled name of the kernel"), |row| Ok(Cell::text(row.kernel()[0]))),
        field(Column::new("demangled", Text, "demangled name of the kernel"), |row| Ok(Cell::text(row.kernel()[1]))),
        field(Column::new("target", Text, "target id of the code object"), |row| Ok(Cell::text(row.kernel()[2]))),
    ]
}

/// A dimension in x, y and z as a column.
macro_rules! axis {
    ($name:literal, $meaning:literal, $of:expr, $axis:literal) => {
        field(Column::new($name, Integer, $meaning), |row| Ok(Cell::number($of(row)[$axis])))
    };
}

/// Gives all rows of a profile.
///
/// # Errors
/// Limit if a number does not fit; what `rows` fails with.
pub fn of_profile(source: &Source<'_>, rows: &mut dyn Rows) -> Result<()> {
    let profile = source.profile;
    push(&runs(), RUNS, [*source], rows)?;
    push(&kernels(), KERNELS, &profile.kernels, rows)?;
    let launched =
        profile.kernels.iter().flat_map(|kernel| kernel.launches.iter().map(move |shape| Launched { kernel, shape }));
    push(&launches(), LAUNCHES, launched, rows)?;
    sites(profile, rows)?;
    push(&not_counted(), NOT_COUNTED, gaps(profile), rows)?;
    if let Some(log) = source.findings {
        push(&findings(), FINDINGS, log.findings.iter().map(|finding| Found { log, finding }), rows)?;
    }
    let recorded = source
        .accesses
        .iter()
        .flat_map(|kernel| kernel.recorded.records.iter().map(move |record| Access { kernel, record }));
    if source.accesses.is_empty() {
        return Ok(());
    }
    push(&accesses(), ACCESSES, recorded, rows)
}

/// The tables whose columns do not follow from a probe's schema.
#[must_use]
pub fn fixed() -> Vec<Table> {
    vec![
        table(RUNS.0, RUNS.1, &runs()),
        table(KERNELS.0, KERNELS.1, &kernels()),
        table(LAUNCHES.0, LAUNCHES.1, &launches()),
        table(NOT_COUNTED.0, NOT_COUNTED.1, &not_counted()),
        table(FINDINGS.0, FINDINGS.1, &findings()),
        table(ACCESSES.0, ACCESSES.1, &accesses()),
    ]
}

fn push<R>(
    fields: &[Field<R>],
    (name, meaning): (&str, &'static str),
    all: impl IntoIterator<Item = R>,
    rows: &mut dyn Rows,
) -> Result<()> {
    let table = table(name, meaning, fields);
    rows.begin(&table)?;
    all.into_iter().try_for_each(|row| rows.row(&table, cells(fields, &row)?))
}

const RUNS: (&str, &str) = ("runs", "a profile: what ran, and whether all of it was counted");

fn runs<'a>() -> Vec<Field<Source<'a>>> {
    vec![
        field(Column::new("file", Text, "name of the profile's file"), |row| Ok(Cell::text(row.file))),
        field(Column::new("origin", Text, "who counted: counters, trace or launches"), |row| {
            Ok(Cell::text(match row.profile.origin {
                Origin::Counters => "counters",
                Origin::Trace => "trace",
                Origin::Launches => "launches",
            }))
        }),
        field(Column::new("backend", Text, "what ran the kernels: emulator or gpu"), |row| {
            Ok(Cell::text(match row.profile.backend {
                Backend::Emulator => "emulator",
                Backend::Gpu => "gpu",
            }))
        }),
        field(Column::new("ended", Flag, "whether the run ended by itself"), |row| {
            Ok(Cell::Flag(row.profile.has_ended()))
        }),
        field(
            Column::new("complete", Flag, "whether it ended, and every dispatch was counted that was to be"),
            |row| Ok(Cell::Flag(row.profile.complete)),
        ),
        field(Column::new("processes", Integer, "processes whose counts these are"), |row| {
            Ok(Cell::number(row.profile.processes))
        }),
    ]
}

const KERNELS: (&str, &str) = ("kernels", "a kernel that was dispatched, with its totals");

/// A number of a kernel's resources, if they are known.
fn resource<'r>(resources: Option<&Resources>, number: impl Fn(&Resources) -> u64) -> Result<Cell<'r>> {
    resources.map_or(Ok(Cell::Null), |resources| Cell::count(number(resources)))
}

fn kernels<'a>() -> Vec<Field<&'a KernelTotals>> {
    let mut fields = names();
    fields.extend([
        field::<&KernelTotals>(Column::new("object", Text, "MD5 of the original code object"), |row| {
            Ok(Cell::text(&row.object))
        }),
        field(Column::new("counters_in", Text, "where counters were: registers, lds or memory").optional(), |row| {
            let word = |mode| match mode {
                CounterMode::Global => "memory",
                CounterMode::Lds => "lds",
                CounterMode::Register => "registers",
            };
            Ok(Cell::any(row.mode, |mode| Cell::text(word(mode))))
        }),
        field(Column::new("dispatches", Integer, "dispatches that were counted"), |row| Cell::count(row.dispatches)),
        field(Column::new("waves", Integer, "waves that ran in them"), |row| Cell::count(row.waves)),
        field(Column::new("dropped", Integer, "waves whose counters are missing").in_unit("waves"), |row| {
            Cell::count(row.dropped)
        }),
        field(
            Column::new("unfinished", Integer, "waves that did not end; their counters may lack something")
                .in_unit("waves"),
            |row| Cell::count(row.unfinished),
        ),
        field(
            Column::new("instructions", Integer, "wave-instructions executed, where the emulator measured them")
                .optional(),
            |row| row.work.map_or(Ok(Cell::Null), |work| Cell::count(work.instructions)),
        ),
        field(
            Column::new("global_bytes", Integer, "bytes moved to or from global memory, by the emulator")
                .in_unit("bytes")
                .optional(),
            |row| row.work.map_or(Ok(Cell::Null), |work| Cell::count(work.global_bytes)),
        ),
        field(
            Column::new("lds_bytes", Integer, "bytes moved to or from LDS, by the emulator")
                .in_unit("bytes")
                .optional(),
            |row| row.work.map_or(Ok(Cell::Null), |work| Cell::count(work.lds_bytes)),
        ),
        field(Column::new("sgprs", Integer, "scalar registers of the original").optional(), |row| {
            resource(row.before.as_ref(), |has| has.sgprs.into())
        }),
        field(Column::new("vgprs", Integer, "vector registers of the original").optional(), |row| {
            resource(row.before.as_ref(), |has| has.vgprs.into())
        }),
        field(
            Column::new("static_lds", Integer, "static LDS of a workgroup of the original").in_unit("bytes").optional(),
            |row| resource(row.before.as_ref(), |has| has.lds_bytes.into()),
        ),
        field(
            Column::new("scratch", Integer, "scratch memory of a work-item of the original")
                .in_unit("bytes")
                .optional(),
            |row| resource(row.before.as_ref(), |has| has.scratch_bytes.into()),
        ),
        field(Column::new("wave_size", Integer, "lanes of a wave").in_unit("lanes").optional(), |row| {
            resource(row.before.as_ref().filter(|has| has.wave_size > 0), |has| has.wave_size.into())
        }),
        field(
            Column::new("waves_per_simd", Integer, "waves that a SIMD holds at most, of the original")
                .in_unit("waves")
                .optional(),
            |row| resource(row.before.as_ref(), |has| has.waves_per_simd.into()),
        ),
        field(
            Column::new("waves_per_simd_counted", Integer, "the same with counters").in_unit("waves").optional(),
            |row| resource(row.after.as_ref(), |has| has.waves_per_simd.into()),
        ),
    ]);
    fields
}

const LAUNCHES: (&str, &str) = ("launches", "dispatches of a kernel that were launched alike");

/// Dispatches that are alike.
struct Launched<'a> {
    kernel: &'a KernelTotals,
    shape: &'a LaunchShape,
}

impl OfKernel for Launched<'_> {
    fn kernel(&self) -> [&str; 3] {
        [&self.kernel.name, &self.kernel.demangled, &self.kernel.target]
    }
}

fn launches<'a>() -> Vec<Field<Launched<'a>>> {
    let mut fields = names::<Launched<'a>>();
    let grid = "work-items of the grid; none for what exceeds the list of 64 shapes";
    for (name, cell) in [
        ("grid_x", (|row| Ok(Cell::any(row.shape.grid, |[x, _, _]| Cell::number(x)))) as fn(&Launched<'a>) -> _),
        ("grid_y", |row| Ok(Cell::any(row.shape.grid, |[_, y, _]| Cell::number(y)))),
        ("grid_z", |row| Ok(Cell::any(row.shape.grid, |[_, _, z]| Cell::number(z)))),
    ] {
        fields.push(field(Column::new(name, Integer, grid).optional(), cell));
    }
    fields.extend([
        axis!("workgroup_x", "work-items of a workgroup", |row: &Launched<'_>| row.shape.workgroup, 0),
        axis!("workgroup_y", "work-items of a workgroup", |row: &Launched<'_>| row.shape.workgroup, 1),
        axis!("workgroup_z", "work-items of a workgroup", |row: &Launched<'_>| row.shape.workgroup, 2),
        field(Column::new("dynamic_lds", Integer, "LDS that the launch added").in_unit("bytes"), |row| {
            Ok(Cell::number(row.shape.dynamic_lds))
        }),
        field(Column::new("dispatches", Integer, "how many"), |row| Cell::count(row.shape.dispatches)),
    ]);
    fields
}

/// A site and its kernel.
struct Site<'a> {
    kernel: &'a KernelTotals,
    site: &'a SiteTotals,
}

impl OfKernel for Site<'_> {
    fn kernel(&self) -> [&str; 3] {
        [&self.kernel.name, &self.kernel.demangled, &self.kernel.target]
    }
}

fn places<'a>() -> Vec<Field<Site<'a>>> {
    let mut fields = names::<Site<'a>>();
    fields.extend([
        field::<Site<'a>>(Column::new("object", Text, "MD5 of the original code object"), |row| {
            Ok(Cell::text(&row.kernel.object))
        }),
        field(Column::new("address", Integer, "address of the instruction in the code object"), |row| {
            Cell::count(row.site.address)
        }),
        field(Column::new("instruction", Text, "the instruction"), |row| Ok(Cell::text(&row.site.instruction))),
        field(Column::new("file", Text, "source file, if the code has line tables").optional(), |row| {
            Ok(Cell::any(row.site.source.as_ref(), |source| Cell::text(&source.file)))
        }),
        field(Column::new("line", Integer, "source line").optional(), |row| {
            Ok(Cell::any(row.site.source.as_ref(), |source| Cell::number(source.line)))
        }),
    ]);
    fields
}

/// The table of the sites of a kind: `PROBE_KIND` (hyphens become `_`), with a column for each field of the schema.
///
/// # Errors
/// Unsupported if a name is none that a folder and a column can have everywhere.
pub fn of_kind(kind: &KindSchema) -> Result<Table> {
    let is_plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    // A name of a probe may have hyphens, which no table may.
    let name = format!("{}_{}", kind.probe, kind.name).replace('-', "_");
    let fields = kind.fields.iter().map(|field| field.name.as_ref());
    if let Some(wrong) = std::iter::once(name.as_str()).chain(fields).find(|name| !is_plain(name)) {
        return Err(Error::unsupported(format!(
            "kind {kind}: {wrong:?} is no name of a table or column: expected a-z, 0-9 and _"
        )));
    }
    let meaning = format!("a site of the probe {}, kind {}", kind.probe, kind.name);
    let mut table = Table { meaning: Cow::Owned(meaning), ..table(name, "", &places()) };
    for field in kind.fields.iter() {
        let (how, none) = match field.merge {
            Merge::Sum => ("added up over waves and dispatches", ""),
            Merge::Max => ("the largest of all", ""),
            Merge::Min => ("the smallest of all", "; none if nothing was measured"),
        };
        table.columns.push(Column {
            name: Cow::Owned(field.name.to_string()),
            kind: Integer,
            is_optional: field.merge == Merge::Min,
            unit: Some(unit_name(field.unit)),
            meaning: Cow::Owned(format!("{how}{none}")),
        });
    }
    Ok(table)
}

fn sites(profile: &Profile, rows: &mut dyn Rows) -> Result<()> {
    let places = places();
    let mut tables: Vec<(&KindSchema, Table)> = Vec::new();
    for kernel in &profile.kernels {
        for site in &kernel.sites {
            let kind = site.counts.kind();
            let at = tables.iter().position(|(known, _)| *known == &**kind);
            let at = match at {
                Some(at) => at,
                None => {
                    let table = of_kind(kind)?;
                    rows.begin(&table)?;
                    tables.push((kind, table));
                    tables.len() - 1
                }
            };
            let place = Site { kernel, site };
            let mut row = cells(&places, &place)?;
            for (field, value) in kind.fields.iter().zip(site.counts.values()) {
                let cell = measured(field, *value).map_or(Ok(Cell::Null), Cell::count);
                row.push(cell.within(|| format!("column {} of {kind}, kernel {}", field.name, kernel.name))?);
            }
            rows.row(&tables[at].1, row)?;
        }
    }
    Ok(())
}

const NOT_COUNTED: (&str, &str) =
    ("not_counted", "a kernel that was refused when its file was rewritten, or dispatches that were not counted");

/// What is missing.
struct Gap<'a> {
    kernel: [&'a str; 3],
    reason: &'a str,
    detail: &'a str,
    dispatches: Option<u64>,
}

impl OfKernel for Gap<'_> {
    fn kernel(&self) -> [&str; 3] {
        self.kernel
    }
}

fn gaps(profile: &Profile) -> impl Iterator<Item = Gap<'_>> {
    let refused = profile.refused.iter().map(|refused| Gap {
        kernel: [&refused.name, &refused.demangled, &refused.target],
        reason: &refused.reason,
        detail: &refused.detail,
        dispatches: None,
    });
    refused.chain(profile.uncounted.iter().map(|uncounted| Gap {
        kernel: [&uncounted.name, &uncounted.demangled, &uncounted.target],
        reason: uncounted.why.name(),
        detail: &uncounted.detail,
        dispatches: Some(uncounted.dispatches),
    }))
}

fn not_counted<'a>() -> Vec<Field<Gap<'a>>> {
    let mut fields = names::<Gap<'a>>();
    fields.extend([
        field::<Gap<'a>>(Column::new("reason", Text, "the reason, a fixed word"), |row| Ok(Cell::text(row.reason))),
        field(Column::new("detail", Text, "the reason in a sentence"), |row| Ok(Cell::text(row.detail))),
        field(
            Column::new("dispatches", Integer, "dispatches that were not counted; none for a refused kernel")
                .optional(),
            |row| row.dispatches.map_or(Ok(Cell::Null), Cell::count),
        ),
    ]);
    fields
}

const FINDINGS: (&str, &str) = ("findings", "something that was found, as in SARIF");

/// A finding and its log.
struct Found<'a> {
    log: &'a FindingLog,
    finding: &'a LoggedFinding,
}

impl OfKernel for Found<'_> {
    fn kernel(&self) -> [&str; 3] {
        let kernel = &self.finding.kernel;
        [&kernel.name, &kernel.demangled, &kernel.target]
    }
}

fn findings<'a>() -> Vec<Field<Found<'a>>> {
    let mut fields = names::<Found<'a>>();
    fields.extend([
        field::<Found<'a>>(Column::new("rule", Text, "name of the rule"), |row| {
            let rule = row.log.rules.get(row.finding.rule);
            rule.map(|rule| Cell::text(rule.id)).ok_or_else(|| Error::internal("a finding of no rule"))
        }),
        field(Column::new("level", Text, "error, warning or note"), |row| {
            Ok(Cell::text(match row.finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Note => "note",
            }))
        }),
        field(Column::new("file", Text, "source file").optional(), |row| {
            Ok(Cell::any(row.finding.source.as_ref(), |source| Cell::text(&source.file)))
        }),
        field(Column::new("line", Integer, "source line").optional(), |row| {
            Ok(Cell::any(row.finding.source.as_ref(), |source| Cell::number(source.line)))
        }),
        field(Column::new("address", Integer, "address of the instruction in the code object").optional(), |row| {
            row.finding.address.map_or(Ok(Cell::Null), Cell::count)
        }),
        field(Column::new("message", Text, "what was found"), |row| Ok(Cell::text(&row.finding.message))),
        field(Column::new("share", Real, "its share of the run, 0 to 1, if that is known").optional(), |row| {
            Ok(Cell::any(row.finding.share, Cell::Real))
        }),
        field(Column::new("executions", Integer, "executions by waves, if they were counted").optional(), |row| {
            row.finding.executions.map_or(Ok(Cell::Null), Cell::count)
        }),
    ]);
    fields
}

const ACCESSES: (&str, &str) = ("accesses", "a recorded execution of a memory instruction by a wave");

/// A recorded access and its kernel.
struct Access<'a> {
    kernel: &'a NamedRecords,
    record: &'a Recorded,
}

impl OfKernel for Access<'_> {
    fn kernel(&self) -> [&str; 3] {
        [&self.kernel.name, &self.kernel.demangled, self.kernel.recorded.target.name()]
    }
}

fn accesses<'a>() -> Vec<Field<Access<'a>>> {
    let mut fields = names::<Access<'a>>();
    fields.extend([
        field::<Access<'a>>(Column::new("dispatch", Integer, "number of the dispatch among the kernel's"), |row| {
            Ok(Cell::number(row.record.dispatch))
        }),
        axis!("workgroup_x", "id of the workgroup", |row: &Access<'_>| row.record.workgroup, 0),
        axis!("workgroup_y", "id of the workgroup", |row: &Access<'_>| row.record.workgroup, 1),
        axis!("workgroup_z", "id of the workgroup", |row: &Access<'_>| row.record.workgroup, 2),
        field(Column::new("wave", Integer, "number of the wave in the workgroup"), |row| {
            Ok(Cell::number(row.record.wave))
        }),
        field(Column::new("address", Integer, "address of the instruction in the code object"), |row| {
            Cell::count(row.record.address)
        }),
        field(Column::new("instruction", Text, "the instruction").optional(), |row| {
            Ok(Cell::any(row.kernel.instructions.get(&row.record.address), |text| Cell::text(text)))
        }),
        field(Column::new("space", Text, "global, lds or scratch"), |row| Ok(Cell::text(space_name(row.record)))),
        field(Column::new("operation", Text, "load, store or atomic"), |row| {
            Ok(Cell::text(operation_name(row.record)))
        }),
        field(Column::new("bytes", Integer, "bytes that each lane accesses").in_unit("bytes"), |row| {
            Ok(Cell::number(row.record.bytes))
        }),
        field(Column::new("lanes", Integers, "numbers of the active lanes, from the lowest on"), |row| {
            let lanes = (0..i64::from(u64::BITS)).filter(|lane| row.record.lanes >> lane & 1 != 0);
            Ok(Cell::Integers(lanes.collect()))
        }),
        field(
            Column::new("addresses", Integers, "the address of each of these lanes; those in LDS begin at 0"),
            |row| {
                let fit = |address: &u64| i64::try_from(*address);
                let addresses = row.record.addresses.iter().map(fit).collect::<std::result::Result<_, _>>();
                addresses.map(Cell::Integers).map_err(|_| Error::limit("an address above 63 bits".to_owned()))
            },
        ),
    ]);
    fields
}
