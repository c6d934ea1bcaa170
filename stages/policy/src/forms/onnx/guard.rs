//! Refusal of models that a policy is not, before the runtime sees them: operators and data of a stranger's
//! file.
//!
//! A model is arithmetic on tensors. Its parameters are in the file, and no value is larger than the file
//! justifies: sizes are inferred, node by node, before a value is computed.

use stages_core::StageError;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto, tensor_proto};
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

/// The largest number of nodes.
const NODES: usize = 20_000;

/// The memory that all values of a pass may take, in bytes, beside [`PER_BYTE`] for each byte of the file.
const MEMORY: u64 = 64 << 20;
const PER_BYTE: u64 = 16;

/// The operators that are computed: of the standard's domain, without control flow, random numbers, text and
/// quantisation. A value's size follows from the sizes of what it is computed from.
const OPERATORS: &str = " Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool \
    BatchNormalization Cast Ceil Celu Clip Concat Constant ConstantOfShape Conv Cos Cosh CumSum Div Dropout \
    Einsum Elu Equal Erf Exp Expand Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm \
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Identity \
    InstanceNormalization IsInf IsNaN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax \
    LpNormalization MatMul Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not OneHot Or PRelu \
    Pow RMSNormalization RNN Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax \
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Round ScatterElements ScatterND \
    Selu Shape Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign Split Sqrt Squeeze Sub Sum Swish Tan \
    Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Where Xor ";

/// Decodes a file, and refuses a model with anything but [`OPERATORS`] on tensors that are in the file.
pub(super) fn decode(bytes: &[u8]) -> Result<ModelProto, StageError> {
    let wrong = |what: &str| StageError::new(format!("it is not an ONNX model: {what}"));
    match bytes {
        [b'P', b'K', ..] => {
            return Err(wrong("it is a zip archive")
                .hint("`format: sb3` reads stable-baselines3's, `format: torch` PyTorch's"));
        }
        [0x80, 2..=5, ..] => {
            return Err(wrong("it is a pickle").hint("save the model by `torch.onnx.export`"));
        }
        _ => {}
    }
    let model = onnx()
        .proto_model_for_read(&mut &*bytes)
        .map_err(|err| wrong(&last(&err)))?;
    let graph = model.graph.as_ref().ok_or_else(|| wrong("it has no graph"))?;
    check(&model, graph)?;
    Ok(model)
}

fn check(model: &ModelProto, graph: &GraphProto) -> Result<(), StageError> {
    let refused = |what: String| Err(StageError::new(format!("the model {what}")).hint(HINT));
    if !model.functions.is_empty() {
        return refused("defines functions of its own".to_owned());
    }
    if graph.node.len() > NODES {
        return refused(format!(
            "has {} nodes, and {NODES} are the most that are read",
            graph.node.len()
        ));
    }
    if !graph.sparse_initializer.is_empty() {
        return refused("has sparse parameters".to_owned());
    }
    for node in &graph.node {
        check_node(node)?;
    }
    let constants = graph.node.iter().flat_map(|node| &node.attribute).flat_map(|a| &a.t);
    for tensor in graph.initializer.iter().chain(constants) {
        check_tensor(tensor)?;
    }
    Ok(())
}

const HINT: &str = "a policy's model computes its outputs from its inputs by tensor operators alone, with its \
    parameters in the file (docs/guides/export-policy.md)";

fn check_node(node: &NodeProto) -> Result<(), StageError> {
    let is_standard = matches!(node.domain.as_str(), "" | "ai.onnx");
    let known = OPERATORS.split(' ').any(|op| op == node.op_type);
    let name = match is_standard {
        true => format!("`{}`", node.op_type),
        false => format!("`{}` of the domain `{}`", node.op_type, node.domain),
    };
    let at = node.output.first().map_or("", String::as_str);
    let because = match node.op_type.as_str() {
        _ if !is_standard => "which is not of the standard's",
        "If" | "Loop" | "Scan" => "which is control flow",
        op if op.starts_with("Random") || matches!(op, "Multinomial" | "Bernoulli") => {
            "which draws random numbers: put out the distribution, and the program draws"
        }
        _ => "which is not among those that are computed",
    };
    StageError::new(format!("the model computes `{at}` by the operator {name}, {because}"))
        .hint(HINT)
        .when(!is_standard || !known)?;
    let has_graph = node.attribute.iter().any(|a| {
        a.g.is_some() || !a.graphs.is_empty() || a.sparse_tensor.is_some() || !a.sparse_tensors.is_empty()
    });
    StageError::new(format!("the model's operator {name} of `{at}` holds a graph"))
        .hint(HINT)
        .when(has_graph)
}

/// The parameters are numbers, as many as their shape says, in the file itself.
fn check_tensor(tensor: &TensorProto) -> Result<(), StageError> {
    let wrong =
        |what: String| StageError::new(format!("the model's tensor `{}` {what}", tensor.name)).hint(HINT);
    let is_external = tensor.data_location == Some(tensor_proto::DataLocation::External as i32);
    wrong("is in another file".to_owned())
        .hint("save it with its parameters inside: `torch.onnx.export(…, external_data=False)`")
        .when(is_external || !tensor.external_data.is_empty())?;
    let count = tensor
        .dims
        .iter()
        .try_fold(1_u64, |product, &n| product.checked_mul(u64::try_from(n).ok()?))
        .ok_or_else(|| wrong(format!("has the shape {:?}", tensor.dims)))?;
    use tensor_proto::DataType as Ty;
    let (width, typed) = match Ty::try_from(tensor.data_type) {
        Ok(Ty::Float) => (4, tensor.float_data.len()),
        Ok(Ty::Double) => (8, tensor.double_data.len()),
        Ok(Ty::Int64) => (8, tensor.int64_data.len()),
        Ok(Ty::Int32) => (4, tensor.int32_data.len()),
        Ok(Ty::Bool | Ty::Int8 | Ty::Uint8) => (1, tensor.int32_data.len()),
        Ok(Ty::Float16) => (2, tensor.int32_data.len()),
        _ => return Err(wrong("is neither of numbers nor of truth values".to_owned())),
    };
    let has = match tensor.raw_data.len() {
        0 => typed as u64,
        bytes => (bytes as u64) / width,
    };
    wrong(format!("has the shape {:?}, and {has} values", tensor.dims))
        .when(has != count || !(tensor.raw_data.len() as u64).is_multiple_of(width))
}

