//! Applies the rules of [`datasets::quality::CHAIN`] that need the price of the underlying.
//!
//! With `T` the years (of 365 days) to expiry, `K` the strike, `S` the price of the underlying, `w` = 1 for
//! calls and -1 for puts, and `c` = [`PLAUSIBLE_CARRY`], the exercise value is
//!
//! - American contracts: `max(w (S - K), 0)`, the value of immediate exercise;
//! - European contracts: `e^(-c T) max(w (F - K), 0)` with the forward `F` from put-call parity at the expiry
//!   (the median over the strikes nearest to the money, see [`parity`]). Without a forward, `S e^(-c T)`
//!   takes the place of `F` for calls and `S e^(c T)` for puts. At no rate up to `c` is the contract worth
//!   less.

use super::columns::{ASK, BID, Chain, LAST, UNDERLYING, VOLATILITY};
use super::parity;
use super::rules::{Applied, Rules};
use super::seen::Seen;
use datasets::Date;
use datasets::quality::{INTRINSIC_ROUNDING, MISPRICED, PLACEHOLDER_VOLATILITY, PLAUSIBLE_CARRY, Tally};
use stages_numerics::black_scholes::greeks;

/// The number of ticks by which a vendor's volatility may misprice an option beyond [`MISPRICED`].
const MISPRICED_TICKS: f64 = 5.0;
/// The minimum number of days to expiry for comparing a vendor's volatility with the price.
const LEAST_DAYS: i32 = 2;

impl Rules<'_> {
    /// Applies the rules that need the price of the underlying to a part of the chain, which
    /// [`Rules::check_rows`] has checked.
    pub(crate) fn check_prices(&self, chain: &mut Chain, seen: &mut Seen, tally: &mut Tally) {
        let mut applied = Applied::new(self, chain);
        for run in chain.snapshots() {
            let american = self.styles.american.contains(chain.name(chain.symbol[run.start]));
            let mut start = run.start;
            while start < run.end {
                let expiry = chain.expiry[start];
                let rest = &chain.expiry[start..run.end];
                let end = start + rest.iter().take_while(|other| **other == expiry).count();
                let forward = parity::forwards(chain, start..end).first().map(|forward| forward.price);
                for i in start..end {
                    self.check_price(chain, i, american, forward, tally, &mut applied);
                }
                start = end;
            }
        }
        chain.retain(&applied.keep);
        self.jumps(chain, seen, tally);
    }

    fn check_price(
        &self,
        chain: &mut Chain,
        i: usize,
        american: bool,
        forward: Option<f64>,
        tally: &mut Tally,
        applied: &mut Applied<'_>,
    ) {
        let [bid, ask, last, spot, volatility] =
            [BID, ASK, LAST, UNDERLYING, VOLATILITY].map(|column| chain.values[column][i]);
        if spot.is_nan() {
            applied.broken("missing_underlying", chain, i, tally);
        }
        let (strike, call) = (chain.strike[i], chain.call[i]);
        let years = f64::from(chain.expiry[i] - chain.date[i]).max(0.0) / 365.0;
        // The price at which the option can be bought: data without quotes trades at last prices.
        let price = if bid.is_nan() && ask.is_nan() { last } else { ask };
        let exercise = |at: f64| (if call { at - strike } else { strike - at }).max(0.0);
        let low = libm::exp(-PLAUSIBLE_CARRY * years);
        let intrinsic = match (american, forward) {
            (true, _) => exercise(spot),
            (false, Some(forward)) => low * exercise(forward),
            (false, None) => low * exercise(if call { spot * low } else { spot / low }),
        };
        if price > 0.0 && price < intrinsic - INTRINSIC_ROUNDING * strike {
            applied.broken("ask_below_intrinsic", chain, i, tally);
        }
        let Some(forward) = forward else { return };
        let out_of_the_money = if call { strike >= forward } else { strike <= forward };
        let days = chain.expiry[i] - chain.date[i];
        if volatility > PLACEHOLDER_VOLATILITY
            && ask > 0.0
            && days >= LEAST_DAYS
            && out_of_the_money
            && strike > 0.0
        {
            let value = greeks(forward, forward, 1.0, volatility, years, strike, call).price;
            let slack = MISPRICED_TICKS * self.tick;
            if value * low > MISPRICED * ask + slack || value < bid / MISPRICED - slack {
                tally.add_row("volatility_contradicts_price", Date(chain.date[i]), || chain.example(i));
                if self.repairs("volatility_contradicts_price") {
                    chain.values[VOLATILITY][i] = f64::NAN;
                }
            }
        }
    }
}
