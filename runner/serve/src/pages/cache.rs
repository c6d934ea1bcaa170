//! The store: its contents and sizes.

use crate::layout::Page;
use crate::parts::tiles;
use crate::site::Site;
use cache::Count;
use runner_engine::{Failure, text};
use runner_report::html::{escape, table};

pub(crate) fn cache(site: &Site) -> Result<Page, Failure> {
    let status = site.store()?.status()?;
    let row =
        |name: &str, count: &Count| vec![escape(name), count.count.to_string(), text::size(count.bytes)];
    let all = [
        ("blobs", &status.blobs),
        ("of them not needed by a record", &status.unreferenced),
        ("action records", &status.actions),
        ("memo records", &status.memos),
        ("checkpoints of unfinished work", &status.scratch),
        ("jobs of clusters", &status.jobs),
        ("copies of the program", &status.programs),
        ("files being written", &status.tmp),
        ("damaged files", &status.damaged),
    ];
    let rows: Vec<Vec<String>> = all.iter().map(|(name, count)| row(name, count)).collect();
    let kinds: Vec<Vec<String>> = status.artifacts.iter().map(|(name, count)| row(name, count)).collect();
    let artifacts: u64 = status.artifacts.values().map(|count| count.count).sum();
    let body = format!(
        "<h1>Cache</h1>\n{}<p class=\"dim\">{}</p>\n{}<h2>Artifacts by type</h2>\n{}\
         <p class=\"dim\"><code>runner cache gc</code> removes what no kept run needs, <code>runner cache \
         verify</code> hashes everything again.</p>\n",
        tiles(&[
            ("Size", text::size(status.bytes())),
            ("Artifacts", artifacts.to_string()),
            ("Damaged files", status.damaged.count.to_string()),
        ]),
        escape(&site.home.display().to_string()),
        table(&["part", "count", "size"], &rows),
        table(&["type", "count", "size"], &kinds)
    );
    Ok(Page::new("Cache", "/cache", body))
}
