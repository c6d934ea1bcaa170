//! The adjustment of the prices of bars, and the evidence for it on the ex-dates of corporate actions.

use crate::Date;
use crate::corporate_action::{BySymbol, CorporateAction, Kind, SplitRatio};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

crate::words! {
    /// The corporate actions for which the prices of bars are adjusted.
    Adjusted {
        /// Prices before a split are divided by its ratio, as if it had always been so.
        Splits = "splits",
        /// Prices are divided by the ratios of splits, and reduced by the dividends, that came later.
        SplitsAndDividends = "splits_and_dividends",
        /// Prices are those of their day.
        Unadjusted = "none",
    }
}

/// The adjustment of the prices of bars, with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stated {
    /// The adjustment.
    pub value: Adjusted,
    /// The origin: `configuration`, `layout NAME` or `found`.
    pub origin: String,
}

/// The rules about jumps of closes, which an environment holds against corporate actions.
pub const JUMPS: [&str; 2] = ["unit_jump", "split_jump"];
/// The key of the metadata of bars for the rules of [`JUMPS`] whose jumps the configuration keeps.
pub const ACCEPTED: &str = "accepted";

/// The least change of a price, as a logarithm, that a close can tell from its usual moves.
const LEAST: f64 = 0.15;
/// The distance, as a logarithm, within which a change of price is one of the expected size.
const NEAR: f64 = 0.182;
/// The most bars between an ex-date and the change that is taken for its split.
const MOST_OFF: usize = 12;

/// The closes of a symbol, in order of date.
#[derive(Clone, Debug, Default)]
pub struct Closes {
    /// The symbol, as corporate actions name it.
    pub symbol: String,
    /// The days.
    pub dates: Vec<Date>,
    /// The closes, above 0.
    pub closes: Vec<f64>,
}

/// The evidence of closes for a split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shown {
    /// The price changes by its ratio.
    Split,
    /// The price stays.
    NoSplit,
    /// The price changes by the inverse ratio.
    Inverted,
    /// The price stays, and changes by the ratio on another day.
    On(Date),
    /// The price changes by another ratio of splits.
    Other(SplitRatio),
    /// The price changes by something between.
    Unclear,
    /// The ratio is too near 1, or the price too restless, to tell.
    Undecidable,
}

/// A split held against the closes before and after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The symbol.
    pub symbol: String,
    /// The ex-date.
    pub date: Date,
    /// The ratio: of several splits between two closes, their product.
    pub ratio: f64,
    /// The last close before it.
    pub before: (Date, f64),
    /// The first close from it on.
    pub after: (Date, f64),
    /// The evidence of the closes.
    pub shown: Shown,
}

/// A contradiction between bars and corporate actions.
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    /// The contradiction.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

const fn is_split(action: &CorporateAction) -> bool {
    matches!(action.kind, Kind::Split | Kind::StockDividend)
}

/// The splits and stock dividends of the symbol, held against its closes. Those before the second close and
/// after the last one are left out.
pub fn hold<'a>(closes: &Closes, actions: impl IntoIterator<Item = &'a CorporateAction>) -> Vec<Held> {
    let mut splits: BTreeMap<usize, (Date, f64)> = BTreeMap::new();
    for action in actions
        .into_iter()
        .filter(|action| action.symbol == closes.symbol && is_split(action))
    {
        let at = closes.dates.partition_point(|date| *date < action.date);
        if (1..closes.dates.len()).contains(&at) && action.ratio > 0.0 {
            splits.entry(at).or_insert((action.date, 1.0)).1 *= action.ratio;
        }
    }
    let moves: Vec<f64> = closes.closes.windows(2).map(|pair| (pair[0] / pair[1]).ln()).collect();
    let of = |at: usize| (closes.dates[at], closes.closes[at]);
    let held = splits.iter().map(|(&at, &(date, ratio))| {
        let deviation = deviation(closes, &moves, at);
        let shown = match shown(moves[at - 1], ratio.ln(), deviation) {
            Shown::NoSplit | Shown::Unclear if ratio.ln().abs() > (8.0 * deviation).max(0.3) => {
                let is_it = |other: &usize| {
                    !splits.contains_key(other)
                        && (moves[other - 1] - ratio.ln()).abs() <= (3.0 * deviation).max(0.05)
                };
                let around = at.saturating_sub(MOST_OFF).max(1)..closes.dates.len().min(at + MOST_OFF + 1);
                let others = around.filter(is_it);
                let nearest = others.min_by_key(|other| other.abs_diff(at));
                let usual = shown(moves[at - 1], ratio.ln(), deviation);
                nearest.map_or(usual, |other| Shown::On(closes.dates[other]))
            }
            shown => shown,
        };
        Held {
            symbol: closes.symbol.clone(),
            date,
            ratio,
            before: of(at - 1),
            after: of(at),
            shown,
        }
    });
    held.collect()
}

