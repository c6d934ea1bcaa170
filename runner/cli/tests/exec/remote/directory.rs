//! A directory as the remote store.

use super::{BIG, Site, document, replace};
use crate::{Ended, files};
use cache::{ActionRecord, BlobRef, RecordId, Store, StoredAction, checksummed};
use runner_testkit::pipeline;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn two_homes_share_what_they_compute() {
    let site = Site::filled();
    let second = site.exec("second", &[]);
    assert_eq!(second.log(), "cached big\ncached mid\ncached end");
    assert_eq!(second.digests(), site.exec("first", &[]).digests());
    assert!(
        site.blobs("second").is_empty(),
        "nothing was needed, so nothing was fetched"
    );
    // The last time of `end` needs `mid`, which is small.
    let again = site.exec("second", &["--force", "end"]);
    assert_eq!(again.log(), "cached big\ncached mid\nran end");
    assert!(!site.has_big("second") && !site.blobs("second").is_empty());
    let plan = document(&site.run("second", &["plan", "p.yaml", "--set", "words=two", "--json"]));
    assert!(plan["fetch_bytes"].as_u64().unwrap() >= BIG, "{plan}");
    assert_eq!(plan["stages"][0]["prediction"], "cached");
    let text = site.run("second", &["plan", "p.yaml", "--set", "words=two"]).stdout;
    assert!(text.contains("2.9 MiB") && text.contains("in the remote"), "{text}");
    let changed = site.exec("second", &["--set", "words=two"]);
    assert_eq!(changed.log(), "cached big\nran mid\nran end");
    assert!(site.has_big("second"));
    // What the second computed, the first has.
    assert_eq!(
        site.exec("first", &["--set", "words=two"]).log(),
        "cached big\ncached mid\ncached end"
    );
    let alone = site.exec("third", &["--no-remote"]);
    assert_eq!(alone.log(), "ran big\nran mid\nran end");
}

const RUNG: &str = "\
version: 1
name: rung
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  train:
    uses: train/dqn
    needs: { env: env }
    with: { total_timesteps: 1600, n_envs: 2, learning_starts: 100, policy_kwargs: { net_arch: [16] } }
";

/// A training that another machine stopped at a step goes on from there, to the same bytes.
#[test]
fn a_rung_of_another_machine_is_gone_on_from() {
    let site = Site::new(RUNG);
    let alone = site.exec("alone", &["--no-remote"]);
    let first = site.exec("first", &["--set", "train.with.until=600"]);
    assert_eq!(first.log(), "ran env\nran train", "{}", first.text());
    let plan = site.run("second", &["plan", "p.yaml"]).stdout;
    assert!(plan.contains("600 of 1600 steps"), "{plan}");
    let second = site.exec("second", &[]);
    assert!(
        second.stdout.contains("resuming from the stored state at step 600"),
        "{}",
        second.stdout
    );
    assert_eq!(second.log(), "cached env\nran train");
    assert_eq!(second.digests(), alone.digests());
}

#[test]
fn to_evaluate_a_cached_model_no_table_is_fetched() {
    let pipeline = std::path::absolute("../../pipelines/rppo_options.yaml").unwrap();
    let pipeline = pipeline.to_str().unwrap();
    let site = Site::new("");
    let args = [
        "exec",
        pipeline,
        "--json",
        "--set",
        "timesteps=2048",
        "--set",
        "market.with.days=40",
        // So that an appended day leaves partitions as they are.
        "--set",
        "market.with.partition=month",
        "--set",
        "worlds=4",
        "--set",
        "validation_worlds=1",
        "--set",
        "test_worlds=1",
        "--set",
        "train.with.policy_kwargs.lstm_hidden_size=16",
    ];
    let first = site.run("first", &args);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let second = site.run("second", &[&args[..], &["--force", "evaluate"]].concat());
    assert_eq!(second.code, 0, "{}", second.stderr);
    let ran = |log: &str| -> Vec<String> {
        log.lines()
            .filter_map(|line| line.strip_prefix("ran "))
            .map(ToOwned::to_owned)
            .collect()
    };
    assert_eq!(ran(&second.log()), ["evaluate"]);
    assert_eq!(second.digests(), first.digests());
    // The blobs of an artifact, by the manifests that the first machine has.
    let store = Store::open(&site.path("first")).unwrap();
    let of = |wanted: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
        let mut blobs = BTreeSet::new();
        for event in first.events().iter().filter(|event| event["event"] == "stage_finished") {
            if wanted(event["stage"].as_str().unwrap()) {
                for digest in event["outputs"].as_object().unwrap().values() {
                    let artifact = store.artifact(digest.as_str().unwrap().parse().unwrap()).unwrap();
                    blobs.extend(artifact.entries.iter().map(|entry| entry.blob.to_hex()));
                }
            }
        }
        blobs
    };
    let needed = of(&|stage| matches!(stage, "env" | "train" | "evaluate"));
    let tables = of(&|stage| !matches!(stage, "env" | "train" | "evaluate"));
    let root = site.path("second").join("blobs");
    let here: BTreeSet<String> = files(&root).iter().map(|path| name_of(&root, path)).collect();
    assert!(tables.len() > 10);
    assert_eq!(
        tables.difference(&needed).filter(|blob| here.contains(*blob)).count(),
        0
    );
    assert!(needed.intersection(&here).count() > 1);
    // An appended day costs a day, on another machine too: memos are shared.
    let longer = site.run(
        "third",
        &[&args[..], &["--set", "market.with.days=45", "market"]].concat(),
    );
    let memo = longer
        .events()
        .into_iter()
        .find(|event| event["event"] == "memo")
        .unwrap();
    assert!(memo["hits"].as_u64().unwrap() > 0, "{memo}");
}

