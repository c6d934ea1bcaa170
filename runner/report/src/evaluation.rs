//! A backtest compared with its baselines: the comparison first, then the policy's use of its inputs, its
//! risk, its profits and its behaviour.

use super::chart::number;
use super::html::{self, escape, table};
use super::{finding, paths, reasoning, search};
use cache::{Artifact, Store};
use runner_history::{StageRun, figures};
use std::collections::BTreeMap;

/// The measures, in the order of the table.
const MEASURES: [&str; 24] = [
    "total_return",
    "annual_return",
    "excess_return",
    "volatility",
    "sharpe",
    "probabilistic_sharpe",
    "deflated_sharpe",
    "sortino",
    "utility",
    "alpha",
    "beta",
    "information_ratio",
    "max_drawdown",
    "time_under_water",
    "longest_under_water",
    "calmar",
    "var_95",
    "cvar_95",
    "hit_rate",
    "skew",
    "kurtosis",
    "omega",
    "turnover",
    "costs",
];

/// The kind of evaluations whose policies reason over symbols.
const REASONING: &str = "evaluate/reasoning";

/// The kinds of evaluations that join others, which come first.
pub(crate) const JOINS: [&str; 4] = [
    "evaluate/overfitting",
    "evaluate/study",
    "evaluate/learning_curves",
    "evaluate/walk_forward",
];

/// The suffixes of the names of interval bounds.
const INTERVALS: [&str; 2] = ["_low", "_high"];

/// The last value of each metric, by name.
pub(crate) type Values = BTreeMap<String, f64>;

/// The section of an evaluation stage; empty for other stages.
pub(super) fn section(stage: &StageRun, store: &Store) -> String {
    if !stage.kind.starts_with("evaluate/") {
        return String::new();
    }
    let mut out = format!("<h2>Evaluation: {}</h2>\n", escape(&stage.id));
    let Some(metrics) = figures::curves(stage, store) else {
        out.push_str("<p class=\"dim\">No metrics are stored for this stage.</p>\n");
        return out;
    };
    let values: Values = metrics
        .iter()
        .filter_map(|(name, points)| Some((name.clone(), points.last()?.1)))
        .collect();
    if stage.kind == REASONING {
        out.push_str(&sentences(&values));
        out.push_str(&blindness(&values));
        out.push_str(&beside(&values));
        out.push_str(&reasoning::files(stage, store));
        return out;
    }
    out.push_str(&search::overfitting(&values));
    if !values.contains_key("total_return") {
        let rows: Vec<_> = values
            .iter()
            .map(|(name, value)| vec![escape(name), shown(Some(*value))])
            .collect();
        out.push_str(&reasons(stage, store));
        out.push_str(&reasoning::files(stage, store));
        out.push_str(&table(&["measure", "value"], &rows));
        return out;
    }
    out.push_str(&verdict(&values));
    out.push_str(&rule(stage, store));
    out.push_str(&comparison(&values));
    out.push_str(&ablations(&values));
    out.push_str(&measures(&values));
    out.push_str(&folds(&values));
    out.push_str(&paths::section(stage, store));
    out.push_str(&shares(
        "Profit by cause, as a fraction of the capital",
        &values,
        "profit/",
    ));
    out.push_str(&spreads(&values));
    out.push_str(&regimes(&values));
    out
}

/// The best rule of what is seen, in words.
fn rule(stage: &StageRun, store: &Store) -> String {
    let artifact = metrics_artifact(stage, store);
    let rule = artifact.as_ref().and_then(finding::rule_in_words);
    rule.map_or(String::new(), |text| {
        format!("<p>Best rule of what is seen: {}.</p>\n", escape(text))
    })
}

fn metrics_artifact(stage: &StageRun, store: &Store) -> Option<Artifact> {
    let digest = stage.outputs.get("metrics")?;
    store.artifact(*digest).ok()
}

/// The verdict of a comparison, with the figures that led to it; empty for other stages.
fn reasons(stage: &StageRun, store: &Store) -> String {
    let Some(told) = metrics_artifact(stage, store).map(|artifact| artifact.meta["verdict"].clone()) else {
        return String::new();
    };
    let Some(verdict) = told["verdict"].as_str() else {
        return String::new();
    };
    let because = told["because"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|because| because.as_str());
    let items: String = because
        .map(|because| format!("<li>{}</li>\n", escape(because)))
        .collect();
    format!(
        "<p>Verdict: <strong>{}</strong></p>\n<ul>\n{items}</ul>\n",
        escape(verdict)
    )
}

fn shown(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => number(value),
        _ => "–".to_owned(),
    }
}

