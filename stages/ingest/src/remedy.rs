//! The settings that a user can write for a file whose layout is not recognised.

use crate::column_names::is;
use crate::form::Looked;
use crate::propose::{names_of, scalar};
use crate::unpack::{Format, Packed};
use crate::value::is_missing;
use datasets::layout::{self, Form, Table};
use serde_json::Value;
use stages_table_file::text::{fields, separator, text_of};

/// The most lines above a header.
const ABOVE: usize = 30;

/// The `layout:` that reads a file of bars, rates or a chain which no layout fits, where its form shows one;
/// in a sentence.
pub(crate) fn of(table: Table, packed: &Packed, looked: &Looked<'_>) -> Option<String> {
    match packed.format {
        Format::Csv => of_text(table, packed),
        Format::Json => of_json(looked.document()?),
        Format::Parquet => None,
    }
}

fn of_text(table: Table, packed: &Packed) -> Option<String> {
    let text = String::from_utf8_lossy(text_of(&packed.bytes));
    let lines: Vec<&str> = text.lines().take(ABOVE + 2).collect();
    let cut = |line: &str| -> Vec<String> {
        let names = fields(line, separator(line)).into_iter();
        names.map(|name| name.trim().to_owned()).collect()
    };
    for (above, line) in lines.iter().enumerate().skip(1) {
        let names = cut(line);
        // The header is the line with the most fields of those up to it.
        if lines[..above].iter().any(|other| cut(other).len() >= names.len()) {
            continue;
        }
        let is_plain = |form: &Form| *form == Form::default();
        let found = layout::recognise(table, &packed.path, |form| is_plain(form).then(|| names.clone()));
        if let Ok(found) = found {
            let name = &found.layout.name;
            return Some(format!(
                "the header is on line {}: `layout: {{ like: {name}, skip_lines: {above} }}`",
                above + 1
            ));
        }
    }
    if table != Table::Bars {
        return None;
    }
    let header = cut(lines.first()?);
    let row = cut(lines.get(1)?);
    if header.first()?.starts_with(|c: char| c.is_ascii_digit()) {
        let names = names_of(&header);
        let is_known = |name: &String| name != "time" && !name.starts_with("column_");
        if !names.iter().all(is_known) || !names.iter().any(|name| name == "close") {
            return None;
        }
        let names = names.join(", ");
        let columns = to_themselves(&names);
        return Some(format!(
            "the first line is one of data: with these columns, `layout: {{ header: [{names}], columns: {{ \
            {columns} }} }}`"
        ));
    }
    let find = |ours: &str| header.iter().find(|name| is(ours, name));
    if let (Some(date), Some(close)) = (find("date"), find("close")) {
        let others = ["symbol", "open", "high", "low", "volume"];
        let mut columns = vec![format!("date: {}", scalar(date)), format!("close: {}", scalar(close))];
        let found = others
            .iter()
            .filter_map(|ours| Some(format!("{ours}: {}", scalar(find(ours)?))));
        columns.extend(found);
        return Some(format!(
            "by their names, `layout: {{ columns: {{ {} }} }}`",
            columns.join(", ")
        ));
    }
    let is_number = |text: &String| is_missing(text) || text.parse::<f64>().is_ok();
    let (date, first) = (header.first()?, row.first()?);
    let is_date = date.is_empty() || is("date", date);
    if is_date
        && header.len() > 1
        && row.len() == header.len()
        && row[1..].iter().all(is_number)
        && !is_number(first)
    {
        let date = match date.as_str() {
            "" => return Some("a wide table: name its column of dates in the file".to_owned()),
            date => scalar(date),
        };
        let has = |words: &'static [&'static str]| {
            move |name: &&String| words.iter().any(|word| name.to_lowercase().contains(word))
        };
        let price = header[1..].iter().find(has(&["close", "price", "last", "settle"]));
        if let Some(price) = price {
            let price = scalar(price);
            return Some(format!(
                "by their names, `layout: {{ columns: {{ date: {date}, close: {price} }} }}`"
            ));
        }
        return Some(format!(
            "if every other column is a symbol's, `layout: {{ columns: {{ date: {date}, close: \"*\" }} }}`"
        ));
    }
    None
}

fn of_json(document: &Value) -> Option<String> {
    if let Some(row) = document.as_array().and_then(|rows| rows.first()?.as_array()) {
        let names = match row.len() {
            2 => "date, close",
            5 => "date, open, high, low, close",
            _ => "date, open, high, low, close, volume",
        };
        let more: Vec<String> = (7..=row.len()).map(|n| format!(", column{n}")).collect();
        let more = more.concat();
        let columns = to_themselves(names);
        return Some(format!(
            "the rows are lists: with these columns, `layout: {{ json: {{ rows: \"\" }}, header: [{names}{more}], \
            columns: {{ {columns} }} }}`"
        ));
    }
    let columns = document.as_object()?;
    let is_column = |column: &Value| column.is_object() || column.is_array();
    let is_by_column = !columns.is_empty() && columns.values().all(is_column);
    is_by_column.then(|| {
        "the document holds columns and not rows: pandas writes rows with `to_json(…, \
            orient=\"records\")`"
            .to_owned()
    })
}

/// Our columns, each mapped to a column of its own name.
fn to_themselves(names: &str) -> String {
    let pairs = names.split(", ").map(|name| format!("{name}: {name}"));
    pairs.collect::<Vec<_>>().join(", ")
}
