//! References to registered policies: `NAME@ALIAS`, `NAME@VERSION`.

use runner_engine::Failure;

/// The maximum length of a name, in bytes.
const LONGEST: usize = 64;

/// A reference to a registered policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRef {
    /// The policy's name.
    pub name: String,
    /// The version, by number or alias.
    pub pick: Pick,
}

/// A version, by number or alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The version that an alias points to.
    Alias(String),
    /// A version by its number.
    Version(u32),
}

impl PolicyRef {
    /// Parses `NAME@ALIAS` or `NAME@VERSION`.
    ///
    /// # Errors
    /// If the text has neither form.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let Some((name, pick)) = text.split_once('@') else {
            return Err(Failure::usage(format!("`{text}` is not a version of a policy")).hint(
                "write `NAME@champion`, with any alias, or `NAME@3`; `runner policy list` lists them",
            ));
        };
        check_policy_name(name)?;
        let pick = match pick.parse() {
            Ok(number) => Pick::Version(number),
            Err(_) => {
                check_alias(pick)?;
                Pick::Alias(pick.to_owned())
            }
        };
        Ok(Self {
            name: name.to_owned(),
            pick,
        })
    }
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && text.len() <= LONGEST
}

/// Checks the name of a policy.
pub fn check_policy_name(name: &str) -> Result<(), Failure> {
    match is_plain(name) {
        true => Ok(()),
        false => Err(
            Failure::usage(format!("`{name}` cannot be the name of a policy")).hint(format!(
                "a name begins with a letter and has letters, digits, `_`, `-` and `.`, {LONGEST} at most"
            )),
        ),
    }
}

/// Checks an alias.
pub fn check_alias(alias: &str) -> Result<(), Failure> {
    match is_plain(alias) {
        true => Ok(()),
        false => Err(Failure::usage(format!("`{alias}` cannot be an alias")).hint(format!(
            "an alias such as `champion` begins with a letter and has letters, digits, `_`, `-` and `.`, \
            {LONGEST} at most"
        ))),
    }
}
