//! The pole on a cart, with the dynamics and limits of Gymnasium's `CartPole-v1`.
//!
//! Source of the dynamics: Barto, Sutton and Anderson (1983), as corrected by Florian (2007) and coded in
//! Gymnasium's `classic_control/cartpole.py` (Euler integration, 0.02 s a step). The state is kept in f64 and
//! shown in f32, as there.

use crate::actions::{ActionSpace, Actions};
use crate::episodic::{Episodic, EpisodicEnv, Outcome};
use crate::open_options::OpenOptions;
use crate::spec::EnvSpec;
use stages_core::StageError;
use stages_numerics::random::Random;

const GRAVITY: f64 = 9.8;
const MASS_CART: f64 = 1.0;
const MASS_POLE: f64 = 0.1;
const TOTAL_MASS: f64 = MASS_CART + MASS_POLE;
/// Half the pole's length.
const LENGTH: f64 = 0.5;
const POLE_MASS_LENGTH: f64 = MASS_POLE * LENGTH;
const FORCE: f64 = 10.0;
const TAU: f64 = 0.02;
const THETA_LIMIT: f64 = 12.0 * 2.0 * std::f64::consts::PI / 360.0;
const X_LIMIT: f64 = 2.4;
const MAX_STEPS: u32 = 500;
const RESET: f64 = 0.05;

/// The task.
pub struct Poles {
    spec: EnvSpec,
    hidden: bool,
}

/// B poles. Reward 1 for each step, the last one too; terminated beyond 2.4 or 12 degrees, truncated after
/// 500 steps.
pub type CartPole = EpisodicEnv<Poles>;

impl CartPole {
    /// A batch of `options.num_envs` poles; with `hidden`, only position and angle are observed.
    pub fn new(hidden: bool, options: &OpenOptions) -> Self {
        let (name, shown): (_, &[&str]) = if hidden {
            ("CartPole-hidden-velocity", &["position", "angle"])
        } else {
            ("CartPole-v1", &["position", "velocity", "angle", "angular_velocity"])
        };
        let spec = EnvSpec {
            name: name.to_owned(),
            observation: shown.iter().map(|&s| s.to_owned()).collect(),
            action_space: ActionSpace::discrete(["left", "right"]),
            normalisation: None,
            encoding: crate::ActionEncoding::default(),
        };
        Self::of(Poles { spec, hidden }, options)
    }
}

/// The state one step later; `right` is the direction of the push.
fn advance([x, v, angle, w]: [f64; 4], right: bool) -> [f64; 4] {
    let force = if right { FORCE } else { -FORCE };
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    let temp = (force + POLE_MASS_LENGTH * (w * w) * sin) / TOTAL_MASS;
    let angular =
        (GRAVITY * sin - cos * temp) / (LENGTH * (4.0 / 3.0 - MASS_POLE * (cos * cos) / TOTAL_MASS));
    let linear = temp - POLE_MASS_LENGTH * angular * cos / TOTAL_MASS;
    [x + TAU * v, v + TAU * linear, angle + TAU * w, w + TAU * angular]
}

fn fallen([x, _, angle, _]: [f64; 4]) -> bool {
    // Written so that a state that is not a number counts as fallen.
    !(x.abs() <= X_LIMIT && angle.abs() <= THETA_LIMIT)
}

