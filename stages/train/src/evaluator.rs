//! The evaluation of populations: each policy plays several episodes, greedily and from the same starts;
//! their transitions may be kept.

use crate::progress::Progress;
use crate::train_state::TrainState;
use stages_core::StageError;
use stages_env::{ActionBuffer, ActionSpace, BatchEnv, EnvSpec, Normalisation, Step};
use stages_numerics::dispatch::InstructionSet;
use stages_policy::kernels::elementwise;
use stages_policy::population::MemberNetwork;
use stages_policy::{ActionHead, Architecture, categorical};
use std::sync::Mutex;

/// Opens another batch of the training's environments, one for each episode of a member.
pub(crate) type Opener<'a> = dyn Fn() -> Result<Box<dyn BatchEnv>, StageError> + Sync + 'a;

/// The conditions of an evaluation, the same for all members.
pub(crate) struct Conditions<'a> {
    /// The environments' saved state, from which all members start.
    pub starts: &'a [u8],
    /// The largest number of steps of an episode.
    pub episode_length: u64,
    pub normalisation: Option<&'a Normalisation>,
    pub progress: Option<&'a Progress<'a>>,
}

impl<'a> Conditions<'a> {
    /// The conditions of an evaluation in a training whose train state is `state`.
    pub(crate) fn new(
        starts: &'a [u8],
        episode_length: u64,
        state: &'a TrainState,
        progress: Option<&'a Progress<'a>>,
    ) -> Self {
        Self {
            starts,
            episode_length,
            normalisation: state.statistics.normalisation.as_ref(),
            progress,
        }
    }

    /// Fails when training is cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), StageError> {
        self.progress.map_or(Ok(()), Progress::check_cancelled)
    }
}

/// The return and the length of each episode of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Played {
    pub returns: Vec<f64>,
    pub lengths: Vec<f64>,
}

impl Played {
    /// The fitness of the policy: its mean return.
    pub(crate) fn mean(&self) -> f64 {
        self.returns.iter().sum::<f64>() / self.returns.len() as f64
    }

    /// The number of environment steps of all episodes.
    pub(crate) fn steps(&self) -> f64 {
        self.lengths.iter().sum()
    }
}

/// The steps of an episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Episode {
    /// The observations before each action `[T, D]`, and the last one `[D]`.
    pub obs: Vec<f32>,
    pub last_obs: Vec<f32>,
    /// The actions as networks read them `[T, A]`.
    pub action: Vec<f32>,
    /// The rewards `[T]`.
    pub reward: Vec<f32>,
    pub terminated: bool,
}

