//! Small models, by the writer of our export.

use crate::onnx::proto::{Attribute, Message, Type, node, tensor};

/// A size of a declared shape: fixed, or open by a name.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Of(i64),
    Open(&'static str),
}

/// The number of environments.
pub(super) const B: Size = Size::Open("batch");

pub(super) fn n(n: i64) -> Size {
    Size::Of(n)
}

/// A graph under construction; the fields are those of `GraphProto`.
#[derive(Clone, Default)]
pub(super) struct Model {
    graph: Message,
    /// The fields of the model beside its graph.
    rest: Message,
}

fn port(name: &str, ty: Type, sizes: &[Size]) -> Message {
    let shape = sizes.iter().fold(Message::default(), |shape, size| {
        let dim = match size {
            Size::Of(n) => Message::default().int(1, *n),
            Size::Open(name) => Message::default().text(2, name),
        };
        shape.message(1, &dim)
    });
    let tensor = Message::default().int(1, ty as i64).message(2, &shape);
    Message::default()
        .text(1, name)
        .message(2, &Message::default().message(1, &tensor))
}

impl Model {
    pub(super) fn input(mut self, name: &str, ty: Type, sizes: &[Size]) -> Self {
        self.graph = self.graph.message(11, &port(name, ty, sizes));
        self
    }

    pub(super) fn output(mut self, name: &str, ty: Type, sizes: &[Size]) -> Self {
        self.graph = self.graph.message(12, &port(name, ty, sizes));
        self
    }

    pub(super) fn op(self, op: &str, inputs: &[&str], output: &str, attributes: &[Attribute<'_>]) -> Self {
        self.node(&node(op, inputs, &[output.to_owned()], attributes))
    }

    pub(super) fn node(mut self, node: &Message) -> Self {
        self.graph = self.graph.message(1, node);
        self
    }

    pub(super) fn floats(self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(&tensor(name, shape, Type::Float, &bytes))
    }

    pub(super) fn ints(self, name: &str, values: &[i64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(&tensor(name, &[values.len()], Type::Int, &bytes))
    }

    pub(super) fn constant(mut self, tensor: &Message) -> Self {
        self.graph = self.graph.message(5, tensor);
        self
    }

    /// Adds a field of `ModelProto`.
    pub(super) fn and(mut self, field: u32, message: &Message) -> Self {
        self.rest = self.rest.message(field, message);
        self
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        let opset = Message::default().text(1, "").int(2, 17);
        self.rest.int(1, 8).message(7, &self.graph).message(8, &opset).finish()
    }
}