#[test]
fn lost_and_damaged_memos_do_not_fail_a_run() {
    let site = Site::new(
        pipeline("memos")
            .param("days", 40)
            .uses("market", "ingest/simulated_market")
            .with("days", "${params.days}")
            .with("seed", 7)
            .uses("iv", "greeks/implied_volatility")
            .needs("chain", "market.chain")
            .needs("rates", "market.rates"),
    );
    let first = site.exec("first", &[]);
    assert_eq!(first.log(), "ran market\nran iv", "{}", first.stderr);
    // The second has looked: it knows that all of it is there.
    assert_eq!(site.exec("second", &[]).log(), "cached market\ncached iv");
    let longer = site.exec("reference", &["--set", "days=45", "--no-remote"]);
    let manifests: Vec<PathBuf> = files(&site.folder().join("blobs"))
        .into_iter()
        .filter(|path| std::fs::read(path).unwrap().starts_with(b"{"))
        .collect();
    let mut harmed = 0;
    for (i, path) in files(&site.folder().join("blobs")).iter().enumerate() {
        if manifests.contains(path) {
            continue;
        }
        harmed += 1;
        let mut bytes = std::fs::read(path).unwrap();
        std::fs::remove_file(path).unwrap();
        if i % 2 == 0 {
            bytes[0] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }
    }
    assert!(harmed > 4);
    for home in ["second", "third"] {
        let ended = site.exec(home, &["--set", "days=45"]);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.digests(), longer.digests());
    }
}

fn name_of(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().to_str().unwrap().replace('/', "")
}

#[test]
fn a_damaged_blob_is_refused_and_made_again() {
    let site = Site::filled();
    let big = site.big();
    for damage in [vec![7; BIG as usize], vec![0; 10]] {
        // The first is found out by its bytes, the second by its length, when it is looked for.
        let home = format!("second{}", damage.len());
        assert_eq!(site.exec(&home, &[]).log(), "cached big\ncached mid\ncached end");
        replace(&big, &damage);
        let again = site.exec(&home, &["--force", "mid"]);
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert_eq!(
            again.log(),
            "cached big\nhealing big for mid\nran big\nran mid\ncached end"
        );
        assert!(again.stderr.contains("does not match its digest"), "{}", again.stderr);
        assert_eq!(
            std::fs::read(&big).unwrap(),
            vec![0; BIG as usize],
            "it is right again there"
        );
    }
}

