//! The HTML of pages and tables.

use runner_engine::text;

/// Escapes text for HTML, including attribute values. Control characters and direction marks are shown as
/// escapes.
pub fn escape(text: &str) -> String {
    escaped(text, |byte| matches!(byte, b'&' | b'<' | b'>' | b'"'))
}

/// Escapes text between tags. Quotes are left unchanged, since JSON contains many.
pub fn escape_content(text: &str) -> String {
    escaped(text, |byte| matches!(byte, b'&' | b'<' | b'>'))
}

fn escaped(text: &str, is_special: impl Fn(u8) -> bool) -> String {
    let text = text::visible(text);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = &*text;
    while let Some(at) = rest.bytes().position(&is_special) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            _ => "&quot;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out
}

/// The content security policy of a page: browsers load nothing for it and run no scripts in it, even if a
/// script passed the escaping.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Renders a self-contained page that supports light and dark mode and small screens.
pub(crate) fn page(title: &str, body: &str) -> String {
    document(
        title,
        &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><style>{STYLE}</style>"),
        &format!("<body><main>\n{body}</main></body>"),
    )
}

/// Renders a page with these elements in its head and this `<body>`, both given as HTML.
pub fn document(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title>{head}</head>\n{body}</html>\n",
        escape(title)
    )
}

/// Renders a table whose cells are HTML. On small screens, each row of a table with many columns becomes a
/// block, whose cells are labelled by their column.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let is_many = head.len() > 3;
    let class = if is_many { " class=\"many\"" } else { "" };
    let mut out = format!("<div class=\"wide\" tabindex=\"0\"><table{class}><thead><tr>");
    // Numbers are right-aligned, texts left-aligned; long texts may wrap.
    let is_number = |cell: &&str| cell.starts_with(|c: char| c.is_ascii_digit() || "+-–".contains(c));
    let classes: Vec<&str> = (0..head.len())
        .map(|i| {
            let mut cells = rows
                .iter()
                .filter_map(|row| row.get(i))
                .map(String::as_str)
                .filter(|cell| !cell.is_empty());
            if cells.clone().any(|cell| cell.len() > 40 && !cell.contains('<')) {
                "t long"
            } else if cells.next().as_ref().is_some_and(is_number) {
                ""
            } else {
                "t"
            }
        })
        .collect();
    for (cell, class) in head.iter().zip(&classes) {
        let name = escape(cell).replace('_', "_<wbr>");
        out.push_str(&format!("<th class=\"{class}\">{name}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for ((cell, class), head) in row.iter().zip(&classes).zip(head) {
            let name = if is_many {
                format!(" data-name=\"{}\"", escape(head))
            } else {
                String::new()
            };
            for part in ["<td class=\"", class, "\"", &name, ">", cell, "</td>"] {
                out.push_str(part);
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// A heading and a table whose cells are HTML; empty if there are no rows.
pub fn section(heading: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    match rows.is_empty() {
        true => String::new(),
        false => format!("{heading}\n{}", table(head, rows)),
    }
}

/// HTML that is collapsed until the reader opens it by its summary, which is text.
pub(crate) fn collapsed(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>\n{body}</details>\n", escape(summary))
}

/// A size as text.
pub fn bytes(value: u64) -> String {
    let value = value as f64;
    if value < 1e9 {
        format!("{:.0} MB", value / 1e6)
    } else {
        format!("{:.2} GB", value / 1e9)
    }
}

/// The style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");
