//! Generalised advantage estimation (Schulman and others, 2016).

/// Fills `advantage` `[T, B]` and `target` `[T, B]` (advantage + value) from rewards and values `[T, B]`.
///
/// `done` `[T, B]` says whether the episode ended with that step, `last_value` `[B]` is the value of what follows the last step. Where an
/// episode was cut off rather than over, the reward must hold the discounted value of its last observation already.
pub fn estimate(
    gamma: f32,
    lambda: f32,
    reward: &[f32],
    value: &[f32],
    done: &[bool],
    last_value: &[f32],
    advantage: &mut [f32],
    target: &mut [f32],
) {
    let batch = last_value.len();
    let steps = reward.len() / batch.max(1);
    for t in (0..steps).rev() {
        let now = t * batch..(t + 1) * batch;
        let (advantage, after) = advantage[now.start..].split_at_mut(batch);
        let next_value = if t + 1 == steps {
            last_value
        } else {
            &value[now.end..now.end + batch]
        };
        // Nothing is known of what follows the last step but its value.
        let next_advantage = after.get(..batch);
        let (reward, value, done) = (&reward[now.clone()], &value[now.clone()], &done[now.clone()]);
        let target = &mut target[now];
        for i in 0..batch {
            let goes_on = if done[i] { 0.0 } else { 1.0 };
            let later = next_advantage.map_or(0.0, |next| next[i]);
            let delta = reward[i] + gamma * goes_on * next_value[i] - value[i];
            advantage[i] = delta + gamma * lambda * goes_on * later;
            target[i] = advantage[i] + value[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    #[test]
    fn matches_the_definition() {
        let (steps, batch, gamma, lambda) = (9, 3, 0.9_f32, 0.8_f32);
        let mut random = Random::new(&[1]);
        let mut floats = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<_>>();
        let (reward, value, last) = (floats(steps * batch), floats(steps * batch), floats(batch));
        let done: Vec<bool> = (0..steps * batch).map(|_| random.uniform() < 0.3).collect();
        let (mut advantage, mut target) = (vec![0.0; steps * batch], vec![0.0; steps * batch]);
        estimate(
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
}
