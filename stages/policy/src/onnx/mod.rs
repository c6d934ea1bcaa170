//! A policy as an ONNX model (opset 17): observations, their normalisation, the actor, the masked
//! distribution and the likeliest action, with recurrent state as inputs and outputs.
//! docs/guides/export-policy.md lists inputs and outputs.

mod graph;
pub(crate) mod proto;

use crate::{ActionHead, Activation, Architecture, Lstm, Policy, Transformer};
use graph::{Graph, OPSET};
use proto::{Attribute, Type};
use stages_core::StageError;
use stages_env::Normalisation;

impl Policy {
    /// The policy as an ONNX file, whose metadata entry `runner` is `about`. The same policy gives the same
    /// bytes.
    ///
    /// # Errors
    /// Fails when the policy's states are symbolic: a bag of any number of atoms is no tensor.
    pub fn onnx(&self, about: &str) -> Result<Vec<u8>, StageError> {
        if let ActionHead::Candidates(_) = self.architecture().head {
            return Err(StageError::new(
                "a policy over symbolic states has no ONNX form: its inputs are bags of atoms",
            )
            .hint("export it with `--format safetensors` or `--format numpy`"));
        }
        let mut actor = Actor {
            graph: Graph::default(),
            policy: self,
        };
        actor.build();
        Ok(proto::model(&actor.graph.finish(), OPSET, &[("runner", about)]))
    }
}

/// The graph of a policy's actor.
struct Actor<'a> {
    graph: Graph,
    policy: &'a Policy,
}

