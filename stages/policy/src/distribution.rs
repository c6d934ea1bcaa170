//! The masked categorical distribution: illegal actions have probability 0.

/// Turns logits into log-probabilities, in place: a log-softmax over the legal actions, minus infinity for the others.
pub fn log_softmax(logits: &mut [f32], mask: &[bool]) {
    let mut max = f32::NEG_INFINITY;
    for (logit, &legal) in logits.iter_mut().zip(mask) {
        if !legal {
            *logit = f32::NEG_INFINITY;
        } else if *logit > max {
            max = *logit;
        }
    }
    let sum: f64 = logits.iter().map(|&logit| f64::from(libm::expf(logit - max))).sum();
    let normaliser = max + libm::log(sum) as f32;
    for (logit, &legal) in logits.iter_mut().zip(mask) {
        if legal {
            *logit -= normaliser;
        }
    }
}

/// The action that a uniform number in [0, 1) falls on.
pub fn sample(log_prob: &[f32], uniform: f64) -> u32 {
    let mut left = uniform;
    let mut last = 0;
    for (action, &log_prob) in log_prob.iter().enumerate() {
        if log_prob == f32::NEG_INFINITY {
            continue;
        }
        last = action;
        left -= f64::from(libm::expf(log_prob));
        if left < 0.0 {
            break;
        }
    }
    last as u32
}

/// The likeliest action, the first of equals.
pub fn best(log_prob: &[f32]) -> u32 {
    let mut best = 0;
    for (action, &value) in log_prob.iter().enumerate() {
        if value > log_prob[best] {
            best = action;
        }
    }
    best as u32
}

/// The entropy in nats.
pub fn entropy(log_prob: &[f32]) -> f32 {
    -log_prob
        .iter()
        .filter(|&&log_prob| log_prob > f32::NEG_INFINITY)
        .map(|&log_prob| libm::expf(log_prob) * log_prob)
        .sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::random::Random;

    #[test]
    fn illegal_actions_are_never_drawn_and_frequencies_fit() {
        let mut row = [1.0, 50.0, -1.0, 0.5, 9.0];
        log_softmax(&mut row, &[true, false, true, true, false]);
        let probabilities: Vec<f64> = row.iter().map(|&x| libm::exp(f64::from(x))).collect();
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        let mut random = Random::new(&[5]);
        let mut counts = [0.0; 5];
        let n = 100_000;
        for _ in 0..n {
            counts[sample(&row, random.uniform()) as usize] += 1.0;
        }
        for (count, p) in counts.iter().zip(&probabilities) {
            assert!((count / f64::from(n) - p).abs() < 0.01, "{counts:?}");
        }
        assert_eq!((counts[1], counts[4], best(&row)), (0.0, 0.0, 0));
        assert_eq!(sample(&row, 1.0 - 1e-17), 3);
        let e: f64 = probabilities.iter().filter(|&&p| p > 0.0).map(|&p| -p * p.ln()).sum();
        assert!((f64::from(entropy(&row)) - e).abs() < 1e-6);
    }
}
