//! The stage kind `env/classic`.

use super::cart_pole::CartPole;
use super::control::Control;
use super::mountain_car::MountainCar;
use super::pendulum::Pendulum;
use super::repeat_previous::RepeatPrevious;
use crate::batch::BatchEnv;
use crate::env_artifact;
use crate::open_options::OpenOptions;
use cache::{Artifact, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{Context, Outputs, Ports, StageError, StageKind};

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "classic";

/// A classic environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Id {
    /// The pole on a cart: position, velocity, angle, angular velocity; 500 steps at most.
    #[default]
    #[serde(rename = "CartPole-v1")]
    CartPole,
    /// The same, showing only position and angle: balancing it requires memory.
    #[serde(rename = "CartPole-hidden-velocity")]
    CartPoleHiddenVelocity,
    /// POPGym's game of one deck of cards: name the suit seen three steps ago.
    RepeatPreviousEasy,
    /// The same with two decks, 31 steps ago.
    RepeatPreviousMedium,
    /// The same with three decks, 63 steps ago.
    RepeatPreviousHard,
    /// A pendulum to swing up: cosine and sine of its angle, angular velocity; the action is a continuous
    /// torque within -2 and 2; 200 steps.
    #[serde(rename = "Pendulum-v1")]
    Pendulum,
    /// A car to drive out of a valley by swinging: position and velocity; the action is a continuous force
    /// within -1 and 1, which costs; the hilltop earns 100; 999 steps at most.
    #[serde(rename = "MountainCarContinuous-v0")]
    MountainCar,
}

/// Configuration of `env/classic`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClassicConfig {
    /// The environment.
    pub id: Id,
}

/// The stage kind `env/classic`.
pub struct Classic;

impl StageKind for Classic {
    type Config = ClassicConfig;
    const NAME: &'static str = "env/classic";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "small control tasks: CartPole, with and without its velocities, Pendulum, \
        MountainCarContinuous, and a memory game";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[env_artifact::OUTPUT],
    };

    fn run(&self, config: &ClassicConfig, context: &Context) -> Result<Outputs, StageError> {
        env_artifact::outputs(env_artifact::begin(&context.store, FAMILY, config)?)
    }
}

/// Opens the artifact of the stage.
pub(crate) fn open(
    store: &Store,
    artifact: &Artifact,
    options: &OpenOptions,
) -> Result<Box<dyn BatchEnv>, StageError> {
    let config: ClassicConfig = env_artifact::spec(env_artifact::files(store, artifact))?;
    let repeat = |name, decks, k| Box::new(RepeatPrevious::new(name, decks, k, options));
    Ok(match config.id {
        Id::CartPole => Box::new(CartPole::new(false, options)),
        Id::CartPoleHiddenVelocity => Box::new(CartPole::new(true, options)),
        Id::RepeatPreviousEasy => repeat("RepeatPreviousEasy", 1, 4),
        Id::RepeatPreviousMedium => repeat("RepeatPreviousMedium", 2, 32),
        Id::RepeatPreviousHard => repeat("RepeatPreviousHard", 3, 64),
        Id::Pendulum => Box::new(Control::<Pendulum>::new(options)),
        Id::MountainCar => Box::new(Control::<MountainCar>::new(options)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::context;
    use std::collections::BTreeMap;

    #[test]
    fn golden() {
        let dir = tempfile::tempdir().unwrap();
        let context = context(dir.path(), BTreeMap::new());
        let stage = stages_core::erase(Classic);
        let config = stage
            .resolve(serde_json::json!({ "id": "CartPole-hidden-velocity" }))
            .unwrap();
        let outputs = stage.run(&config, &context).unwrap();
        assert_eq!(
            outputs["env"].to_hex(),
            "83e9447d4e23cac52d5a386e1dca9249eab6057cf4979a767871aafcd622012d"
        );
        let artifact = context.store.artifact(outputs["env"]).unwrap();
        let env = crate::open(&context.store, &artifact, &OpenOptions::train(2, 0)).unwrap();
        assert_eq!(env.spec().obs_dim(), 2);
        assert!(crate::open(&context.store, &artifact, &OpenOptions::train(0, 0)).is_err());
        assert!(stage.resolve(serde_json::json!({ "id": "CartPole" })).is_err());
        let open = |id: &str| {
            let config = stage.resolve(serde_json::json!({ "id": id })).unwrap();
            let digest = stage.run(&config, &context).unwrap()["env"];
            let artifact = context.store.artifact(digest).unwrap();
            crate::open(&context.store, &artifact, &OpenOptions::train(2, 0)).unwrap()
        };
        let env = open("RepeatPreviousEasy");
        assert_eq!((env.spec().obs_dim(), env.spec().action_space.num_outputs()), (4, 4));
        let env = open("Pendulum-v1");
        assert!(
            matches!(&env.spec().action_space, crate::ActionSpace::Continuous { bounds,
                .. } if bounds.high == [2.0])
        );
    }
}
