//! The list of runs.

use crate::layout::{Page, encode, link, run_address};
use crate::live::{Fragments, Source};
use crate::site::Site;
use cache::Store;
use runner_engine::{Failure, StageStatus, row, text};
use runner_history::{Library, Question};
use runner_report::html::{escape, table};
use serde::Deserialize;

/// The number of runs of a page.
const RUNS: usize = 100;

/// The runs of a page: the last ones that match a filter.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Wanted {
    /// An expression as of `runner runs --where`; empty for all.
    #[serde(default, rename = "where")]
    filter: String,
    /// The number of later pages.
    #[serde(default)]
    page: u32,
}

impl Wanted {
    /// The page's address.
    pub(crate) fn address(&self) -> String {
        format!("/?where={}&page={}", encode(&self.filter), self.page)
    }
}

pub(crate) fn runs(site: &Site, wanted: &Wanted) -> Page {
    let list = list(site, wanted).unwrap_or_else(|failure| problem(&failure));
    let body = format!(
        "<h1>Runs</h1>\n<form method=\"get\" action=\"/\" role=\"search\"><label for=\"where\">Filter</label>\
         <input type=\"text\" id=\"where\" name=\"where\" value=\"{}\" placeholder=\"evaluate.sharpe &gt; 1 \
         and status = done\" spellcheck=\"false\">\
         <button>Show</button></form>\n{}<form method=\"get\" action=\"/compare\"><div \
         id=\"runs\">{list}</div>\
         <button>Compare the ticked runs</button></form>\n",
        escape(&wanted.filter),
        if site.allow_run {
            "<p><a href=\"/pipelines\">Start a run</a></p>\n"
        } else {
            ""
        },
    );
    Page {
        live: Some(format!(
            "/events/runs?where={}&page={}",
            encode(&wanted.filter),
            wanted.page
        )),
        ..Page::new("Runs", "/", body)
    }
}

/// A filter that cannot be read, or no run that has its field.
fn problem(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!("<br>{}", escape(hint)));
    format!(
        "<p class=\"error\">{}{}</p>\n",
        escape(&failure.message),
        hint.unwrap_or_default()
    )
}

/// The table of runs.
fn list(site: &Site, wanted: &Wanted) -> Result<String, Failure> {
    let filter = Some(wanted.filter.trim()).filter(|filter| !filter.is_empty());
    let question = Question::new(filter, &[], &[])?;
    let page = wanted.page as usize;
    let newest = RUNS * (page + 1);
    // One more tells whether there are older ones.
    let library = Library::read(&site.runs, question.is_plain().then_some(newest + 1), &mut |text| {
        site.host.warn(text)
    })?;
    let store = (!question.shown().is_empty() && site.home.join("format").is_file())
        .then(|| Store::open(&site.home))
        .transpose()?;
    let chosen = library.choose(&question, store.as_ref())?;
    let has_older = chosen.len() > newest;
    let shown: Vec<_> = chosen.iter().rev().skip(RUNS * page).take(RUNS).collect();
    if shown.is_empty() {
        return Ok(match filter {
            Some(_) => "<p>No run matches.</p>\n".to_owned(),
            None => "<p>No runs yet: <code>runner exec PIPELINE</code> makes the first.</p>\n".to_owned(),
        });
    }
    let columns = question.shown();
    let mut head = vec![
        "", "run", "pipeline", "status", "time", "cached", "ran", "failed", "started",
    ];
    head.extend(columns.iter().map(|key| key.text.as_str()));
    let rows: Vec<Vec<String>> = shown
        .into_iter()
        .map(|chosen| {
            let run = chosen.run;
            let status = run.status.name();
            let mut row = row![
                format!(
                    "<input type=\"checkbox\" name=\"run\" value=\"{0}\" id=\"tick-{0}\" \
                    aria-label=\"compare {0}\">",
                    escape(&run.id)
                ),
                format!(
                    "{}<span class=\"dim\">{}</span>",
                    link(&run_address(&run.id), &run.id),
                    escape(&chosen.marks.suffix())
                ),
                escape(&run.pipeline),
                format!("<span class=\"{status}\">{status}</span>"),
                text::duration(run.seconds),
                run.count(StageStatus::Cached),
                run.count(StageStatus::Ran),
                run.count(StageStatus::Failed),
                run.started.format("%Y-%m-%d %H:%M UTC").to_string(),
            ];
            row.extend(chosen.cells.iter().map(|cell| escape(&cell.shown())));
            row
        })
        .collect();
    let mut out = table(&head, &rows);
    let mut links = Vec::new();
    let at = |page| {
        Wanted {
            page,
            ..wanted.clone()
        }
        .address()
    };
    links.extend((wanted.page > 0).then(|| link(&at(wanted.page - 1), "newer")));
    links.extend(has_older.then(|| link(&at(wanted.page.saturating_add(1)), "older")));
    if !links.is_empty() {
        out.push_str(&format!("<p>{}</p>\n", links.join(" · ")));
    }
    Ok(out)
}

/// The list as it changes.
pub(crate) struct LiveRuns {
    site: Site,
    wanted: Wanted,
    ticks: u32,
}

/// The number of looks between two renderings: the list changes by whole runs.
const SELDOM: u32 = 4;

impl LiveRuns {
    /// The list of a page.
    pub(crate) fn new(site: Site, wanted: Wanted) -> Self {
        Self {
            site,
            wanted,
            ticks: 0,
        }
    }
}

impl Source for LiveRuns {
    fn render(&mut self) -> Fragments {
        let is_due = self.ticks.is_multiple_of(SELDOM);
        self.ticks += 1;
        if !is_due {
            return Fragments::new();
        }
        let list = list(&self.site, &self.wanted).unwrap_or_else(|failure| problem(&failure));
        Fragments::from([("runs", list)])
    }

    fn is_over(&self) -> bool {
        false
    }
}
