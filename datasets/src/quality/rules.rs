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
    /// The exact condition and its tolerances, where `about` leaves them open; empty otherwise. `S` is the
    /// underlying, `K` the strike, `T` years of 365 days to expiry; a *usual move* is the mean change from
    /// close to close, in this quarter and the one before.
    pub formula: &'static str,
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
        formula: "",
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

    /// Sets the exact condition.
    const fn exactly(self, formula: &'static str) -> Self {
        Self { formula, ..self }
    }

    /// Sets another share of rows that the rule may drop by default: its rows are not data, and tables with
    /// many of them are common.
    const fn may_drop(self, most_dropped: f64) -> Self {
        Self { most_dropped, ..self }
    }
}

/// Declares a list of rules, one per line: name, remedy, the default action (`=> Keep`), the share of rows
/// that the rule may drop (`up to 0.5`), the violation, and the exact condition where it needs more words.
/// [`OUT_OF_RANGE`] is the last rule of every list.
macro_rules! rules {
    ($($name:ident: $remedy:ident $(=> $action:ident)? $(up to $most:literal)?,
        $about:literal $(, $formula:literal)?;)*) => {
        &[
            $(rule(stringify!($name), Remedy::$remedy, $about)
                $(.by_default(Action::$action))? $(.may_drop($most))? $(.exactly($formula))?,)*
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
    missing_day: Note, "trading days between the first and the last without any row (counted in days)",
        "Holidays have to be known. By instants, the days with fewer snapshots than most are in \
            `snapshots_a_day` of the metadata";
    hole: Note, "five or more trading days in a row without any row (counted in days)",
        "Twelve weekdays, where the calendar knows weekends alone";
    repeated_underlying: Row => Keep, "a snapshot whose underlying has, to the last digit, the price of \
        the one before: it may be stale",
        "`S` is that of the day before. With several snapshots a day, those of both the first and the \
            last snapshot are: neighbouring minutes are not compared";
    copied_day: Row, "a snapshot whose bids and asks are all those of the one before: it is a copy, not a \
        market",
        "At least 10 contracts, nine tenths of this day's, have prices on both days, and each the same \
            bid and ask (the same last price, without quotes). With several snapshots a day, both the first \
            and the last one do";
    strike_jump: Note => Fail, "the strikes moved overnight by the ratio of a split that no corporate \
        action explains (counted in days)",
        "From the last snapshot of a day to the first of the next: fewer than half of the unexpired \
            contracts (10 or more) are listed again, and a common ratio within 25 % of `r = S before / S \
            after` takes half of their strikes, to a cent, to strikes that are listed. Common ratios: 2 to \
            100 for 1, 3 for 2, 4 for 3, 5 for 4, 5 for 2, and mergers. A split at `actions` explains a \
            jump of its ratio, to 1 %";
    price_jump: Note => Fail, "the underlying moved overnight by the ratio of a split, and the options did \
        not (counted in days)",
        "A common ratio is within 5 % of `r = S before / S after`, which is 1.4 or more either way, and \
            the forward by put-call parity is 20 % or more off `S`, or fewer than half of the contracts are \
            listed again. A move that the options follow with their strikes unchanged is news";
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
        or open interest so far: nobody traded at it",
        "Files count trades or open contracts, and the contract had neither on this day or any day \
            before";
    crossed_quote: Row, "the bid is above the ask";
    impossible_bid: Row, "the bid is above the underlying for a call, above the strike for a put";
    ask_below_intrinsic: Row => Untradable, "the ask is below the value of exercise: at once for American \
        contracts, at expiry and under any plausible carry for European ones",
        "The ask (the last price, without quotes) is below, by more than a billionth of `K`: American, \
            `max(S - K, 0)` of a call and `max(K - S, 0)` of a put; European, `exp(-0.1 T) max(F - K, 0)` \
            of a call and `exp(-0.1 T) max(K - F, 0)` of a put. `F` is the median forward by put-call \
            parity at the expiry, over the strikes nearest to the money; without parity `S exp(-0.1 T)` for \
            calls and `S exp(0.1 T)` for puts";
    below_tick: Row => Untradable, "a bid or ask above 0 and below the smallest step of prices: nobody can \
        quote it",
        "The setting `tick`; by default 0.01 in USD and 0.0001 in CNY";
    zero_bid: Row => Keep, "nobody bids; the contract can be bought and not sold, as is usual far from the \
        money";
    negative_count: Value, "volume or open interest is below 0; removed";
    placeholder_volatility: Value, "an implied volatility of 0.02 or less, which stands for none; removed";
    implausible_volatility: Value, "an implied volatility above 5 (500 %); removed";
    volatility_contradicts_price: Value, "an implied volatility that prices an option out of the money \
        below half its bid or above twice its ask; removed",
        "Two days or more from expiry: below half the bid less 5 ticks, or above twice the ask plus 5 \
            ticks";
    missing_underlying: Row => Keep, "no price of the underlying";
    underlying_beyond_limit: Value, "the underlying that parity gives moved more than the exchange allows \
        in a day; bounded there",
        "Of layouts that state a `daily_limit`; against the last price of the day before";
};

/// The rules of bars.
pub const BARS: &[Rule] = rules! {
    non_trading_day: Row, "a bar of a day on which the exchange is closed";
    missing_day: Note, "trading days between a symbol's first and last without a bar (counted in days)";
    hole: Note, "five or more trading days in a row without a bar of the symbol (counted in days)",
        "Twelve weekdays, where the calendar knows weekends alone";
    duplicate_key: Always, "several bars for one symbol and day; the one with most volume stays, then the \
        lowest prices";
    null_close: Always, "no close";
    nonpositive_price: Row, "a price that is not above 0";
    inconsistent_range: Row, "open or close outside the range of low and high by more than 0.01 %";
    decimal_error: Value, "a price that is 10, 100 or 1,000 times the others of its bar, or that part of them; \
        removed, with the bar where it is the close",
        "Some of its prices are 10, 100, 1,000 or 10,000 times the others, or that part of them";
    copied_day: Row, "a day on which the bars of all symbols are those of the day before: it is a copy",
        "Of all symbols with volume that day, at least two and nine tenths have the bar of the day \
            before; of symbols without volume, three";
    copied_bar: Row => Keep, "a bar with volume whose prices and volume are all those of the symbol's bar \
        before: it is a copy";
    copied_block: Note, "bars in a row that are, to the digit, those of some days before: a block is copied",
        "Two bars in a row (four, of closes alone; one, for three symbols of four) are those of the same \
            distance before, of 32 bars at most";
    stale_price: Row => Keep, "prices that are those of the four bars before: they may be stale";
    other_symbol: Row, "a bar far from the symbol's last close that is, to the digit, another symbol's of \
        that day",
        "Its close is 3 % (4 usual moves) or more off its symbol's last one";
    shared_bar: Row => Keep, "a bar with volume that is, to the digit, another symbol's of that day: are \
        they one?";
    negative_count: Value, "volume below 0; removed";
    zero_volume: Row => Keep, "a day without a trade";
    unit_jump: Row => Fail, "a close 100, 1,000 or more times the last one, or that part of it, or so far \
        off as no news makes it: another unit, or a separator that is read wrong",
        "The close is 100, 1,000, 10,000 or a million times the last one, to 22 %, or that part of it, \
            and the volume does not change by the inverse; or more than 9.5 times the last one, or below \
            that part of it, on no more than three times the usual volume and without a split. `drop` drops \
            bars until the level comes back, and is refused where that is most of a symbol";
    split_jump: Note, "a close that moved from the last one by a common ratio of splits, on a day that is \
        usual otherwise: a split in prices that are not adjusted",
        "The ratio is within 2 to 5 % (three usual moves) of a common one, or 8 % (five) where open and \
            volume are there, or 10 % from 10 for 1 on; it is eight usual moves or more; the open moved \
            alike; and the volume is no more than three times that of so many shares. Below 2 for 1, open \
            and volume have to be there, and the ratio to be within 2 %; below 3 for 2, the close has to be \
            as near the open as on other days, and the volume at most half above that of so many shares. \
            After 14 days without a bar, only 3.5 or more, with as many more shares traded. `env/stocks` \
            refuses the jump, unless an action explains it or the prices are stated to be adjusted";
    large_jump: Row => Keep, "a close more than 50 % above or a third below the last one (30 % and eight usual \
        moves, without a volume), without the ratio of a split: news, or a mistake",
        "`env/stocks` takes it: news opens elsewhere, or trades more shares, than a split does";
    odd_open: Row => Keep, "an open far from the last close and from its own, in a bar without high and low: a \
        price of something else",
        "20 % (8 usual moves) or more off both";
    adjusted_jump: Row => Keep, "an adjusted close that jumps from the last one where the close does not, or \
        the other way, or that does not follow it for days: of another unit, or another download",
        "The adjusted close over the close changes by 20 % or more, and the close does not change by the \
            inverse; or the adjusted close stands still, or strays, for days on which the close moves";
    spike: Note, "closes far from those before and after, for five days or less: a price of something else",
        "20 % (10 usual moves) or more off those before and after, from a day of no more than twice the \
            usual volume on";
};

/// The rules of interest rates.
pub const RATES: &[Rule] = rules! {
    non_trading_day: Row up to 0.5, "rates of a day on which the market is closed";
    hole: Note, "five or more trading days in a row without any rate (counted in days)",
        "Twelve weekdays, where the calendar knows weekends alone";
    duplicate_key: Always, "several rates for one day and maturity; the lowest stays";
    zero_for_missing: Row up to 0.5, "a yield of 0 while the nearest maturity yields more than 0.5 %, or \
        all of a day after such yields: it stands for none",
        "Not between yields of the maturity of 0.5 % or less; without other maturities, up to five days \
        between yields above 2 %";
    implausible_rate: Row, "a rate below -10 % or above 50 %";
    unit_change: Note => Fail, "the rates of all maturities are a hundredth, or a hundred times, those of the \
        day before, or all of several a tenth or ten times, or those of one maturity a hundredth of its \
        neighbours': decimals among percent (counted in days)",
        "The day before is at most 45 days away";
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
