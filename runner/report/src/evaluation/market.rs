//! The evaluation of a policy that trades: equity and the figures that decide, then baselines, use of what is
//! seen, risk and behaviour.

use super::strategies::{Strategy, of_first_screen, strategies, table};
use super::{Evaluation, Values, metrics_artifact, names, of_trials, with_interval};
use crate::figure_table::{self, Column, cell, together};
use crate::figures::{Unit, shown};
use crate::finding::{self, is_blind};
use crate::fold::Fold;
use crate::glossary::{title, worded};
use crate::html::escape;
use crate::paths::Paths;
use cache::Store;
use runner_history::StageRun;
use stages_core::LEAST_OBSERVATIONS;

/// The measures of risk and reward, in the order of the table.
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

/// The maximum number of strategies beside the policy in a table of measures.
const MOST_BESIDE: usize = 5;

pub(super) fn fill(this: &mut Evaluation, stage: &StageRun, store: &Store) {
    let values = &this.values;
    let all = strategies(values);
    let first = of_first_screen(values, &all);
    let paths = Paths::read(stage, store);
    let in_chart = |name: &str| {
        name == "policy"
            || first
                .iter()
                .any(|one| one.is_baseline() && one.names.iter().any(|own| own == name))
    };
    this.test = test(values, paths.as_ref());
    this.head = answer(values);
    if let Some(paths) = &paths {
        this.head.push_str(&paths.equity(&this.id, &in_chart));
    }
    this.head.push_str(&table(values, &first));
    this.head.push_str(&format!(
        "<p class=\"dim\">Small: {}.</p>\n",
        worded("interval", "95 % intervals")
    ));
    let artifact = metrics_artifact(stage, store);
    let rule = artifact.as_ref().and_then(finding::rule_in_words);
    this.folds = [
        folds(values),
        baselines(values, &all, rule, paths.as_ref()),
        uses(values),
        Some(risk(values, &all, paths.as_ref())),
        Some(behaviour(values, paths.as_ref())),
    ]
    .into_iter()
    .flatten()
    .collect();
}

