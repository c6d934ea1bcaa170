//! The roles of a model's inputs and outputs: told by its user, by their names, or by their shapes.

use super::ports::{Dim, Port, Ports};
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_env::{ActionSpace, EnvSpec};
use std::collections::BTreeMap;

/// The meaning of the output that actions are chosen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Meaning {
    /// A logit or a log-probability of each choice `[B, A]`, component by component.
    Logits,
    /// A probability of each choice `[B, A]`.
    Probabilities,
    /// The value of each choice `[B, A]`; the greatest is chosen.
    ActionValues,
    /// The means of the components `[B, A]`, or the actions themselves where nothing is drawn.
    Mean,
    /// The number of a choice `[B]`, or of one for each component `[B, K]`.
    Choice,
}

/// A recurrent state: the input that takes it, and the output that gives the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StatePorts {
    /// The name of the input.
    pub input: String,
    /// The name of the output.
    pub output: String,
}

/// The names of a model's inputs and outputs by their roles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Signature {
    /// The input of observations `[B, D]`.
    pub observation: String,
    /// The input of action masks `[B, A]`, true where a choice is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_mask: Option<String>,
    /// The input `[B]` that is 1 where an episode begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode_start: Option<String>,
    /// The recurrent states, which are zero where an episode begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StatePorts>,
    /// The output that actions are chosen from.
    pub actions: String,
    /// The meaning of that output.
    pub meaning: Meaning,
    /// The output of the logarithms of standard deviations, `[B, A]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_std: Option<String>,
    /// The output of the states' values, `[B]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A role that a name may have. Names are compared in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Observation,
    ActionMask,
    EpisodeStart,
    Actions(Meaning),
    LogStd,
    Value,
}

/// The names that stand for roles, in the order in which outputs are preferred.
const NAMES: &[(Role, &[&str])] = &[
    (Role::Observation, &["observation", "observations", "obs"]),
    (
        Role::ActionMask,
        &["action_mask", "action_masks", "mask", "masks", "legal_actions"],
    ),
    (
        Role::EpisodeStart,
        &["episode_start", "episode_starts", "is_init", "done", "dones"],
    ),
    (
        Role::Actions(Meaning::Logits),
        &[
            "logits",
            "action_logits",
            "log_probabilities",
            "log_probs",
            "action_log_probs",
        ],
    ),
    (
        Role::Actions(Meaning::Probabilities),
        &["probabilities", "probs", "action_probs"],
    ),
    (
        Role::Actions(Meaning::ActionValues),
        &["action_values", "action_value", "q_values", "qvalues", "q"],
    ),
    (
        Role::Actions(Meaning::Mean),
        &["mean", "means", "mu", "action_mean", "loc", "mean_actions"],
    ),
    (Role::LogStd, &["log_std", "action_log_std", "logstd"]),
    (Role::Value, &["value", "values", "state_value", "critic"]),
];

/// The names of roles that settings use.
const SETTINGS: &[(&str, Role)] = &[
    ("observation", Role::Observation),
    ("action_mask", Role::ActionMask),
    ("episode_start", Role::EpisodeStart),
    ("logits", Role::Actions(Meaning::Logits)),
    ("probabilities", Role::Actions(Meaning::Probabilities)),
    ("action_values", Role::Actions(Meaning::ActionValues)),
    ("mean", Role::Actions(Meaning::Mean)),
    ("choice", Role::Actions(Meaning::Choice)),
    ("log_std", Role::LogStd),
    ("value", Role::Value),
];

/// The text of a role for a tensor that has none.
const UNUSED: &str = "unused";

/// The beginning of the role of an output that is the next state of an input, whose name follows.
const NEXT: &str = "next ";

/// The error of a model whose inputs or outputs are not clear: the fault, and all of its ports.
fn unclear(what: &str, ports: &Ports) -> StageError {
    StageError::new(format!("{what}; the model has {ports}")).hint(
        "name their roles, such as `tensors: { x: observation, h: state, y: logits, h_out: next h }` \
        (docs/guides/export-policy.md)",
    )
}

