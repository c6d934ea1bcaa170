//! Actions, from the environment's action space to a policy's choices: discrete, multi-discrete or
//! continuous.

use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_numerics::random::Random;

/// The actions that an environment takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionSpace {
    /// One of A choices.
    Discrete {
        /// The name of every choice, in order.
        names: Vec<String>,
        /// True if choices may be masked; if not, every element of an action mask is true.
        masked: bool,
    },
    /// One choice for each of K components.
    MultiDiscrete {
        /// The name of every component, in order.
        names: Vec<String>,
        /// The number of choices of each component `[K]`, none of them 0.
        choices: Vec<u32>,
        /// True if choices may be masked; if not, every element of an action mask is true.
        masked: bool,
    },
    /// A real number for each of A components; there is no action mask.
    Continuous {
        /// The name of every component, in order.
        names: Vec<String>,
        /// The range of each component.
        bounds: Bounds,
    },
    /// One of the candidates that a state has, which are observed as rows of ids
    /// ([`CandidateBatch`](crate::CandidateBatch)), as is the state; there is no other observation, and no
    /// action mask.
    Candidates {
        /// The name of every id, in order.
        names: Vec<String>,
        /// The ids of a row.
        width: usize,
    },
}

/// The range of each component of a continuous action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The lower bounds `[A]`.
    pub low: Vec<f32>,
    /// The upper bounds `[A]`.
    pub high: Vec<f32>,
}

/// The magnitude beyond which a bound stands for none, such as the largest float.
const FAR: f32 = 1e30;

impl Bounds {
    /// True if the range of every component is one to which actions can be scaled.
    pub fn are_near(&self) -> bool {
        (0..self.low.len()).all(|component| self.is_near(component))
    }

    fn is_near(&self, component: usize) -> bool {
        self.low[component].abs() < FAR && self.high[component].abs() < FAR
    }

    /// True if every component with near bounds has the range from -1 to 1.
    pub fn are_unit(&self) -> bool {
        (0..self.low.len()).all(|at| !self.is_near(at) || (self.low[at], self.high[at]) == (-1.0, 1.0))
    }

    /// The middle and half the width of each component's range: (0, 1) without near bounds.
    pub fn middles_and_halves(&self) -> impl Iterator<Item = (f32, f32)> + '_ {
        (0..self.low.len()).map(|at| match self.is_near(at) {
            true => {
                let (low, high) = (f64::from(self.low[at]), f64::from(self.high[at]));
                ((0.5 * (low + high)) as f32, (0.5 * (high - low)) as f32)
            }
            false => (0.0, 1.0),
        })
    }

    /// Scales actions `[_, A]`: -1 becomes the lower bound and 1 the upper one. Components without near
    /// bounds stay as they are.
    pub fn scale(&self, actions: &mut [f32]) {
        for row in actions.chunks_exact_mut(self.low.len()) {
            for (at, x) in row.iter_mut().enumerate() {
                if self.is_near(at) {
                    *x = self.low[at] + 0.5 * (*x + 1.0) * (self.high[at] - self.low[at]);
                }
            }
        }
    }

    /// Holds actions `[_, A]` to their bounds.
    pub fn clip(&self, actions: &mut [f32]) {
        let bounds = self.low.iter().zip(&self.high).cycle();
        for (value, (low, high)) in actions.iter_mut().zip(bounds) {
            *value = value.max(*low).min(*high);
        }
    }

    /// Draws the components of continuous actions, `[B, A]`, each evenly between its bounds.
    pub fn draw(&self, random: &mut Random, actions: &mut [f32]) {
        let bounds = self.low.iter().zip(&self.high).cycle();
        for (value, (low, high)) in actions.iter_mut().zip(bounds) {
            *value = low + (high - low) * random.uniform() as f32;
        }
    }
}

/// The form in which an environment in another program takes an action, where that is not the engine's own:
/// choices counted from 0, and one row of components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActionEncoding {
    /// The number of the first choice of each component `[K]`; empty where all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<i64>,
    /// The shape of the array of components, row-major; absent for a single choice, and for `[K]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
}

impl ActionSpace {
    /// The range of each component of a continuous space.
    pub fn bounds(&self) -> Option<&Bounds> {
        match self {
            Self::Continuous { bounds, .. } => Some(bounds),
            _ => None,
        }
    }

