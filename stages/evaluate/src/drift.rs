//! The stage kind `evaluate/drift`: whether the latest data is still like that which a policy was trained on.

mod history;
mod rules;
mod samples;
mod statistics;

use crate::output::{self, Metrics};
use datasets::Date;
use history::Limits;
use rules::Broken;
use samples::{Pair, samples, split};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::names;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};
pub(crate) use statistics::kolmogorov_smirnov;
use statistics::{CHANCE, Distance, population_stability, probability, stability_of_share};
use std::collections::BTreeMap;
use std::fmt::Write as _;

stages_core::settings! {
    /// Configuration of `evaluate/drift`.
    pub struct DriftConfig {
        /// The number of latest dates that are compared with those before.
        pub recent: usize = 20,
        /// The first date of the reference, the training's, say; by default the first there is.
        #[schemars(with = "Option<String>")]
        pub from: Option<Date> = None,
        /// The last date of the reference; by default the last before the latest ones.
        #[schemars(with = "Option<String>")]
        pub to: Option<Date> = None,
        /// Distances from which on a sample has drifted.
        pub warn: DriftLimits = DriftLimits::default(),
        /// Distances from which on the stage fails, and the night with it; never if absent.
        pub fail: Option<DriftLimits> = None,
        /// The limits of samples: `fixed`, those above; or `from_history`, at least what the reference's own
        /// windows of `recent` dates reach.
        pub limits: LimitsFrom = LimitsFrom::Fixed,
    }
}

/// The origin of the limits of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitsFrom {
    /// `warn` and `fail` alone.
    #[default]
    Fixed,
    /// At least the distances of the reference's own windows from the rest of it.
    #[serde(rename = "from_history")]
    History,
}

stages_core::settings! {
    /// Distances between distributions.
    #[derive(Copy)]
    pub struct DriftLimits {
        /// The population stability index, over deciles of the reference.
        pub psi: f64 = 0.25,
        /// The statistic of Kolmogorov and Smirnov, from 0 to 1.
        pub ks: f64 = 0.3,
        /// The change of the share of rows that break a rule of data quality, from 0 to 1.
        // Left out of keys at its default, within `fail` too.
        #[serde(skip_serializing_if = "is_default_share")]
        pub share: f64 = SHARE,
    }
}

/// The default of `share`.
const SHARE: f64 = 0.02;

fn is_default_share(share: &f64) -> bool {
    *share == SHARE
}

/// The least number of values on both sides.
const LEAST: usize = 10;

/// The stage kind `evaluate/drift`.
pub struct Drift;

