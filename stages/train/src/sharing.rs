//! A small network that the symbols of an environment share: each symbol's action comes from the same
//! function of its own observations, of those of all other symbols, and of those that belong to none.
//!
//! The network is held as the ordinary, dense network that it is equal to, with parameters tied in groups.
//! So models, policies and files know nothing of it, and an update differs in one line: the gradient of a
//! parameter is that of its group. The layers are those of Zaheer and others, "Deep sets" (2017), lemma 3: a
//! unit of symbol i reads the units of symbol i with one matrix, and those of the other symbols with another.

use crate::network::Network;
use stages_core::StageError;
use stages_env::{ActionSpace, EnvSpec};
use stages_policy::{ActionHead, Architecture, Tensor, initial};

/// The place of an element of an observation, or of a unit of a hidden layer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Number `1` of those that each symbol has, of symbol `0`.
    Of(usize, usize),
    /// Number `0` of those that belong to no symbol.
    Common(usize),
}

/// The groups of parameters that are tied to each other.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    /// The network of one symbol, by whose parameters groups are numbered: that of the connections to other
    /// symbols has the number of the connection within a symbol, plus the number of parameters.
    small: Architecture,
    /// The group of each parameter of the dense network; [`FREE`] for the critic's.
    groups: Vec<u32>,
    /// The reciprocal of the root of the number of parameters of each group.
    scales: Vec<f64>,
    sums: Vec<f64>,
}

/// A parameter that is not tied.
const FREE: u32 = u32::MAX;

impl Sharing {
    /// The sharing of a network in an environment.
    ///
    /// # Errors
    /// When the components of actions are not symbols with the same observations each.
    pub(crate) fn new(network: &Network, env: &EnvSpec) -> Result<Self, StageError> {
        let dense = network.architecture(env)?;
        let (symbols, places) = places(env)?;
        let each = places.iter().filter(|place| matches!(place, Place::Of(0, _))).count();
        let common = places.iter().filter(|place| matches!(place, Place::Common(_))).count();
        let small = Architecture {
            obs_dim: each + common,
            head: match &dense.head {
                ActionHead::MultiDiscrete(choices) => ActionHead::Discrete(choices[0]),
                _ => ActionHead::Continuous(1),
            },
            pi: network.arch.pi.clone(),
            vf: Vec::new(),
            ..dense.clone()
        };
        let len = small.num_params();
        let mut groups = vec![FREE; dense.num_params()];
        let mut inputs = places;
        for (tensor, small) in paired(&dense, &small) {
            let outputs = tensor.shape[tensor.shape.len() - 1];
            let width = outputs / symbols;
            let groups = &mut groups[tensor.range()];
            if tensor.shape.len() == 1 {
                for (o, group) in groups.iter_mut().enumerate() {
                    *group = (small.offset + o % width) as u32;
                }
                continue;
            }
            for (groups, from) in groups.chunks_exact_mut(outputs).zip(&inputs) {
                for (o, group) in groups.iter_mut().enumerate() {
                    let (row, other) = match *from {
                        Place::Of(symbol, row) if symbol == o / width => (row, 0),
                        Place::Of(_, row) => (row, len),
                        Place::Common(row) => (each + row, 0),
                    };
                    *group = (small.offset + row * width + o % width + other) as u32;
                }
            }
            inputs = (0..outputs).map(|o| Place::Of(o / width, o % width)).collect();
        }
        let mut counts = vec![0_u32; 2 * len];
        for group in groups.iter().filter(|group| **group != FREE) {
            counts[*group as usize] += 1;
        }
        Ok(Self {
            small,
            groups,
            scales: counts.iter().map(|&n| 1.0 / f64::from(n.max(1)).sqrt()).collect(),
            sums: vec![0.0; 2 * len],
        })
    }

    /// Sets the tied parameters to the initial ones of the small network: symbols do not read each other yet.
    pub(crate) fn initialise(&self, params: &mut [f32], orthogonal: bool, seed: u64) {
        let mut small = initial(&self.small, orthogonal, seed);
        small.resize(self.scales.len(), 0.0);
        for (param, group) in params.iter_mut().zip(&self.groups) {
            if let Some(value) = small.get(*group as usize) {
                *param = *value;
            }
        }
    }