/// The data of the test in words: `2 worlds, 2018-01-02 to 2020-08-06, 1,304 steps`.
fn test(values: &Values, paths: Option<&Paths>) -> String {
    let of = |name: &str, one: &str, several: &str| {
        let n = values.get(name).copied().filter(|n| *n > 0.0)?;
        let word = if n == 1.0 { one } else { several };
        Some(format!("{} {word}", shown(n, Unit::Count)))
    };
    let parts = [
        of("worlds", "world", "worlds"),
        paths.and_then(Paths::range),
        of("steps", "step", "steps"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The findings that readers must know before they read any figure.
fn answer(values: &Values) -> String {
    let of = |name: &str| values.get(name).copied().filter(|x| x.is_finite());
    let mut out = String::new();
    let unknown = |name: &str| of(name).is_none();
    if unknown("sharpe") && unknown("baseline/short_straddle/sharpe") && unknown("excess_return") {
        let steps = shown(of("steps").unwrap_or(0.0), Unit::Count);
        out.push_str(&format!(
            "<p class=\"verdict\"><strong>Too short to judge.</strong> {steps} steps: too few to annualise; \
            {LEAST_OBSERVATIONS} are needed.</p>\n"
        ));
    }
    match finding::answer(values) {
        Some(answer) => out.push_str(&format!("<p class=\"answer\">{}</p>\n", together(&answer))),
        None if !super::line(values).is_empty() => out.push_str(&format!(
            "<p class=\"answer\">The policy has {}.</p>\n",
            together(&super::line(values))
        )),
        None => {}
    }
    if is_blind(values) {
        out.push_str(&format!(
            "<p class=\"verdict\"><strong>It is {}.</strong> {}</p>\n",
            worded("blind", "blind"),
            why_blind(values)
        ));
    }
    out
}

fn why_blind(values: &Values) -> String {
    match values.contains_key("ablation/other_world/loss_utility") {
        true => "Shown the market of another world, it loses nothing beyond chance: what it earns does not come from \
            what it sees."
            .to_owned(),
        false => "The environment shows it no market features.".to_owned(),
    }
}

/// The policy beside all its baselines, with the differences.
fn baselines(values: &Values, all: &[Strategy], rule: Option<&str>, paths: Option<&Paths>) -> Option<Fold> {
    if !all.iter().any(Strategy::is_baseline) {
        return None;
    }
    let columns = [
        Column::words("excess_return", "excess return a year"),
        Column::words("difference", "difference to the policy"),
        Column::words("matched_excess_return", "difference at matched volatility"),
        Column::words("p", "p-value"),
        Column::words("sharpe", "difference in Sharpe ratio"),
        Column::words("utility", "difference in utility"),
    ];
    let columns: Vec<Column> = [Column::text("")].into_iter().chain(columns).collect();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|strategy| {
            let versus = |figure: &str| match strategy.is_baseline() {
                true => with_interval(values, &format!("versus/{}/{figure}", strategy.names[0])),
                false => String::new(),
            };
            vec![
                strategy.title(),
                strategy.shown(values, "excess_return"),
                versus("excess_return"),
                versus("matched_excess_return"),
                versus("matched_excess_return_p"),
                versus("sharpe"),
                versus("utility"),
            ]
        })
        .collect();
    let mut body = rule.map_or(String::new(), |text| {
        format!(
            "<p>{}: {}.</p>\n",
            worded("best_rule", "Best rule of what is seen"),
            escape(text)
        )
    });
    body.push_str(&figure_table::table(&columns, &rows));
    body.push_str(&format!(
        "<p class=\"dim\">A difference above zero: the policy is ahead. Small: {}, of differences paired. The p-value is \
        corrected for the number of baselines.</p>\n",
        worded("interval", "95 % intervals")
    ));
    body.push_str(&paths.map(Paths::all_equity).unwrap_or_default());
    let judged = finding::beside_baselines(values).unwrap_or_default();
    Some(Fold::new("Baselines", escape(&judged), body))
}

/// The policy's loss when it is shown something else.
fn uses(values: &Values) -> Option<Fold> {
    let other_world = "ablation/other_world/loss_utility";
    let summary = match (values.get("blind"), values.contains_key(other_world)) {
        (Some(1.0), false) => "no: the environment shows it no market features".to_owned(),
        (Some(blind), true) => format!(
            "{}: shown the market of another world, it loses {} of utility",
            if *blind == 1.0 { "no" } else { "yes" },
            with_interval(values, other_world)
        ),
        _ => String::new(),
    };
    let rows: Vec<Vec<String>> = names(values, "ablation/")
        .into_iter()
        .map(|name| {
            let of = |what: &str| with_interval(values, &format!("ablation/{name}/{what}"));
            let losses = ["loss_excess_return", "loss_sharpe", "loss_utility"].map(of);
            [worded(name, &title(name))].into_iter().chain(losses).collect()
        })
        .collect();
    if rows.is_empty() && summary.is_empty() {
        return None;
    }
    let columns = [
        Column::words("ablation", "it is shown"),
        Column::words("excess_return", "loss of excess return"),
        Column::words("sharpe", "loss of Sharpe ratio"),
        Column::words("utility", "loss of utility"),
    ];
    let body = match rows.is_empty() {
        true => format!("<p>{}</p>\n", why_blind(values)),
        false => figure_table::table(&columns, &rows),
    };
    Some(Fold::new("Does it use what it sees?", summary, body))
}

/// All measures of the policy and its baselines, and the worst drawdowns.
fn risk(values: &Values, all: &[Strategy], paths: Option<&Paths>) -> Fold {
    let of = |name: &str| values.get(name).copied().filter(|x| x.is_finite());
    let mut body = String::new();
    if let (Some(alone), Some(deflated), Some(trials)) =
        (of("probabilistic_sharpe"), of("deflated_sharpe"), of("trials"))
    {
        body.push_str(&format!(
            "<p>Its Sharpe ratio is above zero with a probability of {}; above that of the best {} without \
            skill, with {}.</p>\n",
            cell(alone, Unit::Probability),
            of_trials(trials),
            cell(deflated, Unit::Probability)
        ));
    }
    let (baselines, own): (Vec<&Strategy>, Vec<&Strategy>) = all.iter().partition(|one| one.is_baseline());
    let own = own.into_iter().filter(|one| one.prefix.is_empty());
    let own: Vec<&Strategy> = own.collect();
    // Without baselines there is one table.
    let chunks: Vec<&[&Strategy]> = match baselines.is_empty() {
        true => vec![&[]],
        false => baselines.chunks(MOST_BESIDE).collect(),
    };
    for chunk in chunks {
        let shown: Vec<&Strategy> = own.iter().chain(chunk).copied().collect();
        let mut columns = vec![Column::text("")];
        columns.extend(shown.iter().map(|one| match one.prefix.is_empty() {
            true => Column::text("policy"),
            false => Column::words(
                &one.names[0],
                &one.names.iter().map(|name| title(name)).collect::<Vec<_>>().join(", "),
            ),
        }));
        let rows: Vec<Vec<String>> = MEASURES
            .iter()
            .filter(|name| values.contains_key(**name))
            .map(|name| {
                let cells = shown.iter().map(|one| one.shown(values, name));
                std::iter::once(worded(name, &title(name))).chain(cells).collect()
            })
            .collect();
        if !rows.is_empty() {
            body.push_str(&figure_table::table(&columns, &rows));
        }
    }
    body.push_str(&paths.map(Paths::drawdowns).unwrap_or_default());
    body.push_str(&regimes(values));
    Fold::new(
        "Risk",
        facts(values, &["volatility", "max_drawdown", "time_under_water"]),
        body,
    )
}

/// Some of the policy's figures in a line, as HTML.
fn facts(values: &Values, names: &[&str]) -> String {
    let known = names
        .iter()
        .filter_map(|name| Some((name, values.get(*name).filter(|value| value.is_finite())?)));
    let words = known.map(|(name, value)| format!("{} {}", title(name), cell(*value, Unit::of(name))));
    words.collect::<Vec<_>>().join(", ")
}

/// Trades, exposure and profits of the policy.
fn behaviour(values: &Values, paths: Option<&Paths>) -> Fold {
    let mut body = paths.map(Paths::behaviour).unwrap_or_default();
    let profits: Vec<Vec<String>> = values
        .iter()
        .filter_map(|(name, value)| {
            let cause = name.strip_prefix("profit/")?;
            Some(vec![escape(&cause.replace('_', " ")), cell(*value, Unit::Percent)])
        })
        .collect();
    let columns = [Column::text("cause"), Column::text("profit, of the capital")];
    body.push_str(&figure_table::section("Profit by cause", &columns, &profits));
    body.push_str(&spreads(values));
    Fold::new("Behaviour", facts(values, &["turnover", "costs", "liquidations"]), body)
}

/// The folds of a walk-forward, each by itself.
fn folds(values: &Values) -> Option<Fold> {
    let figures = ["steps", "total_return", "excess_return", "sharpe", "max_drawdown"];
    let folds = names(values, "fold/");
    let of = |from: &str, name: &str| with_interval(values, &format!("fold/{from}/{name}"));
    let rows: Vec<Vec<String>> = folds
        .iter()
        .map(|from| {
            let cells = figures.map(|name| of(from, name));
            std::iter::once(escape(from)).chain(cells).collect()
        })
        .collect();
    let (first, last) = (folds.first()?, folds.last()?);
    let mut columns = vec![Column::text("fold from")];
    columns.extend(figures.map(Column::term));
    Some(Fold::new(
        "Folds",
        format!("{} folds, from {} to {}", folds.len(), escape(first), escape(last)),
        figure_table::table(&columns, &rows),
    ))
}

/// The policy's trades at other spreads.
fn spreads(values: &Values) -> String {
    let rows: Vec<Vec<String>> = [
        ("half_spread/", "half the spread"),
        ("", "the spread"),
        ("double_spread/", "twice the spread"),
        ("triple_spread/", "three times the spread"),
    ]
    .into_iter()
    .filter(|(prefix, _)| prefix.is_empty() || values.contains_key(&format!("{prefix}total_return")))
    .map(|(prefix, words)| {
        let cells = ["total_return", "excess_return", "sharpe"];
        let cells = cells.map(|name| with_interval(values, &format!("{prefix}{name}")));
        std::iter::once(words.to_owned()).chain(cells).collect()
    })
    .collect();
    if rows.len() < 2 {
        return String::new();
    }
    let mut columns = vec![Column::text("trades pay")];
    columns.extend(["total_return", "excess_return", "sharpe"].map(Column::term));
    figure_table::section("The same trades at other spreads", &columns, &rows)
}

fn regimes(values: &Values) -> String {
    let figures = ["share", "excess_return", "volatility"];
    let rows: Vec<Vec<String>> = names(values, "regime/")
        .into_iter()
        .map(|name| {
            let cells = figures.map(|figure| with_interval(values, &format!("regime/{name}/{figure}")));
            std::iter::once(escape(name)).chain(cells).collect()
        })
        .collect();
    let mut columns = vec![Column::text("regime")];
    columns.extend(figures.map(Column::term));
    figure_table::section("By regime", &columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, f64)]) -> Values {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn the_answer_says_what_is_beaten_and_whether_the_policy_sees() {
        let sees = values(&[
            ("excess_return", 0.1),
            ("blind", 0.0),
            ("versus/cash/matched_excess_return", 0.1),
            ("versus/cash/matched_excess_return_p", 0.01),
            ("versus/short_straddle/matched_excess_return", 0.02),
            ("versus/short_straddle/matched_excess_return_low", 0.001),
            ("versus/short_straddle/matched_excess_return_p", 0.06),
        ]);
        let html = answer(&sees);
        // An interval above zero is not enough: of several, one is so by chance.
        assert!(
            html.contains("of 2 baselines it beats cash beyond chance, and none beats it"),
            "{html}"
        );
        assert!(!html.contains("blind"), "{html}");
        let mut blind = sees;
        blind.insert("blind".to_owned(), 1.0);
        let html = answer(&blind);
        assert!(
            html.contains("The blind policy earns") && html.contains("shows it no market features"),
            "{html}"
        );
        blind.insert("ablation/other_world/loss_utility".to_owned(), 0.0);
        assert!(answer(&blind).contains("Shown the market of another world"), "{html}");
        assert!(
            uses(&blind)
                .unwrap()
                .summary
                .starts_with("no: shown the market of another world")
        );
    }

    #[test]
    fn few_steps_are_not_judged() {
        let short = answer(&values(&[("total_return", 0.1), ("steps", 10.0)]));
        assert!(
            short.contains("10 steps: too few to annualise; 60 are needed"),
            "{short}"
        );
        assert!(short.contains("The policy has return 10.0&nbsp;%."), "{short}");
    }

    #[test]
    fn risk_deflates_by_the_number_of_trials() {
        let deflated = values(&[
            ("total_return", 0.2),
            ("sharpe", 1.0),
            ("probabilistic_sharpe", 0.97),
            ("deflated_sharpe", 0.4),
            ("trials", 200.0),
        ]);
        let fold = risk(&deflated, &strategies(&deflated), None);
        assert!(
            fold.body.contains("the best of 200 trials without skill, with 0.400"),
            "{}",
            fold.body
        );
        let many: Vec<(String, f64)> = (0..7)
            .map(|i| (format!("baseline/b{i}/sharpe"), f64::from(i)))
            .collect();
        let mut many: Values = many.into_iter().collect();
        many.extend(deflated);
        let fold = risk(&many, &strategies(&many), None);
        assert_eq!(fold.body.matches("<table").count(), 2, "five baselines a table");
    }

    #[test]
    fn folds_have_a_row_each() {
        let fold = folds(&values(&[
            ("fold/2018-02-19/steps", 243.0),
            ("fold/2018-02-19/sharpe", 0.5),
            ("fold/2019-02-19/steps", 244.0),
        ]))
        .unwrap();
        assert_eq!(fold.summary, "2 folds, from 2018-02-19 to 2019-02-19");
        assert!(
            fold.body.contains(">244<") && fold.body.contains(">0.500<"),
            "{}",
            fold.body
        );
        assert!(folds(&values(&[("sharpe", 1.0)])).is_none());
    }

    #[test]
    fn differences_have_intervals() {
        let of = values(&[
            ("total_return", 0.2),
            ("baseline/cash/total_return", 0.0),
            ("versus/cash/utility", 0.25),
            ("versus/cash/utility_low", 0.125),
            ("versus/cash/utility_high", 0.5),
        ]);
        let fold = baselines(&of, &strategies(&of), Some("a <rule>"), None).unwrap();
        assert!(
            fold.body
                .contains("25.0&nbsp;% <span class=\"dim\">[12.5, 50.0]</span>"),
            "{}",
            fold.body
        );
        assert!(fold.body.contains("a &lt;rule&gt;"));
    }
}
