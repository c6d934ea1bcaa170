//! Regression trees over the unit cube, and the variance of each in one dimension.

use crate::Settings;
use crate::space::{Parameter, Space};
use runner_pipeline::Values;
use stages_numerics::random::Random;

/// The domain of the random streams of trees.
const DOMAIN: u64 = 0x666f_7265_7374_2031;

/// The greatest depth of a tree.
const DEPTH: usize = 64;

/// A dimension of the space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dimension {
    /// Numbers in [0, 1].
    Number,
    /// Categories, numbered from 0.
    Choice(usize),
}

impl Dimension {
    pub(super) fn new(parameter: &Parameter) -> Self {
        match &parameter.domain.values {
            Values::Choice(choices) => Self::Choice(choices.len()),
            _ => Self::Number,
        }
    }
}

/// The point of settings in the dimensions of a space.
pub(super) fn point(space: &Space, settings: &Settings) -> Vec<f64> {
    let coordinates = space.point(settings).into_iter().zip(&space.parameters);
    let coordinate = |(coordinate, parameter): (Option<f64>, &Parameter)| {
        let coordinate = coordinate.unwrap_or(0.5);
        match Dimension::new(parameter) {
            Dimension::Number => coordinate,
            Dimension::Choice(count) => (coordinate * count as f64).floor().min(count as f64 - 1.0),
        }
    };
    coordinates.map(coordinate).collect()
}

/// The values of a dimension in a leaf.
#[derive(Clone, Debug)]
enum Side {
    /// An interval of numbers.
    Interval(f64, f64),
    /// The categories that are in.
    Categories(Vec<bool>),
}

impl Side {
    fn whole(dimension: &Dimension) -> Self {
        match dimension {
            Dimension::Number => Self::Interval(0.0, 1.0),
            Dimension::Choice(count) => Self::Categories(vec![true; *count]),
        }
    }

    /// The part of the dimension.
    fn size(&self) -> f64 {
        match self {
            Self::Interval(low, high) => high - low,
            Self::Categories(categories) => {
                let inside = categories.iter().filter(|inside| **inside).count();
                inside as f64 / categories.len() as f64
            }
        }
    }

    fn contains(&self, value: f64) -> bool {
        match self {
            Self::Interval(low, high) => *low <= value && value < *high,
            Self::Categories(categories) => categories.get(value as usize).is_some_and(|inside| *inside),
        }
    }
}

/// A cut of a node: numbers below a threshold, or one category, and the rest.
#[derive(Clone, Copy)]
struct Cut {
    dimension: usize,
    at: f64,
    /// True if one category is cut off.
    is_category: bool,
}

impl Cut {
    fn is_first(&self, point: &[f64]) -> bool {
        let value = point[self.dimension];
        if self.is_category {
            value == self.at
        } else {
            value < self.at
        }
    }

    /// The two parts of a box.
    fn split(&self, sides: &[Side]) -> (Vec<Side>, Vec<Side>) {
        let (mut first, mut second) = (sides.to_vec(), sides.to_vec());
        match (&mut first[self.dimension], &mut second[self.dimension]) {
            (Side::Interval(_, high), Side::Interval(low, _)) => (*high, *low) = (self.at, self.at),
            (Side::Categories(one), Side::Categories(others)) => {
                for (category, inside) in one.iter_mut().enumerate() {
                    *inside = category as f64 == self.at;
                }
                others[self.at as usize] = false;
            }
            _ => {}
        }
        (first, second)
    }
}

/// The leaves of a tree: boxes, their volumes and the values there.
pub(super) struct Tree {
    leaves: Vec<(Vec<Side>, f64, f64)>,
    dimensions: Vec<Dimension>,
}

impl Tree {
    /// The tree of a bootstrap sample, grown until the values in a leaf are equal.
    pub(super) fn fit(dimensions: &[Dimension], points: &[Vec<f64>], values: &[f64], number: u64) -> Self {
        let mut random = Random::new(&[DOMAIN, number]);
        let count = points.len();
        let sample: Vec<usize> = (0..count).map(|_| random.below(count as u64) as usize).collect();
        let whole: Vec<Side> = dimensions.iter().map(Side::whole).collect();
        let mut leaves = Vec::new();
        let mut open = vec![(whole, sample, 0)];
        while let Some((sides, sample, depth)) = open.pop() {
            let cut = (depth < DEPTH)
                .then(|| best_cut(dimensions, &sides, points, values, &sample))
                .flatten();
            match cut {
                Some(cut) => {
                    let (inside, rest) = sample.iter().partition(|&&i| cut.is_first(&points[i]));
                    let (first, second) = cut.split(&sides);
                    open.push((first, inside, depth + 1));
                    open.push((second, rest, depth + 1));
                }
                None => {
                    let sum: f64 = sample.iter().map(|&i| values[i]).sum();
                    let volume = sides.iter().map(Side::size).product();
                    leaves.push((sides, volume, sum / sample.len() as f64));
                }
            }
        }
        Self {
            leaves,
            dimensions: dimensions.to_vec(),
        }
    }

