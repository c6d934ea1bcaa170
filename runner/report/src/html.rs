//! The HTML of pages and tables.

use crate::chart;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runner_engine::text;
use std::borrow::Cow;

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

/// Renders a self-contained page that supports light and dark mode and small screens. Its content security
/// policy allows the page's own style and script, by their hashes, and nothing else, even if a script passed
/// the escaping.
pub(crate) fn page(title: &str, body: &str) -> String {
    let (style, script) = match chart::has_charts(body) {
        true => (Cow::Owned(format!("{STYLE}{}", chart::SCRIPT_STYLE)), chart::SCRIPT),
        false => (Cow::Borrowed(STYLE), ""),
    };
    let mut policy = format!("{POLICY}default-src 'none'; style-src '{}'", hash(&style));
    let mut body = format!("<body><main>\n{body}</main>");
    if !script.is_empty() {
        policy += &format!("; script-src '{}'", hash(script));
        body += &format!("<script>{script}</script>");
    }
    policy += "; base-uri 'none'; form-action 'none'";
    document(
        title,
        &format!("{policy}\"><style>{style}</style>"),
        &format!("{body}</body>"),
    )
}

/// The element with the content security policy of a page, up to the policy.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"";

/// The content security policy of a self-contained page, with which a server must send it; `None` of another
/// page.
pub fn policy(page: &str) -> Option<&str> {
    let (head, rest) = page.split_once(POLICY)?;
    // What comes after the style may be what a run wrote.
    let is_head = !head.contains("<style>") && !head.contains("<body");
    Some(rest.split_once('"')?.0).filter(|_| is_head)
}

/// The source of a content security policy that allows an inline text.
fn hash(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    format!("sha256-{}", STANDARD.encode(digest))
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
    let is_number = |cell: &&str| cell.starts_with(|c: char| c.is_ascii_digit() || "+-−–".contains(c));
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
        // A head without a name is no head to a screen reader.
        match name.is_empty() {
            true => out.push_str("<td></td>"),
            false => out.push_str(&format!("<th class=\"{class}\">{name}</th>")),
        }
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

/// The style sheet of all pages: colours and charts, then the rest.
pub const STYLE: &str = concat!(
    include_str!("chart/chart.css"),
    include_str!("style.css"),
    include_str!("report.css")
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Series, lines};
    use crate::stage_graph::stage_graph;

    /// The texts of the inline elements of a page that a browser must allow, by tag.
    fn inline<'p>(page: &'p str, open: &str, close: &str) -> Vec<&'p str> {
        let parts = page.split(open).skip(1);
        parts.filter_map(|part| Some(part.split_once(close)?.0)).collect()
    }

    #[test]
    fn a_page_allows_its_own_style_and_script_and_no_other() {
        let series = Series::line("a", vec![(0.0, 1.0), (1.0, 2.0)]);
        let chart = lines("t", &[series], Axis::Steps, 200.0);
        let shown = page("t", &format!("{chart}{chart}"));
        let (styles, scripts) = (
            inline(&shown, "<style>", "</style>"),
            inline(&shown, "<script>", "</script>"),
        );
        assert_eq!((styles.len(), scripts.len()), (1, 1), "each stands once");
        let policy = policy(&shown).unwrap();
        assert!(
            policy.contains(&format!("style-src '{}';", hash(styles[0]))),
            "{policy}"
        );
        assert!(
            policy.contains(&format!("script-src '{}';", hash(scripts[0]))),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && policy.starts_with("default-src 'none'"));
        // The hash of a text that is known.
        assert_eq!(hash("alert(1)"), "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
    }

    #[test]
    fn a_page_without_charts_has_no_script() {
        let shown = page("t", "<p>words</p>");
        assert!(!shown.contains("<script") && !policy(&shown).unwrap().contains("script-src"));
        assert_eq!(
            policy("<style></style><meta http-equiv=\"Content-Security-Policy\" content=\"x\">"),
            None
        );
    }

    #[test]
    fn no_element_has_a_style_of_its_own() {
        let series = Series::line("a", vec![(0.0, 1.0), (1.0, 2.0)]);
        let chart = lines("t", &[series], Axis::Steps, 200.0);
        let graph = stage_graph(&crate::stage_graph::tests::run(3));
        let shown = page("t", &format!("{chart}{graph}"));
        assert!(shown.contains("<script>") && shown.contains("class=\"dag"), "{graph}");
        assert!(!shown.contains(" style=\""), "{shown}");
        assert!(!chart::SCRIPT.contains("</script") && !chart::SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }
}