/// A figure with its confidence interval.
pub(crate) fn with_interval(values: &Values, name: &str) -> String {
    let of = |suffix: &str| {
        values
            .get(&format!("{name}{suffix}"))
            .copied()
            .filter(|x| x.is_finite())
    };
    match (of(""), of("_low"), of("_high")) {
        (Some(value), Some(low), Some(high)) => {
            format!(
                "{} <span class=\"dim\">[{}, {}]</span>",
                number(value),
                number(low),
                number(high)
            )
        }
        (value, ..) => shown(value),
    }
}

/// The names between a prefix and the next slash, each once.
pub(crate) fn names<'a>(values: &'a Values, prefix: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = values
        .keys()
        .filter_map(|name| name.strip_prefix(prefix)?.split_once('/').map(|(name, _)| name))
        .collect();
    names.dedup();
    names
}

/// The findings that readers must know before they read any figure.
fn verdict(values: &Values) -> String {
    let of = |name: &str| values.get(name).copied().filter(|x| x.is_finite());
    let mut out = String::new();
    if of("sharpe").is_none()
        && of("baseline/short_straddle/sharpe").is_none()
        && of("excess_return").is_none()
    {
        let steps = of("steps").unwrap_or(0.0);
        out.push_str(&format!(
            "<p class=\"verdict\"><strong>Too short to judge.</strong> {steps} steps: too few to annualise; \
            60 are needed.</p>\n"
        ));
    }
    if of("blind") == Some(1.0) {
        let why = match values.contains_key("ablation/other_world/loss_utility") {
            true => {
                "With the market features of another world the policy loses nothing: the 95 % interval of the \
                loss is not above zero."
            }
            false => "The environment shows the policy no market features.",
        };
        out.push_str(&format!("<p class=\"verdict\"><strong>Blind.</strong> {why}</p>\n"));
    }
    if let (Some(alone), Some(deflated), Some(trials)) =
        (of("probabilistic_sharpe"), of("deflated_sharpe"), of("trials"))
    {
        out.push_str(&format!(
            "<p>Its Sharpe ratio is above zero with a probability of {}; above that of the best {} without \
            skill, with {}.</p>\n",
            number(alone),
            of_trials(trials),
            number(deflated)
        ));
    }
    out.push_str(&sentences(values));
    out
}

/// The policy beside the best baseline, and the baselines that it beats.
fn sentences(values: &Values) -> String {
    let (Some(first), Some(beaten)) = (finding::first_sentence(values), finding::beaten(values)) else {
        return String::new();
    };
    let said = match beaten.as_slice() {
        [] => "no baseline".to_owned(),
        beaten => beaten.join(", "),
    };
    format!(
        "<p class=\"verdict\">{}.</p>\n<p>Beyond chance, by Holm's correction for the number of baselines, the policy \
        beats: {}.</p>\n",
        escape(&first),
        escape(&said)
    )
}

/// The result of the blindness test of a policy that reasons.
fn blindness(values: &Values) -> String {
    match values.get("blind") {
        Some(1.0) => "<p class=\"verdict\"><strong>Blind.</strong> With relations exchanged the policy \
            loses nothing: the 95 % interval of the loss is not above zero.</p>\n"
            .to_owned(),
        Some(_) => "<p>With relations exchanged the policy loses more than noise: it uses \
            them.</p>\n"
            .to_owned(),
        None => String::new(),
    }
}

/// Each figure of a policy with its interval, beside those of each baseline and each ablation.
fn beside(values: &Values) -> String {
    let columns: Vec<String> = ["baseline/", "ablation/"]
        .into_iter()
        .flat_map(|kind| names(values, kind).into_iter().map(move |name| format!("{kind}{name}")))
        .collect();
    let is_own = |name: &&String| !name.contains('/') && !INTERVALS.iter().any(|end| name.ends_with(end));
    let rows: Vec<_> = values
        .keys()
        .filter(is_own)
        .map(|name| {
            let mut row = vec![escape(&name.replace('_', " ")), with_interval(values, name)];
            row.extend(
                columns
                    .iter()
                    .map(|column| match values.get(&format!("{column}/{name}")) {
                        None => String::new(),
                        value => shown(value.copied()),
                    }),
            );
            row
        })
        .collect();
    let titles: Vec<String> = columns
        .iter()
        .map(|column| column.rsplit('/').next().unwrap_or_default().replace('_', " "))
        .collect();
    let mut head = vec!["", "policy"];
    head.extend(titles.iter().map(String::as_str));
    format!(
        "{}<p class=\"dim\">In brackets: 95 % intervals.</p>\n",
        table(&head, &rows)
    )
}

