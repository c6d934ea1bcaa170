//! A model made ready for a number of environments, block by block.
//!
//! The runtime computes blocks of one fixed number of rows, the last one filled up, each on one thread. So a
//! row's outputs are the same whatever the numbers of environments and of threads are. (At another place in
//! its block, the last bit of a sum may be another, by the alignment of the row.)

use super::guard::{self, guarded};
use super::ports::{Dim, Element, Port, Ports};
use super::signature::Signature;
use crate::model::Observed;
use rayon::prelude::*;
use stages_core::StageError;
use std::sync::Arc;
use tract_onnx::pb::{ModelProto, TensorShapeProto, TypeProto, tensor_shape_proto, type_proto};
use tract_onnx::prelude::*;

/// The contents of an input's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    Observation,
    ActionMask,
    EpisodeStart,
    /// Floats of the recurrent state, from the offset on.
    State(usize),
}

/// The place of rows in a tensor: `[outer, rows, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    outer: usize,
    inner: usize,
}

impl Layout {
    fn of(shape: &[usize], axis: usize) -> Self {
        Self {
            outer: shape.iter().take(axis).product(),
            inner: shape.iter().skip(axis + 1).product(),
        }
    }

    /// The number of values of a row.
    pub(super) fn len(self) -> usize {
        self.outer * self.inner
    }

    /// Copies rows `[n, len]` into a tensor of `rows` rows.
    fn scatter<T: Copy>(self, from: &[T], to: &mut [T], rows: usize) {
        if self.outer == 1 {
            return to[..from.len()].copy_from_slice(from);
        }
        for (row, from) in from.chunks_exact(self.len()).enumerate() {
            for (outer, from) in from.chunks_exact(self.inner).enumerate() {
                let at = (outer * rows + row) * self.inner;
                to[at..at + self.inner].copy_from_slice(from);
            }
        }
    }

    /// Copies a tensor of `rows` rows into rows `[n, len]`.
    fn gather<T: Copy>(self, from: &[T], to: &mut [T], rows: usize) {
        if self.outer == 1 {
            return to.copy_from_slice(&from[..to.len()]);
        }
        for (row, to) in to.chunks_exact_mut(self.len()).enumerate() {
            for (outer, to) in to.chunks_exact_mut(self.inner).enumerate() {
                let at = (outer * rows + row) * self.inner;
                to.copy_from_slice(&from[at..at + self.inner]);
            }
        }
    }
}

struct Input {
    feed: Feed,
    ty: Element,
    shape: Vec<usize>,
    layout: Layout,
}

struct Out {
    name: String,
    layout: Layout,
    /// The offset in the recurrent state of a row, for the next value of a state.
    state: Option<usize>,
}

/// A model that is ready to run.
pub(super) struct Ready {
    plan: Arc<TypedSimplePlan>,
    /// The rows of a pass.
    pub(super) rows: usize,
    inputs: Vec<Input>,
    outputs: Vec<Out>,
    /// S, the floats of a row's recurrent state.
    pub(super) state_len: usize,
}

impl Ready {
    /// Makes a model ready, whose ports are `ports`; its file has `file` bytes.
    pub(super) fn new(
        mut model: ModelProto,
        ports: &Ports,
        signature: &Signature,
        file: usize,
    ) -> Result<Self, StageError> {
        let rows = ports.rows;
        let mut state_len = 0;
        let mut inputs = Vec::new();
        for port in &ports.inputs {
            let shape = shape(port, rows)?;
            let layout = Layout::of(&shape, port.axis);
            let is = |name: &Option<String>| name.as_ref() == Some(&port.name);
            let feed = if signature.observation == port.name {
                Feed::Observation
            } else if is(&signature.action_mask) {
                Feed::ActionMask
            } else if is(&signature.episode_start) {
                Feed::EpisodeStart
            } else {
                state_len += layout.len();
                Feed::State(state_len - layout.len())
            };
            inputs.push(Input {
                feed,
                ty: port.ty,
                shape,
                layout,
            });
        }
        fix(&mut model, ports, signature, &inputs);
        let (plan, shapes) = guarded("prepared", || plan(&model, &inputs, file))?;
        let mut outputs = Vec::new();
        for (name, shape) in signature.outputs().zip(shapes) {
            let of = |port: &Port| {
                signature
                    .states
                    .iter()
                    .any(|s| s.output == name && s.input == port.name)
            };
            let state = ports.inputs.iter().position(of);
            let axis = match state {
                Some(input) => ports.inputs[input].axis,
                None => axis(name, &shape, ports, rows),
            };
            let layout = Layout::of(&shape, axis);
            let is_same = state.is_none_or(|input| inputs[input].shape == shape);
            StageError::new(format!(
                "the model's output `{name}` is {shape:?} for {rows} environments"
            ))
            .hint("each environment has a row of each output; a state and its next value have one shape")
            .when(shape.get(axis).copied().unwrap_or(1) != rows || !is_same)?;
            outputs.push(Out {
                name: name.to_owned(),
                layout,
                state: state.and_then(|input| match inputs[input].feed {
                    Feed::State(at) => Some(at),
                    _ => None,
                }),
            });
        }
        Ok(Self {
            plan,
            rows,
            inputs,
            outputs,
            state_len,
        })
    }

