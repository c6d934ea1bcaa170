//! Contract selection: the slate of a snapshot, from that snapshot's quotes alone.

use super::market_source::{Day, Quote};
use super::settlements::Settlements;
use crate::options::config::{OptionsConfig, SlateFeature};
use std::collections::BTreeMap;

/// The delta that counts as at the money.
const AT_THE_MONEY: f64 = 0.5;

/// A call and a put with one strike, as indices into the day's quotes.
type Pair = (usize, usize);

/// The contracts selected at a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    /// The quote in each of the K slots.
    pub slots: Vec<Option<usize>>,
    /// For each maturity, the call and the put at the money.
    pub at_the_money: Vec<Option<Pair>>,
}

/// Selects the slate of a day. For each target maturity: the class (expiry and root) whose days to expiry are
/// nearest to it (then the one with more quotes, then the earlier), among those with a strike whose call and
/// put both have a bid and an ask. In it, for each target delta: the quoted call and put whose absolute delta
/// is nearest (then the lower strike).
pub(crate) fn select(day: &Day, config: &OptionsConfig, settlements: &Settlements) -> Selection {
    let slate = &config.slate;
    let mut classes: BTreeMap<(i32, u16), Vec<usize>> = BTreeMap::new();
    let mut last_class = None;
    let mut is_over = false;
    for (i, quote) in day.quotes.iter().enumerate() {
        if last_class != Some((quote.expiry, quote.root)) {
            last_class = Some((quote.expiry, quote.root));
            is_over = settlements.of(quote.expiry, day.root(quote)).is_over(day.time());
        }
        let eligible = quote.expiry - day.date.0 >= slate.min_days as i32 && !is_over;
        if eligible && quote.prices(&config.fills).two_sided() && quote.delta.is_finite() {
            classes.entry((quote.expiry, quote.root)).or_default().push(i);
        }
    }
    let classes: Vec<(i32, Vec<usize>, Pair)> = classes
        .into_iter()
        .filter_map(|((expiry, _), members)| {
            let pair = at_the_money(&day.quotes, &members)?;
            Some((expiry, members, pair))
        })
        .collect();
    let mut out = Selection::default();
    for &target in &slate.maturities {
        let class = classes.iter().min_by_key(|(expiry, members, _)| {
            let days = i64::from(expiry - day.date.0);
            ((days - i64::from(target)).abs(), usize::MAX - members.len(), *expiry)
        });
        out.at_the_money.push(class.map(|class| class.2));
        for &delta in &slate.deltas {
            let Some((_, members, pair)) = class else {
                out.slots.extend([None, None]);
                continue;
            };
            if delta == AT_THE_MONEY {
                out.slots.extend([Some(pair.0), Some(pair.1)]);
                continue;
            }
            for call in [true, false] {
                let nearest =
                    members
                        .iter()
                        .copied()
                        .filter(|&i| day.quotes[i].call == call)
                        .min_by(|&a, &b| {
                            let (a, b) = (&day.quotes[a], &day.quotes[b]);
                            (a.delta.abs() - delta)
                                .abs()
                                .total_cmp(&(b.delta.abs() - delta).abs())
                                .then(a.strike.total_cmp(&b.strike))
                        });
                out.slots.push(nearest);
            }
        }
    }
    out
}

/// The strike at which call and put together are nearest to a delta of one half each (then the lower one).
fn at_the_money(quotes: &[Quote], members: &[usize]) -> Option<Pair> {
    // Strikes are positive, so that their bits sort as they do.
    let mut strikes: BTreeMap<u64, [Option<usize>; 2]> = BTreeMap::new();
    for &i in members {
        let both = strikes.entry(quotes[i].strike.to_bits()).or_default();
        both[usize::from(!quotes[i].call)].get_or_insert(i);
    }
    let distance = |&(call, put): &Pair| {
        (quotes[call].delta.abs() - AT_THE_MONEY).abs() + (quotes[put].delta.abs() - AT_THE_MONEY).abs()
    };
    strikes
        .values()
        .filter_map(|both| Some((both[0]?, both[1]?)))
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// The raw value of a contract's feature.
pub(crate) fn feature(
    feature: SlateFeature,
    quote: &Quote,
    day: &Day,
    config: &OptionsConfig,
    settlements: &Settlements,
) -> f64 {
    let prices = quote.prices(&config.fills);
    match feature {
        SlateFeature::Moneyness => libm::log(quote.strike / day.underlying),
        SlateFeature::Years => settlements.of(quote.expiry, day.root(quote)).days(day.time()) / 365.0,
        SlateFeature::ImpliedVolatility => quote.implied_volatility,
        SlateFeature::Mid => prices.mid / day.underlying,
        SlateFeature::Spread => (prices.ask - prices.bid) / prices.mid,
        SlateFeature::Delta => quote.delta,
        SlateFeature::Gamma => quote.gamma * day.underlying,
        SlateFeature::Vega => quote.vega / day.underlying,
        SlateFeature::Theta => quote.theta / day.underlying,
    }
}
