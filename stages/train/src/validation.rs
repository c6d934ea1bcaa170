//! Validation during training: at intervals, the policy plays the episodes that are held out for it, once
//! greedily and once with drawn actions.

use crate::learner::Learner;
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::selection::Judged;
use crate::settings::Common;
use crate::validation_config::ValidationConfig;
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

/// The name of the stream of random numbers of drawn actions.
const DRAW: u64 = u64::from_le_bytes(*b"validate");

/// The validation of a training, in environments of its own, so that it changes nothing that training depends
/// on.
pub(crate) struct Validation {
    pub config: ValidationConfig,
    every: u64,
    /// The environments for greedy and for drawn actions, with the same episodes.
    envs: [Box<dyn BatchEnv>; 2],
    /// The state in which the environments start the first episode.
    first: Vec<u8>,
    seed: u64,
}

/// The sums of one episode.
#[derive(Clone, Copy, Default)]
struct Episode {
    rewards: f64,
    length: f64,
    over: bool,
}

impl Validation {
    /// The validation of a training with these settings; `None` where they or the environment have none.
    /// Observations are normalised as in training.
    pub(crate) fn open(
        store: &Store,
        env: &Artifact,
        common: &Common,
        normalise_as: Option<&Normalisation>,
    ) -> Result<Option<Self>, StageError> {
        let config = common.training.validation;
        let episodes = match (
            config.every,
            stages_env::evaluation_episodes(store, env, Split::Validation)?,
        ) {
            (Some(0), _) | (_, Some(0)) | (None, None) => return Ok(None),
            (Some(_), None) => config.episodes.unwrap_or(EPISODES),
            (_, Some(held_out)) => config.episodes.map_or(held_out, |most| most.min(held_out)),
        };
        let options = OpenOptions {
            normalise_as: normalise_as.cloned(),
            ..OpenOptions::validation(episodes, common.training.seed)
        };
        let envs = [
            stages_env::open_any(store, env, &options)?,
            stages_env::open_any(store, env, &options)?,
        ];
        Ok(Some(Self {
            config,
            every: config.every.unwrap_or(EVERY),
            first: envs[0].save(),
            envs,
            seed: common.training.seed,
        }))
    }

    /// True if the rollout that ended at `step` reached the next validation.
    pub(crate) fn is_due(&self, step: u64, rollout: u64) -> bool {
        step / self.every > step.saturating_sub(rollout) / self.every
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
        let (metrics, judged) = judged?;
        learner.check_device()?;
        learner.state.select(judged);
        Ok(metrics)
    }

    /// The metrics of the learner's policy, and every policy with its value.
    fn judge(
        &mut self,
        learner: &mut Learner,
        others: &[f32],
    ) -> Result<(Vec<Metric>, Vec<Judged>), StageError> {
        let len = learner.model.architecture().num_params();
        let metrics = metrics(&self.play(learner)?);
        let mut judged = vec![Judged {
            value: self.value(&metrics),
            params: learner.state.params[..len].to_vec(),
        }];
        for params in others.chunks_exact(len) {
            learner.model.load(params);
            let other_metrics = self::metrics(&self.play(learner)?);
            judged.push(Judged {
                value: self.value(&other_metrics),
                params: params.to_vec(),
            });
        }
        Ok((metrics, judged))
    }

    /// The value by which policies are selected, from the metrics.
    fn value(&self, metrics: &[Metric]) -> f64 {
        let by = self.config.selects_by();
        let found = metrics.iter().find(|(name, _)| *name == by);
        found.and_then(|(_, value)| *value).unwrap_or(f64::NAN)
    }

    /// Plays the episodes greedily and with drawn actions, and returns them in this order; each step has one
    /// forward pass for both.
    fn play(&mut self, learner: &mut Learner) -> Result<Vec<Episode>, StageError> {
        let each = self.envs[0].num_envs();
        let (n, spec) = (2 * each, self.envs[0].spec());
        let space = spec.action_space.clone();
        let head = learner.model.architecture().head.clone();
        let a = head.num_outputs();
        let mut obs = vec![0.0; n * spec.obs_dim()];
        let mut steps = [Step::new(spec, each), Step::new(spec, each)];
        for (env, step) in self.envs.iter_mut().zip(&mut steps) {
            env.restore(&self.first).map_err(|err| {
                StageError::new(format!("the validation's environments do not start again: {err}"))
            })?;
            env.reset(step.buffers());
        }
        let mut state = vec![0.0; n * learner.model.architecture().state_len()];
        let mut start = vec![true; n];
        let every_choice = vec![true; n * a];
        let mut actions = [ActionBuffer::new(&space, each), ActionBuffer::new(&space, each)];
        let mut output = Output::default();
        // The same draws in every validation, whose values are then easier to compare.
        let mut random = Random::new(&[self.seed, DRAW]);
        let mut episodes = vec![Episode::default(); n];
        let takes_candidates = matches!(head, ActionHead::Candidates(_));
        let (mut candidates, mut part) = (CandidateBatch::default(), CandidateBatch::default());
        while episodes.iter().any(|episode| !episode.over) {
            learner.tick(0)?;
            if takes_candidates {
                self.envs[0].observe_candidates(&mut candidates);
                self.envs[1].observe_candidates(&mut part);
                candidates.append(&part);
            }
            let raw = steps.each_ref().map(|step| step.obs.as_slice()).concat();
            obs.copy_from_slice(&raw);
            learner.state.statistics.normalise(&raw, &mut obs);
            let mask = steps.each_ref().map(|step| step.action_mask.as_slice()).concat();
            let input = Observed {
                obs: &obs,
                mask: if mask.is_empty() { &every_choice } else { &mask },
                episode_start: &start,
                candidates: takes_candidates.then_some(&candidates),
            };
            learner.model.forward(&input, &mut state, &mut output);
            let outputs = (&output, input.candidates);
            let [greedy, drawn] = &mut actions;
            choose::actions(&head, &space, outputs, 0, None, greedy);
            choose::actions(&head, &space, outputs, each, Some(&mut random), drawn);
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
        Ok(episodes)
    }
}

/// The metrics of the first half of the episodes, played greedily, and of the other half, with drawn actions.
fn metrics(played: &[Episode]) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let names = [
        ["validation/return_greedy", "validation/reward_greedy"],
        ["validation/return_drawn", "validation/reward_drawn"],
    ];
    for (episodes, [sum, mean]) in played.chunks_exact(played.len() / 2).zip(names) {
        let rewards: f64 = episodes.iter().map(|episode| episode.rewards).sum();
        let steps: f64 = episodes.iter().map(|episode| episode.length).sum();
        metrics.push((sum, Some(rewards / episodes.len() as f64)));
        metrics.push((mean, Some(rewards / steps)));
    }
    metrics
}