/// Infers the type and shape of every value, in the order of computation, and refuses a model whose values
/// take more memory than its file justifies. Constants are computed on the way, each after its size is known.
pub(super) fn infer(model: &mut InferenceModel, file: usize) -> Result<(), StageError> {
    let mut needed = 0_u64;
    for id in model.eval_order().map_err(|err| wrong(&err))? {
        let node = model.node(id);
        let name = node.name.clone();
        let observed = node.op.observe_outlets(model, node).map_err(|err| wrong(&err))?;
        let observed = observed.into_iter().map(|outlet| model.outlet_fact(outlet).cloned());
        let observed = observed.collect::<TractResult<Vec<_>>>().map_err(|err| wrong(&err))?;
        let (inputs, outputs) = model.node_facts(id).map_err(|err| wrong(&err))?;
        let [inputs, outputs] = [inputs, outputs].map(|facts| facts.into_iter().cloned().collect::<Vec<_>>());
        let given = || {
            (
                inputs.iter().collect(),
                outputs.iter().collect(),
                observed.iter().collect(),
            )
        };
        let at = |err: TractError| wrong(&err.context(format!("at `{name}`")));
        let op = &mut model.node_mut(id).op;
        let (facts, of_outputs, others) = given();
        let (_, inferred, _) = op.infer_facts(facts, of_outputs, others).map_err(at)?;
        for fact in &inferred {
            let size = size(fact).ok_or_else(|| {
                StageError::new(format!(
                    "the model's value `{name}` has no fixed size: {}",
                    shown(fact)
                ))
                .hint("only the number of environments may be open: fix the other sizes when it is exported")
            })?;
            needed = needed.saturating_add(size);
        }
        too_much(needed, file, &format!("`{name}`"))?;
        // Computes it, too, where all of its inputs are constants.
        let (facts, of_outputs, others) = given();
        let (_, inferred, _) = model.node_mut(id).op.infer(facts, of_outputs, others).map_err(at)?;
        for (slot, (fact, before)) in inferred.iter().zip(&outputs).enumerate() {
            let fact = fact.unify(before).map_err(at)?;
            model.set_outlet_fact(OutletId::new(id, slot), fact).map_err(at)?;
        }
    }
    Ok(())
}

/// Refuses a model that takes more memory than its file justifies, by the sizes of the values as the runtime
/// has translated them.
pub(super) fn measure(model: &TypedModel, file: usize) -> Result<(), StageError> {
    let facts = model
        .nodes()
        .iter()
        .flat_map(|node| &node.outputs)
        .map(|output| &output.fact);
    let sizes = facts.map(|fact| {
        let shape = fact.shape.as_concrete()?;
        let width = fact.datum_type.size_of() as u64;
        shape.iter().try_fold(width, |size, &n| size.checked_mul(n as u64))
    });
    let needed = sizes.fold(0_u64, |sum, size| sum.saturating_add(size.unwrap_or(u64::MAX)));
    too_much(needed, file, "its end")
}

fn too_much(needed: u64, file: usize, at: &str) -> Result<(), StageError> {
    let allowed = MEMORY + PER_BYTE * file as u64;
    StageError::new(format!(
        "the model needs more than {} MiB for its values, at {at}: more than a file of {file} bytes \
        justifies",
        allowed >> 20
    ))
    .hint(HINT)
    .when(needed > allowed)
}

/// The bytes of a value; of shapes, which the runtime counts in symbols, those of whole numbers.
fn size(fact: &InferenceFact) -> Option<u64> {
    let shape = fact.shape.as_concrete_finite().ok()??;
    let width = fact.datum_type.concretize().map_or(8, |ty| ty.size_of()) as u64;
    shape
        .iter()
        .try_fold(width, |product, &n| product.checked_mul(n as u64))
}

fn shown(fact: &InferenceFact) -> String {
    format!("{:?}", fact.shape)
}

/// The error of a model that the runtime cannot compute.
pub(super) fn wrong(err: &TractError) -> StageError {
    StageError::new(format!("the model cannot be computed: {}", last(err))).hint(HINT)
}

/// An error's chain in one line, the innermost cause last, at most 300 characters.
fn last(err: &TractError) -> String {
    let chain: Vec<String> = err.chain().map(ToString::to_string).collect();
    let text = chain.join(": ").replace('\n', " ");
    text.chars().take(300).collect()
}

/// Calls the runtime, whose panics are errors here.
pub(super) fn guarded<T>(what: &str, call: impl FnOnce() -> Result<T, StageError>) -> Result<T, StageError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(StageError::new(format!("the model cannot be {what}: the runtime gave up, {text}")).hint(HINT))
    })
}
