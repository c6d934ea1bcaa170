//! The stage kind `evaluate/overfitting`: how much of what a search found is owed to the search.

mod cscv;
mod gap;
mod returns;
mod winner;

use crate::output::{self, Metrics};
use crate::panel::{Panel, Sums};
use crate::{risk_aversion, trajectory};
use cscv::{Combination, CrossValidation};
use returns::{CommonReturns, Seeds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{
    ConfigProblem, Context, Input, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};
use std::fmt::Write as _;
use winner::{Side, Winner};

stages_core::settings! {
    /// Configuration of `evaluate/overfitting`.
    pub struct OverfittingConfig {
        /// The number of trials that were really made, if more than are given: those that were stopped early,
        /// and those of earlier searches on the same data.
        pub trials: usize = 1,
        /// The number of backtests of a trial, one for each of its seeds, which follow one another in the
        /// list.
        pub seeds: usize = 1,
        /// The number of the trial that was chosen, in the order of the list, from 0; without it, the best by
        /// `measure`.
        pub best: Option<usize> = None,
        /// The measure by which trials are compared.
        pub measure: OverfittingMeasure = OverfittingMeasure::Utility,
        /// The number of groups into which the steps are split for cross-validation, even: all choices of
        /// half of them are taken, 12,870 of 16.
        pub groups: usize = 16,
        /// The risk aversion of the mean-variance utility; without it, that of the backtests.
        pub risk_aversion: Option<f64> = None,
        /// Seed of the bootstrap.
        pub seed: u64 = 0,
        /// Resamples of the bootstrap.
        pub bootstrap_draws: usize = 1000,
        /// Mean length of the bootstrap's blocks, in steps.
        pub bootstrap_block: f64 = 10.0,
    }
}

/// A measure by which trials are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverfittingMeasure {
    /// The mean-variance utility.
    Utility,
    /// The Sharpe ratio, as in the paper.
    Sharpe,
}

/// The most and the fewest groups: all choices of half of 20 are 184,756, of 4 they are 6.
const GROUPS: std::ops::RangeInclusive<usize> = 4..=20;

/// The fewest worlds that are split into groups of whole worlds.
const LEAST_WORLDS: usize = 8;

/// The file of the combinations beside the metrics.
const COMBINATIONS: &str = "combinations.csv";

/// The stage kind `evaluate/overfitting`.
///
/// Of validation data, `selection/…` are the chosen trial's figures with the seeds of the search and
/// `fresh/…` with seeds that it did not use; `test/…` are those of test data. Its metrics:
///
/// | metric | is |
/// | --- | --- |
/// | `pbo`, `pbo_over_dates`, `pbo_over_worlds` | the probability of backtest overfitting: the larger of the two, and each |
/// | `combinations`, `groups`, `degradation`, `degradation_r2`, `probability_of_loss` | of the larger one |
/// | `trials`, `trials_given`, `seeds` | trials made, trials at the input, seeds of each |
/// | `selection/`, `fresh/`, `test/` `utility`, `sharpe` | with `_low`, `_high` |
/// | `gap/seeds/`, `gap/data/`, `gap/test/` `utility`, `sharpe` | selection less fresh, fresh less test, selection less test, with `_low`, `_high` |
/// | `no_skill/utility`, `no_skill/sharpe` | the expected best of `trials` without skill, beside `selection/…` |
/// | `selection/deflated_sharpe`, `deflated_sharpe`, `probabilistic_sharpe` | on validation data; on test data |
/// | `trials_sharpe_std` | the deviation of the trials' Sharpe ratios |
/// | `selection/years`, `minimum_backtest_years` | the length of the validation data, and the one needed |
pub struct Overfitting;

