//! The folder: which files there are, and what is in which.
//!
//! ```text
//! DATASET/_wavetap.json
//! DATASET/kernels/run=NIGHT/rank=3/PROFILE.parquet     partitioned by run and rank
//! DATASET/kernels/run=NIGHT/part-0.parquet             partitioned by run
//! ```

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wavetap_base::error::{Error, Result};

use crate::tables::{self, Rows, Source, Table};
use crate::{Cell, Column, ColumnType, SCHEMA, TableFile};

/// What engines take for "no value" in the name of a folder.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";
/// A file of a table that is partitioned by run alone is ended when it has so many bytes.
const FILE_BYTES: usize = 64 << 20;

/// By what the files of a table lie in folders: the same for a whole dataset, because engines ask for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// A folder for each rank of each run, and a file for each profile: profiles can be added one by one.
    RunAndRank,
    /// A folder for each run, with few files, and the rank as a column: for thousands of ranks.
    Run,
}

impl Partition {
    /// Its name in the description.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Partition::RunAndRank => "rank",
            Partition::Run => "run",
        }
    }

    /// The one of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Partition> {
        [Partition::RunAndRank, Partition::Run].into_iter().find(|one| one.name() == name)
    }
}

/// Which part of a dataset a profile is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What tells profiles apart: the MD5 of the file.
    pub profile: String,
    /// The rank of the process, if a launcher gave it one.
    pub rank: Option<u32>,
    /// The host that it ran on, if that is known.
    pub host: Option<String>,
}

/// Makes files of profiles. What has to be done with a file that is complete, the caller knows.
pub struct Dataset<'w> {
    run: String,
    partition: Partition,
    /// The part that is being added.
    part: Part,
    /// By table.
    open: BTreeMap<String, Open>,
    write: &'w mut dyn FnMut(&str, Vec<u8>) -> Result<()>,
}

impl std::fmt::Debug for Dataset<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset").field("run", &self.run).field("open", &self.open).finish_non_exhaustive()
    }
}

/// A file that is not complete.
#[derive(Debug)]
struct Open {
    file: Option<TableFile<Vec<u8>>>,
    /// Files of this table before it.
    number: u32,
}

impl<'w> Dataset<'w> {
    /// Begins with a run of this name. `write` is given each file with its path below the dataset.
    ///
    /// # Errors
    /// Unsupported if no folder can have such a name.
    pub fn new(
        run: &str,
        partition: Partition,
        write: &'w mut dyn FnMut(&str, Vec<u8>) -> Result<()>,
    ) -> Result<Dataset<'w>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        if run.is_empty() || !run.chars().all(is_plain) || run.starts_with('.') {
            return Err(Error::unsupported(format!(
                "{run:?} is no name of a run: expected letters, digits and any of . _ - + but no . in front"
            )));
        }
        let part = Part { profile: String::new(), rank: None, host: None };
        Ok(Dataset { run: run.to_owned(), partition, part, open: BTreeMap::new(), write })
    }

    /// Adds a profile.
    ///
    /// # Errors
    /// As [`tables::of_profile`]; what the writer of files fails with.
    pub fn add(&mut self, part: Part, source: &Source<'_>) -> Result<()> {
        self.part = part;
        tables::of_profile(source, self)?;
        if self.partition == Partition::RunAndRank { self.end() } else { Ok(()) }
    }

    /// Ends all files that are open.
    ///
    /// # Errors
    /// What the writer of files fails with.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let names: Vec<String> = self.open.keys().cloned().collect();
        names.iter().try_for_each(|table| self.end_file(table))
    }

    fn end_file(&mut self, table: &str) -> Result<()> {
        let path = self.folder(table);
        let Some(open) = self.open.get_mut(table) else { return Ok(()) };
        let Some(file) = open.file.take() else { return Ok(()) };
        let name = match self.partition {
            Partition::RunAndRank => self.part.profile.clone(),
            Partition::Run => format!("part-{}", open.number),
        };
        open.number += 1;
        (self.write)(&format!("{path}/{name}.parquet"), file.finish()?)
    }

    /// The file of a table that is being written.
    fn file(&mut self, table: &Table) -> Result<&mut TableFile<Vec<u8>>> {
        let open = self.open.entry(table.name.clone()).or_insert(Open { file: None, number: 0 });
        match &mut open.file {
            Some(file) => Ok(file),
            empty => {
                let all = columns(self.partition).iter().chain(&table.columns).cloned().collect();
                Ok(empty.insert(TableFile::new(Vec::new(), &table.name, all)?))
            }
        }
    }

    /// The folder of a table's files.
    fn folder(&self, table: &str) -> String {
        let run = format!("{table}/run={}", self.run);
        match (self.partition, self.part.rank) {
            (Partition::Run, _) => run,
            (Partition::RunAndRank, Some(rank)) => format!("{run}/rank={rank}"),
            (Partition::RunAndRank, None) => format!("{run}/rank={NO_VALUE}"),
        }
    }
}

