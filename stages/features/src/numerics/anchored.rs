//! Squared distances from the mean over a window, by running sums about an anchor.

use super::machine::Memory;
use super::rolling::Ring;

/// Sums about the means of a window.
#[derive(Clone, Copy, Debug)]
pub struct Moments<const K: usize> {
    /// Of squared distances from the mean, of each series.
    pub squares: [f64; K],
    /// Of the products of the distances of the first and the last series.
    pub products: f64,
}

/// Running sums of the distances of `K` series from anchors near their means, of their squares and of the product of the first and the last. The
/// anchors are set anew, and the sums built anew, where the difference of sums that is the variance would lose digits, where a value has left beside
/// which the rest was lost, and after 32 windows (TA-Lib's way since 0.7).
#[derive(Clone, Debug)]
pub struct Anchored<const K: usize> {
    rings: [Ring; K],
    sums: Sums<K>,
    /// The squares of what left last.
    left: [f64; K],
    seen: usize,
    /// Rows until the anchors are set anew at the latest.
    rest: usize,
    n: usize,
    /// One over the number of values.
    pub share: f64,
}

#[derive(Clone, Copy, Debug)]
struct Sums<const K: usize> {
    anchors: [f64; K],
    distances: [f64; K],
    squares: [f64; K],
    product: f64,
}

impl<const K: usize> Sums<K> {
    fn about(anchors: [f64; K]) -> Self {
        Self {
            anchors,
            distances: [0.0; K],
            squares: [0.0; K],
            product: 0.0,
        }
    }

    #[inline]
    fn distances(&self, values: [f64; K]) -> [f64; K] {
        std::array::from_fn(|k| values[k] - self.anchors[k])
    }

    #[inline]
    fn add(&mut self, values: [f64; K]) {
        let distances = self.distances(values);
        for k in 0..K {
            self.distances[k] += distances[k];
            self.squares[k] += distances[k] * distances[k];
        }
        self.product += distances[0] * distances[K - 1];
    }

    /// Gives the squares of the distances of what is taken.
    #[inline]
    fn take(&mut self, values: [f64; K]) -> [f64; K] {
        let distances = self.distances(values);
        for k in 0..K {
            self.distances[k] -= distances[k];
            self.squares[k] -= distances[k] * distances[k];
        }
        self.product -= distances[0] * distances[K - 1];
        distances.map(|distance| distance * distance)
    }

    #[inline]
    fn moments(&self, share: f64) -> Moments<K> {
        let sums = self.distances;
        Moments {
            squares: std::array::from_fn(|k| self.squares[k] - sums[k] * sums[k] * share),
            products: self.product - sums[0] * sums[K - 1] * share,
        }
    }

    /// About the means of a window.
    #[cold]
    fn anew(rings: &[Ring; K], n: usize, share: f64) -> Self {
        let mut sums = Self::about(rings.each_ref().map(|ring| ring.in_order().sum::<f64>() * share));
        for i in (0..n).rev() {
            sums.add(rings.each_ref().map(|ring| ring.ago(i)));
        }
        sums
    }
}

impl<const K: usize> Anchored<K> {
    pub fn new(n: usize) -> Self {
        Self {
            rings: std::array::from_fn(|_| Ring::new(n)),
            sums: Sums::about([0.0; K]),
            left: [0.0; K],
            seen: 0,
            rest: 32 * n,
            n,
            share: 1.0 / n as f64,
        }
    }

    /// Takes a value of each series; the moments of the last `n`, once there are so many.
    #[inline]
    pub fn next(&mut self, values: [f64; K]) -> Option<Moments<K>> {
        if self.seen == 0 {
            self.sums.anchors = values;
        }
        for (ring, value) in self.rings.iter_mut().zip(values) {
            ring.replace(value);
        }
        self.sums.add(values);
        if self.seen + 1 < self.n {
            self.seen += 1;
            return None;
        }
        self.seen = self.n;
        let mut moments = self.sums.moments(self.share);
        self.rest -= 1;
        let stale = (0..K).fold(self.rest == 0, |stale, k| {
            let squares = self.sums.squares[k];
            stale | (moments.squares[k] < 1e-6 * squares) | (self.left[k] > 1e6 * squares)
        });
        if stale {
            self.rest = 32 * self.n;
            self.sums = Sums::anew(&self.rings, self.n, self.share);
            moments = self.sums.moments(self.share);
            for k in 0..K {
                // All values are one: what is left is the rounding of their mean.
                if moments.squares[k] < 1e-12 * self.sums.squares[k] {
                    moments.squares[k] = 0.0;
                }
            }
        }
        self.left = self.sums.take(self.rings.each_ref().map(Ring::oldest));
        Some(moments)
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        self.rings.iter_mut().for_each(|ring| ring.visit(memory));
        let sums = &mut self.sums;
        for numbers in [
            &mut sums.anchors,
            &mut sums.distances,
            &mut sums.squares,
            &mut self.left,
        ] {
            memory.numbers(numbers);
        }
        memory.number(&mut sums.product);
        memory.count(&mut self.seen, self.n);
        memory.count(&mut self.rest, 32 * self.n);
        self.rest = self.rest.max(1);
    }
}
