//! Parameters that differ, and those that differ only as a consequence of others.

use super::point::{Point, spell};
use std::collections::{BTreeSet, HashSet};

/// The parameters that distinguish repetitions.
#[derive(Clone, Debug)]
pub(super) struct Repeats {
    names: Vec<String>,
}

impl Repeats {
    /// Collects the parameters called `seed` and those with the given names; none with `each`.
    pub(super) fn new(over: &[String], each: bool) -> Self {
        let seed = (!each).then(|| "seed".to_owned());
        Self {
            names: seed.into_iter().chain(over.iter().cloned()).collect(),
        }
    }

    /// True if the parameter distinguishes repetitions: `matrix.seed`, `params.seed`, `train.with.seed`.
    pub(super) fn has(&self, parameter: &str) -> bool {
        let last = parameter.rsplit('.').next().unwrap_or(parameter);
        self.names.iter().any(|name| name == last || name == parameter)
    }

    /// The parameters' names.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The values of the repetition parameters at a point.
    pub(super) fn of<'p>(&self, point: &'p Point) -> Vec<(&'p str, String)> {
        let ours = point.parameters.iter().filter(|(name, _)| self.has(name));
        ours.map(|(name, value)| (name.as_str(), spell(value))).collect()
    }

    /// The values of the repetition parameters at any of the points.
    pub(super) fn values(&self, points: &[Point]) -> HashSet<String> {
        let all = points.iter().flat_map(|point| &point.parameters);
        let ours = all.filter(|(name, _)| self.has(name));
        ours.map(|(_, value)| spell(value)).collect()
    }

    /// The configuration of a point without the words in which it may differ from that of a point of another
    /// run that [`unite`](Self::unite) unites it with: those that have one of `values` in them.
    pub(super) fn configuration<'p>(
        &self,
        point: &'p Point,
        values: &HashSet<String>,
    ) -> Vec<(&'p str, String)> {
        let varies =
            |word: &str| values.contains(word) || words(word, "").iter().any(|w| values.contains(*w));
        let rest = |value| -> String {
            let text = spell(value);
            let words = words(&text, INSIDE).into_iter();
            words.map(|word| if varies(word) { "\0" } else { word }).collect()
        };
        let decides = |name: &str| rank(name) == 2 && !self.has(name);
        let fields = point.parameters.iter().filter(|(name, _)| decides(name));
        fields.map(|(name, value)| (name.as_str(), rest(value))).collect()
    }

    /// True if two points are equal in all other parameters.
    pub(super) fn unite(&self, a: &Point, b: &Point) -> bool {
        // Within a run, everything else follows from the axes.
        let decides = |name: &str| !self.has(name) && (a.run != b.run || rank(name) == 0);
        let agree = |name: &String| !decides(name) || follows(a, b, name, |by| self.has(by));
        let missing = |name: &String| decides(name) && !a.parameters.contains_key(name);
        a.parameters.keys().all(agree)
            && !b.parameters.keys().any(missing)
            && a.stage_names() == b.stage_names()
    }
}

/// The characters besides letters and digits that numbers and paths have.
const INSIDE: &str = "_.+-/";

/// The sort rank: axes, then parameters of the pipeline, then configuration.
pub fn rank(name: &str) -> usize {
    if name.starts_with("matrix.") {
        0
    } else if name.starts_with("params.") {
        1
    } else {
        2
    }
}

/// True if a parameter is equal at two points, or is a configuration field that differs only where a
/// parameter accepted by `by` differs, and in the same manner.
fn follows(a: &Point, b: &Point, name: &str, by: impl Fn(&str) -> bool) -> bool {
    match (a.parameters.get(name), b.parameters.get(name)) {
        (Some(left), Some(right)) if left == right => true,
        (Some(left), Some(right)) if rank(name) == 2 => {
            let (left, right) = (spell(left), spell(right));
            let explained = |left: &str, right: &str| {
                let is = |value: Option<&_>, word: &str| value.is_some_and(|value| spell(value) == word);
                a.parameters.iter().any(|(name, value)| {
                    by(name) && is(Some(value), left) && is(b.parameters.get(name), right)
                })
            };
            // Whole numbers and paths are compared first; `seed_1.json` is more than one word.
            alike(&left, &right, INSIDE, &|left, right| {
                explained(left, right) || alike(left, right, "", &explained)
            })
        }
        (None, None) => true,
        _ => false,
    }
}

/// True if two texts have as many words, and `explained` holds for every pair that differs.
fn alike(left: &str, right: &str, inside: &str, explained: &dyn Fn(&str, &str) -> bool) -> bool {
    let (left, right) = (words(left, inside), words(right, inside));
    let mut pairs = left.iter().zip(&right);
    left.len() == right.len() && pairs.all(|(left, right)| left == right || explained(left, right))
}

/// The words of a text into which values may have been interpolated, such as the command of an external
/// program: splits between letters, digits and the characters `inside` a word on one side, and all others on
/// the other.
fn words<'t>(text: &'t str, inside: &str) -> Vec<&'t str> {
    let is_word = |c: char| c.is_alphanumeric() || inside.contains(c);
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = is_word(first);
        let end = rest.find(|c: char| is_word(c) != kind).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        words.push(word);
        rest = tail;
    }
    words
}

