//! An artifact: its table with filters, an order and the distribution of each column, its files, and its data
//! quality.

use crate::layout::{Page, encode, link, run_address, stage_address};
use crate::parts::{Head, Line, Order, chip, folded, grid, option, pager};
use crate::site::Site;
use cache::{Artifact, Entry, Store};
use runner_engine::{Failure, text};
use runner_history as history;
use runner_report::figures::{Unit, shown as figure};
use runner_report::html::{escape, escape_content, table};
use runner_report::{
    BINS, ColumnView, Condition, Preview, TableQuery, TableView, Values, preview, quality_table, read_table,
    table_view,
};

/// The number of rows of a page.
const ROWS: usize = 50;

/// The number of files that are listed.
const FILES: usize = 200;

/// The part of an artifact that an address names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// The artifact's own address.
    address: String,
    /// The path of the file; empty for the first one with a table.
    file: String,
    /// The conditions, as written.
    conditions: Vec<String>,
    /// The column by which rows are ordered, with `-` in front for descending order; empty for none.
    sort: String,
    /// The number of pages before this one.
    page: u32,
}

impl Part {
    /// Reads the query of an address.
    pub(crate) fn read(query: &str) -> Self {
        let mut part = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = value.trim().to_owned();
            match &*key {
                "file" => part.file = value,
                "f" if !value.is_empty() => part.conditions.push(value),
                "sort" => part.sort = value,
                "page" => part.page = value.parse().unwrap_or(0),
                _ => {}
            }
        }
        part
    }

    /// The address of this part.
    fn address(&self) -> String {
        let mut parts = Vec::new();
        for (key, value) in [("file", &self.file), ("sort", &self.sort)] {
            if !value.is_empty() {
                parts.push(format!("{key}={}", encode(value)));
            }
        }
        parts.extend(self.conditions.iter().map(|text| format!("f={}", encode(text))));
        if self.page > 0 {
            parts.push(format!("page={}", self.page));
        }
        match parts.is_empty() {
            true => self.address.clone(),
            false => format!("{}?{}", self.address, parts.join("&")),
        }
    }

    /// The first page of the same part with something else changed.
    fn with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut other = Self {
            page: 0,
            ..self.clone()
        };
        change(&mut other);
        other.address()
    }
}

pub(crate) fn artifact(
    site: &Site,
    id: &str,
    stage: &str,
    output: &str,
    mut part: Part,
) -> Result<Page, Failure> {
    let run = history::load(&site.runs, id)?;
    let missing = || {
        Failure::usage(format!("run {id} has no output `{stage}.{output}`"))
            .hint("open the run, and follow its links")
    };
    let run_stage = run.stage(stage).ok_or_else(missing)?;
    let digest = run_stage.outputs.get(output).ok_or_else(missing)?;
    let store = site.store()?;
    let artifact = store.artifact(*digest)?;
    let mut body = format!(
        "<p class=\"crumbs\">{} / {} / {} / {}</p><h1>{}.{}</h1><p class=\"dim\">{} · <code>{}</code></p>\n",
        link("/runs", "Runs"),
        link(&run_address(id), &format!("{} {id}", run.pipeline)),
        link(&stage_address(id, stage), stage),
        escape(output),
        escape(stage),
        escape(output),
        size(&artifact),
        escape(&digest.to_hex())
    );
    part.address = format!("{}/outputs/{}", stage_address(id, stage), encode(output));
    body.push_str(&match tabular(&artifact, &part) {
        Some(entry) => rows(&store, &artifact, entry, &part)?,
        None => content(&store, &artifact, ROWS),
    });
    body.push_str(&quality(&artifact));
    let rows: Vec<Vec<String>> = artifact
        .entries
        .iter()
        .take(FILES)
        .map(|entry| vec![escape(&entry.path), text::size(entry.size), entry.blob.short()])
        .collect();
    let mut files = table(&["file", "size", "blob"], &rows);
    if artifact.entries.len() > FILES {
        files.push_str(&format!(
            "<p class=\"dim\">and {} more</p>\n",
            artifact.entries.len() - FILES
        ));
    }
    let summary = format!("Files, {}", artifact.entries.len());
    body.push_str(&folded("files", &summary, &files));
    Ok(Page::new(format!("{stage}.{output}"), "/runs", body))
}

fn is_table(entry: &Entry) -> bool {
    entry.path.ends_with(".parquet") || entry.path.ends_with(".arrow")
}

/// The file of a table that is wanted, or else the first.
fn tabular<'a>(artifact: &'a Artifact, part: &Part) -> Option<&'a Entry> {
    let mut tables = artifact.entries.iter().filter(|entry| is_table(entry));
    match part.file.is_empty() {
        true => tables.next(),
        false => tables.find(|entry| entry.path == part.file),
    }
}

