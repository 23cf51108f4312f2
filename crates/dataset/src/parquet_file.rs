//! A table as a Parquet file, written row by row.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use wavetap_base::error::{Error, Kind, Result};

use crate::{Cell, Column, ColumnType, SCHEMA};

/// Rows that are kept in memory before they are written.
const ROWS: usize = 1 << 16;

/// A file of a table.
pub struct TableFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<(Column, Buffer)>,
    rows: usize,
}

impl<W: Write + Send> std::fmt::Debug for TableFile<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFile").field("columns", &self.columns).field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The values of a column that are not written yet, and which rows have them.
#[derive(Debug, Default)]
struct Buffer {
    /// 0 where there is no value, else how far it is defined.
    definitions: Vec<i16>,
    /// 1 where a value is in the list of the one before.
    repetitions: Vec<i16>,
    values: Values,
}

#[derive(Debug, Default)]
enum Values {
    #[default]
    None,
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Real(Vec<f64>),
    Flag(Vec<bool>),
}

impl Values {
    fn of(kind: ColumnType) -> Values {
        match kind {
            ColumnType::Text => Values::Text(Vec::new()),
            ColumnType::Integer | ColumnType::Integers => Values::Integer(Vec::new()),
            ColumnType::Real => Values::Real(Vec::new()),
            ColumnType::Flag => Values::Flag(Vec::new()),
        }
    }
}

impl Buffer {
    /// Adds a row's value.
    fn push(&mut self, column: &Column, cell: Cell<'_>) -> Result<()> {
        let defined = i16::from(column.is_optional);
        match (&mut self.values, cell) {
            (_, Cell::Null) if column.is_optional => {
                self.definitions.push(0);
                return Ok(());
            }
            (Values::Text(values), Cell::Text(text)) => values.push(ByteArray::from(text.as_ref())),
            (Values::Integer(values), Cell::Integer(value)) => values.push(value),
            (Values::Real(values), Cell::Real(value)) => values.push(value),
            (Values::Flag(values), Cell::Flag(value)) => values.push(value),
            (Values::Integer(values), Cell::Integers(list)) if column.kind == ColumnType::Integers => {
                self.definitions.extend(std::iter::repeat_n(i16::from(!list.is_empty()), list.len().max(1)));
                self.repetitions.push(0);
                self.repetitions.extend(std::iter::repeat_n(1, list.len().saturating_sub(1)));
                values.extend(list);
                return Ok(());
            }
            (_, cell) => {
                let expected = column.kind.name();
                return Err(Error::internal(format!("column {}: {cell:?}, expected {expected}", column.name)));
            }
        }
        if column.is_optional {
            self.definitions.push(defined);
        }
        Ok(())
    }

