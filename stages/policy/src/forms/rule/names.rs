//! The names that a rule may use: the elements of an observation, and the account in the units of rewards.
//!
//! A name is, in this order: an element of the observation; a name of [`account`], where the observation has
//! what it is made of; the last part of an element's name (`vrp_30` for `market.vrp_30`), of one of
//! `account.` or `market.`, or else of exactly one of the others. In an expression for each component, an
//! element of the component comes first: `momentum` is `SPY.momentum` in that of `SPY`.

use stages_env::expression::{Named, Names, hint};

/// The names of an account, each with an expression over the elements of the observation. Those without a
/// unit of their own have that of the quantities of a reward.
const ACCOUNT: [(&str, &str); 11] = [
    ("nav", "1 + account.net_asset_value / 10"),
    ("drawdown", "account.drawdown / 10"),
    ("gamma", "account.gamma / 10"),
    ("vega", "account.vega / 100"),
    ("theta", "account.theta / 1000"),
    ("held", "position[0].quantity != 0"),
    ("held", "account.gross > 0"),
    ("held", "account.position != 0"),
    ("lines", ""),
    ("days_to_expiry", ""),
    ("steps", "steps_since(1 < 0) - 1"),
];

/// The names of a rule.
pub(super) struct RuleNames<'a> {
    observation: &'a [String],
    /// The name and the expression of what is known of the account.
    account: &'a [(String, String)],
    /// The component that an expression is for.
    component: Option<&'a str>,
}

/// The names of the account that an observation has, with their expressions.
pub(super) fn account(observation: &[String]) -> Vec<(String, String)> {
    let has = |element: &str| observation.iter().any(|name| name == element);
    let lines = (0..).take_while(|i| has(&format!("position[{i}].quantity"))).count();
    let is_held = |i: usize| format!("position[{i}].quantity != 0");
    let mut known: Vec<(String, String)> = Vec::new();
    for (name, text) in ACCOUNT {
        let text = match name {
            "lines" => {
                let each: Vec<String> = (0..lines).map(|i| format!("if({}, 1, 0)", is_held(i))).collect();
                each.join(" + ")
            }
            // Days are shown divided by 30, in single precision.
            "days_to_expiry" => (0..lines).fold(String::new(), |least, i| {
                let days = format!("round(30000 * position[{i}].days_left) / 1000");
                let of_line = format!("if({}, {days}, 0 / 0)", is_held(i));
                match least.is_empty() {
                    true => of_line,
                    false => format!("min({least}, {of_line})"),
                }
            }),
            _ => text.to_owned(),
        };
        let element = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || "_.[]".contains(c)))
            .find(|word| word.starts_with("account.") || word.starts_with("position["));
        let is_known = !text.is_empty() && element.is_none_or(has);
        if is_known && known.iter().all(|(other, _)| other != name) {
            known.push((name.to_owned(), text));
        }
    }
    known
}

impl<'a> RuleNames<'a> {
    pub(super) fn new(observation: &'a [String], account: &'a [(String, String)]) -> Self {
        Self {
            observation,
            account,
            component: None,
        }
    }

    /// The names in an expression for a component.
    pub(super) fn of(&self, component: &'a str) -> Self {
        Self {
            component: Some(component),
            ..*self
        }
    }

    fn element(&self, name: &str) -> Option<Named> {
        let at = self.observation.iter().position(|element| element == name);
        at.map(Named::Quantity)
    }

    /// The elements whose names end with a name.
    fn ending(&self, name: &str) -> Vec<&'a str> {
        let last = format!(".{name}");
        let elements = self.observation.iter().map(String::as_str);
        let found: Vec<&str> = elements.filter(|element| element.ends_with(&last)).collect();
        let is_preferred = |element: &&&str| {
            ["account", "market"].contains(&element.strip_suffix(&last).unwrap_or_default())
        };
        let preferred: Vec<&str> = found.iter().filter(is_preferred).copied().collect();
        if preferred.is_empty() { found } else { preferred }
    }

    /// The names as short as they may be written.
    fn short(&self) -> impl Iterator<Item = &'a str> {
        let account = || self.account.iter().map(|(name, _)| name.as_str());
        let elements = self.observation.iter().map(|element| match element.split_once('.') {
            Some(("account" | "market", last)) => last,
            _ => element.as_str(),
        });
        account().chain(elements.filter(move |element| account().all(|name| name != *element)))
    }
}

impl Names for RuleNames<'_> {
    fn find(&self, name: &str) -> Result<Named, (String, String)> {
        let of_component = self.component.and_then(|own| self.element(&format!("{own}.{name}")));
        if let Some(found) = of_component.or_else(|| self.element(name)) {
            return Ok(found);
        }
        if let Some((_, text)) = self.account.iter().find(|(known, _)| known == name) {
            return Ok(Named::Expression(text.clone()));
        }
        match self.ending(name).as_slice() {
            [one] => self.element(one).ok_or_else(Default::default),
            [] => {
                let parts = self.observation.iter().filter_map(|element| element.rsplit('.').next());
                let known: Vec<&str> = self.short().chain(parts).collect();
                Err((format!("unknown name `{name}`"), hint(name, known.into_iter())))
            }
            several => Err((
                format!("`{name}` is the last part of {} names", several.len()),
                format!(
                    "write one of them: {}",
                    several.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
                ),
            )),
        }
    }

    fn remembers(&self) -> bool {
        true
    }
}

/// A name as an expression takes it.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    match name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("`{name}`"),
    }
}

/// Any name: for a check before the names are known.
pub(super) struct AnyName;

impl Names for AnyName {
    fn find(&self, _: &str) -> Result<Named, (String, String)> {
        Ok(Named::Later)
    }

    fn remembers(&self) -> bool {
        true
    }
}
