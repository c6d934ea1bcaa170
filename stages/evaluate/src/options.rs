//! Evaluation on `env/options`.

use crate::market::{Column, Layout, Market, Run, Statement, ledger_columns};
use crate::market_backtest::{Backtest, Compared};
use crate::rules::rules;
use stages_core::StageError;
use stages_env::options::{BASELINES, Explained, Ledger, OptionsEnv, OptionsSimulator, Reason};
use stages_env::{BaselineName, BatchEnv as _, OpenOptions};

/// The prefix of the hidden features that tell the regime of a snapshot.
const REGIME: &str = "regime_";

fn costs(ledger: &Ledger) -> f64 {
    ledger.spread_cost + ledger.commission
}

/// The record of a step: the profit by Greek, and the number of position lines that it opened.
pub(crate) struct Opened {
    explained: Explained,
    opened: usize,
}

impl Market for OptionsSimulator {
    type Record = Opened;

    /// Carry is interest less the cost of borrowing.
    const PROFITS: &'static [&'static str] =
        &["delta", "gamma", "vega", "theta", "carry", "costs", "unexplained"];
    const SHUFFLED: &'static str = "shuffled_slate";

    fn statement(ledger: &Ledger) -> Statement {
        Statement {
            time: ledger.time(),
            step: ledger.step,
            nav: ledger.nav,
            spread_cost: ledger.spread_cost,
            costs: costs(ledger),
            traded_value: ledger.traded_value,
            liquidations: f64::from(ledger.liquidations),
            closing_cost: ledger.closing_cost,
        }
    }

    fn begin_records(env: &mut OptionsEnv) {
        env.keep_notes();
    }

    fn record(env: &OptionsEnv, i: usize, before: &Ledger, ended: bool) -> Opened {
        let now = before.time();
        let opened = env.positions(i).iter().filter(|line| line.opened == now).count();
        Opened {
            explained: env.note(i),
            opened: if ended { 0 } else { opened },
        }
    }

    fn profit(before: &Ledger, after: &Ledger, record: &Opened) -> Vec<f64> {
        let by = &record.explained;
        let received = |ledger: &Ledger| ledger.interest - ledger.borrow_cost;
        let carry = received(after) - received(before);
        let costs = costs(before) - costs(after);
        let known = by.delta + by.gamma + by.vega + by.theta + carry + costs;
        let rest = after.nav - before.nav - known;
        vec![by.delta, by.gamma, by.vega, by.theta, carry, costs, rest]
    }

    fn held(before: &Ledger, _: &Ledger, record: &Opened) -> (f64, f64) {
        (before.lines as f64, record.opened as f64)
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let masked = |k: usize| runs.iter().map(|run| f64::from(run.last().masked[k])).sum();
        let reasons = Reason::ALL.iter().enumerate();
        reasons
            .map(|(k, reason)| (format!("masked/{}", reason.name()), masked(k)))
            .collect()
    }

    /// The regime whose hidden feature is the largest.
    fn regime(env: &OptionsEnv, i: usize) -> Option<usize> {
        let names = env.hidden_names().iter().zip(env.hidden(i));
        let regimes = names
            .filter(|(name, _)| name.starts_with(REGIME))
            .map(|(_, &value)| value);
        regimes.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
    }

    fn layout(env: &OptionsEnv) -> Layout {
        let names = &env.spec().observation;
        let range = |prefix: &str| {
            let first = names.iter().position(|name| name.starts_with(prefix)).unwrap_or(0);
            first..first + names.iter().filter(|name| name.starts_with(prefix)).count()
        };
        let slate = range("slate.");
        let slot_of = |name: &String| name.rsplit_once('.').map(|(slot, _)| slot.to_owned());
        let slots = &names[slate.clone()];
        let width = slots
            .iter()
            .take_while(|name| slot_of(name) == slot_of(&slots[0]))
            .count();
        Layout {
            market: range("market."),
            instruments: slate,
            width,
        }
    }

    fn regimes(env: &OptionsEnv) -> Vec<String> {
        let names = env.hidden_names().iter();
        names
            .filter_map(|name| name.strip_prefix(REGIME).map(str::to_owned))
            .collect()
    }

    fn about(env: &OptionsEnv) -> serde_json::Value {
        serde_json::json!({ "of": "options", "symbol": env.world(0), "capital": env.config().capital })
    }

    const HAS_ACTIONS: bool = true;
    const HAS_LEVELS: bool = false;

    fn columns(_: &OptionsEnv) -> Vec<Column<Self>> {
        let costs: Column<Self> = ("costs", costs);
        [
            &ledger_columns!(Ledger: underlying, nav, liquidation_value, cash, units, delta, gamma, vega,
                theta, margin, lines as f64, model_marks as f64)[..],
            &[costs],
            &ledger_columns!(Ledger: spread_cost, interest, traded_value),
        ]
        .concat()
    }
}

impl Compared for OptionsSimulator {
    fn compare(all: &mut Backtest<'_, Self>) -> Result<(), StageError> {
        let hedges = all.one.common().hedges;
        let possible = |baseline: &&BaselineName| {
            BASELINES.contains(baseline) && (hedges || **baseline != BaselineName::HedgedShortStraddle)
        };
        for &baseline in all.of.config.baselines.iter().filter(possible) {
            all.baseline(baseline.name(), baseline == BaselineName::Random, |env, step, _, _| {
                env.step_baseline(baseline, step.buffers());
                Ok(())
            })?;
        }
        if !all.of.config.rules {
            return Ok(());
        }
        // Rules read features in the environment's own normalisation, whatever the policy's is.
        let own = OptionsEnv::open(
            &all.of.context.store,
            all.of.artifact,
            &OpenOptions::whole(all.of.config.split(), 1),
        )?;
        for rule in &rules(all.of.context, &own, all.of.artifact, all.of.config.on)? {
            let text = rule.describe(&own);
            all.rule(&rule.name, text, rule.decider(rule.classes.seen(&own)?))?;
        }
        Ok(())
    }
}
