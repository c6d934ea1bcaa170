//! A simulated panel of stocks, fully determined by [`PanelParameters`].
//!
//! The logarithmic return of a company from one close to the next is
//!
//! ```text
//! r + beta (premium / 252 + m) + s + strength x / 252 + e + jumps - c
//! ```
//!
//! with interest r, the market's shock m (GARCH(1,1)), the shock s of its sector, its own shock e, its signal
//! x at the previous close, and c such that the expected simple return is exp(r + beta premium / 252 +
//! strength x / 252) - 1. The signal follows x' = phi x + sqrt(1 - phi²) z with phi = 2^(-1 / half_life).
//! Stocks bought at a close by signals of that close or earlier earn the planted edge; later signals are
//! independent of the return.
//!
//! # The best long-only portfolio
//!
//! For N stocks with equal betas and a limit `largest` on each weight, the portfolio of greatest expected
//! return holds the K = 1 / largest stocks with the greatest x. Over equal weights it earns `strength` times
//! the expected mean of the K greatest of N standard normal numbers per year: [`best_tilt`].
//!
//! # The best estimate of the signal
//!
//! Who sees the feature, y = x + noise, knows x best by a Kalman filter, begun at a listing with the
//! stationary distribution: [`PanelBar::filtered`] is the return that it expects.

mod parameters;
mod path;
mod tilt;

pub use parameters::{Edge, Listing, MarketFactor, PanelParameters, Specific};
pub use path::{Panel, PanelBar, PanelStock};
pub use tilt::best_tilt;
