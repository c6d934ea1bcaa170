//! Advantages against their definition.

use crate::ppo::algorithm::estimate_advantages;
use stages_numerics::random::Random;

#[test]
fn matches_the_definition() {
    let (steps, batch, gamma, lambda) = (9, 3, 0.9_f32, 0.8_f32);
    let mut random = Random::new(&[1]);
    let mut floats = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<_>>();
    let (reward, value, last) = (floats(steps * batch), floats(steps * batch), floats(batch));
    let done: Vec<bool> = (0..steps * batch).map(|_| random.uniform() < 0.3).collect();
    let (mut advantage, mut target) = (vec![0.0; steps * batch], vec![0.0; steps * batch]);
    estimate_advantages(
        gamma,
        lambda,
        &reward,
        &value,
        &done,
        &last,
        &mut advantage,
        &mut target,
    );
    for i in 0..batch {
        for t in 0..steps {
            // The sum of (gamma lambda)^k delta(t + k) up to the end of the episode.
            let (mut sum, mut weight) = (0.0_f64, 1.0_f64);
            for s in t..steps {
                let at = s * batch + i;
                let next = if s + 1 == steps { last[i] } else { value[at + batch] };
                let next = if done[at] { 0.0 } else { next };
                sum += weight * f64::from(reward[at] + gamma * next - value[at]);
                weight *= f64::from(gamma * lambda);
                if done[at] {
                    break;
                }
            }
            let at = t * batch + i;
            assert!((f64::from(advantage[at]) - sum).abs() < 1e-5);
            assert!((target[at] - advantage[at] - value[at]).abs() < 1e-6);
        }
    }
}
