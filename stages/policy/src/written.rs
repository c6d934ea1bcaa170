//! Policies that programs write: the file that `runner policy export --format safetensors` writes, changed or
//! not.

use crate::policy::{ENTRY, Policy};
use cache::{ArtifactBuilder, ArtifactDigest, Store};
use safetensors::SafeTensors;
use serde_json::json;
use stages_core::typed_output::{FileType, WrittenFile};
use stages_core::{PortType, StageError};
use std::collections::BTreeSet;

/// The file type `policy`, for policies that other programs write.
pub const FILE_TYPE: FileType = FileType {
    ty: PortType::Policy,
    write,
};

/// Checks and stores a policy; the same tensors and description are the same bytes, whatever wrote them.
///
/// # Errors
/// Fails when there is not exactly one file, when it is not a policy's, when it has tensors that its
/// architecture lacks, or when a parameter is not finite.
fn write(store: &Store, files: &[WrittenFile]) -> Result<ArtifactDigest, StageError> {
    let [file] = files else {
        return Err(StageError::new(format!("it is {} files, and a policy is one", files.len())).hint(HINT));
    };
    let policy = Policy::load(&file.bytes).map_err(|err| StageError::new(err.message).hint(HINT))?;
    let tensors = policy.architecture().tensors();
    let known: BTreeSet<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    let written = SafeTensors::deserialize(&file.bytes)
        .map_err(|err| StageError::new(format!("cannot read the policy: {err}")).hint(HINT))?;
    let mut names: Vec<String> = written.names().into_iter().map(ToString::to_string).collect();
    names.sort();
    if let Some(other) = names.iter().find(|name| !known.contains(name.as_str())) {
        return Err(
            StageError::new(format!("it has a tensor `{other}`, which its architecture has not")).hint(HINT),
        );
    }
    for tensor in &tensors {
        let values = &policy.params()[tensor.range()];
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(StageError::new(format!(
                "number {at} of the tensor `{}` is {}",
                tensor.name, values[at]
            ))
            .hint("parameters are finite"));
        }
    }
    let meta = json!({
        "kind": policy.kind(),
        "architecture": policy.architecture(),
        "parameters": policy.params().len(),
        "env": policy.spec().name,
        "written": true,
    });
    let mut builder = ArtifactBuilder::new(store, PortType::Policy.name(), meta);
    builder.bytes(ENTRY, &policy.save()?)?;
    Ok(builder.finish()?)
}

const HINT: &str = "write one file as `runner policy export --format safetensors` does: tensors by name, \
    and the description as the metadata entry `runner` (docs/policies/read_policy.py)";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::{ActionHead, Architecture};
    use safetensors::tensor::{Dtype, TensorView};
    use stages_env::{ActionSpace, EnvSpec};
    use std::collections::HashMap;

    /// A tensor's name, shape and bytes.
    type Raw = (String, Vec<usize>, Vec<u8>);

    /// A policy of CartPole with the parameters 0, 1/64, 2/64, …
    fn policy() -> Policy {
        let spec = EnvSpec {
            name: "CartPole-v1".to_owned(),
            observation: ["x", "v", "angle", "w"].map(str::to_owned).into(),
            action_space: ActionSpace::discrete(["left", "right"]),
            normalisation: None,
            encoding: stages_env::ActionEncoding::default(),
        };
        let architecture = Architecture {
            obs_dim: 4,
            head: ActionHead::Discrete(2),
            pi: vec![3],
            vf: vec![3],
            ..Architecture::default()
        };
        let params = (0..architecture.num_params()).map(|i| i as f32 / 64.0).collect();
        Policy::new("train/ppo", &spec, &architecture, None, params).unwrap()
    }

    /// The file of a saved policy whose tensors were changed by `change`.
    fn changed(change: impl Fn(&mut Vec<Raw>)) -> Vec<u8> {
        let bytes = policy().save().unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let written = SafeTensors::deserialize(&bytes).unwrap();
        let mut tensors: Vec<Raw> = written
            .tensors()
            .into_iter()
            .map(|(name, view)| (name, view.shape().to_vec(), view.data().to_vec()))
            .collect();
        change(&mut tensors);
        let views: Vec<(String, TensorView<'_>)> = tensors
            .iter()
            .map(|(name, shape, data)| {
                (name.clone(), TensorView::new(Dtype::F32, shape.clone(), data).unwrap())
            })
            .collect();
        let metadata: HashMap<String, String> = header.metadata().clone().unwrap();
        safetensors::serialize(views, Some(metadata)).unwrap()
    }

    fn stored(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let file = WrittenFile {
            name: "policy.safetensors".to_owned(),
            bytes: bytes.into(),
        };
        let digest = write(&store, &[file]).map_err(|err| {
            assert!(err.hint.is_some(), "{}", err.message);
            err.message
        })?;
        let artifact = store.artifact(digest).unwrap();
        Ok(store.blob(artifact.entry(ENTRY).unwrap().blob).unwrap().to_vec())
    }

    #[test]
    fn tensors_are_those_of_the_architecture() {
        let whole = policy().save().unwrap();
        assert_eq!(stored(whole.clone()).unwrap(), whole);
        // Written in another order.
        assert_eq!(stored(changed(|tensors| tensors.reverse())).unwrap(), whole);
        let first = policy().architecture().tensors()[0].name.clone();
        let refused = |change: &dyn Fn(&mut Vec<Raw>)| stored(changed(change)).unwrap_err();
        assert!(refused(&|tensors| drop(tensors.pop())).contains("cannot read the policy"));
        assert!(refused(&|tensors| tensors[0].1.push(1)).contains("has another type or shape"));
        assert!(
            refused(&|tensors| tensors.push(("more".to_owned(), vec![1], vec![0; 4])))
                .contains("a tensor `more`")
        );
        let nan = f32::NAN.to_le_bytes();
        let found = refused(&|tensors| {
            let tensor = tensors.iter_mut().find(|(name, ..)| *name == first).unwrap();
            tensor.2[4..8].copy_from_slice(&nan);
        });
        assert_eq!(found, format!("number 1 of the tensor `{first}` is NaN"));
        assert!(stored(whole[..whole.len() - 1].to_vec()).is_err());
        assert!(stored(b"PK\x03\x04".to_vec()).is_err());
    }
}
