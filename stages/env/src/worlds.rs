//! The configuration of worlds: the underlyings that an environment holds, and the data that is held out of
//! training.

use datasets::{Date, DateRange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, StageError};

/// The underlyings of the chain that are worlds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Symbols {
    /// `all`: every one, in the order of the chain.
    All(All),
    /// These.
    Named(Vec<String>),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum All {
    /// Every underlying of the chain.
    All,
}

/// Data that is held out of training: `{ from, to }` of every world, whole `worlds`, or these dates of these
/// worlds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HeldOut {
    /// The worlds: a number of them, or their symbols. The last of the environment's worlds are those of
    /// `test`, and those before them of `validation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worlds: Option<WorldSet>,
    /// The first date; without it, from the first on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Date>,
    /// The last date; without it, up to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Date>,
    /// Of `test` with `to`: if true, the last step ends on the first snapshot after `to`, where there is one,
    /// on which accounts are valued and nothing is decided. So no step is left out between the folds of a
    /// walk-forward, whose axis sets it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub closes_after: bool,
}

/// The ends of ranges that are open.
pub(crate) const FIRST: Date = Date(i32::MIN / 4);
pub(crate) const LAST: Date = Date(i32::MAX / 4);

/// Worlds by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WorldSet {
    /// So many.
    Number(usize),
    /// The worlds of these symbols.
    Named(Vec<String>),
}

impl From<DateRange> for HeldOut {
    fn from(range: DateRange) -> Self {
        Self {
            from: Some(range.from),
            to: Some(range.to),
            ..Self::default()
        }
    }
}

impl HeldOut {
    /// The dates, where some are given.
    pub(crate) fn dates(&self) -> Option<DateRange> {
        (self.from.is_some() || self.to.is_some()).then(|| DateRange {
            from: self.from.unwrap_or(FIRST),
            to: self.to.unwrap_or(LAST),
        })
    }

    pub(crate) fn validate(&self, field: &str) -> Result<(), ConfigProblem> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from > to
        {
            return Err(ConfigProblem::new(field, format!("{from} is after {to}"))
                .hint("both ends are included; write the earlier first"));
        }
        ConfigProblem::new(field, "`closes_after` is of test dates that end at `to`")
            .hint("remove it, or give `to`")
            .when(self.closes_after && (self.to.is_none() || field != "test"))?;
        ConfigProblem::new(field, "it names neither worlds nor dates")
            .hint("give { worlds: 8 }, or { from: …, to: … }, or both")
            .when(self.worlds.is_none() && self.dates().is_none())
    }
}

/// The part of each world in the split, by the world's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    pub is_test: bool,
    pub is_validation: bool,
}

/// The roles of worlds: a world has a role where `test` or `validation` names it; one that names no worlds
/// concerns each of them.
pub(crate) fn roles(
    symbols: &[String],
    test: Option<&HeldOut>,
    validation: Option<&HeldOut>,
) -> Result<Vec<Role>, StageError> {
    let n = symbols.len();
    let chosen = |field: &str, set: &WorldSet, end: usize| -> Result<Vec<usize>, StageError> {
        match set {
            WorldSet::Number(number) if *number > 0 && *number <= end => Ok((end - number..end).collect()),
            WorldSet::Number(number) => Err(StageError::new(format!(
                "`{field}: {{ worlds: {number} }}` is not between 1 and {end}, the number of worlds that \
                are left"
            ))),
            WorldSet::Named(names) => names
                .iter()
                .map(|name| {
                    symbols.iter().position(|symbol| symbol == name).ok_or_else(|| {
                        StageError::new(format!(
                            "`{field}` names the world `{name}`, which is not in the environment"
                        ))
                        .hint(format!("it holds {}", symbols.join(", ")))
                    })
                })
                .collect(),
        }
    };
    let mut roles = vec![Role::default(); n];
    let mut rest = n;
    if let Some(set) = test.and_then(|test| test.worlds.as_ref()) {
        for i in chosen("test", set, n)? {
            roles[i].is_test = true;
        }
        rest = roles.iter().rposition(|role| !role.is_test).map_or(0, |last| last + 1);
    }
    if let Some(set) = validation.and_then(|validation| validation.worlds.as_ref()) {
        for i in chosen("validation", set, rest)? {
            StageError::new(format!(
                "the world `{}` is one of `test` and of `validation`",
                symbols[i]
            ))
            .hint("a policy is selected on other worlds than those that it is tested on")
            .when(roles[i].is_test)?;
            roles[i].is_validation = true;
        }
    }
    Ok(roles)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worlds(set: WorldSet) -> HeldOut {
        HeldOut {
            worlds: Some(set),
            ..HeldOut::default()
        }
    }

    #[test]
    fn the_last_worlds_are_those_of_the_test() {
        let symbols: Vec<String> = ["A", "B", "C", "D"].map(str::to_owned).into();
        let (test, validation) = (worlds(WorldSet::Number(1)), worlds(WorldSet::Number(2)));
        let found = roles(&symbols, Some(&test), Some(&validation)).unwrap();
        let flags: Vec<_> = found.iter().map(|role| (role.is_test, role.is_validation)).collect();
        assert_eq!(flags, [(false, false), (false, true), (false, true), (true, false)]);
        let named = worlds(WorldSet::Named(vec!["B".to_owned()]));
        let found = roles(&symbols, Some(&named), None).unwrap();
        assert_eq!(found.iter().position(|role| role.is_test), Some(1));
        assert!(roles(&symbols, Some(&named), Some(&named)).is_err());
        assert!(roles(&symbols, Some(&worlds(WorldSet::Number(5))), None).is_err());
        assert!(roles(&symbols, Some(&worlds(WorldSet::Named(vec!["X".to_owned()]))), None).is_err());
    }

    #[test]
    fn configurations_are_read() {
        let read = |text: &str| serde_json::from_str::<HeldOut>(text);
        assert_eq!(read(r#"{ "worlds": 3 }"#).unwrap(), worlds(WorldSet::Number(3)));
        assert!(
            read(r#"{ "from": "2019-01-01", "to": "2019-02-01" }"#)
                .unwrap()
                .validate("test")
                .is_ok()
        );
        assert!(
            read(r#"{ "from": "2019-03-01", "to": "2019-02-01" }"#)
                .unwrap()
                .validate("test")
                .is_err()
        );
        assert!(read("{}").unwrap().validate("test").is_err());
        assert_eq!(
            serde_json::from_str::<Symbols>("\"all\"").unwrap(),
            Symbols::All(All::All)
        );
        assert_eq!(
            serde_json::from_str::<Symbols>(r#"["A"]"#).unwrap(),
            Symbols::Named(vec!["A".to_owned()])
        );
    }
}
