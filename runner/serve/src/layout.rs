//! The frame of every page: the navigation with the state of things, and the content.

use crate::pulse::Pulse;
use runner_engine::Failure;
use runner_report::chart;
use runner_report::html::{self, escape};

/// The style sheet: that of the reports, followed by the server's own.
pub(crate) fn style() -> String {
    let parts = [html::STYLE, chart::SCRIPT_STYLE, include_str!("style.css")];
    parts.concat()
}

/// The script of every page.
pub(crate) const SCRIPT: &str = include_str!("live.js");

/// A page in the navigation.
struct Entry {
    address: &'static str,
    name: &'static str,
    /// The path of its icon, in a box of 16 × 16.
    icon: &'static str,
    /// The text of its badge, if it has one now.
    badge: fn(&Pulse) -> Option<Badge>,
}

/// A number beside a page in the navigation.
struct Badge {
    class: &'static str,
    text: String,
}

fn none(_: &Pulse) -> Option<Badge> {
    None
}

const PAGES: [Entry; 8] = [
    Entry {
        address: "/",
        name: "Overview",
        icon: "M2 2h5v6H2zM9 2h5v4H9zM9 8h5v6H9zM2 10h5v4H2z",
        badge: none,
    },
    Entry {
        address: "/runs",
        name: "Runs",
        icon: "M2 4h2M6 4h8M2 8h2M6 8h8M2 12h2M6 12h8",
        badge: |pulse| {
            let text = format!("{} running", pulse.running);
            (pulse.running > 0).then_some(Badge {
                class: "running",
                text,
            })
        },
    },
    Entry {
        address: "/searches",
        name: "Searches",
        icon: "M11 7a4 4 0 1 1-8 0a4 4 0 1 1 8 0M10 10l4 4",
        badge: none,
    },
    Entry {
        address: "/schedule",
        name: "Schedule",
        icon: "M2 4h12v10H2zM2 7h12M5 2v3M11 2v3",
        badge: |pulse| {
            let text = format!("{} failed", pulse.failed_nights);
            (pulse.failed_nights > 0).then_some(Badge { class: "failed", text })
        },
    },
    Entry {
        address: "/policies",
        name: "Policies",
        icon: "M8 2l2 4l4 .5l-3 3l.8 4.5L8 12l-4 2l.8-4.500l-3-3L6 6z",
        badge: none,
    },
    Entry {
        address: "/paper",
        name: "Paper",
        icon: "M2 13h12M3 10l3-4l3 2l4-5",
        badge: |pulse| {
            let text = format!("{} halted", pulse.halted_accounts);
            (pulse.halted_accounts > 0).then_some(Badge { class: "failed", text })
        },
    },
    Entry {
        address: "/data",
        name: "Data",
        icon: "M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0M3 8c0 2 10 2 10 0",
        badge: none,
    },
    Entry {
        address: "/cache",
        name: "Cache",
        icon: "M2 3h12v3H2zM3 6v7h10V6M6 9h4",
        badge: none,
    },
];

/// A page: its title and its body.
pub(crate) struct Page {
    /// The title, as text.
    pub title: String,
    /// The address of the navigation entry to which the page belongs.
    pub within: &'static str,
    /// The body, as HTML.
    pub body: String,
    /// The address of the page's events, if something on the page changes.
    pub live: Option<String>,
}

impl Page {
    /// Creates a page that does not change.
    pub(crate) fn new(title: impl Into<String>, within: &'static str, body: String) -> Self {
        Self {
            title: title.into(),
            within,
            body,
            live: None,
        }
    }

    /// Creates the page that shows a failure.
    pub(crate) fn failure(failure: &Failure) -> Self {
        let mut body = format!("<h1>Error</h1><p class=\"error\">{}</p>\n", escape(&failure.message));
        for cause in &failure.causes {
            body.push_str(&format!("<p class=\"dim\">{}</p>\n", escape(cause)));
        }
        if let Some(hint) = &failure.hint {
            body.push_str(&format!("<p>{}</p>\n", escape(hint)));
        }
        Self::new("Error", "", body)
    }

    /// The page as an HTML document; `pulse` is the state of the home.
    pub(crate) fn html(&self, pulse: &Pulse) -> String {
        let entry = |entry: &Entry| {
            let current = match entry.address == self.within {
                true => " aria-current=\"page\"",
                false => "",
            };
            let badge = (entry.badge)(pulse).map(|Badge { class, text }| {
                format!(" <span class=\"badge {class}\">{}</span>", escape(&text))
            });
            format!(
                "<li><a href=\"{}\"{current}><svg class=\"icon\" viewBox=\"0 0 16 16\" \
                aria-hidden=\"true\"><path d=\"{}\"/></svg><span>{}</span>{}</a></li>",
                entry.address,
                entry.icon,
                entry.name,
                badge.unwrap_or_default()
            )
        };
        let live = self
            .live
            .as_ref()
            .map(|address| format!(" data-live=\"{}\"", escape(address)));
        html::document(
            &format!("{} · runner", self.title),
            &format!(
                "<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/style.css\">{}<script \
                src=\"/live.js\" defer></script>",
                // A page that changes may get its first chart later.
                match self.live.is_some() || chart::has_charts(&self.body) {
                    true => "<script src=\"/charts.js\" defer></script>",
                    false => "",
                }
            ),
            &format!(
                "<body class=\"pages\"{}><a class=\"skip\" href=\"#content\">To the content</a><header><a \
                 class=\"brand\" href=\"/\">runner</a><nav aria-label=\"Pages\"><ul>{}</ul></nav>\
                 <span id=\"connection\" role=\"status\"></span></header>\n<main \
                 id=\"content\">\n{}</main></body>",
                live.unwrap_or_default(),
                PAGES.iter().map(entry).collect::<String>(),
                self.body
            ),
        )
    }
}

/// Percent-encodes the characters of an address component that are not unreserved (RFC 3986).
pub(crate) fn encode(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

pub(crate) fn run_address(run: &str) -> String {
    format!("/runs/{}", encode(run))
}

pub(crate) fn search_address(search: &str) -> String {
    format!("/searches/{}", encode(search))
}

pub(crate) fn paper_address(account: &str) -> String {
    format!("/paper/{}", encode(account))
}

pub(crate) fn stage_address(run: &str, stage: &str) -> String {
    format!("{}/stages/{}", run_address(run), encode(stage))
}

pub(crate) fn link(address: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escape(address), escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The classes that a style sheet gives a look by themselves.
    fn classes(css: &str) -> BTreeSet<&str> {
        let rules = css.split('{').map(|rule| rule.rsplit(['}', '/']).next().unwrap());
        let selectors = rules.flat_map(|rule| rule.split(',')).map(str::trim);
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        selectors
            .filter(|one| one.strip_prefix('.').is_some_and(is_name))
            .collect()
    }

    /// A status has the same colour in reports and on pages. Tables with many columns are wider on pages.
    #[test]
    fn a_class_of_reports_has_no_second_look() {
        let (reports, pages) = (classes(html::STYLE), classes(include_str!("style.css")));
        assert!(reports.contains(".cached") && pages.contains(".pill"));
        let both: Vec<_> = reports.intersection(&pages).collect();
        assert_eq!(both, [&".many"]);
    }
}
