//! The registered policies: their versions, and the moves of their aliases.

use crate::layout::{Page, link, stage_address};
use crate::parts::{card, empty, folded, tiles};
use crate::site::Site;
use cache::Store;
use datasets::Date;
use runner_engine::{Failure, row, text};
use runner_history::policies::{Judged, NamedPolicy, Registry, Version};
use runner_report::chart::{Axis, Role, Series, lines};
use runner_report::figures::{Unit, shown, with_interval};
use runner_report::html::{escape, section, table};

/// The number of versions without an alias, of verdicts and of moves that are listed: the last ones.
const LISTED: usize = 50;

/// The alias whose version is listed first.
pub(super) const CHAMPION: &str = "champion";

/// The number of versions above which their table is folded.
const OPEN: usize = 10;

/// The number of verdicts whose equity is drawn: the last ones.
const DRAWN: usize = 6;

pub(crate) fn policies(site: &Site) -> Result<Page, Failure> {
    let registry = Registry::new(&site.home);
    let mut body = String::from("<h1>Policies</h1>\n");
    let policies = registry.all()?;
    if policies.is_empty() {
        body.push_str(&empty(
            "No policy is registered.",
            "<code>register: NAME</code> of a training, or <code>runner policy register RUN/STAGE \
            NAME</code>, \
            makes the first.",
        ));
    }
    for (name, policy) in policies {
        let mut part = champion(&policy);
        // Without a store there are no curves.
        if let Ok(store) = site.store() {
            part.push_str(&equity(&policy, &store));
        }
        part.push_str(&verdicts(&policy));
        let all = versions(&policy);
        part.push_str(&match policy.versions.len() > OPEN {
            true => {
                let summary = text::count(policy.versions.len(), "version");
                folded(&format!("versions-{name}"), &summary, &all)
            }
            false => format!("<h3>Versions</h3>\n{all}"),
        });
        part.push_str(&moves(&name, &policy));
        body.push_str(&card(&escape(&name), &part));
    }
    Ok(Page::new("Policies", "/policies", body))
}

/// The champion in a few figures: since when, out of how many, and the last verdict.
fn champion(policy: &NamedPolicy) -> String {
    let version = policy.alias(CHAMPION, None);
    let last = policy.verdicts.last();
    let verdict = |judged: &Judged| {
        format!(
            "{} <span class=\"dim\">on version {}</span>",
            link(&stage_address(&judged.run, &judged.stage), judged.verdict.name()),
            judged.version
        )
    };
    tiles(&[
        (
            "Champion",
            version
                .map(|version| format!("version {}", version.version))
                .unwrap_or_default(),
        ),
        (
            "Trained on the night",
            version
                .and_then(|version| version.from.as_of)
                .map(|date| date.to_string())
                .unwrap_or_default(),
        ),
        ("Versions", policy.versions.len().to_string()),
        ("Last verdict", last.map(verdict).unwrap_or_default()),
    ])
}

/// The champion, the other versions that aliases point to, and the last of the others.
fn versions(policy: &NamedPolicy) -> String {
    let row = |version: &Version| {
        let stage = version.from.output.rsplit_once('.').map_or("", |(stage, _)| stage);
        row![
            version.version,
            escape(&policy.aliases_of(version.version)),
            link(
                &stage_address(&version.from.run, stage),
                &format!("{}/{}", version.from.run, version.from.output),
            ),
            version.from.as_of,
            version.time.format("%Y-%m-%d %H:%M").to_string(),
            version.digest.short(),
        ]
    };
    let aliases = policy.aliases();
    let newest = policy.versions.iter().rev();
    let (mut listed, others): (Vec<&Version>, Vec<&Version>) =
        newest.partition(|version| aliases.values().any(|pointed| *pointed == version.version));
    listed.sort_by_key(|version| aliases.get(CHAMPION) != Some(&version.version));
    listed.extend(others.iter().take(LISTED));
    let rows: Vec<Vec<String>> = listed.into_iter().map(row).collect();
    let mut out = table(&["version", "aliases", "from", "night", "registered", "digest"], &rows);
    if let Some(left) = others.len().checked_sub(LISTED).filter(|left| *left > 0) {
        let left = text::count(left, "older version");
        out.push_str(&format!("<p class=\"dim\">{left} without an alias not shown</p>\n"));
    }
    out
}

