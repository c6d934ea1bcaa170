//! The finding of an evaluation in words: the policy with its interval, what it beats and what beats it.

use crate::evaluation::{JOINS, Values, names};
use crate::figures::{self, Unit};
use crate::glossary::title;
use cache::{Artifact, Store};
use runner_history::figures::summary as figures_of;
use runner_history::{Run, StageRun};
use serde_json::Value;

/// The probability by chance below which a difference counts, corrected for the number of baselines.
const CHANCE: f64 = 0.05;

/// The file beside metrics that is a table for people.
pub(crate) const TABLE: &str = "table.md";

/// The suffix of the metric whose difference from each baseline is tested.
const P: &str = "_p";

/// Baselines that know what no policy is shown: hidden states, or the model behind the prices.
const BOUNDS: [&str; 3] = ["oracle", "bound", "filter"];

/// The figure by which strategies of a market are compared.
const MATCHED: &str = "matched_excess_return";

/// The most names in a sentence.
const MOST_NAMES: usize = 5;

/// The baseline that decides by what the policy sees.
const SEEN: &str = "best_rule";

/// A baseline beside the policy.
struct Beside<'a> {
    name: &'a str,
    /// The figure of the policy less that of the baseline.
    less: f64,
    /// The p-value of that difference, corrected for the number of baselines.
    p: f64,
}

impl Beside<'_> {
    /// True where the baseline is ahead of the policy beyond chance.
    fn beats(&self) -> bool {
        self.less < 0.0 && self.p < CHANCE
    }
}

/// The figure by which a policy is compared, and the baselines by it. The figure is the one whose differences
/// have p-values.
fn beside(values: &Values) -> Option<(String, Vec<Beside<'_>>)> {
    let figure = values.keys().find_map(|name| {
        let (_, figure) = name.strip_prefix("versus/")?.split_once('/')?;
        figure.strip_suffix(P).map(str::to_owned)
    })?;
    let baseline = |name| {
        let of = |suffix: &str| values.get(&format!("versus/{name}/{figure}{suffix}")).copied();
        Some(Beside {
            name,
            less: of("")?,
            p: of(P)?,
        })
    };
    let baselines = names(values, "versus/").into_iter().filter_map(baseline).collect();
    Some((figure, baselines))
}

/// The answer of an evaluation in a sentence: the policy's figure with its interval, the baselines that it
/// beats beyond chance and those that beat it, and the best baseline that is no bound, with the best rule of
/// what is seen where that is another one.
pub(crate) fn answer(values: &Values) -> Option<String> {
    let (figure, baselines) = beside(values)?;
    let is_market = figure == MATCHED;
    let name = own(&figure);
    let ours = *values.get(name)?;
    let best = competitors(&baselines).min_by(|a, b| a.less.total_cmp(&b.less))?;
    let shown = |value: f64| match is_market {
        true => figures::signed(value, Unit::of(name)),
        false => figures::shown(value, Unit::of(name)),
    };
    let blind = if is_blind(values) { "blind " } else { "" };
    let earns = match is_market {
        true => format!("The {blind}policy earns {}", tested(values, &figure)?),
        false => format!("The {blind}policy's {}", tested(values, &figure)?),
    };
    let seen = baselines
        .iter()
        .find(|baseline| baseline.name == SEEN && best.name != SEEN);
    let seen = seen.map_or(String::new(), |seen| {
        format!("; {}, {}", title(SEEN), shown(ours - seen.less))
    });
    Some(format!(
        "{earns}: {}. Best baseline{}: {}, {} (p {}{}){seen}.",
        judgement(&baselines),
        if is_market { " at the policy's volatility" } else { "" },
        title(best.name),
        shown(ours - best.less),
        figures::shown(best.p, Unit::Probability),
        if baselines.len() > 1 { ", corrected" } else { "" },
    ))
}

/// The policy's own figure that belongs to one that is tested.
fn own(figure: &str) -> &str {
    if figure == MATCHED { "excess_return" } else { figure }
}

/// The policy's figure that is tested, with its interval, in words.
fn tested(values: &Values, figure: &str) -> Option<String> {
    let name = own(figure);
    let unit = Unit::of(name);
    let value = *values.get(name)?;
    let end = |end: &str| values.get(&format!("{name}{end}")).copied().unwrap_or(f64::NAN);
    let (low, high) = (end("_low"), end("_high"));
    let interval = match low.is_finite() && high.is_finite() {
        true => format!(" {}", figures::interval(low, high, unit)),
        false => String::new(),
    };
    Some(match figure == MATCHED {
        true => format!("{} a year over cash{interval}", figures::signed(value, unit)),
        false => format!("{} is {}{interval}", title(name), figures::shown(value, unit)),
    })
}