/// The policy and its baselines, with intervals.
fn comparison(values: &Values) -> String {
    let mut rows = Vec::new();
    let mut row = |title: &str, prefix: &str, versus: Option<&str>| {
        let of = |name: &str| with_interval(values, &format!("{prefix}{name}"));
        let difference = |name: &str| {
            versus.map_or(String::new(), |baseline| {
                with_interval(values, &format!("versus/{baseline}/{name}"))
            })
        };
        rows.push(vec![
            escape(&title.replace('_', " ")),
            of("excess_return"),
            of("volatility"),
            of("sharpe"),
            difference("excess_return"),
            difference("matched_excess_return"),
            difference("sharpe"),
            difference("utility"),
        ]);
    };
    row("policy", "", None);
    for mode in ["drawn", "greedy"] {
        if values.contains_key(&format!("{mode}/total_return")) {
            row(&format!("policy, {mode}"), &format!("{mode}/"), None);
        }
    }
    for baseline in names(values, "baseline/") {
        row(baseline, &format!("baseline/{baseline}/"), Some(baseline));
    }
    let head = [
        "a year, in excess of cash",
        "excess return",
        "volatility",
        "Sharpe",
        "policy less it",
        "at matched volatility",
        "Sharpe, difference",
        "utility, difference",
    ];
    format!(
        "<h3>Policy and baselines</h3>\n{}<p class=\"dim\">In brackets: 95 % intervals, of differences \
        paired.</p>\n",
        table(&head, &rows)
    )
}

fn ablations(values: &Values) -> String {
    let rows: Vec<_> = names(values, "ablation/")
        .into_iter()
        .map(|name| {
            let title = match name {
                "other_world" => "market features of another world",
                "shuffled_slate" => "slate shuffled",
                "no_memory" => "memory reset at each step",
                other => other,
            };
            let of = |what: &str| with_interval(values, &format!("ablation/{name}/{what}"));
            vec![
                escape(title),
                of("loss_excess_return"),
                of("loss_sharpe"),
                of("loss_utility"),
            ]
        })
        .collect();
    let head = ["it is shown", "loss of excess return", "of Sharpe", "of utility"];
    html::section("<h3>Does it use what it sees?</h3>", &head, &rows)
}

/// The number of trials in words: `of 200 trials`.
pub(super) fn of_trials(trials: f64) -> String {
    format!("of {trials} trial{}", if trials == 1.0 { "" } else { "s" })
}

fn measures(values: &Values) -> String {
    let baselines = names(values, "baseline/");
    let mut head = vec!["", "policy"];
    head.extend(&baselines);
    let rows: Vec<_> = MEASURES
        .iter()
        .filter(|name| values.contains_key(**name))
        .map(|name| {
            let trials = values.get("trials").filter(|_| *name == "deflated_sharpe");
            let label = match trials {
                Some(trials) => format!("deflated sharpe, {}", of_trials(*trials)),
                None => name.replace('_', " "),
            };
            let mut row = vec![label, shown(values.get(*name).copied())];
            row.extend(
                baselines
                    .iter()
                    .map(|baseline| shown(values.get(&format!("baseline/{baseline}/{name}")).copied())),
            );
            row
        })
        .collect();
    html::section("<h3>Risk</h3>", &head, &rows)
}

/// The folds of a walk-forward, each by itself.
fn folds(values: &Values) -> String {
    let rows: Vec<_> = names(values, "fold/")
        .into_iter()
        .map(|from| {
            let of = |what: &str| shown(values.get(&format!("fold/{from}/{what}")).copied());
            vec![
                escape(from),
                of("steps"),
                of("total_return"),
                of("excess_return"),
                of("sharpe"),
                of("max_drawdown"),
            ]
        })
        .collect();
    let head = [
        "fold from",
        "steps",
        "total return",
        "excess return",
        "Sharpe",
        "max drawdown",
    ];
    html::section("<h3>The policy by fold</h3>", &head, &rows)
}

fn shares(title: &str, values: &Values, prefix: &str) -> String {
    let rows: Vec<_> = values
        .iter()
        .filter_map(|(name, value)| Some(vec![escape(name.strip_prefix(prefix)?), shown(Some(*value))]))
        .collect();
    html::section(&format!("<h3>{}</h3>", escape(title)), &["cause", "profit"], &rows)
}

fn spreads(values: &Values) -> String {
    let rows: Vec<_> = [
        ("half_spread", "0.5"),
        ("", "1"),
        ("double_spread", "2"),
        ("triple_spread", "3"),
    ]
    .into_iter()
    .filter(|(name, _)| name.is_empty() || values.contains_key(&format!("{name}/total_return")))
    .map(|(name, times)| {
        let of = |what: &str| {
            let name = if name.is_empty() {
                what.to_owned()
            } else {
                format!("{name}/{what}")
            };
            shown(values.get(&name).copied())
        };
        vec![times.to_owned(), of("total_return"), of("excess_return"), of("sharpe")]
    })
    .collect();
    if rows.len() < 2 {
        return String::new();
    }
    let head = ["times the spread", "total return", "excess return", "Sharpe"];
    html::section("<h3>The same trades at other spreads</h3>", &head, &rows)
}