/// The last verdicts on versions.
fn verdicts(policy: &NamedPolicy) -> String {
    let row = |judged: &Judged| {
        let outcome = if judged.moved { "moved" } else { "stayed" };
        let mut row = row![
            link(&stage_address(&judged.run, &judged.stage), &judged.version.to_string()),
            judged.against,
            judged.verdict.name(),
            escape(&format!("{} {outcome}", judged.alias)),
            judged.as_of,
        ];
        let figure = |name: &str| judged.figures.get(name).copied().unwrap_or(f64::NAN);
        let or_none = |value: f64, text: String| if value.is_finite() { text } else { String::new() };
        let [ours, low, high, deflated] = [
            "difference/log_return",
            "difference/log_return_low",
            "difference/log_return_high",
            "difference/deflated_sharpe",
        ]
        .map(figure);
        row.push(or_none(ours, with_interval(ours, low, high, Unit::Percent)));
        row.push(or_none(deflated, shown(deflated, Unit::Probability)));
        row.push(or_none(figure("trials"), shown(figure("trials"), Unit::Count)));
        row
    };
    let rows: Vec<Vec<String>> = policy.verdicts.iter().rev().take(LISTED).map(row).collect();
    let head = [
        "version",
        "against",
        "verdict",
        "outcome",
        "night",
        "log return a year, ahead",
        "deflated Sharpe",
        "trials",
    ];
    section("<h3>Verdicts</h3>", &head, &rows)
}

/// The equity of the versions that were judged last, over the dates of the last verdict on each, and of the
/// version that each was judged against.
pub(super) fn equity(policy: &NamedPolicy, store: &Store) -> String {
    let champion = policy.alias(CHAMPION, None).map(|version| version.version);
    let mut series: Vec<Series> = Vec::new();
    for judged in policy.verdicts.iter().rev().take(DRAWN) {
        let Some(curves) = curves(store, judged) else { continue };
        let against = judged.against.filter(|against| *against != judged.version);
        for (version, points) in [(Some(judged.version), curves.agent), (against, curves.against)] {
            let Some(version) = version else { continue };
            let name = format!("version {version}");
            if series.iter().all(|known| known.name != name) {
                let role = match champion == Some(version) {
                    true => Role::Policy,
                    false => Role::Baseline,
                };
                series.push(Series::line(&name, points).role(role));
            }
        }
    }
    lines(
        "equity over the test dates of the last verdict on each",
        &series,
        Axis::Days,
        240.0,
    )
}

/// The equity of both sides of a verdict, by day.
struct Curves {
    agent: Vec<(f64, f64)>,
    against: Vec<(f64, f64)>,
}

/// The curves of a verdict's first world; `None` where its artifact has none, or is no longer in the store.
fn curves(store: &Store, judged: &Judged) -> Option<Curves> {
    let artifact = store.artifact(judged.artifact).ok()?;
    let blob = store.blob(artifact.entry("equity.csv")?.blob).ok()?;
    let rows = std::str::from_utf8(&blob).ok()?;
    let mut curves = Curves {
        agent: Vec::new(),
        against: Vec::new(),
    };
    let mut world = None;
    for line in rows.lines().skip(1) {
        // The name of the world may have commas.
        let mut fields = line.rsplitn(4, ',');
        let (against, agent, time, of) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        if *world.get_or_insert(of) != of {
            break;
        }
        let day = f64::from(time.get(..10)?.parse::<Date>().ok()?.0);
        curves.agent.push((day, agent.parse().ok()?));
        curves.against.push((day, against.parse().ok()?));
    }
    Some(curves)
}

fn moves(name: &str, policy: &NamedPolicy) -> String {
    let rows: Vec<Vec<String>> = policy
        .moves
        .iter()
        .rev()
        .take(LISTED)
        .map(|moved| {
            row![
                escape(&moved.alias),
                moved.before,
                moved.version,
                escape(&moved.reason.by),
                moved.time.format("%Y-%m-%d %H:%M").to_string(),
                escape(&moved.reason.shown()),
            ]
        })
        .collect();
    let head = ["alias", "from", "to", "by", "time", "figures"];
    match rows.is_empty() {
        true => String::new(),
        false => folded(
            &format!("moves-{name}"),
            &format!("Moves of aliases, {}", rows.len()),
            &table(&head, &rows),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::ArtifactDigest;
    use chrono::DateTime;
    use runner_history::policies::{Move, Reason, Registration};

    #[test]
    fn versions_with_aliases_come_first_and_are_never_left_out() {
        let version = |number: u32| Version {
            version: number,
            digest: ArtifactDigest::from_bytes([number as u8; 32]),
            time: DateTime::UNIX_EPOCH,
            from: Registration {
                run: format!("run-{number}"),
                output: "train.policy".to_owned(),
                ..Registration::default()
            },
        };
        let moved = |alias: &str, version| Move {
            alias: alias.to_owned(),
            version,
            before: None,
            time: DateTime::UNIX_EPOCH,
            reason: Reason::default(),
        };
        let policy = NamedPolicy {
            versions: (1..=250).map(version).collect(),
            moves: vec![moved("champion", 1), moved("challenger", 250), moved("archive", 3)],
            verdicts: Vec::new(),
        };
        let html = versions(&policy);
        let runs = html.split("/runs/run-").skip(1);
        let runs: Vec<u32> = runs
            .map(|rest| rest.split('/').next().unwrap().parse().unwrap())
            .collect();
        let others = (200..250).rev();
        assert_eq!(runs, [1, 250, 3].into_iter().chain(others).collect::<Vec<u32>>());
        assert!(html.contains("197 older versions without an alias not shown"), "{html}");
    }
}
