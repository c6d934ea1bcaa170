//! Multi-discrete actions: what is closed, the strategy that is opened, its size, and the hedge.
//! [`action_space`](crate::options::action_space) has the rules.

use super::lookup::At;
use super::market::{Basket, Market};
use super::open_costs::{OpenCosts, can_open_strategy};
use super::state::{Account, Cached, Counters, Env, Hedge, Line, Terms, View};
use super::trade::{Close, close, open};
use crate::hedge::{HEDGE_CHOICES, HedgeOrder};
use crate::options::action_space::{
    CLOSE_ALL, CLOSE_CHOICES, CLOSE_LARGEST_LOSS, CLOSE_NEAREST_EXPIRY, CLOSE_OLDEST,
};
use crate::options::config::MAX_LINES;
use crate::options::reason::Reason;
use crate::options::strategies::FIRST_OPEN;

/// The choices of a decision that is traded at the next snapshot: what is closed, what is opened, and the
/// hedge after both.
pub(super) struct Chosen {
    pub close: Option<Close>,
    pub open: Option<Basket>,
    pub hedge: HedgeOrder,
}

/// The choices of `strategy`, `size` and `close`: the last comes after the hedge where actions hedge.
fn components(choices: &[u32]) -> (usize, usize, usize) {
    (
        choices[0] as usize,
        choices[1] as usize,
        choices[choices.len() - 1] as usize,
    )
}

fn hedge_order(market: &Market, choices: &[u32]) -> HedgeOrder {
    match market.config.hedge.is_by_action() {
        true => HedgeOrder::from_choice(choices[2]),
        false => market.config.hedge.terms().order(),
    }
}

/// Closes and opens by the choices of the components, and counts refusals. Returns the hedge that is to
/// follow.
pub(super) fn choose(market: &Market, costs: &OpenCosts, env: &mut Env<'_>, choices: &[u32]) -> HedgeOrder {
    let now = market.now(env.account);
    let (strategy, size, at) = components(choices);
    let closed = to_close(market, now, env, at).map(|which| {
        if let Some(which) = which {
            close(market, now, env, which);
        }
    });
    let opened = open_choice(market, costs, now, env, strategy, size);
    for reason in [closed, opened].into_iter().filter_map(Result::err) {
        env.counters.refused[reason as usize] += 1;
    }
    hedge_order(market, choices)
}

/// Resolves the choices at this snapshot, to be traded at the next, and counts what is refused already.
pub(super) fn decide(market: &Market, costs: &OpenCosts, env: &mut Env<'_>, choices: &[u32]) -> Chosen {
    let now = market.now(env.account);
    let (strategy, size, at) = components(choices);
    let close = to_close(market, now, env, at);
    let open = to_open(market, costs, now, env.account, strategy, size);
    for reason in [close.err(), open.err()].into_iter().flatten() {
        env.counters.refused[reason as usize] += 1;
    }
    Chosen {
        close: close.unwrap_or_default(),
        open: open.unwrap_or_default(),
        hedge: hedge_order(market, choices),
    }
}

/// Closes what was chosen one snapshot earlier, if it still has quotes.
pub(super) fn close_later(
    market: &Market,
    now: At<'_>,
    env: &mut Env<'_>,
    which: Close,
) -> Result<(), Reason> {
    can_close(now, env, which)?;
    close(market, now, env, which);
    Ok(())
}

/// The lines that a choice of the component `close` closes.
fn to_close(market: &Market, now: At<'_>, env: &Env<'_>, choice: usize) -> Result<Option<Close>, Reason> {
    let which = match choice {
        CLOSE_ALL => Close::All,
        CLOSE_OLDEST | CLOSE_NEAREST_EXPIRY | CLOSE_LARGEST_LOSS => {
            Close::Group(group(market, now, env, choice).ok_or(Reason::NothingToClose)?)
        }
        _ => return Ok(None),
    };
    can_close(now, env, which)?;
    Ok(Some(which))
}

/// The legs that choices open, if they have quotes. Lines and margin are checked when they are traded.
fn to_open(
    market: &Market,
    costs: &OpenCosts,
    now: At<'_>,
    account: &Account,
    strategy: usize,
    size: usize,
) -> Result<Option<Basket>, Reason> {
    let Some((strategy, size)) = chosen_strategy(market, now, account, strategy, size) else {
        return Ok(None);
    };
    let t = account.t as usize;
    costs.check(t, strategy, market.config.lines as u32)?;
    market.basket(t, strategy, size).map(Some)
}

