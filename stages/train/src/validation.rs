//! Validation during training: at intervals, the policy plays the episodes that are held out for it, once
//! greedily and once with drawn actions.

use crate::learner::{Algorithm, Learner};
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::selection::Judged;
use crate::train_state::TrainState;
use crate::validation_config::{ValidationConfig, ValidationMode};
use cache::{Artifact, Store};
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::{ActionBuffer, BatchEnv, Normalisation, OpenOptions, Split, Step};
use stages_numerics::random::Random;
use stages_policy::{ActionHead, Observed, Output, choose};

/// The number of steps between validations where none is configured.
const EVERY: u64 = 20_000;

/// The number of episodes in environments without dates where none is configured.
const EPISODES: usize = 16;

/// The number of steps between validations where none is configured and the environment holds no data out.
const DRAWN_EVERY: u64 = 10_000;

/// The largest share of training's cost that such validations take.
const SHARE: f64 = 0.05;

/// The cost of learning from a sample in forward passes: one forward, and about two in the backward pass.
const LEARNING: f64 = 3.0;

/// The name of the stream of random numbers of drawn actions.
const DRAW: u64 = u64::from_le_bytes(*b"validate");

/// The validation of a training, in environments of its own, so that it changes nothing that training depends
/// on.
pub(crate) struct Validation {
    pub config: ValidationConfig,
    every: u64,
    /// True if validation waits while it has taken more than its share of steps.
    is_limited: bool,
    /// The environments for greedy actions and, where these are measured, too, for drawn ones, with the same
    /// episodes.
    envs: Vec<Box<dyn BatchEnv>>,
    /// The state in which the environments start the first episode.
    first: Vec<u8>,
    seed: u64,
}

/// The outputs for observations as the environment shows them, and the recurrent state after them.
pub(crate) type Forward<'a> = dyn FnMut(&Observed, &mut [f32], &mut Output) -> Result<(), StageError> + 'a;

/// The sums of one episode.
#[derive(Clone, Copy, Default)]
struct Episode {
    rewards: f64,
    length: f64,
    over: bool,
}

impl Validation {
    /// The validation of a training with these settings; `None` where they or the environment have none.
    /// Observations are normalised as in `training`, the environments that are trained on, whose tables are
    /// shared.
    pub(crate) fn open(
        store: &Store,
        env: &Artifact,
        (config, seed): (ValidationConfig, u64),
        normalise_as: Option<&Normalisation>,
        training: &dyn BatchEnv,
    ) -> Result<Option<Self>, StageError> {
        let held_out = stages_env::evaluation_episodes(store, env, Split::Validation)?;
        let is_limited = config.every.is_none() && held_out.is_none();
        let episodes = match (config.every, held_out) {
            (Some(0), _) | (_, Some(0)) => return Ok(None),
            (None, None) if !stages_env::draws_episodes(env)? => return Ok(None),
            (_, None) => config.episodes.unwrap_or(EPISODES),
            (_, Some(held_out)) => config.episodes.map_or(held_out, |most| most.min(held_out)),
        };
        let options = OpenOptions {
            normalise_as: normalise_as.cloned(),
            ..OpenOptions::validation(episodes, seed)
        };
        let sides = match is_limited && config.mode == ValidationMode::Greedy {
            true => 1,
            false => 2,
        };
        let open = |_| match training.beside(&options)? {
            Some(envs) => Ok(envs),
            None => stages_env::open_any(store, env, &options),
        };
        let envs = (0..sides).map(open).collect::<Result<Vec<_>, StageError>>()?;
        Ok(Some(Self {
            config,
            every: config.every.unwrap_or(if is_limited { DRAWN_EVERY } else { EVERY }),
            is_limited,
            first: envs[0].save(),
            envs,
            seed,
        }))
    }

    /// True if the rollout that ended at the state's step reached the next validation, and validation has not
    /// taken more than its share. Cost is counted in forward passes, not measured, so that results do not
    /// depend on the machine.
    pub(crate) fn is_due(&self, state: &TrainState, algorithm: &dyn Algorithm) -> bool {
        let before = state.step.saturating_sub(algorithm.last_rollout(state));
        let samples = algorithm.samples_per_update() / algorithm.common().rollout() as f64;
        self.is_due_since(before, state, samples)
    }

    /// True if training reached the next validation after the step `before`, and validation has not taken
    /// more than its share of a training that learns from each step `samples` times.
    pub(crate) fn is_due_since(&self, before: u64, state: &TrainState, samples: f64) -> bool {
        if state.step / self.every == before / self.every {
            return false;
        }
        let training = state.step as f64 * (1.0 + LEARNING * samples);
        !self.is_limited || state.selection.played as f64 <= SHARE * training
    }

    /// True if the policy with which training ends after these steps is validated; not where, without
    /// settings, it would be the only one.
    pub(crate) fn is_due_at_the_end(&self, step: u64) -> bool {
        !self.is_limited || step >= self.every
    }

    /// True if training ends after `since` validations without improvement.
    pub(crate) fn ends_after(&self, since: u64) -> bool {
        self.config.patience > 0 && since >= self.config.patience
    }

    /// Plays every episode under the learner's policy and under the `others` `[_, P]`, and selects; returns
    /// the metrics of the learner's.
    pub(crate) fn validate(
        &mut self,
        learner: &mut Learner,
        others: &[f32],
    ) -> Result<Vec<Metric>, StageError> {
        learner.timer.start(Phase::Validation);
        learner.load_policy();
        let judged = self.judge(learner, others);
        learner.load_policy();
        learner.timer.stop();
        let (metrics, judged, played) = judged?;
        learner.check_device()?;
        learner.state.select(judged, played);
        Ok(metrics)
    }

