//! `runner policy export`.

use crate::commands::remote;
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::{Args, ValueEnum};
use runner_acting::find_policy;
use runner_engine::{Failure, text};
use stages_policy::forms::{FORM_ENTRY, MODEL};
use stages_policy::{AnyPolicy, OtherPolicy, Policy};
use std::io::{Cursor, Write as _};
use std::path::PathBuf;

/// A format of an exported policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyFormat {
    /// Tensors by name, and a JSON description of network and environment as metadata.
    Safetensors,
    /// The same as the arrays of an .npz file, for `numpy.load`.
    Numpy,
    /// The actor as a model, with normalisation inside and recurrent state as inputs and outputs; of a policy
    /// that is an ONNX model, that one.
    Onnx,
    /// Of policies that are not networks of this program: `policy.json` and the files that it needs, as a zip
    /// archive.
    Zip,
    /// Of rules: `policy.json` alone.
    Json,
}

impl PolicyFormat {
    /// The formats of a policy's form.
    fn of(form: &str) -> &'static [Self] {
        match form {
            "native" => &[Self::Safetensors, Self::Numpy, Self::Onnx],
            "onnx" => &[Self::Onnx, Self::Zip],
            "rule" => &[Self::Json, Self::Zip],
            _ => &[Self::Zip],
        }
    }
}

/// Write a trained policy as one file that other programs read.
///
/// docs/policies/read_policy.py lists the tensors and reads them with NumPy.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner policy export latest/train --format safetensors policy.safetensors
  runner policy export 'latest/train[seed=1].policy' --format numpy policy.npz
  runner policy export latest/train --format onnx policy.onnx")]
pub(crate) struct PolicyExportArgs {
    /// RUN/STAGE of a training, RUN/STAGE.OUTPUT, NAME@ALIAS of a registered policy, or the digest of a
    /// policy.
    #[arg(add = completed(candidates::stages_of_runs))]
    pub what: String,
    /// The format of the file.
    #[arg(long, value_enum)]
    pub format: PolicyFormat,
    /// The file to write to. It must not exist.
    pub dest: PathBuf,
}

pub(super) fn export(session: &Session, args: &PolicyExportArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let (digest, policy) = find_policy(&archive, &args.what)?;
    let form = policy.form();
    let formats = PolicyFormat::of(form);
    if !formats.contains(&args.format) {
        let names = formats.iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|value| format!("`--format {}`", value.get_name())).collect();
        return Err(Failure::usage(format!(
            "cannot export `{}`: a policy of the form `{form}` has no such format",
            args.what
        ))
        .hint(format!("it has {}", names.join(" and "))));
    }
    if let Some(upstream) = archive.store.upstream() {
        remote::warn(upstream);
    }
    let bytes = match (&policy, args.format) {
        (AnyPolicy::Native(policy), PolicyFormat::Numpy) => npz(policy),
        (AnyPolicy::Native(policy), PolicyFormat::Onnx) => onnx(policy),
        (AnyPolicy::Native(policy), _) => policy.save(),
        (AnyPolicy::Other(policy), PolicyFormat::Onnx) => {
            Ok(policy.files().get(MODEL).cloned().unwrap_or_default())
        }
        (AnyPolicy::Other(policy), PolicyFormat::Json) => Ok(described(policy)),
        (AnyPolicy::Other(policy), _) => {
            let about = (FORM_ENTRY.to_owned(), described(policy));
            archived(std::iter::once(about).chain(policy.files().clone()))
        }
    }
    .map_err(|err| Failure::machine(format!("cannot export `{}`: {err}", args.what)))?;
    output::write_new(&session.current.join(&args.dest), &args.dest, &bytes)?;
    let native = policy.native();
    let tensors = native.map(|policy| policy.architecture().tensors().len());
    let parameters = native.map(|policy| policy.params().len());
    if session.json {
        return output::print_json(&serde_json::json!({
            "digest": digest,
            "dest": session.current.join(&args.dest),
            "kind": policy.kind(),
            "form": form,
            "tensors": tensors,
            "parameters": parameters,
            "bytes": bytes.len(),
        }));
    }
    let contents = match (tensors, parameters) {
        (Some(tensors), Some(parameters)) => {
            format!("{} of {parameters} parameters", text::count(tensors, "tensor"))
        }
        _ => format!("a policy of the form {form}"),
    };
    output::print(&format!(
        "{contents}, {} in {}\n",
        text::size(bytes.len() as u64),
        args.dest.display()
    ))
}

/// The tensors as arrays of an .npz file, and `about`, the description as bytes of JSON. The same policy
/// gives the same bytes.
fn npz(policy: &Policy) -> Result<Vec<u8>, stages_core::StageError> {
    let about = about(&policy.save()?)
        .ok_or_else(|| stages_core::StageError::new("cannot write its arrays: they have no description"))?;
    let mut arrays = vec![("about.npy".to_owned(), npy("|u1", &[about.len()], about.bytes()))];
    for tensor in policy.architecture().tensors() {
        let values = &policy.params()[tensor.range()];
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        arrays.push((format!("{}.npy", tensor.name), npy("<f4", &tensor.shape, bytes)));
    }
    archived(arrays)
}

/// Files as a zip archive without compression or times: the same files give the same bytes.
fn archived(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Vec<u8>, stages_core::StageError> {
    let failed =
        |err: &dyn std::fmt::Display| stages_core::StageError::new(format!("cannot write its files: {err}"));
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default());
    for (name, bytes) in files {
        writer.start_file(name, options).map_err(|err| failed(&err))?;
        writer.write_all(&bytes).map_err(|err| failed(&err))?;
    }
    writer.finish().map(Cursor::into_inner).map_err(|err| failed(&err))
}

/// The description of a policy that is not native, as it is stored.
fn described(policy: &OtherPolicy) -> Vec<u8> {
    cache::canonical_json(&policy.describe()).into_bytes()
}

/// The actor as an ONNX model, with the description in its metadata.
fn onnx(policy: &Policy) -> Result<Vec<u8>, stages_core::StageError> {
    let about = about(&policy.save()?).unwrap_or_default();
    policy.onnx(&about)
}

/// The description of network and environment in the metadata of a policy's file, JSON.
fn about(file: &[u8]) -> Option<String> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let header: serde_json::Value = serde_json::from_slice(header).ok()?;
    header["__metadata__"]["runner"].as_str().map(str::to_owned)
}

/// An array in NumPy's format, version 1.0: C order, the data after a header whose end is a multiple of 64
/// bytes.
fn npy(dtype: &str, shape: &[usize], data: impl Iterator<Item = u8>) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n},")).collect();
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}");
    const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
    let before = MAGIC.len() + 2;
    let end = (before + header.len() + 1).next_multiple_of(64);
    header.extend(std::iter::repeat_n(' ', end - before - header.len() - 1));
    header.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend(data);
    out
}