/// The table in a file: a choice of files, the distribution of each column, and a page of the rows that meet
/// the conditions.
fn rows(store: &Store, artifact: &Artifact, entry: &Entry, part: &Part) -> Result<String, Failure> {
    let Some(batch) = read_table(store, entry)? else {
        return Ok(content(store, artifact, ROWS));
    };
    let (name, descending) = match part.sort.strip_prefix('-') {
        Some(name) => (name, true),
        None => (part.sort.as_str(), false),
    };
    let conditions: Result<Vec<Condition>, Failure> =
        part.conditions.iter().map(|text| Condition::parse(text)).collect();
    let skipped = part.page as usize * ROWS;
    let view = table_view(
        &batch,
        &TableQuery {
            conditions: conditions?,
            sort: (!name.is_empty()).then(|| (name.to_owned(), descending)),
            from: skipped,
            rows: ROWS,
        },
    )?;
    let mut out = files(artifact, entry, part);
    out.push_str(&filters(part, &view));
    out.push_str(
        &folded("columns", &format!("Columns, {}", view.columns.len()), &columns(&view)).replacen(
            "<details",
            "<details open",
            1,
        ),
    );
    let head: Vec<Head> = view
        .columns
        .iter()
        .map(|column| {
            let order = match (name == column.name, descending) {
                (false, _) => None,
                (true, true) => Some(Order::Descending),
                (true, false) => Some(Order::Ascending),
            };
            let next = match order {
                Some(Order::Ascending) => format!("-{}", column.name),
                _ => column.name.clone(),
            };
            let head = if column.is_number {
                Head::number(&column.name)
            } else {
                Head::text(&column.name)
            };
            head.sorted(part.with(|other| other.sort = next), order)
        })
        .collect();
    let cell = |cell: &Option<String>| cell.as_deref().map_or_else(String::new, escape);
    let lines: Vec<Line> = view
        .rows
        .iter()
        .map(|row| Line::Row(row.iter().map(cell).collect()))
        .collect();
    out.push_str(&grid("rows", &head, &lines));
    let last = skipped + view.rows.len();
    let range = match view.rows.is_empty() {
        true => String::from("no rows"),
        false => format!(
            "rows {} to {} of {}",
            skipped + 1,
            last,
            figure(view.matching as f64, Unit::Count)
        ),
    };
    out.push_str(&format!("<p class=\"dim\">{range}</p>\n"));
    let at = |page: u32| Part { page, ..part.clone() }.address();
    out.push_str(&pager(
        (part.page > 0).then(|| (at(part.page - 1), "previous rows")),
        (last < view.matching).then(|| (at(part.page + 1), "next rows")),
    ));
    Ok(out)
}

/// The choice of the file, where there are several.
fn files(artifact: &Artifact, entry: &Entry, part: &Part) -> String {
    let tables: Vec<&Entry> = artifact.entries.iter().filter(|entry| is_table(entry)).collect();
    if tables.len() < 2 {
        return String::new();
    }
    let options: String = tables
        .iter()
        .map(|table| option(&table.path, &table.path, table.path == entry.path))
        .collect();
    format!(
        "<form method=\"get\" action=\"{}\"><label for=\"file\">Partition</label><select id=\"file\" \
        name=\"file\">{options}</select>{}<button>Show</button></form>\n",
        escape(&part.address),
        hidden(part)
    )
}

/// Hidden fields for the order and the conditions.
fn hidden(part: &Part) -> String {
    let field = |key: &str, value: &str| {
        format!("<input type=\"hidden\" name=\"{key}\" value=\"{}\">", escape(value))
    };
    let mut out = if part.sort.is_empty() {
        String::new()
    } else {
        field("sort", &part.sort)
    };
    out.extend(part.conditions.iter().map(|text| field("f", text)));
    out
}

/// The conditions as chips, and the form that adds one.
fn filters(part: &Part, view: &TableView) -> String {
    let chips: String = part
        .conditions
        .iter()
        .enumerate()
        .map(|(at, text)| chip(text, &part.with(|other| drop(other.conditions.remove(at)))))
        .collect();
    let file = match part.file.is_empty() {
        true => String::new(),
        false => format!("<input type=\"hidden\" name=\"file\" value=\"{}\">", escape(&part.file)),
    };
    let example = view.columns.iter().find(|column| column.is_number);
    let example = example.map_or_else(String::new, |column| format!("{} > 0", column.name));
    format!(
        "<form method=\"get\" action=\"{}\" role=\"search\">{file}{}<label \
        for=\"condition\">Filter</label><input \
        type=\"text\" id=\"condition\" name=\"f\" placeholder=\"{}\" \
        spellcheck=\"false\"><button>Add</button></form>\n\
        <p class=\"chips\">{chips}</p>\n<p>{} of {}</p>\n",
        escape(&part.address),
        hidden(part),
        escape(&example),
        figure(view.matching as f64, Unit::Count),
        match view.total {
            1 => "1 row".to_owned(),
            total => format!("{} rows", figure(total as f64, Unit::Count)),
        }
    )
}