/// The answer in a line: the figure that is tested and the judgement.
pub(crate) fn in_short(values: &Values) -> Option<String> {
    let (figure, baselines) = beside(values)?;
    Some(format!("{}: {}", tested(values, &figure)?, judgement(&baselines)))
}

/// The answer of an evaluation that is not of a market: beside baselines, or beside the optimal policy.
pub(crate) fn sentence(values: &Values) -> Option<String> {
    answer(values).or_else(|| beside_optimal(values))
}

/// The baselines that the policy beats beyond chance and those that beat it, in words; then the bounds that
/// are ahead of it.
fn judgement(baselines: &[Beside<'_>]) -> String {
    let parts = [beside_competitors(baselines), bounds_ahead(baselines)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "no bound is ahead of it beyond chance".to_owned(),
        false => parts.join("; "),
    }
}

/// The bounds that are ahead of the policy beyond chance, in words.
fn bounds_ahead(baselines: &[Beside<'_>]) -> Option<String> {
    let bounds = baselines.iter().filter(|baseline| is_bound(baseline.name));
    let ahead = titles(bounds.filter(|bound| bound.beats()));
    match ahead.as_slice() {
        [] => None,
        [one] => Some(format!("the bound {one} is ahead")),
        several => Some(format!("the bounds {} are ahead", listed(several))),
    }
}

/// The judgement of the policy beside its competitors; `None` without any.
fn beside_competitors(baselines: &[Beside<'_>]) -> Option<String> {
    let beaten = competitors(baselines).filter(|baseline| baseline.less > 0.0 && baseline.p < CHANCE);
    let beating = competitors(baselines).filter(|baseline| baseline.beats());
    let (ahead, behind) = (titles(beaten), titles(beating));
    let first = title(competitors(baselines).next()?.name);
    let n = competitors(baselines).count();
    Some(match (ahead.as_slice(), behind.as_slice()) {
        ([], []) if n == 1 => format!("no difference from {first} is beyond chance"),
        ([], []) => format!("it beats none of {n} baselines beyond chance, and none beats it"),
        (ahead, []) if ahead.len() == n && n > 1 => format!("it beats all {n} baselines beyond chance"),
        (ahead, []) if n == 1 => format!("it beats {} beyond chance", ahead[0]),
        (ahead, []) => format!(
            "of {n} baselines it beats {} beyond chance, and none beats it",
            listed(ahead)
        ),
        ([], behind) if n == 1 => format!("{} beats it beyond chance", behind[0]),
        ([], behind) => format!(
            "it beats none of {n} baselines beyond chance, and {} {} it",
            listed(behind),
            beat(behind)
        ),
        (ahead, behind) => format!(
            "of {n} baselines it beats {} beyond chance, and {} {} it",
            listed(ahead),
            listed(behind),
            beat(behind)
        ),
    })
}

fn beat(who: &[String]) -> &'static str {
    if who.len() == 1 { "beats" } else { "beat" }
}

/// Names with commas, and with `and` before the last: at most five, then how many more there are.
fn listed(names: &[String]) -> String {
    let mut names = names.to_vec();
    if names.len() > MOST_NAMES {
        let more = names.split_off(MOST_NAMES - 1).len();
        names.push(format!("{more} more"));
    }
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.join(", "),
    }
}

/// The baselines that no policy can be expected to beat left out.
fn competitors<'b, 'v>(baselines: &'b [Beside<'v>]) -> impl Iterator<Item = &'b Beside<'v>> {
    baselines.iter().filter(|baseline| !is_bound(baseline.name))
}

fn titles<'b, 'v: 'b>(baselines: impl Iterator<Item = &'b Beside<'v>>) -> Vec<String> {
    baselines.map(|baseline| title(baseline.name)).collect()
}

/// The judgement of the policy beside its baselines, for the summary of a section.
pub(crate) fn beside_baselines(values: &Values) -> Option<String> {
    Some(judgement(&beside(values)?.1))
}

/// The names of the baselines that matter: the best one, those that beat the policy, and the best rule of
/// what is seen.
pub(crate) fn mattering(values: &Values) -> Vec<&str> {
    let Some((_, baselines)) = beside(values) else {
        return Vec::new();
    };
    let best = competitors(&baselines).min_by(|a, b| a.less.total_cmp(&b.less));
    let best = best.map(|best| best.name);
    let matters = |one: &&Beside<'_>| Some(one.name) == best || one.name == SEEN || one.beats();
    competitors(&baselines).filter(matters).map(|one| one.name).collect()
}