impl StageKind for Drift {
    type Config = DriftConfig;
    const NAME: &'static str = "evaluate/drift";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "features, data quality and fills of the latest dates against those before";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::optional_list("features", PortType::Features)
                .doc("the features: their values, and the share that is missing on each date"),
            InputPort::optional("bars", PortType::Bars)
                .doc("bars: the rows of each date, and the share of missing values of each column"),
            InputPort::optional("chain", PortType::OptionChain)
                .doc("option quotes: the same, and the mean relative spread of each date"),
            InputPort::optional("rates", PortType::Rates)
                .doc("rates, for their table of data quality: with `rates_before`"),
            InputPort::optional("bars_before", PortType::Bars).doc(
                "the bars that `bars` goes on from, the training's, say: the share of rows that break \
                    each rule of data quality is compared with theirs",
            ),
            InputPort::optional("chain_before", PortType::OptionChain).doc("the same of `chain`"),
            InputPort::optional("rates_before", PortType::Rates).doc("the same of `rates`"),
            InputPort::optional("trajectory", PortType::Trajectory).doc(
                "a backtest of the policy: value traded a step as a fraction of the account's, and \
                    costs as a fraction of value traded",
            ),
        ],
        outputs: &[OutputPort::new("metrics", PortType::Metrics).doc(
            "the number of samples that drifted, the distances of each, and both as the table \
                `drift.csv`",
        )],
    };

    fn check(&self, config: &DriftConfig, plan: &PlanContext) -> Planned {
        ConfigProblem::new("recent", "must be at least 1 date")
            .hint("the default is 20")
            .when(config.recent == 0)?;
        if let (Some(from), Some(to)) = (config.from, config.to)
            && to < from
        {
            return Err(ConfigProblem::new("to", format!("is before `from`, {from}")).hint("exchange them"));
        }
        let limits = [("warn", Some(config.warn)), ("fail", config.fail)];
        for (name, limits) in limits.iter().filter_map(|(name, limits)| Some((name, (*limits)?))) {
            for (limit, value) in [("psi", limits.psi), ("ks", limits.ks), ("share", limits.share)] {
                ConfigProblem::new(format!("{name}.{limit}"), "must be above 0")
                    .hint("0.25 for `psi`, 0.3 for `ks`, and 0.02 for `share` are the defaults")
                    .when(value.is_nan() || value <= 0.0)?;
            }
        }
        ConfigProblem::new("", "there is nothing to compare: no input is connected")
            .hint("write `needs: { features: [STAGE] }`, or connect `bars`, `chain` or `trajectory`")
            .when(plan.inputs.values().all(Vec::is_empty))?;
        if let Some((given, missing)) = rules::alone(&plan.inputs) {
            return Err(
                ConfigProblem::new("", format!("`{given}` is connected, and `{missing}` is not"))
                    .hint(format!("connect the data of the night to `{missing}`")),
            );
        }
        ConfigProblem::new(
            "",
            "`rates` is connected, and `rates_before` is not: there is nothing to compare",
        )
        .hint("connect the rates of the training to `rates_before`")
        .when(plan.inputs.contains_key("rates") && !plan.inputs.contains_key("rates_before"))?;
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &DriftConfig, context: &Context) -> Result<Outputs, StageError> {
        let (samples, broken) = (samples(context)?, rules::broken(context)?);
        let pairs = match split(config, samples) {
            // The data before is an input of its own.
            Err(too_few) if rules::is_connected(context) => {
                context.log(format!("only rules of data quality are compared: {}", too_few.message));
                BTreeMap::new()
            }
            pairs => pairs?,
        };
        let mut rows: Vec<Row> = pairs.iter().map(|(name, pair)| Row::new(name, pair, config)).collect();
        rows.extend(
            broken
                .iter()
                .map(|(name, broken)| Row::from_rule(name, *broken, config)),
        );
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        let mut metrics = Metrics::default();
        let with = |state: State| rows.iter().filter(|row| row.state == state).collect::<Vec<_>>();
        let (failed, warned) = (with(State::Fail), with(State::Warn));
        metrics.add("drifted", (failed.len() + warned.len()) as f64);
        metrics.add(
            "samples",
            rows.iter().filter(|row| row.state != State::TooFew).count() as f64,
        );
        metrics.add("samples_too_few", with(State::TooFew).len() as f64);
        let worst = |of: fn(&Row) -> f64| rows.iter().map(of).filter(|x| x.is_finite()).fold(0.0, f64::max);
        metrics.add("largest/psi", worst(|row| row.psi.value));
        metrics.add("largest/ks", worst(|row| row.ks.value));
        for row in &rows {
            metrics.add(format!("psi/{}", row.name), row.psi.value);
            metrics.add(format!("ks/{}", row.name), row.ks.value);
        }
        for row in failed.iter().chain(&warned) {
            context.log(format!("{}: {}", row.state.name(), row.text()));
        }
        if let Some(first) = failed.first() {
            let more = match failed.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            return Err(StageError::new(format!("the data has drifted: {}{more}", first.text()))
                .hint("look at the log and at the data; train on newer dates, or raise `fail`"));
        }
        output::store_metrics_with(context, metrics, &[("drift.csv", &csv(&rows))])
    }
}

/// The state of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ok,
    /// Within the limits, but beyond most windows of the reference: drift that had begun goes on.
    Near,
    Warn,
    Fail,
    /// Too few values to tell.
    TooFew,
}

names! { State: Ok "ok", Near "near", Warn "warn", Fail "fail", TooFew "too few" }

/// A sample with its distances.
#[derive(Debug)]
struct Row {
    name: String,
    values: (usize, usize),
    means: (f64, f64),
    psi: Distance,
    ks: Distance,
    p: f64,
    state: State,
}

