//! Training gives the same bytes from one version of the program to the next, within a numerics class.

use super::*;
use crate::{Ppo, RecurrentPpo};
use stages_numerics::class::numerics_class;

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
    match numerics_class().as_ref() {
        "x86_64-avx512-v2" | "x86_64-avx2-v2" => assert_eq!(
            found,
            [
                "d8ed45bb2ad5d2b5677940a997f80a073cac7d10552ecdb572771cbaab12458a",
                "008db488432a7c482fc68eb4ec727a04387f2c11b3cc804627fe5187903f02e6",
                "5c977ff418b7d66910c62e718e81c0970538894311fb9525a9f94ac9be3c98da",
            ]
        ),
        other => eprintln!("no digest is pinned for numerics class {other}: {found:?}"),
    }
}
