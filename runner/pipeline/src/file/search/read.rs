//! The block `search:`, from values to a [`Search`] whose names are those of settings.

use super::{Domain, MetricOf, Pruner, Search, Values};
use crate::file::document::Document;
use crate::stage::{Scope, fill};
use crate::text::{Block, Key, Problems, Tree, Value as Node, list, suggest};
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads the block, with the names of settings as `--set` takes them; `None` if it has errors.
pub(crate) fn read(
    tree: &Tree,
    document: &Document,
    scope: &Scope,
    problems: &mut Problems,
) -> Option<Search> {
    let before = problems.count();
    let mut rest = tree.clone();
    if let Node::Map(entries) = &mut rest.value {
        entries.retain(|(key, _)| key.name != "over");
    }
    let mut search: Search = Block::of("search").fill(&rest, scope, problems)?;
    let names = Names { document };
    let over = tree.entry("over").map_or(&[][..], |(_, over)| over.entries());
    if over.is_empty() {
        problems.add(
            tree.entry("over").map_or(tree.spot, |(key, _)| key.spot),
            "`search` names no settings to search",
            "write `over: { STAGE.with.KEY: { log: [1e-5, 1e-2] } }`",
        );
    }
    for (key, tree) in over {
        let Some(name) = names.find(key, problems) else {
            continue;
        };
        let filled = fill(tree, scope, problems);
        let block = Block::named("search.over", format!("`{}`", key.name));
        let Some(mut domain) = block.read::<Domain>(tree, &filled, problems) else {
            continue;
        };
        let when = std::mem::take(&mut domain.when);
        domain.when = when
            .into_iter()
            .map(|(name, values)| (names.canonical(&name), values))
            .collect();
        if search.over.insert(name, domain).is_some() {
            problems.add(key.spot, format!("`{}` is searched twice", key.name), "remove one");
        }
    }
    for (key, tree) in over {
        let when = tree.entry("when").map_or(&[][..], |(_, when)| when.entries());
        for (condition, _) in when {
            let name = names.canonical(&condition.name);
            if search
                .over
                .get(&name)
                .is_some_and(|of| matches!(of.values, Values::Float { .. }))
            {
                let message = format!(
                    "`when` compares `{}`, which is drawn from a range of numbers",
                    condition.name
                );
                let hint = "a condition is on a `choice` or an integer";
                problems.add(condition.spot, message, hint);
            }
            if !search.over.contains_key(&name) || name == names.canonical(&key.name) {
                let known = search.over.keys().map(String::as_str);
                let message = format!(
                    "`when` names `{}`, which is not another setting that is searched",
                    condition.name
                );
                problems.add(condition.spot, message, suggest(&condition.name, "settings", known));
            }
        }
    }
    let at = |key: &str| tree.entry(key).map_or(tree.spot, |(_, value)| value.spot);
    let stages: Vec<&str> = document.stages.iter().map(|stage| stage.key.name.as_str()).collect();
    let metrics = search
        .objective
        .0
        .iter()
        .map(|objective| (&objective.metric, "objective"));
    let metrics = metrics.chain(
        search
            .constraints
            .iter()
            .map(|constraint| (&constraint.metric, "constraints")),
    );
    for (MetricOf { stage, .. }, block) in metrics {
        if !stages.contains(&stage.as_str()) {
            let message = format!("the pipeline has no stage `{stage}`");
            problems.add(at(block), message, suggest(stage, "stages", stages.iter().copied()));
        }
    }
    let mut first = Vec::new();
    for settings in std::mem::take(&mut search.first) {
        let settings: BTreeMap<String, Value> = settings
            .into_iter()
            .map(|(name, value)| (names.canonical(&name), value))
            .collect();
        if let Some(name) = settings.keys().find(|name| !search.over.contains_key(*name)) {
            let known = search.over.keys().map(String::as_str);
            problems.add(
                at("first"),
                format!("`first` sets `{name}`, which is not searched"),
                suggest(name, "settings", known),
            );
        }
        first.push(settings);
    }
    search.first = first;
    if let Some(set) = &mut search.seeds.set {
        let key = Key {
            name: set.clone(),
            spot: at("seeds"),
        };
        *set = names.find(&key, problems).unwrap_or_default();
    }
    if let Pruner::Asha(rungs) | Pruner::Hyperband(rungs) | Pruner::Median(rungs) = &mut search.pruner {
        let spot = at("pruner");
        let written = &rungs.resource;
        let full = match written.split_once('.') {
            Some((stage, key)) if !key.starts_with("with.") => format!("{stage}.with.{key}"),
            _ => written.clone(),
        };
        rungs.resource = names.find(&Key { name: full, spot }, problems).unwrap_or_default();
        if rungs.min == 0 || rungs.factor < 2 || rungs.max.is_some_and(|max| max <= rungs.min) {
            problems.add(
                spot,
                format!(
                    "there are no rungs from {} on by a factor of {}",
                    rungs.min, rungs.factor
                ),
                "give `min` above 0, `factor` from 2, `max` above `min`",
            );
        }
    }
    for (key, value) in [
        ("seeds", search.seeds.count),
        ("trials", search.trials()),
        ("workers", search.workers),
        ("batch", search.batch),
    ] {
        if !(1..=100_000).contains(&value) {
            problems.add(at(key), format!("`{key}` is {value}"), "give a number from 1 to 100000");
        }
    }
    (problems.count() == before).then_some(search)
}

