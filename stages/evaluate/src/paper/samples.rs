//! The backtests that a promise is made of: the steps of the validation and test episodes, played as an
//! account that lives forward would have been.

use super::account::{Decider, open_split};
use super::book::walk;
use crate::acting::in_market;
use crate::promise::Sample;
use cache::{Artifact, Store};
use datasets::{Date, SnapshotTime};
use stages_core::StageError;
use stages_env::{ForwardSimulator, OpenOptions, PortfolioEnv, Split};
use stages_policy::AnyPolicy;

/// The steps of backtests.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Each episode's.
    pub steps: Vec<Sample>,
    /// Steps a year.
    pub steps_a_year: f64,
    /// The first and the last date.
    pub dates: Option<(Date, Date)>,
}

/// An evaluation episode: its world, and its first and last snapshot.
struct Episode {
    world: String,
    first: SnapshotTime,
    last: SnapshotTime,
}

/// Plays the validation and test episodes of the environment that a policy was trained in.
///
/// # Errors
/// When the environment has no account that lives forward.
pub fn samples(store: &Store, artifact: &Artifact, policy: &AnyPolicy) -> Result<Samples, StageError> {
    let mut samples = Samples::default();
    for split in [Split::Validation, Split::Test] {
        if stages_env::evaluation_episodes(store, artifact, split)? == Some(0) {
            continue;
        }
        let (episodes, steps_a_year) = in_market!(artifact, episodes(store, artifact, split))?;
        samples.steps_a_year = steps_a_year;
        for Episode { world, first, last } in episodes {
            let mut account = open_split(store, artifact, Decider::Policy(policy), (Some(&world), split))?;
            account.begin(first, account.capital().unwrap_or(1.0))?;
            let nights = walk(&mut *account, last)?;
            let of = |figure: fn(&super::book::Entered) -> f64| nights.iter().map(figure).collect();
            samples.steps.push(Sample {
                log_return: of(|night| night.log_return),
                risk_free: of(|night| night.risk_free),
                turnover: of(|night| night.turnover),
                costs: of(|night| night.costs),
            });
            let (from, to) = samples.dates.unwrap_or((first.date, last.date));
            samples.dates = Some((from.min(first.date), to.max(last.date)));
        }
    }
    Ok(samples)
}

fn episodes<S: ForwardSimulator>(
    store: &Store,
    artifact: &Artifact,
    split: Split,
) -> Result<(Vec<Episode>, f64), StageError> {
    let options = OpenOptions {
        split,
        ..OpenOptions::test(1, 0)
    };
    let env = PortfolioEnv::<S>::open(store, artifact, &options)?;
    let times = &env.common().times;
    let worlds = env.acting_worlds().into_iter();
    let episodes = worlds.map(|world| Episode {
        first: times[world.first],
        last: times[world.last],
        world: world.name,
    });
    Ok((episodes.collect(), env.periods_a_year(&artifact.meta).value))
}
