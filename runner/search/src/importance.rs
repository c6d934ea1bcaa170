//! The importance of settings: functional ANOVA over a random forest (Hutter, Hoos and Leyton-Brown 2014).
//!
//! Each tree of the forest is a function over the whole space whose variance splits exactly into that of each
//! setting alone, its main effect, and of their interactions. Values are spread evenly over a setting's range,
//! as a random search draws them, wherever the search itself looked. A setting that is not active is at the
//! middle of its range.

mod forest;

use crate::record::Record;
use crate::space::Space;
use forest::{Dimension, Tree};
use serde::Serialize;

/// The trees of the forest.
const TREES: u64 = 64;

/// The trials that a rung needs for its results to be those that are explained.
const TRIALS: usize = 20;

/// The importance of the settings of a search for one objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Importance {
    /// The rung whose results are explained: the highest with at least 20 trials, else the one with the most.
    pub rung: usize,
    /// The number of its trials.
    pub trials: usize,
    /// The settings, each with its part of the variance, the largest first.
    pub settings: Vec<(String, f64)>,
    /// The part of the variance that is of several settings together.
    pub interactions: f64,
}

impl Record {
    /// The importance of the settings for an objective. `None` if there are fewer than four trials without
    /// failure, or all are equal.
    pub fn importance(&self, objective: usize) -> Option<Importance> {
        let space = Space::new(&self.header.search.over);
        let rows = self.trials();
        let sound = |rung: usize| rows.iter().filter(|row| row.at(rung).is_some()).count();
        let rungs = 0..self.header.rungs.len();
        let enough = rungs.clone().rev().find(|rung| sound(*rung) >= TRIALS);
        let rung = enough.or_else(|| rungs.max_by_key(|rung| sound(*rung)))?;
        let (mut points, mut losses) = (Vec::new(), Vec::new());
        for row in &rows {
            if let Some(loss) = row.at(rung).and_then(|result| result.score.losses.get(objective)) {
                points.push(forest::point(&space, &row.settings));
                losses.push(*loss);
            }
        }
        if points.len() < 4 {
            return None;
        }
        let dimensions: Vec<Dimension> = space.parameters.iter().map(Dimension::new).collect();
        let shares = main_effects(&dimensions, &points, &losses)?;
        let interactions = (1.0 - shares.iter().sum::<f64>()).max(0.0);
        let names = space.parameters.into_iter().map(|parameter| parameter.name);
        let mut settings: Vec<(String, f64)> = names.zip(shares).collect();
        settings.sort_by(|left, right| right.1.total_cmp(&left.1));
        Some(Importance {
            rung,
            trials: points.len(),
            settings,
            interactions,
        })
    }
}

/// The part of the variance that is each dimension's main effect: the mean over the trees of a forest that is
/// fitted to `values` at `points`. `None` if all trees are constant.
fn main_effects(dimensions: &[Dimension], points: &[Vec<f64>], values: &[f64]) -> Option<Vec<f64>> {
    let mut shares = vec![0.0; dimensions.len()];
    let mut trees = 0.0;
    for number in 0..TREES {
        let leaves = Tree::fit(dimensions, points, values, number);
        let total = leaves.variance();
        if total > 0.0 {
            trees += 1.0;
            for (dimension, share) in shares.iter_mut().enumerate() {
                *share += leaves.main_effect(dimension) / total;
            }
        }
    }
    shares.iter_mut().for_each(|share| *share /= trees);
    (trees > 0.0).then_some(shares)
}