/// The record that is kept of episodes besides their returns.
pub(crate) enum Record<'a> {
    Nothing,
    /// The observations of the episodes in turn, not normalised.
    Observations(&'a mut Vec<f32>),
    /// All steps of each episode, where actions are continuous.
    Episodes(&'a mut Vec<Episode>),
}

/// A policy that plays several episodes at once.
pub(crate) trait Actor {
    /// Chooses actions in the live episodes, from their observations `[rows, D]`.
    fn act(&mut self, obs: &[f32], live: &[usize], mask: &[bool], actions: &mut ActionBuffer);

    /// Drops the episode of a row: the rows after it move up by one.
    fn end(&mut self, row: usize);

    /// The last actions `[rows, A]` as networks read them.
    fn taken(&self) -> &[f32] {
        &[]
    }
}

/// The buffers of some episodes.
pub(crate) struct EpisodeLoop {
    step: Step,
    obs: Vec<f32>,
    actions: ActionBuffer,
    /// The episodes that have not ended; row r of the actor is episode `live[r]`.
    live: Vec<usize>,
}

impl EpisodeLoop {
    pub(crate) fn new(spec: &EnvSpec, episodes: usize) -> Self {
        Self {
            step: Step::new(spec, episodes),
            obs: Vec::new(),
            actions: ActionBuffer::new(&spec.action_space, episodes),
            live: Vec::new(),
        }
    }

    /// Leaves the episodes that have begun, and begins the next ones. A reset alone does not leave an episode
    /// of which no step was taken.
    pub(crate) fn skip(&mut self, env: &mut dyn BatchEnv) -> Result<(), StageError> {
        let actions = ActionBuffer::new(&env.spec().action_space, env.num_envs());
        env.step(actions.as_actions(), self.step.buffers())?;
        env.reset(self.step.buffers());
        Ok(())
    }

    /// Plays every episode to its end, or to the limit of its length.
    pub(crate) fn play(
        &mut self,
        env: &mut dyn BatchEnv,
        actor: &mut impl Actor,
        conditions: &Conditions,
        mut record: Record,
    ) -> Result<Played, StageError> {
        let (episodes, d) = (env.num_envs(), env.spec().obs_dim());
        env.restore(conditions.starts)
            .map_err(|err| StageError::new(format!("the environments do not start again: {err}")))?;
        env.reset(self.step.buffers());
        self.live.clear();
        self.live.extend(0..episodes);
        if let Record::Episodes(all) = &mut record {
            all.clear();
            all.resize(episodes, Episode::default());
        }
        let mut played = Played {
            returns: vec![0.0; episodes],
            lengths: vec![0.0; episodes],
        };
        for t in 1..=conditions.episode_length {
            if t.is_multiple_of(1024) {
                conditions.check_cancelled()?;
            }
            for &e in &self.live {
                let obs = &self.step.obs[e * d..(e + 1) * d];
                match &mut record {
                    Record::Nothing => {}
                    Record::Observations(seen) => seen.extend_from_slice(obs),
                    Record::Episodes(all) => all[e].obs.extend_from_slice(obs),
                }
            }
            let obs = observed(
                &self.step.obs,
                &self.live,
                d,
                episodes,
                conditions.normalisation,
                &mut self.obs,
            );
            actor.act(obs, &self.live, &self.step.action_mask, &mut self.actions);
            if let Record::Episodes(all) = &mut record {
                let a = actor.taken().len() / self.live.len();
                for (&e, action) in self.live.iter().zip(actor.taken().chunks_exact(a)) {
                    all[e].action.extend_from_slice(action);
                }
            }
            env.step(self.actions.as_actions(), self.step.buffers())?;
            for row in (0..self.live.len()).rev() {
                let e = self.live[row];
                let (terminated, truncated) = (self.step.terminated[e], self.step.truncated[e]);
                let ended = terminated || truncated;
                played.returns[e] += f64::from(self.step.reward[e]);
                played.lengths[e] += 1.0;
                if let Record::Episodes(all) = &mut record {
                    all[e].reward.push(self.step.reward[e]);
                    if ended || t == conditions.episode_length {
                        let last = if ended { &self.step.final_obs } else { &self.step.obs };
                        all[e].last_obs.extend_from_slice(&last[e * d..(e + 1) * d]);
                        all[e].terminated = terminated;
                    }
                }
                if ended {
                    self.live.remove(row);
                    actor.end(row);
                }
            }
            if self.live.is_empty() {
                break;
            }
        }
        Ok(played)
    }
}

/// A network that acts greedily.
pub(crate) struct Member {
    network: MemberNetwork,
    head: ActionHead,
    space: ActionSpace,
    /// The actions in the form that networks read, where environments take another.
    taken: Vec<f32>,
}

impl Actor for Member {
    fn act(&mut self, obs: &[f32], live: &[usize], mask: &[bool], actions: &mut ActionBuffer) {
        let stride = self.network.stride();
        let outputs = self.network.forward(InstructionSet::detect(), obs);
        if let (
            ActionHead::SquashedGaussian(a) | ActionHead::Deterministic(a),
            ActionBuffer::Continuous(actions),
        ) = (&self.head, &mut *actions)
        {
            self.taken.clear();
            for row in outputs.chunks_exact(stride).take(live.len()) {
                self.taken.extend(row[..*a].iter().map(|&x| libm::tanhf(x)));
            }
            for (action, &e) in self.taken.chunks_exact(*a).zip(live) {
                let to = &mut actions[e * a..(e + 1) * a];
                to.copy_from_slice(action);
                scale(&self.head, &self.space, to);
            }
            return;
        }
        choose(&self.head, &self.space, outputs, stride, live, mask, actions);
    }

    fn end(&mut self, row: usize) {
        self.network.end(row);
    }

    fn taken(&self) -> &[f32] {
        &self.taken
    }
}

/// A network with the buffers of its episodes.
pub(crate) struct Player {
    member: Member,
    episodes: EpisodeLoop,
}

impl Player {
    pub(crate) fn new(
        architecture: &Architecture,
        spec: &EnvSpec,
        episodes: usize,
    ) -> Result<Self, StageError> {
        Ok(Self {
            member: Member {
                network: MemberNetwork::new(architecture).map_err(StageError::new)?,
                head: architecture.head.clone(),
                space: spec.action_space.clone(),
                taken: Vec::new(),
            },
            episodes: EpisodeLoop::new(spec, episodes),
        })
    }

    /// Plays the episodes of a policy; see [`EpisodeLoop::play`].
    pub(crate) fn play(
        &mut self,
        env: &mut dyn BatchEnv,
        params: &[f32],
        conditions: &Conditions,
        record: Record,
    ) -> Result<Played, StageError> {
        self.member.network.begin(params, env.num_envs());
        self.episodes.play(env, &mut self.member, conditions, record)
    }
}

/// The observations of the live episodes `[rows, D]`, as the network takes them.
fn observed<'a>(
    all: &'a [f32],
    live: &[usize],
    d: usize,
    episodes: usize,
    normalisation: Option<&Normalisation>,
    buffer: &'a mut Vec<f32>,
) -> &'a [f32] {
    if live.len() == episodes && normalisation.is_none() {
        return all;
    }
    buffer.resize(live.len() * d, 0.0);
    for (&e, row) in live.iter().zip(buffer.chunks_exact_mut(d)) {
        let raw = &all[e * d..(e + 1) * d];
        match normalisation {
            None => row.copy_from_slice(raw),
            Some(n) => {
                elementwise::normalise(InstructionSet::detect(), raw, &n.offset, &n.scale, n.clip, row)
            }
        }
    }
    buffer
}

