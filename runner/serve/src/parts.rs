//! The parts that pages are made of: statuses, cards, tiles, chips, empty states, and tables whose heads
//! sort them.

use crate::layout::link;
use runner_report::html::escape;
use std::fmt::Write as _;

/// A status, as a word beside a dot of its colour.
pub(crate) fn status(name: &str) -> String {
    format!("<span class=\"pill {name}\">{name}</span>")
}

/// A card under a heading of the second level; both are HTML.
pub(crate) fn card(heading: &str, body: &str) -> String {
    format!("<section class=\"card\"><h2>{heading}</h2>\n{body}</section>\n")
}

/// The state of a page that has nothing to show yet: a line, and as HTML how to change that.
pub(crate) fn empty(line: &str, remedy: &str) -> String {
    format!(
        "<div class=\"empty\"><p><strong>{}</strong></p><p>{remedy}</p></div>\n",
        escape(line)
    )
}

/// HTML that is collapsed until the reader opens it by its summary, which is HTML. `id` keeps it open when
/// the page changes.
pub(crate) fn folded(id: &str, summary: &str, body: &str) -> String {
    format!(
        "<details class=\"fold\" id=\"fold-{}\"><summary>{summary}</summary>\n{body}</details>\n",
        escape(id)
    )
}

/// Figures in a row: each a label, and its value as HTML. Those without a value are left out.
pub(crate) fn tiles(tiles: &[(&str, String)]) -> String {
    let mut out = String::from("<dl class=\"tiles\">");
    for (label, value) in tiles.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(out, "<div><dt>{}</dt><dd>{value}</dd></div>", escape(label));
    }
    out + "</dl>\n"
}

/// A link that takes something away, drawn as a chip.
pub(crate) fn chip(text: &str, without: &str) -> String {
    format!(
        "<a class=\"chip\" href=\"{}\"><span class=\"hidden\">Remove </span>{} <span \
        aria-hidden=\"true\">×</span></a>",
        escape(without),
        escape(text)
    )
}

/// A link that adds something, drawn as a chip.
pub(crate) fn suggestion(text: &str, with: &str) -> String {
    format!("<a class=\"chip add\" href=\"{}\">{}</a>", escape(with), escape(text))
}

/// A link that is drawn as a button.
pub(crate) fn button(address: &str, text: &str) -> String {
    format!("<a class=\"button\" href=\"{}\">{}</a>", escape(address), escape(text))
}

/// An instant, to the minute.
pub(crate) fn time(at: chrono::DateTime<chrono::Utc>) -> String {
    format!(
        "<time datetime=\"{}\">{}</time>",
        at.format("%Y-%m-%dT%H:%M:%SZ"),
        at.format("%Y-%m-%d %H:%M")
    )
}

/// The order of a table by one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// The head of a column.
pub(crate) struct Head {
    /// The name, as text. A hidden name is read out, but not shown.
    pub name: String,
    /// True if the name is not shown.
    pub is_hidden: bool,
    /// True if the column's values are right-aligned.
    pub is_number: bool,
    /// The address of the table in the order of this column; none if it has no order.
    pub sort: Option<String>,
    /// The present order, if it is by this column.
    pub order: Option<Order>,
}

impl Head {
    /// A column of texts without an order.
    pub(crate) fn text(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_hidden: false,
            is_number: false,
            sort: None,
            order: None,
        }
    }

    /// A column of numbers without an order.
    pub(crate) fn number(name: &str) -> Self {
        Self {
            is_number: true,
            ..Self::text(name)
        }
    }

    /// A column whose name is not shown.
    pub(crate) fn hidden(name: &str) -> Self {
        Self {
            is_hidden: true,
            ..Self::text(name)
        }
    }

    /// The column with an order: the address that sorts by it, and the present order if it is by it.
    pub(crate) fn sorted(self, address: String, order: Option<Order>) -> Self {
        Self {
            sort: Some(address),
            order,
            ..self
        }
    }

    fn html(&self) -> String {
        let class = if self.is_number { "" } else { " class=\"t\"" };
        let order = match self.order {
            Some(Order::Ascending) => " aria-sort=\"ascending\"",
            Some(Order::Descending) => " aria-sort=\"descending\"",
            None => "",
        };
        let arrow = match self.order {
            Some(Order::Ascending) => " <span aria-hidden=\"true\">▲</span>",
            Some(Order::Descending) => " <span aria-hidden=\"true\">▼</span>",
            None => "",
        };
        let name = escape(&self.name).replace('_', "_<wbr>").replace('.', ".<wbr>");
        let name = match (&self.sort, self.is_hidden) {
            (_, true) => format!("<span class=\"hidden\">{name}</span>"),
            (Some(address), _) => format!("<a href=\"{}\">{name}{arrow}</a>", escape(address)),
            (None, _) => name,
        };
        format!("<th scope=\"col\"{class}{order}>{name}</th>")
    }
}

/// A line of a table.
pub(crate) enum Line {
    /// The cells of a row, as HTML.
    Row(Vec<String>),
    /// The heading of the rows that follow, as HTML.
    Group(String),
}

/// A table whose cells are HTML. On small screens each row becomes a block of labelled cells.
pub(crate) fn grid(label: &str, head: &[Head], lines: &[Line]) -> String {
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table \
        class=\"many\"><thead><tr>{}</tr></thead><tbody>",
        escape(label),
        head.iter().map(Head::html).collect::<String>()
    );
    for line in lines {
        match line {
            Line::Group(heading) => {
                let _ = write!(
                    out,
                    "<tr class=\"group\"><th scope=\"rowgroup\" class=\"t\" \
                    colspan=\"{}\">{heading}</th></tr>",
                    head.len()
                );
            }
            Line::Row(cells) => {
                out.push_str("<tr>");
                for (cell, head) in cells.iter().zip(head) {
                    let class = if head.is_number { "" } else { " class=\"t\"" };
                    let name = if head.is_hidden { "" } else { &head.name };
                    let name = match name {
                        "" => String::new(),
                        name => format!(" data-name=\"{}\"", escape(name)),
                    };
                    for part in ["<td", class, &name, ">", cell, "</td>"] {
                        out.push_str(part);
                    }
                }
                out.push_str("</tr>");
            }
        }
    }
    out + "</tbody></table></div>\n"
}

/// The links to the pages before and after one of a list.
pub(crate) fn pager(before: Option<(String, &str)>, after: Option<(String, &str)>) -> String {
    let links: Vec<String> = before
        .into_iter()
        .chain(after)
        .map(|(address, text)| link(&address, text))
        .collect();
    match links.is_empty() {
        true => String::new(),
        false => format!("<p class=\"pager\">{}</p>\n", links.join(" · ")),
    }
}

/// An option of a choice: value, text, and whether it is chosen.
pub(crate) fn option(value: &str, text: &str, is_chosen: bool) -> String {
    let chosen = if is_chosen { " selected" } else { "" };
    format!("<option value=\"{}\"{chosen}>{}</option>", escape(value), escape(text))
}
