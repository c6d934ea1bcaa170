//! A table of an artifact for reading: the rows that meet conditions, in the order of a column, a page at a
//! time, and the distribution of each column.

use crate::preview::{first_batch, type_name};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, Float64Array, RecordBatch};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use cache::{Entry, Store};
use datasets::Date;
use runner_engine::Failure;
use runner_pipeline::suggest;
use stages_core::table;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// The number of bars of a histogram.
pub const BINS: usize = 24;

/// The number of distinct values up to which they are counted.
pub const MOST_DISTINCT: usize = 10_000;

/// The number of the most frequent values that are named.
const TOP: usize = 4;

/// The operators of conditions, longer ones before those that they begin with.
const OPERATORS: [&str; 8] = ["==", "!=", "<=", ">=", "<", ">", "=", "~"];

/// A condition on a column: `close > 100`, `symbol = AAPL`, `symbol ~ AA`, `volume = null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    column: String,
    operator: &'static str,
    value: String,
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// If the text has no operator, or nothing before it.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::usage(format!("`{text}` is not a condition"))
                .hint("write COLUMN, one of = != < <= > >= ~, and a value: `close > 100`, `symbol ~ AA`")
        };
        let at = text.find(['=', '!', '<', '>', '~']).ok_or_else(wrong)?;
        let operator = OPERATORS
            .into_iter()
            .find(|name| text[at..].starts_with(name))
            .ok_or_else(wrong)?;
        let column = text[..at].trim().to_owned();
        let value = text[at + operator.len()..].trim().to_owned();
        match column.is_empty() {
            true => Err(wrong()),
            false => Ok(Self {
                column,
                operator,
                value,
            }),
        }
    }

    fn holds(&self, order: Option<std::cmp::Ordering>) -> bool {
        let Some(order) = order else { return false };
        match self.operator {
            "=" | "==" => order.is_eq(),
            "!=" => order.is_ne(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            ">=" => order.is_ge(),
            _ => false,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.column, self.operator, self.value)
    }
}

/// The part of a table that is wanted.
#[derive(Clone, Debug, Default)]
pub struct TableQuery {
    /// The conditions that rows meet.
    pub conditions: Vec<Condition>,
    /// The column that orders them; true for descending order.
    pub sort: Option<(String, bool)>,
    /// The number of rows before the first one.
    pub from: usize,
    /// The number of rows.
    pub rows: usize,
}

/// A part of a table.
#[derive(Debug)]
pub struct TableView {
    /// The number of rows of the table.
    pub total: usize,
    /// The number of rows that meet the conditions.
    pub matching: usize,
    /// The columns, with the distribution of the rows that meet the conditions.
    pub columns: Vec<ColumnView>,
    /// The wanted rows, as text in full precision; `None` for nulls.
    pub rows: Vec<Vec<Option<String>>>,
}

/// A column of a table.
#[derive(Debug)]
pub struct ColumnView {
    /// The column's name.
    pub name: String,
    /// The column's type in a word.
    pub ty: String,
    /// True if its values are numbers.
    pub is_number: bool,
    /// The number of nulls, those that are not numbers included.
    pub nulls: usize,
    /// The number of distinct values; `None` for more than [`MOST_DISTINCT`].
    pub distinct: Option<usize>,
    /// The distribution of the other values.
    pub values: Values,
}

/// The distribution of the values of a column.
#[derive(Debug)]
pub enum Values {
    /// Numbers or dates: their range as text, the mean of numbers, and counts in [`BINS`] bins of equal
    /// width.
    Numbers {
        /// The smallest value.
        low: String,
        /// The largest value.
        high: String,
        /// The mean, of numbers.
        mean: Option<f64>,
        /// The counts.
        bins: Vec<usize>,
    },
    /// Texts: the most frequent ones with their counts.
    Texts(Vec<(String, usize)>),
    /// No values.
    Nothing,
}

/// A column with what orders and compares it.
struct Column<'a> {
    name: &'a str,
    ty: &'a DataType,
    array: &'a ArrayRef,
    /// The values as numbers, of numbers and times.
    numbers: Option<Float64Array>,
    texts: Option<ArrayFormatter<'a>>,
}

