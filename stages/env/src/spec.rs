//! The observations and actions of an environment, by name.

use crate::actions::{ActionEncoding, ActionSpace, Bounds};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The observations and actions of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SpecFile", into = "SpecFile")]
pub struct EnvSpec {
    /// The kind of environment and its variant, such as `options` or `CartPole-v1`.
    pub name: String,
    /// The name of every element of an observation, in order (`market.atm_iv_30d`, `position[0].delta`).
    pub observation: Vec<String>,
    /// The actions.
    pub action_space: ActionSpace,
    /// The normalisation of observations; `None` where they are raw.
    pub normalisation: Option<Normalisation>,
    /// The form in which the environment takes actions, which policies carry to other programs.
    pub encoding: ActionEncoding,
}

/// An observation is (raw - offset) / scale, clipped to [-clip, clip], element by element; fitted on training
/// dates alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    /// D offsets, in raw units.
    pub offset: Vec<f32>,
    /// D scales, in raw units, none of them 0.
    pub scale: Vec<f32>,
    /// The bound, in normalised units.
    pub clip: f32,
}

impl EnvSpec {
    /// The bound of observations: that of the normalisation where there is one, else `own`.
    pub(crate) fn clip(&self, own: f32) -> f32 {
        self.normalisation.as_ref().map_or(own, |by| by.clip)
    }

    /// The length D of an observation.
    pub fn obs_dim(&self) -> usize {
        self.observation.len()
    }

    /// The first difference in observation or actions that keeps a policy trained on `self` from acting in
    /// `other`.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        let names = |what, trained: &[String], here: &[String]| {
            let at = trained.iter().zip(here).position(|(a, b)| a != b);
            let at = at.unwrap_or(trained.len().min(here.len()));
            let name = |list: &[String]| list.get(at).cloned().unwrap_or_else(|| "nothing".to_owned());
            (trained != here).then(|| Difference::Name {
                what,
                at,
                trained: name(trained),
                here: name(here),
            })
        };
        let (trained, here) = (&self.action_space, &other.action_space);
        names("observation", &self.observation, &other.observation)
            .or_else(|| {
                (trained.kind() != here.kind()).then(|| Difference::Kind {
                    trained: trained.kind(),
                    here: here.kind(),
                })
            })
            .or_else(|| {
                let what = match trained {
                    ActionSpace::Candidates { .. } => "token",
                    _ => "action",
                };
                names(what, trained.names(), here.names())
            })
            .or_else(|| match (trained, here) {
                (ActionSpace::Continuous { bounds: a, .. }, ActionSpace::Continuous { bounds: b, .. }) => {
                    (a != b).then_some(Difference::Range)
                }
                (
                    ActionSpace::MultiDiscrete { choices: a, .. },
                    ActionSpace::MultiDiscrete { choices: b, .. },
                ) => (a != b).then_some(Difference::Range),
                (ActionSpace::Candidates { width: a, .. }, ActionSpace::Candidates { width: b, .. }) => {
                    (a != b).then_some(Difference::Range)
                }
                _ => None,
            })
    }
}

/// A difference between the environment that a policy was trained on and another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An observation or action of another name.
    Name {
        /// `observation`, `action` or `token`.
        what: &'static str,
        /// The index of the element.
        at: usize,
        /// The name in training, `nothing` beyond the end.
        trained: String,
        /// The name here.
        here: String,
    },
    /// Another kind of action space.
    Kind {
        /// The kind in training.
        trained: &'static str,
        /// The kind here.
        here: &'static str,
    },
    /// Components with other bounds or other numbers of choices, atoms with other numbers of tokens.
    Range,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name {
                what,
                at,
                trained,
                here,
            } => write!(f, "its {what} {at} is `{trained}`, here it is `{here}`"),
            Self::Kind { trained, here } => write!(f, "its actions are {trained}, here they are {here}"),
            Self::Range => f.write_str("the ranges of their actions differ"),
        }
    }
}

/// The serialised form of [`EnvSpec`] in artifacts. Fields that a kind of action space does not have are left
/// out.
#[derive(Serialize, Deserialize)]
struct SpecFile {
    name: String,
    observation: Vec<String>,
    actions: Vec<String>,
    masked: bool,
    normalisation: Option<Normalisation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bounds: Option<Bounds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<u32>>,
    /// The tokens of an atom, where actions are candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    atom_tokens: Option<usize>,
    #[serde(flatten)]
    encoding: ActionEncoding,
}

impl From<EnvSpec> for SpecFile {
    fn from(spec: EnvSpec) -> Self {
        let atom_tokens = match spec.action_space {
            ActionSpace::Candidates { width, .. } => Some(width),
            _ => None,
        };
        let (actions, masked, bounds, choices) = match spec.action_space {
            ActionSpace::Discrete { names, masked } => (names, masked, None, None),
            ActionSpace::MultiDiscrete {
                names,
                choices,
                masked,
            } => (names, masked, None, Some(choices)),
            ActionSpace::Continuous { names, bounds } => (names, false, Some(bounds), None),
            ActionSpace::Candidates { names, .. } => (names, false, None, None),
        };
        Self {
            name: spec.name,
            observation: spec.observation,
            actions,
            masked,
            normalisation: spec.normalisation,
            bounds,
            choices,
            atom_tokens,
            encoding: spec.encoding,
        }
    }
}

