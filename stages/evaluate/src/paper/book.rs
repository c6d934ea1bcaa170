//! A night of an account: what its step booked, and what it made of it.

use super::account::Account;
use datasets::SnapshotTime;
use stages_core::StageError;
use stages_env::acting::{Booking, Marked};

/// A night.
#[derive(Clone, Debug)]
pub struct Entered {
    /// The snapshot that the account has come to.
    pub time: SnapshotTime,
    /// The bookings since the one before, in money.
    pub bookings: Vec<Booking>,
    /// The book at its marks, in money.
    pub marked: Marked,
    /// True if the account is ruined.
    pub is_ruined: bool,
    /// The log return of the account since the snapshot before, and that of cash.
    pub log_return: f64,
    /// See `log_return`.
    pub risk_free: f64,
    /// The value traded and the costs of trades, as fractions of the net asset value before.
    pub turnover: f64,
    /// See `turnover`.
    pub costs: f64,
}

/// Takes an account to its next snapshot; `paid` is added to its cash there, as a return.
///
/// # Errors
/// See [`Account::advance`].
pub fn enter(account: &mut dyn Account, paid: f64) -> Result<Entered, StageError> {
    let before = account.marked();
    let (bookings, is_ruined) = account.advance()?;
    if paid != 0.0 {
        account.pay(paid, true);
    }
    let marked = account.marked();
    // What is lost altogether earns nothing more.
    let is_alive = before.nav > 0.0;
    let share = |after: f64, before_it: f64| {
        if is_alive {
            (after - before_it) / before.nav
        } else {
            0.0
        }
    };
    Ok(Entered {
        time: account.time(),
        bookings,
        is_ruined,
        log_return: if is_alive {
            libm::log((marked.nav / before.nav).max(1e-12))
        } else {
            0.0
        },
        risk_free: account.risk_free(),
        turnover: share(marked.traded, before.traded),
        costs: share(marked.costs, before.costs),
        marked,
    })
}

/// Walks an account through all snapshots of its world up to a moment, deciding at each: a backtest with
/// fills at the next snapshot.
///
/// # Errors
/// When the policy fails.
pub fn walk(account: &mut dyn Account, until: SnapshotTime) -> Result<Vec<Entered>, StageError> {
    let mut all = Vec::new();
    loop {
        account.decide()?;
        match account.left().first() {
            Some(next) if *next <= until => {}
            _ => return Ok(all),
        }
        let night = enter(account, 0.0)?;
        let is_ruined = night.is_ruined;
        all.push(night);
        if is_ruined {
            return Ok(all);
        }
    }
}