    /// A discrete space without a mask.
    pub fn discrete<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Discrete {
            names: names.into_iter().map(Into::into).collect(),
            masked: false,
        }
    }

    /// The name of every choice of a discrete space, of every id of candidates, else of every component.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Discrete { names, .. }
            | Self::MultiDiscrete { names, .. }
            | Self::Continuous { names, .. }
            | Self::Candidates { names, .. } => names,
        }
    }

    /// The number of outputs that a policy has for an action: a logit for each choice of each component, or a
    /// mean for each continuous component. None for candidates, whose number changes.
    pub fn num_outputs(&self) -> usize {
        match self {
            Self::Candidates { .. } => 0,
            Self::Discrete { names, .. } | Self::Continuous { names, .. } => names.len(),
            Self::MultiDiscrete { choices, .. } => choices.iter().map(|&n| n as usize).sum(),
        }
    }

    /// The number of values of an action: 1, K or A.
    pub fn num_components(&self) -> usize {
        match self {
            Self::Discrete { .. } | Self::Candidates { .. } => 1,
            Self::MultiDiscrete { names, .. } | Self::Continuous { names, .. } => names.len(),
        }
    }

    /// M, the length of an action mask: an element for each choice of each component, none where actions are
    /// continuous or candidates.
    pub fn mask_len(&self) -> usize {
        match self {
            Self::Continuous { .. } => 0,
            _ => self.num_outputs(),
        }
    }

    /// The action of environment `i` of a batch, as text: a choice by its name, components by name and value
    /// (of weights, those that are not near 0).
    pub fn describe(&self, actions: Actions<'_>, i: usize) -> String {
        let (names, k) = (self.names(), self.num_components());
        let components = |text: &dyn Fn(usize) -> Option<String>| -> String {
            let all: Vec<String> = (0..k).filter_map(text).collect();
            all.join(" ")
        };
        match actions {
            Actions::Discrete(values) if matches!(self, Self::Candidates { .. }) => {
                format!("candidate {}", values[i])
            }
            Actions::Discrete(values) => match names.get(values[i] as usize) {
                Some(name) => name.clone(),
                None => values[i].to_string(),
            },
            Actions::MultiDiscrete(values) => {
                components(&|component| Some(format!("{}={}", names[component], values[i * k + component])))
            }
            Actions::Continuous(values) => components(&|component| {
                let value = values[i * k + component];
                (value.abs() >= 0.005).then(|| format!("{}={value:.2}", names[component]))
            }),
        }
    }

    /// Refuses actions that are not of this space, one for each of `num_envs` environments.
    pub(crate) fn check(&self, actions: Actions<'_>, num_envs: usize) -> Result<(), StageError> {
        let k = self.num_components();
        match self {
            Self::Discrete { .. } | Self::Candidates { .. } => actions.discrete(num_envs).map(drop),
            Self::MultiDiscrete { .. } => actions.multi_discrete(num_envs, k).map(drop),
            Self::Continuous { .. } => actions.continuous(num_envs, k).map(drop),
        }
    }

    /// The kind of space in a word, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Discrete { .. } => DISCRETE,
            Self::MultiDiscrete { .. } => MULTI_DISCRETE,
            Self::Continuous { .. } => CONTINUOUS,
            Self::Candidates { .. } => "candidates",
        }
    }
}

const DISCRETE: &str = "discrete";
const MULTI_DISCRETE: &str = "multi-discrete";
const CONTINUOUS: &str = "continuous";

/// An action for each of B environments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Actions<'a> {
    /// `[B]`: the number of a choice or of a candidate for each environment.
    Discrete(&'a [u32]),
    /// `[B, K]`: the number of a choice for each component.
    MultiDiscrete(&'a [u32]),
    /// `[B, A]`: the value of each component.
    Continuous(&'a [f32]),
}

impl<'a> Actions<'a> {
    /// The action of environment `i`, which has `k` values.
    pub(crate) fn row(self, i: usize, k: usize) -> Self {
        let row = i * k..(i + 1) * k;
        match self {
            Self::Discrete(values) => Self::Discrete(&values[row]),
            Self::MultiDiscrete(values) => Self::MultiDiscrete(&values[row]),
            Self::Continuous(values) => Self::Continuous(&values[row]),
        }
    }

    /// Discrete actions `[num_envs]`.
    ///
    /// # Errors
    /// Fails when the actions are of another kind or shape.
    pub fn discrete(self, num_envs: usize) -> Result<&'a [u32], StageError> {
        match self {
            Self::Discrete(values) if values.len() == num_envs => Ok(values),
            _ => Err(self.mismatch(DISCRETE, num_envs)),
        }
    }

    /// Multi-discrete actions `[num_envs, components]`.
    ///
    /// # Errors
    /// Fails when the actions are of another kind or shape.
    pub fn multi_discrete(self, num_envs: usize, components: usize) -> Result<&'a [u32], StageError> {
        match self {
            Self::MultiDiscrete(values) if values.len() == num_envs * components => Ok(values),
            _ => Err(self.mismatch(MULTI_DISCRETE, num_envs * components)),
        }
    }

    /// Continuous actions `[num_envs, components]`.
    ///
    /// # Errors
    /// Fails when the actions are of another kind or shape.
    pub fn continuous(self, num_envs: usize, components: usize) -> Result<&'a [f32], StageError> {
        match self {
            Self::Continuous(values) if values.len() == num_envs * components => Ok(values),
            _ => Err(self.mismatch(CONTINUOUS, num_envs * components)),
        }
    }

    fn mismatch(self, kind: &str, len: usize) -> StageError {
        let (given, given_len) = match self {
            Self::Discrete(values) => (DISCRETE, values.len()),
            Self::MultiDiscrete(values) => (MULTI_DISCRETE, values.len()),
            Self::Continuous(values) => (CONTINUOUS, values.len()),
        };
        StageError::new(format!(
            "expected {len} values of {kind} actions, found {given_len} of {given} actions"
        ))
    }
}

