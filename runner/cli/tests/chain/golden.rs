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

/// If a change of code or of a dependency moves a digest, raise the `VERSION` of the first kind that moved,
/// and then pin the new ones here.
#[test]
fn the_same_bytes_for_any_number_of_threads_and_for_ever() {
    let digests = all(1);
    assert_eq!(digests, all(2));
    let text: Vec<String> = digests
        .iter()
        .map(|(name, digest)| format!("{name}: {digest}"))
        .collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    env: 96dd3ee17468b5ee325628751889a92dfaf83914d8bf0f2779ea21f968fe84ab
    evaluate metrics: 468841cec392d523a43616ea3acc2aa6726c2063658993cc0a66752677509d26
    evaluate trajectory: 627b6f4a11f6e1bc74389ef649ab08a2f513aa3d5ae101fd5b04b5c6165af206
    greeks: 8a879e02fb7e34443e8c8c17091484201ace938654ee85d529c4bbea23f2d871
    implied volatility: 100068f047532d244605dd7dd40bcf4d701bd982869258bc255c54e544326d5a
    market bars: 0664eae57a6f2dd7fede8afede7b1a181f7eb46065bf7d82ff23e5c35c92c187
    market chain: f7326244717170041b0e7601255108fabf0777eaf5fd0923abd73751c065a147
    market hidden: 05732067df96ed69d31720cb4a8085591b06c2d937f3d87bffa344e004c64fd4
    market rates: c8a227dba096445fa8522c478ebaa4dd789a7943af831032b2e844a4d96e2d31
    realised volatility: 644f3c4d7a932ef88b94ffe0814b807ba2dacee7b9502696c8737807835fdb3e
    surface: d6a09c4ff1f96c7496001944a28872b830405d6c919b2bf036edf7212b7b67fe
    technical: d23c1429e5032679f22d70a73f94a5396bafb0fa522a49de4e607623f92fdd5d
    ");
}