/// Each column with its type, nulls, distinct values and distribution.
fn columns(view: &TableView) -> String {
    let rows: Vec<Vec<String>> = view
        .columns
        .iter()
        .map(|column| described(column, view.matching))
        .collect();
    table(
        &[
            "column",
            "type",
            "null",
            "distinct",
            "distribution",
            "from",
            "mean",
            "to",
        ],
        &rows,
    )
}

fn described(column: &ColumnView, rows: usize) -> Vec<String> {
    let distinct = column.distinct.map_or_else(
        || "> 10,000".to_owned(),
        |distinct| figure(distinct as f64, Unit::Count),
    );
    let nulls = match column.nulls {
        0 => String::new(),
        nulls => format!(
            "{} ({})",
            figure(nulls as f64, Unit::Count),
            figure(nulls as f64 / rows as f64, Unit::Percent)
        ),
    };
    let (drawing, low, mean, high) = match &column.values {
        Values::Numbers { low, high, mean, bins } => {
            let short = |text: &str| match text.parse::<f64>() {
                Ok(value) if column.is_number => figure(value, Unit::Plain),
                _ => text.to_owned(),
            };
            let mean = mean.map(|mean| figure(mean, Unit::Plain)).unwrap_or_default();
            (histogram(&column.name, bins), short(low), mean, short(high))
        }
        Values::Texts(top) => {
            let named: Vec<String> = top
                .iter()
                .map(|(text, count)| format!("{text} {}", figure(*count as f64, Unit::Count)))
                .collect();
            (escape(&named.join(", ")), String::new(), String::new(), String::new())
        }
        Values::Nothing => Default::default(),
    };
    vec![
        escape(&column.name),
        escape(&column.ty),
        nulls,
        distinct,
        drawing,
        escape(&low),
        mean,
        escape(&high),
    ]
}

/// A small histogram: a bar for each bin.
fn histogram(name: &str, bins: &[usize]) -> String {
    const HEIGHT: f64 = 28.0;
    const BAR: usize = 5;
    let most = bins.iter().copied().max().unwrap_or(1).max(1) as f64;
    let bars: String = bins
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(at, count)| {
            let height = (HEIGHT - 1.0) * *count as f64 / most + 1.0;
            format!("M{} {HEIGHT}v-{height:.1}h{}v{height:.1}z", at * BAR, BAR - 1)
        })
        .collect();
    format!(
        "<svg class=\"histogram\" viewBox=\"0 0 {} {HEIGHT}\" role=\"img\" aria-label=\"histogram of \
        {}\"><path \
        d=\"{bars}\"/></svg>",
        BINS * BAR,
        escape(name)
    )
}

/// The kind of an artifact, the number of its files, and their size.
fn size(artifact: &Artifact) -> String {
    let size: u64 = artifact.entries.iter().map(|entry| entry.size).sum();
    format!(
        "{} · {} · {}",
        escape(&artifact.kind),
        text::count(artifact.entries.len(), "file"),
        text::size(size)
    )
}

/// The size, the first rows and the quality of an artifact.
pub(crate) fn shown(store: &Store, artifact: &Artifact, rows: usize) -> String {
    format!(
        "<p class=\"dim\">{}</p>\n{}{}",
        size(artifact),
        content(store, artifact, rows),
        quality(artifact)
    )
}

/// The first rows or lines of an artifact.
fn content(store: &Store, artifact: &Artifact, rows: usize) -> String {
    match preview(store, artifact, rows) {
        Ok(Preview::Table {
            path,
            rows,
            columns,
            first,
        }) => {
            let head: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
            let cell = |cell: &Option<String>| cell.as_deref().map_or_else(String::new, escape);
            let first: Vec<Vec<String>> = first.iter().map(|row| row.iter().map(cell).collect()).collect();
            let rows = text::count(rows, "row");
            format!("<p>{}, {rows}</p>\n{}", escape(&path), table(&head, &first))
        }
        Ok(Preview::Text(text)) => {
            format!(
                "<pre tabindex=\"0\" role=\"region\" aria-label=\"first lines\">{}</pre>\n",
                escape_content(&text)
            )
        }
        // Metrics are shown as figures and curves of their stage.
        Ok(Preview::Metrics(_) | Preview::Nothing) => String::new(),
        Err(failure) => format!("<p class=\"dim\">{}</p>\n", escape(&failure.message)),
    }
}

/// The data quality of an artifact, if it has any findings.
fn quality(artifact: &Artifact) -> String {
    let quality = quality_table(&artifact.meta);
    match quality.is_empty() {
        true => String::new(),
        false => {
            let text = escape_content(quality.trim());
            let text =
                format!("<pre tabindex=\"0\" role=\"region\" aria-label=\"data quality\">{text}</pre>");
            folded(&format!("quality-{}", artifact.kind), "Data quality", &text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_beyond_all_numbers_is_the_first() {
        assert_eq!(Part::read("page=3").page, 3);
        assert_eq!(Part::read("page=368934881474191033").page, 0);
    }
}
