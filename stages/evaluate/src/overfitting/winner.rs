//! The chosen trial of a search: its figures on validation and test data, and what they owe to the search.

use super::returns::{CommonReturns, Seeds};
use super::{Figures, OverfittingMeasure, gap};
use crate::output::Metrics;
use crate::panel::{Estimate, Panel, Sums};
use crate::performance::mean_and_deviation;
use crate::trials::{minimum_backtest_years, normal_maximum, probabilistic_sharpe};

/// The backtests of the chosen trial on some data.
pub(super) struct Side<'a> {
    pub data: &'a CommonReturns,
    pub panel: &'a Panel,
    /// The number of the strategy in the panel.
    pub at: usize,
    pub seeds: Seeds,
}

impl Side<'_> {
    /// The half width of the interval of a measure over seeds.
    fn error(&self, figures: &Figures<'_>, measure: OverfittingMeasure) -> f64 {
        let one = |seed: usize| figures.annual(measure, self.data, &self.data.sums(&(seed..seed + 1)));
        gap::over_seeds(&self.seeds.clone().map(one).collect::<Vec<f64>>())
    }

    /// A measure a year, with its interval over data and seeds.
    fn estimate(&self, figures: &Figures<'_>, measure: OverfittingMeasure) -> Estimate {
        let of_data = self.panel.estimate(|s| figures.annual(measure, self.data, &s[self.at]));
        gap::with_error(of_data, self.error(figures, measure))
    }
}

/// The chosen trial: by the search's seeds and by fresh ones, both in the same panel, and on test data.
pub(super) struct Winner<'a> {
    pub selection: Side<'a>,
    pub fresh: Option<Side<'a>>,
    pub test: Option<Side<'a>>,
}

impl Winner<'_> {
    /// Adds the measures of the chosen trial, and what they lose from selection to test.
    pub(super) fn add_gaps(&self, figures: &Figures<'_>, metrics: &mut Metrics) {
        for measure in [OverfittingMeasure::Utility, OverfittingMeasure::Sharpe] {
            let name = measure.name();
            let estimate = |side: &Option<Side<'_>>| Some(side.as_ref()?.estimate(figures, measure));
            let selection = self.selection.estimate(figures, measure);
            let (fresh, test) = (estimate(&self.fresh), estimate(&self.test));
            let seeds = self.fresh.as_ref().map(|fresh| {
                let of = |sums: &Sums| figures.annual(measure, fresh.data, sums);
                let paired = fresh.panel.estimate(|s| of(&s[self.selection.at]) - of(&s[fresh.at]));
                let errors = [&self.selection, fresh].map(|side| side.error(figures, measure));
                gap::with_error(paired, libm::hypot(errors[0], errors[1]))
            });
            for (what, found) in [
                ("selection", Some(selection)),
                ("fresh", fresh),
                ("test", test),
                ("gap/seeds", seeds),
                (
                    "gap/data",
                    fresh.zip(test).map(|(fresh, test)| gap::difference(fresh, test)),
                ),
                ("gap/test", test.map(|test| gap::difference(selection, test))),
            ] {
                if let Some(found) = found {
                    metrics.estimate(&format!("{what}/{name}"), found);
                }
            }
        }
    }

    /// Adds the figures that rest on the number of trials made and on the spread of those given, whose sums
    /// are `trials`.
    pub(super) fn add_ratios(
        &self,
        figures: &Figures<'_>,
        trials: &[Sums],
        made: usize,
        metrics: &mut Metrics,
    ) {
        let Side { data, seeds, .. } = &self.selection;
        for measure in [OverfittingMeasure::Utility, OverfittingMeasure::Sharpe] {
            let all: Vec<f64> = trials.iter().map(|sums| figures.annual(measure, data, sums)).collect();
            let expected = mean_and_deviation(&all).1 * normal_maximum(made);
            metrics.add(format!("no_skill/{}", measure.name()), expected);
        }
        // Per step, as in both papers.
        let deviation = mean_and_deviation(&trials.iter().map(Sums::sharpe).collect::<Vec<f64>>()).1;
        metrics.add("trials_sharpe_std", data.annual.sqrt() * deviation);
        let benchmark = deviation * normal_maximum(made);
        let (pooled, n) = data.pooled(seeds);
        metrics.add("selection/deflated_sharpe", probabilistic_sharpe(&pooled, n, benchmark));
        metrics.add("selection/years", n / data.annual);
        let sharpe = figures.annual(OverfittingMeasure::Sharpe, data, &data.sums(seeds));
        metrics.add("minimum_backtest_years", minimum_backtest_years(made, sharpe));
        if let Some(Side { data, seeds, .. }) = &self.test {
            let (pooled, n) = data.pooled(seeds);
            metrics.add("deflated_sharpe", probabilistic_sharpe(&pooled, n, benchmark));
            metrics.add("probabilistic_sharpe", probabilistic_sharpe(&pooled, n, 0.0));
            metrics.add("independent_steps", n);
        }
    }
}
