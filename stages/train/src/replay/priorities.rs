//! A tree of sums over priorities (Schaul and others, "Prioritized experience replay", 2016): drawing and
//! changing a row take log N steps.

/// A binary tree: nodes from 1 on are sums of their two children, and the leaves begin at `size`.
#[derive(Debug, Default)]
pub(crate) struct Priorities {
    size: usize,
    sums: Vec<f32>,
}

impl Priorities {
    /// The tree over `leaves`; every sum depends on the leaves alone, not on the order in which they were
    /// set.
    pub(crate) fn new(leaves: &[f32]) -> Self {
        let size = leaves.len().next_power_of_two();
        let mut sums = vec![0.0; 2 * size];
        sums[size..size + leaves.len()].copy_from_slice(leaves);
        for i in (1..size).rev() {
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        }
        Self { size, sums }
    }

    /// Sets the priority of a row.
    pub(crate) fn set(&mut self, row: usize, priority: f32) {
        let mut i = self.size + row;
        self.sums[i] = priority;
        while i > 1 {
            i /= 2;
            self.sums[i] = self.sums[2 * i] + self.sums[2 * i + 1];
        }
    }

    /// The row among the first `rows` on which a number in [0, 1) falls.
    pub(crate) fn find(&self, uniform: f64, rows: usize) -> usize {
        let mut left = uniform * f64::from(self.total());
        let mut i = 1;
        while i < self.size {
            i *= 2;
            let sum = f64::from(self.sums[i]);
            // Never into an empty half, into which rounding might lead.
            if left >= sum && self.sums[i + 1] > 0.0 {
                left -= sum;
                i += 1;
            }
        }
        (i - self.size).min(rows - 1)
    }

    /// The priority of a row.
    pub(crate) fn of(&self, row: usize) -> f32 {
        self.sums[self.size + row]
    }

    /// The sum of all priorities.
    pub(crate) fn total(&self) -> f32 {
        self.sums.get(1).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    #[test]
    fn rows_are_drawn_as_often_as_their_priority_says() {
        let mut leaves = vec![0.0; 11];
        let mut tree = Priorities::new(&leaves);
        let mut random = Random::new(&[3]);
        for _ in 0..100 {
            let (row, priority) = (random.below(11) as usize, random.uniform() as f32);
            leaves[row] = priority;
            tree.set(row, priority);
        }
        leaves[4] = 0.0;
        tree.set(4, 0.0);
        assert_eq!(tree.sums, Priorities::new(&leaves).sums);
        let total: f32 = leaves.iter().sum();
        assert!((tree.total() / total - 1.0).abs() < 1e-6);
        let mut counts = [0.0; 11];
        let n = 200_000;
        for _ in 0..n {
            counts[tree.find(random.uniform(), 11)] += 1.0;
        }
        for (count, leaf) in counts.iter().zip(&leaves) {
            assert!(
                (count / f64::from(n) - f64::from(leaf / total)).abs() < 0.005,
                "{counts:?} {leaves:?}"
            );
        }
    }
}
