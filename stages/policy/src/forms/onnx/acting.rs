//! Acting with a model: from observations to distributions, in the environment's order.

use super::OnnxForm;
use super::run::Ready;
use super::signature::Meaning;
use crate::categorical::{self, Softmax};
use crate::policy::Forward;
use crate::{ActionHead, Observed, Output, q_values};
use stages_core::StageError;
use stages_env::EnvSpec;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

/// A model that is ready to act.
pub(super) struct Running {
    ready: Ready,
    form: OnnxForm,
    env: EnvSpec,
    head: ActionHead,
    /// The numbers of choices of each component; empty where actions are continuous.
    choices: Vec<u32>,
    /// For each of the model's action outputs, the environment's; `None` where they are in its order.
    columns: Option<Vec<usize>>,
    instructions: InstructionSet,
    obs: Vec<f32>,
    mask: Vec<bool>,
    softmax: Softmax,
}

impl Running {
    pub(super) fn new(form: OnnxForm, env: EnvSpec, ready: Ready) -> Self {
        let head = form.head(&env.action_space);
        let choices = head.choices().to_vec();
        let columns = form.action_order.as_ref().map(|order| match choices.len() {
            0 | 1 => order.clone(),
            _ => {
                let components: Vec<_> = categorical::components(&choices).collect();
                order
                    .iter()
                    .flat_map(|&component| components[component].clone())
                    .collect()
            }
        });
        Self {
            ready,
            form,
            env,
            head,
            choices,
            columns,
            instructions: InstructionSet::detect(),
            obs: Vec::new(),
            mask: Vec::new(),
            softmax: Softmax::default(),
        }
    }

    /// Checks that the outputs of a row depend on its own inputs alone: those of drawn observations stay,
    /// where every second row is drawn anew.
    pub(super) fn check_rows(&mut self) -> Result<(), StageError> {
        let (d, m) = (self.env.obs_dim(), self.env.action_space.mask_len());
        let rows = self.ready.rows;
        let random = &mut Random::new(&[0x6f6e_6e78]);
        let mut obs: Vec<f32> = (0..rows * d).map(|_| random.uniform() as f32).collect();
        let (mask, start) = (vec![true; rows * m], vec![true; rows]);
        let (mut before, mut after) = (Output::default(), Output::default());
        for output in [&mut before, &mut after] {
            let mut recurrent = vec![0.0; rows * self.state_len()];
            self.forward(&Observed::new(&obs, &mask, &start), &mut recurrent, output)?;
            for row in obs.chunks_exact_mut(d).skip(1).step_by(2) {
                row.iter_mut().for_each(|x| *x = random.uniform() as f32);
            }
        }
        let same = |a: &[f32], b: &[f32]| {
            let width = (a.len() / rows).max(1);
            let pairs = a.chunks_exact(width).zip(b.chunks_exact(width)).step_by(2);
            pairs
                .flat_map(|(a, b)| a.iter().zip(b))
                .all(|(a, b)| a == b || (a - b).abs() <= 1e-4 * (1.0 + a.abs()))
        };
        StageError::new("the model's outputs for one environment depend on the observations of others")
            .hint(
                "export it in evaluation mode (`model.eval()`), for one step of several environments: a first \
                dimension of steps has size 1",
            )
            .when(!same(&before.log_prob, &after.log_prob) || !same(&before.mean, &after.mean))
    }
}

impl Forward for Running {
    fn head(&self) -> &ActionHead {
        &self.head
    }

    fn state_len(&self) -> usize {
        self.ready.state_len
    }

