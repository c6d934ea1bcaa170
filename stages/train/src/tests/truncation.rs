use crate::carry::Carry;
use crate::clock::Clock;
use crate::rollout::Rollout;
use crate::{PpoConfig, RecurrentPpoConfig};
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, BatchEnv, EnvSpec, Step, StepBuffers};
use stages_policy::{Architecture, Batch, LossSettings, Losses, Model, Observed, Output};

/// Episodes of three steps, terminated in environment 0 and truncated in environment 1; the observation is the time, 100 at the end.
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
    fn gradient(&mut self, _: &Batch, _: &LossSettings, _: &mut [f32]) -> Losses {
        Losses::default()
    }
}

#[test]
fn an_episode_cut_off_is_worth_its_last_observation() {
    let config = RecurrentPpoConfig {
        total_timesteps: 8,
        n_envs: 2,
        n_steps: 4,
        batch_size: 8,
        gamma: 0.5,
        gae_lambda: 1.0,
        ..RecurrentPpoConfig::default()
    };
    let settings = config.settings().unwrap();
    let spec = EnvSpec {
        name: "episodes".to_owned(),
        observation: vec!["time".to_owned()],
        action_space: ActionSpace::discrete(["none"]),
        normalisation: None,
    };
    let mut env = Episodes {
        spec: spec.clone(),
        time: 0,
    };
    let mut model = Counter(settings.architecture(&spec));
    let mut first = Step::new(&spec, 2);
    env.reset(first.buffers());
    let mut carry = Carry::new(&settings, &spec, vec![], None, 1, &first);
    let mut rollout = Rollout::default();
    rollout
        .collect(
            &settings,
            &mut env,
            &mut model,
            &mut carry,
            &mut Clock::default(),
            |_, _| Ok(()),
        )
        .unwrap();
    let batch = rollout.batch(&settings);
    assert_eq!(
        batch.old_value,
        [1000.0, 1000.0, 2001.0, 2001.0, 3002.0, 3002.0, 1000.0, 1000.0]
    );
    assert_eq!(
        batch.episode_start,
        [true, true, false, false, false, false, true, true]
    );
    // Environment 1's third reward holds gamma times the value of observation 100 in the state after three steps and one more.
    let cut = 0.5 * (100.0 + 4000.0);
    assert_eq!(rollout.reward, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + cut, 1.0, 1.0]);
    let last = 0.5 * 2001.0;
    assert_eq!(
        rollout.target,
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
        carry.recent.iter().copied().collect::<Vec<_>>(),
        [(3.0, 3.0), (3.0, 3.0)]
    );
    assert_eq!((carry.episodes, carry.lengths.as_slice()), (2, [1.0, 1.0].as_slice()));
    assert!(PpoConfig::default().settings().is_err());
}
