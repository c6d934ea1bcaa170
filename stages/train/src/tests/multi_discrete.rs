//! Multi-discrete actions, masked, from environment to policy.

use super::*;
use crate::imitate::algorithm::Imitation;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, EnvSpec, StepBuffers};
use stages_numerics::random::Random;
use stages_policy::{AnyPolicy, Mode, Policy, Precision, initial};

/// Episodes of one step each. The observation names a wanted choice of each component; the reward is the
/// number of components that choose it. The last choice of the second component is masked, and never wanted.
struct Targets {
    spec: EnvSpec,
    random: Random,
    wanted: Vec<[u32; 2]>,
}

const CHOICES: [u32; 2] = [3, 4];

impl Targets {
    fn new(num_envs: usize) -> Self {
        Self {
            spec: EnvSpec {
                name: "targets".to_owned(),
                observation: (0..6).map(|i| format!("wanted[{i}]")).collect(),
                action_space: ActionSpace::MultiDiscrete {
                    names: vec!["first".to_owned(), "second".to_owned()],
                    choices: CHOICES.to_vec(),
                    masked: true,
                },
                normalisation: None,
                encoding: stages_env::ActionEncoding::default(),
            },
            random: Random::new(&[3]),
            wanted: vec![[0; 2]; num_envs],
        }
    }

    fn show(&mut self, out: StepBuffers<'_>) {
        out.obs.fill(0.0);
        for ((wanted, obs), mask) in self
            .wanted
            .iter_mut()
            .zip(out.obs.chunks_exact_mut(6))
            .zip(out.action_mask.chunks_exact_mut(7))
        {
            *wanted = [self.random.below(3) as u32, self.random.below(3) as u32];
            obs[wanted[0] as usize] = 1.0;
            obs[3 + wanted[1] as usize] = 1.0;
            mask.copy_from_slice(&[true, true, true, true, true, true, false]);
        }
    }
}

impl BatchEnv for Targets {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn num_envs(&self) -> usize {
        self.wanted.len()
    }
    fn reset(&mut self, out: StepBuffers<'_>) {
        self.show(out);
    }
    fn step(&mut self, actions: Actions<'_>, mut out: StepBuffers<'_>) -> Result<(), StageError> {
        let actions = actions.multi_discrete(self.wanted.len(), 2)?;
        out.clear();
        for (i, (action, wanted)) in actions.chunks_exact(2).zip(&self.wanted).enumerate() {
            assert!(
                action[0] < CHOICES[0] && action[1] < CHOICES[1] - 1,
                "a masked choice: {action:?}"
            );
            out.reward[i] = action.iter().zip(wanted).filter(|(x, y)| x == y).count() as f32;
            out.terminated[i] = true;
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

/// The mean reward of a policy's likeliest actions over 300 episodes.
fn reward(policy: &Policy) -> f64 {
    let mut env = Targets::new(10);
    let mut step = Step::new(env.spec(), 10);
    env.reset(step.buffers());
    let mut state = policy.start(10);
    let mut sum = 0.0;
    for _ in 0..30 {
        let actions = policy.act(&step.obs, &step.action_mask, &[true; 10], &mut state, Mode::Greedy);
        env.step(actions, step.buffers()).unwrap();
        sum += step.reward.iter().map(|&x| f64::from(x)).sum::<f64>();
    }
    sum / 300.0
}

/// Trains for some updates; returns the policy, and the mean of a metric over the first and over the last
/// update.
fn train(
    algorithm: &mut dyn crate::learner::Algorithm,
    settings: &PpoSettings,
    updates: usize,
    metric: &str,
) -> (Policy, f64, f64) {
    let env = Targets::new(settings.common.training.n_envs);
    let spec = env.spec.clone();
    let architecture = settings.common.network.architecture(&spec).unwrap();
    let model = stages_policy::model(&architecture, Precision::F32);
    let mut learner = learner(settings, Box::new(env), model, initial(&architecture, true, 4));
    algorithm.start(&spec, &mut learner.state).unwrap();
    let mut curve = Vec::new();
    for _ in 0..updates {
        let metrics = algorithm.update(&mut learner).unwrap();
        curve.push(metrics.iter().find(|(name, _)| *name == metric).unwrap().1.unwrap());
        learner.state.update += 1;
    }
    let policy = Policy::new("test", &spec, &architecture, None, learner.state.params.clone()).unwrap();
    (policy, curve[0], curve[updates - 1])
}

#[test]
fn every_component_is_learned_by_ppo_and_imitated() {
    let settings = serde_json::from_value::<PpoConfig>(json!({
        "total_timesteps": 65_536, "n_envs": 8, "n_steps": 64, "batch_size": 128, "n_epochs": 6,
            "learning_rate": 3e-3,
        "policy_kwargs": { "net_arch": { "pi": [16], "vf": [16] } },
    }))
    .unwrap()
    .settings()
    .unwrap();
    let mut ppo = Algorithm::new(&settings);
    // Two components of three allowed choices each, all equally likely at first.
    let (teacher, entropy, last) = train(&mut ppo, &settings, 40, "losses/entropy");
    assert!(
        (entropy - 2.0 * libm::log(3.0)).abs() < 0.05 && last < 0.5,
        "{entropy} {last}"
    );
    assert_eq!(ppo.actions.len(), 2 * 8 * 64);
    let learned = reward(&teacher);
    assert!(learned > 1.95, "{learned}");

    let bytes = teacher.save().unwrap();
    assert_eq!(reward(&Policy::load(&bytes).unwrap()), learned);

    let imitation = crate::imitate::settings::ImitationSettings {
        common: settings.common.clone(),
        teacher_share: serde_json::from_value(json!(0.5)).unwrap(),
        vf_coef: 0.5,
    };
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut imitation = Imitation::new(&imitation, &AnyPolicy::Native(teacher), &store).unwrap();
    let (student, first, last) = train(&mut imitation, &settings, 20, "losses/kl");
    assert!(last < 0.1 * first, "{first} {last}");
    assert!(reward(&student) > 1.9);
}
