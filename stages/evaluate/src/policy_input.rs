//! The policy to evaluate, and its fit with the environment.

use crate::output::Rule;
use stages_core::{Context, StageError};
use stages_env::EnvSpec;
use stages_numerics::random::Random;
use stages_policy::forms::check_name;
use stages_policy::{AnyPolicy, Mode, PolicyState};

/// The port of policies that are baselines.
pub(crate) const RULES: &str = "rules";

/// The policy at the port `policy`.
pub(crate) fn load(context: &Context) -> Result<AnyPolicy, StageError> {
    AnyPolicy::read(&context.store, &context.input("policy")?.artifact)
}

/// A policy that another is compared with.
pub(crate) struct Given {
    /// Its name among the baselines.
    pub name: String,
    pub policy: AnyPolicy,
}

/// The policies at the port `rules`. One without a name has the last part of its kind, or where that is none
/// the name of its form, with a number where there are several.
pub(crate) fn rules(context: &Context) -> Result<Vec<Given>, StageError> {
    let mut all: Vec<Given> = Vec::new();
    for input in context.list(RULES) {
        let policy = AnyPolicy::read(&context.store, &input.artifact)?;
        let is_taken = |name: &str| all.iter().any(|given| given.name == name);
        let name = match policy.name() {
            Some(name) => name.to_owned(),
            None => {
                let kind = policy.kind().rsplit('/').next().unwrap_or_default();
                // That of `ingest/policy` is no name of a baseline.
                let own = if check_name(kind).is_ok() { kind } else { policy.form() };
                let numbered = (2..).map(|n| format!("{own}_{n}"));
                let mut names = std::iter::once(own.to_owned()).chain(numbered);
                let name = names.find(|name| !is_taken(name)).unwrap_or_default();
                context.log(format!("{name}: a policy of `{}` at `{RULES}`", policy.kind()));
                name
            }
        };
        check_name(&name)?;
        StageError::new(format!("two policies at `{RULES}` have the name `{name}`"))
            .hint("give one of them another `name`")
            .when(is_taken(&name))?;
        all.push(Given { name, policy });
    }
    Ok(all)
}

impl Given {
    /// The baseline in words.
    pub(crate) fn rule(&self) -> Rule {
        let text = match self.policy.rule() {
            Some(rule) => rule.lines().join("; "),
            None => format!("the policy of `{}`", self.policy.kind()),
        };
        Rule {
            name: self.name.clone(),
            text,
        }
    }
}

/// Tells what a policy, `name` in messages, has to say about its decisions.
pub(crate) fn warn(context: &Context, name: &str, state: &PolicyState) {
    for line in state.warnings() {
        context.warn(format!("{name}: {line}"), None);
    }
}

/// Refuses a policy that was trained on another environment's observations or actions, naming the first that
/// differs.
pub(crate) fn check_fits(policy: &EnvSpec, env: &EnvSpec) -> Result<(), StageError> {
    match policy.difference(env) {
        None => Ok(()),
        Some(difference) => Err(StageError::new(format!(
            "the policy was trained on another environment: {difference}"
        ))
        .hint(
            "evaluate it on an environment with the same features, slate and actions, or train it on this \
            one",
        )),
    }
}

/// The mode of acting: the most likely action, or a drawn one.
pub(crate) fn mode(deterministic: bool, random: &mut Random) -> Mode<'_> {
    match deterministic {
        true => Mode::Greedy,
        false => Mode::Sample(random),
    }
}
