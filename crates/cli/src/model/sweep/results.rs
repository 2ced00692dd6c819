//! Results of a sweep as a Parquet file, one row a point.
//!
//! The file's own metadata say which sweep it belongs to, and which points it has. It is written
//! beside its place and moved there, so it is never half a file.

use anyhow::{Context, Result, bail};
use bellwire_sweep::{Cell, Column, Kind, Row, Sweep, VERSION};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::{Field, RowAccessor};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a group: some megabytes, so that a reader need not take all.
const GROUP: usize = 100_000;

/// Writes the results of these points.
pub fn write<'a>(
    file: &Path,
    sweep: &Sweep,
    points: &Range<u64>,
    rows: impl Iterator<Item = &'a Row>,
) -> Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let written = write_to(&new, sweep, points, rows);
    let placed = written.and_then(|()| Ok(std::fs::rename(&new, file)?));
    placed.with_context(|| {
        let _ = std::fs::remove_file(&new);
        let kept = "the points that ended are kept, so the same command goes on from there";
        format!("cannot write {}; {kept}", file.display())
    })
}

fn write_to<'a>(
    file: &Path,
    sweep: &Sweep,
    points: &Range<u64>,
    rows: impl Iterator<Item = &'a Row>,
) -> Result<()> {
    let columns = sweep.columns();
    let fields = columns.iter().map(|column| Ok(Arc::new(field(column)?)));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
    let metadata = [
        ("bellwire.identity", sweep.identity().to_owned()),
        ("bellwire.points", format!("{}..{}", points.start, points.end)),
        ("bellwire.version", VERSION.to_owned()),
        ("bellwire.sweep", sweep.text().to_owned()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let properties = WriterProperties::builder().set_key_value_metadata(Some(metadata)).build();
    let mut writer = SerializedFileWriter::new(File::create(file)?, schema, Arc::new(properties))?;
    let cells: Vec<Vec<Cell>> = rows.map(|row| sweep.cells(row)).collect();
    for group in cells.chunks(GROUP) {
        let mut group_writer = writer.next_row_group()?;
        for (at, column) in columns.iter().enumerate() {
            let cells = group.iter().map(|row| &row[at]);
            let Some(column_writer) = group_writer.next_column()? else {
                bail!("the file has no column {}", column.name)
            };
            write_column(column_writer, column.kind, cells)?;
        }
        group_writer.close()?;
    }
    writer.finish()?;
    // A power cut must not leave a name without its content.
    writer.inner().sync_all()?;
    Ok(())
}

fn field(column: &Column) -> Result<Type> {
    let (physical, logical) = match column.kind {
        Kind::Integer => (Physical::INT64, None),
        Kind::Real => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let field = Type::primitive_type_builder(&column.name, physical);
    Ok(field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()?)
}

fn write_column<'a>(
    column: SerializedColumnWriter<'_>,
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<()> {
    match kind {
        Kind::Integer => write_cells::<Int64Type>(column, cells, |cell| match cell {
            Cell::Integer(number) => Some(*number),
            _ => None,
        }),
        Kind::Real => write_cells::<DoubleType>(column, cells, |cell| match cell {
            Cell::Real(number) => Some(*number),
            _ => None,
        }),
        Kind::Flag => write_cells::<BoolType>(column, cells, |cell| match cell {
            Cell::Flag(yes) => Some(*yes),
            _ => None,
        }),
        Kind::Text => write_cells::<ByteArrayType>(column, cells, |cell| match cell {
            Cell::Text(text) => Some(ByteArray::from(text.as_str())),
            _ => None,
        }),
    }
}

/// Writes values, and for each row whether it has one.
fn write_cells<'a, T: DataType>(
    mut column: SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = cells.map(value).collect();
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()?;
    Ok(())
}

/// What is at the place of the results.
pub enum Found {
    /// No file.
    Nothing,
    /// All results.
    Rows(Vec<Row>),
}

/// Looks for the results of these points. A file of anything else is not overwritten.
pub fn find(file: &Path, sweep: &Sweep, points: &Range<u64>) -> Result<Found> {
    if !file.try_exists().with_context(|| format!("cannot look at {}", file.display()))? {
        return Ok(Found::Nothing);
    }
    let (found, rows) = read(file, sweep, IN_THE_WAY)?;
    if found != *points {
        bail!(
            "{} has the points {}..{} of this sweep, not {}..{}; give --out another name, or remove it",
            file.display(),
            found.start,
            found.end,
            points.start,
            points.end
        );
    }
    Ok(Found::Rows(rows))
}

/// The rows of all parts, in order.
pub fn join(sweep: &Sweep, parts: &[PathBuf]) -> Result<Vec<Row>> {
    let mut joined: BTreeMap<u64, Row> = BTreeMap::new();
    for part in parts {
        for row in read(part, sweep, NO_PART)?.1 {
            let point = row.point;
            match joined.get(&point) {
                Some(other) if *other != row => bail!(
                    "point {point} has other results in {} than in an earlier part; the model is \
                     deterministic, so one of them was changed, or computed by another build",
                    part.display()
                ),
                _ => joined.insert(point, row),
            };
        }
    }
    let missing = (0..sweep.points()).find(|point| !joined.contains_key(point));
    if let Some(missing) = missing {
        bail!(
            "the parts have {} of {} points, and no result of point {missing}; run the missing ones with --points, \
             and give their file too",
            joined.len(),
            sweep.points()
        );
    }
    Ok(joined.into_values().collect())
}

/// What to do with a file that is where the results should be.
const IN_THE_WAY: &str = "give --out another name, or remove it";
/// What to do with a file that is no part.
const NO_PART: &str = "leave it out of --join";

/// Reads the results of some points of this sweep. `advice`: what to do with a file of something
/// else.
fn read(file: &Path, sweep: &Sweep, advice: &str) -> Result<(Range<u64>, Vec<Row>)> {
    let name = file.display();
    let opened = File::open(file).with_context(|| format!("cannot open {name}"))?;
    let reader = SerializedFileReader::new(opened);
    let reader = reader.ok().with_context(|| format!("{name} is no Parquet file; {advice}"))?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let value = |key: &str| {
        let found = metadata.into_iter().flatten().find(|of| of.key == key);
        found.and_then(|of| of.value.clone())
    };
    let Some(identity) = value("bellwire.identity") else {
        bail!("{name} has no results of a sweep; {advice}")
    };
    if identity != sweep.identity() {
        bail!("{name} has the results of another sweep; {advice}");
    }
    let version = value("bellwire.version").unwrap_or_default();
    if version != VERSION {
        bail!(
            "{name} is of version {version}, and this is {VERSION}, whose results may differ; {advice}"
        );
    }
    let points = value("bellwire.points").and_then(|points| super::points(&points).ok());
    let points = points.with_context(|| format!("{name} does not say which points it has"))?;
    let figures = sweep.quantities().len();
    let first_figure = 2 + sweep.axes().len();
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).with_context(|| format!("cannot read {name}"))? {
        let row = row.with_context(|| format!("cannot read {name}"))?;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let text = |at: usize| row.get_string(at).ok().cloned();
        let point = row.get_long(0).with_context(|| format!("cannot read {name}"))? as u64;
        let trace_hash = text(first_figure + figures);
        let figure = |at: usize| match fields.get(at) {
            Some(Field::Double(value)) => Some(*value),
            _ => None,
        };
        let figures = match trace_hash {
            Some(_) => (first_figure..first_figure + figures).map(figure).collect(),
            None => Vec::new(),
        };
        let error = text(first_figure + sweep.quantities().len() + 2);
        rows.push(Row { point, figures, trace_hash, error });
    }
    rows.sort_by_key(|row| row.point);
    let whole = rows.iter().map(|row| row.point).eq(points.clone());
    if !whole {
        return Err(io::Error::other(format!("{name} does not have all of its points")).into());
    }
    Ok((points, rows))
}
