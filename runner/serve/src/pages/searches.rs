//! The searches, and one of them with its charts as it goes on.

use crate::layout::{Page, link, run_address, search_address};
use crate::live::{Fragments, Source};
use crate::parts::{empty, status};
use crate::site::Site;
use runner_engine::Failure;
use runner_report::html::{escape, table};
use runner_report::search::{View, find, section};
use runner_search::record::{self, Record};
use std::path::PathBuf;
use std::time::SystemTime;

pub(crate) fn searches(site: &Site) -> Result<Page, Failure> {
    let views: Vec<View> = record::list(&site.home)?
        .into_iter()
        .map(|record| View::new(&site.home, record))
        .collect();
    let mut body = String::from("<h1>Searches</h1>\n");
    if views.is_empty() {
        body.push_str(&empty(
            "No searches yet.",
            "<code>runner exec</code> of a pipeline with <code>search:</code> makes the first.",
        ));
    } else {
        let texts = View::list(&views);
        let head: Vec<&str> = texts.head.iter().map(String::as_str).collect();
        let row = |(cells, view): (Vec<String>, &View)| {
            let mut cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
            let id = &view.record.header.id;
            cells[0] = link(&search_address(id), id);
            for cell in cells
                .iter_mut()
                .filter(|cell| ["running", "done", "stopped"].contains(&cell.as_str()))
            {
                *cell = status(cell);
            }
            cells
        };
        let rows: Vec<Vec<String>> = texts.rows.into_iter().zip(&views).map(row).collect();
        body.push_str(&table(&head, &rows));
    }
    Ok(Page::new("Searches", "/searches", body))
}

pub(crate) fn search(site: &Site, name: &str) -> Result<Page, Failure> {
    let view = View::new(&site.home, find(&site.home, Some(name))?);
    let id = &view.record.header.id;
    let runs: Vec<String> = view
        .record
        .runs
        .iter()
        .rev()
        .take(10)
        .map(|(ran, _)| link(&run_address(&ran.run), &ran.run))
        .collect();
    let runs = if runs.is_empty() {
        String::new()
    } else {
        format!("<p>Runs: {}</p>\n", runs.join(" · "))
    };
    let body = format!(
        "<p class=\"crumbs\">{} / {}</p><h1>{}</h1>\n<div id=\"search\">{}</div>\n{runs}",
        link("/searches", "Searches"),
        escape(id),
        escape(&view.record.header.pipeline),
        section(&view)
    );
    Ok(Page {
        live: view.is_running.then(|| format!("/events{}", search_address(id))),
        ..Page::new(format!("Search {id}"), "/searches", body)
    })
}

/// A search's page as it changes.
pub(crate) struct LiveSearch {
    home: PathBuf,
    id: String,
    /// The size and the time of the record as it was rendered last, and whether a process was writing it.
    seen: Option<(u64, Option<SystemTime>, bool)>,
}

impl LiveSearch {
    /// Opens a search.
    pub(crate) fn open(site: &Site, name: &str) -> Result<Self, Failure> {
        let record = find(&site.home, Some(name))?;
        Ok(Self {
            home: site.home.clone(),
            id: record.header.id,
            seen: None,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    fn is_running(&self) -> bool {
        record::is_running(&self.home, &self.id)
    }
}

impl Source for LiveSearch {
    fn render(&mut self) -> Fragments {
        let path = record::path(&self.home, &self.id);
        let Ok(metadata) = path.metadata() else {
            return Fragments::new();
        };
        let now = Some((metadata.len(), metadata.modified().ok(), self.is_running()));
        if self.seen == now {
            return Fragments::new();
        }
        self.seen = now;
        match Record::read(&path) {
            Ok(Some(record)) => Fragments::from([("search", section(&View::new(&self.home, record)))]),
            _ => Fragments::new(),
        }
    }

    fn is_over(&self) -> bool {
        !self.seen.is_some_and(|(.., is_running)| is_running)
    }
}
