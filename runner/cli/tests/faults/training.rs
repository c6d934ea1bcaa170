//! A disk that fills up during a training with many checkpoints.

use crate::lab::{Chance, Digests, Ended, Lab, runner};
use crate::tally::Tally;
use crate::tools::{MOUNT, NO_MOUNT};
use std::process::Command;

/// A training that writes a checkpoint after each update, and what follows from it.
const TRAINING: &str = "\
version: 1
name: training
stages:
  env: { uses: env/classic }
  train:
    uses: train/ppo
    needs: { env: env }
    with:
      total_timesteps: 8192
      n_steps: 64
      n_envs: 4
      batch_size: 64
      n_epochs: 1
      checkpoint_interval: 0.000001
      policy_kwargs: { net_arch: { pi: [64, 64], vf: [64, 64] } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: train } }
";

/// Somebody else fills the disk at a random instant. Later there is room again.
const FILLED: &str = r#"
mkdir -p "$RUNNER_HOME"
mount -t tmpfs -o size=4m none "$RUNNER_HOME" || exit 99
( sleep "$AFTER"; head -c 8m /dev/zero > "$RUNNER_HOME/other" 2> /dev/null; touch filled ) &
"$RUNNER" exec p.yaml --json > 1.out 2> 1.err; echo $? > 1.code
wait
rm -f "$RUNNER_HOME/other"
ls -R "$RUNNER_HOME/scratch" > scratch 2> /dev/null
"$RUNNER" cache verify > 2.out 2> 2.err; echo $? > 2.code
"$RUNNER" exec p.yaml --json > 3.out 2> 3.err; echo $? > 3.code
"$RUNNER" cache gc --keep-last 1000 --keep-younger-than 0s > 4.out 2> 4.err; echo $? > 4.code
ls "$RUNNER_HOME/tmp" > 5.out 2> 5.err; echo $? > 5.code
"#;

fn step(lab: &Lab, n: usize) -> Ended {
    let read = |what: &str| {
        String::from_utf8_lossy(&std::fs::read(lab.path(&format!("{n}.{what}"))).unwrap()).into_owned()
    };
    Ended {
        code: read("code").trim().parse().unwrap_or(-1),
        stdout: read("out"),
        stderr: read("err"),
    }
}

fn one(lab: &Lab, reference: &Digests, micros: usize) -> &'static str {
    let mut command = Command::new("unshare");
    lab.at_home(&mut command)
        .args(["-rm", "sh", "-c", FILLED])
        .env("RUNNER", runner())
        .env("AFTER", format!("{:.6}", micros as f64 / 1e6));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (first, again) = (step(lab, 1), step(lab, 3));
    match first.code {
        0 => assert_eq!(&first.digests(), reference),
        3 => assert!(
            first.text().contains("No space left on device") || first.text().contains("is full"),
            "{}",
            first.text()
        ),
        code => panic!("exit code {code}: {}", first.text()),
    }
    let done = [first.stages("ran"), first.stages("cached")].concat();
    assert_eq!(step(lab, 2).code, 0, "{}", step(lab, 2).text());
    assert_eq!(again.code, 0, "{}", again.text());
    assert_eq!(&again.digests(), reference);
    for stage in again.stages("ran") {
        assert!(!done.contains(&stage), "`{stage}` was lost");
    }
    assert_eq!(step(lab, 4).code, 0, "{}", step(lab, 4).text());
    assert_eq!(step(lab, 5).stdout, "", "left in tmp");
    let began = std::fs::read_to_string(lab.path("scratch")).unwrap();
    match first.code {
        0 => "it was over, or what it needed was written: the same digests",
        _ if began.contains("train") || began.lines().count() > 2 => {
            "reported, exit 3; resumed, the same digests"
        }
        _ => "reported, exit 3; then the same digests",
    }
}

/// The disk fills at instants spread over the run.
pub(crate) fn filled(times: usize) -> Tally {
    let fault = "disk full during a training with checkpoints";
    if !*MOUNT {
        return Tally::skipped(fault, NO_MOUNT);
    }
    let lab = Lab::new(TRAINING);
    let reference = lab.reference();
    let started = std::time::Instant::now();
    lab.ends_well(&reference, &Default::default());
    let length = started.elapsed().as_micros() as usize;
    lab.wipe();
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(22));
    for _ in 0..times {
        tally.count(one(&lab, &reference, chance.below(length)));
    }
    tally
}

pub(crate) fn disks_fill_during_a_training() {
    filled(4);
}
