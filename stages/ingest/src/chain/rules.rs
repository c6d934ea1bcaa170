//! The rules of [`datasets::quality::CHAIN`], applied.

use super::columns::{ASK, BID, Chain, LAST, OPEN_INTEREST, UNDERLYING, VOLATILITY, VOLUME};
use crate::options::{OnBadRows, count_missing_days};
use datasets::Date;
use datasets::calendar::is_trading_day;
use datasets::layout::CalendarName;
use datasets::quality::{Action, CHAIN, HIGHEST_VOLATILITY, PLACEHOLDER_VOLATILITY, Tally};
use std::collections::{BTreeMap, BTreeSet};

/// The rules of chains with their settings.
pub struct Rules<'a> {
    /// The action for each.
    pub bad: &'a OnBadRows,
    /// The exchange's calendar.
    pub calendar: CalendarName,
    /// Returns whether a class is AM-settled.
    pub is_morning: &'a dyn Fn(&str) -> bool,
    /// True where the files have quotes; otherwise they have last prices alone.
    pub quoted: bool,
}

/// The state of the snapshots so far that later ones are checked against: a chain may come in parts, each later than the one before.
#[derive(Default)]
pub struct Seen {
    symbols: BTreeMap<String, SeenOf>,
}

#[derive(Default)]
struct SeenOf {
    open: BTreeSet<Date>,
    underlying: Option<f64>,
}

impl Seen {
    /// Counts the trading days without a snapshot, once all of the chain was seen.
    pub fn count_missing_days(&self, calendar: CalendarName, tally: &mut Tally) {
        for seen in self.symbols.values() {
            count_missing_days(calendar, &seen.open, tally);
        }
    }
}

impl Rules<'_> {
    fn acts(&self, rule: &str) -> bool {
        self.bad.of(CHAIN, rule) != Action::Keep
    }

    /// Sorts the chain, or the next part of it, makes its key unique, and applies the rules to every row.
    pub fn clean(&self, chain: &mut Chain, seen: &mut Seen, tally: &mut Tally) {
        self.repair_expiries(chain, tally);
        chain.sort();
        drop_duplicates(chain, tally);
        let mut keep = vec![true; chain.len()];
        self.days(chain, seen, tally, &mut keep);
        self.rows(chain, tally, &mut keep);
        chain.retain(&keep);
    }

    fn repair_expiries(&self, chain: &mut Chain, tally: &mut Tally) {
        let repair = self.acts("weekend_expiry");
        for i in 0..chain.len() {
            let mut expiry = Date(chain.expiry[i]);
            if expiry.is_weekend() {
                tally.add("weekend_expiry", Date(chain.date[i]), 1);
                if repair {
                    // The last day of trading: the Friday, or the day before it where that is a holiday.
                    while expiry.is_weekend() || !is_trading_day(self.calendar, expiry) {
                        expiry = expiry.plus(-1);
                    }
                    chain.expiry[i] = expiry.0;
                }
            }
        }
    }

    /// Applies the rules of whole snapshots.
    fn days(&self, chain: &Chain, seen: &mut Seen, tally: &mut Tally, keep: &mut [bool]) {
        let drop_closed = self.acts("non_trading_day");
        for run in chain.snapshots() {
            let (symbol, date, rows) = (chain.symbol[run.start], Date(chain.date[run.start]), run.len() as u64);
            let seen = seen.symbols.entry(chain.name(symbol).to_owned()).or_default();
            if is_trading_day(self.calendar, date) {
                seen.open.insert(date);
            } else {
                tally.add("non_trading_day", date, rows);
                if drop_closed {
                    keep[run.clone()].fill(false);
                }
            }
            let underlying = chain.values[UNDERLYING][run.start];
            if seen.underlying == Some(underlying) {
                tally.add("repeated_underlying", date, rows);
            }
            seen.underlying = Some(underlying);
        }
    }

    /// Applies the rules of single rows.
    fn rows(&self, chain: &mut Chain, tally: &mut Tally, keep: &mut [bool]) {
        let morning: Vec<bool> = chain.names.texts.iter().map(|root| (self.is_morning)(root)).collect();
        let drops = |rule| self.acts(rule);
        let drop_expired = drops("expired");
        let drop_settled = drops("settled_in_the_morning");
        let drop_strike = drops("bad_strike");
        let drop_negative = drops("negative_price");
        let drop_null = drops("null_close");
        let drop_no_quote = drops("no_quote");
        let drop_crossed = drops("crossed_quote");
        let drop_impossible = drops("impossible_bid");
        let mend_counts = drops("negative_count");
        let mend_placeholder = drops("placeholder_volatility");
        let mend_implausible = drops("implausible_volatility");
        for i in 0..chain.len() {
            let day = Date(chain.date[i]);
            let value = |column: usize| chain.values[column][i];
            let mut breaks = |rule: &str, drop: bool| {
                tally.add(rule, day, 1);
                keep[i] &= !drop;
            };
            if chain.expiry[i] < chain.date[i] {
                breaks("expired", drop_expired);
            }
            if chain.expiry[i] == chain.date[i] && morning[chain.root[i] as usize] {
                breaks("settled_in_the_morning", drop_settled);
            }
            if chain.strike[i] <= 0.0 {
                breaks("bad_strike", drop_strike);
            }
            let (bid, ask) = (value(BID), value(ASK));
            if bid < 0.0 || ask < 0.0 || value(LAST) < 0.0 {
                breaks("negative_price", drop_negative);
            }
            if self.quoted {
                let some = |price: f64| price > 0.0;
                if !some(bid) && !some(ask) {
                    breaks("no_quote", drop_no_quote);
                } else if some(bid) && (ask.is_nan() || ask < bid) {
                    breaks("crossed_quote", drop_crossed);
                } else if !some(bid) {
                    breaks("zero_bid", false);
                }
                let bound = if chain.call[i] {
                    value(UNDERLYING)
                } else {
                    chain.strike[i]
                };
                if bid > bound {
                    breaks("impossible_bid", drop_impossible);
                }
            } else if value(LAST).is_nan() {
                breaks("null_close", drop_null);
            }
            for column in [VOLUME, OPEN_INTEREST] {
                if chain.values[column][i] < 0.0 {
                    tally.add("negative_count", day, 1);
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
            tally.add(rule, day, 1);
            if mend {
                chain.values[VOLATILITY][i] = f64::NAN;
            }
        }
    }
}

/// Of the rows of one key, the first stays: [`Chain::sort`] has put it there.
fn drop_duplicates(chain: &mut Chain, tally: &mut Tally) {
    let mut keep = vec![true; chain.len()];
    for i in 1..chain.len() {
        if chain.same_key(i - 1, i) {
            keep[i] = false;
            tally.add("duplicate_key", Date(chain.date[i]), 1);
        }
    }
    chain.retain(&keep);
}

/// Counts the rows without an underlying.
pub fn count_missing_underlying(chain: &Chain, tally: &mut Tally) {
    for (date, underlying) in chain.date.iter().zip(&chain.values[UNDERLYING]) {
        if underlying.is_nan() {
            tally.add("missing_underlying", Date(*date), 1);
        }
    }
}
