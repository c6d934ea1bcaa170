//! A simulated panel of stocks, wholly determined by [`PanelParameters`].
//!
//! The logarithmic return of a company from one close to the next is
//!
//! ```text
//! r + beta (premium / 252 + m) + s + strength x / 252 + e + jumps - c
//! ```
//!
//! with interest r, the market's shock m (GARCH(1,1)), that of its sector s, its own shock e, its
//! signal x at the close before, and c such that the expected simple return is exp(r + beta premium /
//! 252 + strength x / 252) - 1. The signal is x' = phi x + sqrt(1 - phi²) z, phi = 2^(-1 / half_life).
//! What is bought at a close by signals of that close or before earns the planted edge; later signals
//! are independent of its return.
//!
//! # The best long-only portfolio
//!
//! Of N stocks with equal betas, the weights of greatest expected return under a limit `largest` on each hold
//! the K = 1 / largest stocks of the greatest x. They earn `strength` x (the mean of the K greatest of N
//! standard normal numbers) a year above equal weights: [`best_tilt`]. With a cost c for each unit of value
//! traded, a holding is worth exchanging for another only beyond a difference of expected returns,
//! [`exchange_band`].

mod parameters;
mod path;
mod tilt;

pub use parameters::{Edge, Listing, MarketFactor, PanelParameters, Specific};
pub use path::{Panel, PanelBar, PanelStock};
pub use tilt::{best_tilt, exchange_band};