/// The usual deviation of the change to the close at a place: of the changes around it, and of the days
/// between.
fn deviation(closes: &Closes, moves: &[f64], at: usize) -> f64 {
    let around = at.saturating_sub(31)..(at + 30).min(moves.len());
    let mut sizes: Vec<f64> = around.filter(|i| i + 1 != at).map(|i| moves[i].abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0.02);
    let days = f64::from(closes.dates[at].0 - closes.dates[at - 1].0);
    (1.5 * median).max(0.002) * (days / 3.0).max(1.0).sqrt()
}

/// Compares a change of price with an expected one, both as logarithms.
fn shown(change: f64, expected: f64, deviation: f64) -> Shown {
    if expected.abs() < (3.0 * deviation).max(LEAST) {
        return Shown::Undecidable;
    }
    // Of a restless price, the nearer one has to be so by more.
    let apart = if expected.abs() < 6.0 * deviation { 3.0 } else { 2.0 };
    let near = (4.0 * deviation).max(NEAR);
    let off = (change - expected).abs();
    let mut found = [
        (off, Shown::Split),
        (change.abs(), Shown::NoSplit),
        ((change + expected).abs(), Shown::Inverted),
    ];
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let [(nearest, shown), (next, _), _] = found;
    let is_clear = nearest <= near && next - nearest >= apart * deviation;
    if off > (6.0 * deviation).max(0.05) && !(is_clear && shown != Shown::Split) {
        let tolerance = (2.0 * deviation).max(0.01);
        if let Some(other) = SplitRatio::near(change.exp(), tolerance)
            && change.abs() > (8.0 * deviation).max(0.3)
        {
            return Shown::Other(other);
        }
    }
    match is_clear {
        true => shown,
        false => Shown::Unclear,
    }
}

impl Held {
    /// The closes and their ratio, in words.
    fn closes(&self) -> String {
        let ((day, before), (next, after)) = (self.before, self.after);
        format!(
            "the close is {before} on {day} and {after} on {next}, {:.4} times as much",
            after / before
        )
    }

    fn split(&self) -> String {
        let ratio = SplitRatio::near(self.ratio, 1e-6).map(|ratio| ratio.to_string());
        let ratio = ratio.unwrap_or_else(|| format!("{}-for-1", self.ratio));
        format!("`{}`: the split {ratio} on {}", self.symbol, self.date)
    }
}

