//! Tensors and their offsets in the flat vector of parameters.

/// A tensor in the flat vector of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The tensor's name, such as `actor_lstm.weight_x`, `pi.0.weight` or `action.bias`.
    pub name: String,
    /// The dimensions: `[inputs, outputs]` for a weight, row-major, or `[outputs]` for a bias. The gates of
    /// an LSTM are in the order input, forget, cell, output.
    pub shape: Vec<usize>,
    /// The tensor's offset in the flat vector.
    pub offset: usize,
}

impl Tensor {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// True if the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The range of the tensor's elements in the flat vector.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// A dense layer's weight and bias: their sizes and their offsets in the flat vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dense {
    pub inputs: usize,
    pub outputs: usize,
    pub weight: usize,
    pub bias: usize,
}

/// The tensors laid out so far, in the order of the flat vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tensors {
    pub list: Vec<Tensor>,
    /// The number of parameters.
    pub len: usize,
}

impl Tensors {
    pub(crate) fn tensor(&mut self, name: String, shape: Vec<usize>) -> usize {
        let offset = self.len;
        self.len += shape.iter().product::<usize>();
        self.list.push(Tensor { name, shape, offset });
        offset
    }

    pub(crate) fn dense(&mut self, name: &str, inputs: usize, outputs: usize) -> Dense {
        Dense {
            inputs,
            outputs,
            weight: self.tensor(format!("{name}.weight"), vec![inputs, outputs]),
            bias: self.tensor(format!("{name}.bias"), vec![outputs]),
        }
    }
}
