//! Tables of figures, whose headings explain their terms.

use crate::figures::{self, Unit};
use crate::glossary;
use crate::html::escape;

/// A figure as HTML, whose unit does not go to the next line.
pub(crate) fn cell(value: f64, unit: Unit) -> String {
    together(&figures::shown(value, unit))
}

/// A text with figures as HTML, whose units do not go to the next line.
pub(crate) fn together(text: &str) -> String {
    escape(text).replace(" %", "&nbsp;%")
}

/// The number of columns that a small screen has room for.
const MOST_ON_SMALL: usize = 4;

/// The number of columns from which a table takes the whole width.
const BROAD: usize = 6;

/// A column of a table of figures.
#[derive(Clone)]
pub(crate) struct Column {
    /// The heading, as text and as HTML.
    text: String,
    html: String,
    /// True for a column that small screens leave out.
    is_extra: bool,
    /// True for a column of words, which are aligned to the left.
    is_words: bool,
}

impl Column {
    /// The column of a term, with its title.
    pub(crate) fn term(name: &str) -> Self {
        Self::words(name, &glossary::title(name))
    }

    /// The column of a term under another heading.
    pub(crate) fn words(name: &str, words: &str) -> Self {
        Self {
            text: words.to_owned(),
            html: glossary::worded(name, words),
            is_extra: false,
            is_words: false,
        }
    }

    /// The column without an explanation.
    pub(crate) fn text(words: &str) -> Self {
        Self {
            html: escape(words).replace('.', ".<wbr>").replace('_', "_<wbr>"),
            ..Self::words("", words)
        }
    }

    /// The column of words, aligned to the left.
    pub(crate) fn left(self) -> Self {
        Self {
            is_words: true,
            ..self
        }
    }

    /// The column that is left out on small screens.
    pub(crate) fn extra(self, is_extra: bool) -> Self {
        Self { is_extra, ..self }
    }
}

/// A table with a title and cells as HTML in each row. On small screens it leaves out what is extra, or makes
/// each row a block of labelled cells if nothing is.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>]) -> String {
    let is_stacked = columns.len() > MOST_ON_SMALL && !columns.iter().any(|column| column.is_extra);
    let broad = if columns.len() >= BROAD { " broad" } else { "" };
    let many = if is_stacked { " many" } else { "" };
    let mut out =
        format!("<div class=\"wide\" tabindex=\"0\"><table class=\"figures{broad}{many}\"><thead><tr>");
    let class = |column: &Column| match (column.is_extra, column.is_words) {
        (true, _) => " class=\"extra\"",
        (false, true) => " class=\"t\"",
        (false, false) => "",
    };
    for column in columns {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(column), column.html));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (i, (cell, column)) in row.iter().zip(columns).enumerate() {
            out.push_str(&match (i, is_stacked) {
                (0, _) => format!("<th scope=\"row\">{cell}</th>"),
                (_, true) => format!(
                    "<td{} data-name=\"{}\">{cell}</td>",
                    class(column),
                    escape(&column.text)
                ),
                (_, false) => format!("<td{}>{cell}</td>", class(column)),
            });
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// A heading and a table; empty if there are no rows.
pub(crate) fn section(heading: &str, columns: &[Column], rows: &[Vec<String>]) -> String {
    match rows.is_empty() {
        true => String::new(),
        false => format!("<h3>{}</h3>\n{}", escape(heading), table(columns, rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_screens_leave_out_columns_or_stack_rows() {
        let columns = ["", "sharpe", "costs", "beta", "my_figure"].map(Column::term);
        let rows = [vec![
            "policy".to_owned(),
            "1.20".to_owned(),
            "3.00 %".to_owned(),
            String::new(),
            String::new(),
        ]];
        let stacked = table(&columns, &rows);
        assert!(stacked.contains("<table class=\"figures many\">"), "{stacked}");
        assert!(
            stacked.contains("<td data-name=\"Sharpe ratio\">1.20</td>"),
            "{stacked}"
        );
        assert!(stacked.contains("<th scope=\"col\">my figure</th>"), "{stacked}");
        let columns = columns.map(|column| column.clone().extra(column.text == "costs"));
        let left_out = table(&columns, &rows);
        assert!(left_out.contains("<table class=\"figures\">"), "{left_out}");
        assert!(left_out.contains("<td class=\"extra\">3.00 %</td>"), "{left_out}");
        assert_eq!(section("Risk", &columns, &[]), "");
    }
}