impl Actor<'_> {
    fn build(&mut self) {
        let policy = self.policy;
        let architecture = policy.architecture();
        let mut x = self.graph.input("observation", Type::Float, &[architecture.obs_dim]);
        if let Some(normalisation) = policy.observation_normalisation() {
            x = self.normalised(&x, normalisation);
        }
        if let Some(lstm) = architecture.lstm {
            x = self.lstm(&x, lstm);
        }
        if let Some(transformer) = architecture.transformer {
            x = self.transformer(&x, transformer);
        }
        for i in 0..architecture.pi.len() {
            x = self.dense(&format!("pi.{i}"), &x);
            x = self.graph.op(
                match architecture.activation {
                    Activation::Tanh => "Tanh",
                    Activation::Relu => "Relu",
                },
                &[&x],
            );
        }
        self.head(&x, architecture);
    }

    /// Normalises observations: `clip((x - offset) / scale, -clip, clip)`.
    fn normalised(&mut self, x: &str, by: &Normalisation) -> String {
        let n = by.offset.len();
        let (offset, scale) = (self.graph.floats(&[n], &by.offset), self.graph.floats(&[n], &by.scale));
        let x = self.graph.op("Sub", &[x, &offset]);
        let x = self.graph.op("Div", &[&x, &scale]);
        let (low, high) = (self.graph.number(-by.clip), self.graph.number(by.clip));
        self.graph.op("Clip", &[&x, &low, &high])
    }

    /// A tensor of the policy, which is added to the graph at most once.
    fn parameter(&mut self, name: &str) -> Option<String> {
        let tensors = self.policy.architecture().tensors();
        let tensor = tensors.iter().find(|tensor| tensor.name == name)?;
        let values = &self.policy.params()[tensor.range()];
        Some(self.graph.parameter(name, &tensor.shape, values))
    }

    fn product(&mut self, x: &str, weight: &str) -> String {
        let weight = self.parameter(weight).unwrap_or_default();
        self.graph.op("MatMul", &[x, &weight])
    }

    fn dense(&mut self, name: &str, x: &str) -> String {
        let x = self.product(x, &format!("{name}.weight"));
        match self.parameter(&format!("{name}.bias")) {
            Some(bias) => self.graph.op("Add", &[&x, &bias]),
            None => x,
        }
    }

    /// `[N, 1]`: 1 where an episode goes on, and 0 where it begins.
    fn goes_on(&mut self) -> String {
        let start = self.graph.input("episode_start", Type::Float, &[]);
        let one = self.graph.number(1.0);
        let on = self.graph.op("Sub", &[&one, &start]);
        self.graph.unsqueeze(&on, &[1])
    }

    fn lstm(&mut self, x: &str, lstm: Lstm) -> String {
        let on = self.goes_on();
        let mut x = x.to_owned();
        for layer in 0..lstm.layers {
            let name = match layer {
                0 => "actor_lstm".to_owned(),
                above => format!("actor_lstm.{above}"),
            };
            let [h, c] = ["h", "c"].map(|part| {
                let state = self.graph.input(&format!("{name}.{part}"), Type::Float, &[lstm.hidden]);
                self.graph.op("Mul", &[&state, &on])
            });
            let from_x = self.product(&x, &format!("{name}.weight_x"));
            let from_h = self.product(&h, &format!("{name}.weight_h"));
            let bias = self.parameter(&format!("{name}.bias")).unwrap_or_default();
            let gates = self.graph.op("Add", &[&from_x, &from_h]);
            let gates = self.graph.op("Add", &[&gates, &bias]);
            let gates = self.graph.split(&gates, -1, &[lstm.hidden; 4]);
            let [i, f, o] = [0, 1, 3].map(|gate| self.graph.op("Sigmoid", &[&gates[gate]]));
            let g = self.graph.op("Tanh", &[&gates[2]]);
            let (kept, new) = (self.graph.op("Mul", &[&f, &c]), self.graph.op("Mul", &[&i, &g]));
            let c = self.graph.op("Add", &[&kept, &new]);
            let bounded = self.graph.op("Tanh", &[&c]);
            let h = self.graph.op("Mul", &[&o, &bounded]);
            for (part, state) in [("h", &h), ("c", &c)] {
                self.graph
                    .output(&format!("next.{name}.{part}"), Type::Float, &[lstm.hidden], state);
            }
            x = h;
        }
        x
    }

    fn transformer(&mut self, x: &str, of: Transformer) -> String {
        let on = self.goes_on();
        // The steps of the episode before this one that the state holds, and with this one.
        let steps = self.graph.input("steps", Type::Float, &[1]);
        let before = self.graph.op("Mul", &[&steps, &on]);
        let (one, window) = (self.graph.number(1.0), self.graph.number(of.window as f32));
        let seen = self.graph.op("Add", &[&before, &one]);
        let seen = self.graph.op("Min", &[&seen, &window]);
        self.graph.output("next.steps", Type::Float, &[1], &seen);
        let ages: Vec<f32> = (0..of.window).map(|age| age as f32).collect();
        let ages = self.graph.floats(&[1, of.window], &ages);
        let known = self.graph.op("Less", &[&ages, &seen]);
        let known = self.graph.unsqueeze(&known, &[1, 2]);
        let mut x = self.dense("embed", x);
        for block in 0..of.n_layers {
            let block = format!("block.{block}");
            let y = self.norm(&format!("{block}.norm"), &x);
            let y = self.attention(&block, &y, &known, of);
            let y = self.dense(&format!("{block}.output"), &y);
            let y = self.graph.op("Relu", &[&y]);
            x = self.gate(&format!("{block}.gate"), &x, &y, of.d_model);
            let mut y = self.norm(&format!("{block}.ff_norm"), &x);
            for layer in ["ff_in", "ff_out"] {
                y = self.dense(&format!("{block}.{layer}"), &y);
                y = self.graph.op("Relu", &[&y]);
            }
            x = self.gate(&format!("{block}.ff_gate"), &x, &y, of.d_model);
        }
        x
    }

    fn norm(&mut self, name: &str, x: &str) -> String {
        let (weight, bias) = (
            self.parameter(&format!("{name}.weight")).unwrap_or_default(),
            self.parameter(&format!("{name}.bias")).unwrap_or_default(),
        );
        // Its default epsilon is 1e-5.
        self.graph.op_with(
            "LayerNormalization",
            &[x, &weight, &bias],
            &[Attribute::Int("axis", -1)],
        )
    }

    /// Attention of the present step to the steps of the window, newest first: the state `[N, W, 2 d]` holds
    /// their keys and values.
    fn attention(&mut self, block: &str, x: &str, known: &str, of: Transformer) -> String {
        let (d, heads, width) = (of.d_model, of.n_heads as i64, (of.d_model / of.n_heads) as i64);
        let name = format!("{block}.key_value");
        let state = self.graph.input(&name, Type::Float, &[of.window, 2 * d]);
        let own = self.dense(&name, x);
        let own = self.graph.unsqueeze(&own, &[1]);
        let past = match of.window {
            1 => own,
            window => {
                let kept = self.graph.split(&state, 1, &[window - 1, 1]);
                self.graph.concat(&[&own, &kept[0]], 1)
            }
        };
        self.graph
            .output(&format!("next.{name}"), Type::Float, &[of.window, 2 * d], &past);
        let parts = self.graph.split(&past, -1, &[d, d]);
        let position = self.parameter(&format!("{block}.position")).unwrap_or_default();
        let keys = self.graph.op("Add", &[&parts[0], &position]);
        let by_head = |graph: &mut Graph, rows: &str, order: &[i64]| {
            let rows = graph.reshape(rows, &[0, of.window as i64, heads, width]);
            graph.op_with("Transpose", &[&rows], &[Attribute::Ints("perm", order)])
        };
        let keys = by_head(&mut self.graph, &keys, &[0, 2, 3, 1]);
        let values = by_head(&mut self.graph, &parts[1], &[0, 2, 1, 3]);
        let query = self.dense(&format!("{block}.query"), x);
        let query = self.graph.reshape(&query, &[0, heads, 1, width]);
        let scores = self.graph.op("MatMul", &[&query, &keys]);
        let root = self.graph.number((width as f32).sqrt());
        let scores = self.graph.op("Div", &[&scores, &root]);
        let never = self.graph.number(f32::NEG_INFINITY);
        let scores = self.graph.op("Where", &[known, &scores, &never]);
        let shares = self.graph.op_with("Softmax", &[&scores], &[Attribute::Int("axis", -1)]);
        let out = self.graph.op("MatMul", &[&shares, &values]);
        self.graph.reshape(&out, &[0, d as i64])
    }

    /// The GRU gate that mixes y into x.
    fn gate(&mut self, name: &str, x: &str, y: &str, d: usize) -> String {
        let of = |this: &mut Self, part: &str, of: &str| this.product(of, &format!("{name}.{part}.weight"));
        let (from_y, from_x) = (of(self, "rz_y", y), of(self, "rz_x", x));
        let both = self.graph.op("Add", &[&from_y, &from_x]);
        let parts = self.graph.split(&both, -1, &[d, d]);
        let bias = self.parameter(&format!("{name}.bias")).unwrap_or_default();
        let z = self.graph.op("Sub", &[&parts[1], &bias]);
        let (r, z) = (self.graph.op("Sigmoid", &[&parts[0]]), self.graph.op("Sigmoid", &[&z]));
        let reset = self.graph.op("Mul", &[&r, x]);
        let (from_y, from_x) = (of(self, "h_y", y), of(self, "h_x", &reset));
        let h = self.graph.op("Add", &[&from_y, &from_x]);
        let h = self.graph.op("Tanh", &[&h]);
        let change = self.graph.op("Sub", &[&h, x]);
        let change = self.graph.op("Mul", &[&z, &change]);
        self.graph.op("Add", &[x, &change])
    }

    fn head(&mut self, x: &str, architecture: &Architecture) {
        let head = &architecture.head;
        match head {
            ActionHead::Discrete(_) | ActionHead::MultiDiscrete(_) => {
                let logits = self.dense("action", x);
                let masked = self.masked(&logits, head.num_outputs());
                let sizes: Vec<usize> = head.choices().iter().map(|&n| n as usize).collect();
                let parts = match sizes.len() {
                    1 => vec![masked],
                    _ => self.graph.split(&masked, -1, &sizes),
                };
                let log_probabilities: Vec<String> = parts
                    .iter()
                    .map(|part| self.graph.op_with("LogSoftmax", &[part], &[Attribute::Int("axis", -1)]))
                    .collect();
                let all: Vec<&str> = log_probabilities.iter().map(String::as_str).collect();
                let all = self.graph.concat(&all, -1);
                self.graph
                    .output("log_probabilities", Type::Float, &[head.num_outputs()], &all);
                self.best(&parts);
            }
            ActionHead::QValues { choices, dueling, .. } => {
                let a = *choices as usize;
                let mut q = self.dense("q", x);
                if *dueling {
                    let parts = self.graph.split(&q, -1, &[a, 1]);
                    let mean =
                        self.graph
                            .op_with("ReduceMean", &[&parts[0]], &[Attribute::Ints("axes", &[-1])]);
                    let base = self.graph.op("Sub", &[&parts[1], &mean]);
                    q = self.graph.op("Add", &[&parts[0], &base]);
                }
                self.graph.output("action_values", Type::Float, &[a], &q);
                let masked = self.masked(&q, a);
                self.best(&[masked]);
            }
            ActionHead::Continuous(_) | ActionHead::ScaledGaussian(_) => {
                let mean = self.dense("action", x);
                self.bounded(&mean, head);
            }
            ActionHead::SquashedGaussian(a) => {
                let both = self.dense("action", x);
                let parts = self.graph.split(&both, -1, &[*a, *a]);
                let mean = self.graph.op("Tanh", &[&parts[0]]);
                self.bounded(&mean, head);
            }
            ActionHead::Deterministic(_) => {
                let mean = self.dense("action", x);
                let mean = self.graph.op("Tanh", &[&mean]);
                self.bounded(&mean, head);
            }
            // Refused before.
            ActionHead::Candidates(_) => {}
        }
    }

    /// Replaces logits with minus infinity where the input `action_mask` is false.
    fn masked(&mut self, x: &str, a: usize) -> String {
        let mask = self.graph.input("action_mask", Type::Bool, &[a]);
        let never = self.graph.number(f32::NEG_INFINITY);
        self.graph.op("Where", &[&mask, x, &never])
    }

    /// Adds the choices with the greatest logit of each part, the first in case of ties: `[N]`, or `[N, K]`
    /// for several parts.
    fn best(&mut self, parts: &[String]) {
        let attributes = |keep: i64| [Attribute::Int("axis", -1), Attribute::Int("keepdims", keep)];
        let start = self.policy.spec().encoding.start.clone();
        if let [only] = parts {
            let mut best = self.graph.op_with("ArgMax", &[only], &attributes(0));
            if !start.is_empty() {
                let start = self.graph.ints(&start);
                best = self.graph.op("Add", &[&best, &start]);
            }
            return self.graph.output("action", Type::Int, &[], &best);
        }
        let best: Vec<String> = parts
            .iter()
            .map(|part| self.graph.op_with("ArgMax", &[part], &attributes(1)))
            .collect();
        let best: Vec<&str> = best.iter().map(String::as_str).collect();
        let mut all = self.graph.concat(&best, -1);
        if !start.is_empty() {
            let start = self.graph.ints(&start);
            all = self.graph.op("Add", &[&all, &start]);
        }
        self.action(&all, Type::Int, parts.len());
    }

    /// Adds the components `[N, K]` of an action as an output, in the shape that the environment takes.
    fn action(&mut self, x: &str, ty: Type, k: usize) {
        let Some(shape) = &self.policy.spec().encoding.shape else {
            return self.graph.output("action", ty, &[k], x);
        };
        let sizes: Vec<i64> = std::iter::once(-1).chain(shape.iter().map(|&n| n as i64)).collect();
        let x = self.graph.reshape(x, &sizes);
        self.graph.output("action", ty, shape, &x);
    }

    /// Scales x to the bounds of the actions where the head does so, and holds it to them.
    fn bounded(&mut self, x: &str, head: &ActionHead) {
        let a = head.num_components();
        let Some(bounds) = self.policy.spec().action_space.bounds() else {
            return self.action(x, Type::Float, a);
        };
        let mut x = x.to_owned();
        if head.is_scaled() {
            let (middle, half): (Vec<f32>, Vec<f32>) = bounds.middles_and_halves().unzip();
            let (half, middle) = (self.graph.floats(&[a], &half), self.graph.floats(&[a], &middle));
            x = self.graph.op("Mul", &[&x, &half]);
            x = self.graph.op("Add", &[&x, &middle]);
        }
        let (low, high) = (
            self.graph.floats(&[a], &bounds.low),
            self.graph.floats(&[a], &bounds.high),
        );
        x = self.graph.op("Max", &[&x, &low]);
        x = self.graph.op("Min", &[&x, &high]);
        self.action(&x, Type::Float, a);
    }
}