impl Rows for Dataset<'_> {
    fn begin(&mut self, table: &Table) -> Result<()> {
        self.file(table).map(|_| ())
    }

    fn row(&mut self, table: &Table, row: Vec<Cell<'_>>) -> Result<()> {
        let part = self.part.clone();
        let mut cells = vec![Cell::text(&part.profile), Cell::any(part.host.as_deref(), Cell::text)];
        if self.partition == Partition::Run {
            cells.push(Cell::any(part.rank, Cell::number));
        }
        cells.extend(row);
        let file = self.file(table)?;
        file.push(cells)?;
        let is_full = file.bytes() > FILE_BYTES;
        if is_full && self.partition == Partition::Run { self.end_file(&table.name) } else { Ok(()) }
    }
}

/// The columns that every table begins with.
fn columns(partition: Partition) -> Vec<Column> {
    let mut columns = vec![
        Column::new("profile", ColumnType::Text, "MD5 of the profile's file: what tells profiles apart"),
        Column::new("host", ColumnType::Text, "the host that it ran on, if that is known").optional(),
    ];
    if partition == Partition::Run {
        columns.push(rank());
    }
    columns
}

fn rank() -> Column {
    Column::new("rank", ColumnType::Integer, "the rank of the process, if a launcher gave it one").optional()
}

/// What is said of all tables beside them: each with what a row is, and of each column the type, unit and meaning.
#[must_use]
pub fn description(partition: Partition, tables: &[Table]) -> Value {
    let column = |column: &Column| {
        json!({
            "name": column.name,
            "type": column.kind.name(),
            "optional": column.is_optional,
            "unit": column.unit,
            "meaning": column.meaning,
        })
    };
    let run = Column::new("run", ColumnType::Text, "the run: the name of a folder");
    let common: Vec<Value> = [run, rank()].iter().chain(&columns(Partition::RunAndRank)).map(column).collect();
    let tables: Vec<Value> = tables
        .iter()
        .map(|table| {
            json!({
                "name": table.name,
                "row": table.meaning,
                "columns": table.columns.iter().map(column).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "schema": SCHEMA, "partition": partition.name(), "common_columns": common, "tables": tables })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals};
    use wavetap_profile::probes::branches::ExecCounts;

    fn profile() -> Profile {
        let site = SiteTotals {
            address: 16,
            instruction: "s_and_saveexec_b64".to_owned(),
            source: None,
            counts: ExecCounts { executions: 4, agreements: 1, lanes_before: 256, lanes_after: 100, empty: 0 }.into(),
        };
        let kernel = KernelTotals { name: "k".to_owned(), sites: vec![site], ..KernelTotals::default() };
        Profile { kernels: vec![kernel], ..Profile::new(Origin::Counters, Backend::Emulator) }
    }

    fn paths(partition: Partition) -> Vec<String> {
        let profile = profile();
        let mut paths = Vec::new();
        let mut write = |path: &str, bytes: Vec<u8>| {
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
            paths.push(path.to_owned());
            Ok(())
        };
        let mut dataset = Dataset::new("night-1", partition, &mut write).expect("a name");
        for rank in [None, Some(1), Some(12)] {
            let part = Part { profile: format!("{rank:?}").replace(['(', ')'], ""), rank, host: None };
            let source = Source { profile: &profile, file: "p", findings: None, accesses: &[] };
            dataset.add(part, &source).expect("rows");
        }
        dataset.finish().expect("files");
        paths
    }

    #[test]
    fn files_lie_where_engines_look_for_partitions() {
        let by_rank = paths(Partition::RunAndRank);
        assert_eq!(by_rank.len(), 15);
        assert!(by_rank.contains(&"branches_exec/run=night-1/rank=12/Some12.parquet".to_owned()), "{by_rank:?}");
        let nowhere = "runs/run=night-1/rank=__HIVE_DEFAULT_PARTITION__/None.parquet".to_owned();
        assert!(by_rank.contains(&nowhere), "{by_rank:?}");
        let by_run = paths(Partition::Run);
        let tables = ["branches_exec", "kernels", "launches", "not_counted", "runs"];
        let expected = tables.map(|table| format!("{table}/run=night-1/part-0.parquet"));
        assert_eq!(by_run, expected);
    }

    #[test]
    fn names_of_runs_are_names_of_folders() {
        for name in ["", "../up", "a/b", ".hidden", "a=b", "a b"] {
            let mut write = |_: &str, _: Vec<u8>| Ok(());
            let error = Dataset::new(name, Partition::Run, &mut write).expect_err(name).to_string();
            assert!(error.contains("is no name of a run"), "{error}");
        }
    }
}
