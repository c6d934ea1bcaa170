//! Compares the outputs of a stage before and after its sources changed.

use super::perturb::up_to;
use super::report::{Moved, Unchecked};
use super::runs::Run;
use super::table::{self, Table};
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use cache::{Artifact, Entry, Store};
use datasets::Date;
use runner_engine::Failure;
use runner_pipeline::Pipeline;
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};

/// The comparison of all outputs for one changed source.
pub struct Comparison<'a> {
    source: &'a str,
    at: Date,
    pub moved: Vec<Moved>,
    pub unchecked: Vec<Unchecked>,
    pub tables: usize,
    pub rows: u64,
}

/// A file of an output in both versions, and its name.
struct Pair<'a> {
    node: usize,
    stage: &'a str,
    what: String,
    from: &'a [String],
}

impl<'a> Comparison<'a> {
    pub fn new(source: &'a str, at: Date) -> Self {
        Self {
            source,
            at,
            moved: Vec::new(),
            unchecked: Vec::new(),
            tables: 0,
            rows: 0,
        }
    }

    /// Compares the outputs of a stage. Stages are given in topological order.
    pub fn stage(
        &mut self,
        pipeline: &Pipeline,
        node: usize,
        (base, base_store): (&Run, &Store),
        (other, other_store): (&Run, &Store),
    ) -> Result<(), Failure> {
        let (Some((_, was)), Some((_, became))) = (base.made.get(&node), other.made.get(&node)) else {
            return Ok(());
        };
        let needed: BTreeSet<usize> = pipeline.nodes[node]
            .needs
            .values()
            .flatten()
            .map(|need| need.node)
            .collect();
        let moved_already = self.moved.iter().filter(|moved| needed.contains(&moved.node));
        let from: BTreeSet<String> = moved_already.map(|moved| moved.stage.clone()).collect();
        let from: Vec<String> = from.into_iter().collect();
        for (output, digest) in was {
            let Some(other) = became.get(output) else { continue };
            let (was, became) = (base_store.artifact(*digest)?, other_store.artifact(*other)?);
            let one_file = was.entries.len() == 1;
            let pair = |path: &str| Pair {
                node,
                stage: &pipeline.nodes[node].id,
                what: if one_file {
                    output.clone()
                } else {
                    format!("{output}/{path}")
                },
                from: &from,
            };
            self.artifacts((&was, base_store), (&became, other_store), &pair)?;
        }
        Ok(())
    }