impl StageKind for Overfitting {
    type Config = OverfittingConfig;
    const NAME: &'static str = "evaluate/overfitting";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "the winner of a search: the probability of backtest overfitting over its trials, the \
        deflated Sharpe ratio, and the gap between selection and test";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::list("trials", PortType::Trajectory).doc(
                "the backtests of all trials on validation data, those of a trial's seeds one after another",
            ),
            InputPort::optional_list("selected", PortType::Trajectory).doc(
                "the backtests on validation data of the chosen trial with seeds that the search did not use",
            ),
            InputPort::optional_list("test", PortType::Trajectory)
                .doc("the backtests of the chosen trial on test data"),
        ],
        outputs: &[OutputPort::new("metrics", PortType::Metrics)
            .doc("the figures, the table as Markdown, and the combinations of the cross-validation as CSV")],
    };

    fn check(&self, config: &OverfittingConfig, plan: &PlanContext) -> Planned {
        for (field, value) in [
            ("trials", config.trials),
            ("seeds", config.seeds),
            ("bootstrap_draws", config.bootstrap_draws),
        ] {
            ConfigProblem::new(field, "must be at least 1")
                .hint("the defaults are 1, 1 and 1000")
                .when(value == 0)?;
        }
        ConfigProblem::new("groups", "must be even, from 4 to 20")
            .hint("the default is 16")
            .when(!GROUPS.contains(&config.groups) || config.groups % 2 == 1)?;
        ConfigProblem::new("bootstrap_block", "must be at least 1 step")
            .hint("the default is 10")
            .when(!(1.0..=1e9).contains(&config.bootstrap_block))?;
        risk_aversion::validate(config.risk_aversion)?;
        let given = plan.inputs.get("trials").map_or(0, Vec::len);
        let trials = given / config.seeds;
        ConfigProblem::new(
            "seeds",
            format!(
                "{given} backtests of {} seeds each are no whole number of trials",
                config.seeds
            ),
        )
        .hint("give as many backtests of each trial, one after another")
        .when(!given.is_multiple_of(config.seeds))?;
        ConfigProblem::new(
            "seeds",
            format!("{given} backtests are of a single trial: nothing was chosen"),
        )
        .hint("`trials` takes those of all trials, and `seeds` says how many each has")
        .when(trials < 2)?;
        ConfigProblem::new(
            "best",
            format!("there are {trials} trials, from 0 to {}", trials.saturating_sub(1)),
        )
        .hint("leave it out: the best by `measure` is taken")
        .when(config.best.is_some_and(|best| best >= trials))?;
        Ok(Self::PORTS.provided())
    }

    fn reads_test(&self, _: &OverfittingConfig) -> bool {
        true
    }

    fn run(&self, config: &OverfittingConfig, context: &Context) -> Result<Outputs, StageError> {
        let [trials, fresh, test] = ["trials", "selected", "test"].map(|port| context.list(port));
        check_data(context, trials, fresh, test)?;
        let backtests: Vec<&Input> = trials.iter().chain(fresh).collect();
        let artifacts = backtests.iter().copied().chain(test).map(|input| &input.artifact);
        let figures = Figures {
            config,
            risk_aversion: risk_aversion::of_backtests(context, config.risk_aversion, artifacts)?,
        };
        context.progress(0, None, format!("reading {} backtests", backtests.len()));
        let data = CommonReturns::read(context, &backtests)?;
        let given: Vec<Seeds> = (0..trials.len() / config.seeds)
            .map(|trial| trial * config.seeds..(trial + 1) * config.seeds)
            .collect();
        let made = config.trials.max(given.len());
        let mut metrics = Metrics::default();
        context.progress(0, None, "cross-validating the choice");
        let (found, groups) = figures.cross_validated(&data, &given, &mut metrics)?;
        metrics.add("combinations", found.combinations.len() as f64);
        metrics.add("groups", groups as f64);
        metrics.add("degradation", found.slope);
        metrics.add("degradation_r2", found.r2);
        metrics.add("probability_of_loss", found.loss);
        for (name, count) in [
            ("trials", made),
            ("trials_given", given.len()),
            ("seeds", config.seeds),
            ("steps", data.steps),
            ("steps_left_out", data.left_out),
            ("worlds", data.worlds),
        ] {
            metrics.add(name, count as f64);
        }
        metrics.add("risk_aversion", figures.risk_aversion);

        let sums: Vec<Sums> = given.iter().map(|seeds| data.sums(seeds)).collect();
        let best = config.best.unwrap_or_else(|| figures.best(&sums));
        let Some(selected) = given.get(best) else {
            return Err(StageError::new(format!("there is no trial {best} of {}", given.len()))
                .hint("leave `best` out: the best by `measure` is taken"));
        };
        metrics.add("best", best as f64);
        let fresh = trials.len()..backtests.len();
        let panel = figures.panel(&data, &[selected.clone(), fresh.clone()]);
        let side = |at: usize, seeds: &Seeds| Side {
            data: &data,
            panel: &panel,
            at,
            seeds: seeds.clone(),
        };
        let tested = match test {
            [] => None,
            test => Some(CommonReturns::read(context, &test.iter().collect::<Vec<_>>())?),
        };
        let tested = tested.map(|data| (figures.panel(&data, std::slice::from_ref(&(0..test.len()))), data));
        let winner = Winner {
            selection: side(0, selected),
            fresh: (!fresh.is_empty()).then(|| side(1, &fresh)),
            test: tested.as_ref().map(|(panel, data)| Side {
                data,
                panel,
                at: 0,
                seeds: 0..test.len(),
            }),
        };
        winner.add_gaps(&figures, &mut metrics);
        winner.add_ratios(&figures, &sums, made, &mut metrics);
        if found.combinations.is_empty() {
            context.warn("all trials have the same returns: nothing was chosen", None);
        }
        let (table, combinations) = (markdown(&metrics, config), figures.csv(&data, &found.combinations));
        output::store_metrics_with(
            context,
            metrics,
            &[(output::TABLE, &table), (COMBINATIONS, &combinations)],
        )
    }
}

