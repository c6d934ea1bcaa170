//! Prices of the underlying from put-call parity, for files without them.

use super::columns::{Chain, UNDERLYING};
use super::parity::{MEMORY, State, carry, forwards, spot};
use super::seen::Seen;
use datasets::Date;
use datasets::quality::Tally;
use stages_numerics::statistics::median;

/// Fills the column of the underlying's price. `limit` is the largest move in a day as a fraction (0.1 is 10
/// %), 0 for no limit.
pub(super) fn fill_underlying(
    chain: &mut Chain,
    limit: f64,
    bound: bool,
    seen: &mut Seen,
    tally: &mut Tally,
) {
    for run in chain.snapshots() {
        let forwards = forwards(chain, run.clone());
        let state = &mut seen.of(chain.name(chain.symbol[run.start])).parity;
        let before = state.begin(chain.date[run.start]);
        let State { carries, last, .. } = state;
        if let Some(carry) = carry(&forwards) {
            // Each day keeps its latest carry only.
            if std::mem::replace(&mut state.has_carry_of_day, true) {
                carries.pop_back();
            }
            carries.push_back(carry);
            if carries.len() > MEMORY {
                carries.pop_front();
            }
        }
        let carry = median(&mut carries.iter().copied().collect::<Vec<_>>()).unwrap_or(0.0);
        let mut price = spot(&forwards, carry);
        if let (Some(price), Some(last)) = (price.as_mut(), before)
            && limit > 0.0
        {
            let held = price.clamp(last * (1.0 - limit), last * (1.0 + limit));
            if held != *price {
                tally.add("underlying_beyond_limit", Date(chain.date[run.start]), run.len() as u64);
                if bound {
                    *price = held;
                }
            }
        }
        *last = price.or(*last);
        chain.values[UNDERLYING][run].fill(price.unwrap_or(f64::NAN));
    }
}