    fn artifacts<'p>(
        &mut self,
        (was, was_store): (&Artifact, &Store),
        (became, became_store): (&Artifact, &Store),
        pair: &dyn Fn(&str) -> Pair<'p>,
    ) -> Result<(), Failure> {
        let by_path = |artifact: &Artifact| -> BTreeMap<String, Entry> {
            artifact
                .entries
                .iter()
                .map(|entry| (entry.path.clone(), entry.clone()))
                .collect()
        };
        let order = [was, became].map(|artifact| artifact.entries.iter().map(|entry| &entry.path).collect::<Vec<_>>());
        let (was, became) = (by_path(was), by_path(became));
        let mut unmatched: Unmatched<'_> = Default::default();
        // Tables without dates are compared after the other tables of their directory are read.
        let mut waiting = Vec::new();
        let mut spans: Spans<'_> = BTreeMap::new();
        let paths: BTreeSet<&String> = was.keys().chain(became.keys()).collect();
        for path in paths {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let read = |entry: Option<&Entry>, store| match entry {
                Some(entry) => table::read(store, entry),
                None => Ok(None),
            };
            let (a, b) = (was.get(path), became.get(path));
            if let (Some(a), Some(b)) = (a, b)
                && a.blob == b.blob
            {
                self.tables += usize::from(table::Form::of(path).is_some());
                if let Some(Table { dates: Some(dates), .. }) = read(Some(a), was_store)? {
                    self.rows += dates.iter().filter(|date| **date <= self.at).count() as u64;
                    note(&mut spans, folder, &dates);
                }
                continue;
            }
            match (read(a, was_store)?, read(b, became_store)?) {
                (Some(was), Some(became)) => match (&was.dates, &became.dates) {
                    (Some(a), Some(b)) => {
                        note(&mut spans, folder, a);
                        note(&mut spans, folder, b);
                        self.dated(&pair(path), (&was.batch, a), (&became.batch, b))?;
                    }
                    _ => waiting.push((folder, pair(path), was.batch, became.batch)),
                },
                (Some(only), None) | (None, Some(only)) if only.dates.is_some() => {
                    let dates = only.dates.unwrap_or_default();
                    note(&mut spans, folder, &dates);
                    let side = usize::from(a.is_none());
                    let place = order[side].iter().position(|other| *other == path).unwrap_or_default();
                    unmatched[side].insert(place, (path, only.batch, dates));
                }
                _ => self.leave(&pair(path), "holds no table"),
            }
        }
        self.unmatched(unmatched, pair)?;
        for (folder, pair, was, became) in waiting {
            match spans.get(folder) {
                // All other tables of the directory end by the date, so this one does too.
                Some((_, last)) if *last <= self.at => {
                    let dates = vec![*last; was.num_rows()];
                    self.dated(&pair, (&was, &dates), (&became, &vec![*last; became.num_rows()]))?;
                }
                // All are later than the date.
                Some((first, _)) if *first > self.at => {}
                _ => self.leave(&pair, "has no dates"),
            }
        }
        Ok(())
    }

    /// Compares the tables whose names are in one version only, those of one schema as one table: a symbol that first appears after the date
    /// changes the names of partitions, but not the order of the earlier rows.
    fn unmatched<'p>(&mut self, tables: Unmatched<'_>, pair: &dyn Fn(&str) -> Pair<'p>) -> Result<(), Failure> {
        let mut schemas: Vec<(&str, SchemaRef)> = Vec::new();
        for (path, batch, _) in tables.iter().flat_map(BTreeMap::values) {
            if schemas.iter().all(|(_, schema)| *schema != batch.schema()) {
                schemas.push((path, batch.schema()));
            }
        }
        for (path, schema) in schemas {
            let whole = |side: usize| -> Result<(RecordBatch, Vec<Date>), Failure> {
                let same = tables[side].values().filter(|(_, batch, _)| batch.schema() == schema);
                let (batches, dates): (Vec<&RecordBatch>, Vec<&Vec<Date>>) =
                    same.map(|(_, batch, dates)| (batch, dates)).unzip();
                let batch = arrow::compute::concat_batches(&schema, batches).map_err(StageError::from)?;
                Ok((batch, dates.into_iter().flatten().copied().collect()))
            };
            let ((was, was_dates), (became, became_dates)) = (whole(0)?, whole(1)?);
            self.dated(&pair(path), (&was, &was_dates), (&became, &became_dates))?;
        }
        Ok(())
    }

    fn leave(&mut self, pair: &Pair<'_>, reason: &str) {
        self.unchecked.push(Unchecked {
            source: self.source.to_owned(),
            stage: pair.stage.to_owned(),
            what: pair.what.clone(),
            reason: format!("{reason}, and differs"),
        });
    }

    /// Compares the rows up to the date.
    fn dated(
        &mut self,
        pair: &Pair<'_>,
        (was, was_dates): (&RecordBatch, &[Date]),
        (became, became_dates): (&RecordBatch, &[Date]),
    ) -> Result<(), Failure> {
        self.tables += 1;
        let rows: Vec<usize> = (0..was_dates.len()).filter(|&i| was_dates[i] <= self.at).collect();
        let was = up_to(was, was_dates, self.at)?;
        let became = up_to(became, became_dates, self.at)?;
        self.rows += was.num_rows() as u64;
        let found = |column: &str, row: usize, was: String, became: String, moved: usize, about: String| Moved {
            source: self.source.to_owned(),
            stage: pair.stage.to_owned(),
            node: pair.node,
            output: pair.what.clone(),
            column: column.to_owned(),
            row: rows.get(row).copied().unwrap_or(row),
            date: rows.get(row).map(|&i| was_dates[i]),
            about,
            was,
            became,
            rows: moved,
            from: pair.from.to_vec(),
        };
        if was.num_rows() != became.num_rows() {
            let shared = was.num_rows().min(became.num_rows());
            let (a, b) = (was.slice(0, shared), became.slice(0, shared));
            let row = (0..shared).find(|&i| a.slice(i, 1) != b.slice(i, 1)).unwrap_or(shared);
            let counts = (
                format!("{} rows", was.num_rows()),
                format!("{} rows", became.num_rows()),
            );
            let moved = was.num_rows().abs_diff(became.num_rows());
            let moved = found("(rows)", row, counts.0, counts.1, moved, about(&was, row, None));
            self.moved.push(moved);
            return Ok(());
        }
        let schema = was.schema();
        let mut all = Vec::new();
        for (i, field) in schema.fields().iter().enumerate() {
            let a = was.column(i);
            let Some(b) = became.column_by_name(field.name()) else {
                let gone = found(
                    field.name(),
                    0,
                    "a column".to_owned(),
                    "none".to_owned(),
                    was.num_rows(),
                    String::new(),
                );
                all.push(gone);
                continue;
            };
            if a.to_data() == b.to_data() {
                continue;
            }
            let differs = |row: &usize| a.slice(*row, 1).to_data() != b.slice(*row, 1).to_data();
            let rows: Vec<usize> = (0..a.len()).filter(differs).collect();
            if let Some(&first) = rows.first() {
                let about = about(&was, first, Some(i));
                all.push(found(
                    field.name(),
                    first,
                    cell(a, first),
                    cell(b, first),
                    rows.len(),
                    about,
                ));
            }
        }
        self.moved.extend(all);
        Ok(())
    }
}