impl Column<'_> {
    fn text(&self, row: usize) -> Option<String> {
        let text = self
            .texts
            .as_ref()
            .and_then(|texts| texts.value(row).try_to_string().ok());
        (!self.array.is_null(row)).then(|| text.unwrap_or_else(|| "?".to_owned()))
    }

    fn number(&self, row: usize) -> Option<f64> {
        let numbers = self.numbers.as_ref()?;
        (!numbers.is_null(row))
            .then(|| numbers.value(row))
            .filter(|value| !value.is_nan())
    }

    /// The rows of some that meet a condition; an error if its value is not of the column's type.
    fn meet(&self, condition: &Condition, rows: &[u32]) -> Result<Vec<u32>, Failure> {
        let wanted = condition.value.as_str();
        let number = match self.ty {
            DataType::Date32 => wanted.parse::<Date>().ok().map(|date| f64::from(date.0)),
            DataType::Timestamp(..) => None,
            _ => wanted.parse::<f64>().ok(),
        };
        let is_null = matches!(condition.operator, "=" | "==" | "!=") && wanted == "null";
        let is_of_type = match self.ty {
            DataType::Timestamp(..) => wanted.get(..10).is_some_and(|day| day.parse::<Date>().is_ok()),
            _ => number.is_some(),
        };
        if self.numbers.is_some() && condition.operator != "~" && !is_null && !is_of_type {
            let example = match self.ty {
                DataType::Date32 => "2024-01-31",
                DataType::Timestamp(..) => "2024-01-31T15:30",
                _ => "100",
            };
            return Err(Failure::usage(format!(
                "`{wanted}` cannot be compared with the column `{}` of the type {}",
                self.name,
                type_name(self.ty)
            ))
            .hint(format!(
                "write it like `{} {} {example}`",
                self.name, condition.operator
            )));
        }
        let lower = wanted.to_lowercase();
        let fits = |row: usize| match (condition.operator, number) {
            ("=" | "==", _) if wanted == "null" => self.is_null(row),
            ("!=", _) if wanted == "null" => !self.is_null(row),
            ("~", _) => self.text(row).is_some_and(|text| text.to_lowercase().contains(&lower)),
            (_, Some(wanted)) if self.numbers.is_some() => {
                condition.holds(self.number(row).and_then(|value| value.partial_cmp(&wanted)))
            }
            // Times are spelt so that their order is that of the texts.
            _ => condition.holds(self.text(row).map(|text| text.as_str().cmp(wanted))),
        };
        Ok(rows.iter().copied().filter(|row| fits(*row as usize)).collect())
    }

    fn is_null(&self, row: usize) -> bool {
        match &self.numbers {
            Some(_) => self.number(row).is_none(),
            None => self.array.is_null(row),
        }
    }

    /// Orders rows by the column's values, nulls last. Equal ones keep their order.
    fn order(&self, rows: &mut [u32], descending: bool) {
        fn by<T>(
            rows: &mut [u32],
            key: impl Fn(usize) -> Option<T>,
            descending: bool,
            order: fn(&T, &T) -> std::cmp::Ordering,
        ) {
            let mut keyed: Vec<(Option<T>, u32)> =
                rows.iter().map(|row| (key(*row as usize), *row)).collect();
            keyed.sort_by(|(left, _), (right, _)| match (left, right) {
                (Some(left), Some(right)) if descending => order(right, left),
                (Some(left), Some(right)) => order(left, right),
                (left, right) => right.is_some().cmp(&left.is_some()),
            });
            for (place, (_, row)) in rows.iter_mut().zip(keyed) {
                *place = row;
            }
        }
        match self.numbers {
            Some(_) => by(rows, |row| self.number(row), descending, f64::total_cmp),
            None => by(rows, |row| self.text(row), descending, String::cmp),
        }
    }

    fn view(&self, rows: &[u32]) -> ColumnView {
        let nulls = rows.iter().filter(|row| self.is_null(**row as usize)).count();
        let (distinct, values) = match self.numbers {
            Some(_) => self.numbers_of(rows),
            None => self.texts_of(rows),
        };
        ColumnView {
            name: self.name.to_owned(),
            ty: type_name(self.ty),
            is_number: self.ty.is_numeric(),
            nulls,
            distinct,
            values,
        }
    }

    fn numbers_of(&self, rows: &[u32]) -> (Option<usize>, Values) {
        let found = || {
            rows.iter()
                .filter_map(|row| Some((*row as usize, self.number(*row as usize)?)))
        };
        let finite = || found().filter(|(_, value)| value.is_finite());
        let low = finite().min_by(|a, b| a.1.total_cmp(&b.1));
        let (Some((first, low)), Some((last, high))) = (low, finite().max_by(|a, b| a.1.total_cmp(&b.1)))
        else {
            return (Some(0), Values::Nothing);
        };
        let mut seen: HashSet<u64> = HashSet::new();
        let (mut bins, mut sum, mut count) = (vec![0; BINS], 0.0, 0.0);
        for (_, value) in finite() {
            if seen.len() <= MOST_DISTINCT {
                seen.insert(value.to_bits());
            }
            let share = if high > low { (value - low) / (high - low) } else { 0.0 };
            bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
            sum += value;
            count += 1.0;
        }
        let values = Values::Numbers {
            low: self.text(first).unwrap_or_default(),
            high: self.text(last).unwrap_or_default(),
            mean: self.ty.is_numeric().then_some(sum / count),
            bins,
        };
        ((seen.len() <= MOST_DISTINCT).then_some(seen.len()), values)
    }

    fn texts_of(&self, rows: &[u32]) -> (Option<usize>, Values) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for text in rows.iter().filter_map(|row| self.text(*row as usize)) {
            if let Some(count) = counts.get_mut(&text) {
                *count += 1;
            } else if counts.len() <= MOST_DISTINCT {
                counts.insert(text, 1);
            }
        }
        let distinct = (counts.len() <= MOST_DISTINCT).then_some(counts.len());
        let mut top: Vec<(String, usize)> = counts.into_iter().collect();
        top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        top.truncate(TOP);
        let values = if top.is_empty() {
            Values::Nothing
        } else {
            Values::Texts(top)
        };
        (distinct, values)
    }
}

