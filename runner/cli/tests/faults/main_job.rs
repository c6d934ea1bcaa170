//! The quick main job, killed again and again until it is through.

use crate::lab::{Chance, Lab};
use crate::tally::Tally;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The shipped pipeline on a short market, with checkpoints as often as they can be had.
const SMALL: [&str; 14] = [
    "--set",
    "timesteps=4096",
    "--set",
    "market.with.days=60",
    "--set",
    "worlds=4",
    "--set",
    "validation_worlds=1",
    "--set",
    "test_worlds=1",
    "--set",
    "train.with.checkpoint_interval=0.000001",
    "--set",
    "train.with.policy_kwargs.lstm_hidden_size=32",
];

pub(crate) fn kills(times: usize) -> Tally {
    let pipeline = std::path::absolute("../../pipelines/rppo_options.yaml").unwrap();
    let pipeline = pipeline.to_str().unwrap();
    let args = [&["exec", pipeline, "--json"], &SMALL[..]].concat();
    let reference = {
        let lab = Lab::new("");
        let started = Instant::now();
        let ended = lab.run(&args);
        assert_eq!(ended.code, 0, "{}", ended.text());
        (ended.digests(), started.elapsed())
    };
    let (digests, length) = reference;
    let lab = Lab::new("");
    let mut tally = Tally::new("SIGKILL of the quick main job at a random instant");
    let mut chance = Chance::new(9);
    while tally.tried() < times {
        lab.wipe();
        for _ in 0..=chance.below(5) {
            let mut child = lab
                .command(&args)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(chance.below(length.as_millis() as usize) as u64));
            child.kill().unwrap();
            let killed = !child.wait().unwrap().success();
            lab.settle();
            lab.complete();
            if killed {
                tally.count("nothing lost, the same digests");
            }
        }
        let complete = lab.complete();
        let ended = lab.run(&args);
        assert_eq!(ended.code, 0, "{}", ended.text());
        assert_eq!(ended.digests(), digests);
        for event in ended.events() {
            let again = event["event"] == "stage_finished" && event["status"] == "ran";
            assert!(
                !again || !complete.contains(event["key"].as_str().unwrap()),
                "computed again: {event}"
            );
        }
        lab.sweep();
    }
    tally
}
