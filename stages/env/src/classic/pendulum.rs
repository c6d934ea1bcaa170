//! The pendulum that is to be swung up, with the dynamics of Gymnasium's `Pendulum-v1`: actions are continuous.
//!
//! As coded in Gymnasium's `classic_control/pendulum.py` (0.05 s a step, g = 10, mass and length 1). The state is kept in f64; torque and
//! observations are f32, as there.

use crate::actions::{ActionSpace, Actions, Bounds};
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::OpenOptions;
use crate::ranges::{StepRows, View, for_ranges};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use stages_core::StageError;
use stages_numerics::random::Random;
use std::f64::consts::PI;

const GRAVITY: f64 = 10.0;
const DT: f64 = 0.05;
const MAX_TORQUE: f32 = 2.0;
const MAX_SPEED: f64 = 8.0;
const MAX_STEPS: u32 = 200;

/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 1024;

/// B pendulums. An episode is cut off after 200 steps and never ends by itself.
pub struct Pendulum {
    spec: EnvSpec,
    stream: [u64; 2],
    /// Angle from upright and angular velocity.
    states: Vec<[f64; 2]>,
    steps: Vec<u32>,
    episodes: Vec<u64>,
}

impl Pendulum {
    /// `options.num_envs` of them.
    pub fn new(options: &OpenOptions) -> Self {
        let stream = [options.seed, options.split.word()];
        Self {
            spec: EnvSpec {
                name: "Pendulum-v1".to_owned(),
                observation: ["cos_angle", "sin_angle", "angular_velocity"].map(str::to_owned).into(),
                action_space: ActionSpace::Continuous {
                    names: vec!["torque".to_owned()],
                    bounds: Bounds {
                        low: vec![-MAX_TORQUE],
                        high: vec![MAX_TORQUE],
                    },
                },
                normalisation: None,
            },
            stream,
            states: (0..options.num_envs).map(|i| fresh(stream, i, 0)).collect(),
            steps: vec![0; options.num_envs],
            episodes: vec![0; options.num_envs],
        }
    }

    fn tag(&self) -> String {
        format!("{} v1 x {}", self.spec.name, self.states.len())
    }
}

/// The state that episode `episode` of environment `i` begins with.
fn fresh(stream: [u64; 2], i: usize, episode: u64) -> [f64; 2] {
    let mut random = Random::new(&[stream[0], stream[1], i as u64, episode]);
    [PI, 1.0].map(|high| -high + 2.0 * high * random.uniform())
}

/// The state one step later, and the reward. A torque that is no number counts as none.
fn advance([angle, velocity]: [f64; 2], torque: f32) -> ([f64; 2], f64) {
    let torque = if torque.is_nan() {
        0.0
    } else {
        torque.clamp(-MAX_TORQUE, MAX_TORQUE)
    };
    let normal = (angle + PI).rem_euclid(2.0 * PI) - PI;
    // Gymnasium's terms of the torque are f32.
    let cost = normal * normal + 0.1 * (velocity * velocity) + f64::from(0.001 * (torque * torque));
    let acceleration = 3.0 * GRAVITY / 2.0 * libm::sin(angle) + f64::from(3.0 * torque);
    let velocity = (velocity + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
    ([angle + velocity * DT, velocity], -cost)
}

fn show([angle, velocity]: [f64; 2], out: &mut [f32]) {
    out[0] = libm::cos(angle) as f32;
    out[1] = libm::sin(angle) as f32;
    out[2] = velocity as f32;
}

struct Pendulums<'a> {
    torques: &'a [f32],
    states: &'a mut [[f64; 2]],
    steps: &'a mut [u32],
    episodes: &'a mut [u64],
}

impl View for Pendulums<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (torques, states) = (self.torques.split_at(n), self.states.split_at_mut(n));
        let (steps, episodes) = (self.steps.split_at_mut(n), self.episodes.split_at_mut(n));
        (
            Self {
                torques: torques.0,
                states: states.0,
                steps: steps.0,
                episodes: episodes.0,
            },
            Self {
                torques: torques.1,
                states: states.1,
                steps: steps.1,
                episodes: episodes.1,
            },
        )
    }
}