/// The names of settings in a document.
struct Names<'d> {
    document: &'d Document,
}

impl Names<'_> {
    /// The name of a setting as `--set` takes it, from the name in the block: a port that one stage alone has
    /// is `STAGE.needs.PORT`. Other names stay.
    fn canonical(&self, name: &str) -> String {
        if self.document.params.iter().any(|(key, _)| key.name == name) {
            return name.to_owned();
        }
        match self.having(name).as_slice() {
            [stage] => format!("{stage}.needs.{name}"),
            _ => name.to_owned(),
        }
    }

    /// The stages that have a port in their `needs:`.
    fn having(&self, port: &str) -> Vec<&str> {
        let stages = self.document.stages.iter();
        let stages = stages.filter(|stage| stage.needs.iter().any(|(key, _)| key.name == port));
        stages.map(|stage| stage.key.name.as_str()).collect()
    }

    /// Like [`Names::canonical`], for a name that must be a setting; `None` if it is none.
    fn find(&self, key: &Key, problems: &mut Problems) -> Option<String> {
        let name = self.canonical(&key.name);
        let Document { params, stages, .. } = self.document;
        let Some((stage, rest)) = name.split_once('.') else {
            if params.iter().any(|(param, _)| param.name == name) {
                return Some(name);
            }
            let having = self.having(&name);
            let hint = match having.len() {
                0 => suggest(&name, "parameters", params.iter().map(|(param, _)| param.name.as_str())),
                _ => format!("write `STAGE.needs.{name}`: {} have this port", list(having)),
            };
            return problems.fail(key.spot, format!("`{name}` is not a setting of the pipeline"), hint);
        };
        let Some(found) = stages.iter().find(|known| known.key.name == stage) else {
            let known = stages.iter().map(|stage| stage.key.name.as_str());
            let message = format!("the pipeline has no stage `{stage}`");
            return problems.fail(key.spot, message, suggest(stage, "stages", known));
        };
        let is_field = rest.strip_prefix("with.").is_some_and(|path| !path.is_empty());
        let is_run = found.program().is_some_and(|program| program.run.is_some());
        if (is_field && !is_run) || rest.strip_prefix("needs.").is_some_and(|port| !port.is_empty()) {
            return Some(name);
        }
        let hint = format!("write a parameter, `{stage}.with.KEY` or `{stage}.needs.PORT`");
        problems.fail(key.spot, format!("`{name}` cannot be searched"), hint)
    }
}