fn regimes(values: &Values) -> String {
    let rows: Vec<_> = names(values, "regime/")
        .into_iter()
        .map(|name| {
            let of = |what: &str| shown(values.get(&format!("regime/{name}/{what}")).copied());
            vec![escape(name), of("share"), of("excess_return"), of("volatility")]
        })
        .collect();
    let head = ["regime", "share of steps", "excess return", "volatility"];
    html::section("<h3>By regime</h3>", &head, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, f64)]) -> Values {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_blind_policy_is_called_so_first() {
        let behind = ("versus/cash/matched_excess_return_low", -0.01);
        let blind = verdict(&values(&[("excess_return", 0.1), ("blind", 1.0), behind]));
        assert!(blind.starts_with("<p class=\"verdict\"><strong>Blind."), "{blind}");
        let alone = verdict(&values(&[("excess_return", 0.1)]));
        assert_eq!(alone, "", "nothing is compared");
        let sees = verdict(&values(&[
            ("excess_return", 0.1),
            ("blind", 0.0),
            ("versus/cash/matched_excess_return", 0.1),
            ("versus/cash/matched_excess_return_low", 0.01),
            ("versus/cash/matched_excess_return_p", 0.01),
            ("versus/short_straddle/matched_excess_return", 0.02),
            ("versus/short_straddle/matched_excess_return_low", 0.001),
            ("versus/short_straddle/matched_excess_return_p", 0.06),
        ]));
        // An interval above zero is not enough: of several, one is so by chance.
        assert!(!sees.contains("Blind") && sees.contains("beats: cash."), "{sees}");
        assert!(
            sees.contains("short straddle +8.0 %: no difference beyond noise"),
            "{sees}"
        );
        let shown_nothing = verdict(&values(&[("blind", 1.0), ("sharpe", 1.0)]));
        assert!(shown_nothing.contains("no market features"), "{shown_nothing}");
        let deflated = values(&[
            ("sharpe", 1.0),
            ("probabilistic_sharpe", 0.97),
            ("deflated_sharpe", 0.4),
            ("trials", 200.0),
        ]);
        assert!(verdict(&deflated).contains("the best of 200 trials without skill, with 0.4"));
        assert!(measures(&deflated).contains("deflated sharpe, of 200 trials"));
        let short = verdict(&values(&[("total_return", 0.1), ("steps", 10.0)]));
        assert!(
            short.contains("10 steps: too few to annualise; 60 are needed"),
            "{short}"
        );
    }

    #[test]
    fn reasoning_stands_beside_baselines_and_the_blind_copy() {
        let of = values(&[
            ("accuracy", 0.9),
            ("accuracy_low", 0.8),
            ("accuracy_high", 0.95),
            ("baseline/random/accuracy", 0.7),
            ("versus/random/accuracy", 0.2),
            ("ablation/shuffled_relations/accuracy", 0.5),
            ("ablation/shuffled_relations/loss_accuracy", 0.4),
            ("policy/1/accuracy", 0.9),
            ("blind", 0.0),
        ]);
        let table = beside(&of);
        assert!(
            table.contains("[0.8, 0.95]") && table.contains("shuffled relations") && table.contains(">0.7<")
        );
        assert_eq!(table.matches("accuracy").count(), 1, "{table}");
        assert!(blindness(&of).contains("it uses them"));
        assert!(blindness(&values(&[("blind", 1.0)])).contains("Blind."));
    }

    #[test]
    fn folds_have_a_row_each() {
        let table = folds(&values(&[
            ("fold/2018-02-19/steps", 243.0),
            ("fold/2018-02-19/sharpe", 0.5),
            ("fold/2019-02-19/steps", 244.0),
        ]));
        assert!(table.contains("2018-02-19") && table.contains(">244<"), "{table}");
        assert_eq!(folds(&values(&[("sharpe", 1.0)])), "");
    }

    #[test]
    fn differences_have_intervals() {
        let table = comparison(&values(&[
            ("total_return", 0.2),
            ("sharpe", 1.0),
            ("sharpe_low", 0.5),
            ("sharpe_high", 1.5),
            ("baseline/cash/excess_return", 0.0),
            ("versus/cash/utility", 0.25),
            ("versus/cash/utility_low", 0.125),
            ("versus/cash/utility_high", 0.5),
        ]));
        assert!(table.contains("1 <span class=\"dim\">[0.5, 1.5]</span>"), "{table}");
        assert!(
            table.contains("0.25 <span class=\"dim\">[0.125, 0.5]</span>"),
            "{table}"
        );
    }
}
