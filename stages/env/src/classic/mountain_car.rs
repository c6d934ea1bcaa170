//! The car in a valley whose motor is too weak for the hill, with the dynamics of Gymnasium's
//! `MountainCarContinuous-v0`.
//!
//! The dynamics are those of Gymnasium's `classic_control/continuous_mountain_car.py`; position and velocity
//! are f32 from the first step on, as they are there. Every push costs, and only the hilltop earns: a learner
//! that follows the reward it finds near itself stands still.

use super::control::{Moved, Task};
use stages_numerics::random::Random;

const POWER: f32 = 0.0015;
const GRAVITY: f64 = 0.0025;
const MAX_SPEED: f64 = 0.07;
const MIN_POSITION: f64 = -1.2;
const MAX_POSITION: f64 = 0.6;
const GOAL: f64 = 0.45;

/// A car whose state is position and velocity. An episode ends on the hilltop, and is cut off after 999
/// steps. Gymnasium charges for the square of a push beyond the bounds, which here counts as the bound.
pub(super) struct MountainCar;

impl Task for MountainCar {
    const NAME: &'static str = "MountainCarContinuous-v0";
    const OBSERVATION: &'static [&'static str] = &["position", "velocity"];
    const ACTION: &'static str = "force";
    const MOST: f32 = 1.0;
    const MAX_STEPS: u32 = 999;

    fn fresh(random: &mut Random) -> [f64; 2] {
        [-0.6 + 0.2 * random.uniform(), 0.0]
    }

    fn advance([position, velocity]: [f64; 2], force: f32) -> Moved {
        let pull = GRAVITY * libm::cos(3.0 * position);
        let velocity = velocity + (f64::from(force * POWER) - pull);
        let velocity = velocity.clamp(-MAX_SPEED, MAX_SPEED);
        let position = (position + velocity).clamp(MIN_POSITION, MAX_POSITION);
        let velocity = if position == MIN_POSITION {
            velocity.max(0.0)
        } else {
            velocity
        };
        let terminated = position >= GOAL && velocity >= 0.0;
        let prize = if terminated { 100.0 } else { 0.0 };
        Moved {
            state: [position, velocity].map(|x| f64::from(x as f32)),
            reward: prize - 0.1 * (f64::from(force) * f64::from(force)),
            terminated,
        }
    }

    fn show([position, velocity]: [f64; 2], out: &mut [f32]) {
        out[0] = position as f32;
        out[1] = velocity as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::Actions;
    use crate::batch::{BatchEnv as _, Step};
    use crate::classic::control::Control;
    use crate::open_options::OpenOptions;

    #[test]
    fn as_gymnasium() {
        let rows = include_str!("mountain_car_reference.csv").lines().skip(1);
        let mut ended = 0;
        for (line, row) in rows.enumerate() {
            let row: Vec<f64> = row.split(',').map(|x| x.parse().unwrap()).collect();
            let outcome = MountainCar::advance([row[0], row[1]], row[2] as f32);
            for (a, b) in outcome.state.iter().zip(&row[3..5]) {
                assert!((a - b).abs() < 2e-7, "line {line}: {a} {b}");
            }
            assert!(
                (outcome.reward - row[5]).abs() < 1e-6,
                "line {line}: {} {}",
                outcome.reward,
                row[5]
            );
            assert!(outcome.terminated == (row[6] == 1.0), "line {line}");
            ended += usize::from(outcome.terminated);
        }
        assert_eq!(ended, 2);
    }

    /// Pushing along the velocity reaches the hilltop within some hundred steps, pushing one way does not.
    #[test]
    fn pushes_with_the_swing_reach_the_hilltop() {
        let mut env = Control::<MountainCar>::new(&OpenOptions::train(2, 3));
        let mut out = Step::new(env.spec(), 2);
        env.reset(out.buffers());
        let mut lengths = [0; 2];
        for step in 1..=999 {
            let with = if out.obs[1] < 0.0 { -1.0 } else { 1.0 };
            env.step(Actions::Continuous(&[with, 1.0]), out.buffers()).unwrap();
            for (i, length) in lengths.iter_mut().enumerate() {
                if *length == 0 && (out.terminated[i] || out.truncated[i]) {
                    *length = step;
                    assert_eq!(out.terminated[i], i == 0);
                    assert!((out.reward[i] > 99.0) == (i == 0), "{}", out.reward[i]);
                    assert!((out.final_obs[2 * i] > 0.45) == (i == 0));
                }
            }
        }
        assert!((60..200).contains(&lengths[0]), "{lengths:?}");
        assert_eq!(lengths[1], 999);
    }
}