    /// The number of values of a row of an input.
    pub(super) fn input_len(&self, feed: Feed) -> Option<usize> {
        let mut found = self.inputs.iter().filter(|input| input.feed == feed);
        found.next().map(|input| input.layout.len())
    }

    /// The number of values of a row of the output of that name.
    pub(super) fn output_len(&self, name: &str) -> Option<usize> {
        self.outputs
            .iter()
            .find(|out| out.name == name)
            .map(|out| out.layout.len())
    }

    /// Computes the outputs of B rows, and replaces their recurrent state `[B, S]`. The observations are
    /// those of the model. `read` is given the number of an output, but for the states, in the order of
    /// [`Signature::outputs`], the first of some rows, and their values.
    pub(super) fn run(
        &self,
        input: &Observed<'_>,
        recurrent: &mut [f32],
        mut read: impl FnMut(usize, usize, &[f32]),
    ) -> Result<(), StageError> {
        let batch = input.episode_start.len();
        let blocks: Vec<usize> = (0..batch).step_by(self.rows).collect();
        let before: &[f32] = recurrent;
        let computed: Vec<_> = blocks
            .into_par_iter()
            .map(|first| (first, self.block(input, before, first)))
            .collect();
        for (first, outputs) in computed {
            for (i, (out, values)) in self.outputs.iter().zip(outputs?).enumerate() {
                let Some(state) = out.state else {
                    read(i, first, &values);
                    continue;
                };
                let len = out.layout.len();
                for (row, values) in values.chunks_exact(len).enumerate() {
                    let at = (first + row) * self.state_len + state;
                    recurrent[at..at + len].copy_from_slice(values);
                }
            }
        }
        Ok(())
    }

    /// The rows of each output in the block of rows from `first` on.
    fn block(
        &self,
        input: &Observed<'_>,
        recurrent: &[f32],
        first: usize,
    ) -> Result<Vec<Vec<f32>>, StageError> {
        let n = self.rows.min(input.episode_start.len() - first);
        let outputs = guarded("computed", || {
            let inputs = self
                .inputs
                .iter()
                .map(|to| self.tensor(to, input, recurrent, (first, n)));
            let inputs = inputs.collect::<TractResult<TVec<TValue>>>();
            inputs
                .and_then(|inputs| self.plan.run(inputs))
                .map_err(|err| guard::wrong(&err))
        })?;
        let mut all = Vec::with_capacity(outputs.len());
        for (out, value) in self.outputs.iter().zip(&outputs) {
            let len = out.layout.len();
            let mut values = vec![0.0; n * len];
            let value = value.cast_to::<f32>().map_err(|err| guard::wrong(&err))?;
            let view = value.try_as_plain_ram().map_err(|err| guard::wrong(&err))?;
            let from = view.as_slice::<f32>().map_err(|err| guard::wrong(&err))?;
            out.layout.gather(from, &mut values, self.rows);
            let at = values.iter().position(|x| x.is_nan() || *x == f32::INFINITY);
            if let Some(at) = at {
                return Err(StageError::new(format!(
                    "the model's output `{}` is {} for environment {}",
                    out.name,
                    values[at],
                    first + at / len.max(1)
                ))
                .hint("its outputs are finite; are its observations scaled as in its training?"));
            }
            all.push(values);
        }
        Ok(all)
    }

    /// The tensor of an input for `n` rows from `first` on; the rows beyond them are 0, all choices allowed.
    fn tensor(
        &self,
        to: &Input,
        from: &Observed<'_>,
        recurrent: &[f32],
        (first, n): (usize, usize),
    ) -> TractResult<TValue> {
        let len = to.layout.len();
        let rows = first * len..(first + n) * len;
        let mut values = vec![0.0; self.rows * len];
        match to.feed {
            Feed::ActionMask => {
                let mut allowed = vec![true; self.rows * len];
                to.layout.scatter(&from.mask[rows], &mut allowed, self.rows);
                if to.ty == Element::Bool {
                    return Ok(Tensor::from_shape(&to.shape, &allowed)?.into_tvalue());
                }
                values = allowed.iter().map(|&allowed| f32::from(u8::from(allowed))).collect();
            }
            Feed::Observation => to.layout.scatter(&from.obs[rows], &mut values, self.rows),
            Feed::EpisodeStart => {
                for (value, &start) in values.iter_mut().zip(&from.episode_start[first..]) {
                    *value = f32::from(u8::from(start));
                }
            }
            Feed::State(at) => {
                let rows = recurrent.chunks_exact(self.state_len).skip(first).take(n);
                let own: Vec<f32> = rows.flat_map(|row| &row[at..at + len]).copied().collect();
                to.layout.scatter(&own, &mut values, self.rows);
            }
        }
        let tensor = Tensor::from_shape(&to.shape, &values)?;
        Ok(match to.ty {
            Element::F32 => tensor.into_tvalue(),
            ty => tensor.cast_to_dt(ty.runtime())?.into_owned().into_tvalue(),
        })
    }
}