/// The strategy that a choice of the component `strategy` opens, and the number of contracts for each unit;
/// `None` for the first choice.
fn chosen_strategy(
    market: &Market,
    now: At<'_>,
    account: &Account,
    strategy: usize,
    size: usize,
) -> Option<(usize, f64)> {
    let strategy = strategy.checked_sub(1).filter(|&i| i < market.strategies.legs.len())?;
    let size = market.config.sizes.get(size).unwrap_or(&market.config.sizes[0]);
    Some((strategy, contracts(market, account, now, *size)))
}

fn open_choice(
    market: &Market,
    costs: &OpenCosts,
    now: At<'_>,
    env: &mut Env<'_>,
    strategy: usize,
    size: usize,
) -> Result<(), Reason> {
    let Some((strategy, size)) = chosen_strategy(market, now, env.account, strategy, size) else {
        return Ok(());
    };
    openable(market, costs, now, env.view(), strategy, size)?;
    let basket = market.filled(now, market.basket(env.account.t as usize, strategy, size)?)?;
    open(market, now, env, basket.legs().iter().copied());
    Ok(())
}

/// The number of contracts for each unit of a strategy at a multiple of `sizing`: at least 1.
fn contracts(market: &Market, account: &Account, now: At<'_>, multiple: f64) -> f64 {
    (multiple * market.exact_size(account, now.underlying) + 0.5)
        .clamp(1.0, 1e5)
        .floor()
}

/// Checks that a strategy of a size can be opened.
fn openable(
    market: &Market,
    costs: &OpenCosts,
    now: At<'_>,
    env: View<'_>,
    strategy: usize,
    size: f64,
) -> Result<(), Reason> {
    let (account, t) = (env.account, env.account.t as usize);
    costs.check(t, strategy, market.config.lines as u32 - account.lines)?;
    if market.config.limits.is_none() && costs.is_surely_met(market, now, account, strategy, size) {
        return Ok(());
    }
    can_open_strategy(market, now, env, strategy, size)
}

/// The strategy that a choice of the component `close` closes, by the group of its lines.
fn group(market: &Market, now: At<'_>, env: &Env<'_>, choice: usize) -> Option<u32> {
    let n = env.account.lines as usize;
    let (lines, terms) = (&env.positions[..n], &env.terms[..n]);
    match choice {
        CLOSE_OLDEST => lines.first().map(|line| line.group),
        CLOSE_NEAREST_EXPIRY => {
            let nearest = lines.iter().zip(terms).min_by_key(|(_, terms)| terms.expiry);
            nearest.map(|(line, _)| line.group)
        }
        _ => {
            let profit = |group: u32| -> f64 {
                let of_group = lines.iter().filter(|line| line.group == group);
                of_group.map(|line| profit(market, now, line)).sum()
            };
            // Of equals the first.
            let worst = lines.iter().map(|line| (line.group, profit(line.group)));
            worst.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(group, _)| group)
        }
    }
}

/// The gain of a line since it was opened, or since its contract was adjusted, at its marks.
fn profit(market: &Market, now: At<'_>, line: &Line) -> f64 {
    let since = line.opened.max(market.tables.contracts[line.contract as usize].first);
    let before = market.tables.at(since as usize).entry(line.contract).mark;
    f64::from(line.quantity) * (now.entry(line.contract).mark - before)
}

/// Checks that the lines exist and have quotes: every line of a single strategy, or some line where all are
/// closed, unless there is a hedge to close.
fn can_close(now: At<'_>, env: &Env<'_>, which: Close) -> Result<(), Reason> {
    let n = env.account.lines as usize;
    let mut quoted = env.positions[..n]
        .iter()
        .zip(&env.terms[..n])
        .filter_map(|(line, terms)| {
            let chosen = match which {
                Close::All => true,
                Close::Group(group) => line.group == group,
            };
            chosen.then(|| !now.entry_at(terms.base).exit(line.quantity).is_nan())
        });
    let is_met = match which {
        Close::All if env.account.units != 0.0 || env.hedge.futures != 0.0 => true,
        Close::All if n == 0 => return Err(Reason::NothingToClose),
        Close::All => quoted.any(|quoted| quoted),
        Close::Group(_) => quoted.all(|quoted| quoted),
    };
    if is_met { Ok(()) } else { Err(Reason::NoQuote) }
}

