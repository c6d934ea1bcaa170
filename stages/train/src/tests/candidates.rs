//! Learning from symbolic states, whose candidate actions differ in number, with and without memory.

use super::*;
use crate::ppo::burn_in::BurnIn;
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::{ActionSpace, Actions, EnvSpec, StepBuffers};
use stages_numerics::random::Random;
use stages_policy::{Mode, Observed, Output, Policy, Precision, initial};

/// Tokens 1 to 6 can be wanted; 7 marks a state that says nothing.
const WANTED: u64 = 6;
const NOTHING: u32 = 7;

/// Episodes of two steps. The first state shows the wanted token, and has one candidate. The second has 2 to
/// 5 candidates, one of which is the wanted token, for a reward of 1; it shows the token again, or nothing.
struct Matching {
    spec: EnvSpec,
    random: Random,
    shows_again: bool,
    is_second: bool,
    wanted: Vec<u32>,
    candidates: Vec<Vec<u32>>,
}

impl Matching {
    fn new(num_envs: usize, shows_again: bool) -> Self {
        let mut env = Self {
            spec: EnvSpec {
                name: "matching".to_owned(),
                observation: Vec::new(),
                action_space: ActionSpace::Candidates {
                    names: (0..=NOTHING).map(|token| format!("t{token}")).collect(),
                    width: 1,
                },
                normalisation: None,
                encoding: stages_env::ActionEncoding::default(),
            },
            random: Random::new(&[3]),
            shows_again,
            is_second: false,
            wanted: vec![0; num_envs],
            candidates: vec![Vec::new(); num_envs],
        };
        env.start();
        env
    }

    fn start(&mut self) {
        self.is_second = false;
        for (wanted, candidates) in self.wanted.iter_mut().zip(&mut self.candidates) {
            *wanted = 1 + self.random.below(WANTED) as u32;
            *candidates = vec![NOTHING];
        }
    }
}

impl BatchEnv for Matching {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn num_envs(&self) -> usize {
        self.wanted.len()
    }
    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
    }
    fn step(&mut self, actions: Actions<'_>, mut out: StepBuffers<'_>) -> Result<(), StageError> {
        let actions = actions.discrete(self.wanted.len())?;
        out.clear();
        if self.is_second {
            for (i, &action) in actions.iter().enumerate() {
                out.reward[i] = f32::from(u8::from(self.candidates[i][action as usize] == self.wanted[i]));
                out.terminated[i] = true;
            }
            self.start();
            return Ok(());
        }
        self.is_second = true;
        for (wanted, candidates) in self.wanted.iter().zip(&mut self.candidates) {
            let mut others: Vec<u32> = (1..=WANTED as u32).filter(|token| token != wanted).collect();
            self.random.shuffle(&mut others);
            others.truncate(1 + self.random.below(4) as usize);
            others.push(*wanted);
            self.random.shuffle(&mut others);
            *candidates = others;
        }
        Ok(())
    }
    fn observe_candidates(&mut self, batch: &mut CandidateBatch) {
        batch.clear(1);
        for (&wanted, candidates) in self.wanted.iter().zip(&self.candidates) {
            batch.state_rows.push(match self.is_second && !self.shows_again {
                true => NOTHING,
                false => wanted,
            });
            batch.state_starts.push(batch.state_rows.len() as u32);
            for &candidate in candidates {
                batch.candidate_rows.push(candidate);
                batch.candidate_starts.push(batch.candidate_rows.len() as u32);
            }
            batch.env_candidates.push(batch.candidate_rows.len() as u32);
        }
    }
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// The mean reward of a policy's likeliest actions over 400 episodes.
fn reward(policy: &Policy, shows_again: bool) -> f64 {
    let mut env = Matching::new(20, shows_again);
    let mut step = Step::new(env.spec(), 20);
    let mut state = policy.start(20);
    let mut symbols = CandidateBatch::default();
    let mut sum = 0.0;
    for t in 0..40 {
        env.observe_candidates(&mut symbols);
        let actions = policy.act_on_candidates(&symbols, &[t % 2 == 0; 20], &mut state, Mode::Greedy);
        env.step(actions, step.buffers()).unwrap();
        sum += step.reward.iter().map(|&x| f64::from(x)).sum::<f64>();
    }
    sum / 400.0
}

fn train(settings: &PpoSettings, shows_again: bool, updates: usize) -> Policy {
    let env = Matching::new(settings.common.training.n_envs, shows_again);
    let spec = env.spec.clone();
    let architecture = settings.common.network.architecture(&spec).unwrap();
    let model = stages_policy::model(&architecture, Precision::F32);
    let mut learner = learner(settings, Box::new(env), model, initial(&architecture, true, 4));
    let mut algorithm = Algorithm::new(settings);
    for _ in 0..updates {
        crate::learner::Algorithm::update(&mut algorithm, &mut learner).unwrap();
        learner.state.update += 1;
    }
    Policy::new("test", &spec, &architecture, None, learner.state.params.clone()).unwrap()
}

