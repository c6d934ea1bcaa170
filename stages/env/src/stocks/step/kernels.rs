//! Arithmetic over the symbols of an account, compiled for each instruction set of
//! [`stages_numerics::dispatch`].
//!
//! Sums are made in eight lanes, symbol i in lane i mod 8, so that every instruction set gives the same
//! bytes.

use crate::stocks::tables::status;
use stages_numerics::kernel;

const LANES: usize = 8;

/// A sum in lanes.
#[derive(Clone, Copy, Default)]
struct Sum([f64; LANES]);

impl Sum {
    #[inline(always)]
    fn add(&mut self, lane: usize, value: f64) {
        self.0[lane] += value;
    }

    #[inline(always)]
    fn total(self) -> f64 {
        let s = self.0;
        ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
    }
}

/// Calls `body(i, i % LANES)` for each i below `n`.
macro_rules! in_lanes {
    ($n:expr, |$i:ident, $lane:ident| $body:block) => {
        let whole = $n - $n % LANES;
        let mut base = 0;
        while base < whole {
            for $lane in 0..LANES {
                let $i = base + $lane;
                $body
            }
            base += LANES;
        }
        for $i in whole..$n {
            let $lane = $i - whole;
            $body
        }
    };
}

/// The value of positions, and their absolute value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exposure {
    pub net: f64,
    pub gross: f64,
}

kernel! {
    /// The exposure of shares at prices.
    pub(super) fn exposure(shares: &[f64], prices: &[f64], out: &mut Exposure) {
        let n = shares.len();
        let prices = &prices[..n];
        let (mut net, mut gross) = (Sum::default(), Sum::default());
        in_lanes!(n, |i, lane| {
            let value = shares[i] * prices[i];
            net.add(lane, value);
            gross.add(lane, value.abs());
        });
        *out = Exposure {
            net: net.total(),
            gross: gross.total(),
        };
    }
}

kernel! {
    /// The sum of the values of shares at prices, each times its factor.
    pub(super) fn weighted(shares: &[f64], prices: &[f64], factors: &[f64], out: &mut f64) {
        let n = shares.len();
        let (prices, factors) = (&prices[..n], &factors[..n]);
        let mut sum = Sum::default();
        in_lanes!(n, |i, lane| {
            sum.add(lane, factors[i] * (shares[i] * prices[i]));
        });
        *out = sum.total();
    }
}

kernel! {
    /// Brings each weight within bounds; not a number counts as 0. Gives the sums of weights.
    pub(super) fn clamp_weights(weights: &mut [f64], least: f64, most: f64, out: &mut Exposure) {
        let n = weights.len();
        let (mut net, mut gross) = (Sum::default(), Sum::default());
        in_lanes!(n, |i, lane| {
            let weight = weights[i];
            let weight = if weight.is_nan() { 0.0 } else { weight };
            let weight = if weight < least { least } else { weight };
            let weight = if weight > most { most } else { weight };
            weights[i] = weight;
            net.add(lane, weight);
            gross.add(lane, weight.abs());
        });
        *out = Exposure {
            net: net.total(),
            gross: gross.total(),
        };
    }
}

/// The factors that turn weights into shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Targets {
    /// The factors of positive weights, and of negative ones.
    pub long: f64,
    pub short: f64,
    pub nav: f64,
    /// The least change in value that is traded.
    pub least: f64,
    /// The least unit of a trade; 0 for fractions.
    pub lot: f64,
}

/// The relative difference that counts as rounding: 49.99999999999999 shares are 50, and a cost that exceeds
/// cash by as little is paid.
pub(super) const ROUNDING: f64 = 1e-12;

/// Shares in whole lots, toward 0.
#[inline(always)]
pub(super) fn whole(shares: f64, lot: f64) -> f64 {
    if lot == 0.0 {
        shares
    } else {
        (shares / lot * (1.0 + ROUNDING)).trunc() * lot
    }
}

kernel! {
    /// Turns weights into signed shares to trade; 0 for a symbol that does not trade.
    pub(super) fn targets(orders: &mut [f64], held: &[f64], marks: &[f64], flags: &[u8], by: &Targets) {
        let n = orders.len();
        let (held, marks, flags) = (&held[..n], &marks[..n], &flags[..n]);
        let by = *by;
        for i in 0..n {
            let weight = orders[i] * if orders[i] > 0.0 { by.long } else { by.short };
            let trade = whole(weight * by.nav / marks[i], by.lot) - held[i];
            let is_small = trade.abs() * marks[i] < by.least;
            let trades = flags[i] & status::TRADES != 0;
            orders[i] = if trades & !is_small { trade } else { 0.0 };
        }
    }
}

/// The rates of costs, and the sizes that impact is measured by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costing<'a> {
    pub per_share: f64,
    pub fraction: f64,
    pub impact: f64,
    pub prices: &'a [f64],
    /// Mean volumes and volatilities; without impact not read.
    pub volumes: &'a [f64],
    pub volatilities: &'a [f64],
}

/// The sums of the trades of a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trades {
    /// The cash that they take, without costs.
    pub value: f64,
    /// Absolute values and shares.
    pub traded: f64,
    pub shares: f64,
    pub impact: f64,
    pub count: f64,
    /// The absolute value, shares and impact of what is left to trade.
    pub rest_value: f64,
    pub rest_shares: f64,
    pub rest_impact: f64,
}

