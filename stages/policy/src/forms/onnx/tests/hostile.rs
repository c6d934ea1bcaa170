//! Files of attackers: nothing runs, nothing panics, and no memory is taken that the file does not justify.

use super::build::{B, Model, Size, n};
use super::roles::{continuous, discrete, linear};
use super::{D, Told, policy};
use crate::onnx::proto::{Attribute, Message, Type, node, tensor};
use stages_env::EnvSpec;

/// The error of a model; a panic fails the test.
fn refused(bytes: Vec<u8>, env: &EnvSpec) -> String {
    let err = policy(bytes, env, &Told::default()).expect_err("a hostile file was read");
    assert!(err.message.len() < 1000, "{err}");
    err.message
}

/// The largest resident size of this process, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default()
}

/// A model that computes `logits` from `x` and a constant `c`.
fn with(constant: &Message) -> Model {
    linear("x", "h", D, 3)
        .constant(constant)
        .op("Add", &["h", "c"], "logits", &[])
        .output("logits", Type::Float, &[B, n(3)])
}

/// Parameters in another file: an absolute path, one above, and a link's name.
#[test]
fn no_other_file_is_read() {
    for location in ["/etc/passwd", "../../etc/passwd", "weights.bin", "/proc/self/environ"] {
        let entry = Message::default().text(1, "location").text(2, location);
        for is_external in [0, 1] {
            let tensor = Message::default()
                .int(1, 3)
                .int(2, 1)
                .text(8, "c")
                .message(13, &entry)
                .int(14, is_external);
            let message = refused(with(&tensor).bytes(), &discrete());
            assert_eq!(message, "the model's tensor `c` is in another file");
        }
    }
}

#[test]
fn shapes_are_those_of_the_values() {
    let of = |dims: &[i64], ty: i64, raw: &[u8]| {
        let dims = dims.iter().fold(Message::default(), |message, &n| message.int(1, n));
        dims.int(2, ty).text(8, "c").bytes(9, raw)
    };
    for (dims, ty, raw) in [
        (&[1 << 40][..], 1, &[0_u8; 12][..]),
        (&[1 << 62, 1 << 62], 1, &[0; 12]),
        (&[-1], 1, &[0; 12]),
        (&[3], 1, &[0; 11]),
        (&[3], 8, &[0; 12]),
        (&[3], 99, &[0; 12]),
        (&[1 << 50, 0], 1, &[0; 12]),
    ] {
        let message = refused(with(&of(dims, ty, raw)).bytes(), &discrete());
        assert!(message.starts_with("the model's tensor `c`"), "{message}");
    }
}

/// Values that a few bytes can make as large as one likes.
#[test]
fn no_value_is_larger_than_the_file_justifies() {
    let before = most_memory();
    let ones = |count: usize| vec![1.0; count];
    let column = || {
        linear("x", "h", D, 3)
            .floats("col", &[50_000, 1], &ones(50_000))
            .floats("row", &[1, 50_000], &ones(50_000))
    };
    let doubled = (0..60).fold(linear("x", "h", D, 3), |model, i| {
        let from = if i == 0 { "h".to_owned() } else { format!("d{}", i - 1) };
        model.op(
            "Concat",
            &[&from, &from],
            &format!("d{i}"),
            &[Attribute::Int("axis", 1)],
        )
    });
    let huge = [60_000_i64, 60_000];
    let models: Vec<(&str, Model)> = vec![
        (
            "ConstantOfShape",
            linear("x", "h", D, 3)
                .ints("s", &huge)
                .op("ConstantOfShape", &["s"], "big", &[]),
        ),
        (
            "Expand",
            linear("x", "h", D, 3)
                .ints("s", &[1 << 20, 1 << 20])
                .floats("v", &[1, 1], &[1.0])
                .op("Expand", &["v", "s"], "big", &[]),
        ),
        (
            "Tile",
            linear("x", "h", D, 3)
                .ints("s", &[1 << 30, 1 << 10])
                .op("Tile", &["h", "s"], "big", &[]),
        ),
        (
            "Pad",
            linear("x", "h", D, 3)
                .ints("s", &[0, 0, 0, 1 << 40])
                .op("Pad", &["h", "s"], "big", &[]),
        ),
        ("MatMul", column().op("MatMul", &["col", "row"], "big", &[])),
        ("Add", column().op("Add", &["col", "row"], "big", &[])),
        ("Concat", doubled.op("Identity", &["d59"], "big", &[])),
        (
            "Range",
            linear("x", "h", D, 3)
                .constant(&tensor("from", &[], Type::Int, &0_i64.to_le_bytes()))
                .constant(&tensor("to", &[], Type::Int, &(1_i64 << 40).to_le_bytes()))
                .constant(&tensor("by", &[], Type::Int, &1_i64.to_le_bytes()))
                .op("Range", &["from", "to", "by"], "big", &[]),
        ),
    ];
    for (name, model) in models {
        let model = model
            .op("ReduceMax", &["big"], "most", &[Attribute::Int("keepdims", 0)])
            .op("Cast", &["most"], "number", &[Attribute::Int("to", 1)])
            .op("Add", &["h", "number"], "logits", &[])
            .output("logits", Type::Float, &[B, n(3)]);
        let message = refused(model.bytes(), &discrete());
        eprintln!("{name}: {message}");
        assert!(message.starts_with("the model"), "{name}: {message}");
    }
    // Of what nothing is computed from, nothing is computed.
    let unused = linear("x", "logits", D, 3)
        .ints("s", &huge)
        .op("ConstantOfShape", &["s"], "big", &[]);
    assert!(policy(unused.bytes(), &discrete(), &Told::default()).is_ok());
    // Other tests run beside; each of these values has 10 GB and more.
    assert!(
        most_memory() - before < 2 << 30,
        "{} bytes more",
        most_memory() - before
    );
}

