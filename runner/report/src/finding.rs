//! The finding of an evaluation in a sentence: the policy beside the best baseline, which may be better.

use crate::evaluation::{Values, names};
use cache::{Artifact, Store};
use serde_json::Value;

/// The probability by chance below which a difference counts, corrected for the number of baselines.
const CHANCE: f64 = 0.05;

/// The file beside metrics that is a table for people.
pub(crate) const TABLE: &str = "table.md";

/// The suffix of the metric whose difference from each baseline is tested.
const P: &str = "_p";

/// Baselines that know what no policy is shown: hidden states, or the model behind the prices.
const BOUNDS: [&str; 3] = ["oracle", "bound", "filter"];

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

/// The policy beside the best baseline that is no bound, with the p-value of their difference, and beside the
/// best rule of what is seen where that is another one.
pub(crate) fn first_sentence(values: &Values) -> Option<String> {
    let (figure, baselines) = beside(values)?;
    let is_market = figure == "matched_excess_return";
    let ours = *values.get(if is_market { "excess_return" } else { figure.as_str() })?;
    let known = baselines.iter().filter(|baseline| !BOUNDS.contains(&baseline.name));
    let best = known.min_by(|a, b| a.less.total_cmp(&b.less))?;
    let seen = baselines
        .iter()
        .find(|baseline| baseline.name == SEEN && best.name != SEEN);
    let shown = |value: f64| match is_market {
        true => format!("{:+.1} %", 100.0 * value),
        false => format!("{value:.3}"),
    };
    let judged = match best.p < CHANCE {
        true if best.less < 0.0 => "better than the policy",
        true => "the policy is better",
        false => "no difference beyond noise",
    };
    Some(format!(
        "{}policy {}{}; best baseline{}: {} {}{}: {judged} (p {:.3}, corrected for {})",
        if values.get("blind") == Some(&1.0) {
            "blind "
        } else {
            ""
        },
        if is_market {
            String::new()
        } else {
            format!("{} ", figure.replace('_', " "))
        },
        if is_market {
            format!("{} a year over cash", shown(ours))
        } else {
            shown(ours)
        },
        if is_market { ", at its volatility" } else { "" },
        words(best.name),
        shown(ours - best.less),
        seen.map_or(String::new(), |seen| format!(
            " ({} {})",
            words(SEEN),
            shown(ours - seen.less)
        )),
        best.p,
        match baselines.len() {
            1 => "one baseline".to_owned(),
            several => format!("{several} baselines"),
        }
    ))
}

/// The baselines that the policy beats beyond chance.
pub(crate) fn beaten(values: &Values) -> Option<Vec<String>> {
    let (_, baselines) = beside(values)?;
    let ahead = baselines
        .iter()
        .filter(|baseline| baseline.less > 0.0 && baseline.p < CHANCE);
    Some(ahead.map(|baseline| words(baseline.name)).collect())
}

fn words(name: &str) -> String {
    match name {
        SEEN => "best rule of what is seen".to_owned(),
        other => other.replace('_', " "),
    }
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
    let sentence = || first_sentence(&values).or_else(|| beside_optimal(&values));
    let rule = rule_in_words(artifact).map_or(String::new(), |text| format!("{}: {text}\n", words(SEEN)));
    let sentence = || sentence().map(|sentence| format!("{sentence}\n{rule}"));
    table_of(store, artifact).or_else(sentence).unwrap_or_default()
}

/// The best rule of what is seen, in words.
pub(crate) fn rule_in_words(artifact: &Artifact) -> Option<&str> {
    let mut rules = artifact.meta["rules"].as_array()?.iter();
    rules.find(|rule| rule["name"] == SEEN)?["text"].as_str()
}

/// The policy beside the optimal one, where that is known.
fn beside_optimal(values: &Values) -> Option<String> {
    let (ours, optimal) = (values.get("episodic_return")?, values.get("optimal/episodic_return")?);
    Some(format!("policy {ours:.3} an episode; the optimal policy {optimal:.3}"))
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

    /// The best baseline stands beside the policy, also where it is better; bounds do not, though they count
    /// among what was tested.
    #[test]
    fn the_baseline_that_hurts_is_named() {
        let market = |less: f64, p: f64, blind: f64| {
            values(&[
                ("excess_return", 0.104),
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
            first_sentence(&worse).unwrap(),
            "policy +10.4 % a year over cash; best baseline, at its volatility: best rule of what is seen +21.0 %: \
             better than the policy (p 0.010, corrected for 3 baselines)"
        );
        assert_eq!(beaten(&worse).unwrap(), ["cash"]);
        let even = market(0.02, 0.2, 1.0);
        let said = first_sentence(&even).unwrap();
        assert!(
            said.starts_with("blind policy") && said.contains("+8.4 %: no difference beyond noise"),
            "{said}"
        );
        assert_eq!(beaten(&even).unwrap(), ["cash"]);
        let ahead = market(0.05, 0.01, 0.0);
        assert!(first_sentence(&ahead).unwrap().contains("+5.4 %: the policy is better"));
        assert_eq!(first_sentence(&values(&[("excess_return", 0.1)])), None);
    }

    /// The rule of what is seen is named where another baseline is the best, too; what knows the model is not
    /// the best baseline.
    #[test]
    fn the_rule_of_what_is_seen_is_always_named() {
        let said = first_sentence(&values(&[
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
            "policy +2.0 % a year over cash; best baseline, at its volatility: short straddle +6.0 % (best rule of \
             what is seen +5.0 %): no difference beyond noise (p 0.100, corrected for 3 baselines)"
        );
    }

    /// A policy that reasons beside breadth-first search, by the figure that is tested.
    #[test]
    fn reasoning_is_compared_by_its_main_figure() {
        let said = first_sentence(&values(&[
            ("mrr", 0.912),
            ("versus/mined_rules/mrr", -0.01),
            ("versus/mined_rules/mrr_p", 0.3),
            ("versus/breadth_first/mrr", -0.032),
            ("versus/breadth_first/mrr_p", 0.02),
            ("versus/breadth_first/hits_1", 0.5),
        ]));
        assert_eq!(
            said.unwrap(),
            "policy mrr 0.912; best baseline: breadth first 0.944: better than the policy (p 0.020, corrected for 2 \
             baselines)"
        );
    }
}
