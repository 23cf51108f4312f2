//! Columns and what is in them.

use std::borrow::Cow;

use wavetap_base::error::{Error, Result};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// 64 bits with a sign.
    Integer,
    /// 64 bits, IEEE 754.
    Real,
    /// True or false.
    Flag,
    /// A list of integers.
    Integers,
}

impl ColumnType {
    /// Its name in the description: DuckDB's.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::Text => "VARCHAR",
            ColumnType::Integer => "BIGINT",
            ColumnType::Real => "DOUBLE",
            ColumnType::Flag => "BOOLEAN",
            ColumnType::Integers => "BIGINT[]",
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether a row may have no value.
    pub is_optional: bool,
    /// The unit of a number.
    pub unit: Option<&'static str>,
    /// What it means, and when there is none.
    pub meaning: Cow<'static, str>,
}

impl Column {
    /// A column in which every row has a value.
    #[must_use]
    pub fn new(name: &'static str, kind: ColumnType, meaning: &'static str) -> Column {
        let (name, meaning) = (Cow::Borrowed(name), Cow::Borrowed(meaning));
        Column { name, kind, is_optional: false, unit: None, meaning }
    }

    /// The same with a unit.
    #[must_use]
    pub fn in_unit(self, unit: &'static str) -> Column {
        Column { unit: Some(unit), ..self }
    }

    /// The same in which rows may have no value.
    #[must_use]
    pub fn optional(self) -> Column {
        Column { is_optional: true, ..self }
    }
}

/// What a row has in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// Text.
    Text(Cow<'a, str>),
    /// A number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// True or false.
    Flag(bool),
    /// A list.
    Integers(Vec<i64>),
}

impl<'a> Cell<'a> {
    /// A count.
    ///
    /// # Errors
    /// Limit if it does not fit.
    pub fn count(count: u64) -> Result<Cell<'a>> {
        i64::try_from(count)
            .map(Cell::Integer)
            .map_err(|_| Error::limit(format!("{count} does not fit a column: expected at most {}, 63 bits", i64::MAX)))
    }

    /// A smaller number.
    #[must_use]
    pub fn number(number: u32) -> Cell<'a> {
        Cell::Integer(i64::from(number))
    }

    /// Text.
    #[must_use]
    pub fn text(text: &'a str) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(text))
    }

    /// What there is, or nothing.
    #[must_use]
    pub fn any<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell<'a>) -> Cell<'a> {
        value.map_or(Cell::Null, cell)
    }
}
