//! The accounts of folds, read from their backtests and joined in order of time.

use crate::account::{Account, Accounts};
use crate::market::Role;
use crate::risk_aversion::USUAL;
use crate::trajectory;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::{Artifact, Store};
use datasets::Date;
use serde::Serialize;
use stages_core::{StageError, table};
use std::sync::Arc;

/// The backtest of a fold.
pub(super) struct FoldRuns {
    pub strategies: Vec<Accounts>,
    /// The names of the causes of profit.
    pub causes: Vec<String>,
    pub risk_aversion: f64,
    /// The strategies that were tried before this one was chosen, itself included.
    pub trials: usize,
    pub fold: Fold,
}

/// The first test date of a fold, and the last on which it is valued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Fold {
    pub from: Date,
    pub to: Date,
}

impl FoldRuns {
    /// Reads the accounts from the trajectory of a backtest.
    pub(super) fn read(store: &Store, artifact: &Artifact) -> Result<Self, StageError> {
        let rows = trajectory::read(store, artifact)?;
        StageError::new("a backtest has no net asset values: it is of episodes, not of dates")
            .hint(
                "a walk-forward joins backtests over test dates: of `env/options`, `env/stocks`, \
                        or `env/table` with a price",
            )
            .when(rows.column_by_name("nav").is_none())?;
        let (strategies, causes) = trajectory::accounts(&rows)?;
        let policy = strategies.first().filter(|first| first.role == Role::Policy);
        let times = policy.into_iter().flat_map(|policy| &policy.accounts);
        let times = times.flat_map(|account| [account.times[0].date, account.times[account.len()].date]);
        let (Some(from), Some(to)) = (times.clone().min(), times.max()) else {
            return Err(StageError::new("the backtests of the folds have no policy")
                .hint("give trajectories of `evaluate/backtest`"));
        };
        Ok(Self {
            strategies,
            causes,
            risk_aversion: trajectory::risk_aversion(artifact).unwrap_or(USUAL),
            trials: trajectory::trials(artifact),
            fold: Fold { from, to },
        })
    }
}

/// The strategies of all folds, which are in order of time, with each account joined.
pub(super) fn joined(folds: &[FoldRuns]) -> Result<Vec<Accounts>, StageError> {
    if let Some(pair) = folds.windows(2).find(|pair| pair[1].fold.from < pair[0].fold.to) {
        return Err(StageError::new(format!(
            "two folds are tested on the same dates: one up to {}, another from {}",
            pair[0].fold.to, pair[1].fold.from
        ))
        .hint(
            "give the folds test dates that follow one another, as `matrix: \
            { fold: { from, to, train, test } }` does",
        ));
    }
    let names = folds.iter().flat_map(|fold| &fold.strategies);
    let mut order: Vec<(&str, Role)> = Vec::new();
    for strategy in names {
        if !order.contains(&(&strategy.name, strategy.role)) {
            order.push((&strategy.name, strategy.role));
        }
    }
    order.into_iter().map(|which| join(folds, which)).collect()
}

fn join(folds: &[FoldRuns], (name, role): (&str, Role)) -> Result<Accounts, StageError> {
    let uneven = || {
        StageError::new(format!("not every fold has the same runs of `{name}`"))
            .hint("backtest all folds with the same `baselines`, `random_paths` and worlds")
    };
    let of_folds: Vec<&Accounts> = folds
        .iter()
        .map(|fold| {
            let mut strategies = fold.strategies.iter();
            strategies.find(|strategy| strategy.name == name && strategy.role == role)
        })
        .collect::<Option<_>>()
        .ok_or_else(uneven)?;
    let first = of_folds[0];
    if of_folds.iter().any(|fold| fold.accounts.len() != first.accounts.len()) {
        return Err(uneven());
    }
    let accounts = first.accounts.iter().map(|of| {
        let same = |account: &&Account| account.world == of.world && account.path == of.path;
        let found: Option<Vec<Account>> = of_folds
            .iter()
            .map(|fold| fold.accounts.iter().find(same).cloned())
            .collect();
        found.map(Account::joined).ok_or_else(uneven)
    });
    Ok(Accounts {
        name: name.to_owned(),
        role,
        accounts: accounts.collect::<Result<_, _>>()?,
    })
}

/// The joined accounts as a table: a row for each snapshot up to an account's end.
pub(super) fn table(folds: &[Fold], strategies: &[Accounts]) -> Result<RecordBatch, StageError> {
    let accounts = || {
        let shown = strategies.iter().filter(|strategy| strategy.role != Role::Ablation);
        shown.flat_map(|strategy| strategy.accounts.iter().map(move |account| (strategy, account)))
    };
    let rows = || {
        accounts()
            .flat_map(|(strategy, account)| (0..=account.end()).map(move |row| (strategy, account, row)))
    };
    let texts = |of: &dyn Fn(&Accounts, &Account, usize) -> Option<String>| -> ArrayRef {
        Arc::new(
            rows()
                .map(|(strategy, account, row)| of(strategy, account, row))
                .collect::<StringArray>(),
        )
    };
    let floats = |of: &dyn Fn(&Account) -> Vec<f64>| -> ArrayRef {
        let values = accounts().flat_map(|(_, account)| of(account).into_iter().take(account.end() + 1));
        Arc::new(Float64Array::from_iter_values(values))
    };
    let constant = |of: fn(&Account) -> usize| floats(&|account| vec![of(account) as f64; account.nav.len()]);
    let fold_of = |account: &Account, row: usize| {
        let after = folds.partition_point(|fold| fold.from <= account.times[row].date);
        folds.get(after.saturating_sub(1)).map(|fold| fold.from.to_string())
    };
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("strategy", texts(&|strategy, _, _| Some(strategy.name.clone())), false),
        ("path", constant(|account| account.path), false),
    ];
    let times = table::time_columns(rows().map(|(_, account, row)| account.times[row]));
    columns.extend(times.into_iter().map(|(name, array)| (name, array, false)));
    columns.extend([
        ("world", texts(&|_, account, _| Some(account.world.clone())), false),
        ("episode", constant(|account| account.episode), false),
        ("fold", texts(&|_, account, row| fold_of(account, row)), false),
        (
            "action",
            texts(&|_, account, row| account.actions.get(row).cloned().flatten()),
            true,
        ),
        ("underlying", floats(&Account::levels), false),
        ("nav", floats(&|account| account.nav.clone()), false),
        (
            "costs",
            floats(&|account| account.sums[crate::account::COSTS].clone()),
            false,
        ),
    ]);
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
