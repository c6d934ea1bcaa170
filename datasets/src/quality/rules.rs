//! The data-quality rules, by table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of a table's rows that a rule may drop, unless the rule or the configuration says otherwise.
pub const MOST_DROPPED: f64 = 0.05;

/// A data-quality rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The name of the rule, as `on_bad_rows:` and the data-quality table use it.
    pub name: &'static str,
    /// The violation, and the remedy of `drop`.
    pub about: &'static str,
    /// The remedy of `drop`.
    pub remedy: Remedy,
    /// The action where none is configured.
    pub action: Action,
    /// The share of a table's rows that it may drop where none is configured.
    pub most_dropped: f64,
}

/// The remedy for a violation where the action is `drop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The row is dropped.
    Row,
    /// The value is dropped or repaired; the row stays.
    Value,
    /// The row is dropped, with `keep` too: a table's key must be unique.
    Always,
    /// None: the violation is no row's. It is reported, or stops the stage.
    Note,
}

/// The action for data that breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Drop invalid data: the row, or the value where the rest of the row is valid.
    #[default]
    Drop,
    /// Keep the data unchanged, and count it.
    Keep,
    /// Keep the row as a mark at which nothing can be traded. Rows of option chains alone have it.
    Untradable,
    /// Fail with an error.
    Fail,
}

/// The name of the rule for dates that cannot be written as dates of the calendar. Only tables that break it
/// list it.
pub const DATE_OUT_OF_RANGE: &str = "date_out_of_range";

const OUT_OF_RANGE: Rule = rule(
    DATE_OUT_OF_RANGE,
    Remedy::Always,
    "a date that is not in the years 1800 to 2199",
);

/// A rule that drops or repairs, or of a [`Remedy::Note`] only reports.
const fn rule(name: &'static str, remedy: Remedy, about: &'static str) -> Rule {
    let action = match remedy {
        Remedy::Note => Action::Keep,
        _ => Action::Drop,
    };
    Rule {
        name,
        about,
        remedy,
        action,
        most_dropped: MOST_DROPPED,
    }
}

impl Rule {
    /// Sets another default action of the rule.
    const fn by_default(self, action: Action) -> Self {
        Self { action, ..self }
    }

    /// Sets another share of rows that the rule may drop by default: its rows are not data, and tables with
    /// many of them are common.
    const fn may_drop(self, most_dropped: f64) -> Self {
        Self { most_dropped, ..self }
    }
}

/// Declares a list of rules, one per line: name, remedy, the default action (`=> Keep`), the share of rows
/// that the rule may drop (`up to 0.5`), and the violation. [`OUT_OF_RANGE`] is the last rule of every list.
macro_rules! rules {
    ($($name:ident: $remedy:ident $(=> $action:ident)? $(up to $most:literal)?, $about:literal;)*) => {
        &[
            $(rule(stringify!($name), Remedy::$remedy, $about)
                $(.by_default(Action::$action))? $(.may_drop($most))?,)*
            OUT_OF_RANGE,
        ]
    };
}

/// The rule called `name`.
pub fn of<'a>(rules: &'a [Rule], name: &str) -> Option<&'a Rule> {
    rules.iter().find(|rule| rule.name == name)
}

/// The rules of option chains, in the order of their report.
pub const CHAIN: &[Rule] = rules! {
    non_trading_day: Row, "a snapshot of a day on which the exchange is closed";
    missing_day: Note, "trading days between the first and the last without any row (counted in days)";
    hole: Note, "five or more trading days in a row without any row (counted in days)";
    repeated_underlying: Row => Keep, "a snapshot whose underlying has, to the last digit, the price of \
        the one before: it may be stale";
    copied_day: Row, "a snapshot whose bids and asks are all those of the one before: it is a copy, not a \
        market";
    strike_jump: Note => Fail, "the strikes moved overnight by the ratio of a split that no corporate \
        action explains (counted in days)";
    price_jump: Note => Fail, "the underlying moved overnight by the ratio of a split, and the options did \
        not (counted in days)";
    expired: Row, "the expiry is before the day of the snapshot";
    settled_in_the_morning: Row up to 0.5, "a class that settles on the opening prices, on the day of its \
        expiry: there is nothing left to trade";
    weekend_expiry: Value, "the expiry is a Saturday or Sunday; repaired to the Friday before";
    duplicate_key: Always, "several rows for one contract and day; the one with most open interest stays, \
        then most volume, the narrowest spread, the lowest prices";
    bad_strike: Row, "the strike is not above 0";
    single_precision: Note, "a strike that the file holds in single precision, read as its shortest decimal";
    negative_price: Row, "bid, ask or last is below 0";
    null_close: Row up to 0.5, "no close, in files that have nothing else";
    no_quote: Row up to 0.5, "bid and ask are both 0 or missing";
    never_traded: Row => Untradable, "a last price, in files without quotes, of a contract without volume \
        or open interest so far: nobody traded at it";
    crossed_quote: Row, "the bid is above the ask";
    impossible_bid: Row, "the bid is above the underlying for a call, above the strike for a put";
    ask_below_intrinsic: Row => Untradable, "the ask is below the value of exercise: at once for American \
        contracts, at expiry and under any plausible carry for European ones";
    below_tick: Row => Untradable, "a bid or ask above 0 and below the smallest step of prices: nobody can \
        quote it";
    zero_bid: Row => Keep, "nobody bids; the contract can be bought and not sold, as is usual far from the \
        money";
    negative_count: Value, "volume or open interest is below 0; removed";
    placeholder_volatility: Value, "an implied volatility of 0.02 or less, which stands for none; removed";
    implausible_volatility: Value, "an implied volatility above 5 (500 %); removed";
    volatility_contradicts_price: Value, "an implied volatility that prices an option out of the money \
        below half its bid or above twice its ask; removed";
    missing_underlying: Row => Keep, "no price of the underlying";
    underlying_beyond_limit: Value, "the underlying that parity gives moved more than the exchange allows \
        in a day; bounded there";
};