    fn mean(&self) -> f64 {
        self.leaves.iter().map(|(_, volume, value)| volume * value).sum()
    }

    /// The variance over the space.
    pub(super) fn variance(&self) -> f64 {
        let mean = self.mean();
        let squares = self
            .leaves
            .iter()
            .map(|(_, volume, value)| volume * (value - mean) * (value - mean));
        squares.sum()
    }

    /// The variance of the mean over all other dimensions.
    pub(super) fn main_effect(&self, dimension: usize) -> f64 {
        let mean = self.mean();
        // The cells between all leaves' bounds, each with a value in it and its size.
        let cells: Vec<(f64, f64)> = match self.dimensions[dimension] {
            Dimension::Choice(count) => (0..count).map(|i| (i as f64, 1.0 / count as f64)).collect(),
            Dimension::Number => {
                let mut bounds = vec![1.0];
                bounds.extend(self.leaves.iter().filter_map(|(sides, ..)| match sides[dimension] {
                    Side::Interval(low, _) => Some(low),
                    Side::Categories(_) => None,
                }));
                bounds.sort_by(f64::total_cmp);
                bounds.dedup();
                bounds
                    .windows(2)
                    .map(|pair| ((pair[0] + pair[1]) / 2.0, pair[1] - pair[0]))
                    .collect()
            }
        };
        let marginal = |at: f64| {
            let inside = self.leaves.iter().filter(|(sides, ..)| sides[dimension].contains(at));
            inside
                .map(|(sides, volume, value)| volume / sides[dimension].size() * value)
                .sum::<f64>()
        };
        let square = |(at, size): (f64, f64)| {
            let difference = marginal(at) - mean;
            size * difference * difference
        };
        cells.into_iter().map(square).sum()
    }
}

/// The cut of a node with the least sum of squared errors; `None` if all values or all points are equal.
fn best_cut(
    dimensions: &[Dimension],
    sides: &[Side],
    points: &[Vec<f64>],
    values: &[f64],
    sample: &[usize],
) -> Option<Cut> {
    let first = values[*sample.first()?];
    if sample.iter().all(|&i| values[i] == first) {
        return None;
    }
    let count = sample.len() as f64;
    // Values are taken from their mean, so that sums of squares do not cancel.
    let mean = sample.iter().map(|&i| values[i]).sum::<f64>() / count;
    let total: f64 = sample.iter().map(|&i| values[i] - mean).sum();
    let mut best: Option<(f64, Cut)> = None;
    // The squared sum of each side over its count is to be large: the errors' sum is a constant less it.
    let mut consider = |sum: f64, inside: f64, cut: Cut| {
        let rest = total - sum;
        let gain = sum * sum / inside + rest * rest / (count - inside);
        if best.is_none_or(|(most, _)| gain > most) {
            best = Some((gain, cut));
        }
    };
    let mut sorted = sample.to_vec();
    for (dimension, kind) in dimensions.iter().enumerate() {
        sorted.sort_by(|&left, &right| {
            points[left][dimension]
                .total_cmp(&points[right][dimension])
                .then(left.cmp(&right))
        });
        let (mut sum, mut inside) = (0.0, 0.0);
        for group in sorted.chunk_by(|&left, &right| points[left][dimension] == points[right][dimension]) {
            let own: f64 = group.iter().map(|&i| values[i] - mean).sum();
            let here = points[group[0]][dimension];
            if let Dimension::Choice(_) = kind {
                let cut = Cut {
                    dimension,
                    at: here,
                    is_category: true,
                };
                if group.len() < sorted.len() {
                    consider(own, group.len() as f64, cut);
                }
                continue;
            }
            if inside > 0.0 {
                let before = points[sorted[inside as usize - 1]][dimension];
                let at = (before + here) / 2.0;
                let Side::Interval(low, high) = sides[dimension] else {
                    continue;
                };
                // Neighbours whose mean rounds to one of them are not told apart.
                if low < at && at < high && before < at && at <= here {
                    consider(
                        sum,
                        inside,
                        Cut {
                            dimension,
                            at,
                            is_category: false,
                        },
                    );
                }
            }
            sum += own;
            inside += group.len() as f64;
        }
    }
    best.map(|(_, cut)| cut)
}
