//! Applies the rules of [`datasets::quality::CHAIN`] that do not need the price of the underlying. The others
//! are in [`price_rules`](super::price_rules) and [`jumps`](super::jumps).

use super::columns::{ASK, BID, Chain, LAST, OPEN_INTEREST, UNDERLYING, VOLATILITY, VOLUME};
use super::seen::Seen;
use super::snapshot_copy::Prices;
use crate::options::OnBadRows;
use datasets::Date;
use datasets::calendar::is_trading_day;
use datasets::contract::{Contracts, Exercise, Expires};
use datasets::corporate_action::CorporateAction;
use datasets::layout::CalendarName;
use datasets::quality::{Action, CHAIN, HIGHEST_VOLATILITY, PLACEHOLDER_VOLATILITY, Tally};
use std::collections::BTreeSet;
use std::ops::Range;

/// The contract styles that the rules depend on.
#[derive(Default)]
pub(crate) struct Styles {
    /// The roots with an AM-settled class.
    pub(super) morning: BTreeSet<String>,
    /// The symbols with a class of American exercise.
    pub(super) american: BTreeSet<String>,
}

impl Styles {
    /// Collects the styles of contracts.
    pub(super) fn of(contracts: &Contracts) -> Self {
        let morning = contracts
            .iter()
            .filter(|(_, facts)| facts.terms.expires == Some(Expires::Am));
        let american = contracts
            .iter()
            .filter(|(_, facts)| facts.terms.exercise == Some(Exercise::American));
        Self {
            morning: morning.map(|(root, _)| root.to_owned()).collect(),
            american: american.map(|(_, facts)| facts.symbol.clone()).collect(),
        }
    }
}

/// The rules for chains, with their settings.
pub(crate) struct Rules<'a> {
    /// The action for each rule.
    pub bad: &'a OnBadRows,
    /// The exchange's calendar.
    pub calendar: CalendarName,
    /// The styles of the contracts.
    pub styles: &'a Styles,
    /// True if the files have quotes; otherwise they have last prices alone.
    pub quoted: bool,
    /// True if the files have volume or open interest.
    pub counted: bool,
    /// The tick size of prices, in currency; 0 if unknown.
    pub tick: f64,
    /// The corporate actions that explain jumps.
    pub actions: &'a [CorporateAction],
}

/// The rows that remain while rules are being applied.
pub(super) struct Applied<'a> {
    rules: &'a Rules<'a>,
    pub keep: Vec<bool>,
}

impl<'a> Applied<'a> {
    pub(super) fn new(rules: &'a Rules<'a>, chain: &Chain) -> Self {
        Self {
            rules,
            keep: vec![true; chain.len()],
        }
    }

    /// Counts a row that breaks a rule, and takes the rule's action.
    pub(super) fn broken(&mut self, rule: &str, chain: &mut Chain, row: usize, tally: &mut Tally) {
        tally.add_row(rule, Date(chain.date[row]), || chain.example(row));
        self.act(rule, chain, row..row + 1);
    }

    /// Counts all rows of a snapshot that breaks a rule, and takes the rule's action.
    fn broken_snapshot(&mut self, rule: &str, chain: &mut Chain, rows: Range<usize>, tally: &mut Tally) {
        let first = rows.start;
        tally.add_rows(rule, Date(chain.date[first]), rows.len() as u64, || {
            chain.example(first)
        });
        self.act(rule, chain, rows);
    }

    fn act(&mut self, rule: &str, chain: &mut Chain, rows: Range<usize>) {
        match self.rules.action(rule) {
            Action::Drop => self.keep[rows].fill(false),
            Action::Untradable => rows.for_each(|row| chain.bar_trades(row)),
            Action::Keep | Action::Fail => {}
        }
    }
}

