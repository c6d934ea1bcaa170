//! The inputs and outputs that a model declares.

use stages_core::StageError;
use std::collections::BTreeSet;
use std::fmt;
use tract_onnx::pb::{GraphProto, ModelProto, ValueInfoProto, tensor_proto, tensor_shape_proto, type_proto};
use tract_onnx::prelude::DatumType;

/// An element type that policies take and give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Half precision.
    F16,
    /// Whole numbers of 64 bits.
    I64,
    /// Whole numbers of 32 bits.
    I32,
    /// Truth values.
    Bool,
}

impl Element {
    fn of(ty: i32) -> Option<Self> {
        use tensor_proto::DataType as Ty;
        Some(match Ty::try_from(ty).ok()? {
            Ty::Float => Self::F32,
            Ty::Double => Self::F64,
            Ty::Float16 => Self::F16,
            Ty::Int64 => Self::I64,
            Ty::Int32 => Self::I32,
            Ty::Bool => Self::Bool,
            _ => return None,
        })
    }

    /// The type in a file.
    pub(super) fn onnx(self) -> tensor_proto::DataType {
        use tensor_proto::DataType as Ty;
        match self {
            Self::F32 => Ty::Float,
            Self::F64 => Ty::Double,
            Self::F16 => Ty::Float16,
            Self::I64 => Ty::Int64,
            Self::I32 => Ty::Int32,
            Self::Bool => Ty::Bool,
        }
    }

    /// The type in the runtime.
    pub(super) fn runtime(self) -> DatumType {
        match self {
            Self::F32 => DatumType::F32,
            Self::F64 => DatumType::F64,
            Self::F16 => DatumType::F16,
            Self::I64 => DatumType::I64,
            Self::I32 => DatumType::I32,
            Self::Bool => DatumType::Bool,
        }
    }

    /// True for numbers with a fraction.
    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::F16)
    }
}

/// A dimension of a declared shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dim {
    /// A fixed size.
    Size(usize),
    /// A size that the model leaves open, with its name.
    Open(String),
}

impl Dim {
    /// The fixed size.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Size(n) => Some(*n),
            Self::Open(_) => None,
        }
    }
}

/// An input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    /// The name of the tensor.
    pub name: String,
    /// The type of its elements.
    pub ty: Element,
    /// The shape; `None` where none is declared.
    pub dims: Option<Vec<Dim>>,
    /// The axis of the environments: the first open dimension, or else the first one of [`Ports::rows`].
    pub axis: usize,
}

impl Port {
    fn read(value: &ValueInfoProto) -> Result<Self, StageError> {
        let wrong = || {
            StageError::new(format!(
                "the model's input or output `{}` is not a tensor of numbers",
                value.name
            ))
        };
        let Some(type_proto::Value::TensorType(tensor)) =
            value.r#type.as_ref().and_then(|ty| ty.value.as_ref())
        else {
            return Err(wrong());
        };
        let dims = tensor.shape.as_ref().map(|shape| {
            let dims = shape.dim.iter().map(|dim| match &dim.value {
                Some(tensor_shape_proto::dimension::Value::DimValue(n)) if *n > 0 => Dim::Size(*n as usize),
                Some(tensor_shape_proto::dimension::Value::DimParam(name)) => Dim::Open(name.clone()),
                _ => Dim::Open(String::new()),
            });
            dims.collect()
        });
        Ok(Self {
            name: value.name.clone(),
            ty: Element::of(tensor.elem_type).ok_or_else(wrong)?,
            dims,
            axis: 0,
        })
    }

    /// True if a size is open, or the whole shape.
    fn is_open(&self) -> bool {
        let dims = self.dims.as_deref();
        dims.is_none_or(|dims| dims.iter().any(|dim| dim.size().is_none()))
    }

    /// Finds [`Port::axis`] of a model for `rows` environments.
    fn find_axis(&mut self, rows: usize) {
        let dims = self.dims.as_deref().unwrap_or_default();
        let open = dims.iter().position(|dim| dim.size().is_none());
        let axis = open.or_else(|| dims.iter().position(|dim| dim.size() == Some(rows)));
        self.axis = axis.unwrap_or(0);
    }

