//! Splits that no corporate action explains: overnight, strikes or the underlying's price change by a common
//! ratio of splits.
//!
//! Between the last snapshot of a day and the first of the next, with `S` the underlying before and `S'`
//! after, and `r = S / S'`:
//!
//! - `strike_jump`: fewer than half of the unexpired contracts before are listed after, and a common ratio
//!   ([`SplitRatio::COMMON`]) within 25 % of `r` takes half of their strikes, to a cent, to strikes that are
//!   listed after. Without a price of the underlying it has to take four fifths.
//! - `price_jump`: a common ratio is within 5 % of `r`, which is at least 1.4 or at most 1 / 1.4, and the
//!   options do not follow: the forward that put-call parity gives at the nearest expiry is 20 % or more off
//!   `S'`, or fewer than half of the contracts are left.
//!
//! A move that the options follow with their strikes unchanged is news, and no jump.

use super::columns::Chain;
use super::ladder::{Contract, Ladder};
use super::parity;
use super::rules::Rules;
use super::seen::Seen;
use datasets::Date;
use datasets::corporate_action::SplitRatio;
use datasets::quality::{Example, FEW_CONTRACTS, Tally};

/// The smallest ratio of the underlying's prices that counts as a split.
const LEAST_MOVE: f64 = 1.4;
/// The largest difference between the options' forward and the underlying's price, as a fraction of the
/// latter.
const FORWARD_GAP: f64 = 0.2;

/// A change from one day to the next by a split ratio.
#[derive(Debug, PartialEq)]
struct Jump {
    rule: &'static str,
    ratio: SplitRatio,
    about: String,
}

impl Ladder {
    /// Returns whether the snapshot lists the contract that another one becomes by a split of `ratio`, to a
    /// cent of the smaller of the two strikes.
    fn has_split(&self, &(expiry, strike, call): &Contract, ratio: f64) -> bool {
        let strike = f64::from_bits(strike) / ratio;
        let slack = (0.0051 * (1.0 / ratio).max(1.0)).min(0.01 * strike);
        // Strikes are positive, so their bits sort as their values do; calls and puts alternate.
        let from = (expiry, (strike - slack).max(0.0).to_bits(), false);
        let start = self.contracts.partition_point(|contract| *contract < from);
        self.contracts[start..]
            .iter()
            .take_while(|other| other.0 == expiry && f64::from_bits(other.1) <= strike + slack)
            .any(|other| other.2 == call)
    }

    /// The jump from the snapshot `before` to this one, if any; `forward` gives this snapshot's forward price
    /// at the nearest expiry.
    fn jump(&self, before: &Self, forward: impl FnOnce() -> Option<f64>) -> Option<Jump> {
        let move_ = before.underlying / self.underlying;
        let alive: Vec<&Contract> = before.contracts.iter().filter(|c| c.0 >= self.date.0).collect();
        let share = |count: usize| count as f64 / alive.len().max(1) as f64;
        let stay = alive.iter().filter(|contract| self.has(contract)).count();
        let replaced = alive.len() >= FEW_CONTRACTS && share(stay) < 0.5;
        if replaced {
            let candidates = SplitRatio::COMMON.iter().filter(|ratio| {
                let ratio = ratio.value() / move_ - 1.0;
                ratio.is_nan() || ratio.abs() < 0.25
            });
            let mapped = |ratio: &SplitRatio| {
                let split = |contract: &&&Contract| self.has_split(contract, ratio.value());
                share(alive.iter().filter(split).count())
            };
            let best = candidates
                .map(|ratio| (mapped(ratio), *ratio))
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let least = if move_.is_nan() { 0.8 } else { 0.5 };
            if let Some((share, ratio)) = best.filter(|(share, _)| *share >= least) {
                return Some(Jump {
                    rule: "strike_jump",
                    ratio,
                    about: format!(
                        "{ratio} split: {:.0} % of {} strikes of {} divided by {}",
                        100.0 * share,
                        alive.len(),
                        before.date,
                        shown(ratio)
                    ),
                });
            }
        }
        let ratio =
            SplitRatio::near(move_, 0.05).filter(|_| !(1.0 / LEAST_MOVE..LEAST_MOVE).contains(&move_))?;
        let gap = forward().map(|forward| (forward / self.underlying - 1.0).abs());
        let unfollowed = gap.is_some_and(|gap| gap >= FORWARD_GAP);
        (unfollowed || replaced).then(|| Jump {
            rule: "price_jump",
            ratio,
            about: format!(
                "{ratio} split? the underlying was {} on {}, and {}",
                before.underlying,
                before.date,
                match gap {
                    Some(gap) if unfollowed => format!("the options' forward is {:.0} % off", 100.0 * gap),
                    _ => format!("{stay} of {} contracts are left", alive.len()),
                }
            ),
        })
    }
}