    /// Replaces the gradient of each tied parameter by that of its group: the sum over the group, divided by
    /// the root of its size. So the norm is that of the shared parameters' gradient, and Adam, which
    /// is indifferent to scales but for its epsilon, takes the step of the small network.
    pub(crate) fn tie(&mut self, gradient: &mut [f32]) {
        self.sums.fill(0.0);
        for (value, group) in gradient.iter().zip(&self.groups) {
            if let Some(sum) = self.sums.get_mut(*group as usize) {
                *sum += f64::from(*value);
            }
        }
        for (sum, scale) in self.sums.iter_mut().zip(&self.scales) {
            *sum *= scale;
        }
        for (value, group) in gradient.iter_mut().zip(&self.groups) {
            if let Some(sum) = self.sums.get(*group as usize) {
                *value = *sum as f32;
            }
        }
    }

    /// The parameters of each group.
    #[cfg(test)]
    pub(crate) fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups = vec![Vec::new(); self.scales.len()];
        for (param, group) in self.groups.iter().enumerate().filter(|(_, group)| **group != FREE) {
            groups[*group as usize].push(param);
        }
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// True if the parameters of each group are equal.
    pub(crate) fn fits(&self, params: &[f32]) -> bool {
        let mut seen: Vec<Option<f32>> = vec![None; self.scales.len()];
        params.iter().zip(&self.groups).all(|(param, group)| {
            seen.get_mut(*group as usize)
                .is_none_or(|seen| *seen.get_or_insert(*param) == *param)
        })
    }
}

/// The tensors of the actor in the dense network, each with that of the small one.
fn paired(dense: &Architecture, small: &Architecture) -> Vec<(Tensor, Tensor)> {
    let small = small.tensors();
    let is_actor = |name: &str| name.starts_with("pi.") || name.starts_with("action.") || name == "log_std";
    let tensors = dense.tensors().into_iter().filter(|tensor| is_actor(&tensor.name));
    tensors
        .filter_map(|tensor| {
            let same = small.iter().find(|small| small.name == tensor.name)?.clone();
            Some((tensor, same))
        })
        .collect()
}

fn refused(why: String) -> StageError {
    StageError::new(format!("`policy_kwargs.shared_across`: {why}")).hint(
        "symbols share a network where each has an action, and observations of the same names: in `env/stocks` \
        without a hedge by actions",
    )
}

/// The symbols of an environment: the components of its actions.
pub(crate) fn symbols(env: &EnvSpec) -> Result<&[String], StageError> {
    match &env.action_space {
        ActionSpace::Continuous { names, .. } => Ok(names),
        ActionSpace::MultiDiscrete { names, choices, .. } if choices.iter().all(|c| *c == choices[0]) => {
            Ok(names)
        }
        _ => Err(refused(format!(
            "the actions of `{}` are not one of the same kind for each symbol",
            env.name
        ))),
    }
}

/// The number of symbols, which are the components of actions, and the place of each element of an
/// observation: `SYMBOL.NAME` belongs to the symbol.
fn places(env: &EnvSpec) -> Result<(usize, Vec<Place>), StageError> {
    let symbols = symbols(env)?;
    let mut own: Vec<Vec<&str>> = vec![Vec::new(); symbols.len()];
    let mut common = 0;
    let places = env.observation.iter().map(|element| {
        let owner = symbols.iter().enumerate().filter_map(|(i, symbol)| {
            let name = element.strip_prefix(symbol.as_str())?.strip_prefix('.')?;
            Some((symbol.len(), i, name))
        });
        match owner.max() {
            Some((_, i, name)) => {
                own[i].push(name);
                Place::Of(i, own[i].len() - 1)
            }
            None => {
                common += 1;
                Place::Common(common - 1)
            }
        }
    });
    let places = places.collect();
    match own.iter().position(|names| *names != own[0] || names.is_empty()) {
        None => Ok((symbols.len(), places)),
        Some(other) => Err(refused(format!(
            "`{}` of `{}` has other observations than `{}`",
            symbols[other], env.name, symbols[0]
        ))),
    }
}
