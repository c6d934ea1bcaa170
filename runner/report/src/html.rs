//! The HTML of pages and tables.

use runner_engine::text;

/// Escapes text for HTML, attribute values included. Control characters and marks of direction are shown as
/// escapes.
pub fn escape(text: &str) -> String {
    escaped(text, |byte| matches!(byte, b'&' | b'<' | b'>' | b'"'))
}

/// Escapes text between tags. Quotes stay as they are, since JSON has many.
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

/// The policy of a page: browsers load nothing for it and run no script in it, even if one got through the
/// escaping.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A self-contained page, in light and dark mode and for small screens.
pub(crate) fn page(title: &str, body: &str) -> String {
    document(
        title,
        &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><style>{STYLE}</style>"),
        &format!("<body><main>\n{body}</main></body>"),
    )
}

/// A page with these elements in its head and this `<body>`, both HTML.
pub fn document(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title>{head}</head>\n{body}</html>\n",
        escape(title)
    )
}

/// A table. The cells are HTML. On small screens each row of a table with many columns is a block of its own,
/// whose cells are named by their column.
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

/// HTML that is closed until the reader opens it by its summary, a text.
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
pub const STYLE: &str = "
:root{--bg:#fff;--fg:#1c2024;--dim:#667;--line:#dde1e6;--card:#f6f7f9;
--c0:#2563c9;--c1:#c2410c;--c2:#15803d;--c3:#9333ea;--c4:#b8860b;--c5:#0e7490}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7ea;--dim:#9aa3ad;--line:#333a42;--card:#1d2126;
--c0:#6ea8fe;--c1:#fb923c;--c2:#4ade80;--c3:#c084fc;--c4:#facc15;--c5:#22d3ee}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main{max-width:1060px;margin:0 auto;padding:16px}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.15rem;margin:1.8em 0 .5em;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1em 0 .3em}
.dim{color:var(--dim)}.wide{overflow-x:auto}h1,h2,h3,p,summary{overflow-wrap:anywhere}
.verdict{padding:8px 12px;border-left:4px solid var(--c1);background:var(--card)}
:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{color:var(--dim);font-weight:600}
th.t,td.t{text-align:left}td.long{white-space:normal;min-width:16em}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:12px}
figure{margin:0;padding:10px;background:var(--card);border-radius:8px;min-width:0}
figcaption{font-weight:600;font-size:.9rem;margin-bottom:4px}
svg{width:100%;height:auto;display:block}svg text{fill:var(--dim);font-size:11px}
.grid{stroke:var(--line);stroke-width:1}.taken{stroke:var(--c1);stroke-width:2}path{fill:none;stroke-width:1.6}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}
.b0,.b1,.b2,.b3,.b4,.b5{stroke:none;fill-opacity:.16}.dashed{stroke-dasharray:5 3}
.b0{fill:var(--c0)}.b1{fill:var(--c1)}.b2{fill:var(--c2)}.b3{fill:var(--c3)}.b4{fill:var(--c4)}.b5{fill:var(--c5)}
.legend{margin:4px 0 0;font-size:.82rem;color:var(--dim)}.legend span::before{content:'';display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:4px}
.legend span{margin-right:10px;display:inline-block;overflow-wrap:anywhere}
.dot{fill:var(--c0)}.mark{fill:transparent}.mark:hover{fill:var(--fg)}details.values{font-size:.82rem;color:var(--dim);margin-top:4px}
.k0::before{background:var(--c0)}.k1::before{background:var(--c1)}.k2::before{background:var(--c2)}.k3::before{background:var(--c3)}.k4::before{background:var(--c4)}.k5::before{background:var(--c5)}
.dag{max-height:520px}.dag rect{fill:var(--card);stroke:var(--line);stroke-width:1.5}.dag .ran rect{stroke:var(--c0)}.dag .cached rect{stroke:var(--c2)}
.dag .running rect{stroke:var(--c4);stroke-width:3}.dag .failed rect{stroke:var(--c1);stroke-width:3}.dag .skipped rect{stroke-dasharray:4 3}.dag text{fill:var(--fg);font-size:12px}.dag .sub{fill:var(--dim);font-size:10.5px}
.dag path{stroke:var(--dim);stroke-width:1.2}
.ran{color:var(--c0)}.cached{color:var(--c2)}.failed{color:var(--c1)}.skipped,.waiting{color:var(--dim)}.running{color:var(--c4)}
td>.dim{display:block;font-size:.85em}th{white-space:normal;vertical-align:bottom}
@media (max-width:520px){main{padding:10px}svg text{font-size:15px}.dag text{font-size:12px}th,td{padding:3px 6px}td{white-space:normal}
.many,.many tbody{display:block}.many thead{display:none}.many tr{display:grid;grid-template-columns:1fr 1fr;padding:6px 0;border-bottom:1px solid var(--line)}
.many td,.many td.t{display:block;min-width:0;padding:1px 6px;border:0;text-align:left;overflow-wrap:anywhere}.many td:first-child{grid-column:1/-1;font-weight:600}
.many td:empty{display:none}.many td:not(:first-child)::before{content:attr(data-name) \": \";color:var(--dim)}}
pre{background:var(--card);padding:10px;border-radius:8px;overflow-x:auto;font-size:.82rem}summary{cursor:pointer}
";