/// True for baselines that know what no policy is shown.
pub(crate) fn is_bound(name: &str) -> bool {
    BOUNDS.contains(&name)
}

/// True for a policy that loses nothing when it is shown another world.
pub(crate) fn is_blind(values: &Values) -> bool {
    values.get("blind") == Some(&1.0)
}

/// The table for people beside some metrics.
pub(crate) fn table_of(store: &Store, artifact: &Artifact) -> Option<String> {
    let blob = store.blob(artifact.entry(TABLE)?.blob).ok()?;
    Some(String::from_utf8_lossy(&blob).into_owned())
}

/// The finding in the metrics of an evaluation, for the terminal: their table for people, or else a sentence;
/// empty for other metrics.
pub fn finding(store: &Store, artifact: &Artifact) -> String {
    let values = summary(artifact);
    let rule = rule_in_words(artifact).map_or(String::new(), |text| format!("{}: {text}\n", title(SEEN)));
    let sentence = || sentence(&values).map(|sentence| format!("{sentence}\n{rule}"));
    table_of(store, artifact).or_else(sentence).unwrap_or_default()
}

/// The answers of the first evaluations of a run that have one, a sentence each, with the stage in front
/// where the run has several; and the number of the others, which are of the same kinds.
pub fn answers(run: &Run, store: &Store, most: usize) -> (Vec<String>, usize) {
    let is_evaluation = |stage: &&StageRun| stage.kind.starts_with("evaluate/");
    // What joins others comes first, and what a search tried on validation data last.
    let rank = |stage: &&StageRun| match JOINS.contains(&stage.kind.as_str()) {
        true => 0,
        false if stage.config.value()["on"] == "validation" => 2,
        false => 1,
    };
    let mut evaluations: Vec<&StageRun> = run.stages.iter().filter(is_evaluation).collect();
    evaluations.sort_by_key(rank);
    let found = evaluations.into_iter().filter_map(|stage| {
        let values = figures_of(stage, store)?;
        Some((stage, sentence(&values)?))
    });
    let found: Vec<(&StageRun, String)> = found.take(most).collect();
    let is_alike = |stage: &&StageRun| {
        stage.outputs.contains_key("metrics") && found.iter().any(|(other, _)| other.kind == stage.kind)
    };
    let all = run.stages.iter().filter(is_alike).count();
    let worded = |(stage, sentence): &(&StageRun, String)| match all {
        1 => sentence.clone(),
        _ => format!("{}: {sentence}", stage.id),
    };
    (found.iter().map(worded).collect(), all.saturating_sub(found.len()))
}

/// The best rule of what is seen, in words.
pub(crate) fn rule_in_words(artifact: &Artifact) -> Option<&str> {
    let mut rules = artifact.meta["rules"].as_array()?.iter();
    rules.find(|rule| rule["name"] == SEEN)?["text"].as_str()
}

/// The policy beside the optimal one, where that is known.
fn beside_optimal(values: &Values) -> Option<String> {
    let (ours, optimal) = (values.get("episodic_return")?, values.get("optimal/episodic_return")?);
    let shown = |value: &f64| figures::shown(*value, Unit::Plain);
    Some(format!(
        "The policy earns {} an episode, the optimal policy {}.",
        shown(ours),
        shown(optimal)
    ))
}