/// The shape of an input with `rows` environments.
fn shape(port: &Port, rows: usize) -> Result<Vec<usize>, StageError> {
    let refused = |what: &str| {
        StageError::new(format!("the model's input `{}` {what}: it is {port}", port.name)).hint(
            "give it the number of environments as the only open size when it is exported, and 1 for steps",
        )
    };
    let dims = port.dims.as_ref().ok_or_else(|| refused("declares no shape"))?;
    let axis = port.axis;
    let sizes = dims.iter().enumerate().map(|(i, dim)| match dim {
        Dim::Size(n) if i != axis || *n == rows => Ok(*n),
        Dim::Size(_) => Err(refused(&format!("is not of {rows} environments, as others are"))),
        Dim::Open(_) if i == axis => Ok(rows),
        Dim::Open(_) => Err(refused("has several open sizes")),
    });
    sizes.collect()
}

/// The axis of the environments in an output.
fn axis(name: &str, shape: &[usize], ports: &Ports, rows: usize) -> usize {
    let declared = ports
        .find(name)
        .filter(|port| port.dims.as_ref().is_some_and(|dims| dims.len() == shape.len()));
    let declared = declared
        .map(|port| port.axis)
        .filter(|&axis| shape.get(axis) == Some(&rows));
    declared.unwrap_or_else(|| shape.iter().position(|&n| n == rows).unwrap_or(0))
}

/// Gives the inputs their sizes, and leaves the outputs that are read. Other declared types are dropped: the
/// runtime infers its own.
fn fix(model: &mut ModelProto, ports: &Ports, signature: &Signature, inputs: &[Input]) {
    let Some(graph) = &mut model.graph else { return };
    for (port, input) in ports.inputs.iter().zip(inputs) {
        let dims = input.shape.iter().map(|&n| tensor_shape_proto::Dimension {
            value: Some(tensor_shape_proto::dimension::Value::DimValue(n as i64)),
            ..Default::default()
        });
        let shape = TensorShapeProto { dim: dims.collect() };
        let tensor = type_proto::Tensor {
            elem_type: port.ty.onnx() as i32,
            shape: Some(shape),
        };
        let found = graph.input.iter_mut().filter(|value| value.name == port.name);
        for value in found {
            value.r#type = Some(TypeProto {
                value: Some(type_proto::Value::TensorType(tensor.clone())),
                ..Default::default()
            });
        }
    }
    let outputs = std::mem::take(&mut graph.output);
    let named = |name: &str| outputs.iter().find(|value| value.name == name).cloned();
    graph.output = signature.outputs().filter_map(named).collect();
    graph.value_info.clear();
}

/// The plan of a model whose inputs have fixed sizes, and the shapes of its outputs.
fn plan(
    model: &ModelProto,
    inputs: &[Input],
    file: usize,
) -> Result<(Arc<TypedSimplePlan>, Vec<Vec<usize>>), StageError> {
    let wrong = |err: TractError| guard::wrong(&err);
    let runtime = onnx().with_ignore_value_info(true).with_ignore_output_types(true);
    let parsed = runtime.parse(model, None).map_err(wrong)?;
    StageError::new(format!(
        "the model reads `{}`, which nothing computes",
        parsed.unresolved_inputs.first().map_or("", String::as_str)
    ))
    .when(!parsed.unresolved_inputs.is_empty())?;
    // Without what no output is computed from, which is not looked at either.
    let mut model = parsed.model.into_compact().map_err(wrong)?;
    guard::infer(&mut model, file)?;
    let model = model.into_typed().map_err(wrong)?;
    guard::measure(&model, file)?;
    let model = model.into_optimized().map_err(wrong)?;
    StageError::new("some of the model's inputs are lost in the runtime")
        .when(model.input_outlets().map_err(wrong)?.len() != inputs.len())?;
    let shapes = model.output_outlets().map_err(wrong)?.iter().map(|outlet| {
        let fact = model.outlet_fact(*outlet).map_err(wrong)?;
        let shape = fact.shape.as_concrete();
        shape
            .map(<[usize]>::to_vec)
            .ok_or_else(|| StageError::new("an output of the model has no fixed size"))
    });
    let shapes = shapes.collect::<Result<_, _>>()?;
    Ok((model.into_runnable().map_err(wrong)?, shapes))
}
