//! Training gives the same bytes from one version of the program to the next, within a numerics class.

use super::*;
use crate::{Ppo, RecurrentPpo};
use stages_core::numerics;

/// If a change moves a digest, raise the `VERSION` of both kinds, and then pin the new ones here.
#[test]
fn golden() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let digest = |bytes: &[u8]| context.store.put(bytes).unwrap().blob.to_string();
    let (policy, metrics) = outputs(Ppo, &cart_pole(2048, 1), &context);
    let (recurrent, _) = outputs(RecurrentPpo, &hidden_velocity(1024, 1), &context);
    let found = [digest(&policy), digest(&metrics), digest(&recurrent)];
    match numerics::class().as_ref() {
        "x86_64-avx512-v1" => assert_eq!(
            found,
            [
                "ca3170e4a6dba29e22ad63101884b7b58890f5b13cdd71fc8875248302c4e5ac",
                "86207aedcdf5112a9dc8955ea84bc471c4a3a1552ba2996a5df810da68f9582e",
                "2d7fb49f40eacb2b3ef65f54cb59789143281e2c3a3b82f809248bc4712dbc21",
            ]
        ),
        other => eprintln!("no digest is pinned for numerics class {other}: {found:?}"),
    }
}
