//! The messages of an ONNX file (onnx.proto of ONNX 1.12), as far as a policy needs them, in protocol
//! buffers' wire format.

/// A message under construction.
#[derive(Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    pub(crate) fn int(mut self, field: u32, value: i64) -> Self {
        self.key(field, 0);
        self.varint(value as u64);
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// An element type, `TensorProto.DataType`.
#[derive(Clone, Copy)]
pub(crate) enum Type {
    Float = 1,
    Int = 7,
    Bool = 9,
}

/// A tensor as a `TensorProto` message.
pub(crate) fn tensor(name: &str, shape: &[usize], ty: Type, data: &[u8]) -> Message {
    let dims = shape
        .iter()
        .fold(Message::default(), |message, &n| message.int(1, n as i64));
    dims.int(2, ty as i64).text(8, name).bytes(9, data)
}

/// An attribute of a node.
pub(crate) enum Attribute<'a> {
    Int(&'a str, i64),
    Ints(&'a str, &'a [i64]),
}

impl Attribute<'_> {
    /// The attribute as an `AttributeProto` message.
    fn message(&self) -> Message {
        match self {
            Self::Int(name, value) => Message::default().text(1, name).int(3, *value).int(20, 2),
            Self::Ints(name, values) => {
                let named = Message::default().text(1, name);
                values
                    .iter()
                    .fold(named, |message, &value| message.int(8, value))
                    .int(20, 7)
            }
        }
    }
}

/// A node as a `NodeProto` message.
pub(crate) fn node(op: &str, inputs: &[&str], outputs: &[String], attributes: &[Attribute<'_>]) -> Message {
    let mut message = Message::default();
    for input in inputs {
        message = message.text(1, input);
    }
    for output in outputs {
        message = message.text(2, output);
    }
    message = message.text(4, op);
    for attribute in attributes {
        message = message.message(5, &attribute.message());
    }
    message
}

/// A tensor whose first dimension is the batch, as a `ValueInfoProto` message.
pub(crate) fn value(name: &str, ty: Type, rest: &[usize]) -> Message {
    let mut shape = Message::default().message(1, &Message::default().text(2, "batch"));
    for &n in rest {
        shape = shape.message(1, &Message::default().int(1, n as i64));
    }
    let tensor = Message::default().int(1, ty as i64).message(2, &shape);
    Message::default()
        .text(1, name)
        .message(2, &Message::default().message(1, &tensor))
}

/// A graph with metadata, as a `ModelProto` message.
pub(crate) fn model(graph: &Message, opset: i64, metadata: &[(&str, &str)]) -> Vec<u8> {
    let mut message = Message::default()
        .int(1, 8)
        .text(2, "runner")
        .message(7, graph)
        .message(8, &Message::default().text(1, "").int(2, opset));
    for (key, value) in metadata {
        message = message.message(14, &Message::default().text(1, key).text(2, value));
    }
    message.finish()
}
