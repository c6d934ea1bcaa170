//! The metrics of `evaluate/overfitting` in words: whether a search's winner is more than luck.

use crate::evaluation::{Values, with_interval};
use crate::figure_table::{Column, cell, table};
use crate::figures::Unit;

/// The probability from which on a deflated Sharpe ratio is beyond chance.
const BEYOND_CHANCE: f64 = 0.95;

/// The words, and the figures of selection, fresh seeds and test; empty without the metrics.
pub(crate) fn section(values: &Values) -> String {
    let of = |name: &str| values.get(name).copied().filter(|value| value.is_finite());
    let Some(pbo) = of("pbo") else {
        return String::new();
    };
    let trials = of("trials").unwrap_or(0.0);
    let deflated = of("deflated_sharpe").map(|value| (value, "test"));
    let deflated = deflated.or_else(|| Some((of("selection/deflated_sharpe")?, "validation")));
    let mut words = Vec::new();
    let is_luck = pbo > 0.5 || deflated.is_some_and(|(value, _)| value < BEYOND_CHANCE);
    let verdict = match is_luck {
        true => "Not beyond chance.",
        false => "Beyond chance.",
    };
    words.push(format!(
        "The probability of backtest overfitting is {}: of {} ways to split the validation data in two halves, in {:.0} % \
        the trial that is best in one half is no better than the median in the other.",
        cell(pbo, Unit::Percent),
        of("combinations").map_or("all".to_owned(), |n| cell(n, Unit::Count)),
        pbo * 100.0
    ));
    if let Some((value, data)) = deflated {
        words.push(format!(
            "The deflated Sharpe ratio is {}: the probability that the winner's Sharpe ratio on {data} data is above that \
            of the best of {trials:.0} trials without skill. It is beyond chance from {BEYOND_CHANCE} on.",
            cell(value, Unit::Probability)
        ));
    }
    if let (Some(selection), Some(none)) = (of("selection/utility"), of("no_skill/utility")) {
        words.push(format!(
            "The best of {trials:.0} trials without skill is expected at a utility of {}; the winner has {}.",
            cell(none, Unit::Percent),
            cell(selection, Unit::Percent)
        ));
    }
    if let (Some(seeds), Some(data), Some(test)) =
        (of("gap/seeds/utility"), of("gap/data/utility"), of("gap/test/utility"))
    {
        words.push(format!(
            "From selection to test the utility loses {}: {} with fresh seeds on the same data, {} with new \
            data.",
            cell(test, Unit::Percent),
            cell(seeds, Unit::Percent),
            cell(data, Unit::Percent)
        ));
    }
    if let (Some(years), Some(needed)) = (of("selection/years"), of("minimum_backtest_years")) {
        let enough = if years >= needed { "enough" } else { "too few" };
        words.push(format!(
            "The validation data have {} years, {enough} for {trials:.0} trials: with less than {} years the best \
            of as many without skill would be expected to do as well.",
            cell(years, Unit::Plain),
            cell(needed, Unit::Plain)
        ));
    }
    let items: String = words.iter().map(|line| format!("<li>{line}</li>\n")).collect();
    let row = |(title, prefix): (&str, &str)| {
        let present = of(&format!("{prefix}/utility")).or_else(|| of(&format!("{prefix}/sharpe")));
        present.map(|_| {
            vec![
                title.to_owned(),
                with_interval(values, &format!("{prefix}/utility")),
                with_interval(values, &format!("{prefix}/sharpe")),
            ]
        })
    };
    let rows: Vec<Vec<String>> = [
        ("selection: the search's seeds on validation data", "selection"),
        ("fresh seeds on validation data", "fresh"),
        ("fresh seeds on test data", "test"),
        ("expected best without skill", "no_skill"),
    ]
    .into_iter()
    .filter_map(row)
    .collect();
    format!(
        "<div class=\"verdict\"><strong>{verdict}</strong>\n<ul>\n{items}</ul></div>\n{}<p class=\"dim\">In \
        brackets: 95 % intervals.</p>\n",
        table(
            &[
                Column::text("the winner, a year"),
                Column::term("utility"),
                Column::term("sharpe")
            ],
            &rows
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pbo: f64, deflated: f64) -> Values {
        [
            ("pbo", pbo),
            ("combinations", 12_870.0),
            ("trials", 64.0),
            ("deflated_sharpe", deflated),
            ("selection/utility", 0.12),
            ("selection/utility_low", 0.02),
            ("selection/utility_high", 0.22),
            ("no_skill/utility", 0.08),
            ("gap/seeds/utility", 0.03),
            ("gap/data/utility", 0.05),
            ("gap/test/utility", 0.08),
            ("selection/years", 2.0),
            ("minimum_backtest_years", 3.5),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    #[test]
    fn a_winner_by_luck_is_called_so() {
        let html = section(&values(0.62, 0.4));
        assert!(html.contains("<strong>Not beyond chance.</strong>"), "{html}");
        assert!(html.contains("in 62 % the trial that is best in one half"), "{html}");
        assert!(html.contains(
            "loses 8.00&nbsp;%: 3.00&nbsp;% with fresh seeds on the same data, 5.00&nbsp;% with new data"
        ));
        assert!(html.contains("2 years, too few for 64 trials"));
        assert!(html.contains("12.0&nbsp;% <span class=\"dim\">[2.0, 22.0]</span>"));
        // Either figure alone is enough.
        assert!(section(&values(0.62, 0.99)).contains("Not beyond chance"));
        assert!(section(&values(0.02, 0.94)).contains("Not beyond chance"));
        assert!(section(&values(0.02, 0.99)).contains("<strong>Beyond chance.</strong>"));
        assert_eq!(section(&Values::new()), "");
    }
}