#[test]
fn a_lost_blob_runs_its_producer_again() {
    let site = Site::filled();
    assert_eq!(site.exec("second", &[]).log(), "cached big\ncached mid\ncached end");
    let big = site.big();
    std::fs::remove_file(&big).unwrap();
    // A machine that has not looked yet: the record does not count without its blob.
    assert_eq!(site.exec("third", &["--no-remote", "big"]).code, 0);
    assert_eq!(site.exec("fourth", &["mid"]).log(), "ran big\ncached mid");
    std::fs::remove_file(&big).unwrap();
    // One that has: it is found out when it is needed.
    let second = site.exec("second", &["--force", "mid"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert_eq!(
        second.log(),
        "cached big\nhealing big for mid\nran big\nran mid\ncached end"
    );
    assert!(big.exists(), "it is there again");
}

#[test]
fn a_damaged_blob_of_this_machine_is_fetched_again() {
    let site = Site::filled();
    let name = site.big().strip_prefix(site.folder()).unwrap().to_owned();
    replace(&site.path("first").join(&name), &vec![1; BIG as usize]);
    let again = site.exec("first", &["--force", "mid"]);
    assert_eq!(again.log(), "cached big\nran mid\ncached end");
    assert_eq!(
        std::fs::read(site.path("first").join(&name)).unwrap(),
        vec![0; BIG as usize]
    );
}

#[test]
fn only_records_of_trusted_signers_count() {
    let site = Site::new(super::CHAIN);
    site.project
        .write("one.key", include_str!("../../../../../cache/remote/tests/keys/one"));
    site.project
        .write("two.key", include_str!("../../../../../cache/remote/tests/keys/two"));
    site.project.write(
        "one.pub",
        include_str!("../../../../../cache/remote/tests/keys/one.pub"),
    );
    site.project.write(
        "two.pub",
        include_str!("../../../../../cache/remote/tests/keys/two.pub"),
    );
    site.configure("plain", "remote: { url: ../remote, trust: unsigned }\n");
    for (home, keys) in [
        ("mine", "sign_key_file: ../one.key"),
        ("theirs", "sign_key_file: ../two.key"),
        ("reader", "read_only: true, trusted_keys: [../two.pub, ../one.pub]"),
        ("stranger", "read_only: true, trusted_keys: [../two.pub]"),
    ] {
        site.configure(home, &format!("remote: {{ url: ../remote, {keys} }}\n"));
    }
    let all_run = "ran big\nran mid\nran end";
    let cached = "cached big\ncached mid\ncached end";
    assert_eq!(site.exec_configured("plain", &["big"]).log(), "ran big");
    let unsigned = site.exec_configured("mine", &[]);
    assert_eq!(unsigned.log(), all_run);
    assert!(
        unsigned.stderr.contains("has no signature and is ignored"),
        "{}",
        unsigned.stderr
    );
    // What was unsigned is signed now.
    for home in ["reader", "plain"] {
        let read = site.exec_configured(home, &[]);
        assert_eq!(read.log(), cached, "{}", read.stderr);
        assert_eq!(read.stderr.matches("warning").count(), 0, "{}", read.stderr);
    }
    let records = || -> Vec<Vec<u8>> {
        let records = files(&site.folder().join("actions"));
        records.iter().map(|path| std::fs::read(path).unwrap()).collect()
    };
    let before = records();
    for home in ["stranger", "theirs"] {
        let ended = site.exec_configured(home, &[]);
        assert_eq!(ended.log(), all_run);
        assert!(
            ended.stderr.contains("a signature by the unknown key SHA256:")
                && ended.stderr.contains("(3 times)"),
            "{}",
            ended.stderr
        );
    }
    let push = site.configured("theirs", &["cache", "push", "--all"]);
    assert!(
        push.stdout.contains("3 records of signers who are not trusted here"),
        "{}",
        push.stdout
    );
    assert_eq!(records(), before, "they are neither replaced nor signed again");
}

#[test]
fn a_remote_without_keys_is_refused_before_anything_runs() {
    let site = Site::new(super::CHAIN);
    site.configure("home", "remote: { url: ../remote }\n");
    site.project.write("secret/sign", "a shared secret");
    site.configure("secret", "remote: { url: ../remote, sign_key_file: sign }\n");
    site.configure("reader", "remote: { url: 'https://host/store' }\n");
    for (home, text) in [
        ("home", "no key signs what is written"),
        ("secret", "shared secrets of earlier versions no longer sign"),
        ("reader", "no key is trusted"),
    ] {
        let ended = site.exec_configured(home, &[]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(
            ended.stderr.contains(text) && ended.stderr.contains("hint"),
            "{}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("a shared secret\n") && !site.path(home).join("runs").exists());
    }
    let mut of_environment = site.command("home", &["exec", "p.yaml"]);
    std::fs::remove_file(site.path("home/config.yaml")).unwrap();
    let ended: Ended = of_environment.output().unwrap().into();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("trust: unsigned"), "{}", ended.stderr);
    assert!(!site.folder().exists());
}

/// Replaces the record of `big` in the remote by one whose artifact leaves its directory.
fn forge_a_manifest(site: &Site) {
    let store = Store::open(&site.path("first")).unwrap();
    let ids = store.records().unwrap();
    let records = ids.iter().filter_map(|id| match id {
        RecordId::Action(key) => store.action(*key).unwrap(),
        RecordId::Memo(_) => None,
    });
    let is_big = |record: &ActionRecord| record.recipe.to_string().contains("/dev/zero");
    let record = records.into_iter().find(is_big).unwrap();
    let mut artifact = store.artifact(record.outputs["x"]).unwrap();
    artifact.entries[0].path = "../../owned".to_owned();
    let text = artifact.canonical();
    let manifest = BlobRef::of(text.as_bytes());
    let path = |folder: &str, hex: &str| site.folder().join(folder).join(&hex[..2]).join(&hex[2..]);
    let blob = path("blobs", &manifest.blob.to_hex());
    std::fs::create_dir_all(blob.parent().unwrap()).unwrap();
    std::fs::write(blob, text).unwrap();
    let key = record.key.to_hex();
    let stored = StoredAction {
        record: ActionRecord {
            outputs: [("x".to_owned(), manifest.blob.to_hex().parse().unwrap())].into(),
            ..record
        },
        blobs: vec![(manifest.blob, manifest.size)],
    };
    replace(&path("actions", &key), checksummed::encode(&stored).unwrap().as_bytes());
}

#[test]
fn an_artifact_of_no_program_is_computed_again() {
    let site = Site::filled();
    let right = site.exec("first", &[]).digests();
    forge_a_manifest(&site);
    let healed = |ended: &Ended| {
        assert_eq!((ended.code, ended.digests()), (0, right.clone()), "{}", ended.text());
        let events = ended.events();
        let warnings: Vec<_> = events.iter().filter(|event| event["event"] == "warning").collect();
        assert_eq!(warnings.len(), 1, "{}", ended.text());
        let message = warnings[0]["message"].as_str().unwrap();
        assert!(message.contains("is not valid: entry `../../owned`"), "{message}");
        let hint = warnings[0]["hint"].as_str().unwrap();
        assert!(hint.contains("`trust: unsigned`"), "{hint}");
    };
    healed(&site.exec("second", &[]));
    // The record that was taken over has been replaced.
    for args in [&[][..], &["--force", "mid"], &["--no-remote", "--force", "mid"]] {
        let again = site.exec("second", args);
        assert_eq!((again.code, again.digests()), (0, right.clone()), "{}", again.text());
        assert!(!again.text().contains("is not valid"), "{}", again.text());
    }
    // Another store has taken over the record, and no run has read the artifact yet.
    forge_a_manifest(&site);
    assert_eq!(site.exec("third", &["big"]).log(), "cached big");
    healed(&site.exec("third", &[]));
    let again = site.exec("third", &[]);
    assert_eq!(again.log(), "cached big\ncached mid\ncached end");
    assert!(!again.text().contains("is not valid"), "{}", again.text());
}

#[test]
fn damaged_and_foreign_records_are_ignored() {
    let site = Site::filled();
    let records = files(&site.folder().join("actions"));
    let texts: Vec<Vec<u8>> = records.iter().map(|path| std::fs::read(path).unwrap()).collect();
    // Each under the name of another, one cut short, one of other bytes, and strange names among them.
    replace(&records[0], &texts[1]);
    replace(&records[1], &texts[1][..texts[1].len() / 2]);
    replace(&records[2], b"\xff\xfe{}");
    std::fs::create_dir_all(site.folder().join("actions/zz")).unwrap();
    std::fs::write(site.folder().join("actions/zz/..strange"), "x").unwrap();
    std::fs::write(site.folder().join("actions/README"), "x").unwrap();
    let second = site.exec("second", &[]);
    assert_eq!(second.log(), "ran big\nran mid\nran end");
    assert!(second.stderr.contains("is damaged and ignored"), "{}", second.stderr);
    // They are right again.
    assert_eq!(site.exec("third", &[]).log(), "cached big\ncached mid\ncached end");
    let pull = document(&site.run("fourth", &["cache", "pull", "--all", "--json"]));
    assert_eq!(pull["records"], 3, "{pull}");
}

#[test]
fn push_and_pull() {
    let site = Site::new(super::CHAIN);
    assert_eq!(site.exec("first", &["--no-remote"]).log(), "ran big\nran mid\nran end");
    assert!(!site.folder().exists());
    let push = document(&site.run("first", &["cache", "push", "--json"]));
    assert_eq!(
        (push["records"].as_u64(), push["there_before"].as_u64()),
        (Some(3), Some(0)),
        "{push}"
    );
    assert!(push["bytes"].as_u64().unwrap() > BIG);
    let again = site.run("first", &["cache", "push", "--all"]);
    assert_eq!(
        again.stdout.replace(&site.folder().display().to_string(), "REMOTE"),
        "3 records in REMOTE (3 before); 0 blobs uploaded (0 B)\n"
    );
    let pull = document(&site.run("second", &["cache", "pull", "p.yaml", "--json"]));
    assert_eq!(pull["records"], 3, "{pull}");
    assert_eq!(site.blobs("second").len(), site.blobs("first").len());
    let offline = site.exec("second", &["--no-remote"]);
    assert_eq!(offline.log(), "cached big\ncached mid\ncached end");
    let repaired = site.big();
    std::fs::remove_file(&repaired).unwrap();
    let push = document(&site.run("first", &["cache", "push", "latest", "--json"]));
    assert_eq!((push["blobs"].as_u64(), push["bytes"].as_u64()), (Some(1), Some(BIG)));
    let pull = document(&site.run("third", &["cache", "pull", "--all", "--json"]));
    assert_eq!(pull["blobs"].as_u64().unwrap() as usize, site.blobs("first").len());
    let nothing = site.project.run(&["cache", "push"]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("there is no store in"), "{}", nothing.stderr);
    let none = super::end(site.command("first", &["cache", "push"]).env_remove("RUNNER_REMOTE"));
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("`url` is missing"), "{}", none.stderr);
    let strange = site.run("first", &["cache", "pull", "nothing.yaml"]);
    assert_eq!(strange.code, 2);
}

#[test]
fn a_remote_that_is_only_read_stays_as_it_is() {
    let site = Site::filled();
    site.configure(
        "reader",
        "remote: { url: ../remote, read_only: true, trust: unsigned }\n",
    );
    let before = files(&site.folder());
    let changed = site.exec_configured("reader", &["--set", "words=more"]);
    assert_eq!(changed.log(), "cached big\nran mid\nran end");
    assert_eq!(files(&site.folder()), before);
    let push = site.configured("reader", &["cache", "push"]);
    assert_eq!(push.code, 3);
    assert!(push.stderr.contains("it is read-only"), "{}", push.stderr);
}

#[test]
fn a_remote_that_cannot_be_used_costs_a_warning() {
    let site = Site::new(super::CHAIN);
    site.project.write("file", "");
    for (url, text) in [
        ("../file", "Not a directory"),
        ("../nowhere/deep/remote", "does not exist"),
    ] {
        let home = format!("home{}", url.len());
        site.configure(
            &home,
            &format!("remote: {{ url: {url}, timeout: 1s, trust: unsigned }}\n"),
        );
        let ended = site.exec_configured(&home, &[]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(ended.log(), "ran big\nran mid\nran end");
        assert_eq!(ended.stderr.matches("warning").count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    }
    std::fs::create_dir(site.folder()).unwrap();
    std::fs::write(site.folder().join("format"), "runner-remote 99\n").unwrap();
    let newer = site.exec("newer", &[]);
    assert_eq!((newer.code, newer.log().as_str()), (0, "ran big\nran mid\nran end"));
    assert!(
        newer.stderr.contains("it has the format `runner-remote 99`"),
        "{}",
        newer.stderr
    );
    assert_eq!(files(&site.folder()).len(), 1);
}

#[test]
fn a_wrong_configuration_is_refused() {
    let site = Site::new(super::CHAIN);
    site.configure("home", "remote:\n  url: ../remote\n  readonly: true\n");
    let ended = site.exec_configured("home", &[]);
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .stderr
            .contains("config.yaml:3:3: unknown key `readonly` in `remote`"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("did you mean `read_only`?"), "{}", ended.stderr);
    assert_eq!(site.exec_configured("home", &["--no-remote", "big"]).code, 0);
}

#[test]
fn logs_come_with_their_actions() {
    let site = Site::filled();
    assert_eq!(site.exec("second", &[]).code, 0);
    let shown = site.run("second", &["show", "latest/big"]);
    assert!(shown.stdout.contains("made"), "{}{}", shown.stdout, shown.stderr);
}
