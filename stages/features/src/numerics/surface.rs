//! Features of the implied volatility surface, day by day.

use super::feature::Feature;
use super::smile::Day;
use super::state::State;

/// A feature of the surface. Maturities are in calendar days of 1/365 year.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surface {
    /// At-the-money implied volatility, annualised, as a decimal: `atm_iv_30`.
    AtTheMoney {
        /// Maturity in days.
        days: u32,
    },
    /// Implied volatility of the put less that of the call at the configured delta: `skew_30`.
    Skew {
        /// Maturity in days.
        days: u32,
    },
    /// Implied volatility at the money of the long maturity less that of the short one: `term_slope_30_90`.
    TermSlope {
        /// The short maturity in days.
        short: u32,
        /// The long maturity in days.
        long: u32,
    },
    /// Implied variance at the money less the realised variance of the underlying over the trading days
    /// before (annual; mean square of daily log returns times the trading days a year):
    /// `variance_risk_premium_30`. Of several snapshots a day the last gives the price of the day, and a row
    /// has the returns of the days before its own.
    VarianceRiskPremium {
        /// Maturity in days.
        days: u32,
        /// Trading days of the realised variance.
        window: usize,
        /// Trading days a year.
        days_a_year: f64,
    },
}

fn years(days: u32) -> f64 {
    f64::from(days) / 365.0
}

impl Feature<Vec<Day>> for Surface {
    fn columns(&self) -> Vec<String> {
        vec![match *self {
            Self::AtTheMoney { days } => format!("atm_iv_{days}"),
            Self::Skew { days } => format!("skew_{days}"),
            Self::TermSlope { short, long } => format!("term_slope_{short}_{long}"),
            Self::VarianceRiskPremium { days, .. } => format!("variance_risk_premium_{days}"),
        }]
    }

    fn inputs(&self) -> Vec<&'static str> {
        match self {
            Self::VarianceRiskPremium { .. } => vec!["implied_volatility", "underlying"],
            _ => vec!["implied_volatility"],
        }
    }

    fn start(&self) -> State {
        match *self {
            Self::VarianceRiskPremium { window, .. } => {
                let mut state = vec![0.0; 1 + size(window)];
                state[0] = f64::NAN;
                state
            }
            _ => Vec::new(),
        }
    }

    fn write(&self, state: &mut State, days: &Vec<Day>, columns: &mut [&mut [f64]]) {
        for (day, out) in days.iter().zip(columns.iter_mut().flat_map(|column| column.iter_mut())) {
            *out = self.value(state, day).unwrap_or(f64::NAN);
        }
    }
}

impl Surface {
    /// The value on a day; `None` during the warm-up and without a price.
    fn value(&self, state: &mut State, day: &Day) -> Option<f64> {
        Some(match *self {
            Self::AtTheMoney { days } => day.at_the_money(years(days)),
            Self::Skew { days } => day.skew(years(days)),
            Self::TermSlope { short, long } => day.at_the_money(years(long)) - day.at_the_money(years(short)),
            Self::VarianceRiskPremium {
                days,
                window,
                days_a_year,
            } => {
                if !(day.underlying > 0.0 && day.underlying.is_finite()) {
                    return None;
                }
                let closes = 1 + size(window);
                let close = match day.date {
                    None => Some(day.underlying),
                    // Two numbers follow the window: the date of the last snapshot, and its price, which
                    // becomes the day's price once another day begins.
                    Some(date) => {
                        state.resize(closes + 2, f64::NAN);
                        let today = f64::from(date.0);
                        let close = (state[closes] != today).then_some(state[closes + 1]);
                        state[closes..].copy_from_slice(&[today, day.underlying]);
                        close
                    }
                };
                let window = &mut state[..closes];
                if let Some(close) = close.filter(|close| !close.is_nan()) {
                    let before = std::mem::replace(&mut window[0], close);
                    if !before.is_nan() {
                        let change = libm::log(close / before);
                        push(&mut window[1..], change * change);
                    }
                }
                let squares = full(&window[1..])?;
                let realised = days_a_year * squares.iter().sum::<f64>() / squares.len() as f64;
                let implied = day.at_the_money(years(days));
                implied * implied - realised
            }
        })
    }
}

/// The number of state values for a window of `n` values.
const fn size(n: usize) -> usize {
    n + 1
}

/// Appends a value to a window (`[count, values…]`, newest last), dropping the oldest.
fn push(window: &mut [f64], value: f64) {
    let n = window.len() - 1;
    window.copy_within(2.., 1);
    window[n] = value;
    window[0] = (window[0] + 1.0).min(n as f64);
}

/// The values of a window, oldest first; `None` until it is full.
fn full(window: &[f64]) -> Option<&[f64]> {
    let values = &window[1..];
    (window[0] == values.len() as f64).then_some(values)
}
