//! The same bytes for any number of threads, and from one version of the program to the next.

use super::*;
use serde_json::json;

/// From a small market to an evaluation, by a number of threads.
fn all(threads: usize) -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let market = run(
            &store,
            "ingest/simulated_market",
            json!({ "days": 130, "seed": 5 }),
            &[],
        );
        let env = json!({ "test_fraction": 0.4, "episode_length": [20, 40] });
        let derived = derive(&store, market["bars"], market["chain"], market["rates"], &env);
        let open = stages_env::OpenOptions::test(1, 0);
        let env = stages_env::open(&store, &store.artifact(derived["env"]).unwrap(), &open).unwrap();
        let policy = policy(env.as_ref());
        let mut artifact = cache::ArtifactBuilder::new(&store, "policy", json!({}));
        artifact.bytes("policy.safetensors", &policy.save().unwrap()).unwrap();
        let policy = artifact.finish().unwrap();
        let evaluated = run(
            &store,
            "evaluate/backtest",
            json!({ "bootstrap_draws": 50, "random_paths": 4 }),
            &[("env", &[derived["env"]]), ("policy", &[policy])],
        );
        let mut digests: BTreeMap<String, String> = BTreeMap::new();
        digests.extend(
            market
                .iter()
                .map(|(name, digest)| (format!("market {name}"), digest.to_string())),
        );
        digests.extend(
            derived
                .iter()
                .map(|(name, digest)| ((*name).to_owned(), digest.to_string())),
        );
        digests.extend(
            evaluated
                .iter()
                .map(|(name, digest)| (format!("evaluate {name}"), digest.to_string())),
        );
        digests
    })
}

/// If a change of code or of a dependency moves a digest, raise the `VERSION` of the first kind that moved, and then pin the
/// new ones here.
#[test]
fn the_same_bytes_for_any_number_of_threads_and_for_ever() {
    let digests = all(1);
    assert_eq!(digests, all(2));
    let text: Vec<String> = digests
        .iter()
        .map(|(name, digest)| format!("{name}: {digest}"))
        .collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    env: dae6383dd15f2ae27efb22dba1db432ebaa62f3808a1780954c19e0507abfec6
    evaluate metrics: 6cf891ce7a396b273a1a6531268ac29655eb7a3ae587748b1cf74e98a04a103f
    evaluate trajectory: ac669dd1f26dfcbf1fb6fa7f2c60f8dcf4d9c90aa63c2004aae5491136f909d6
    greeks: df6051ddbba7e7ce06cb37e05b48c96af741819e451ebee46bbcb9f911bcc75a
    implied volatility: 9258e85ed779b39e584d38437cc2f3fa2800090c908568b29f10b0a786a96050
    market bars: 85c5f47a011785f2ae30f1a196ea2c49ed42a6d397bd20294da7735770d00f68
    market chain: ba38a1b693e02e29f58bf6509a7d62f144ca346a2c6074030581f67551ada47b
    market rates: 6ae318d681c24a2c9852eb310e92de5975dbb67e79428341445af66249ef9e67
    realised volatility: 9645496dcfad62aba82c647f6b225d406c4725cb176cd3542a7cf65ad67aadb8
    surface: c6330471dad37beb3cd5b7c7a7273c3c35681d3e9bd2fa96b38df77c2ef638c9
    technical: 7b60ce3df1f25f005386fd4f71671ef3331f570ebd639277dd8429d5a62e2e6a
    ");
}
