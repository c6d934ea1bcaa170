//! Margin in the manner of Regulation T and the Cboe Margin Manual, by strategy.
//!
//! With S the underlying, K a strike, per unit of the underlying (the whole is times contracts times
//! multiplier):
//!
//! - A *long option* is paid in full: it needs cash of 0 or more, and lends none.
//! - A *short call* against the multiplier's units of the underlying is covered and needs nothing.
//! - A *spread*: a short option against a long one of the same right that expires no sooner needs its
//!   greatest loss, a call `max(0, K_long - K_short)`, a put `max(0, K_short - K_long)`. Shorts are taken in
//!   the order of the lines, each against the long with the least loss, and only where that is less than the
//!   requirement of a naked short.
//! - A *naked short option* needs its mark and a charge: a call `max(rate S - max(0, K - S), minimum S)`, a
//!   put `max(rate S - max(0, S - K), minimum K)`; by default rate is 20 % and minimum 10 %.
//! - *Both sides* (straddle, strangle, iron condor): the underlying cannot go up and down at once, so that of
//!   the charges and spread losses of all calls and of all puts only the larger sum counts. Marks of naked
//!   shorts count on both.
//!
//! The requirement is held against cash, in which the premiums received lie, plus half the value of the
//! underlying held. One departure from the manual: both sides need not share an expiry.
//!
//! For an adjusted contract, whose unit delivers r shares, S is r times the underlying; only options that
//! deliver the same number of shares form a spread.

use super::config::{MAX_LEGS, MAX_LINES, MarginConfig};

/// The most option positions that are margined together.
pub const MAX_POSITIONS: usize = MAX_LINES + MAX_LEGS;

/// An option position.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarginLeg {
    /// The expiry, in days since 1970-01-01.
    pub expiry: i32,
    /// The strike, in currency.
    pub strike: f64,
    /// True for a call, false for a put.
    pub call: bool,
    /// The number of shares of the underlying that a unit delivers: 1, unless the contract was adjusted.
    pub deliverable: f64,
    /// The number of contracts, negative if short.
    pub quantity: i32,
    /// The mark of one unit.
    pub mark: f64,
}

/// The pairing of a short with longs. As long as the positions stay the same, the pairing does, too, until a
/// mark or the underlying reverses one of the comparisons that led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pairing {
    /// The contracts of each pair times its loss, in the order of pairing.
    pub costs: [f64; Self::MOST],
    /// The greatest loss of a pair per unit; each is below the requirement of a naked short.
    pub worst: f64,
    /// The number of contracts left naked.
    pub left: f64,
    /// The loss against the long that was not taken for them, if there was one; no less than the requirement
    /// of a naked short. Minus infinity where there were more pairs than [`Pairing::costs`] holds, so that no
    /// comparison confirms the pairing.
    pub next: f64,
}

impl Pairing {
    /// The largest number of pairs of one short that are remembered.
    pub(crate) const MOST: usize = 2;
    /// The pairing of a long or of an unused line.
    pub(crate) const NONE: Self = Self {
        costs: [0.0; Self::MOST],
        worst: f64::NEG_INFINITY,
        left: 0.0,
        next: f64::INFINITY,
    };
}

/// The margin requirement of the positions, in currency. `legs` has at most [`MAX_POSITIONS`] positions;
/// `units` of the underlying are held.
pub fn requirement(
    legs: &[MarginLeg],
    units: f64,
    underlying: f64,
    multiplier: f64,
    rule: &MarginConfig,
) -> f64 {
    requirement_and_pairs(legs, units, underlying, multiplier, rule, |_, _| {})
}