/// Resolves the roles of the ports of a model that acts in `env` and sees `seen` values of it; `told` are the
/// roles that the user names,
/// by the ports' names. Returns a sentence for each role that was guessed from a shape.
///
/// # Errors
/// Fails where a role is unknown, missing or may be another's.
pub(super) fn resolve(
    ports: &Ports,
    (env, seen): (&EnvSpec, usize),
    told: &BTreeMap<String, String>,
) -> Result<(Signature, Vec<String>), StageError> {
    let mut guesses = Vec::new();
    let inputs = input_roles(ports, seen, told, &mut guesses)?;
    let states = states(ports, &inputs, told)?;
    let outputs = Outputs {
        ports,
        env,
        told,
        states: &states,
    };
    let (actions, meaning) = outputs.actions(&mut guesses)?;
    let of = |role: Role| outputs.named(role).map(|port| port.name.clone());
    let of_inputs = |role: Role| {
        let mut found = inputs.iter().filter(|(_, is)| **is == Some(role));
        found.next().map(|(name, _)| (*name).to_owned())
    };
    let signature = Signature {
        observation: of_inputs(Role::Observation)
            .ok_or_else(|| unclear("which input is the observation is not clear", ports))?,
        action_mask: of_inputs(Role::ActionMask),
        episode_start: of_inputs(Role::EpisodeStart),
        log_std: of(Role::LogStd).filter(|_| meaning == Meaning::Mean),
        value: of(Role::Value),
        states,
        actions,
        meaning,
    };
    Ok((signature, guesses))
}

/// The role of each input; `None` for a recurrent state.
fn input_roles<'a>(
    ports: &'a Ports,
    d: usize,
    told: &BTreeMap<String, String>,
    guesses: &mut Vec<String>,
) -> Result<BTreeMap<&'a str, Option<Role>>, StageError> {
    for name in told.keys() {
        StageError::new(format!(
            "`tensors` names `{name}`, and the model has no such input or output"
        ))
        .hint(format!("it has {ports}"))
        .when(ports.find(name).is_none())?;
    }
    let mut roles = BTreeMap::new();
    for port in &ports.inputs {
        let role = match told.get(&port.name).map(String::as_str) {
            Some("state") => None,
            Some(text) => Some(setting(text, &port.name)?),
            None => named(&port.name),
        };
        roles.insert(port.name.as_str(), role);
    }
    for (name, role) in &roles {
        let is_input = matches!(
            role,
            None | Some(Role::Observation | Role::ActionMask | Role::EpisodeStart)
        );
        StageError::new(format!("the role of the input `{name}` is one of outputs"))
            .hint("inputs are `observation`, `action_mask`, `episode_start` or `state`")
            .when(!is_input)?;
    }
    for role in roles.values() {
        let count = roles.values().filter(|other| *other == role).count();
        if role.is_some() && count > 1 {
            return Err(unclear("two inputs have the same role", ports));
        }
    }
    let is_known = |roles: &BTreeMap<&str, Option<Role>>, role| roles.values().any(|is| *is == Some(role));
    if !is_known(&roles, Role::Observation) {
        let fits = |port: &&Port| {
            roles[port.name.as_str()].is_none()
                && !told.contains_key(&port.name)
                && port.ty.is_float()
                && port.values_per_row() == Some(d)
                && next_by_name(port, ports).is_none()
        };
        let mut candidates = ports.inputs.iter().filter(fits);
        let (first, second) = (candidates.next(), candidates.next());
        let (Some(port), None) = (first, second) else {
            return Err(unclear(
                &format!("which input is the observation of {d} values is not clear"),
                ports,
            ));
        };
        guesses.push(format!("the input `{}` is taken for the observation", port.name));
        roles.insert(&port.name, Some(Role::Observation));
    }
    Ok(roles)
}

