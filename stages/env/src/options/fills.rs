//! Fills beyond a trade across the spread: prices within it, at the next snapshot, with impact by size, and
//! limits of size.

use crate::checks::{fits, not_negative, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// The price of a trade of options, before impact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FillPrice {
    /// The ask to buy, the bid to sell, of the snapshot that the decision is made at.
    Cross,
    /// Mid plus, to buy, or less, to sell, this share of half the spread: 0 is mid, 1 is `cross`, 2 pays a
    /// spread twice as wide.
    ShareOfSpread(f64),
    /// The ask or the bid of the next snapshot: what is decided at one snapshot trades at the quotes of the
    /// next one.
    NextSnapshot,
}

stages_core::settings! {
    /// The market impact of a trade of options: its price is worse by `coefficient x half the spread x
    /// f(contracts / Q)`, where Q is what is traded or open in the contract at the snapshot, at least 1.
    pub struct Impact {
        /// The growth of impact with the contracts over Q: in proportion to it, or to its square root.
        pub kind: ImpactKind = ImpactKind::None,
        /// The half spreads that the price of a trade as large as Q is worse by.
        pub coefficient: f64 = 1.0,
        /// The quantity Q: the contract's volume or open interest at the snapshot, at least 1.
        pub of: Depth = Depth::Volume,
    }
}

/// The growth of impact with size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImpactKind {
    /// No impact.
    None,
    /// With the square root of size (Almgren and others 2005; Toth and others 2011).
    SquareRoot,
    /// In proportion to size (Kyle 1985).
    Linear,
}

/// A measure of a contract's liquidity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// The column `volume` of the chain.
    Volume,
    /// The column `open_interest` of the chain.
    OpenInterest,
}

/// Limits of a trade that opens a position, as shares of what the chain shows of each contract; without a
/// value, or with one of 0, nothing is opened. Closing is not limited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Liquidity {
    /// The largest opening, as a share of the column `volume`.
    pub volume: Option<f64>,
    /// The largest opening, as a share of the column `open_interest`.
    pub open_interest: Option<f64>,
    /// The largest opening, as a share of the quote's size: `ask_size` to buy, `bid_size` to sell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quoted: Option<f64>,
}

/// Volume, open interest, bid size and ask size of a contract at a snapshot; 0 where unknown.
pub(crate) type Depths = [f32; 4];

/// The settings by which a fill differs from [`FillPrice::Cross`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillRule {
    /// The share of half the spread that a trade pays.
    share: f64,
    impact: ImpactKind,
    coefficient: f64,
    of: usize,
    caps: [f64; 3],
    /// True if an opening beyond the limits is filled up to the limits.
    pub partial: bool,
    /// True if trades are filled at the next snapshot.
    pub next_snapshot: bool,
    /// True if prices are those of the quotes, whatever the size of the trade.
    pub is_plain: bool,
    /// True if prices or limits depend on the size of a trade.
    pub by_size: bool,
}

impl FillRule {
    pub(crate) fn new(price: FillPrice, impact: &Impact, liquidity: &Liquidity, partial: bool) -> Self {
        let share = match price {
            FillPrice::ShareOfSpread(share) => share,
            FillPrice::Cross | FillPrice::NextSnapshot => 1.0,
        };
        Self {
            share,
            impact: impact.kind,
            coefficient: impact.coefficient,
            of: impact.of as usize,
            caps: [liquidity.volume, liquidity.open_interest, liquidity.quoted]
                .map(|cap| cap.unwrap_or(f64::INFINITY)),
            partial,
            next_snapshot: price == FillPrice::NextSnapshot,
            is_plain: share == 1.0 && impact.kind == ImpactKind::None,
            by_size: needs_depths(impact, liquidity),
        }
    }

    /// The price of a trade of `contracts` contracts with the given quote and mark.
    pub(crate) fn price(&self, quote: f64, mark: f64, contracts: f64, depths: Depths) -> f64 {
        let share = contracts.abs() / f64::from(depths[self.of]).max(1.0);
        let impact = match self.impact {
            ImpactKind::None => 0.0,
            ImpactKind::SquareRoot => self.coefficient * share.sqrt(),
            ImpactKind::Linear => self.coefficient * share,
        };
        let price = mark + (self.share + impact) * (quote - mark);
        // A price that is no number stays none.
        if price < 0.0 { 0.0 } else { price }
    }

    /// Returns whether `contracts` contracts may be opened.
    pub(crate) fn allows(&self, contracts: f64, depths: Depths) -> bool {
        contracts.abs() <= self.most(contracts, depths)
    }