/// Refuses backtests of other data than their port is for.
fn check_data(
    context: &Context,
    trials: &[Input],
    fresh: &[Input],
    test: &[Input],
) -> Result<(), StageError> {
    let validates = |input: &Input| trajectory::is_of_validation(&input.artifact);
    let on_validation = trials.iter().filter(|input| validates(input)).count();
    StageError::new(
        "some of the backtests at `trials` and `selected` are of validation data, others of test data",
    )
    .hint("evaluate all with `on: validation`")
    .when(
        on_validation != 0 && on_validation != trials.len()
            || fresh.iter().any(|input| validates(input) != (on_validation > 0)),
    )?;
    StageError::new("the backtests at `test` are of validation data")
        .hint("evaluate the chosen trial with `on: test`")
        .when(test.iter().any(validates))?;
    if on_validation == 0 {
        context.warn(
            "the trials were backtested on test data: what is chosen by them has seen it",
            Some("choose by backtests with `on: validation`"),
        );
    }
    Ok(())
}

impl OverfittingMeasure {
    fn name(self) -> &'static str {
        match self {
            Self::Utility => "utility",
            Self::Sharpe => "sharpe",
        }
    }
}

/// The figures by which trials are compared.
struct Figures<'a> {
    config: &'a OverfittingConfig,
    risk_aversion: f64,
}