/// The impact of trading shares, not negative, of symbol `i`.
#[inline(always)]
fn impact<const IMPACT: bool>(by: &Costing<'_>, i: usize, shares: f64, value: f64) -> f64 {
    if !IMPACT {
        return 0.0;
    }
    let cost = by.impact * by.volatilities[i] * (shares / by.volumes[i]).sqrt() * value;
    if shares > 0.0 { cost } else { 0.0 }
}

#[inline(always)]
fn reduce_orders<const IMPACT: bool>(
    orders: &mut [f64],
    held: &mut [f64],
    by: &Costing<'_>,
    out: &mut Trades,
) {
    let n = orders.len();
    let held = &mut held[..n];
    let by = Costing {
        prices: &by.prices[..n],
        volumes: if IMPACT { &by.volumes[..n] } else { &[] },
        volatilities: if IMPACT { &by.volatilities[..n] } else { &[] },
        ..*by
    };
    let (mut value, mut traded, mut shares, mut cost, mut count) = Default::default();
    let (mut rest_value, mut rest_shares, mut rest_cost) = (Sum::default(), Sum::default(), Sum::default());
    {
        let sums: [&mut Sum; 5] = [&mut value, &mut traded, &mut shares, &mut cost, &mut count];
        let [value, traded, shares, cost, count] = sums;
        in_lanes!(n, |i, lane| {
            let (order, before, price) = (orders[i], held[i], by.prices[i]);
            // What reduces the position lies between 0 and its opposite.
            let (low, high) = (-before.max(0.0), (-before).max(0.0));
            let reduction = order.max(low).min(high);
            let rest = order - reduction;
            held[i] = before + reduction;
            orders[i] = rest;
            let size = reduction.abs();
            value.add(lane, reduction * price);
            traded.add(lane, size * price);
            shares.add(lane, size);
            cost.add(lane, impact::<IMPACT>(&by, i, size, size * price));
            count.add(lane, if reduction == 0.0 { 0.0 } else { 1.0 });
            let size = rest.abs();
            rest_value.add(lane, size * price);
            rest_shares.add(lane, size);
            rest_cost.add(lane, impact::<IMPACT>(&by, i, size, size * price));
        });
    }
    *out = Trades {
        value: value.total(),
        traded: traded.total(),
        shares: shares.total(),
        impact: cost.total(),
        count: count.total(),
        rest_value: rest_value.total(),
        rest_shares: rest_shares.total(),
        rest_impact: rest_cost.total(),
    };
}

kernel! {
    /// Makes what reduces positions; the rest is left in the orders.
    pub(super) fn reduce(orders: &mut [f64], held: &mut [f64], by: &Costing<'_>, out: &mut Trades) {
        match by.impact > 0.0 {
            true => reduce_orders::<true>(orders, held, by, out),
            false => reduce_orders::<false>(orders, held, by, out),
        }
    }
}

#[inline(always)]
fn increase_held<const IMPACT: bool>(
    orders: &[f64],
    held: &mut [f64],
    by: &Costing<'_>,
    factor: f64,
    lot: f64,
    out: &mut Trades,
) {
    let n = orders.len();
    let held = &mut held[..n];
    let by = Costing {
        prices: &by.prices[..n],
        volumes: if IMPACT { &by.volumes[..n] } else { &[] },
        volatilities: if IMPACT { &by.volatilities[..n] } else { &[] },
        ..*by
    };
    let (mut value, mut traded, mut shares) = (Sum::default(), Sum::default(), Sum::default());
    let (mut cost, mut count) = (Sum::default(), Sum::default());
    let all = factor >= 1.0 - ROUNDING;
    in_lanes!(n, |i, lane| {
        let (order, price) = (orders[i], by.prices[i]);
        let allowed = if all { order } else { whole(order * factor, lot) };
        held[i] += allowed;
        let size = allowed.abs();
        value.add(lane, allowed * price);
        traded.add(lane, size * price);
        shares.add(lane, size);
        cost.add(lane, impact::<IMPACT>(&by, i, size, size * price));
        count.add(lane, if allowed == 0.0 { 0.0 } else { 1.0 });
    });
    *out = Trades {
        value: value.total(),
        traded: traded.total(),
        shares: shares.total(),
        impact: cost.total(),
        count: count.total(),
        ..Trades::default()
    };
}

kernel! {
    /// Makes the orders times a factor of at most 1, in whole lots.
    pub(super) fn increase(
        orders: &[f64],
        held: &mut [f64],
        by: &Costing<'_>,
        factor: f64,
        lot: f64,
        out: &mut Trades,
    ) {
        match by.impact > 0.0 {
            true => increase_held::<true>(orders, held, by, factor, lot, out),
            false => increase_held::<false>(orders, held, by, factor, lot, out),
        }
    }
}

kernel! {
    /// Writes the values of positions times a scale, clipped.
    pub(super) fn show_weights(shares: &[f64], marks: &[f64], scale: f64, clip: f64, out: &mut [f32]) {
        let n = out.len();
        let (shares, marks) = (&shares[..n], &marks[..n]);
        for i in 0..n {
            out[i] = (shares[i] * marks[i] * scale).max(-clip).min(clip) as f32;
        }
    }
}