/// The parameters that are not the same at all points.
#[derive(Clone, Debug, Default)]
pub(super) struct Differing {
    /// Axes, parameters of the pipeline, and configuration fields that differ by themselves.
    pub leading: Vec<String>,
    /// Configuration fields that differ as an axis or a parameter of the pipeline does.
    pub following: Vec<String>,
}

impl Differing {
    pub(super) fn of(points: &[Point]) -> Self {
        let mut found = Self::default();
        let Some((first, others)) = points.split_first() else {
            return found;
        };
        for name in all(points) {
            let of = |point: &Point| point.parameters.get(&name).cloned();
            if others.iter().all(|other| of(other) == of(first)) {
                continue;
            }
            let leads = |by: &str| rank(by) < 2;
            // Within a run, the configuration of a stage follows from the point.
            let kin = |other: &Point| first.run == other.run && first.stage_names() == other.stage_names();
            let led = rank(&name) == 2
                && others
                    .iter()
                    .all(|other| kin(other) || follows(first, other, &name, leads));
            let list = if led { &mut found.following } else { &mut found.leading };
            list.push(name);
        }
        found
    }
}

/// The names of all parameters, axes first.
pub(super) fn all(points: &[Point]) -> Vec<String> {
    let names: BTreeSet<&String> = points.iter().flat_map(|point| point.parameters.keys()).collect();
    let mut names: Vec<String> = names.into_iter().cloned().collect();
    names.sort_by_key(|name| rank(name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn point(run: &str, parameters: Value) -> Point {
        let fields = parameters.as_object().unwrap().clone();
        Point {
            run: run.to_owned(),
            called: run.to_owned(),
            place: String::new(),
            stages: Vec::new(),
            parameters: fields.into_iter().collect(),
            status: "done",
            run_status: runner_engine::RunStatus::Done,
            error: None,
        }
    }

    #[test]
    fn repetitions_differ_in_seeds_and_what_follows_from_them() {
        let seeds = Repeats::new(&[], false);
        let a = point(
            "a",
            json!({ "params.seed": 1, "params.lr": 0.1, "x.with.command": "go --seed 1 --lr 0.1 > \
                out_1.txt" }),
        );
        let unite = |seeds: &Repeats, parameters| seeds.unite(&a, &point("b", parameters));
        let like = |seed: u32, lr: f64, command: &str| {
            json!({ "params.seed": seed, "params.lr": lr,
            "x.with.command": command })
        };
        assert!(unite(&seeds, like(2, 0.1, "go --seed 2 --lr 0.1 > out_2.txt")));
        assert!(!unite(&seeds, like(2, 0.1, "go --seed 2 --lr 0.1 > out_3.txt")));
        assert!(!unite(&seeds, like(2, 0.1, "go --seed 2 --lr 0.1")));
        assert!(!unite(&seeds, like(2, 0.2, "go --seed 2 --lr 0.2 > out_2.txt")));
        assert!(!unite(&seeds, json!({ "params.seed": 2, "params.lr": 0.1 })));
        let over = Repeats::new(&["lr".to_owned()], false);
        assert!(unite(&over, like(2, 0.2, "go --seed 2 --lr 0.2 > out_2.txt")));
        // Within a run, only axes decide.
        let other = point(
            "a",
            json!({ "params.seed": 1, "params.lr": 0.1, "x.with.command": "anything" }),
        );
        assert!(seeds.unite(&a, &other));
    }

    #[test]
    fn configuration_that_follows_is_told_from_what_differs_by_itself() {
        let of = |lr: f64, config: Value| {
            let mut all = json!({ "params.lr": lr, "params.same": 1, "t.with.learning_rate": lr });
            all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
            all
        };
        let points = [
            point("a", of(0.1, json!({ "t.with.steps": 5, "t.with.only": true }))),
            point("b", of(0.2, json!({ "t.with.steps": 6 }))),
        ];
        let differing = Differing::of(&points);
        assert_eq!(differing.leading, ["params.lr", "t.with.only", "t.with.steps"]);
        assert_eq!(differing.following, ["t.with.learning_rate"]);
        assert!(Differing::of(&[]).leading.is_empty() && Differing::of(&points[..1]).leading.is_empty());
    }

    #[test]
    fn words_cover_the_whole_text() {
        for text in ["", "a", " a", "--x=1.5 'y'", "é~ß"] {
            assert_eq!(words(text, INSIDE).concat(), text);
            assert_eq!(words(text, "").concat(), text);
        }
        assert_eq!(words("x=1.5 a_1", INSIDE), ["x", "=", "1.5", " ", "a_1"]);
        assert_eq!(words("a_1", ""), ["a", "_", "1"]);
    }

    proptest! {
        #[test]
        fn points_that_unite_have_the_same_configuration(
            seeds in vec(prop_oneof![Just("1"), Just("2"), Just("1.5"), Just("a")], 4),
            texts in vec("[12a.=-]{0,6}", 4),
        ) {
            let of = |i: usize| {
                json!({ "params.seed": seeds[i], "x.with.seed": texts[3 - i], "x.with.command": texts[i] })
            };
            let points: Vec<Point> = (0..4).map(|i| point(&i.to_string(), of(i))).collect();
            let repeats = Repeats::new(&[], false);
            let values = repeats.values(&points);
            for (a, b) in points.iter().flat_map(|a| points.iter().map(move |b| (a, b))) {
                if repeats.unite(a, b) {
                    prop_assert_eq!(repeats.configuration(a, &values), repeats.configuration(b, &values));
                }
            }
        }
    }
}