    /// Writes what there is, and forgets it.
    fn write(&mut self, writer: &mut ColumnWriter<'_>) -> std::result::Result<(), ParquetError> {
        let definitions = (!self.definitions.is_empty()).then_some(&self.definitions[..]);
        let repetitions = (!self.repetitions.is_empty()).then_some(&self.repetitions[..]);
        match (writer, &mut self.values) {
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Text(values)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (ColumnWriter::Int64ColumnWriter(writer), Values::Integer(values)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Real(values)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (ColumnWriter::BoolColumnWriter(writer), Values::Flag(values)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        }
        self.definitions.clear();
        self.repetitions.clear();
        Ok(())
    }
}

impl<W: Write + Send> TableFile<W> {
    /// Begins a file of a table with these columns.
    ///
    /// # Errors
    /// Internal if two columns have one name; I/O if it cannot be written.
    pub fn new(to: W, table: &str, columns: Vec<Column>) -> Result<TableFile<W>> {
        let schema = schema(table, &columns).map_err(|error| failed(&error))?;
        let version = KeyValue::new("wavetap.schema".to_owned(), SCHEMA.to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("wavetap {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![version, KeyValue::new("wavetap.table".to_owned(), table.to_owned())]))
            .build();
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties)).map_err(|error| failed(&error))?;
        let buffer = |column: &Column| Buffer { values: Values::of(column.kind), ..Buffer::default() };
        let columns = columns.into_iter().map(|column| (buffer(&column), column)).map(|(of, column)| (column, of));
        Ok(TableFile { writer, columns: columns.collect(), rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Internal if it has not the columns of the table; I/O if it cannot be written.
    pub fn push(&mut self, row: Vec<Cell<'_>>) -> Result<()> {
        if row.len() != self.columns.len() {
            return Err(Error::internal(format!("{} cells in {} columns", row.len(), self.columns.len())));
        }
        self.columns.iter_mut().zip(row).try_for_each(|((column, buffer), cell)| buffer.push(column, cell))?;
        self.rows += 1;
        if self.rows == ROWS { self.flush() } else { Ok(()) }
    }

    /// Bytes that are written: without the rows of the last group.
    pub fn bytes(&self) -> usize {
        self.writer.bytes_written()
    }

    /// Writes the rows that are in memory as a group.
    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            for (_, buffer) in &mut self.columns {
                let mut column =
                    group.next_column()?.ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
                buffer.write(column.untyped())?;
                column.close()?;
            }
            group.close().map(|_| ())
        };
        write().map_err(|error| failed(&error))?;
        self.rows = 0;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// I/O if it cannot be written.
    pub fn finish(mut self) -> Result<W> {
        self.flush()?;
        self.writer.into_inner().map_err(|error| failed(&error))
    }
}

fn failed(error: &ParquetError) -> Error {
    let text = format!("Parquet: {error}");
    match error {
        ParquetError::External(cause) if cause.is::<std::io::Error>() => Error::new(Kind::Io, text),
        _ => Error::internal(text),
    }
}

/// The columns as Parquet has them.
fn schema(table: &str, columns: &[Column]) -> std::result::Result<TypePtr, ParquetError> {
    let mut fields: Vec<TypePtr> = Vec::new();
    for column in columns {
        if fields.iter().any(|field| field.name() == column.name) {
            return Err(ParquetError::General(format!("two columns named {:?}", column.name)));
        }
        fields.push(Arc::new(field(column)?));
    }
    Type::group_type_builder(table).with_fields(fields).build().map(Arc::new)
}

fn field(column: &Column) -> std::result::Result<Type, ParquetError> {
    let repetition = if column.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let plain = |of: Physical| Type::primitive_type_builder(&column.name, of).with_repetition(repetition);
    match column.kind {
        ColumnType::Text => plain(Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::String)).build(),
        ColumnType::Integer => plain(Physical::INT64).build(),
        ColumnType::Real => plain(Physical::DOUBLE).build(),
        ColumnType::Flag => plain(Physical::BOOLEAN).build(),
        // The three levels that the format asks for.
        ColumnType::Integers => {
            let element = Type::primitive_type_builder("element", Physical::INT64)
                .with_repetition(Repetition::REQUIRED)
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            Type::group_type_builder(&column.name)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn columns() -> Vec<Column> {
        vec![
            Column::new("name", ColumnType::Text, ""),
            Column::new("count", ColumnType::Integer, "").optional(),
            Column::new("share", ColumnType::Real, ""),
            Column::new("is_last", ColumnType::Flag, ""),
            Column::new("addresses", ColumnType::Integers, ""),
        ]
    }

    #[test]
    fn rows_are_read_again_across_groups() {
        let mut file = TableFile::new(Vec::new(), "t", columns()).expect("a file");
        let rows = ROWS as i64 + 3;
        for row in 0..rows {
            let list = (0..row % 3).map(|at| row + at).collect();
            let count = Cell::any((row % 2 == 0).then_some(row), Cell::Integer);
            let text = format!("n{}", row % 10);
            let cells = vec![
                Cell::text(&text),
                count,
                Cell::Real(row as f64 / 2.0),
                Cell::Flag(row + 1 == rows),
                Cell::Integers(list),
            ];
            file.push(cells).expect("a row");
        }
        let bytes = file.finish().expect("an end");
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a reader");
        assert_eq!(reader.num_row_groups(), 2);
        let mut read = 0;
        for (row, found) in (0..).zip(reader.get_row_iter(None).expect("rows")) {
            let found = found.expect("a row");
            assert_eq!(found.get_string(0).expect("text"), &format!("n{}", row % 10));
            assert_eq!(found.get_long(1).ok(), (row % 2 == 0).then_some(row));
            assert_eq!(found.get_double(2).expect("a number"), row as f64 / 2.0);
            assert_eq!(found.get_bool(3).expect("a flag"), row + 1 == rows);
            let list = found.get_list(4).expect("a list");
            let expected = (0..row % 3).map(|at| parquet::record::Field::Long(row + at)).collect::<Vec<_>>();
            assert_eq!(list.elements(), &expected[..]);
            read += 1;
        }
        assert_eq!(read, rows);
    }

    #[test]
    fn what_is_no_row_of_the_table_is_refused() {
        let mut file = TableFile::new(Vec::new(), "t", columns()).expect("a file");
        assert!(file.push(vec![Cell::Null]).expect_err("one cell").to_string().contains("1 cells in 5 columns"));
        let mut row = vec![Cell::Null, Cell::Null, Cell::Real(0.0), Cell::Flag(true), Cell::Integers(Vec::new())];
        assert!(file.push(row.clone()).expect_err("no name").to_string().contains("column name: Null"));
        row[0] = Cell::Integer(3);
        assert!(file.push(row).expect_err("a number").to_string().contains("expected VARCHAR"));
        let twice = vec![Column::new("a", ColumnType::Flag, ""), Column::new("a", ColumnType::Flag, "")];
        assert!(TableFile::new(Vec::new(), "t", twice).is_err());
        assert!(Cell::count(u64::MAX).expect_err("too much").to_string().contains("63 bits"));
    }
}