/// The states: for each input without another role, the output that gives its next value.
fn states(
    ports: &Ports,
    roles: &BTreeMap<&str, Option<Role>>,
    told: &BTreeMap<String, String>,
) -> Result<Vec<StatePorts>, StageError> {
    let mut states: Vec<StatePorts> = Vec::new();
    for port in ports.inputs.iter().filter(|port| roles[port.name.as_str()].is_none()) {
        let is_told = |output: &&Port| {
            let role = told.get(&output.name).and_then(|role| role.strip_prefix(NEXT));
            role == Some(port.name.as_str())
        };
        let output = ports
            .outputs
            .iter()
            .find(is_told)
            .or_else(|| next_by_name(port, ports))
            .or_else(|| next_by_shape(port, ports, roles, told))
            .ok_or_else(|| {
                unclear(
                    &format!(
                        "the input `{}` has no known role, and which output is its next value is not clear",
                        port.name
                    ),
                    ports,
                )
            })?;
        StageError::new(format!(
            "the state `{}` is {port}, and its next value {output}",
            port.name
        ))
        .hint("a state and the next one have the same shape")
        .when(!port.same_shape(output))?;
        if states.iter().any(|state| state.output == output.name) {
            return Err(unclear(
                &format!("`{}` is the next value of two inputs", output.name),
                ports,
            ));
        }
        states.push(StatePorts {
            input: port.name.clone(),
            output: output.name.clone(),
        });
    }
    Ok(states)
}

/// The output whose name says that it is the next value of an input: `next.h`, `h_out`, or `hn` of `h0`.
fn next_by_name<'a>(input: &Port, ports: &'a Ports) -> Option<&'a Port> {
    let name = input.name.as_str();
    let stem = name
        .strip_suffix("_in")
        .or_else(|| name.strip_suffix('0'))
        .unwrap_or(name);
    let names = [
        format!("next.{name}"),
        format!("next_{name}"),
        format!("new_{name}"),
        format!("{name}_out"),
        format!("{name}_next"),
        format!("{name}_new"),
        format!("{stem}_out"),
        format!("{stem}n"),
    ];
    let is_next = |output: &&Port| names.contains(&output.name) && output.name != name;
    ports.outputs.iter().find(is_next)
}

/// The only output of the shape of an input, where no other input has it.
fn next_by_shape<'a>(
    input: &Port,
    ports: &'a Ports,
    roles: &BTreeMap<&str, Option<Role>>,
    told: &BTreeMap<String, String>,
) -> Option<&'a Port> {
    let states = ports.inputs.iter().filter(|port| roles[port.name.as_str()].is_none());
    let is_only = states.filter(|port| port.same_shape(input)).count() == 1;
    let mut outputs = ports.outputs.iter().filter(|port| {
        port.same_shape(input) && named(&port.name).is_none() && !told.contains_key(&port.name)
    });
    let (first, second) = (outputs.next(), outputs.next());
    first.filter(|_| is_only && second.is_none())
}

/// The role that a name stands for.
fn named(name: &str) -> Option<Role> {
    let name = name.to_lowercase();
    NAMES
        .iter()
        .find(|(_, names)| names.contains(&name.as_str()))
        .map(|(role, _)| *role)
}

/// The role that a setting names.
fn setting(text: &str, port: &str) -> Result<Role, StageError> {
    let known: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
    SETTINGS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, role)| *role)
        .ok_or_else(|| {
            StageError::new(format!("`{text}` of `tensors.{port}` is not a role")).hint(format!(
                "roles are {}, `state`, `next INPUT` and `unused`",
                known.join(", ")
            ))
        })
}

/// The search for the roles of outputs.
struct Outputs<'a> {
    ports: &'a Ports,
    env: &'a EnvSpec,
    told: &'a BTreeMap<String, String>,
    states: &'a [StatePorts],
}

