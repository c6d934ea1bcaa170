//! The table of the accounts of all strategies, step by step.

use crate::account::{Account, Accounts, CLOSING_COST, SPREAD_COST, STEPS, SUMS, TRADED_VALUE};
use crate::market::{Market, Role, Run, Strategy};
use crate::performance::Periods;
use arrow_array::{Array as _, ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::{Artifact, Store};
use datasets::SnapshotTime;
use stages_core::{PeriodsAYear, StageError, table};
use stages_env::{PortfolioEnv, Simulator};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The file name of a trajectory.
pub(crate) const FILE: &str = "trajectory.parquet";

/// The names of the risk aversion and of the number of trials in a trajectory's metadata.
pub(crate) const RISK_AVERSION: &str = "risk_aversion";
pub(crate) const TRIALS: &str = "trials";

/// The name of the data of a backtest in a trajectory's metadata: absent where it is the test data.
pub(crate) const ON: &str = "on";

/// The names of the policies at `rules`, where there are some.
pub(crate) const RULES: &str = "rules";

/// The prefix of the columns of the net asset value that the policy has with an ablation.
const ABLATION: &str = "ablation.";
/// The prefix of the columns of profits by cause.
const PROFIT: &str = "profit_";

/// The text of a row for a column.
type TextOf<'a, S> = dyn Fn(&Strategy<S>, &Run<S>, &<S as Simulator>::Ledger) -> Option<String> + 'a;

/// The table of the strategies' accounts: a row for each snapshot of each run. Returns, sizes and profits
/// are those of the step that ends at the row's snapshot; weights, for the policy alone, are those to which
/// that step led. Ablations have no rows: their net asset values stand beside the policy's. `accounts` are
/// those of the strategies.
pub(crate) fn trajectory<S: Market>(
    strategies: &[Strategy<S>],
    accounts: &[Accounts],
    env: &PortfolioEnv<S>,
) -> Result<RecordBatch, StageError> {
    let shown = |role: Role| role != Role::Ablation;
    let runs = || {
        strategies
            .iter()
            .filter(|strategy| shown(strategy.role))
            .flat_map(|strategy| strategy.runs.iter().map(move |run| (strategy, run)))
    };
    let accounts_shown = || {
        let strategies = accounts.iter().filter(|strategy| shown(strategy.role));
        strategies.flat_map(|strategy| strategy.accounts.iter().map(move |account| (strategy.role, account)))
    };
    let rows = || {
        runs().flat_map(|(strategy, run)| run.statements.iter().map(move |ledger| (strategy, run, ledger)))
    };
    let floats = |of: &dyn Fn(&Run<S>, &S::Ledger) -> f64| -> ArrayRef {
        let values = rows().map(|(_, run, ledger)| of(run, ledger));
        Arc::new(Float64Array::from_iter_values(values))
    };
    let texts = |of: &TextOf<'_, S>| -> ArrayRef {
        let values = rows().map(|(strategy, run, ledger)| of(strategy, run, ledger));
        Arc::new(values.collect::<StringArray>())
    };
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    let mut add = |name: &str, array: ArrayRef, nullable| columns.push((name.to_owned(), array, nullable));
    add("strategy", texts(&|strategy, _, _| Some(strategy.name.clone())), false);
    add("path", floats(&|run, _| run.path as f64), false);
    for (name, array) in table::time_columns(rows().map(|(.., ledger)| S::statement(ledger).time)) {
        add(name, array, false);
    }
    add("world", texts(&|_, run, _| Some(run.world.clone())), false);
    add("episode", floats(&|run, _| run.episode as f64), false);
    if S::HAS_ACTIONS {
        let named = |run: &Run<S>, ledger: &S::Ledger| run.actions.get(S::statement(ledger).step).cloned();
        let action = texts(&|_, run, ledger| named(run, ledger).filter(|name| !name.is_empty()));
        add("action", action, true);
    }
    // The rows of an account that has ended are not those of its whole episode.
    let of_accounts = |of: &dyn Fn(&Account) -> Vec<f64>| -> Vec<f64> {
        let values = accounts_shown().zip(runs());
        values
            .flat_map(|((_, account), (_, run))| {
                let mut values = of(account);
                values.truncate(run.statements.len());
                values
            })
            .collect()
    };
    let from_first = |steps: &[f64]| [&[0.0], steps].concat();
    if S::HAS_LEVELS {
        add(
            "underlying",
            Arc::new(Float64Array::from(of_accounts(&Account::levels))),
            false,
        );
    }
    let columns_of_market = S::columns(env);
    for (name, of) in &columns_of_market {
        add(name, floats(&|_, ledger| of(ledger)), false);
    }
    for (which, name) in SUMS.iter().enumerate() {
        if columns_of_market.iter().all(|(other, _)| other != name) {
            let values = of_accounts(&|account| account.sums[which].clone());
            add(name, Arc::new(Float64Array::from(values)), false);
        }
    }
    let closing = of_accounts(&|account| account.closing.clone());
    add(CLOSING_COST, Arc::new(Float64Array::from(closing)), false);
    for (which, name) in STEPS.iter().enumerate() {
        let values = of_accounts(&|account| from_first(&account.steps[which]));
        add(name, Arc::new(Float64Array::from(values)), false);
    }
    let causes = accounts_shown()
        .map(|(_, account)| account.profits.len())
        .min()
        .unwrap_or(0);
    for (cause, name) in S::PROFITS.iter().take(causes).enumerate() {
        let values = of_accounts(&|account| from_first(&account.profits[cause]));
        add(&format!("{PROFIT}{name}"), Arc::new(Float64Array::from(values)), false);
    }
    if accounts_shown().any(|(_, account)| account.regimes.iter().any(Option::is_some)) {
        let regime = |run: &Run<S>, ledger: &S::Ledger| run.regimes.get(S::statement(ledger).step).copied();
        let names = S::regimes(env);
        let named = texts(&|_, run, ledger| names.get(regime(run, ledger)?).cloned());
        add("regime", named, true);
    }
    for ablation in accounts.iter().filter(|strategy| strategy.role == Role::Ablation) {
        let mut own = ablation.accounts.iter();
        let values: Vec<f64> = accounts_shown()
            .zip(runs())
            .flat_map(|((role, _), (_, run))| {
                let found = (role == Role::Policy).then(|| own.next()).flatten();
                let mut nav = found.map_or_else(Vec::new, |account| account.nav.clone());
                nav.resize(run.statements.len(), f64::NAN);
                nav
            })
            .collect();
        add(
            &format!("{ABLATION}{}", ablation.name),
            Arc::new(table::nullable_of(values)),
            true,
        );
    }
    for (k, name) in S::weight_names(env).iter().enumerate() {
        let weights: Float64Array = runs()
            .flat_map(|(strategy, run)| {
                let shown = strategy.role == Role::Policy;
                let after = run.records.iter().map(|record| S::weights_after(record)[k]);
                std::iter::once(0.0)
                    .chain(after)
                    .map(move |weight| shown.then_some(weight))
            })
            .collect();
        add(name, Arc::new(weights), true);
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// The strategies of a backtest as its trajectory tells, the ablations of the policy after it, and the names
/// of the causes of profit.
pub(crate) fn accounts(rows: &RecordBatch) -> Result<(Vec<Accounts>, Vec<String>), StageError> {
    let (strategies, worlds) = (table::texts(rows, "strategy")?, table::texts(rows, "world")?);
    let (paths, episodes) = (table::floats(rows, "path")?, table::floats(rows, "episode")?);
    let times = table::snapshot_times(rows)?;
    let floats = |name: &str| table::floats(rows, name).map(|column| column.values().to_vec());
    let (nav, closing) = (floats("nav")?, floats(CLOSING_COST)?);
    let mut sums = SUMS.map(|_| Vec::new());
    for (sum, name) in sums.iter_mut().zip(SUMS) {
        *sum = floats(name)?;
    }
    // The lines of a hedge on `env/stocks` are none of the others.
    for which in [SPREAD_COST, TRADED_VALUE] {
        let hedge = format!("hedge_{}", SUMS[which]);
        if rows.column_by_name(&hedge).is_some() {
            let hedge = floats(&hedge)?;
            sums[which].iter_mut().zip(hedge).for_each(|(sum, more)| *sum += more);
        }
    }
    let mut steps = STEPS.map(|_| Vec::new());
    for (step, name) in steps.iter_mut().zip(STEPS) {
        *step = floats(name)?;
    }
    let schema = rows.schema();
    let with_prefix = |prefix: &str| -> Vec<String> {
        let names = schema
            .fields()
            .iter()
            .filter_map(|field| field.name().strip_prefix(prefix));
        names.map(str::to_owned).collect()
    };
    let (causes, ablations) = (with_prefix(PROFIT), with_prefix(ABLATION));
    let profits: Vec<Vec<f64>> = causes
        .iter()
        .map(|name| floats(&format!("{PROFIT}{name}")))
        .collect::<Result<_, _>>()?;
    let navs: Vec<Vec<f64>> = ablations
        .iter()
        .map(|name| table::floats_or_nan(rows, &format!("{ABLATION}{name}")))
        .collect::<Result<_, _>>()?;
    let regime = optional(rows, "regime", table::texts)?;
    // Of portfolios there are weights instead.
    let action = optional(rows, "action", table::texts)?;
    let text = |column: Option<&StringArray>, row: usize| {
        let column = column.filter(|column| column.is_valid(row))?;
        Some(column.value(row).to_owned())
    };
    let same = |a: usize, b: usize| {
        strategies.value(a) == strategies.value(b)
            && paths.value(a) == paths.value(b)
            && episodes.value(a) == episodes.value(b)
    };
    let runs = table::runs(0..rows.num_rows(), same);
    let mut all: Vec<Accounts> = Vec::new();
    for run in &runs {
        // An account that has ended has the steps of the one that lasts longest.
        let of_episode = runs
            .iter()
            .filter(|other| episodes.value(other.start) == episodes.value(run.start));
        let whole = of_episode.fold(run, |a, b| if b.len() > a.len() { b } else { a });
        let length = whole.len();
        let padded = |values: &[f64], with: Option<f64>| {
            let mut own = values[run.clone()].to_vec();
            own.resize(length, with.unwrap_or(own[own.len() - 1]));
            own
        };
        let by_step = |values: &[f64]| padded(values, Some(0.0))[1..].to_vec();
        let role = match strategies.value(run.start) {
            "policy" => Role::Policy,
            "drawn" | "greedy" => Role::Mode,
            _ => Role::Baseline,
        };
        let account = Account {
            episode: episodes.value(run.start) as usize,
            path: paths.value(run.start) as usize,
            world: worlds.value(run.start).to_owned(),
            times: times[whole.clone()].to_vec(),
            nav: padded(&nav, Some(f64::NAN)),
            sums: sums.each_ref().map(|sum| padded(sum, None)),
            closing: padded(&closing, None),
            // Returns of the market are those of the whole episode.
            steps: [
                steps[0][whole.clone()][1..].to_vec(),
                steps[1][whole.clone()][1..].to_vec(),
                by_step(&steps[2]),
                by_step(&steps[3]),
            ],
            regimes: (run.start..run.start + length - 1)
                .map(|row| if row < run.end { text(regime, row) } else { None })
                .collect(),
            actions: (run.start..run.start + length - 1)
                .map(|row| if row < run.end { text(action, row) } else { None })
                .collect(),
            profits: profits.iter().map(|profit| by_step(profit)).collect(),
            closed: None,
        };
        let name = strategies.value(run.start);
        let with = |nav: &Vec<f64>| Account {
            nav: padded(nav, Some(f64::NAN)),
            ..account.clone()
        };
        let ablated: Vec<Account> = match role {
            Role::Policy => navs.iter().map(with).collect(),
            _ => Vec::new(),
        };
        push(&mut all, (name, role), account);
        for (name, account) in ablations.iter().zip(ablated) {
            push(&mut all, (name, Role::Ablation), account);
        }
    }
    Ok((all, causes))
}

fn push(all: &mut Vec<Accounts>, (name, role): (&str, Role), account: Account) {
    match all
        .iter_mut()
        .find(|strategy| strategy.name == name && strategy.role == role)
    {
        Some(strategy) => strategy.accounts.push(account),
        None => all.push(Accounts {
            name: name.to_owned(),
            role,
            accounts: vec![account],
        }),
    }
}

/// A column of a trajectory, which not every market has.
pub(crate) fn optional<'a, T>(
    rows: &'a RecordBatch,
    name: &str,
    read: fn(&'a RecordBatch, &str) -> Result<T, StageError>,
) -> Result<Option<T>, StageError> {
    rows.column_by_name(name).map(|_| read(rows, name)).transpose()
}

/// The periods a year of a backtest's trajectory: stated in its metadata, or else by the times of a run.
pub(crate) fn periods(artifact: &Artifact, times: &[SnapshotTime]) -> Periods {
    let found = || PeriodsAYear::new(None, times.iter().map(|time| time.date), times);
    Periods::from(&PeriodsAYear::stated(&artifact.meta).unwrap_or_else(found))
}

/// The policies that were evaluated on the test data of a backtest, its own included; 1 where that is not
/// stated.
pub(crate) fn trials(artifact: &Artifact) -> usize {
    let stated = artifact.meta.get(TRIALS).and_then(serde_json::Value::as_u64);
    stated.and_then(|trials| usize::try_from(trials).ok()).unwrap_or(1)
}

/// The names of the policies at `rules` of a backtest.
pub(crate) fn rules(artifact: &Artifact) -> BTreeSet<String> {
    let stated = artifact.meta.get(RULES).and_then(serde_json::Value::as_array);
    let names = stated.into_iter().flatten().filter_map(serde_json::Value::as_str);
    names.map(str::to_owned).collect()
}

/// True if a backtest is of validation data.
pub(crate) fn is_of_validation(artifact: &Artifact) -> bool {
    artifact.meta.get(ON).is_some()
}

/// The risk aversion of a backtest's utilities, where it is stated.
pub(crate) fn risk_aversion(artifact: &Artifact) -> Option<f64> {
    artifact.meta.get(RISK_AVERSION)?.as_f64()
}

/// The table of a backtest's trajectory.
pub(crate) fn read(store: &Store, artifact: &Artifact) -> Result<RecordBatch, StageError> {
    let entry = artifact
        .entry(FILE)
        .ok_or_else(|| StageError::new(format!("a trajectory has no file `{FILE}`")))?;
    table::from_parquet(store.blob(entry.blob)?)
}