    /// The largest number of contracts that may be opened on the side of a trade; infinite without limits.
    pub(crate) fn most(&self, contracts: f64, depths: Depths) -> f64 {
        let [volume, open_interest, bid, ask] = depths;
        let size = if contracts > 0.0 { ask } else { bid };
        let limits = self.caps.iter().zip([volume, open_interest, size]);
        let limit = |(&cap, depth): (&f64, f32)| match cap == f64::INFINITY {
            // Nothing of what is not there, though the cap be infinite elsewhere.
            true => cap,
            false => cap * f64::from(depth),
        };
        limits.map(limit).fold(f64::INFINITY, f64::min)
    }
}

/// Returns whether trades depend on volume or open interest.
pub(crate) fn needs_depths(impact: &Impact, liquidity: &Liquidity) -> bool {
    impact.kind != ImpactKind::None || *liquidity != Liquidity::default()
}

/// The columns of the chain that these settings need.
pub(crate) fn needed_columns(impact: &Impact, liquidity: &Liquidity) -> Vec<&'static str> {
    let by = |of: Depth| impact.kind != ImpactKind::None && impact.of == of;
    let mut columns = Vec::new();
    if by(Depth::Volume) || liquidity.volume.is_some() {
        columns.push("volume");
    }
    if by(Depth::OpenInterest) || liquidity.open_interest.is_some() {
        columns.push("open_interest");
    }
    if liquidity.quoted.is_some() {
        columns.extend(["bid_size", "ask_size"]);
    }
    columns
}

/// Checks the settings.
pub(crate) fn validate(
    price: FillPrice,
    impact: &Impact,
    liquidity: &Liquidity,
    partial: bool,
) -> Result<(), ConfigProblem> {
    ConfigProblem::new("fills.partial", "trades are filled up to limits, and there are none")
        .hint("fills: { liquidity: { quoted: 1 }, partial: true } fills up to the size of the quote")
        .when(partial && *liquidity == Liquidity::default())?;
    if let FillPrice::ShareOfSpread(share) = price {
        within("fills.price", share, 0.0, 10.0).map_err(|problem| {
            problem.hint(
                "it is the share of half the spread that a trade pays: 0 trades at mid, 1 across the spread",
            )
        })?;
    }
    not_negative("fills.impact.coefficient", impact.coefficient)?;
    for (field, share) in [
        ("volume", liquidity.volume),
        ("open_interest", liquidity.open_interest),
        ("quoted", liquidity.quoted),
    ] {
        let is_share = share.is_none_or(|share| share.is_finite() && share > 0.0);
        let field = format!("fills.liquidity.{field}");
        fits(&field, share.unwrap_or_default(), is_share, "a positive share")
            .map_err(|problem| problem.hint("0.1 allows a tenth; leave it out for no limit"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(price: FillPrice, kind: ImpactKind, volume: Option<f64>) -> FillRule {
        let impact = Impact {
            kind,
            coefficient: 0.5,
            of: Depth::Volume,
        };
        let liquidity = Liquidity {
            volume,
            ..Liquidity::default()
        };
        FillRule::new(price, &impact, &liquidity, false)
    }

    /// The worked example of docs/concepts/fills.md: bid 4.90, ask 5.10, a volume of 400.
    #[test]
    fn by_hand() {
        use FillPrice::{Cross, ShareOfSpread};
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        let depths = [400.0, 9000.0, 10.0, 20.0];
        let buy = |rule: FillRule, contracts: f64| rule.price(5.1, 5.0, contracts, depths);
        close(buy(rule(Cross, ImpactKind::None, None), 100.0), 5.10);
        close(buy(rule(ShareOfSpread(0.25), ImpactKind::None, None), 100.0), 5.025);
        close(buy(rule(Cross, ImpactKind::SquareRoot, None), 100.0), 5.125);
        close(buy(rule(Cross, ImpactKind::Linear, None), 100.0), 5.1125);
        close(buy(rule(ShareOfSpread(0.0), ImpactKind::SquareRoot, None), 400.0), 5.05);
        let sold = rule(Cross, ImpactKind::SquareRoot, None);
        close(sold.price(4.9, 5.0, -100.0, depths), 4.875);
        // Never below nothing, and of no quote no price.
        close(sold.price(0.01, 0.05, -1e6, depths), 0.0);
        assert!(sold.price(f64::NAN, 0.05, -1.0, depths).is_nan());
        let capped = rule(Cross, ImpactKind::None, Some(0.1));
        assert!(
            capped.allows(-40.0, depths)
                && !capped.allows(41.0, depths)
                && !capped.allows(1.0, [0.0, 1e6, 1e6, 1e6])
        );
        assert!(rule(Cross, ImpactKind::None, None).allows(1e9, [0.0; 4]));
        let liquidity = Liquidity {
            quoted: Some(0.5),
            ..Liquidity::default()
        };
        let quoted = FillRule::new(Cross, &Impact::default(), &liquidity, true);
        assert_eq!((quoted.most(100.0, depths), quoted.most(-100.0, depths)), (10.0, 5.0));
    }
}
