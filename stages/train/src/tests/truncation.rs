//! Episodes that are cut off rather than over.

use super::*;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, EnvSpec, StepBuffers};
use stages_policy::{Architecture, Objective, Observed, Output, Sums};

/// Episodes of three steps, terminated in environment 0 and truncated in environment 1; the observation is
/// the time, 100 at the end.
struct Episodes {
    spec: EnvSpec,
    time: u32,
}

impl BatchEnv for Episodes {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn num_envs(&self) -> usize {
        2
    }
    fn reset(&mut self, out: StepBuffers<'_>) {
        self.time = 0;
        out.obs.fill(0.0);
    }
    fn step(&mut self, _: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        self.time += 1;
        let end = self.time == 3;
        if end {
            self.time = 0;
            out.final_obs.fill(100.0);
        }
        out.obs.fill(self.time as f32);
        out.reward.fill(1.0);
        out.terminated.copy_from_slice(&[end, false]);
        out.truncated.copy_from_slice(&[false, end]);
        Ok(())
    }
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// Its state counts the steps of the episode; its value is the observation plus 1000 times the state.
struct Counter(Architecture);

impl Model for Counter {
    fn architecture(&self) -> &Architecture {
        &self.0
    }
    fn load(&mut self, _: &[f32]) {}
    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output) {
        out.log_prob = vec![0.0; input.obs.len()];
        out.value.clear();
        for i in 0..input.obs.len() {
            state[i] = if input.episode_start[i] { 1.0 } else { state[i] + 1.0 };
            out.value.push(input.obs[i] + 1000.0 * state[i]);
        }
    }
    fn backward(&mut self, _: &Minibatch, _: &dyn Objective, _: &mut [f32]) -> Sums {
        Sums::default()
    }
}

#[test]
fn an_episode_cut_off_is_worth_its_last_observation() {
    let mut config = RecurrentPpoConfig::default();
    (config.training.total_timesteps, config.training.n_envs) = (8, 2);
    (config.rollouts.n_steps, config.rollouts.batch_size) = (4, 8);
    (config.ppo.gamma, config.ppo.gae_lambda) = (0.5, 1.0);
    let settings = config.settings().unwrap();
    let spec = EnvSpec {
        name: "episodes".to_owned(),
        observation: vec!["time".to_owned()],
        action_space: ActionSpace::discrete(["none"]),
        normalisation: None,
        encoding: stages_env::ActionEncoding::default(),
    };
    let env = Episodes {
        spec: spec.clone(),
        time: 0,
    };
    let model = Counter(settings.common.network.architecture(&spec).unwrap());
    let mut learner = learner(&settings, Box::new(env), Box::new(model), vec![]);
    learner.state.state = vec![0.0; 2];
    let mut ppo = Algorithm::new(&settings);
    ppo.collect(&mut learner).unwrap();
    assert_eq!(
        ppo.value,
        [1000.0, 1000.0, 2001.0, 2001.0, 3002.0, 3002.0, 1000.0, 1000.0]
    );
    assert_eq!(
        ppo.rollout.episode_start[..8],
        [true, true, false, false, false, false, true, true]
    );
    // Environment 1's third reward holds gamma times the value of observation 100 in the state after three
    // steps and one more.
    let cut = 0.5 * (100.0 + 4000.0);
    assert_eq!(ppo.reward, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + cut, 1.0, 1.0]);
    let last = 0.5 * 2001.0;
    assert_eq!(
        ppo.target,
        [
            1.75,
            1.75 + cut / 4.0,
            1.5,
            1.5 + cut / 2.0,
            1.0,
            1.0 + cut,
            1.0 + last,
            1.0 + last
        ]
    );
    assert_eq!(
        learner.state.recent.iter().copied().collect::<Vec<_>>(),
        [(3.0, 3.0), (3.0, 3.0)]
    );
    assert_eq!(
        (learner.state.episodes, learner.state.lengths.as_slice()),
        (2, [1.0, 1.0].as_slice())
    );
    assert!(PpoConfig::default().settings().is_err());
}