fn shown(ratio: SplitRatio) -> String {
    match ratio.old {
        1 => ratio.new.to_string(),
        old => format!("{}/{old}", ratio.new),
    }
}

impl Rules<'_> {
    /// Counts the splits in a part of a chain that no corporate action explains, and returns them as symbol,
    /// day and ratio.
    pub(crate) fn jumps(
        &self,
        chain: &Chain,
        seen: &mut Seen,
        tally: &mut Tally,
    ) -> Vec<(String, Date, SplitRatio)> {
        let mut found = Vec::new();
        for run in chain.snapshots() {
            let symbol = chain.name(chain.symbol[run.start]);
            let ladder = Ladder::new(chain, run.clone());
            let seen = seen.of(symbol);
            // Splits take effect overnight, so snapshots of the same day are not compared.
            if let Some(before) = seen.ladder.as_ref().filter(|before| before.date != ladder.date) {
                let forward = || {
                    parity::forwards(chain, run.clone())
                        .first()
                        .map(|forward| forward.price)
                };
                let jump = ladder.jump(before, forward);
                let explained = |jump: &Jump| {
                    let ratio = jump.ratio.value();
                    let mut actions = self.actions.iter();
                    actions.any(|action| action.explains(symbol, before.date, ladder.date, ratio))
                };
                if let Some(jump) = jump.filter(|jump| !explained(jump)) {
                    found.push((symbol.to_owned(), ladder.date, jump.ratio));
                    tally.add_rows(jump.rule, ladder.date, 1, || Example {
                        symbol: Some(symbol.to_owned()),
                        date: Some(ladder.date),
                        underlying: Example::number(ladder.underlying),
                        note: Some(jump.about),
                        ..Example::default()
                    });
                }
            }
            seen.ladder = Some(ladder);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(date: i32, underlying: f64, strikes: impl Iterator<Item = f64>) -> Ladder {
        let mut contracts: Vec<Contract> = strikes
            .flat_map(|strike| [(100, strike.to_bits(), false), (100, strike.to_bits(), true)])
            .collect();
        contracts.sort_unstable();
        Ladder {
            date: Date(date),
            underlying,
            contracts,
        }
    }

    fn strikes(first: u32, step: f64) -> impl Iterator<Item = f64> {
        (0..20).map(move |i| f64::from(first) + step * f64::from(i))
    }

    #[test]
    fn strikes_that_are_divided() {
        let before = ladder(1, 645.57, strikes(550, 10.0));
        // Strikes are rounded to the cent, as exchanges list them.
        let cents = |strike: f64| (strike / 7.0 * 100.0).round() / 100.0;
        let after = ladder(4, 93.7, strikes(550, 10.0).map(cents));
        let jump = after.jump(&before, || None).unwrap();
        assert_eq!((jump.rule, jump.ratio), ("strike_jump", SplitRatio { new: 7, old: 1 }));
        // In the opposite direction, and without a price of the underlying.
        let back = ladder(5, f64::NAN, strikes(550, 10.0));
        assert_eq!(
            before.jump(&after, || None).unwrap().ratio,
            SplitRatio { new: 1, old: 7 }
        );
        assert_eq!(back.jump(&after, || None).unwrap().ratio, SplitRatio { new: 1, old: 7 });
    }

    #[test]
    fn a_move_that_options_follow_is_news() {
        let before = ladder(1, 100.0, strikes(50, 5.0));
        let halved = ladder(2, 50.5, strikes(50, 5.0));
        assert_eq!(halved.jump(&before, || Some(50.4)), None);
        // The underlying is adjusted, and the options are not.
        let jump = halved.jump(&before, || Some(100.2)).unwrap();
        assert_eq!((jump.rule, jump.ratio), ("price_jump", SplitRatio { new: 2, old: 1 }));
        assert_eq!(ladder(2, 75.5, strikes(50, 5.0)).jump(&before, || Some(75.4)), None);
        // Listing a new month's contracts is not a split.
        let mut rolled = ladder(101, 101.0, strikes(52, 5.0));
        rolled.contracts.iter_mut().for_each(|contract| contract.0 = 130);
        assert_eq!(rolled.jump(&before, || Some(101.0)), None);
    }
}