/// The tables with dates whose paths are in one version only, by version and position in the artifact.
type Unmatched<'a> = [BTreeMap<usize, (&'a String, RecordBatch, Vec<Date>)>; 2];

/// The first and the last date of the tables in each directory.
type Spans<'a> = BTreeMap<&'a str, (Date, Date)>;

fn note<'a>(spans: &mut Spans<'a>, folder: &'a str, dates: &[Date]) {
    if let Some((&first, &last)) = dates.iter().min().zip(dates.iter().max()) {
        let span = spans.entry(folder).or_insert((first, last));
        *span = (span.0.min(first), span.1.max(last));
    }
}

fn cell(column: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("null");
    let text = ArrayFormatter::try_new(column.as_ref(), &options)
        .ok()
        .and_then(|formatter| formatter.value(row).try_to_string().ok())
        .unwrap_or_else(|| "?".to_owned());
    if text.chars().count() > 40 {
        return text.chars().take(39).chain(['…']).collect();
    }
    text
}

/// The texts and dates of a row before a column, which identify it.
fn about(batch: &RecordBatch, row: usize, column: Option<usize>) -> String {
    use arrow::datatypes::DataType;
    if row >= batch.num_rows() {
        return String::new();
    }
    let names = ["symbol", "tic", "ticker", "expiry", "root", "strike", "call"];
    let schema = batch.schema();
    let cells: Vec<String> = schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(i, field)| Some(*i) != column && names.contains(&field.name().as_str()))
        .map(|(i, field)| match field.data_type() {
            DataType::Boolean if cell(batch.column(i), row) == "true" => "call".to_owned(),
            DataType::Boolean => "put".to_owned(),
            _ => cell(batch.column(i), row),
        })
        .collect();
    cells.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Date32Array, Float64Array, StringArray};
    use datasets::schema::{Column, Type};
    use stages_core::dataset::{self, Period};
    use stages_core::{PortType, table as tables};
    use std::sync::Arc;

    const fn column(name: &'static str, ty: Type) -> Column {
        Column {
            name,
            ty,
            nullable: false,
            doc: "",
        }
    }

    const COLUMNS: &[Column] = &[
        column("symbol", Type::Text),
        column("date", Type::Date),
        column("close", Type::Float),
    ];

    fn set(store: &Store, rows: &[(&str, i32, f64)]) -> Artifact {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.2))),
        ];
        let batch = RecordBatch::try_new(tables::schema(COLUMNS), columns).unwrap();
        let partitions = dataset::partition_symbols(store, &batch, Period::Year).unwrap();
        let digest = dataset::write(store, PortType::Bars, serde_json::Value::Null, partitions).unwrap();
        store.artifact(digest).unwrap()
    }

    /// A symbol that appears only after the date changes the names of partitions.
    #[test]
    fn names_of_partitions_are_no_violation() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let at = Date(17_920);
        let rows = [
            ("A", 17_600, 1.0),
            ("A", 17_910, 2.0),
            ("B", 17_910, 3.0),
            ("C", 17_930, 4.0),
        ];
        let was = set(&store, &rows);
        let compare = |became: &Artifact| {
            let mut comparison = Comparison::new("bars", at);
            let pair = |path: &str| Pair {
                node: 0,
                stage: "bars",
                what: path.to_owned(),
                from: &[],
            };
            comparison.artifacts((&was, &store), (became, &store), &pair).unwrap();
            let moved: Vec<_> = comparison.moved.iter().map(|moved| moved.column.clone()).collect();
            (moved, comparison.rows)
        };
        let without = set(&store, &rows[..3]);
        assert_ne!(was.entries[1].path, without.entries[1].path);
        assert_eq!(compare(&without), (Vec::new(), 3));
        let other = set(&store, &[rows[0], ("A", 17_910, 2.5), rows[2]]);
        assert_eq!(compare(&other).0, ["close"]);
        let fewer = set(&store, &rows[..2]);
        assert_eq!(compare(&fewer).0, ["(rows)"]);
    }
}
