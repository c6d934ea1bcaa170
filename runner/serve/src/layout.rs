//! The frame of every page.

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

/// The pages in the navigation: address and name.
const PAGES: [(&str, &str); 7] = [
    ("/", "Runs"),
    ("/searches", "Searches"),
    ("/schedule", "Schedule"),
    ("/policies", "Policies"),
    ("/paper", "Paper"),
    ("/data", "Data"),
    ("/cache", "Cache"),
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

    /// The page as an HTML document.
    pub(crate) fn html(&self) -> String {
        let links: Vec<String> = PAGES
            .iter()
            .map(|(address, name)| {
                let current = if *address == self.within {
                    " aria-current=\"page\""
                } else {
                    ""
                };
                format!("<a href=\"{address}\"{current}>{name}</a>")
            })
            .collect();
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
                "<body{}><a class=\"skip\" href=\"#content\">To the \
                 content</a><header><strong>runner</strong><nav aria-label=\"pages\">{}</nav>\
                 <span id=\"connection\" role=\"status\"></span></header>\n<main \
                 id=\"content\">\n{}</main></body>",
                live.unwrap_or_default(),
                links.join(" "),
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
