//! The registry of policies in a remote store.

use super::{Site, document, replace};
use crate::files;

const DESK: &str = "\
version: 1
name: desk
params: { seed: 1 }
stages:
  env: { uses: env/lookup, with: { rows: 64, episode_length: 16 } }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 64, n_envs: 2, n_steps: 32, batch_size: 32, seed: '${params.seed}' }
    register: { policy: desk, alias: champion }
";

fn champion(site: &Site, home: &str) -> u64 {
    let shown = document(&site.run(home, &["policy", "show", "desk@champion", "--json"]));
    shown["version"]["version"].as_u64().unwrap()
}

#[test]
fn the_registry_is_pushed_and_pulled_with_the_store() {
    let site = Site::new(DESK);
    assert_eq!(site.exec("first", &[]).code, 0);
    let pushed = document(&site.run("first", &["cache", "push", "--json"]));
    assert_eq!(pushed["policies"]["desk"], "uploaded", "{pushed}");
    // Pushed again, nothing changes.
    let again = document(&site.run("first", &["cache", "push", "--json"]));
    assert!(again.get("policies").is_none(), "{again}");
    let pulled = document(&site.run("second", &["cache", "pull", "--all", "--json"]));
    assert_eq!(pulled["policies"]["desk"], "fetched", "{pulled}");
    assert_eq!(champion(&site, "second"), 1);
    // The policy itself is here: nothing is asked of the remote for it.
    let exported = ["policy", "export", "desk@champion", "one.npz", "--format", "numpy"];
    let exported = site.run("second", &exported);
    assert_eq!(exported.code, 0, "{}", exported.text());
    // What the second home adds, the first takes.
    assert_eq!(site.exec("second", &["--set", "seed=2"]).code, 0);
    let pushed = document(&site.run("second", &["cache", "push", "--json"]));
    assert_eq!(pushed["policies"]["desk"], "uploaded", "{pushed}");
    document(&site.run("first", &["cache", "pull", "--all", "--json"]));
    assert_eq!(champion(&site, "first"), 2);
    // Two that went on differently are left as they are.
    for (home, seed) in [("first", "seed=3"), ("second", "seed=4")] {
        assert_eq!(site.exec(home, &["--set", seed]).code, 0);
    }
    document(&site.run("first", &["cache", "push", "--json"]));
    let refused = site.run("second", &["cache", "push"]);
    assert!(
        refused.stdout.contains("policy desk: not changed"),
        "{}",
        refused.text()
    );
    let refused = site.run("second", &["cache", "pull", "--all"]);
    assert!(
        refused.stdout.contains("policy desk: not changed"),
        "{}",
        refused.text()
    );
    assert_eq!(champion(&site, "second"), 3);
}

#[test]
fn a_registry_that_nobody_trusted_signed_is_not_taken() {
    let site = Site::new(DESK);
    assert_eq!(site.exec("first", &[]).code, 0);
    document(&site.run("first", &["cache", "push", "--json"]));
    // Without `trust: unsigned`.
    let one = include_str!("../../../../../cache/remote/tests/keys/one.pub");
    site.project.write("one.pub", one);
    site.configure(
        "second",
        "remote: { read_only: true, trusted_keys: [../one.pub] }
",
    );
    let pulled = site.run("second", &["cache", "pull", "--all"]);
    assert!(pulled.stderr.contains("no signature"), "{}", pulled.text());
    assert_eq!(site.run("second", &["policy", "list", "desk"]).code, 2);
    // Damage is no registry either, and is not replaced.
    let objects = files(&site.folder().join("policies"));
    let [object] = objects.as_slice() else {
        panic!("{objects:?}")
    };
    let mut bytes = std::fs::read(object).unwrap();
    let at = bytes.windows(8).position(|part| part == b"champion").unwrap();
    bytes[at] = b'C';
    replace(object, &bytes);
    let pulled = site.run("third", &["cache", "pull", "--all"]);
    assert!(pulled.stderr.contains("damaged and ignored"), "{}", pulled.text());
    let pushed = document(&site.run("first", &["cache", "push", "--json"]));
    let told = pushed["policies"]["desk"].as_str().unwrap();
    assert!(told.starts_with("not replaced"), "{pushed}");
}