/// The rules of bars.
pub const BARS: &[Rule] = rules! {
    non_trading_day: Row, "a bar of a day on which the exchange is closed";
    missing_day: Note, "trading days between a symbol's first and last without a bar (counted in days)";
    hole: Note, "five or more trading days in a row without a bar of the symbol (counted in days)";
    duplicate_key: Always, "several bars for one symbol and day; the one with most volume stays, then the \
        lowest prices";
    null_close: Always, "no close";
    nonpositive_price: Row, "a price that is not above 0";
    inconsistent_range: Row, "open or close outside the range of low and high by more than 0.01 %";
    decimal_error: Value, "a price that is 10, 100 or 1,000 times the others of its bar, or that part of them; \
        removed, with the bar where it is the close";
    copied_day: Row, "a day on which the bars of all symbols are those of the day before: it is a copy";
    copied_bar: Row => Keep, "a bar with volume whose prices and volume are all those of the symbol's bar \
        before: it is a copy";
    copied_block: Note, "bars in a row that are, to the digit, those of some days before: a block is copied";
    stale_price: Row => Keep, "prices that are those of the four bars before: they may be stale";
    other_symbol: Row, "a bar far from the symbol's last close that is, to the digit, another symbol's of \
        that day";
    shared_bar: Row => Keep, "a bar with volume that is, to the digit, another symbol's of that day: are \
        they one?";
    negative_count: Value, "volume below 0; removed";
    zero_volume: Row => Keep, "a day without a trade";
    unit_jump: Row => Fail, "a close 100, 1,000 or more times the last one, or that part of it, or so far \
        off as no news makes it: another unit, or a separator that is read wrong";
    split_jump: Note, "a close that moved from the last one by a common ratio of splits, on a day that is \
        usual otherwise: a split in prices that are not adjusted";
    large_jump: Row => Keep, "a close more than 50 % above or a third below the last one (30 % and eight usual \
        moves, without a volume), without the ratio of a split: news, or a mistake";
    odd_open: Row => Keep, "an open far from the last close and from its own, in a bar without high and low: a \
        price of something else";
    adjusted_jump: Row => Keep, "an adjusted close that jumps from the last one where the close does not, or \
        the other way, or that does not follow it for days: of another unit, or another download";
    spike: Note, "closes far from those before and after, for five days or less: a price of something else";
};

/// The rules of interest rates.
pub const RATES: &[Rule] = rules! {
    non_trading_day: Row up to 0.5, "rates of a day on which the market is closed";
    hole: Note, "five or more trading days in a row without any rate (counted in days)";
    duplicate_key: Always, "several rates for one day and maturity; the lowest stays";
    zero_for_missing: Row up to 0.5, "a yield of 0 while the nearest maturity yields more than 0.5 %, or \
        all of a day after such yields: it stands for none";
    implausible_rate: Row, "a rate below -10 % or above 50 %";
    unit_change: Note => Fail, "the rates of all maturities are a hundredth, or a hundred times, those of the \
        day before, or all of several a tenth or ten times, or those of one maturity a hundredth of its \
        neighbours': decimals among percent (counted in days)";
};

/// The rules of a user's own factors.
pub const FACTORS: &[Rule] = rules! {
    bad_number: Value, "a value that is no finite number; removed";
    missing_symbol: Row, "no symbol, in a file that has symbols";
    contradiction: Always => Fail, "several rows for one key that have different values: none of them is \
        shown";
};

/// The rules of factors by contract: the rules of [`FACTORS`], and one about their contracts.
pub const CONTRACT_FACTORS: &[Rule] = &[
    FACTORS[0],
    FACTORS[1],
    rule("bad_contract", Remedy::Always, "a contract that cannot be read"),
    FACTORS[2],
    OUT_OF_RANGE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for rules in [CHAIN, BARS, RATES, FACTORS, CONTRACT_FACTORS] {
            for (i, rule) in rules.iter().enumerate() {
                assert!(rules[..i].iter().all(|other| other.name != rule.name));
            }
        }
    }

    #[test]
    fn rules_about_no_row_do_not_drop() {
        for rule in [CHAIN, BARS, RATES, FACTORS, CONTRACT_FACTORS].into_iter().flatten() {
            if rule.remedy == Remedy::Note {
                assert!(matches!(rule.action, Action::Keep | Action::Fail), "{}", rule.name);
            }
            assert!((MOST_DROPPED..=1.0).contains(&rule.most_dropped), "{}", rule.name);
        }
    }
}
