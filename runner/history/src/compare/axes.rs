//! An index of matrix points: those whose axes all occur in others, with the same values.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A point of a matrix: values by axis.
pub(super) type Axes = BTreeMap<String, Value>;

/// The axes of a point by which points are looked up, and their values.
type Names<'a> = BTreeSet<&'a str>;

fn names(axes: &Axes) -> Names<'_> {
    axes.keys().map(String::as_str).collect()
}

/// The values of a point on some axes, all of which it has.
fn values<'a>(axes: &'a Axes, on: &Names<'_>) -> Vec<&'a Value> {
    let on = axes.iter().filter(|(name, _)| on.contains(name.as_str()));
    on.map(|(_, value)| value).collect()
}

/// Items by the values of their points, for each set of axes. A matrix has few sets of axes, so that a
/// look-up costs about as much as what it finds.
pub(super) struct Index<'a>(BTreeMap<Names<'a>, HashMap<Vec<&'a Value>, Vec<usize>>>);

impl<'a> Index<'a> {
    /// Indexes items by their points; an item is its position.
    pub(super) fn new(points: impl Iterator<Item = &'a Axes>) -> Self {
        let mut index = Self(BTreeMap::new());
        for (i, axes) in points.enumerate() {
            let names = names(axes);
            let values = axes.values().collect();
            let items = index.0.entry(names).or_default().entry(values).or_default();
            items.push(i);
        }
        index
    }

    /// The items all of whose axes `whole` has, with the same values; ascending.
    pub(super) fn within(&self, whole: &Axes) -> Vec<usize> {
        let own = names(whole);
        let sets = self.0.iter().filter(|(names, _)| names.is_subset(&own));
        let items = sets.filter_map(|(names, items)| items.get(&values(whole, names)));
        let mut found: Vec<usize> = items.flatten().copied().collect();
        found.sort_unstable();
        found
    }
}

/// The different points, in their order, without those whose axes are a part of another one's, with the same
/// values.
pub(super) fn widest<'a>(points: impl Iterator<Item = &'a Axes>) -> Vec<&'a Axes> {
    let mut seen = HashSet::new();
    let mut points: Vec<&Axes> = points.filter(|axes| seen.insert(*axes)).collect();
    let sets: BTreeSet<Names<'_>> = points.iter().map(|axes| names(axes)).collect();
    let mut parts: HashMap<&Names<'_>, HashSet<Vec<&Value>>> = HashMap::new();
    for axes in &points {
        let own = names(axes);
        for part in sets
            .iter()
            .filter(|part| part.len() < own.len() && part.is_subset(&own))
        {
            parts.entry(part).or_default().insert(values(axes, part));
        }
    }
    points.retain(|axes| {
        let values: Vec<&Value> = axes.values().collect();
        parts.get(&names(axes)).is_none_or(|parts| !parts.contains(&values))
    });
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    fn within(part: &Axes, whole: &Axes) -> bool {
        part.iter().all(|(axis, value)| whole.get(axis) == Some(value))
    }

    proptest! {
        #[test]
        fn it_finds_what_comparing_all_pairs_finds(
            points in vec(btree_map("[a-c]", 0..3_u8, 0..4), 0..20)
        ) {
            let point = |point: &BTreeMap<String, u8>| -> Axes {
                point.iter().map(|(name, value)| (name.clone(), Value::from(*value))).collect()
            };
            let points: Vec<Axes> = points.iter().map(point).collect();
            let index = Index::new(points.iter());
            for whole in &points {
                let all = (0..points.len()).filter(|&i| within(&points[i], whole));
                prop_assert_eq!(index.within(whole), all.collect::<Vec<_>>());
            }
            let mut expected: Vec<&Axes> = Vec::new();
            for axes in &points {
                let is_part = points.iter().any(|other| other.len() > axes.len() && within(axes, other));
                if !is_part && !expected.contains(&axes) {
                    expected.push(axes);
                }
            }
            prop_assert_eq!(widest(points.iter()), expected);
        }
    }
}
