//! The pipelines that can be started here, with `--allow-run`.

use crate::layout::{Page, link};
use crate::parts::empty;
use crate::site::Site;
use runner_engine::Failure;
use runner_history as history;
use runner_report::html::escape;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The number of runs whose pipelines are offered.
const RUNS: usize = 200;

pub(crate) fn pipelines(site: &Site) -> Result<Page, Failure> {
    let mut body = format!(
        "<p class=\"crumbs\">{}</p><h1>Start a run</h1>\n",
        link("/runs", "Runs")
    );
    let offered = offered(site)?;
    if offered.is_empty() {
        body.push_str(&empty(
            "No pipeline here.",
            "The server offers the pipelines in its directory and in <code>pipelines/</code>; <code>runner \
            init \
            FILE</code> writes one.",
        ));
    }
    for (at, file) in offered.into_iter().enumerate() {
        let shown = file
            .strip_prefix(&site.directory)
            .unwrap_or(&file)
            .display()
            .to_string();
        body.push_str(&format!(
            "<form method=\"post\" action=\"/start\" class=\"card start\">{}<input type=\"hidden\" \
             name=\"pipeline\" value=\"{1}\"><label for=\"set-{at}\">{2}</label><input type=\"text\" \
             id=\"set-{at}\" name=\"set\" placeholder=\"seed=3 train.with.learning_rate=1e-4\" \
             spellcheck=\"false\" aria-label=\"parameters of {2}\"><button>Start</button></form>\n",
            site.form_secret(),
            escape(&file.display().to_string()),
            escape(&shown)
        ));
    }
    Ok(Page::new("Start a run", "/runs", body))
}

/// The pipelines of the last runs, and those in the directory of the server and in its `pipelines/`.
fn offered(site: &Site) -> Result<BTreeSet<PathBuf>, Failure> {
    let (runs, _) = history::last(&site.runs, RUNS)?;
    let mut files: BTreeSet<PathBuf> = runs
        .into_iter()
        .map(|run| run.file)
        .filter(|file| file.is_file())
        .collect();
    for dir in [site.directory.clone(), site.directory.join("pipelines")] {
        files.extend(in_directory(&dir));
    }
    Ok(files)
}

fn in_directory(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml")
        })
        .filter(|path| {
            std::fs::read_to_string(path)
                .is_ok_and(|text| text.lines().any(|line| line.starts_with("stages:")))
        })
        .collect()
}

/// True if the page offers this pipeline.
pub(crate) fn is_offered(site: &Site, file: &Path) -> Result<bool, Failure> {
    Ok(offered(site)?.contains(file))
}