    /// The number of values of one environment, where all other dimensions are fixed.
    pub(super) fn values_per_row(&self) -> Option<usize> {
        let (dims, batch) = (self.dims.as_deref()?, self.axis);
        let others = dims.iter().enumerate().filter(|(axis, _)| *axis != batch);
        others
            .map(|(_, dim)| dim.size())
            .try_fold(1_usize, |product, n| product.checked_mul(n?))
    }
}

/// Such as `` `obs` float32 [batch, 4] ``, without the name.
impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ty = match self.ty {
            Element::F32 => "float32",
            Element::F64 => "float64",
            Element::F16 => "float16",
            Element::I64 => "int64",
            Element::I32 => "int32",
            Element::Bool => "bool",
        };
        let Some(dims) = &self.dims else {
            return write!(f, "{ty} of any shape");
        };
        let dims: Vec<String> = dims
            .iter()
            .map(|dim| match dim {
                Dim::Size(n) => n.to_string(),
                Dim::Open(name) if name.is_empty() => "?".to_owned(),
                Dim::Open(name) => name.chars().take(40).collect(),
            })
            .collect();
        write!(f, "{ty} [{}]", dims.join(", "))
    }
}

/// The inputs and outputs of a model.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// The inputs that have no constant value.
    pub inputs: Vec<Port>,
    /// The outputs.
    pub outputs: Vec<Port>,
    /// The number of environments that a pass takes: the model's own, or [`BLOCK`] where it is open.
    pub rows: usize,
}

/// The rows of a pass where the model leaves their number open: enough to spread the runtime's work for each
/// operator, few enough for one decision.
const BLOCK: usize = 64;

impl Ports {
    /// The ports of a model.
    pub(super) fn read(model: &ModelProto) -> Result<Self, StageError> {
        let empty = GraphProto::default();
        let graph = model.graph.as_ref().unwrap_or(&empty);
        let is_constant =
            |value: &&ValueInfoProto| graph.initializer.iter().any(|constant| constant.name == value.name);
        let mut ports = Self {
            inputs: graph
                .input
                .iter()
                .filter(|value| !is_constant(value))
                .map(Port::read)
                .collect::<Result<_, _>>()?,
            outputs: graph.output.iter().map(Port::read).collect::<Result<_, _>>()?,
            rows: BLOCK,
        };
        if !ports.inputs.iter().any(Port::is_open) {
            let firsts = ports
                .inputs
                .iter()
                .filter_map(|port| port.dims.as_ref()?.first()?.size());
            ports.rows = firsts.min().unwrap_or(1);
        }
        for port in ports.inputs.iter_mut().chain(&mut ports.outputs) {
            port.find_axis(ports.rows);
        }
        let computed = graph.node.iter().flat_map(|node| &node.output);
        let known = computed
            .chain(graph.initializer.iter().map(|constant| &constant.name))
            .chain(graph.input.iter().map(|value| &value.name));
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        let missing = ports.outputs.iter().find(|port| !known.contains(port.name.as_str()));
        StageError::new(format!(
            "nothing computes the model's output `{}`",
            missing.map_or("", |port| port.name.as_str())
        ))
        .when(missing.is_some())?;
        let mut names: Vec<&str> = ports
            .inputs
            .iter()
            .chain(&ports.outputs)
            .map(|port| port.name.as_str())
            .collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        StageError::new(format!(
            "two inputs or outputs of the model are named `{}`",
            twice.map_or("", |pair| pair[0])
        ))
        .when(twice.is_some())?;
        Ok(ports)
    }

    /// The port of that name.
    pub(super) fn find(&self, name: &str) -> Option<&Port> {
        self.inputs.iter().chain(&self.outputs).find(|port| port.name == name)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ports: &[Port]| {
            let shown: Vec<String> = ports
                .iter()
                .take(20)
                .map(|port| format!("`{}` {port}", port.name))
                .collect();
            shown.join(", ")
        };
        write!(
            f,
            "the inputs {}, and the outputs {}",
            list(&self.inputs),
            list(&self.outputs)
        )
    }
}