impl Figures<'_> {
    /// A measure per step.
    fn of(&self, measure: OverfittingMeasure, sums: &Sums) -> f64 {
        match measure {
            OverfittingMeasure::Utility => sums.utility(self.risk_aversion),
            OverfittingMeasure::Sharpe => sums.sharpe(),
        }
    }

    /// The factor that makes a measure per step one a year.
    fn a_year(measure: OverfittingMeasure, data: &CommonReturns) -> f64 {
        match measure {
            OverfittingMeasure::Utility => data.annual,
            OverfittingMeasure::Sharpe => data.annual.sqrt(),
        }
    }

    /// A measure a year.
    fn annual(&self, measure: OverfittingMeasure, data: &CommonReturns, sums: &Sums) -> f64 {
        Self::a_year(measure, data) * self.of(measure, sums)
    }

    /// The first of the best trials.
    fn best(&self, trials: &[Sums]) -> usize {
        let measured: Vec<f64> = trials.iter().map(|sums| self.of(self.config.measure, sums)).collect();
        (1..measured.len()).fold(
            0,
            |best, trial| if measured[trial] > measured[best] { trial } else { best },
        )
    }

    fn panel(&self, data: &CommonReturns, trials: &[Seeds]) -> Panel {
        let config = self.config;
        data.panel(trials, config.bootstrap_block, config.bootstrap_draws, config.seed)
    }

    /// Cross-validates the choice over blocks of dates and, where there are many worlds, over worlds: of
    /// worlds that move together those are no new data, and of worlds that differ for good dates are none.
    /// Returns the larger probability's outcome and its number of groups.
    fn cross_validated(
        &self,
        data: &CommonReturns,
        trials: &[Seeds],
        metrics: &mut Metrics,
    ) -> Result<(CrossValidation, usize), StageError> {
        let groups = self.config.groups;
        let dates = data.dates();
        StageError::new(format!(
            "{dates} dates are too few for {groups} groups: each has at least 2"
        ))
        .hint("hold more data out for validation, or lower `groups`")
        .when(dates < 2 * groups)?;
        let of = |cells: &[Vec<Sums>]| CrossValidation::of(cells, &|sums| self.of(self.config.measure, sums));
        let by_dates = of(&data.by_dates(trials, groups));
        if data.worlds < LEAST_WORLDS {
            metrics.add("pbo", by_dates.probability);
            return Ok((by_dates, groups));
        }
        let fewer = groups.min(data.worlds - data.worlds % 2);
        let by_worlds = of(&data.by_worlds(trials, fewer));
        let (dates, worlds) = (by_dates.probability, by_worlds.probability);
        metrics.add("pbo", dates.max(worlds));
        metrics.add("pbo_over_dates", dates);
        metrics.add("pbo_over_worlds", worlds);
        Ok(if worlds > dates {
            (by_worlds, fewer)
        } else {
            (by_dates, groups)
        })
    }

    /// The combinations as CSV, with measures a year: `in_sample,out_of_sample,logit`.
    fn csv(&self, data: &CommonReturns, combinations: &[Combination]) -> String {
        let scale = Self::a_year(self.config.measure, data);
        let mut text = String::from("in_sample,out_of_sample,logit\n");
        for of in combinations {
            let (inside, outside) = (scale * of.in_sample, scale * of.out_of_sample);
            let _ = writeln!(text, "{inside:.6},{outside:.6},{:.6}", of.logit);
        }
        text
    }
}

/// The table for people.
fn markdown(metrics: &Metrics, config: &OverfittingConfig) -> String {
    let value = |name: &str| metrics.get(name);
    let cell = |name: String, signed: bool| {
        let [of, low, high] = ["", "_low", "_high"].map(|end| value(&format!("{name}{end}")));
        let ends = low
            .zip(high)
            .map_or(String::new(), |(low, high)| format!(" [{low:+.3}, {high:+.3}]"));
        of.map(|of| {
            if signed {
                format!("{of:+.3}{ends}")
            } else {
                format!("{of:.3}{ends}")
            }
        })
    };
    let mut rows = Vec::new();
    for (at, said) in [
        ("selection", "the winner by the search's seeds"),
        ("fresh", "the winner, fresh seeds"),
        ("test", "the winner, test data"),
        ("gap/seeds", "selection less fresh seeds"),
        ("gap/data", "fresh seeds less test"),
        ("gap/test", "selection less test"),
        ("no_skill", "the best without skill, expected"),
    ] {
        let signed = at.starts_with("gap");
        let cells = ["utility", "sharpe"].map(|measure| cell(format!("{at}/{measure}"), signed));
        if let [Some(utility), Some(sharpe)] = cells {
            rows.push(vec![said.to_owned(), utility, sharpe]);
        }
    }
    let mut out = output::markdown(&["a year", "utility", "Sharpe ratio"].map(String::from), &rows);
    let count = |name: &str| value(name).unwrap_or(f64::NAN);
    let _ = write!(
        out,
        "\nProbability of backtest overfitting by {}: {:.2} ({} combinations of {} groups; 0.5 is chance). The \
        winner loses out of sample in {:.0} % of them.\n",
        config.measure.name().replace("sharpe", "Sharpe ratio"),
        count("pbo"),
        count("combinations"),
        count("groups"),
        100.0 * count("probability_of_loss"),
    );
    if let Some(deflated) = value("deflated_sharpe") {
        let _ = writeln!(
            out,
            "Deflated Sharpe ratio on test data, of {} trials: {deflated:.2}.",
            count("trials")
        );
    }
    if let Some(years) = value("minimum_backtest_years").filter(|years| years.is_finite()) {
        let _ = writeln!(
            out,
            "Without skill the best of {} trials has the selected Sharpe ratio over {years:.1} years on average; \
            the validation data has {:.1}.",
            count("trials"),
            count("selection/years"),
        );
    }
    out
}

#[cfg(test)]
mod tests;
