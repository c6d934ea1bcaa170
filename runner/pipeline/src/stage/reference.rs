//! References to stages and their points: `train`, `train[seed=1]`, `train[*].policy`.

use crate::text::{spell, yaml};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// A selection of points of a matrix stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// `[seed=1]`: the axis is fixed.
    pub picks: Vec<(String, Json)>,
    /// `[seed=*]`: all values of the axis.
    pub all_of: BTreeSet<String>,
    /// `[*]`: all points.
    pub all: bool,
}

impl Select {
    /// Parses the text between the brackets. Values are YAML scalars: `1e-4` is `0.0001`.
    ///
    /// # Errors
    /// If the text is not a list of `AXIS=VALUE`, `AXIS=*` and `*`.
    pub fn parse(inside: &str) -> Result<Self, String> {
        let mut select = Self::default();
        for part in inside.split(',').map(str::trim) {
            if part == "*" {
                select.all = true;
                continue;
            }
            match part.split_once('=').map(|(axis, value)| (axis.trim(), value.trim())) {
                Some((axis, "*")) => {
                    select.all_of.insert(axis.to_owned());
                }
                Some((axis, value)) if !axis.is_empty() && !value.is_empty() => {
                    if select.picks.iter().any(|(known, _)| known == axis) {
                        return Err(format!("the axis `{axis}` is given twice"));
                    }
                    let value = yaml::scalar(value).map_err(|(message, _)| message)?;
                    select.picks.push((axis.to_owned(), value));
                }
                _ => return Err(format!("`[{inside}]` does not select points")),
            }
        }
        Ok(select)
    }

    /// True if the point is selected.
    pub fn has(&self, point: &BTreeMap<String, Json>) -> bool {
        let is_picked =
            |(axis, wanted): &(String, Json)| point.get(axis).is_some_and(|value| same(value, wanted));
        self.picks.iter().all(is_picked) && self.all_of.iter().all(|axis| point.contains_key(axis))
    }

    /// The names of the axes that occur in the selection.
    pub(crate) fn axes(&self) -> impl Iterator<Item = &str> {
        let picked = self.picks.iter().map(|(axis, _)| axis.as_str());
        picked.chain(self.all_of.iter().map(String::as_str))
    }
}

/// Parses a reference such as `stage[seed=1].output` to the stage, the selected points and the output.
///
/// # Errors
/// If the text does not have that form.
pub fn parse_reference(text: &str) -> Result<(&str, Select, Option<&str>), String> {
    let end = text.find(['[', '.']).unwrap_or(text.len());
    let (stage, mut rest) = text.split_at(end);
    let mut select = Select::default();
    if let Some(tail) = rest.strip_prefix('[') {
        let (inside, after) = tail.split_once(']').ok_or("the `[` is not closed")?;
        rest = after;
        select = Select::parse(inside)?;
    }
    match rest.strip_prefix('.') {
        Some(output) if !output.is_empty() => Ok((stage, select, Some(output))),
        None if rest.is_empty() && !stage.is_empty() => Ok((stage, select, None)),
        _ => Err(format!("`{text}` is not a valid reference")),
    }
}

/// True if a value of a matrix equals the value in a reference.
pub fn same(value: &Json, wanted: &Json) -> bool {
    value == wanted || spell(value).is_some_and(|text| spell(wanted).is_some_and(|wanted| text == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        let parse = parse_reference;
        let (stage, select, output) = parse("train[seed=1, lr=0.1].policy").unwrap();
        assert_eq!((stage, output), ("train", Some("policy")));
        assert_eq!(
            select.picks,
            [("seed".to_owned(), 1.into()), ("lr".to_owned(), 0.1.into())]
        );
        assert!(parse("a[*]").unwrap().1.all);
        assert!(parse("a[x=*].y").unwrap().1.all_of.contains("x"));
        for bad in [
            "",
            ".",
            "a.",
            "a[",
            "a[]",
            "a[x]",
            "a[=1]",
            "a[x=]",
            "a]x[",
            "[x=1]",
            "a[x=1]y",
            "a[x=1,x=2]",
            "a[,]",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let point = BTreeMap::from([("lr".to_owned(), Json::from(1e-4)), ("seed".to_owned(), Json::from(1))]);
        for (inside, is_selected) in [
            ("lr=1e-4", true),
            ("lr=0.0001, seed=*", true),
            ("lr=0.00010,seed=1", true),
            ("*", true),
            ("lr=1e-3", false),
            ("lr=1e-4,layers=*", false),
        ] {
            assert_eq!(Select::parse(inside).unwrap().has(&point), is_selected, "{inside}");
        }
    }
}