impl TryFrom<SpecFile> for EnvSpec {
    type Error = String;

    fn try_from(file: SpecFile) -> Result<Self, String> {
        let (names, masked) = (file.actions, file.masked);
        let n = names.len();
        let contradicts = Err(format!("the action space of `{}` contradicts itself", file.name));
        let action_space = match (file.bounds, file.choices, file.atom_tokens) {
            (None, None, None) => ActionSpace::Discrete { names, masked },
            (None, None, Some(width)) if width > 0 && !masked => ActionSpace::Candidates { names, width },
            (None, Some(choices), None) if choices.len() == n && !choices.contains(&0) => {
                ActionSpace::MultiDiscrete {
                    names,
                    choices,
                    masked,
                }
            }
            (Some(bounds), None, None) if bounds.low.len() == n && bounds.high.len() == n && !masked => {
                ActionSpace::Continuous { names, bounds }
            }
            _ => return contradicts,
        };
        let (k, ActionEncoding { start, shape }) = (action_space.num_components(), &file.encoding);
        let of_choices = !matches!(
            action_space,
            ActionSpace::Continuous { .. } | ActionSpace::Candidates { .. }
        );
        if !(start.is_empty() || of_choices && start.len() == k)
            || shape.as_ref().is_some_and(|shape| shape.iter().product::<usize>() != k)
        {
            return contradicts;
        }
        Ok(Self {
            name: file.name,
            observation: file.observation,
            action_space,
            normalisation: file.normalisation,
            encoding: file.encoding,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(action_space: ActionSpace) -> EnvSpec {
        EnvSpec {
            name: "test".into(),
            observation: vec!["x".into()],
            action_space,
            normalisation: None,
            encoding: ActionEncoding::default(),
        }
    }

    fn torque(high: f32) -> ActionSpace {
        ActionSpace::Continuous {
            names: vec!["torque".into()],
            bounds: Bounds {
                low: vec![-high],
                high: vec![high],
            },
        }
    }

    fn grid(choices: &[u32]) -> ActionSpace {
        ActionSpace::MultiDiscrete {
            names: vec!["size".into(), "side".into()],
            choices: choices.to_vec(),
            masked: true,
        }
    }

    /// Artifacts hold this form: other bytes would be other digests.
    #[test]
    fn serialised_form() {
        for (space, json) in [
            (
                ActionSpace::discrete(["a", "b"]),
                r#"{"name":"test","observation":["x"],"actions":["a","b"],"masked":false,"normalisation":null}"#,
            ),
            (
                torque(2.0),
                r#"{"name":"test","observation":["x"],"actions":["torque"],"masked":false,"normalisation":null,"bounds":{"low":[-2.0],"high":[2.0]}}"#,
            ),
            (
                grid(&[3, 2]),
                r#"{"name":"test","observation":["x"],"actions":["size","side"],"masked":true,"normalisation":null,"choices":[3,2]}"#,
            ),
            (
                ActionSpace::Candidates {
                    names: vec!["".into(), "likes/2".into()],
                    width: 3,
                },
                r#"{"name":"test","observation":["x"],"actions":["","likes/2"],"masked":false,"normalisation":null,"atom_tokens":3}"#,
            ),
        ] {
            let spec = spec(space);
            assert_eq!(serde_json::to_string(&spec).unwrap(), json);
            assert_eq!(serde_json::from_str::<EnvSpec>(json).unwrap(), spec);
        }
        for (from, to) in [
            (r#""masked":false"#, r#""masked":true"#),
            (r#""low":[-2.0]"#, r#""low":[]"#),
            (r#""actions":["torque"]"#, r#""actions":["torque","brake"]"#),
        ] {
            let json = serde_json::to_string(&spec(torque(2.0))).unwrap().replace(from, to);
            assert!(serde_json::from_str::<EnvSpec>(&json).is_err(), "{json}");
        }
        let json = serde_json::to_string(&spec(grid(&[3, 2]))).unwrap();
        assert!(serde_json::from_str::<EnvSpec>(&json.replace("[3,2]", "[3,0]")).is_err());
    }

    #[test]
    fn differences() {
        let pair = spec(ActionSpace::discrete(["a", "b"]));
        let differs = |a: &EnvSpec, b: &EnvSpec| a.difference(b).map(|difference| difference.to_string());
        assert_eq!(differs(&pair, &pair), None);
        assert_eq!(
            differs(&pair, &spec(ActionSpace::discrete(["a"]))).unwrap(),
            "its action 1 is `b`, here it is `nothing`"
        );
        let mut other = pair.clone();
        other.observation[0] = "y".into();
        assert_eq!(
            differs(&other, &pair).unwrap(),
            "its observation 0 is `y`, here it is `x`"
        );
        assert_eq!(
            differs(&pair, &spec(torque(2.0))).unwrap(),
            "its actions are discrete, here they are continuous"
        );
        for (a, b) in [(torque(2.0), torque(1.0)), (grid(&[3, 2]), grid(&[2, 3]))] {
            assert_eq!(
                differs(&spec(a), &spec(b)).unwrap(),
                "the ranges of their actions differ"
            );
        }
    }
}
