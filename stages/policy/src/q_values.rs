//! Action values: those of duelling networks, and the epsilon-greedy distribution of actions.

/// Turns the outputs of duelling networks `[n, A + 1]`, advantages and then the value of the state, into
/// action values `[n, A]`: value + advantage - mean advantage (Wang and others, 2016).
pub fn combine(outputs: &[f32], q: &mut [f32]) {
    let a = q.len() / (outputs.len() - q.len()).max(1);
    for (row, q) in outputs.chunks_exact(a + 1).zip(q.chunks_exact_mut(a)) {
        let base = row[a] - row[..a].iter().sum::<f32>() / a as f32;
        for (q, advantage) in q.iter_mut().zip(row) {
            *q = base + advantage;
        }
    }
}

/// From the derivative with respect to the action values `[n, A]`, the derivative with respect to the outputs
/// `[n, A + 1]`.
pub fn spread(dq: &[f32], outputs: &mut [f32]) {
    let a = dq.len() / (outputs.len() - dq.len()).max(1);
    for (row, dq) in outputs.chunks_exact_mut(a + 1).zip(dq.chunks_exact(a)) {
        let sum: f32 = dq.iter().sum();
        for (out, dq) in row.iter_mut().zip(dq) {
            *out = dq - sum / a as f32;
        }
        row[a] = sum;
    }
}

/// The allowed choice with the greatest value, the first in case of ties.
pub fn best(q: &[f32], mask: &[bool]) -> usize {
    let mut best = None;
    for (i, (&q, &allowed)) in q.iter().zip(mask).enumerate() {
        if allowed && best.is_none_or(|(_, greatest)| q > greatest) {
            best = Some((i, q));
        }
    }
    best.map_or(0, |(i, _)| i)
}

/// Turns the action values of a row into the log-probabilities of the epsilon-greedy policy, in place;
/// returns the expected value.
pub fn epsilon_greedy(q: &mut [f32], mask: &[bool], epsilon: f32) -> f32 {
    let best = best(q, mask);
    let allowed = mask.iter().filter(|&&allowed| allowed).count().max(1) as f32;
    let mut expected = 0.0;
    for (i, (q, &allowed_here)) in q.iter_mut().zip(mask).enumerate() {
        let share = if allowed_here { epsilon / allowed } else { 0.0 };
        let p = if i == best { 1.0 - epsilon + share } else { share };
        if p > 0.0 {
            expected += p * *q;
        }
        *q = if p > 0.0 { libm::logf(p) } else { f32::NEG_INFINITY };
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duelling_network_adds_up() {
        let outputs = [1.0, 2.0, 6.0, 10.0, 0.0, 0.0, 0.0, -1.0];
        let mut q = [0.0; 6];
        combine(&outputs, &mut q);
        assert_eq!(q, [8.0, 9.0, 13.0, -1.0, -1.0, -1.0]);
        // Its derivative, by differences: q is linear in the outputs.
        let dq = [0.5, -1.0, 2.0, 0.0, 3.0, 1.0];
        let mut back = [0.0; 8];
        spread(&dq, &mut back);
        for i in 0..8 {
            let mut moved = outputs;
            moved[i] += 1.0;
            let mut other = [0.0; 6];
            combine(&moved, &mut other);
            let slope: f32 = other.iter().zip(&q).zip(&dq).map(|((y, x), dq)| (y - x) * dq).sum();
            assert!((slope - back[i]).abs() < 1e-5, "{i}: {slope} {}", back[i]);
        }
    }

    #[test]
    fn masked_choices_are_never_taken() {
        let mask = [false, true, true, false, true];
        let mut row = [9.0, 1.0, 3.0, 8.0, 3.0];
        assert_eq!(best(&row, &mask), 2);
        let expected = epsilon_greedy(&mut row, &mask, 0.3);
        let p: Vec<f32> = row.iter().map(|x| x.exp()).collect();
        for (p, wanted) in p.iter().zip([0.0, 0.1, 0.8, 0.0, 0.1]) {
            assert!((p - wanted).abs() < 1e-6, "{row:?}");
        }
        assert!((expected - (0.1 + 2.4 + 0.3)).abs() < 1e-5);
        let mut row = [1.0, 2.0];
        epsilon_greedy(&mut row, &[true; 2], 0.0);
        assert_eq!(row, [f32::NEG_INFINITY, 0.0]);
    }
}
