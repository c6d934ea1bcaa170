//! All stage kinds, and the types of files.

use stages_core::AnyStage;
use stages_core::typed_output::FileType;
use std::sync::LazyLock;

/// The types whose files programs may write, and others than `stages-core` check.
pub const FILE_TYPES: &[FileType] = &[stages_env::FILE_TYPE, stages_policy::FILE_TYPE];

/// The families of environments that `stages-env` does not know; [`kinds`] registers them.
const ENV_FAMILIES: &[stages_env::EnvFamily] = &[stages_symbolic::ENV_FAMILY];

/// The stage kinds, by name.
pub fn kinds() -> &'static [Box<dyn AnyStage>] {
    static KINDS: LazyLock<Vec<Box<dyn AnyStage>>> = LazyLock::new(|| {
        stages_env::register(ENV_FAMILIES);
        let mut kinds: Vec<Box<dyn AnyStage>> = [
            stages_ingest::kinds(),
            stages_greeks::kinds(),
            stages_features::kinds(),
            stages_env::kinds(),
            stages_policy::kinds(),
            stages_train::kinds(),
            stages_evaluate::kinds(),
            stages_symbolic::kinds(),
        ]
        .into_iter()
        .flatten()
        .collect();
        kinds.sort_by_key(|kind| kind.name());
        kinds
    });
    &KINDS
}

/// The kind with that name.
pub fn find(name: &str) -> Option<&'static dyn AnyStage> {
    kinds().iter().find(|kind| kind.name() == name).map(AsRef::as_ref)
}