#[test]
fn control_flow_functions_and_other_operators_are_refused() {
    let body = Message::default().text(2, "body");
    let graph = Message::default().text(1, "body").message(6, &body).int(20, 5);
    for (op, wanted) in [
        ("Loop", "`Loop`, which is control flow"),
        ("If", "`If`, which is control flow"),
        ("Scan", "`Scan`, which is control flow"),
        ("Relu", "holds a graph"),
        ("PyOp", "`PyOp`, which is not among"),
        ("RandomNormalLike", "which draws random numbers"),
        ("Multinomial", "which draws random numbers"),
        ("DecodeString\u{1b}[2J", "which is not among"),
    ] {
        let hostile = node(op, &["h"], &["logits".to_owned()], &[]).message(5, &graph);
        let model = linear("x", "h", D, 3)
            .node(&hostile)
            .output("logits", Type::Float, &[B, n(3)]);
        let message = refused(model.bytes(), &discrete());
        assert!(message.contains(wanted), "{op}: {message}");
        assert!(!message.contains('\u{1b}'), "{message:?}");
    }
    // The runtime would take it for the standard's.
    let custom = node("Relu", &["h"], &["logits".to_owned()], &[]).text(7, "com.example");
    let model = linear("x", "h", D, 3)
        .node(&custom)
        .output("logits", Type::Float, &[B, n(3)]);
    let message = refused(model.bytes(), &discrete());
    assert!(
        message.contains("`Relu` of the domain `com.example`, which is not of the standard's"),
        "{message}"
    );
    let function = Message::default().text(1, "Relu").text(10, "");
    let message = refused(linear("x", "logits", D, 3).and(25, &function).bytes(), &discrete());
    assert!(message.contains("defines functions"), "{message}");
}

/// Graphs that no computation belongs to.
#[test]
fn broken_graphs_are_errors() {
    let out = |model: Model| model.output("logits", Type::Float, &[B, n(3)]);
    let twice = node("Split", &["h"], &["a".to_owned(), "a".to_owned()], &[]);
    let deep = "(".repeat(100_000);
    let deep: &'static str = Box::leak(deep.into_boxed_str());
    let models = [
        // An output that nothing computes, a circle, an input that nothing computes.
        out(linear("x", "h", D, 3)),
        out(linear("x", "h", D, 3).op("Add", &["logits", "h"], "logits", &[])),
        out(linear("x", "h", D, 3)
            .op("Add", &["a", "h"], "b", &[])
            .op("Add", &["b", "h"], "a", &[])
            .op("Add", &["a", "b"], "logits", &[])),
        out(linear("x", "h", D, 3).op("Add", &["nothing", "h"], "logits", &[])),
        out(linear("x", "h", D, 3)
            .node(&twice)
            .op("Add", &["a", "h"], "logits", &[])),
        // Sizes, axes and permutations beyond all.
        out(linear("x", "h", D, 3).op("Transpose", &["h"], "logits", &[Attribute::Ints("perm", &[7, -9])])),
        out(linear("x", "h", D, 3).op("Softmax", &["h"], "logits", &[Attribute::Int("axis", 1 << 40)])),
        out(linear("x", "h", D, 3).op("Gemm", &["h"], "logits", &[])),
        out(linear("x", "h", D, 3).op(
            "LSTM",
            &["h", "h", "h"],
            "logits",
            &[Attribute::Int("hidden_size", -3)],
        )),
        out(linear("x", "h", D, 3).op("Einsum", &["h"], "logits", &[])),
        out(linear("x", "h", D, 3)
            .ints("s", &[0, 0])
            .op("Reshape", &["h", "s", "s", "s"], "logits", &[])),
        // Sizes that the runtime would have to parse.
        out(linear("x", "h", D, 3).input("y", Type::Float, &[Size::Open(deep)]).op(
            "Add",
            &["h", "y"],
            "logits",
            &[],
        )),
        Model::default(),
    ];
    for (i, model) in models.into_iter().enumerate() {
        // The runtime takes an axis beyond all for the last one.
        match policy(model.bytes(), &discrete(), &Told::default()) {
            Err(err) => assert!(err.message.len() < 1000 && i != 6, "{i}: {err}"),
            Ok(_) => assert_eq!(i, 6),
        }
    }
}

/// Every beginning of a file, and every byte changed: an error, or a policy that acts.
#[test]
fn truncated_and_changed_files_are_errors_or_policies() {
    let whole = linear("x", "logits", D, 1).bytes();
    assert!(whole.len() < 400);
    for cut in 0..whole.len() {
        let _ = policy(whole[..cut].to_vec(), &continuous(), &Told::default());
        for byte in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[cut] = byte;
            let _ = policy(bytes, &continuous(), &Told::default());
        }
    }
    for (bytes, wanted) in [
        (&b"PK\x03\x04 a zip archive"[..], "it is a zip archive"),
        (b"\x80\x04\x95 a pickle", "it is a pickle"),
        (b"\x80\x02}q\x00.", "it is a pickle"),
        (b"", "has no graph"),
        (b"MZ\x90\x00", "it is not an ONNX model"),
    ] {
        let message = refused(bytes.to_vec(), &discrete());
        assert!(message.contains(wanted), "{message}");
    }
}
