//! A graph of ONNX operators under construction: values are named, nodes are in the order of their
//! computation.

use super::proto::{Attribute, Message, Type, node, tensor, value};

/// The version of the operator set.
pub(super) const OPSET: i64 = 17;

#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    named: usize,
}

impl Graph {
    fn name(&mut self) -> String {
        self.named += 1;
        format!("v{}", self.named)
    }

    pub(super) fn input(&mut self, name: &str, ty: Type, rest: &[usize]) -> String {
        self.inputs.push(value(name, ty, rest));
        name.to_owned()
    }

    /// Makes a value an output of the graph, under the given name.
    pub(super) fn output(&mut self, name: &str, ty: Type, rest: &[usize], of: &str) {
        self.outputs.push(value(name, ty, rest));
        self.nodes.push(node("Identity", &[of], &[name.to_owned()], &[]));
    }

    /// Adds a constant under the given name.
    pub(super) fn parameter(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constants.push(tensor(name, shape, Type::Float, &bytes));
        name.to_owned()
    }

    pub(super) fn floats(&mut self, shape: &[usize], values: &[f32]) -> String {
        let name = self.name();
        self.parameter(&name, shape, values)
    }

    pub(super) fn number(&mut self, value: f32) -> String {
        self.floats(&[], &[value])
    }

    pub(super) fn ints(&mut self, values: &[i64]) -> String {
        let name = self.name();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constants.push(tensor(&name, &[values.len()], Type::Int, &bytes));
        name
    }

    pub(super) fn op(&mut self, op: &str, inputs: &[&str]) -> String {
        self.op_with(op, inputs, &[])
    }

    pub(super) fn op_with(&mut self, op: &str, inputs: &[&str], attributes: &[Attribute<'_>]) -> String {
        let name = self.name();
        self.nodes
            .push(node(op, inputs, std::slice::from_ref(&name), attributes));
        name
    }

    /// Splits a value along an axis into parts of the given sizes.
    pub(super) fn split(&mut self, of: &str, axis: i64, sizes: &[usize]) -> Vec<String> {
        let names: Vec<String> = sizes.iter().map(|_| self.name()).collect();
        let sizes: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        let sizes = self.ints(&sizes);
        self.nodes
            .push(node("Split", &[of, &sizes], &names, &[Attribute::Int("axis", axis)]));
        names
    }

    pub(super) fn concat(&mut self, values: &[&str], axis: i64) -> String {
        self.op_with("Concat", values, &[Attribute::Int("axis", axis)])
    }

    /// Reshapes a value; 0 keeps a dimension, and -1 infers one.
    pub(super) fn reshape(&mut self, of: &str, shape: &[i64]) -> String {
        let shape = self.ints(shape);
        self.op("Reshape", &[of, &shape])
    }

    pub(super) fn unsqueeze(&mut self, of: &str, axes: &[i64]) -> String {
        let axes = self.ints(axes);
        self.op("Unsqueeze", &[of, &axes])
    }

    /// The graph as a `GraphProto` message.
    pub(super) fn finish(self) -> Message {
        let mut graph = Message::default();
        for node in &self.nodes {
            graph = graph.message(1, node);
        }
        graph = graph.text(2, "policy");
        for constant in &self.constants {
            graph = graph.message(5, constant);
        }
        for input in &self.inputs {
            graph = graph.message(11, input);
        }
        for output in &self.outputs {
            graph = graph.message(12, output);
        }
        graph
    }
}
