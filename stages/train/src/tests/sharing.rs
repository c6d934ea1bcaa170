//! A network that symbols share.

use super::*;
use crate::learner::Algorithm as Learning;
use crate::sharing::Sharing;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, Bounds, EnvSpec, StepBuffers};
use stages_numerics::random::Random;
use stages_policy::{Architecture, Mode, Policy, Precision, initial};

const SYMBOLS: [&str; 3] = ["A", "B", "B.B"];

/// Two observations of each symbol, in the order of `env/stocks`, between two that belong to none.
const OBSERVATION: [&str; 8] = ["market.v", "A.x", "B.x", "B.B.x", "A.w", "B.w", "B.B.w", "account.c"];

fn spec() -> EnvSpec {
    EnvSpec {
        name: "symbols".to_owned(),
        observation: OBSERVATION.map(str::to_owned).to_vec(),
        action_space: ActionSpace::Continuous {
            names: SYMBOLS.map(str::to_owned).to_vec(),
            bounds: Bounds {
                low: vec![-1.0; 3],
                high: vec![1.0; 3],
            },
        },
        normalisation: None,
        encoding: stages_env::ActionEncoding::default(),
    }
}

/// Random observations; each symbol's best action is half of what its `x` exceeds the mean of all by.
struct Relative {
    spec: EnvSpec,
    random: Random,
    seen: Vec<f32>,
}