/// Determines the adjustment of bars from what is stated and from what splits show, with warnings.
///
/// # Errors
/// When what is stated, the actions and the closes contradict each other.
pub fn resolve(stated: Option<&Stated>, held: &[Held]) -> Result<(Stated, Vec<String>), Contradiction> {
    let is_adjusted = stated.is_some_and(|stated| stated.value != Adjusted::Unadjusted);
    let says = stated.map_or_else(String::new, |stated| {
        format!(", though `adjusted: {}` is stated ({})", stated.value, stated.origin)
    });
    let first = |shown: Shown| held.iter().find(|held| held.shown == shown);
    let mut warnings = Vec::new();
    for of in held {
        let (split, closes) = (of.split(), of.closes());
        let (message, hint) = match of.shown {
            Shown::Undecidable if is_adjusted || of.ratio.ln().abs() < LEAST => continue,
            Shown::Undecidable => {
                warnings.push(format!(
                    "{split} is no more than the usual moves of the price, which can neither show nor \
                    contradict it: {closes}; it is taken as stated"
                ));
                continue;
            }
            Shown::Split if !is_adjusted => continue,
            Shown::On(day) if is_adjusted => {
                warnings.push(format!(
                    "{split} is not in the prices, as is stated, but they change by its ratio on {day}: is it \
                    another one, or news?"
                ));
                continue;
            }
            Shown::NoSplit | Shown::Unclear if is_adjusted => continue,
            Shown::Unclear => {
                warnings.push(format!(
                    "{split} is neither shown nor contradicted by the prices: {closes}; it is taken as stated"
                ));
                continue;
            }
            Shown::Other(other) if (other.value() / of.ratio).ln().abs() <= NEAR && !is_adjusted => {
                warnings.push(format!("{split}: the prices show one of {other}: {closes}"));
                continue;
            }
            Shown::Split => (
                format!("{split} is in the prices: {closes}{says}"),
                match first(Shown::NoSplit) {
                    None => "state `adjusted: none` at `ingest/bars`: the splits of `actions` are then \
                        applied to prices"
                        .to_owned(),
                    Some(other) => format!(
                        "another one is not ({}): divide the prices before {} in the file, or leave the \
                        symbol out at `symbols` of `ingest/bars`",
                        other.split(),
                        of.date
                    ),
                },
            ),
            Shown::NoSplit => (
                format!("{split} is not in the prices: {closes}; they are adjusted for it already{says}"),
                match first(Shown::Split) {
                    None => "state `adjusted: splits` at `ingest/bars` (or `splits_and_dividends`) if all \
                        symbols are: what the prices have is then not applied again; or leave `actions` \
                        unconnected. Take a split that never was out of the actions"
                        .to_owned(),
                    Some(other) => format!(
                        "another one is ({}): take the splits that are in the prices already out of the \
                        actions, by `symbols` of `ingest/corporate_actions` or in the file",
                        other.split()
                    ),
                },
            ),
            Shown::Inverted => (
                format!("{split} is the wrong way round: {closes}"),
                "a ratio is shares after for one before: 2 (or \"2:1\") where the price halves, 0.5 where it \
                    doubles; correct it in the actions"
                    .to_owned(),
            ),
            Shown::On(day) => (
                format!("{split} is not in the prices of that day: {closes}; they show it on {day}{says}"),
                format!(
                    "the ex-date is the first day at the new price: date it {day} in the actions, or take it \
                    out of them"
                ),
            ),
            Shown::Other(other) => (
                format!("{split}: the prices show one of {other}: {closes}{says}"),
                "correct its ratio in the actions, or take it out of them".to_owned(),
            ),
        };
        return Err(Contradiction { message, hint });
    }
    if let Some(stated) = stated {
        return Ok((stated.clone(), warnings));
    }
    let shows = |of: &Held| matches!(of.shown, Shown::Split | Shown::Other(_));
    let is_found = held.iter().any(shows);
    if let Some(of) = held.first().filter(|_| !is_found) {
        warnings.push(format!(
            "nothing says whether the bars are adjusted for splits, and no split of the actions shows it \
            clearly ({}): they are taken for unadjusted; `adjusted:` of `ingest/bars` states it",
            of.split()
        ));
    }
    let origin = if is_found { "found" } else { "assumed" }.to_owned();
    let value = Adjusted::Unadjusted;
    Ok((Stated { value, origin }, warnings))
}

/// The actions that prices adjusted like this do not have yet: of prices adjusted for splits, dividends in
/// the shares of the prices; of those adjusted for dividends too, changes of symbol alone.
pub fn left(actions: Vec<CorporateAction>, adjusted: Adjusted) -> Vec<CorporateAction> {
    match adjusted {
        Adjusted::Unadjusted => actions,
        Adjusted::SplitsAndDividends => actions
            .into_iter()
            .filter(|action| action.kind == Kind::SymbolChange)
            .collect(),
        Adjusted::Splits => {
            let (splits, mut others): (Vec<_>, Vec<_>) = actions.into_iter().partition(is_split);
            let splits = BySymbol::new(&splits);
            for action in &mut others {
                let own = splits.of(&action.symbol);
                let later = own.filter(|split| split.date > action.date);
                action.amount /= later.map(|split| split.ratio).product::<f64>();
            }
            others
        }
    }
}