/// The values of a column as numbers: of numbers, dates and times; `None` for others.
fn numbers(array: &ArrayRef) -> Option<Float64Array> {
    let plain = match array.data_type() {
        DataType::Date32 => cast(&cast(array, &DataType::Int32).ok()?, &DataType::Int64).ok()?,
        DataType::Timestamp(..) => cast(array, &DataType::Int64).ok()?,
        ty if ty.is_numeric() => array.clone(),
        _ => return None,
    };
    match plain.as_primitive_opt::<Int64Type>() {
        Some(whole) => Some(whole.unary::<_, Float64Type>(|value| value as f64)),
        None => cast(&plain, &DataType::Float64)
            .ok()?
            .as_primitive_opt::<Float64Type>()
            .cloned(),
    }
}

/// Reads the table in a file of an artifact; `None` if the file has none.
///
/// # Errors
/// If the file is not in the store, or damaged.
pub fn read_table(store: &Store, entry: &Entry) -> Result<Option<RecordBatch>, Failure> {
    match entry.path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("parquet") => Ok(Some(table::from_parquet(store.blob(entry.blob)?)?)),
        Some("arrow") => first_batch(store, entry),
        _ => Ok(None),
    }
}

/// A part of a table.
///
/// # Errors
/// If a condition or the order names a column that the table lacks, or a condition's value is not of its
/// column's type.
pub fn table_view(batch: &RecordBatch, query: &TableQuery) -> Result<TableView, Failure> {
    let shown: Vec<ArrayRef> = batch.columns().iter().map(table::displayed).collect();
    let options = FormatOptions::default();
    let schema = batch.schema();
    let columns: Vec<Column<'_>> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .zip(&shown)
        .map(|((field, array), shown)| Column {
            name: field.name(),
            ty: field.data_type(),
            array,
            numbers: numbers(array),
            texts: ArrayFormatter::try_new(shown.as_ref(), &options).ok(),
        })
        .collect();
    let named = |name: &str| {
        columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let hint = suggest(name, "columns", columns.iter().map(|column| column.name));
            Failure::usage(format!("the table has no column `{name}`")).hint(hint)
        })
    };
    let mut rows: Vec<u32> = (0..batch.num_rows() as u32).collect();
    for condition in &query.conditions {
        rows = named(&condition.column)?.meet(condition, &rows)?;
    }
    if let Some((name, descending)) = &query.sort {
        named(name)?.order(&mut rows, *descending);
    }
    let wanted = rows.iter().skip(query.from).take(query.rows);
    Ok(TableView {
        total: batch.num_rows(),
        matching: rows.len(),
        rows: wanted
            .map(|row| columns.iter().map(|column| column.text(*row as usize)).collect())
            .collect(),
        columns: columns.iter().map(|column| column.view(&rows)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Date32Array, StringArray};
    use std::sync::Arc;

    fn batch() -> RecordBatch {
        let columns: [(&str, ArrayRef); 3] = [
            ("symbol", Arc::new(StringArray::from(vec!["BBB", "AAA", "BBB", "CCC"]))),
            (
                "date",
                Arc::new(Date32Array::from(vec![18_000, 18_001, 18_002, 18_003])),
            ),
            (
                "close",
                Arc::new(Float64Array::from(vec![Some(3.0), Some(1.5), None, Some(f64::NAN)])),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn view(conditions: &[&str], sort: Option<(&str, bool)>) -> Vec<String> {
        let query = TableQuery {
            conditions: conditions.iter().map(|text| Condition::parse(text).unwrap()).collect(),
            sort: sort.map(|(name, descending)| (name.to_owned(), descending)),
            from: 0,
            rows: 10,
        };
        let rows = table_view(&batch(), &query).unwrap().rows;
        rows.iter().map(|row| row[1].clone().unwrap()).collect()
    }

    #[test]
    fn rows_are_filtered_and_ordered() {
        let days = ["2019-04-14", "2019-04-15", "2019-04-16", "2019-04-17"];
        assert_eq!(view(&["symbol = BBB"], None), [days[0], days[2]]);
        assert_eq!(view(&["symbol ~ b", "close >= 3"], None), [days[0]]);
        assert_eq!(view(&["date > 2019-04-15"], None), days[2..]);
        assert_eq!(view(&["close = null"], None), days[2..]);
        // Nulls come last, whatever the direction.
        assert_eq!(view(&[], Some(("close", false))), [days[1], days[0], days[2], days[3]]);
        assert_eq!(view(&[], Some(("close", true))), [days[0], days[1], days[2], days[3]]);
        assert_eq!(view(&[], Some(("symbol", true))), [days[3], days[0], days[2], days[1]]);
        for (wrong, hint) in [
            ("clse > 1", "`close`"),
            ("close < abc", "`close < 100`"),
            ("date > 2018-13-01", "`date > 2024-01-31`"),
            ("close < null", "`close < 100`"),
        ] {
            let query = TableQuery {
                conditions: vec![Condition::parse(wrong).unwrap()],
                ..TableQuery::default()
            };
            let failure = table_view(&batch(), &query).unwrap_err();
            assert!(failure.hint.unwrap().contains(hint), "{}", failure.message);
        }
        assert_eq!(view(&["close ~ 1.5"], None), [days[1]]);
        assert!(Condition::parse("close").is_err() && Condition::parse("> 3").is_err());
    }

    #[test]
    fn columns_have_their_distribution() {
        let query = TableQuery {
            rows: 1,
            from: 1,
            ..TableQuery::default()
        };
        let seen = table_view(&batch(), &query).unwrap();
        assert_eq!((seen.total, seen.matching, seen.rows.len()), (4, 4, 1));
        let [symbol, date, close] = seen.columns.as_slice() else {
            panic!("{seen:?}")
        };
        assert!(
            matches!(&symbol.values, Values::Texts(top) if top[0] == ("BBB".to_owned(), 2)),
            "{symbol:?}"
        );
        assert_eq!((symbol.distinct, symbol.nulls, close.nulls), (Some(3), 0, 2));
        let Values::Numbers { low, high, mean, bins } = &close.values else {
            panic!("{close:?}")
        };
        assert_eq!((low.as_str(), high.as_str(), *mean), ("1.5", "3.0", Some(2.25)));
        assert_eq!((bins[0], bins[BINS - 1], bins.iter().sum::<usize>()), (1, 1, 2));
        assert!(
            matches!(&date.values, Values::Numbers { low, mean: None, .. } if low == "2019-04-14"),
            "{date:?}"
        );
    }
}