    fn forward(
        &mut self,
        input: &Observed<'_>,
        recurrent: &mut [f32],
        output: &mut Output,
    ) -> Result<(), StageError> {
        let (own, env, b) = (&self.form, &self.env, input.episode_start.len());
        let mut seen = *input;
        if let Some(order) = &own.observation_order {
            self.obs.clear();
            for row in input.obs.chunks_exact(env.obs_dim()) {
                self.obs.extend(order.iter().map(|&i| row[i]));
            }
            seen.obs = &self.obs;
        }
        let a = env.action_space.num_outputs();
        if let Some(columns) = &self.columns {
            self.mask.clear();
            for row in input.mask.chunks_exact(a) {
                self.mask.extend(columns.iter().map(|&column| row[column]));
            }
            seen.mask = &self.mask;
        }
        let is_continuous = self.choices.is_empty();
        output.log_prob.clear();
        output.mean.clear();
        output.log_std.clear();
        output.value.clear();
        if own.signature.value.is_some() || own.signature.meaning == Meaning::ActionValues {
            output.value.resize(b, 0.0);
        }
        let has_log_std = own.signature.log_std.is_some();
        if has_log_std {
            output.log_std.resize(b * a, 0.0);
        }
        let main = if is_continuous {
            &mut output.mean
        } else {
            &mut output.log_prob
        };
        main.resize(b * a, 0.0);
        let (log_std, value) = (&mut output.log_std, &mut output.value);
        let mut problem = None;
        let (columns, meaning) = (self.columns.as_deref(), own.signature.meaning);
        let (choices, mask) = (&self.choices, input.mask);
        self.ready.run(&seen, recurrent, |i, first, values| match i {
            0 if meaning == Meaning::Choice => {
                problem = problem
                    .take()
                    .or(one_hot((own, env), choices, mask, (first, values), main));
            }
            0 => reorder(values, &mut main[first * a..], a, columns),
            1 if has_log_std => reorder(values, &mut log_std[first * a..], a, columns),
            _ => value[first..first + values.len()].copy_from_slice(values),
        })?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        match meaning {
            Meaning::Mean | Meaning::Choice => return Ok(()),
            Meaning::ActionValues => {
                let rows = main.chunks_exact_mut(a).zip(mask.chunks_exact(a)).zip(value);
                for ((row, mask), value) in rows {
                    let components = categorical::components(choices);
                    *value = components
                        .map(|c| q_values::epsilon_greedy(&mut row[c.clone()], &mask[c], own.epsilon))
                        .sum();
                }
                return Ok(());
            }
            Meaning::Probabilities => main.iter_mut().for_each(|p| *p = libm::logf(*p)),
            Meaning::Logits => {}
        }
        categorical::log_softmax_rows(self.instructions, main, mask, choices, &mut self.softmax);
        let at = main.iter().position(|x| x.is_nan());
        StageError::new(format!(
            "no choice that is allowed in environment {} has a probability in the model's output `{}`",
            at.unwrap_or(0) / a,
            own.signature.actions
        ))
        .when(at.is_some())
    }
}

/// Writes rows `[n, A]` of the model to rows of the environment.
fn reorder(from: &[f32], to: &mut [f32], a: usize, columns: Option<&[usize]>) {
    let Some(columns) = columns else {
        return to[..from.len()].copy_from_slice(from);
    };
    for (from, to) in from.chunks_exact(a).zip(to.chunks_exact_mut(a)) {
        for (&x, &column) in from.iter().zip(columns) {
            to[column] = x;
        }
    }
}

/// Writes the distributions that have the chosen numbers alone; returns the error of a number beyond them, or
/// of a masked choice.
fn one_hot(
    (own, env): (&OnnxForm, &EnvSpec),
    choices: &[u32],
    mask: &[bool],
    (first, values): (usize, &[f32]),
    log_prob: &mut [f32],
) -> Option<StageError> {
    let (a, k) = (env.action_space.num_outputs(), choices.len());
    for (row, values) in values.chunks_exact(k).enumerate() {
        let to = &mut log_prob[(first + row) * a..(first + row + 1) * a];
        to.fill(f32::NEG_INFINITY);
        for (i, &value) in values.iter().enumerate() {
            // The model's order is one of choices, or of components where there are several.
            let component = match (&own.action_order, k) {
                (Some(order), 2..) => order[i],
                _ => i,
            };
            let counted_from = env.encoding.start.get(component).copied().unwrap_or(0);
            let number = value as i64
                - if k == 1 && own.action_order.is_some() {
                    0
                } else {
                    counted_from
                };
            let columns = categorical::components(choices).nth(component)?;
            let Some(n) = usize::try_from(number).ok().filter(|n| *n < columns.len()) else {
                return Some(
                    StageError::new(format!(
                        "the model's output `{}` chooses {value} for environment {}, of {} choices from \
                        {counted_from} on",
                        own.signature.actions,
                        first + row,
                        columns.len()
                    ))
                    .hint("give the environment that it was made for"),
                );
            };
            let n = match (&own.action_order, k) {
                (Some(order), 1) => order[n],
                _ => n,
            };
            if !mask[(first + row) * a + columns.start + n] {
                let name = match k {
                    1 => env.action_space.names().get(n).cloned().unwrap_or_default(),
                    _ => format!("{n} of component {component}"),
                };
                return Some(
                    StageError::new(format!(
                        "the model chose `{name}`, which is masked there, for environment {}",
                        first + row
                    ))
                    .hint("export its logits: they are masked here; or a model with an input `action_mask`"),
                );
            }
            to[columns.start + n] = 0.0;
        }
    }
    None
}