/// The last values of an artifact's metrics.
fn summary(artifact: &Artifact) -> Values {
    let all = artifact.meta["summary"].as_object().into_iter().flatten();
    all.filter_map(|(name, value): (&String, &Value)| Some((name.clone(), value.as_f64()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, f64)]) -> Values {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    /// The baseline that is better is named, with its figure; a bound is no competitor, but is said to be
    /// ahead.
    #[test]
    fn the_baseline_that_hurts_is_named() {
        let market = |less: f64, p: f64, blind: f64| {
            values(&[
                ("excess_return", 0.104),
                ("excess_return_low", -0.0312),
                ("excess_return_high", 0.221),
                ("blind", blind),
                ("versus/best_rule/matched_excess_return", less),
                ("versus/best_rule/matched_excess_return_p", p),
                ("versus/cash/matched_excess_return", 0.104),
                ("versus/cash/matched_excess_return_p", 0.008),
                ("versus/oracle/matched_excess_return", -0.5),
                ("versus/oracle/matched_excess_return_p", 0.006),
            ])
        };
        let worse = market(-0.106, 0.01, 0.0);
        assert_eq!(
            answer(&worse).unwrap(),
            "The policy earns +10.4 % a year over cash [−3.1, 22.1]: of 2 baselines it beats cash beyond \
            chance, and best rule of what is seen beats it; the bound oracle is ahead. Best baseline at the \
            policy's volatility: best rule of what is seen, +21.0 % (p 0.010, corrected)."
        );
        assert_eq!(mattering(&worse), ["best_rule"]);
        let even = answer(&market(0.02, 0.2, 1.0)).unwrap();
        assert!(even.starts_with("The blind policy earns"), "{even}");
        assert!(
            even.contains("it beats cash beyond chance, and none beats it; the bound oracle is ahead"),
            "{even}"
        );
        let ahead = answer(&market(0.05, 0.01, 0.0)).unwrap();
        assert!(
            ahead.contains("it beats all 2 baselines beyond chance; the bound oracle is ahead"),
            "{ahead}"
        );
        assert_eq!(answer(&values(&[("excess_return", 0.1)])), None);
    }

    /// The rule of what is seen is named where another baseline is the best, too; what knows the model is not
    /// the best baseline.
    #[test]
    fn the_rule_of_what_is_seen_is_always_named() {
        let said = answer(&values(&[
            ("excess_return", 0.02),
            ("versus/best_rule/matched_excess_return", -0.03),
            ("versus/best_rule/matched_excess_return_p", 0.2),
            ("versus/short_straddle/matched_excess_return", -0.04),
            ("versus/short_straddle/matched_excess_return_p", 0.1),
            ("versus/filter/matched_excess_return", -0.06),
            ("versus/filter/matched_excess_return_p", 0.1),
        ]));
        assert_eq!(
            said.unwrap(),
            "The policy earns +2.00 % a year over cash: it beats none of 2 baselines beyond chance, and \
            none beats it. Best baseline at the policy's volatility: short straddle, +6.00 % (p 0.100, \
            corrected); best rule of what is seen, +5.00 %."
        );
    }

    /// A policy that reasons beside breadth-first search, by the figure that is tested.
    #[test]
    fn reasoning_is_compared_by_its_main_figure() {
        let said = answer(&values(&[
            ("mrr", 0.912),
            ("versus/mined_rules/mrr", -0.01),
            ("versus/mined_rules/mrr_p", 0.3),
            ("versus/breadth_first/mrr", -0.032),
            ("versus/breadth_first/mrr_p", 0.02),
            ("versus/breadth_first/hits_1", 0.5),
        ]));
        assert_eq!(
            said.unwrap(),
            "The policy's mean reciprocal rank is 0.912: it beats none of 2 baselines beyond chance, and breadth first \
            beats it. Best baseline: breadth first, 0.944 (p 0.020, corrected)."
        );
    }

    #[test]
    fn one_baseline_is_named_and_many_are_counted() {
        let of = |n: usize, less: f64| {
            let names = ["a", "b", "c", "d", "e", "f", "g"];
            let mut values = values(&[("mrr", 0.5)]);
            for name in &names[..n] {
                values.insert(format!("versus/{name}/mrr"), less);
                values.insert(format!("versus/{name}/mrr_p"), 0.01);
            }
            beside_baselines(&values).unwrap()
        };
        assert_eq!(of(1, 0.1), "it beats a beyond chance");
        assert_eq!(of(1, -0.1), "a beats it beyond chance");
        assert_eq!(of(7, 0.1), "it beats all 7 baselines beyond chance");
        assert_eq!(
            of(7, -0.1),
            "it beats none of 7 baselines beyond chance, and a, b, c, d and 3 more beat it"
        );
    }

    #[test]
    fn bounds_alone_are_no_baselines() {
        let of = |names: &[&str], p: f64| {
            let mut values = values(&[("mrr", 0.5)]);
            for name in names {
                values.insert(format!("versus/{name}/mrr"), -0.1);
                values.insert(format!("versus/{name}/mrr_p"), p);
            }
            beside_baselines(&values).unwrap()
        };
        assert_eq!(of(&["oracle"], 0.01), "the bound oracle is ahead");
        assert_eq!(
            of(&["filter", "oracle"], 0.01),
            "the bounds filter and oracle are ahead"
        );
        assert_eq!(of(&["oracle"], 0.2), "no bound is ahead of it beyond chance");
        assert_eq!(of(&["a", "oracle"], 0.2), "no difference from a is beyond chance");
    }
}
