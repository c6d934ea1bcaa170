//! The environment that a file's policy acts in.

use stages_core::{Context, StageError};
use stages_env::{EnvSpec, OpenOptions};

/// The specification of the environment at the input `env`, which may have test data alone.
///
/// # Errors
/// Fails when the environment cannot be opened.
pub fn spec(context: &Context) -> Result<EnvSpec, StageError> {
    let artifact = &context.input("env")?.artifact;
    let open = |options: OpenOptions| stages_env::open(&context.store, artifact, &options);
    let refused = match open(OpenOptions::train(1, 0)) {
        Err(refused) => refused,
        Ok(env) => return Ok(env.spec().clone()),
    };
    let env = open(OpenOptions::test(1, 0)).map_err(|_| refused)?;
    if env.spec().normalisation.is_some() {
        context.warn(
            "the environment has no training dates to normalise by: the policy sees features as they are",
            Some(
                "where it was trained on normalised features, import it with the environment that it was \
                trained on, and evaluate it in this one",
            ),
        );
    }
    Ok(env.spec().clone())
}
