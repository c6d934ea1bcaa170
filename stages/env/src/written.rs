//! Environments that programs write: the files of an artifact, changed or not, and their family.

use crate::batch::Step;
use crate::open::{evaluation_episodes, open};
use crate::open_options::{OpenOptions, Split};
use cache::{ArtifactBuilder, ArtifactDigest, Store};
use serde_json::json;
use stages_core::typed_output::{FileType, WrittenFile};
use stages_core::{PortType, StageError};

/// The type `env` as programs write it.
pub const FILE_TYPE: FileType = FileType {
    ty: PortType::Env,
    write,
};

/// The file that names the family; an artifact has it in its metadata.
const FAMILY: &str = "family";

/// Checks and stores an environment: each split is opened, and its first observations are looked at.
fn write(store: &Store, files: &[WrittenFile]) -> Result<ArtifactDigest, StageError> {
    let hint = "write the files of an environment as `runner export RUN/STAGE.env DIR` does, and its family \
        (`options`, `stocks`, `table`, …) into the file `family` beside them";
    let family = files
        .iter()
        .find(|file| file.name == FAMILY)
        .ok_or_else(|| StageError::new("it has no file `family`").hint(hint))?;
    let family = std::str::from_utf8(&family.bytes).unwrap_or_default().trim();
    let meta = json!({ "family": family, "format": 1, "written": true });
    let mut builder = ArtifactBuilder::new(store, PortType::Env.name(), meta);
    let mut sorted: Vec<&WrittenFile> = files.iter().filter(|file| file.name != FAMILY).collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    for file in sorted {
        builder.bytes(&file.name, &file.bytes)?;
    }
    let digest = builder.finish()?;
    let artifact = store.artifact(digest)?;
    // The hints of the families are for artifacts that are damaged.
    let wrong = |err: StageError| StageError::new(err.message).hint(hint);
    let mut opened = false;
    for split in [Split::Train, Split::Validation, Split::Test] {
        let episodes = evaluation_episodes(store, &artifact, split).map_err(wrong)?;
        if episodes == Some(0) {
            continue;
        }
        opened = true;
        let options = OpenOptions {
            split,
            ..OpenOptions::train(episodes.unwrap_or(1).clamp(1, MOST), 0)
        };
        let mut env = open(store, &artifact, &options).map_err(wrong)?;
        let mut step = Step::new(env.spec(), options.num_envs);
        env.reset(step.buffers());
        let width = env.spec().obs_dim().max(1);
        if let Some(at) = step.obs.iter().position(|value| !value.is_finite()) {
            return Err(StageError::new(format!(
                "the first observation of the split {split:?} has `{}` of {}",
                env.spec().observation.get(at % width).map_or("", String::as_str),
                step.obs[at]
            ))
            .hint("observations are finite: see the tables, and the normalisation in `env.json`"));
        }
    }
    StageError::new("it has no dates to train on, and none to evaluate on")
        .hint("see `worlds` in `env.json`")
        .when(!opened)?;
    Ok(digest)
}

/// The most episodes of a split that are begun.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::lookup::LookupConfig;
    use bytes::Bytes;

    fn files() -> Vec<WrittenFile> {
        let config = LookupConfig {
            rows: 300,
            features: 3,
            ..LookupConfig::default()
        };
        let file = |name: &str, bytes: Bytes| WrittenFile {
            name: name.to_owned(),
            bytes,
        };
        let table = |split| crate::lookup::table_file(&config, split).unwrap();
        vec![
            file("family", Bytes::from_static(b"lookup\n")),
            file("env.json", serde_json::to_vec(&config).unwrap().into()),
            file("train.arrow", table(Split::Train)),
            file("test.arrow", table(Split::Test)),
        ]
    }

    fn stored(files: &[WrittenFile]) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        write(&store, files).map(drop).map_err(|err| {
            assert!(err.hint.is_some(), "{}", err.message);
            err.message
        })
    }

    #[test]
    fn an_environment_is_opened_before_it_is_stored() {
        let whole = files();
        stored(&whole).unwrap();
        let without = |name: &str| -> Vec<WrittenFile> {
            whole.iter().filter(|file| file.name != name).cloned().collect()
        };
        assert_eq!(stored(&without("family")).unwrap_err(), "it has no file `family`");
        assert!(stored(&without("test.arrow")).unwrap_err().contains("`test.arrow`"));
        let with = |name: &str, bytes: &[u8]| -> Vec<WrittenFile> {
            let mut files = whole.clone();
            files.iter_mut().find(|file| file.name == name).unwrap().bytes = bytes.to_vec().into();
            files
        };
        assert_eq!(
            stored(&with("family", b"chess")).unwrap_err(),
            "unknown environment family `chess`"
        );
        assert!(
            stored(&with("train.arrow", b"ARROW1"))
                .unwrap_err()
                .contains("`train.arrow`")
        );
        assert!(stored(&with("env.json", b"{\"rows\": 301}")).is_err());
    }
}