/// A batch of actions that owns its values: the output of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionBuffer {
    /// Discrete actions or candidates `[B]`.
    Discrete(Vec<u32>),
    /// Multi-discrete actions `[B, K]`.
    MultiDiscrete(Vec<u32>),
    /// Continuous actions `[B, A]`.
    Continuous(Vec<f32>),
}

impl ActionBuffer {
    /// Actions of `space` for `num_envs` environments, all of them 0.
    pub fn new(space: &ActionSpace, num_envs: usize) -> Self {
        let len = num_envs * space.num_components();
        match space {
            ActionSpace::Discrete { .. } | ActionSpace::Candidates { .. } => Self::Discrete(vec![0; len]),
            ActionSpace::MultiDiscrete { .. } => Self::MultiDiscrete(vec![0; len]),
            ActionSpace::Continuous { .. } => Self::Continuous(vec![0.0; len]),
        }
    }

    /// The actions.
    pub fn as_actions(&self) -> Actions<'_> {
        match self {
            Self::Discrete(values) => Actions::Discrete(values),
            Self::MultiDiscrete(values) => Actions::MultiDiscrete(values),
            Self::Continuous(values) => Actions::Continuous(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> ActionSpace {
        ActionSpace::MultiDiscrete {
            names: vec!["size".into(), "side".into()],
            choices: vec![3, 2],
            masked: true,
        }
    }

    #[test]
    fn sizes() {
        let pair = ActionSpace::discrete(["left", "right"]);
        assert_eq!((pair.num_outputs(), pair.num_components(), pair.mask_len()), (2, 1, 2));
        assert_eq!(
            (grid().num_outputs(), grid().num_components(), grid().mask_len()),
            (5, 2, 5)
        );
        let torque = ActionSpace::Continuous {
            names: vec!["torque".into()],
            bounds: Bounds {
                low: vec![-2.0],
                high: vec![2.0],
            },
        };
        assert_eq!(
            (torque.num_outputs(), torque.num_components(), torque.mask_len()),
            (1, 1, 0)
        );
        assert_eq!(
            ActionBuffer::new(&grid(), 3).as_actions(),
            Actions::MultiDiscrete(&[0; 6])
        );
    }

    #[test]
    fn scaled_to_the_bounds() {
        let bounds = Bounds {
            low: vec![5.0, -1.0, 0.0, 300.0, 1e-8, f32::MIN],
            high: vec![10.0, 1.0, 1.0, 500.0, 3e-8, f32::MAX],
        };
        assert!(!bounds.are_near() && !bounds.are_unit());
        let mut actions = [
            -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0,
        ];
        bounds.scale(&mut actions);
        assert_eq!(actions[..6], [5.0, -1.0, 0.0, 300.0, 1e-8, -1.0]);
        assert_eq!(actions[6..12], [7.5, 0.0, 0.5, 400.0, 1.9999998e-8, 0.5]);
        bounds.clip(&mut actions);
        assert_eq!(actions[12..], [10.0, 1.0, 1.0, 500.0, 3e-8, 3.0]);
        let all: Vec<(f32, f32)> = bounds.middles_and_halves().collect();
        assert_eq!(
            all,
            [
                (7.5, 2.5),
                (0.0, 1.0),
                (0.5, 0.5),
                (400.0, 100.0),
                (2e-8, (3e-8 - 1e-8) / 2.0),
                (0.0, 1.0)
            ]
        );
    }

    #[test]
    fn described() {
        assert_eq!(
            ActionSpace::discrete(["left", "right"]).describe(Actions::Discrete(&[0, 1]), 1),
            "right"
        );
        assert_eq!(
            grid().describe(Actions::MultiDiscrete(&[0, 0, 2, 1]), 1),
            "size=2 side=1"
        );
    }

    #[test]
    fn another_kind_or_shape_is_refused() {
        let actions = ActionBuffer::new(&grid(), 3);
        assert_eq!(actions.as_actions().multi_discrete(3, 2).unwrap(), [0; 6]);
        assert!(actions.as_actions().multi_discrete(2, 2).is_err());
        assert!(Actions::Discrete(&[0; 6]).multi_discrete(3, 2).is_err());
        assert!(Actions::Continuous(&[0.0; 3]).discrete(3).is_err());
        let err = Actions::Discrete(&[1, 0]).continuous(2, 3).unwrap_err();
        assert_eq!(
            err.message,
            "expected 6 values of continuous actions, found 2 of discrete actions"
        );
    }
}
