//! Users with the umask 022 in one store of a group, and another who may only read it: they run, kill each
//! other's runs, damage and collect.

use crate::lab::{Chance, Digests, Ended, LONGEST, Lab, files, runner};
use crate::tally::Tally;
use crate::tools::{NO_USERS, USERS};
use runner_testkit::within;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::{Command, Stdio};
use std::time::Duration;

const PIPELINE: &str = "\
version: 1
name: shared
params: { word: one }
stages:
  env: { uses: env/classic }
  train:
    uses: train/ppo
    needs: { env: env }
    with:
      total_timesteps: 512
      n_steps: 64
      n_envs: 4
      batch_size: 64
      n_epochs: 1
      checkpoint_interval: 0.000001
      policy_kwargs: { net_arch: { pi: [8], vf: [8] } }
  a: { run: 'cat seed.txt > ${outputs.x}; echo made', files: [seed.txt], outputs: { x: x.txt } }
  b: \
{ run: 'cat ${needs.x} > ${outputs.x}; echo ${params.word} >> ${outputs.x}', needs: { x: a }, outputs: { x: y.txt } }
";

const STAGES: [&str; 4] = ["env", "train", "a", "b"];
const WORDS: [&str; 3] = ["one", "two", "three"];

/// The group of the store, users in it, and one outside.
const GROUP: u32 = 61_000;
const MEMBERS: [(u32, u32); 2] = [(61_001, GROUP), (61_002, GROUP)];
const READER: (u32, u32) = (61_003, 61_003);

fn command(lab: &Lab, (user, group): (u32, u32), args: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([
            &format!("--reuid={user}"),
            &format!("--regid={group}"),
            "--clear-groups",
        ])
        .args(["sh", "-c", "umask 022; exec \"$0\" \"$@\""])
        .arg(lab.path("runner"))
        .args(args);
    lab.at_home(&mut command).env("HOME", "/nowhere");
    command
}

fn run(lab: &Lab, user: (u32, u32), args: &[&str]) -> Ended {
    within(LONGEST, &mut command(lab, user, args))
}

fn exec_args<'a>(word: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["exec", "p.yaml", "--json", "--set", word];
    args.extend(more);
    args
}

/// A store of the group, empty.
fn found(lab: &Lab) {
    lab.wipe();
    fs::create_dir(lab.home()).unwrap();
    chown(lab.home(), Some(MEMBERS[0].0), Some(GROUP)).unwrap();
    fs::set_permissions(lab.home(), Permissions::from_mode(0o2775)).unwrap();
}

/// One user disturbs, and each member's next run is as undisturbed.
fn one(lab: &Lab, references: &BTreeMap<&str, Digests>, chance: &mut Chance) -> &'static str {
    let (first, second) = match chance.below(2) {
        0 => (MEMBERS[0], MEMBERS[1]),
        _ => (MEMBERS[1], MEMBERS[0]),
    };
    let word = *chance.pick(&WORDS);
    let set = format!("word={word}");
    let force = ["--force", *chance.pick(&STAGES)];
    let outcome = match chance.below(5) {
        0 => {
            let mut child = command(lab, first, &exec_args(&set, &force))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros(chance.below(100_000) as u64));
            let _ = child.kill();
            child.wait().unwrap();
            lab.settle();
            "one is killed; nothing lost, the same digests for the other"
        }
        1 => {
            let all = files(&lab.home().join(*chance.pick(&["blobs", "actions", "memos", "stat"])));
            if !all.is_empty() {
                let path = chance.pick(&all);
                let mode = fs::metadata(path).unwrap().permissions();
                fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
                let mut bytes = fs::read(path).unwrap();
                if !bytes.is_empty() {
                    let at = chance.below(bytes.len());
                    bytes[at] ^= 1 << chance.below(8);
                }
                fs::write(path, bytes).unwrap();
                fs::set_permissions(path, mode).unwrap();
            }
            "damage to what one wrote; the same digests for the other"
        }
        2 => {
            let swept = run(
                lab,
                first,
                &["cache", "gc", "--keep-last", "1", "--keep-younger-than", "0s"],
            );
            assert_eq!(swept.code, 0, "{}", swept.text());
            "one collects garbage; the same digests for the other"
        }
        3 => {
            let forced = exec_args(&set, &force);
            let other = {
                let mut command = command(lab, second, &forced);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let ended = run(lab, first, &forced);
            let other = Ended::from(other.wait_with_output().unwrap());
            for ended in [ended, other] {
                assert_eq!(
                    (ended.code, ended.digests()),
                    (0, references[word].clone()),
                    "{}",
                    ended.text()
                );
            }
            "both at once: the same digests"
        }
        _ => {
            // Everything is cached: no write is needed. Else it cannot be written.
            let ended = run(lab, READER, &exec_args(&set, &[]));
            match ended.code {
                0 => assert_eq!(ended.digests(), references[word], "{}", ended.text()),
                code => {
                    assert_eq!(code, 3, "{}", ended.text());
                    assert!(ended.text().contains("Permission denied"), "{}", ended.text());
                }
            }
            "a reader: the same digests if cached, else exit 3"
        }
    };
    for user in [second, first] {
        let ended = run(lab, user, &exec_args(&set, &[]));
        assert_eq!(ended.code, 0, "{outcome}: {user:?}: {}", ended.text());
        assert_eq!(ended.digests(), references[word], "{outcome}: {user:?}");
    }
    outcome
}

/// Disturbances of a shared store.
pub(crate) fn share(times: usize) -> Tally {
    let fault = "two users (umask 022) in a store of a group, and one who reads";
    if !*USERS {
        return Tally::skipped(fault, NO_USERS);
    }
    let lab = Lab::new(PIPELINE);
    fs::set_permissions(lab.path("."), Permissions::from_mode(0o755)).unwrap();
    // Its usual directory may be closed to others.
    fs::copy(runner(), lab.path("runner")).unwrap();
    fs::set_permissions(lab.path("runner"), Permissions::from_mode(0o755)).unwrap();
    let reference = |word: &'static str| {
        found(&lab);
        let ended = run(&lab, MEMBERS[0], &exec_args(&format!("word={word}"), &[]));
        assert_eq!(ended.code, 0, "{}", ended.text());
        (word, ended.digests())
    };
    let references: BTreeMap<&str, Digests> = WORDS.into_iter().map(reference).collect();
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(34));
    for i in 0..times {
        if i % 10 == 0 {
            found(&lab);
        }
        tally.count(one(&lab, &references, &mut chance));
        if i % 10 == 9 {
            let verified = run(&lab, *chance.pick(&MEMBERS), &["cache", "verify"]);
            assert!(matches!(verified.code, 0 | 3), "{}", verified.text());
            let swept = run(
                &lab,
                *chance.pick(&MEMBERS),
                &["cache", "gc", "--keep-younger-than", "0s"],
            );
            assert_eq!(swept.code, 0, "{}", swept.text());
            assert_eq!(lab.temporary(), [""; 0], "{}", lab.listing("tmp"));
        }
    }
    tally
}

pub(crate) fn users_share_a_store() {
    share(10);
}
