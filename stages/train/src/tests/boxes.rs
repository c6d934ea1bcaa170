//! Continuous actions whose range is another than -1 to 1.

use super::*;
use crate::learner::Algorithm as Learning;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, Bounds, EnvSpec, StepBuffers};
use stages_policy::{Mode, Policy, Precision, initial};

/// Ten steps; the reward of each is -(distance from the target, in parts of the range) squared, summed over
/// components. The best return is 0.
struct Offset {
    spec: EnvSpec,
    bounds: Bounds,
    target: f32,
    at: Vec<u32>,
}

impl Offset {
    /// Targets at the share `target` of every range.
    fn new(num_envs: usize, ranges: &[(f32, f32)], target: f32) -> Self {
        let (low, high) = ranges.iter().copied().unzip();
        let bounds = Bounds { low, high };
        Self {
            spec: EnvSpec {
                name: "offset".to_owned(),
                observation: vec!["time".to_owned(), "one".to_owned()],
                action_space: ActionSpace::Continuous {
                    names: (0..ranges.len()).map(|at| format!("a{at}")).collect(),
                    bounds: bounds.clone(),
                },
                normalisation: None,
                encoding: stages_env::ActionEncoding::default(),
            },
            bounds,
            target,
            at: vec![0; num_envs],
        }
    }

    fn show(&self, out: StepBuffers<'_>) {
        for (obs, at) in out.obs.chunks_exact_mut(2).zip(&self.at) {
            obs.copy_from_slice(&[*at as f32 / 10.0, 1.0]);
        }
    }
}

impl BatchEnv for Offset {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn num_envs(&self) -> usize {
        self.at.len()
    }
    fn reset(&mut self, out: StepBuffers<'_>) {
        self.at.fill(0);
        self.show(out);
    }
    fn step(&mut self, actions: Actions<'_>, mut out: StepBuffers<'_>) -> Result<(), StageError> {
        let a = self.bounds.low.len();
        let actions = actions.continuous(self.at.len(), a)?;
        out.clear();
        for (i, action) in actions.chunks_exact(a).enumerate() {
            let distance = |at: usize| {
                let (low, high) = (self.bounds.low[at], self.bounds.high[at]);
                (action[at].clamp(low, high) - low) / (high - low) - self.target
            };
            out.reward[i] = -(0..a).map(|at| distance(at).powi(2)).sum::<f32>();
            self.at[i] += 1;
            out.truncated[i] = self.at[i] == 10;
            self.at[i] %= 10;
        }
        self.show(out);
        Ok(())
    }
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// The return of the mean action, which is the same at each step but for the observed time.
fn score(policy: &Policy, ranges: &[(f32, f32)], target: f32) -> f64 {
    let mut env = Offset::new(1, ranges, target);
    let mut step = Step::new(env.spec(), 1);
    env.reset(step.buffers());
    let mut state = policy.start(1);
    let mut sum = 0.0;
    for t in 0..10 {
        let actions = policy.act(&step.obs, &[], &[t == 0], &mut state, Mode::Greedy);
        env.step(actions, step.buffers()).unwrap();
        sum += f64::from(step.reward[0]);
    }
    sum
}

/// Trains for some updates, and returns the score of the policy.
fn trained(
    algorithm: &mut dyn Learning,
    settings: &PpoSettings,
    updates: usize,
    ranges: &[(f32, f32)],
    target: f32,
) -> f64 {
    let seed = settings.common.training.seed;
    let env = Offset::new(settings.common.training.n_envs, ranges, target);
    let spec = env.spec.clone();
    let architecture = settings.common.network.architecture(&spec).unwrap();
    let model = stages_policy::model(&architecture, Precision::F32);
    let mut learner = learner(settings, Box::new(env), model, initial(&architecture, true, seed));
    algorithm.start(&spec, &mut learner.state).unwrap();
    for _ in 0..updates {
        algorithm.update(&mut learner).unwrap();
        learner.state.update += 1;
        learner.state.step += settings.common.rollout();
    }
    let policy = Policy::new("test", &spec, &architecture, None, learner.state.params.clone()).unwrap();
    let score = score(&policy, ranges, target);
    let warning = learner.at_a_bound.warning(&spec.action_space);
    assert!(
        warning.is_none(),
        "{ranges:?}, {target}, seed {seed}: {score}, {warning:?}"
    );
    score
}

/// PPO learns on ranges of any place and size, as it does from -1 to 1, and so does PPO with memory.
#[test]
fn ppo_learns_on_any_range() {
    let config = json!({
        "total_timesteps": 20_480, "n_envs": 4, "n_steps": 64, "batch_size": 64, "n_epochs": 4,
            "learning_rate": 3e-3, "gamma": 0.5,
    });
    let ranges: [(&[(f32, f32)], f32); 9] = [
        (&[(-1.0, 1.0)], 0.4),
        (&[(5.0, 10.0)], 0.4),
        (&[(5.0, 10.0)], 0.85),
        (&[(300.0, 500.0)], 0.4),
        (&[(-10.0, -5.0)], 0.7),
        (&[(-1.0, 9.0)], 0.2),
        (&[(1e-6, 2e-6)], 0.4),
        (&[(-1e6, 3e6)], 0.4),
        (&[(5.0, 10.0), (-1.0, 1.0), (0.0, 1e4), (-3e-3, 1e-3)], 0.6),
    ];
    let mut tried = 0;
    for (ranges, target) in ranges {
        for seed in 1..=3 {
            eprint!("{ranges:?} {target} ");
            let mut settings = serde_json::from_value::<PpoConfig>(config.clone()).unwrap();
            settings.training.seed = seed;
            let settings = settings.settings().unwrap();
            let score = trained(&mut Algorithm::new(&settings), &settings, 80, ranges, target);
            eprintln!("seed {seed}: {score:.5}");
            // A policy that rests at the lower bound has -1.6 at the second range.
            assert!(
                score > -0.02 * ranges.len() as f64,
                "{ranges:?}, {target}, seed {seed}: {score}"
            );
            tried += 1;
        }
    }
    let mut config = config;
    config["policy_kwargs"] = json!({ "lstm_hidden_size": 16 });
    let settings = serde_json::from_value::<RecurrentPpoConfig>(config)
        .unwrap()
        .settings()
        .unwrap();
    let score = trained(&mut Algorithm::new(&settings), &settings, 80, &[(5.0, 10.0)], 0.4);
    assert!(score > -0.02, "{score}");
    eprintln!(
        "ranges of actions: tried {}, told 0, right {}, silent 0",
        tried + 1,
        tried + 1
    );
}

/// A range of -1 to 1 has the network and the actions of a policy without a scale.
#[test]
fn the_unit_range_is_as_it_was() {
    let spec = |ranges: &[(f32, f32)]| Offset::new(1, ranges, 0.5).spec;
    let settings = serde_json::from_value::<PpoConfig>(json!({ "total_timesteps": 1000 })).unwrap();
    let network = settings.settings().unwrap().common.network;
    let json = |ranges: &[(f32, f32)]| {
        let architecture = network.architecture(&spec(ranges)).unwrap();
        serde_json::to_value(architecture).unwrap()
    };
    assert_eq!(json(&[(-1.0, 1.0)]).get("head"), None);
    assert_eq!(json(&[(-1.0, 1.0), (f32::MIN, f32::MAX)]).get("head"), None);
    assert_eq!(json(&[(-1.0, 1.0), (0.0, 1.0)])["head"], "scaled_gaussian");
}
