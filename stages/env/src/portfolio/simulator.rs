//! The traits that a market implements.

use super::state::{Derived, EnvState, EnvView, Parts};
use super::worlds::Worlds;
use crate::actions::Actions;
use crate::env_artifact::Files;
use crate::episode::EpisodeLength;
use crate::open_options::OpenOptions;
use crate::reward::Reward;
use crate::spec::EnvSpec;
use crate::split::SnapshotRange;
use datasets::SnapshotTime;
use stages_core::StageError;

/// The outcome of a step.
pub struct Outcome {
    pub reward: f32,
    pub terminated: bool,
    pub truncated: bool,
}

/// The facts that all accounts of a market share.
pub struct Common {
    /// The specification of observations and actions.
    pub spec: EnvSpec,
    pub(crate) worlds: Worlds,
    pub(crate) reward: Reward,
    /// The kind of saved states, and the size of the market: states of another size cannot be restored.
    pub(crate) tag: [String; 2],
    /// The number of positions of an account.
    pub(crate) width: usize,
    /// The number of weights of an account.
    pub(crate) num_weights: usize,
    /// True if accounts have a hedge.
    pub hedges: bool,
    /// The number of steps of a training episode.
    pub(crate) episode_length: EpisodeLength,
    /// The number of steps of an evaluation episode beyond its last snapshot.
    pub(crate) steps_beyond: usize,
    /// The time of each snapshot.
    pub times: Vec<SnapshotTime>,
    /// The interest on 1 of cash from each snapshot to the next.
    pub risk_free: Vec<f64>,
    /// The return of the underlying, or of the market, from each snapshot to the next, with dividends; 0 at
    /// the end of a world.
    pub underlying: Vec<f64>,
    /// The part of an observation that shows the market, the same for every account `[T, W]`.
    pub(crate) rows: Vec<f32>,
}

impl Common {
    /// The risk aversion of the reward, where it is a utility of the excess return.
    pub fn risk_aversion(&self) -> Option<f64> {
        self.reward.risk_aversion()
    }

    /// The part of an observation that shows the market at a snapshot.
    #[inline]
    pub fn row(&self, snapshot: usize) -> &[f32] {
        let width = self.rows.len() / self.times.len();
        &self.rows[snapshot * width..(snapshot + 1) * width]
    }
}

/// The rules and tables by which environments are stepped, one account at a time. Environment i of a batch
/// depends on (seed, i) alone.
pub trait Simulator: Sized + Send + Sync + 'static {
    /// With fewer environments per thread than this, scheduling the task costs more than stepping them.
    const GRAIN: usize;
    /// True if choices are masked by state.
    const MASKS: bool = true;

    /// The parts of an account.
    type Parts: Parts;
    /// The act of one environment in a step.
    type Act<'a>: Copy;
    /// The statement of an account.
    type Ledger: Copy + Send + Sync;
    /// The explanation of a step, where one is asked for.
    type Note: Derived;

    /// Opens the files that `file` returns by name.
    fn open(file: impl Files, options: &OpenOptions) -> Result<Self, StageError>;
    /// The facts that all accounts share.
    fn common(&self) -> &Common;

    /// Starts an episode of the first to the last of snapshots; the account keeps the episode's number alone.
    fn begin(&self, env: &mut EnvState<'_, Self::Parts>, snapshots: SnapshotRange);
    /// The act of an environment's action, which is of the action space; it may write the orders.
    fn decide<'a>(&self, action: Actions<'a>, env: &mut EnvState<'_, Self::Parts>) -> Self::Act<'a>;
    /// Takes one step.
    fn step(
        &self,
        env: &mut EnvState<'_, Self::Parts>,
        act: Self::Act<'_>,
        note: Option<&mut Self::Note>,
    ) -> Outcome;
    /// Writes the observation of a state.
    fn observe(&self, env: &EnvState<'_, Self::Parts>, out: &mut [f32]);
    /// Writes the action mask of a state, where [`Simulator::MASKS`].
    fn mask(&self, _env: &EnvState<'_, Self::Parts>, _out: &mut [bool]) {}
    /// Recomputes what follows from a restored account.
    fn recall(&self, _env: &mut EnvState<'_, Self::Parts>) {}

    /// The statement of an account.
    fn ledger(&self, env: EnvView<'_, Self::Parts>) -> Self::Ledger;
    /// Writes the value of each position as a fraction of the net asset value.
    fn weights(&self, _env: EnvView<'_, Self::Parts>, _out: &mut [f64]) {}
}
