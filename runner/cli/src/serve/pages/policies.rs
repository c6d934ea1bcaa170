//! The registered policies: their versions, and the moves of their aliases.

use crate::serve::layout::{Page, link, stage_address};
use crate::serve::server::Site;
use runner_engine::{Failure, text};
use runner_history::policies::{NamedPolicy, Registry, Version};
use runner_report::html::{escape, table};
use std::fmt::Write as _;

/// The number of versions, and of moves, that are listed: the last ones.
const LISTED: usize = 50;

/// The page.
///
/// # Errors
/// If the registry cannot be read.
pub(in crate::serve) fn policies(site: &Site) -> Result<Page, Failure> {
    let registry = Registry::new(&site.home);
    let mut body = String::from("<h1>Policies</h1>\n");
    let names = registry.names()?;
    if names.is_empty() {
        body.push_str("<p>No policy is registered: <code>register: NAME</code> of a training, or <code>runner policy register RUN/STAGE NAME</code>, makes the first.</p>\n");
    }
    for name in names {
        let policy = registry.read(&name)?.unwrap_or_default();
        let _ = writeln!(body, "<h2>{}</h2>", escape(&name));
        body.push_str(&versions(&policy));
        body.push_str(&moves(&policy));
    }
    Ok(Page::new("Policies", "/policies", body))
}

fn versions(policy: &NamedPolicy) -> String {
    let aliases = policy.aliases();
    let row = |version: &Version| {
        let named: Vec<&str> = aliases
            .iter()
            .filter(|(_, to)| **to == version.version)
            .map(|(alias, _)| *alias)
            .collect();
        let stage = version.from.output.rsplit_once('.').map_or("", |(stage, _)| stage);
        vec![
            version.version.to_string(),
            escape(&named.join(", ")),
            link(
                &stage_address(&version.from.run, stage),
                &format!("{}/{}", version.from.run, version.from.output),
            ),
            version.from.as_of.map(|date| date.to_string()).unwrap_or_default(),
            version.time.format("%Y-%m-%d %H:%M").to_string(),
            version.digest.short(),
        ]
    };
    let rows: Vec<Vec<String>> = policy.versions.iter().rev().take(LISTED).map(row).collect();
    table(&["version", "aliases", "from", "night", "registered", "digest"], &rows)
}

fn moves(policy: &NamedPolicy) -> String {
    let rows: Vec<Vec<String>> = policy
        .moves
        .iter()
        .rev()
        .take(LISTED)
        .map(|moved| {
            let figures = moved.reason.figures.iter();
            let figures: Vec<String> = figures
                .map(|(name, value)| format!("{name} {}", text::figure(*value)))
                .collect();
            vec![
                escape(&moved.alias),
                moved.before.map(|before| before.to_string()).unwrap_or_default(),
                moved.version.to_string(),
                escape(&moved.reason.by),
                moved.time.format("%Y-%m-%d %H:%M").to_string(),
                escape(&figures.join(", ")),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<h3>Moves of aliases</h3>\n{}",
            table(&["alias", "from", "to", "by", "time", "figures"], &rows)
        ),
    }
}