    /// The metrics of the learner's policy, every policy with its value, and the number of steps of all.
    fn judge(
        &mut self,
        learner: &mut Learner,
        others: &[f32],
    ) -> Result<(Vec<Metric>, Vec<Judged>, u64), StageError> {
        let len = learner.model.architecture().num_params();
        let (metrics, mut played) = self.play(learner)?;
        let mut judged = vec![Judged {
            value: self.value(&metrics),
            params: learner.state.params[..len].to_vec(),
        }];
        for params in others.chunks_exact(len) {
            learner.model.load(params);
            let (other_metrics, steps) = self.play(learner)?;
            played += steps;
            judged.push(Judged {
                value: self.value(&other_metrics),
                params: params.to_vec(),
            });
        }
        Ok((metrics, judged, played))
    }

    /// The value by which policies are selected, from the metrics.
    pub(crate) fn value(&self, metrics: &[Metric]) -> f64 {
        let by = self.config.selects_by();
        let found = metrics.iter().find(|(name, _)| *name == by);
        found.and_then(|(_, value)| *value).unwrap_or(f64::NAN)
    }

    /// Plays the episodes by the learner's policy.
    fn play(&mut self, learner: &mut Learner) -> Result<(Vec<Metric>, u64), StageError> {
        let architecture = learner.model.architecture().clone();
        let mut obs = Vec::new();
        self.play_by(
            &architecture.head,
            architecture.state_len(),
            &mut |input, state, output| {
                learner.tick(0)?;
                obs.clear();
                obs.extend_from_slice(input.obs);
                learner.state.statistics.normalise(input.obs, &mut obs);
                learner.model.forward(&Observed { obs: &obs, ..*input }, state, output);
                Ok(())
            },
        )
    }

    /// The number of environments that step together in validation.
    pub(crate) fn num_envs(&self) -> usize {
        self.envs.iter().map(|env| env.num_envs()).sum()
    }

    /// Plays the episodes greedily and, where these are measured, too, with drawn actions; each step has one
    /// forward pass for both, of raw observations and recurrent states of `state_len`. Returns the metrics,
    /// and the number of steps.
    pub(crate) fn play_by(
        &mut self,
        head: &ActionHead,
        state_len: usize,
        forward: &mut Forward<'_>,
    ) -> Result<(Vec<Metric>, u64), StageError> {
        let each = self.envs[0].num_envs();
        let (n, spec) = (self.envs.len() * each, self.envs[0].spec());
        let space = spec.action_space.clone();
        let a = head.num_outputs();
        let mut steps: Vec<Step> = self.envs.iter().map(|_| Step::new(spec, each)).collect();
        for (env, step) in self.envs.iter_mut().zip(&mut steps) {
            env.restore(&self.first).map_err(|err| {
                StageError::new(format!("the validation's environments do not start again: {err}"))
            })?;
            env.reset(step.buffers());
        }
        let mut state = vec![0.0; n * state_len];
        let mut start = vec![true; n];
        let every_choice = vec![true; n * a];
        let mut actions: Vec<_> = steps.iter().map(|_| ActionBuffer::new(&space, each)).collect();
        let mut output = Output::default();
        // The same draws in every validation, whose values are then easier to compare.
        let mut random = Random::new(&[self.seed, DRAW]);
        let mut episodes = vec![Episode::default(); n];
        let mut played = 0;
        let takes_candidates = matches!(head, ActionHead::Candidates(_));
        let (mut candidates, mut part) = (CandidateBatch::default(), CandidateBatch::default());
        while episodes.iter().any(|episode| !episode.over) {
            if takes_candidates {
                self.envs[0].observe_candidates(&mut candidates);
                for env in &mut self.envs[1..] {
                    env.observe_candidates(&mut part);
                    candidates.append(&part);
                }
            }
            let obs = steps
                .iter()
                .map(|step| step.obs.as_slice())
                .collect::<Vec<_>>()
                .concat();
            let mask = steps
                .iter()
                .map(|step| step.action_mask.as_slice())
                .collect::<Vec<_>>()
                .concat();
            let input = Observed {
                obs: &obs,
                mask: if mask.is_empty() { &every_choice } else { &mask },
                episode_start: &start,
                candidates: takes_candidates.then_some(&candidates),
            };
            forward(&input, &mut state, &mut output)?;
            let outputs = (&output, input.candidates);
            for (side, actions) in actions.iter_mut().enumerate() {
                let random = (side > 0).then_some(&mut random);
                choose::actions(head, &space, outputs, side * each, random, actions);
            }
            played += n as u64;
            for ((env, step), actions) in self.envs.iter_mut().zip(&mut steps).zip(&actions) {
                env.step(actions.as_actions(), step.buffers())?;
            }
            for (i, episode) in episodes.iter_mut().enumerate() {
                let (step, at) = (&steps[i / each], i % each);
                start[i] = step.terminated[at] || step.truncated[at];
                if !episode.over {
                    episode.rewards += f64::from(step.reward[at]);
                    episode.length += 1.0;
                    episode.over = start[i];
                }
            }
        }
        Ok((metrics(&episodes, each), played))
    }
}

/// The metrics of the first `each` episodes, played greedily, and of the next, with drawn actions.
fn metrics(played: &[Episode], each: usize) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let names = [
        ["validation/return_greedy", "validation/reward_greedy"],
        ["validation/return_drawn", "validation/reward_drawn"],
    ];
    for (episodes, [sum, mean]) in played.chunks_exact(each).zip(names) {
        let rewards: f64 = episodes.iter().map(|episode| episode.rewards).sum();
        let steps: f64 = episodes.iter().map(|episode| episode.length).sum();
        metrics.push((sum, Some(rewards / episodes.len() as f64)));
        metrics.push((mean, Some(rewards / steps)));
    }
    metrics
}