/// Warnings of dividends of a fifth of the price or more by which the price does not fall; `actions` are in
/// the shares of the closes.
///
/// # Errors
/// When a dividend is no less than the close before it.
pub fn hold_dividends<'a>(
    closes: &Closes,
    actions: impl IntoIterator<Item = &'a CorporateAction>,
) -> Result<Vec<String>, Contradiction> {
    let moves: Vec<f64> = closes.closes.windows(2).map(|pair| (pair[0] / pair[1]).ln()).collect();
    let mut warnings = Vec::new();
    for action in actions
        .into_iter()
        .filter(|action| action.symbol == closes.symbol && action.amount > 0.0)
    {
        let at = closes.dates.partition_point(|date| *date < action.date);
        if !(1..closes.dates.len()).contains(&at) {
            continue;
        }
        let (symbol, date, amount, before) =
            (&action.symbol, action.date, action.amount, closes.closes[at - 1]);
        if amount >= before {
            return Err(Contradiction {
                message: format!(
                    "`{symbol}`: the dividend of {amount} on {date} is no less than the last close, {before}"
                ),
                hint: "an amount is in currency, for one share of that day; correct it in the actions, or \
                    state at `ingest/bars` what the prices are adjusted for"
                    .to_owned(),
            });
        }
        let expected = -(1.0 - amount / before).ln();
        if amount >= 0.2 * before
            && shown(moves[at - 1], expected, deviation(closes, &moves, at)) == Shown::NoSplit
        {
            warnings.push(format!(
                "`{symbol}`: the price does not fall by the dividend of {amount} on {date}: {before} before, {} \
                after; is it in the prices already (`adjusted: splits_and_dividends`)?",
                closes.closes[at]
            ));
        }
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closes of 120 days that move by `size` to and fro, times the factors from their days on.
    fn closes(size: f64, factors: &[(i32, f64)]) -> Closes {
        let close = |day: i32| {
            let of: f64 = factors
                .iter()
                .filter(|(from, _)| day >= *from)
                .map(|(_, by)| by)
                .product();
            100.0 * of * if day % 2 == 0 { 1.0 } else { 1.0 + size }
        };
        Closes {
            symbol: "X".to_owned(),
            dates: (0..120).map(Date).collect(),
            closes: (0..120).map(close).collect(),
        }
    }

    fn split(day: i32, ratio: f64) -> CorporateAction {
        CorporateAction {
            symbol: "X".to_owned(),
            date: Date(day),
            kind: Kind::Split,
            ratio,
            amount: f64::NAN,
            new_symbol: String::new(),
            origin: "test".to_owned(),
        }
    }

    /// The error, or the warnings, of one split against closes.
    fn said(size: f64, factors: &[(i32, f64)], split: CorporateAction, stated: Option<Adjusted>) -> String {
        let stated = stated.map(|value| Stated {
            value,
            origin: "configuration".to_owned(),
        });
        match resolve(stated.as_ref(), &hold(&closes(size, factors), &[split])) {
            Ok((_, warnings)) => warnings.join("\n"),
            Err(err) => format!("error: {} | {}", err.message, err.hint),
        }
    }

    #[test]
    fn splits_are_held_against_closes() {
        let splits = Some(Adjusted::Splits);
        for (size, factors, split, stated, expected) in [
            (0.01, &[(60, 0.5)][..], split(60, 2.0), None, ""),
            (
                0.01,
                &[],
                split(60, 2.0),
                None,
                "error: `X`: the split 2-for-1 on 1970-03-02 is not in the",
            ),
            (0.01, &[], split(60, 2.0), splits, ""),
            (0.01, &[(65, 0.5)], split(60, 2.0), None, "they show it on 1970-03-07"),
            // A fall by the same ratio long after is none of it, and one soon after may be news.
            (0.01, &[(100, 0.667)], split(30, 1.5), splits, ""),
            (
                0.01,
                &[(100, 0.667)],
                split(30, 1.5),
                None,
                "they are adjusted for it already",
            ),
            (
                0.01,
                &[(35, 0.667)],
                split(30, 1.5),
                splits,
                "they change by its ratio on 1970-02-05",
            ),
            // Of a restless price, one that it does not show is told, whatever its size.
            (0.1, &[], split(60, 2.0), None, "they are adjusted for it already"),
            (0.1, &[(60, 0.5)], split(60, 2.0), None, ""),
            (0.3, &[], split(60, 2.0), None, "no more than the usual moves"),
            (0.3, &[], split(60, 2.0), splits, ""),
        ] {
            let said = said(size, factors, split, stated);
            let is_so = if expected.is_empty() {
                said.is_empty()
            } else {
                said.contains(expected)
            };
            assert!(is_so, "{size} {factors:?} {stated:?}: {said}, not {expected:?}");
        }
    }
}
