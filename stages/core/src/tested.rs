//! The test data of environments, as far as configurations tell: two evaluations are of the same test data
//! unless they are known to be apart.

use datasets::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The test data of an environment, at plan time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The ports at which the market's prices may arrive; the first that is connected counts.
    pub ports: &'static [&'static str],
    /// The part of the market that is tested.
    pub part: TestPart,
}

/// The part of a market that is tested.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct TestPart {
    /// The chosen symbols; empty where none are named.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub symbols: BTreeSet<String>,
    /// The worlds that are held out; empty where none are named.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub worlds: BTreeSet<String>,
    /// The first test date, where one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Date>,
    /// The last test date, where one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Date>,
}

impl TestPart {
    /// True if two parts have no test data in common for certain: their dates do not overlap, or both name
    /// symbols or worlds, and none in common.
    pub fn is_apart(&self, other: &Self) -> bool {
        let apart =
            |a: &BTreeSet<String>, b: &BTreeSet<String>| !a.is_empty() && !b.is_empty() && a.is_disjoint(b);
        let ends_before = |a: &Self, b: &Self| a.to.zip(b.from).is_some_and(|(to, from)| to < from);
        apart(&self.symbols, &other.symbols)
            || apart(&self.worlds, &other.worlds)
            || ends_before(self, other)
            || ends_before(other, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_apart_only_where_both_say_so() {
        let part = |symbols: &[&str], worlds: &[&str], from: Option<i32>, to: Option<i32>| TestPart {
            symbols: symbols.iter().map(|name| (*name).to_owned()).collect(),
            worlds: worlds.iter().map(|name| (*name).to_owned()).collect(),
            from: from.map(Date),
            to: to.map(Date),
        };
        let apart = |a: &TestPart, b: &TestPart| {
            assert_eq!(a.is_apart(b), b.is_apart(a));
            a.is_apart(b)
        };
        let dates = |from, to| part(&[], &[], from, to);
        assert!(apart(&dates(Some(0), Some(9)), &dates(Some(10), None)));
        assert!(!apart(&dates(Some(0), Some(9)), &dates(Some(9), Some(20))));
        assert!(!apart(&dates(Some(0), None), &dates(Some(10), Some(20))));
        assert!(!apart(&dates(Some(0), Some(9)), &TestPart::default()));
        assert!(apart(
            &part(&["A"], &[], None, None),
            &part(&["B", "C"], &[], None, None)
        ));
        assert!(!apart(
            &part(&["A", "B"], &[], None, None),
            &part(&["B"], &[], None, None)
        ));
        assert!(!apart(&part(&["A"], &[], None, None), &dates(Some(0), Some(9))));
        assert!(apart(&part(&[], &["u"], None, None), &part(&[], &["v"], None, None)));
    }
}