/// [`requirement`], which calls `paired` with the pairing of each short, by its index in `legs`.
#[inline]
pub(crate) fn requirement_and_pairs(
    legs: &[MarginLeg],
    units: f64,
    underlying: f64,
    multiplier: f64,
    rule: &MarginConfig,
    mut paired: impl FnMut(usize, &Pairing),
) -> f64 {
    // The longs that are left, by side and as bits: most accounts have few, or none on the side of a short.
    let mut free = [0; MAX_POSITIONS];
    let mut longs = [0_u64; 2];
    let mut shorts = 0_u64;
    for (i, leg) in legs.iter().enumerate() {
        free[i] = leg.quantity;
        shorts |= u64::from(leg.quantity < 0) << i;
        longs[usize::from(!leg.call)] |= u64::from(leg.quantity > 0) << i;
    }
    let mut stock = (units / multiplier).max(0.0);
    let mut sides = [0.0; 2];
    let mut premium = 0.0;
    while shorts != 0 {
        let at = shorts.trailing_zeros() as usize;
        shorts &= shorts - 1;
        let short = &legs[at];
        let mut pairing = Pairing::NONE;
        let mut pairs = 0;
        let mut left = -short.quantity;
        if short.call {
            // The cast drops the fraction, and ends at the greatest number there is.
            let covered = left.min((stock / short.deliverable) as i32);
            stock -= f64::from(covered) * short.deliverable;
            left -= covered;
        }
        let naked = charge_above_mark(short.call, short.strike, underlying * short.deliverable, rule);
        let (side, longs) = (
            &mut sides[usize::from(!short.call)],
            &mut longs[usize::from(!short.call)],
        );
        while left > 0 {
            // Without branches, which would be mispredicted.
            let (mut best, mut least) = (0, f64::INFINITY);
            let mut others = *longs;
            while others != 0 {
                let i = others.trailing_zeros() as usize;
                others &= others - 1;
                let long = &legs[i];
                let apart = if short.call {
                    long.strike - short.strike
                } else {
                    short.strike - long.strike
                };
                let loss = if (long.expiry < short.expiry) | (long.deliverable != short.deliverable) {
                    f64::INFINITY
                } else {
                    apart.max(0.0)
                };
                best = if loss < least { i } else { best };
                least = if loss < least { loss } else { least };
            }
            let (i, loss) = (best, least);
            if loss >= naked + short.mark {
                pairing.next = loss;
                break;
            }
            let contracts = left.min(free[i]);
            free[i] -= contracts;
            *longs &= !(u64::from(free[i] == 0) << i);
            left -= contracts;
            let cost = f64::from(contracts) * loss;
            *side += cost;
            if let Some(place) = pairing.costs.get_mut(pairs) {
                *place = cost;
            }
            pairs += 1;
            // The long with the least loss is taken first.
            pairing.worst = loss;
        }
        *side += f64::from(left) * naked;
        premium += f64::from(left) * short.mark;
        pairing.left = f64::from(left);
        if pairs > Pairing::MOST {
            pairing.next = f64::NEG_INFINITY;
        }
        paired(at, &pairing);
    }
    (sides[0].max(sides[1]) + premium) * multiplier
}

/// The charge of a naked short option above its mark, per unit.
pub(crate) fn charge_above_mark(call: bool, strike: f64, underlying: f64, rule: &MarginConfig) -> f64 {
    let (out, base) = if call {
        (strike - underlying, underlying)
    } else {
        (underlying - strike, strike)
    };
    (rule.rate * underlying - out.max(0.0)).max(rule.minimum * base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(call: bool, strike: f64, quantity: i32, mark: f64) -> MarginLeg {
        MarginLeg {
            expiry: 100,
            strike,
            call,
            deliverable: 1.0,
            quantity,
            mark,
        }
    }

    fn need(legs: &[MarginLeg], units: f64) -> f64 {
        requirement(legs, units, 128.5, 100.0, &MarginConfig::default())
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    /// The requirements are those worked by hand with the manual's rules, on an underlying at 128.50.
    #[test]
    fn by_hand() {
        // Long options are paid in full.
        close(need(&[leg(true, 130.0, 3, 4.0)], 0.0), 0.0);
        // Short put 120 at 8: 20 % is 25.70, less 8.50 out of the money is 17.20, above 10 % of the strike,
        // 12; and 8.
        close(need(&[leg(false, 120.0, -1, 8.0)], 0.0), 2520.0);
        // Short call 160 at 1: 25.70 less 31.50 is below 10 % of the underlying, 12.85; and 1; twice.
        close(need(&[leg(true, 160.0, -2, 1.0)], 0.0), 2.0 * 1385.0);
        // Short straddle 130: call 25.70 - 1.50 = 24.20; put in the money 25.70: the larger, and both marks,
        // 5 and 6.
        let straddle = [leg(true, 130.0, -1, 5.0), leg(false, 130.0, -1, 6.0)];
        close(need(&straddle, 0.0), 2570.0 + 1100.0);
        // Short put vertical 120/115: 5. Long put vertical: nothing.
        close(
            need(&[leg(false, 120.0, -1, 8.0), leg(false, 115.0, 1, 6.0)], 0.0),
            500.0,
        );
        close(need(&[leg(false, 120.0, 1, 8.0), leg(false, 115.0, -1, 6.0)], 0.0), 0.0);
        // Iron condor 115/120/135/145: the larger side, 10.
        let condor = [
            leg(true, 135.0, -1, 3.0),
            leg(false, 120.0, -1, 3.0),
            leg(true, 145.0, 1, 1.0),
            leg(false, 115.0, 1, 1.0),
        ];
        close(need(&condor, 0.0), 1000.0);
        // Covered call; the second contract is naked: 24.20 and 5.
        close(need(&[leg(true, 130.0, -1, 5.0)], 100.0), 0.0);
        close(need(&[leg(true, 130.0, -2, 5.0)], 199.0), 2920.0);
        // A long that expires first covers nothing.
        let calendar = [
            leg(true, 130.0, -1, 5.0),
            MarginLeg {
                expiry: 99,
                ..leg(true, 130.0, 1, 4.0)
            },
        ];
        close(need(&calendar, 0.0), 2920.0);
        // A spread wider than the naked requirement is left naked.
        close(
            need(&[leg(true, 130.0, -1, 5.0), leg(true, 200.0, 1, 0.1)], 0.0),
            2920.0,
        );
    }
}
