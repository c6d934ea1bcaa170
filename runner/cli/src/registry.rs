//! All stage kinds, and the types of files.

use stages_core::AnyStage;
use stages_core::typed_output::FileType;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The types whose files programs may write, and others than `stages-core` check.
pub const FILE_TYPES: &[FileType] = &[stages_env::FILE_TYPE, stages_policy::FILE_TYPE];

/// The families of environments that `stages-env` does not know; [`kinds`] registers them.
const ENV_FAMILIES: &[stages_env::EnvFamily] = &[stages_symbolic::ENV_FAMILY];

/// The stage kinds: those of this program, and those that [`crate::main_with`] was given.
static KINDS: OnceLock<Vec<Box<dyn AnyStage>>> = OnceLock::new();

/// The stage kinds, by name.
pub fn kinds() -> &'static [Box<dyn AnyStage>] {
    KINDS.get_or_init(own)
}

/// The stage kinds, by name, as they are described.
pub fn each() -> Vec<&'static dyn AnyStage> {
    kinds().iter().map(AsRef::as_ref).collect()
}

/// The kind with that name.
pub fn find(name: &str) -> Option<&'static dyn AnyStage> {
    kinds().iter().find(|kind| kind.name() == name).map(AsRef::as_ref)
}

/// Adds kinds of another crate, each under a prefix that is no family of this program.
///
/// # Errors
/// A kind whose name is taken, or is not `PREFIX/NAME`.
pub(crate) fn add(more: Vec<Box<dyn AnyStage>>) -> Result<(), String> {
    let mut kinds = own();
    let families: BTreeSet<&str> = kinds
        .iter()
        .filter_map(|kind| Some(kind.name().split_once('/')?.0))
        .collect();
    for kind in more {
        let name = kind.name();
        let is_word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let parts = name
            .split_once('/')
            .filter(|(prefix, kind)| is_word(prefix) && is_word(kind));
        let Some((prefix, _)) = parts else {
            return Err(format!(
                "the stage kind `{name}` is not called PREFIX/NAME, in lowercase letters, digits and `_`"
            ));
        };
        if families.contains(prefix) {
            return Err(format!(
                "the stage kind `{name}` has the prefix `{prefix}`, which belongs to this program"
            ));
        }
        if kinds.iter().any(|other| other.name() == name) {
            return Err(format!("there are two stage kinds `{name}`"));
        }
        kinds.push(kind);
    }
    kinds.sort_by_key(|kind| kind.name());
    KINDS
        .set(kinds)
        .map_err(|_| "the stage kinds were read before others were added".to_owned())
}

fn own() -> Vec<Box<dyn AnyStage>> {
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
        vec![stages_core::erase(runner_report::Summary)],
    ]
    .into_iter()
    .flatten()
    .collect();
    kinds.sort_by_key(|kind| kind.name());
    kinds
}