/// Scales actions to their bounds, where the head does so.
fn scale(head: &ActionHead, space: &ActionSpace, actions: &mut [f32]) {
    if head.is_scaled()
        && let Some(bounds) = space.bounds()
    {
        bounds.scale(actions);
    }
}

/// The greedy action of each live episode: for each component, the allowed choice with the largest logit; or
/// the head's mean, which the environment clips to its bounds.
fn choose(
    head: &ActionHead,
    space: &ActionSpace,
    outputs: &[f32],
    stride: usize,
    live: &[usize],
    mask: &[bool],
    actions: &mut ActionBuffer,
) {
    let (a, k) = (head.num_outputs(), head.num_components());
    let rows = outputs.chunks_exact(stride).zip(live);
    match actions {
        ActionBuffer::Continuous(actions) => {
            for (row, &e) in rows {
                let to = &mut actions[e * a..(e + 1) * a];
                to.copy_from_slice(&row[..a]);
                scale(head, space, to);
            }
        }
        ActionBuffer::Discrete(actions) | ActionBuffer::MultiDiscrete(actions) => {
            for (row, &e) in rows {
                let allowed = &mask[e * a..(e + 1) * a];
                let action = &mut actions[e * k..(e + 1) * k];
                categorical::best_allowed(&row[..a], allowed, head.choices(), action);
            }
        }
    }
}

/// The players of a population, one for each busy thread, each with environments of its own.
pub(crate) struct Players<'a> {
    pub architecture: &'a Architecture,
    pub open: &'a Opener<'a>,
    pub idle: &'a Mutex<Vec<Seat>>,
}

/// A player with its environments, and room for the parameters and the displacement of a member.
pub(crate) struct Seat {
    player: Player,
    env: Box<dyn BatchEnv>,
    pub params: Vec<f32>,
    pub displacement: Vec<f32>,
}

impl Players<'_> {
    /// Gives `work` a seat that no other thread holds.
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&mut Seat) -> Result<R, StageError>,
    ) -> Result<R, StageError> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut seat = match idle {
            Some(seat) => seat,
            None => {
                let env = (self.open)()?;
                Seat {
                    player: Player::new(self.architecture, env.spec(), env.num_envs())?,
                    env,
                    params: Vec::new(),
                    displacement: Vec::new(),
                }
            }
        };
        let result = work(&mut seat);
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(seat);
        }
        result
    }
}

impl Seat {
    /// Plays the member whose parameters are mean + sign x displacement.
    pub(crate) fn play(
        &mut self,
        mean: &[f32],
        sign: f32,
        conditions: &Conditions,
    ) -> Result<Played, StageError> {
        self.params.clear();
        self.params
            .extend(mean.iter().zip(&self.displacement).map(|(mean, y)| mean + sign * y));
        self.player
            .play(&mut *self.env, &self.params, conditions, Record::Nothing)
    }

    /// Plays the policy with these parameters, and records its episodes.
    pub(crate) fn record(
        &mut self,
        params: &[f32],
        conditions: &Conditions,
        episodes: &mut Vec<Episode>,
    ) -> Result<Played, StageError> {
        self.player
            .play(&mut *self.env, params, conditions, Record::Episodes(episodes))
    }
}