/// Writes the mask of each component, one after the other.
pub(super) fn mask(market: &Market, costs: &OpenCosts, env: &Env<'_>, out: &mut [bool]) {
    let now = market.now(env.account);
    out.fill(true);
    let (strategies, rest) = out.split_at_mut(market.strategies.legs.len() + 1);
    let (sizes, rest) = rest.split_at_mut(market.config.sizes.len());
    let closes = rest.len() - CLOSE_CHOICES;
    let closes = &mut rest[closes..];
    for choice in [CLOSE_OLDEST, CLOSE_NEAREST_EXPIRY, CLOSE_LARGEST_LOSS] {
        let group = group(market, now, env, choice);
        closes[choice] = group.is_some_and(|group| can_close(now, env, Close::Group(group)).is_ok());
    }
    closes[CLOSE_ALL] = can_close(now, env, Close::All).is_ok();

    let closed = closes[CLOSE_ALL].then(|| Closed::new(market, now, env));
    sizes[1..].fill(false);
    for (strategy, is_allowed) in strategies[1..].iter_mut().enumerate() {
        *is_allowed = false;
        for (multiple, is_met) in market.config.sizes.iter().zip(&mut *sizes) {
            let size = contracts(market, env.account, now, *multiple);
            let openable = |env: View<'_>| openable(market, costs, now, env, strategy, size).is_ok();
            let can = openable(env.view()) || closed.as_ref().is_some_and(|closed| openable(closed.view()));
            *is_met |= can;
            *is_allowed |= can;
        }
    }
}

/// The names of the choices of each component, one after the other.
pub(super) fn names(market: &Market) -> Vec<String> {
    let opens = &market.strategies.names[FIRST_OPEN..][..market.strategies.legs.len()];
    let mut names = vec!["none".to_owned()];
    names.extend_from_slice(opens);
    names.extend(market.config.sizes.iter().map(|size| format!("{size} x size")));
    if market.config.hedge.is_by_action() {
        names.extend(["leave", "zero", "band"].map(str::to_owned));
    }
    names.extend(["none", "oldest", "nearest_expiry", "largest_loss", "all"].map(str::to_owned));
    names
}

/// The reason why each choice is masked, in the order of [`mask`]: for a strategy the reason at the first
/// size, for a size the reason of the first strategy.
pub(super) fn reasons(market: &Market, costs: &OpenCosts, env: &Env<'_>) -> Vec<Option<Reason>> {
    let now = market.now(env.account);
    let (strategies, sizes) = (market.strategies.legs.len(), market.config.sizes.len());
    let hedges = if market.config.hedge.is_by_action() {
        HEDGE_CHOICES as usize
    } else {
        0
    };
    let mut allowed = vec![true; 1 + strategies + sizes + hedges + CLOSE_CHOICES];
    mask(market, costs, env, &mut allowed);
    let opening = |strategy: usize, size: usize| {
        let contracts = contracts(market, env.account, now, market.config.sizes[size]);
        openable(market, costs, now, env.view(), strategy, contracts).err()
    };
    let reason = |choice: usize| {
        if let Some(strategy) = choice.checked_sub(1).filter(|&i| i < strategies) {
            return opening(strategy, 0);
        }
        if let Some(size) = choice.checked_sub(1 + strategies).filter(|&i| i < sizes) {
            return (0..strategies).find_map(|strategy| opening(strategy, size));
        }
        let close = choice.checked_sub(1 + strategies + sizes + hedges)?;
        to_close(market, now, env, close).err()
    };
    let reasons = allowed.iter().enumerate();
    // Of a choice that its own check would allow, what it needs beside it is masked.
    reasons
        .map(|(choice, allowed)| (!allowed).then(|| reason(choice).unwrap_or(Reason::NoContract)))
        .collect()
}

/// An account as it would be if everything with a quote were closed.
struct Closed {
    account: Account,
    hedge: Hedge,
    lines: [Line; MAX_LINES],
    counters: Counters,
}

impl Closed {
    fn new(market: &Market, now: At<'_>, env: &Env<'_>) -> Self {
        let mut this = Self {
            account: *env.account,
            hedge: *env.hedge,
            lines: [Line::default(); MAX_LINES],
            counters: *env.counters,
        };
        let n = env.positions.len();
        this.lines[..n].copy_from_slice(env.positions);
        let mut terms = [Terms::default(); MAX_LINES];
        terms[..n].copy_from_slice(env.terms);
        let mut moments = *env.moments;
        close(
            market,
            now,
            &mut Env {
                account: &mut this.account,
                positions: &mut this.lines,
                orders: &mut [],
                terms: &mut terms,
                cached: &mut Cached::default(),
                counters: &mut this.counters,
                moments: &mut moments,
                hedge: &mut this.hedge,
            },
            Close::All,
        );
        this
    }

    fn view(&self) -> View<'_> {
        View {
            account: &self.account,
            positions: &self.lines,
            counters: &self.counters,
            hedge: &self.hedge,
        }
    }
}