impl Rules<'_> {
    pub(super) fn action(&self, rule: &str) -> Action {
        self.bad.of(CHAIN, rule)
    }

    pub(super) fn repairs(&self, rule: &str) -> bool {
        self.action(rule) != Action::Keep
    }

    /// The first steps, which need no earlier part of the chain: sorts the rows and removes duplicate keys.
    pub(crate) fn prepare(&self, chain: &mut Chain, tally: &mut Tally) {
        if chain.expiry.iter().any(|expiry| Date(*expiry).is_weekend()) {
            // Sorted first, so that the examples do not depend on how rows are spread over files.
            chain.sort();
            self.repair_expiries(chain, tally);
        }
        chain.sort();
        drop_duplicates(chain, tally);
    }

    /// Applies the rules that do not need the price of the underlying to prepared rows.
    pub(crate) fn check_rows(&self, chain: &mut Chain, seen: &mut Seen, tally: &mut Tally) {
        let mut applied = Applied::new(self, chain);
        self.days(chain, seen, tally, &mut applied);
        self.rows(chain, seen, tally, &mut applied);
        chain.retain(&applied.keep);
    }

    fn repair_expiries(&self, chain: &mut Chain, tally: &mut Tally) {
        let repair = self.repairs("weekend_expiry");
        for i in 0..chain.len() {
            let mut expiry = Date(chain.expiry[i]);
            if expiry.is_weekend() {
                tally.add_row("weekend_expiry", Date(chain.date[i]), || chain.example(i));
                if repair {
                    // The last trading day: the Friday, or the trading day before it if that is a holiday.
                    while expiry.is_weekend() || !is_trading_day(self.calendar, expiry) {
                        expiry = expiry.plus(-1);
                    }
                    chain.expiry[i] = expiry.0;
                }
            }
        }
    }

    /// Applies the rules for whole snapshots and days. A day with several snapshots counts as a copy of the
    /// previous one only if both its first and its last snapshot do, since prices often stay the same from
    /// one minute to the next.
    fn days(&self, chain: &mut Chain, seen: &mut Seen, tally: &mut Tally, applied: &mut Applied<'_>) {
        for day in chain.days() {
            let (Some(first), Some(last)) = (day.first().cloned(), day.last().cloned()) else {
                continue;
            };
            let (symbol, date) = (chain.symbol[first.start], Date(chain.date[first.start]));
            let seen = seen.of(&chain.names.texts[symbol as usize]);
            let is_open = is_trading_day(self.calendar, date);
            if is_open {
                seen.open.insert(date);
            }
            let [opening, underlying] = [&first, &last].map(|run| chain.values[UNDERLYING][run.start]);
            let is_repeated = seen.underlying == Some(underlying)
                && seen.opening.as_ref().is_none_or(|before| before.0 == opening);
            let prices = Prices::new(chain, last);
            let opening = chain
                .snapshot(first.start)
                .map(|_| (opening, Prices::new(chain, first)));
            let is_copy = seen.prices.as_ref().is_some_and(|before| prices.copies(before))
                && match (&opening, &seen.opening) {
                    (Some((_, prices)), Some((_, before))) => prices.copies(before),
                    _ => true,
                };
            for run in day {
                for (rule, is_broken) in [
                    ("non_trading_day", !is_open),
                    ("repeated_underlying", is_repeated),
                    ("copied_day", is_copy),
                ] {
                    if is_broken {
                        applied.broken_snapshot(rule, chain, run.clone(), tally);
                    }
                }
            }
            seen.underlying = Some(underlying);
            seen.prices = Some(prices);
            seen.opening = opening;
        }
    }

    /// Applies the rules for single rows.
    fn rows(&self, chain: &mut Chain, seen: &mut Seen, tally: &mut Tally, applied: &mut Applied<'_>) {
        let morning: Vec<bool> = chain
            .names
            .texts
            .iter()
            .map(|root| self.styles.morning.contains(root))
            .collect();
        let mend_counts = self.repairs("negative_count");
        let mend_placeholder = self.repairs("placeholder_volatility");
        let mend_implausible = self.repairs("implausible_volatility");
        // Prices of a contract that has not traded so far are not genuine; later trades are not considered.
        let traded = !self.quoted && self.counted;
        for i in 0..chain.len() {
            if chain.expiry[i] < chain.date[i] {
                applied.broken("expired", chain, i, tally);
            }
            if chain.expiry[i] == chain.date[i] && morning[chain.root[i] as usize] {
                applied.broken("settled_in_the_morning", chain, i, tally);
            }
            if chain.strike[i] <= 0.0 {
                applied.broken("bad_strike", chain, i, tally);
            }
            let [bid, ask, last] = [BID, ASK, LAST].map(|column| chain.values[column][i]);
            if bid < 0.0 || ask < 0.0 || last < 0.0 {
                applied.broken("negative_price", chain, i, tally);
            }
            let some = |price: f64| price > 0.0;
            if self.quoted {
                if !some(bid) && !some(ask) {
                    applied.broken("no_quote", chain, i, tally);
                } else if some(bid) && (ask.is_nan() || ask < bid) {
                    applied.broken("crossed_quote", chain, i, tally);
                } else if !some(bid) {
                    applied.broken("zero_bid", chain, i, tally);
                }
                let bound = if chain.call[i] {
                    chain.values[UNDERLYING][i]
                } else {
                    chain.strike[i]
                };
                if bid > bound {
                    applied.broken("impossible_bid", chain, i, tally);
                }
                // A thousandth below the tick, so that a tick in another notation passes.
                let tick = self.tick * 0.999;
                if some(bid) && bid < tick || some(ask) && ask < tick {
                    applied.broken("below_tick", chain, i, tally);
                }
            } else if last.is_nan() {
                applied.broken("null_close", chain, i, tally);
            } else if traded && chain.expiry[i] >= chain.date[i] {
                let traded = &mut seen.of(&chain.names.texts[chain.symbol[i] as usize]).traded;
                let contract = (chain.expiry[i], chain.strike[i].to_bits(), chain.call[i]);
                if chain.values[VOLUME][i] > 0.0 || chain.values[OPEN_INTEREST][i] > 0.0 {
                    traded.insert(contract);
                } else if !traded.contains(&contract) {
                    applied.broken("never_traded", chain, i, tally);
                }
            }
            for column in [VOLUME, OPEN_INTEREST] {
                if chain.values[column][i] < 0.0 {
                    tally.add_row("negative_count", Date(chain.date[i]), || chain.example(i));
                    if mend_counts {
                        chain.values[column][i] = f64::NAN;
                    }
                }
            }
            let volatility = chain.values[VOLATILITY][i];
            let (rule, mend) = if volatility <= PLACEHOLDER_VOLATILITY {
                ("placeholder_volatility", mend_placeholder)
            } else if volatility > HIGHEST_VOLATILITY {
                ("implausible_volatility", mend_implausible)
            } else {
                continue;
            };
            tally.add_row(rule, Date(chain.date[i]), || chain.example(i));
            if mend {
                chain.values[VOLATILITY][i] = f64::NAN;
            }
        }
    }
}

/// Drops duplicate rows: the first row of each key stays, as [`Chain::sort`] ordered them.
fn drop_duplicates(chain: &mut Chain, tally: &mut Tally) {
    let mut keep = vec![true; chain.len()];
    for i in 1..chain.len() {
        if chain.same_key(i - 1, i) {
            keep[i] = false;
            tally.add_row("duplicate_key", Date(chain.date[i]), || chain.example(i));
        }
    }
    chain.retain(&keep);
}
