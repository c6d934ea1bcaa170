//! The reward of environments with accounts: its configuration, and its measure of a step.
//!
//! With N the net asset value before a step and N' after it, S the underlying, and f the interest of 1 of
//! cash over the step, `exp(rate days / 365) - 1`: the return is `r = N' / N - 1`, and the excess return
//! `e = r - f`. The reward is
//!
//! `scale x (measure - turnover T - costs C - drawdown max(D' - D, 0) - delta |delta S' / N| - cvar.weight
//! max(-e - cvar.threshold, 0) / (1 - cvar.confidence))`
//!
//! with T the value traded and C the costs of trades (spread and commission), both as fractions of N, and D
//! the drawdown as a fraction of the peak. The measure is one of
//!
//! | kind | measure | source |
//! | --- | --- | --- |
//! | `mean_variance` | `e - risk_aversion e^2 / 2` | Ritter (2017), Machine Learning for Trading |
//! | `exponential_utility` | `(1 - exp(-risk_aversion e)) / risk_aversion`, of e no less than -1 | constant absolute risk aversion (Pratt 1964) on the return of a step |
//! | `differential_sharpe` | `(B (e - A) - A (e^2 - B) / 2) / V^(3/2)`, of `V = max(B - A^2, volatility^2 / 10,000)`; then `A += eta (e - A)`, `B += eta (e^2 - B)`; an episode begins with `A = 0`, `B = volatility^2` | Moody and Saffell (2001), Learning to Trade via Direct Reinforcement |
//! | `simple` | `(N' - N) / capital` | |
//! | `log` | `ln(N' / N)` | |
//!
//! The first three do not pay for risk that cash does without: cash has e = 0 and a reward of 0. A strategy
//! of a Sharpe ratio s and a volatility v a year earns `s v - risk_aversion v^2 / 2` a year of
//! `mean_variance` (whatever the length of a step), most at the volatility `s / risk_aversion`: with a risk
//! aversion of 10, 10 % for a Sharpe ratio of 1. Under `simple` and `log` the best size is as large as margin
//! allows, or the growth-optimal one of `risk_aversion: 1`.
//!
//! The penalty `cvar` is the objective of Rockafellar and Uryasev (2000) at a fixed threshold: if losses
//! exceed the threshold in a share of `1 - confidence` of the steps, threshold and penalty add up to the
//! conditional value at risk.
//!
//! In divisions N is at least a thousandth of the capital.

mod config;
mod measure;

pub use config::{CvarPenalty, RewardConfig, RewardKind};
pub(crate) use config::{deserialize, schema};
pub(crate) use measure::{Change, Moments, Reward, drawdown};