impl State {
    /// The state of a sample with enough values, which is over some limits or not.
    fn of(config: &DriftConfig, is_over: impl Fn(DriftLimits) -> bool) -> Self {
        match config.fail {
            Some(fail) if is_over(fail) => Self::Fail,
            _ if is_over(config.warn) => Self::Warn,
            _ => Self::Ok,
        }
    }
}

impl Row {
    fn new(name: &str, pair: &Pair, config: &DriftConfig) -> Self {
        let values = (pair.reference.len(), pair.current.len());
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let none = Distance {
            value: f64::NAN,
            by_chance: f64::NAN,
        };
        let too_few = Self {
            name: name.to_owned(),
            values,
            means: (mean(&pair.reference), mean(&pair.current)),
            psi: none,
            ks: none,
            p: f64::NAN,
            state: State::TooFew,
        };
        if values.0.min(values.1) < LEAST {
            return too_few;
        }
        let psi = population_stability(&pair.reference, &pair.current);
        let ks = kolmogorov_smirnov(&pair.reference, &pair.current);
        let own = match config.limits {
            LimitsFrom::Fixed => None,
            LimitsFrom::History => history::limits(&pair.reference, &pair.dates, config.recent),
        };
        let over = |limits: DriftLimits, of: fn(&Limits) -> f64| {
            let own = own.as_ref().map_or([0.0; 2], |own| own.each_ref().map(of));
            let over = |distance: Distance, limit: f64| {
                distance.value >= limit && distance.value > distance.by_chance
            };
            over(psi, limits.psi.max(own[0])) || over(ks, limits.ks.max(own[1]))
        };
        let state = State::of(config, |limits| over(limits, |own| own.begin));
        Self {
            psi,
            ks,
            p: probability(ks.value, values.0, values.1),
            state: match state {
                State::Ok if own.is_some() && over(config.warn, |own| own.end) => State::Near,
                state => state,
            },
            ..too_few
        }
    }

    /// The row of a rule of data quality. Of two samples that break it or do not, the distance of Kolmogorov
    /// and Smirnov is the difference of the shares.
    fn from_rule(name: &str, broken: Broken, config: &DriftConfig) -> Self {
        let (before, now) = (broken.before, broken.now);
        let p = broken.probability();
        let change = (now.share() - before.share()).abs();
        let is_enough = before.rows.min(now.rows) >= LEAST as u64;
        Self {
            name: name.to_owned(),
            values: (before.rows as usize, now.rows as usize),
            means: (before.share(), now.share()),
            psi: stability_of_share((before.broken, before.rows), (now.broken, now.rows)),
            ks: Distance {
                value: change,
                by_chance: f64::NAN,
            },
            p,
            state: match is_enough {
                true => State::of(config, |limits| change >= limits.share && p < CHANCE),
                false => State::TooFew,
            },
        }
    }

    fn text(&self) -> String {
        if self.name.contains("/rule/") {
            return format!(
                "{} is broken by {:.3} % of {} rows, before by {:.3} % of {} (by chance once in {:.0} times)",
                self.name,
                100.0 * self.means.1,
                self.values.1,
                100.0 * self.means.0,
                self.values.0,
                (1.0 / self.p).min(1e9)
            );
        }
        format!(
            "{} has a stability index of {:.3} and a Kolmogorov-Smirnov distance of {:.3} (mean {:.4}, \
            before {:.4}; {} values, before {})",
            self.name,
            self.psi.value,
            self.ks.value,
            self.means.1,
            self.means.0,
            self.values.1,
            self.values.0
        )
    }
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "sample,state,psi,psi_by_chance,ks,ks_by_chance,p,mean,mean_before,values,values_before\n",
    );
    for row in rows {
        let number = |x: f64| {
            if x.is_finite() {
                format!("{x:.6}")
            } else {
                String::new()
            }
        };
        let name = row.name.replace('"', "\"\"");
        let _ = writeln!(
            text,
            "\"{name}\",{},{},{},{},{},{},{},{},{},{}",
            row.state.name(),
            number(row.psi.value),
            number(row.psi.by_chance),
            number(row.ks.value),
            number(row.ks.by_chance),
            number(row.p),
            number(row.means.1),
            number(row.means.0),
            row.values.1,
            row.values.0
        );
    }
    text
}
