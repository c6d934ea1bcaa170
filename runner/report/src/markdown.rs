//! The tables for people beside metrics, Markdown of paragraphs and tables, as HTML.

use crate::figure_table::{Column, table};
use crate::html::escape;

/// Renders paragraphs, headings and tables; `**strong**` is the only mark inside of a line.
pub(crate) fn to_html(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if line.starts_with('|') {
            let head = cells(line);
            let mut rows = Vec::new();
            while let Some(row) = lines.next_if(|line| line.trim_start().starts_with('|')) {
                let row = cells(row.trim());
                if !row
                    .iter()
                    .all(|cell| !cell.is_empty() && cell.bytes().all(|byte| b":-".contains(&byte)))
                {
                    rows.push(row.iter().map(|cell| inline(cell)).collect());
                }
            }
            let columns: Vec<Column> =
                head.iter().map(|name| Column::text(&name.replace("**", ""))).collect();
            out.push_str(&table(&columns, &rows));
        } else if let Some(title) = line.strip_prefix('#') {
            out.push_str(&format!("<h3>{}</h3>\n", inline(title.trim_start_matches('#').trim())));
        } else if !line.is_empty() {
            let mut words = inline(line);
            while let Some(line) =
                lines.next_if(|line| !line.trim().is_empty() && !line.starts_with(['|', '#']))
            {
                words.push(' ');
                words.push_str(&inline(line.trim()));
            }
            out.push_str(&format!("<p>{words}</p>\n"));
        }
    }
    out
}

/// The cells of a line of a table. `\|` is a character of a cell.
fn cells(line: &str) -> Vec<String> {
    let inside = line.trim_start_matches('|');
    let inside = inside.strip_suffix('|').unwrap_or(inside).replace("\\|", "\u{0}");
    inside
        .split('|')
        .map(|cell| cell.trim().replace('\u{0}', "|"))
        .collect()
}

fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in escape(text).split("**").enumerate() {
        if i > 0 {
            out.push_str(if i % 2 == 1 { "<strong>" } else { "</strong>" });
        }
        out.push_str(part);
    }
    if text.matches("**").count() % 2 == 1 {
        out.push_str("</strong>");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_paragraphs_are_rendered() {
        let html = to_html("| | utility |\n| --- | --- |\n| a \\| <b> | **0.1** |\n\nOf two\nmarkets.\n");
        assert!(html.contains("<th scope=\"col\">utility</th>"), "{html}");
        assert!(
            html.contains("<th scope=\"row\">a | &lt;b&gt;</th><td><strong>0.1</strong></td>"),
            "{html}"
        );
        assert!(html.ends_with("<p>Of two markets.</p>\n"), "{html}");
        assert_eq!(to_html("**open").matches("strong").count(), 2);
    }
}
