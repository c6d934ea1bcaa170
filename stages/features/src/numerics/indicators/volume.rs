//! Indicators of price and volume, as TA-Lib defines them.

use super::average::rounding;
use crate::numerics::aggregate::{Sum, windowed};
use crate::numerics::kernel::{Chain, Kernel, OverMapped, Recurrence, scan};
use crate::numerics::lookback::Previous;
use crate::numerics::state::Missing;

/// The money flow index: typical price times volume of rising bars, in percent of that of all bars that
/// moved.
pub(super) fn money_flow(n: usize) -> impl Kernel<4, 1> {
    let flows = scan(Previous::default(), |before, [high, low, close, volume]: [f64; 4]| {
        let price = (high + low + close) / 3.0;
        let before = before.next(price)?;
        let change = price - before;
        let is_still = rounding(change, price.abs() + before.abs());
        let flow = if is_still { 0.0 } else { price * volume };
        Some([change > 0.0, change < 0.0].map(|counts| if counts { flow } else { 0.0 }))
    });
    let share = |[up, down]: [f64; 2], _: [f64; 2]| {
        let share = 100.0 * (up / (up + down));
        [if up + down > 0.0 { share } else { 0.0 }]
    };
    Chain::<_, _, 2>::new(flows, windowed::<Sum, _, 2, 2>(n, share))
}

/// On-balance volume: a running sum of volumes, added where the close rose and subtracted where it fell.
pub(super) fn on_balance() -> impl Recurrence<2, 1> {
    scan(
        (0.0, 0.0, false),
        |(before, balance, begun), [close, volume]: [f64; 2]| {
            if !*begun {
                (*begun, *balance) = (true, volume);
            } else {
                // Branchless, since the branch could not be predicted.
                let sign = f64::from(i8::from(close > *before) - i8::from(close < *before));
                *balance += sign * volume;
            }
            *before = close;
            Some([*balance])
        },
    )
}

/// The volume of a bar times the position of the close within the bar, from -1 to 1.
#[inline(always)]
fn flow([high, low, close, volume]: [f64; 4]) -> [f64; 1] {
    let range = high - low;
    let moved = (((close - low) - (high - close)) / range) * volume;
    [if range > 0.0 { moved } else { 0.0 }]
}

/// The accumulation/distribution line (M. Chaikin): the running sum of volume times the position of the close
/// within the bar.
pub(super) fn accumulation() -> impl Kernel<4, 1> {
    let line = scan(0.0, |line, [flow]: [f64; 1]| {
        *line += flow;
        Some([*line])
    });
    OverMapped::new(flow, line)
}

/// Chaikin's oscillator: the fast less the slow exponential average of the accumulation/distribution line,
/// both seeded with its first value.
pub(super) fn chaikin(periods: [usize; 2]) -> impl Kernel<4, 1> {
    // The weight of a new value in each average.
    let take = periods.map(|n| 2.0 / (n as f64 + 1.0));
    let most = periods[0].max(periods[1]);
    let state = (0.0, [0.0; 2], false, Missing::new(most - 1, most));
    let oscillator = scan(state, move |(line, averages, begun, missing), [flow]: [f64; 1]| {
        *line += flow;
        if !*begun {
            (*averages, *begun) = ([*line; 2], true);
        }
        for (average, take) in averages.iter_mut().zip(take) {
            *average = (1.0 - take).mul_add(*average, take * *line);
        }
        (!missing.next()).then_some([averages[0] - averages[1]])
    });
    OverMapped::new(flow, oscillator)
}