impl BatchEnv for Pendulum {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn num_envs(&self) -> usize {
        self.states.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        for (i, obs) in out.obs.chunks_exact_mut(3).enumerate() {
            if self.steps[i] != 0 {
                self.episodes[i] += 1;
                self.steps[i] = 0;
                self.states[i] = fresh(self.stream, i, self.episodes[i]);
            }
            show(self.states[i], obs);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let (stream, len) = (self.stream, self.states.len());
        let pendulums = Pendulums {
            torques: actions.continuous(len, 1)?,
            states: &mut self.states,
            steps: &mut self.steps,
            episodes: &mut self.episodes,
        };
        let view = (pendulums, StepRows::new(out, &self.spec));
        for_ranges(
            view,
            len,
            GRAIN,
            &|first, len, (state, mut out): (Pendulums, StepRows)| {
                for i in 0..len {
                    let (next, reward) = advance(state.states[i], state.torques[i]);
                    state.steps[i] += 1;
                    let truncated = state.steps[i] >= MAX_STEPS;
                    out.reward[i] = reward as f32;
                    out.terminated[i] = false;
                    out.truncated[i] = truncated;
                    state.states[i] = next;
                    if truncated {
                        show(next, out.final_obs.row(i));
                        state.episodes[i] += 1;
                        state.steps[i] = 0;
                        state.states[i] = fresh(stream, first + i, state.episodes[i]);
                    }
                    show(state.states[i], out.obs.row(i));
                }
            },
        );
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        StateWriter::new(&self.tag())
            .array(&self.states)
            .array(&self.steps)
            .array(&self.episodes)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let size = self.states.len() * (16 + 4 + 8);
        let mut reader = StateReader::new(state, &self.tag(), size)?;
        reader.array(&mut self.states);
        reader.array(&mut self.steps);
        reader.array(&mut self.episodes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Step;

    #[test]
    fn as_gymnasium() {
        let rows = include_str!("pendulum_reference.csv").lines().skip(1);
        for (line, row) in rows.enumerate() {
            let row: Vec<f64> = row.split(',').map(|x| x.parse().unwrap()).collect();
            let (next, reward) = advance([row[0], row[1]], row[2] as f32);
            let mut shown = [0.0; 3];
            show(next, &mut shown);
            for (a, b) in shown.iter().zip(&row[3..6]) {
                assert!((f64::from(*a) - b).abs() < 1e-6, "line {line}: {a} {b}");
            }
            assert!(
                (reward - row[6]).abs() < 1e-12 * row[6].abs().max(1.0),
                "line {line}: {reward} {}",
                row[6]
            );
        }
    }

    fn play(num_envs: usize, steps: usize) -> (Vec<f32>, f64) {
        let mut env = Pendulum::new(&OpenOptions::train(num_envs, 3));
        let mut out = Step::new(env.spec(), num_envs);
        let mut random = Random::new(&[9]);
        let mut torques = vec![0.0; num_envs];
        env.reset(out.buffers());
        let (mut trace, mut sum) = (Vec::new(), 0.0);
        for step in 1..=steps {
            torques.fill_with(|| (4.0 * random.uniform() - 2.0) as f32);
            env.step(Actions::Continuous(&torques), out.buffers()).unwrap();
            assert!(out.truncated.iter().all(|&cut| cut == (step % 200 == 0)));
            assert!(!out.terminated.contains(&true));
            sum += out.reward.iter().map(|&x| f64::from(x)).sum::<f64>();
            trace.extend_from_slice(&out.obs);
        }
        (trace, sum / (num_envs * steps / 200) as f64)
    }

    #[test]
    fn random_torques_earn_about_minus_1200() {
        let (_, mean) = play(500, 200);
        assert!((-1300.0..-1150.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_thread_more_changes_nothing() {
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let one = pool(1).install(|| play(3000, 20));
        assert!(one == pool(3).install(|| play(3000, 20)));
    }

    #[test]
    fn saved_and_restored_and_discrete_actions_refused() {
        let mut env = Pendulum::new(&OpenOptions::train(5, 2));
        let mut out = Step::new(env.spec(), 5);
        env.reset(out.buffers());
        for _ in 0..270 {
            env.step(Actions::Continuous(&[0.5, -3.0, 1.0, f32::NAN, 2.0]), out.buffers())
                .unwrap();
        }
        let state = env.save();
        assert!(env.step(Actions::Discrete(&[0; 5]), out.buffers()).is_err());
        assert!(env.step(Actions::Continuous(&[0.0; 4]), out.buffers()).is_err());
        assert_eq!(env.save(), state);
        let mut other = Pendulum::new(&OpenOptions::train(5, 2));
        other.restore(&state).unwrap();
        let mut again = out.clone();
        for _ in 0..200 {
            env.step(Actions::Continuous(&[1.0; 5]), out.buffers()).unwrap();
            other.step(Actions::Continuous(&[1.0; 5]), again.buffers()).unwrap();
            assert_eq!(out.obs, again.obs);
        }
        assert!(Pendulum::new(&OpenOptions::train(6, 2)).restore(&state).is_err());
    }
}
