//! Proposals of new trials: each sampler is a pure function of an [`Ask`].
//!
//! The samplers are written here but for the Sobol sequence, which is `sobol_burley`'s: integer arithmetic
//! with the direction numbers of Joe and Kuo and Owen's scrambling, no dependency, MIT or Apache-2.0. What
//! else there is keeps its state in itself, draws from its own generator and calls the platform's `exp` and
//! `ln`, so that a proposal is neither a function of the trials alone nor the same on every machine:
//! `optimizer` 1.0 (MIT) has all kinds, but asks parameter by parameter, its Gaussian process takes the
//! standard deviations of the inputs for length scales and leaves categories to chance; `tpe` 0.3 (MIT) is
//! one parameter alone, without conditions; `cmaes` 0.2 (of 2022) and `egobox-ego` 0.42 bring 85 and 197
//! crates (nalgebra; ndarray, linfa, argmin) for what is a few hundred lines. The constants and the update of
//! CMA-ES are those of `train/es`, in `stages-numerics`.
//!
//! | module | |
//! | --- | --- |
//! | [`rank`] | the order of trials: feasible, highest rung, least loss or first Pareto front |
//! | [`tpe`] | the tree-structured Parzen estimator |
//! | [`cma_es`] | the covariance matrix adaptation evolution strategy |
//! | [`gp`] | a Gaussian process with expected improvement |

mod cma_es;
mod gp;
mod rank;
mod tpe;

use crate::Settings;
use crate::space::Space;
use runner_pipeline::SamplerName;
use stages_numerics::random::Random;

/// The domain of the random streams; changing it changes all proposals.
const DOMAIN: u64 = 0x7361_6d70_6c65_7231;

/// The trials of a search that are spread evenly over the space before those that learn from results.
pub const STARTUP: usize = 10;

/// The largest finite space whose untried settings are listed.
const LISTED: usize = 20_000;
use serde::{Deserialize, Serialize};

/// A trial that has been evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The trial's number.
    pub trial: u32,
    /// The trial's settings.
    pub settings: Settings,
    /// The rung that the trial was evaluated at last, from 0.
    pub rung: usize,
    /// The losses, one for each objective: less is better. Infinite for a trial that failed.
    pub losses: Vec<f64>,
    /// The sum of what the constraints are exceeded by; 0 if all hold.
    pub violation: f64,
}

/// The question for a new trial. The answer depends on nothing else, and not on the order of `running`.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The space.
    pub space: &'a Space,
    /// The seed of the search.
    pub seed: u64,
    /// The number of the new trial.
    pub trial: u32,
    /// The trials whose results are seen, in the order of their numbers, each at the last rung whose result
    /// is seen. Trials of earlier searches come first, with the number `u32::MAX`.
    pub observed: &'a [Observed],
    /// The settings of the trials that are under way without a result yet.
    pub running: &'a [Settings],
}

impl Ask<'_> {
    /// The random numbers of the proposal.
    fn random(&self) -> Random {
        Random::new(&[DOMAIN, self.seed, u64::from(self.trial)])
    }

    /// True if there are too few results to learn from.
    fn is_startup(&self) -> bool {
        self.observed.len() < STARTUP
    }

    fn is_tried(&self, settings: &Settings) -> bool {
        self.observed.iter().any(|observed| observed.settings == *settings) || self.running.contains(settings)
    }

    /// The first of the proposals that has not been tried. Otherwise one at random of all that has not, and
    /// if there is none left, the first proposal.
    fn untried(&self, proposals: impl IntoIterator<Item = Settings>) -> Settings {
        let mut first = None;
        for settings in proposals {
            if !self.is_tried(&settings) {
                return settings;
            }
            first.get_or_insert(settings);
        }
        let mut random = self.random();
        for _ in 0..100 {
            let settings = self.space.settings(|_, _| random.uniform());
            if !self.is_tried(&settings) {
                return settings;
            }
            first.get_or_insert(settings);
        }
        let mut left = self.space.all(LISTED).unwrap_or_default();
        left.retain(|settings| !self.is_tried(settings));
        if left.is_empty() {
            return first.unwrap_or_default();
        }
        let index = random.below(left.len() as u64) as usize;
        left.swap_remove(index)
    }
}

/// A way to propose trials.
pub trait Sampler: Send + Sync {
    /// The settings of a new trial. In a finite space they have not been tried while others are left.
    fn propose(&self, ask: &Ask<'_>) -> Settings;

    /// The reason why the sampler cannot search such a space or so many objectives, and a remedy.
    fn refuses(&self, _space: &Space, _objectives: usize) -> Option<&'static str> {
        None
    }
}

/// The sampler of this name.
pub fn sampler(name: SamplerName) -> Box<dyn Sampler> {
    match name {
        SamplerName::Random => Box::new(Uniform),
        SamplerName::Sobol => Box::new(Sobol),
        SamplerName::Tpe => Box::new(tpe::Tpe),
        SamplerName::CmaEs => Box::new(cma_es::CmaEs),
        SamplerName::Gp => Box::new(gp::Gp),
    }
}

/// Independent draws.
#[derive(Clone, Copy, Debug)]
struct Uniform;

impl Sampler for Uniform {
    fn propose(&self, ask: &Ask<'_>) -> Settings {
        let mut random = ask.random();
        ask.untried([ask.space.settings(|_, _| random.uniform())])
    }
}

/// The scrambled Sobol sequence; trial i is its point i.
#[derive(Clone, Copy, Debug)]
struct Sobol;

impl Sampler for Sobol {
    fn propose(&self, ask: &Ask<'_>) -> Settings {
        ask.untried([ask.space.settings(|i, _| sobol(ask.seed, ask.trial, i))])
    }
}

/// A coordinate of a point of the Sobol sequence with Owen's scrambling (Burley, "Practical hash-based Owen
/// scrambling", 2020). Beyond its 65,536 points and 256 dimensions it goes on with other scramblings.
fn sobol(seed: u64, index: u32, dimension: usize) -> f64 {
    const POINTS: u32 = 1 << 16;
    let block = [DOMAIN, seed, u64::from(index / POINTS), dimension as u64 / 256];
    let scrambling = Random::new(&block).next_u64() as u32;
    sobol_burley::sample(index % POINTS, dimension as u32 % 256, scrambling).into()
}

#[cfg(test)]
mod tests;
