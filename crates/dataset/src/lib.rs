//! Profiles as tables: a folder of Parquet files that DuckDB, Polars, Spark and pandas read as one.
//!
//! A table ([`tables`]) is a list of columns, each with its type, unit and meaning ([`Column`]). From it follow the
//! file's schema, the rows and the description that lies beside them ([`description`]): nothing is said twice. The
//! tables of sites have the columns that the probe's own schema names, so that a probe needs nothing here.
//!
//! Integers have 64 bits and a sign, because not every engine has unsigned ones: a count above `i64::MAX` is an error.
#![forbid(unsafe_code)]

mod column;
mod folder;
mod parquet_file;
pub mod tables;

pub use column::{Cell, Column, ColumnType};
pub use folder::{Dataset, Part, Partition, description};
pub use parquet_file::TableFile;

/// The schema of a dataset. The number rises when a column changes its meaning or goes; columns and tables may be
/// added without.
pub const SCHEMA: &str = "wavetap.dataset/1";
/// The file beside the tables that says what their columns mean. Engines leave out names that begin like this.
pub const DESCRIPTION: &str = "_wavetap.json";
