//! The pendulum that is to be swung up, with the dynamics of Gymnasium's `Pendulum-v1`: actions are
//! continuous.
//!
//! The dynamics are those of Gymnasium's `classic_control/pendulum.py` (0.05 s a step, g = 10, mass and
//! length 1). The state is kept in f64; torque and observations are f32, as they are there.

use super::control::{Moved, Task};
use stages_numerics::random::Random;
use std::f64::consts::PI;

const GRAVITY: f64 = 10.0;
const DT: f64 = 0.05;
const MAX_SPEED: f64 = 8.0;

/// A pendulum whose state is the angle from upright and the angular velocity. An episode is cut off after 200
/// steps and never ends by itself.
pub(super) struct Pendulum;

impl Task for Pendulum {
    const NAME: &'static str = "Pendulum-v1";
    const OBSERVATION: &'static [&'static str] = &["cos_angle", "sin_angle", "angular_velocity"];
    const ACTION: &'static str = "torque";
    const MOST: f32 = 2.0;
    const MAX_STEPS: u32 = 200;

    fn fresh(random: &mut Random) -> [f64; 2] {
        [PI, 1.0].map(|high| -high + 2.0 * high * random.uniform())
    }

    fn advance([angle, velocity]: [f64; 2], torque: f32) -> Moved {
        let normal = (angle + PI).rem_euclid(2.0 * PI) - PI;
        // Gymnasium's terms of the torque are f32.
        let cost = normal * normal + 0.1 * (velocity * velocity) + f64::from(0.001 * (torque * torque));
        let acceleration = 3.0 * GRAVITY / 2.0 * libm::sin(angle) + f64::from(3.0 * torque);
        let velocity = (velocity + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
        Moved {
            state: [angle + velocity * DT, velocity],
            reward: -cost,
            terminated: false,
        }
    }

    fn show([angle, velocity]: [f64; 2], out: &mut [f32]) {
        out[0] = libm::cos(angle) as f32;
        out[1] = libm::sin(angle) as f32;
        out[2] = velocity as f32;
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
        let rows = include_str!("pendulum_reference.csv").lines().skip(1);
        for (line, row) in rows.enumerate() {
            let row: Vec<f64> = row.split(',').map(|x| x.parse().unwrap()).collect();
            let torque = (row[2] as f32).clamp(-Pendulum::MOST, Pendulum::MOST);
            let outcome = Pendulum::advance([row[0], row[1]], torque);
            let mut shown = [0.0; 3];
            Pendulum::show(outcome.state, &mut shown);
            for (a, b) in shown.iter().zip(&row[3..6]) {
                assert!((f64::from(*a) - b).abs() < 1e-6, "line {line}: {a} {b}");
            }
            assert!(
                (outcome.reward - row[6]).abs() < 1e-12 * row[6].abs().max(1.0),
                "line {line}: {} {}",
                outcome.reward,
                row[6]
            );
        }
    }

    fn play(num_envs: usize, steps: usize) -> (Vec<f32>, f64) {
        let mut env = Control::<Pendulum>::new(&OpenOptions::train(num_envs, 3));
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
        let mut env = Control::<Pendulum>::new(&OpenOptions::train(5, 2));
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
        let mut other = Control::<Pendulum>::new(&OpenOptions::train(5, 2));
        other.restore(&state).unwrap();
        let mut again = out.clone();
        for _ in 0..200 {
            env.step(Actions::Continuous(&[1.0; 5]), out.buffers()).unwrap();
            other.step(Actions::Continuous(&[1.0; 5]), again.buffers()).unwrap();
            assert_eq!(out.obs, again.obs);
        }
        assert!(
            Control::<Pendulum>::new(&OpenOptions::train(6, 2))
                .restore(&state)
                .is_err()
        );
    }
}