impl BatchEnv for Relative {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn num_envs(&self) -> usize {
        self.seen.len() / OBSERVATION.len()
    }
    fn reset(&mut self, out: StepBuffers<'_>) {
        self.seen.fill_with(|| self.random.normal() as f32);
        out.obs.copy_from_slice(&self.seen);
    }
    fn step(&mut self, actions: Actions<'_>, mut out: StepBuffers<'_>) -> Result<(), StageError> {
        out.clear();
        let actions = actions.continuous(self.num_envs(), 3)?;
        let rows = self.seen.chunks_exact(OBSERVATION.len()).zip(actions.chunks_exact(3));
        for ((seen, action), reward) in rows.zip(&mut *out.reward) {
            let mean = seen[1..4].iter().sum::<f32>() / 3.0;
            let error = |i: usize| (action[i] - 0.5 * (seen[1 + i] - mean)).powi(2);
            *reward = -(0..3).map(error).sum::<f32>();
        }
        out.truncated.fill(true);
        self.reset(out);
        Ok(())
    }
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn settings(shared: bool) -> PpoSettings {
    let mut config = json!({
        "total_timesteps": 40_960, "n_envs": 16, "n_steps": 32, "batch_size": 128, "n_epochs": 4,
        "learning_rate": 3e-3, "gamma": 0.0, "policy_kwargs": { "net_arch": { "pi": [4, 3], "vf": [8] } },
    });
    if shared {
        config["policy_kwargs"]["shared_across"] = json!("symbols");
    }
    serde_json::from_value::<PpoConfig>(config).unwrap().settings().unwrap()
}

/// The parameters after some updates, and the mean reward of the last one.
fn trained(settings: &PpoSettings, updates: usize) -> (Architecture, Vec<f32>, f32) {
    let env = Relative {
        spec: spec(),
        random: Random::new(&[7]),
        seen: vec![0.0; 16 * OBSERVATION.len()],
    };
    let network = &settings.common.network;
    let architecture = network.architecture(&spec()).unwrap();
    let mut params = initial(&architecture, true, 5);
    let sharing = network.sharing(&spec()).unwrap();
    if let Some(sharing) = &sharing {
        sharing.initialise(&mut params, true, 5);
    }
    let model = stages_policy::model(&architecture, Precision::F32);
    let mut learner = learner(settings, Box::new(env), model, params);
    learner.sharing = sharing;
    let mut algorithm = Algorithm::new(settings);
    for _ in 0..updates {
        algorithm.update(&mut learner).unwrap();
        learner.state.update += 1;
        learner.state.step += settings.common.rollout();
    }
    let reward = algorithm.reward.iter().sum::<f32>() / algorithm.reward.len() as f32;
    (architecture, learner.state.params, reward)
}

/// A greedy action.
fn act(policy: &Policy, obs: &[f32]) -> Vec<f32> {
    let mut state = policy.start(1);
    match policy.act(obs, &[], &[true], &mut state, Mode::Greedy) {
        Actions::Continuous(action) => action.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// After training, parameters are tied to the last bit, symbols in another order have the actions in that
/// order, and actions depend on the other symbols. Without sharing nothing of this holds.
#[test]
fn a_trained_network_treats_symbols_alike() {
    let obs = [0.3, 0.9, -0.4, 0.2, 0.1, 0.5, -0.6, 0.7];
    let permuted = [0.3, 0.2, 0.9, -0.4, -0.6, 0.1, 0.5, 0.7];
    let sharing = settings(true).common.network.sharing(&spec()).unwrap().unwrap();
    let mut gaps = Vec::new();
    for shared in [true, false] {
        let settings = settings(shared);
        let (architecture, params, reward) = trained(&settings, 80);
        let policy = Policy::new("test", &spec(), &architecture, None, params.clone()).unwrap();
        let (a, b) = (act(&policy, &obs), act(&policy, &permuted));
        gaps.push([(a[0], b[1]), (a[1], b[2]), (a[2], b[0])].map(|(a, b)| (a - b).abs()));
        if shared {
            assert!(sharing.fits(&params));
            // Noise of its own deviation is part of it: an untrained policy has about -3.
            assert!(reward > -0.7, "{reward}");
            let other = act(&policy, &[0.3, 0.9, 1.6, 0.2, 0.1, 0.5, -0.6, 0.7]);
            assert!(a[0] - other[0] > 0.1, "{a:?} {other:?}");
        }
    }
    assert!(gaps[0].iter().all(|gap| *gap < 1e-5), "{gaps:?}");
    assert!(gaps[1].iter().any(|gap| *gap > 1e-3), "{gaps:?}");
    let (_, mut params, _) = trained(&settings(true), 1);
    params[1] += 0.1;
    assert!(!sharing.fits(&params));
}

/// The sum of the actions' means, each times a number of its own, by definition.
fn value(architecture: &Architecture, params: &[f64], obs: &[f64]) -> f64 {
    let mut units = obs.to_vec();
    let tensors = architecture.tensors();
    let actor: Vec<_> = tensors
        .iter()
        .filter(|tensor| tensor.name.starts_with("pi.") || tensor.name.starts_with("action."))
        .collect();
    for layer in actor.chunks_exact(2) {
        let outputs = layer[1].len();
        let weight = |i: usize, o: usize| params[layer[0].offset + i * outputs + o];
        let sum = |o: usize| units.iter().enumerate().map(|(i, x)| x * weight(i, o)).sum::<f64>();
        let next = (0..outputs).map(|o| sum(o) + params[layer[1].offset + o]);
        units = match layer[0].name.as_str() {
            "action.weight" => next.collect(),
            _ => next.map(f64::tanh).collect(),
        };
    }
    units.iter().zip([1.0, -0.7, 0.4]).map(|(x, by)| x * by).sum()
}

/// The tied gradient is the derivative with respect to the parameters of the small network, which move all
/// parameters of their group, divided by the root of the group's size: by finite differences. Its norm is
/// that of the small network's gradient.
#[test]
fn the_gradient_is_the_small_networks() {
    let network = settings(true).common.network;
    let (architecture, params, _) = trained(&settings(true), 2);
    let mut sharing = Sharing::new(&network, &spec()).unwrap();
    let params: Vec<f64> = params.into_iter().map(f64::from).collect();
    let obs = [0.3, 0.9, -0.4, 0.2, 0.1, 0.5, -0.6, 0.7];
    let derivative = |group: &[usize]| {
        let at = |by: f64| {
            let mut moved = params.clone();
            group.iter().for_each(|p| moved[*p] += by);
            value(&architecture, &moved, &obs)
        };
        (at(1e-5) - at(-1e-5)) / 2e-5
    };
    let mut tied: Vec<f32> = (0..params.len()).map(|p| derivative(&[p]) as f32).collect();
    let untied = tied.clone();
    sharing.tie(&mut tied);
    let (mut squares, mut tried) = (0.0, Vec::new());
    for group in sharing.groups() {
        let wanted = derivative(&group);
        let by = (group.len() as f64).sqrt();
        for &p in &group {
            let off = (f64::from(tied[p]) * by - wanted).abs();
            assert!(off < 1e-4 * wanted.abs().max(0.1), "{group:?}: {} {wanted}", tied[p]);
        }
        squares += wanted * wanted;
        tried.extend(group);
    }
    let norm = tied.iter().map(|x| f64::from(x * x)).sum::<f64>();
    assert!((norm - squares).abs() < 1e-4 * squares, "{norm} {squares}");
    assert_ne!(tied, untied);
    // All of the actor: 5 inputs and biases to 4, 4 to 3 and 3 to 1 of three symbols, and deviations.
    let actor = (8 * 12 + 12) + (12 * 9 + 9) + (9 * 3 + 3) + 3;
    assert_eq!(tried.len(), actor);
}

#[test]
fn environments_without_symbols_are_refused() {
    let network = settings(true).common.network;
    let refused = |change: &dyn Fn(&mut EnvSpec)| {
        let mut spec = spec();
        change(&mut spec);
        network.sharing(&spec).map(|_| ()).unwrap_err().to_string()
    };
    let message = refused(&|spec| spec.observation[6] = "B.B.v".to_owned());
    assert!(
        message.contains("`B.B` of `symbols` has other observations than `A`"),
        "{message}"
    );
    let message = refused(&|spec| spec.action_space = ActionSpace::discrete(["a", "b"]));
    assert!(
        message.contains("not one of the same kind for each symbol"),
        "{message}"
    );
}