impl Episodic for Poles {
    /// An element of the state: position, velocity, angle or angular velocity.
    type Value = [f64; 4];
    type Input = u32;
    type Action = u32;
    type Final = ();

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn actions<'a>(&self, actions: Actions<'a>, num_envs: usize) -> Result<&'a [u32], StageError> {
        actions.discrete(num_envs)
    }

    fn begin(&self, mut random: Random, _: u64, state: &mut [[f64; 4]]) {
        state[0] = std::array::from_fn(|_| -RESET + 2.0 * RESET * random.uniform());
    }

    fn advance(&self, state: &mut [[f64; 4]], count: u32, action: u32) -> Outcome {
        state[0] = advance(state[0], action == 1);
        let terminated = fallen(state[0]);
        Outcome {
            reward: 1.0,
            terminated,
            truncated: !terminated && count + 1 >= MAX_STEPS,
        }
    }

    fn show(&self, state: &[[f64; 4]], _: u32, out: &mut [f32]) {
        let pole = state[0];
        if self.hidden {
            out[0] = pole[0] as f32;
            out[1] = pole[2] as f32;
        } else {
            for (out, value) in out.iter_mut().zip(pole) {
                *out = value as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchEnv as _, Step};
    use crate::tests::step_discrete;

    /// Gymnasium 1.x, `CartPole-v1` from the state (0.01, -0.02, 0.03, 0.04), worked by hand with its
    /// formulas.
    #[test]
    fn one_push_by_hand() {
        let next = advance([0.01, -0.02, 0.03, 0.04], true);
        // temp = (10 + 0.05 * 0.0016 * sin 0.03) / 1.1 = 9.0909112727; angular = -14.0872...; see the
        // formulas above.
        let (s, c) = (0.029_995_500_202_495_66, 0.999_550_033_748_987_5);
        let temp = (10.0 + 0.05 * 0.0016 * s) / 1.1;
        let angular = (9.8 * s - c * temp) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1));
        let linear = temp - 0.05 * angular * c / 1.1;
        let expected = [
            0.01 - 0.0004,
            -0.02 + 0.02 * linear,
            0.03 + 0.0008,
            0.04 + 0.02 * angular,
        ];
        for (a, b) in next.iter().zip(expected) {
            assert!((a - b).abs() < 1e-14, "{a} {b}");
        }
    }

    fn play(num_envs: usize, hidden: bool) -> (Vec<f32>, u32, u32) {
        let mut env = CartPole::new(hidden, &OpenOptions::train(num_envs, 3));
        let mut out = Step::new(env.spec(), num_envs);
        let mut actions = vec![0; num_envs];
        let mut random = Random::new(&[9]);
        env.reset(out.buffers());
        let (mut ends, mut cuts) = (0, 0);
        let mut trace = Vec::new();
        for _ in 0..300 {
            actions.fill_with(|| random.below(2) as u32);
            step_discrete(&mut env, &actions, &mut out);
            ends += out.terminated.iter().filter(|&&t| t).count() as u32;
            cuts += out.truncated.iter().filter(|&&t| t).count() as u32;
            trace.extend_from_slice(&out.obs);
        }
        (trace, ends, cuts)
    }

    #[test]
    fn random_play_falls_after_about_22_steps() {
        let (_, ends, cuts) = play(500, false);
        let length = 500.0 * 300.0 / f64::from(ends);
        assert!((20.0..25.0).contains(&length), "{length}");
        assert_eq!(cuts, 0);
    }

    #[test]
    fn hidden_shows_two_numbers_of_the_same_poles() {
        let (all, ..) = play(7, false);
        let (two, ..) = play(7, true);
        for (all, two) in all.chunks(4).zip(two.chunks(2)) {
            assert_eq!([all[0], all[2]], [two[0], two[1]]);
        }
    }

    /// Pushing towards the side to which the pole falls mostly keeps it up to the time limit.
    #[test]
    fn a_good_controller_is_cut_off_at_500() {
        let mut env = CartPole::new(false, &OpenOptions::test(4, 1));
        let mut out = Step::new(env.spec(), 4);
        env.reset(out.buffers());
        for step in 1..=500 {
            let actions: Vec<u32> = out
                .obs
                .chunks(4)
                .map(|o| u32::from(0.1 * o[0] + 0.3 * o[1] + 5.0 * o[2] + o[3] > 0.0))
                .collect();
            step_discrete(&mut env, &actions, &mut out);
            assert!(out.terminated.iter().all(|&t| !t), "fell at {step}");
            assert!(out.truncated.iter().all(|&t| t == (step == 500)));
        }
        assert!(out.final_obs.iter().any(|&x| x != 0.0));
        assert!(out.obs.iter().all(|&x| x.abs() <= 0.05));
    }

    #[test]
    fn a_thread_more_changes_nothing_and_neither_does_a_neighbour() {
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let one = pool(1).install(|| play(3000, false));
        let three = pool(3).install(|| play(3000, false));
        assert!(one == three);
    }

    #[test]
    fn saved_and_restored() {
        let options = OpenOptions::train(5, 2);
        let mut env = CartPole::new(false, &options);
        let mut out = Step::new(env.spec(), 5);
        env.reset(out.buffers());
        for _ in 0..40 {
            step_discrete(&mut env, &[0, 1, 0, 1, 1], &mut out);
        }
        let state = env.save();
        let mut other = CartPole::new(false, &OpenOptions::train(5, 2));
        other.restore(&state).unwrap();
        let mut again = out.clone();
        for _ in 0..40 {
            step_discrete(&mut env, &[1, 1, 0, 1, 0], &mut out);
            step_discrete(&mut other, &[1, 1, 0, 1, 0], &mut again);
            assert_eq!(out.obs, again.obs);
        }
        assert!(CartPole::new(true, &options).restore(&state).is_err());
        assert!(CartPole::new(false, &OpenOptions::train(6, 2)).restore(&state).is_err());
    }
}