impl<'a> Outputs<'a> {
    /// The outputs that are neither states nor said to be unused.
    fn free(&self) -> impl Iterator<Item = &'a Port> {
        let (told, states) = (self.told, self.states);
        self.ports.outputs.iter().filter(move |port| {
            let role = told.get(&port.name).map(String::as_str);
            role != Some(UNUSED)
                && !role.is_some_and(|role| role.starts_with(NEXT))
                && !states.iter().any(|state| state.output == port.name)
        })
    }

    /// The output with a role, by the user's word or else by its name.
    fn named(&self, role: Role) -> Option<&'a Port> {
        let text = SETTINGS.iter().find(|(_, is)| *is == role).map(|(text, _)| *text);
        let told = |port: &&Port| self.told.get(&port.name).map(String::as_str) == text;
        self.free()
            .find(told)
            .or_else(|| self.free().find(|port| self.is_named(port, role)))
    }

    fn is_named(&self, port: &Port, role: Role) -> bool {
        !self.told.contains_key(&port.name) && named(&port.name) == Some(role) && self.fits(port, role)
    }

    /// Returns whether an output has the size that a role needs, as far as the model says it.
    fn fits(&self, port: &Port, role: Role) -> bool {
        let space = &self.env.action_space;
        let is_continuous = matches!(space, ActionSpace::Continuous { .. });
        let size = match role {
            Role::Actions(Meaning::Choice) => space.num_components(),
            Role::Actions(_) | Role::LogStd => space.num_outputs(),
            _ => 1,
        };
        let is_kind = match role {
            Role::Actions(Meaning::Mean) | Role::LogStd => is_continuous && port.ty.is_float(),
            Role::Actions(Meaning::Choice) => !is_continuous && !port.ty.is_float(),
            Role::Actions(_) => !is_continuous && port.ty.is_float(),
            _ => port.ty.is_float(),
        };
        is_kind && port.values_per_row().is_none_or(|n| n == size)
    }

    /// The output that actions are chosen from, and its meaning.
    fn actions(&self, guesses: &mut Vec<String>) -> Result<(String, Meaning), StageError> {
        for port in &self.ports.outputs {
            let role = self.told.get(&port.name).map(String::as_str);
            if let Some(text) = role.filter(|text| *text != UNUSED && !text.starts_with(NEXT)) {
                let role = setting(text, &port.name)?;
                StageError::new(format!("the output `{}` is {port}, which is not `{text}`", port.name))
                    .hint(self.needed())
                    .when(!self.fits(port, role))?;
                if let Role::Actions(meaning) = role {
                    return Ok((port.name.clone(), meaning));
                }
            }
        }
        for (role, _) in NAMES {
            if let Role::Actions(meaning) = *role
                && let Some(port) = self.named(*role)
            {
                return Ok((port.name.clone(), meaning));
            }
        }
        let of = |meaning: Meaning| {
            let mut fitting = self.free().filter(move |port| {
                !self.told.contains_key(&port.name)
                    && named(&port.name).is_none()
                    && self.fits(port, Role::Actions(meaning))
            });
            (fitting.next(), fitting.next().is_some())
        };
        let is_continuous = matches!(self.env.action_space, ActionSpace::Continuous { .. });
        let meanings: &[Meaning] = match is_continuous {
            true => &[Meaning::Mean],
            false => &[Meaning::Logits, Meaning::Choice],
        };
        for &meaning in meanings {
            match of(meaning) {
                (Some(port), false) => {
                    let text = SETTINGS
                        .iter()
                        .find(|(_, role)| *role == Role::Actions(meaning))
                        .map_or("", |(text, _)| *text);
                    if !matches!(port.name.to_lowercase().as_str(), "action" | "actions") {
                        guesses.push(format!("the output `{}` is taken for `{text}`", port.name));
                    }
                    return Ok((port.name.clone(), meaning));
                }
                (Some(_), true) => {
                    return Err(unclear("several outputs may be those of the actions", self.ports));
                }
                _ => {}
            }
        }
        Err(unclear(
            &format!("no output fits the actions, {}", self.needed()),
            self.ports,
        ))
    }

    /// The outputs that the environment's actions need, in words.
    fn needed(&self) -> String {
        let space = &self.env.action_space;
        let n = space.num_outputs();
        match space {
            ActionSpace::Continuous { .. } => format!("the environment has {n} continuous components"),
            _ => format!("the environment has {n} choices in all"),
        }
    }
}

impl Signature {
    /// The names of the outputs that are computed.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &str> {
        let states = self.states.iter().map(|state| state.output.as_str());
        std::iter::once(self.actions.as_str())
            .chain(self.log_std.as_deref())
            .chain(self.value.as_deref())
            .chain(states)
    }
}

impl Port {
    /// True if the other port has the same type and the same sizes, whatever is open.
    fn same_shape(&self, other: &Self) -> bool {
        let sizes = |dims: &[Dim]| -> Vec<Option<usize>> { dims.iter().map(Dim::size).collect() };
        self.ty == other.ty
            && match (&self.dims, &other.dims) {
                (Some(a), Some(b)) => {
                    a.len() == b.len()
                        && sizes(a)
                            .iter()
                            .zip(sizes(b))
                            .all(|(a, b)| a.is_none() || b.is_none() || *a == b)
                }
                _ => true,
            }
    }
}