#[test]
fn candidates_are_learned_by_each_embedding() {
    for atoms in ["learned", "linear", "transe"] {
        let settings = serde_json::from_value::<PpoConfig>(json!({
            "total_timesteps": 65_536, "n_envs": 16, "n_steps": 32, "batch_size": 128, "n_epochs": 4,
                "learning_rate": 3e-3,
            "policy_kwargs": { "net_arch": { "pi": [16], "vf": [16] }, "symbols": { "embedding_dim": 16,
                "atoms": atoms } },
        }))
        .unwrap()
        .settings()
        .unwrap();
        let policy = train(&settings, true, 40);
        let learned = reward(&policy, true);
        assert!(learned > 0.97, "{atoms}: {learned}");
        let bytes = policy.save().unwrap();
        assert_eq!(reward(&Policy::load(&bytes).unwrap(), true), learned);
        // What it needs is not there: chance is the mean of 1/2 to 1/5.
        let blind = reward(&policy, false);
        assert!(blind < 0.6, "{atoms}: {blind}");
    }
}

/// Burn-in ends in the state that the same steps give one environment at a time, with other parameters than
/// those of acting.
#[test]
fn burn_in_reads_symbols() {
    let settings = serde_json::from_value::<RecurrentPpoConfig>(json!({
        "total_timesteps": 4096, "n_envs": 4, "n_steps": 16, "batch_size": 32, "sequence_length": 4,
            "burn_in": 3,
        "policy_kwargs": {
            "net_arch": { "pi": [8], "vf": [8] }, "lstm_hidden_size": 8, "symbols": { "embedding_dim": 8 },
        },
    }))
    .unwrap()
    .settings()
    .unwrap();
    let env = Matching::new(4, false);
    let architecture = settings.common.network.architecture(&env.spec).unwrap();
    let mut params = initial(&architecture, true, 4);
    let model = stages_policy::model(&architecture, Precision::F32);
    let mut learner = learner(&settings, Box::new(env), model, params.clone());
    let mut ppo = Algorithm::new(&settings);
    ppo.collect(&mut learner).unwrap();
    params.iter_mut().for_each(|x| *x *= 1.1);
    learner.model.load(&params);
    let rollout = ppo.rollout.minibatch(crate::learner::Algorithm::common(&ppo));
    let indices: Vec<u32> = rollout.sequences().collect();
    let minibatch = Minibatch {
        indices: &indices,
        ..rollout
    };
    let mut burn = BurnIn::new(&ppo.rollout).unwrap();
    let states = burn.run(&minibatch, &mut *learner.model).to_vec();
    let s = architecture.state_len();
    let mut moved = 0;
    for (row, &first) in indices.iter().enumerate() {
        let (step, env) = (first as usize / 4, first as usize % 4);
        let kept = &rollout.state[row * s..(row + 1) * s];
        let mut state = kept.to_vec();
        for t in step.saturating_sub(3)..step {
            let mut symbols = CandidateBatch::default();
            symbols.clear(1);
            symbols.push(&rollout.candidates[t], env);
            let input = Observed {
                obs: &[],
                mask: &[],
                episode_start: &rollout.episode_start[t * 4 + env..][..1],
                candidates: Some(&symbols),
            };
            learner.model.forward(&input, &mut state, &mut Output::default());
        }
        let found = &states[row * s..(row + 1) * s];
        for (x, y) in found.iter().zip(&state) {
            assert!((x - y).abs() < 1e-6, "sequence {row}: {x} {y}");
        }
        moved += usize::from(found != kept);
    }
    assert_eq!(moved, 12);
}

#[test]
fn settings_that_have_no_meaning_are_refused() {
    let settings =
        |text: serde_json::Value| serde_json::from_value::<PpoConfig>(text).unwrap().settings().unwrap();
    let normalised = settings(json!({ "total_timesteps": 4096, "normalize_obs": true }));
    let err = Algorithm::new(&normalised).statistics(0, None).unwrap_err();
    assert!(
        err.message.contains("symbolic states have no numbers"),
        "{}",
        err.message
    );
    let embedded = settings(json!({
        "total_timesteps": 4096, "policy_kwargs": { "symbols": { "embedding_dim": 32 } },
    }));
    let numbers = EnvSpec {
        name: "numbers".to_owned(),
        observation: vec!["x".to_owned()],
        action_space: ActionSpace::discrete(["a", "b"]),
        normalisation: None,
        encoding: stages_env::ActionEncoding::default(),
    };
    let err = embedded.common.network.architecture(&numbers).unwrap_err();
    assert!(err.message.contains("`policy_kwargs.symbols`"), "{}", err.message);
}

#[test]
fn a_memory_keeps_what_a_state_showed() {
    let settings = serde_json::from_value::<RecurrentPpoConfig>(json!({
        "total_timesteps": 65_536, "n_envs": 32, "n_steps": 16, "batch_size": 128, "n_epochs": 4,
            "learning_rate": 3e-3,
        "policy_kwargs": {
            "net_arch": { "pi": [16], "vf": [16] }, "lstm_hidden_size": 16,
                "symbols": { "embedding_dim": 16 },
        },
    }))
    .unwrap()
    .settings()
    .unwrap();
    let policy = train(&settings, false, 80);
    let learned = reward(&policy, false);
    assert!(learned > 0.95, "{learned}");
}
