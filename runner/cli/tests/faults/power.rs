//! A machine that loses its power: what was written to the disk and not flushed is lost, or partly, or in
//! another order.
//!
//! The store lies on an ext4 on a disk whose writes and flushes are recorded in their order ([`crate::fuse`],
//! through a loop device). From a record of some runs, the disk is put together as a power failure at a
//! random instant would have left it: all that was written before the last flush, and of the later sectors
//! some. It is mounted again, under another boot id, and the next run must end as an undisturbed one.

use crate::fuse::{Fuse, OPTIONS, Op};
use crate::lab::{Chance, Digests, Ended, Lab, QUICK, STAGES, runner};
use crate::tally::Tally;
use crate::tools::{NO_POWER, POWER};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// The length of the disk.
const LEN: usize = 24 << 20;

/// Runs on the recorded disk; each line of output tells the test what is complete.
const RECORDED: &str = r#"
mount -i -t fuse -o "$OPTIONS" block "$PWD/fuse" || exit 99
mkdir -p "$RUNNER_HOME"
mount -o loop,commit=1 "$PWD/fuse/disk" "$RUNNER_HOME" < /dev/null || exit 98
echo mounted
i=0
for args in $RUNS; do
  i=$((i + 1))
  "$RUNNER" exec p.yaml --json $(echo "$args" | tr , ' ') > run$i.out 2> run$i.err < /dev/null || exit 97
  echo "run$i"
  sleep "0.$(( (i * 37) % 90 + 10 ))"
done
umount "$RUNNER_HOME"
umount "$PWD/fuse"
echo over
"#;

/// A run on the disk as it was found after the failure.
const RECOVERED: &str = r#"
mkdir -p "$RUNNER_HOME"
mount -o loop "$PWD/image" "$RUNNER_HOME" || exit 99
mount --bind "$PWD/boot" /proc/sys/kernel/random/boot_id || exit 98
"$RUNNER" exec p.yaml --json > 1.out 2> 1.err; echo $? > 1.code
"$RUNNER" cache verify > 2.out 2> 2.err; echo $? > 2.code
"$RUNNER" cache gc --keep-last 1000 --keep-younger-than 0s > 3.out 2> 3.err; echo $? > 3.code
"$RUNNER" exec p.yaml --json > 4.out 2> 4.err; echo $? > 4.code
ls "$RUNNER_HOME/tmp" > 5.out 2> 5.err; echo $? > 5.code
umount "$RUNNER_HOME"
"#;

/// The operations on a disk, and the keys that were complete after a number of operations.
struct Record {
    empty: Vec<u8>,
    log: Vec<Op>,
    /// The first operation at which something may be lost.
    start: usize,
    complete: Vec<(usize, BTreeSet<String>)>,
}

fn step(lab: &Lab, n: &str) -> Ended {
    let read = |what: &str| std::fs::read(lab.path(&format!("{n}.{what}"))).unwrap_or_default();
    Ended {
        code: String::from_utf8_lossy(&read("code")).trim().parse().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&read("out")).into_owned(),
        stderr: String::from_utf8_lossy(&read("err")).into_owned(),
    }
}

fn script(lab: &Lab, text: &str) -> Command {
    let mut command = Command::new("unshare");
    lab.at_home(&mut command)
        .args(["-m", "sh", "-c", text])
        .env("RUNNER", runner())
        .env("OPTIONS", OPTIONS);
    command
}

/// An empty ext4.
fn empty(lab: &Lab) -> Vec<u8> {
    let path = lab.path("empty");
    std::fs::File::create(&path).unwrap().set_len(LEN as u64).unwrap();
    let made = Command::new("mkfs.ext4")
        .args([
            "-q",
            "-F",
            "-b",
            "4096",
            "-N",
            "2000",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::read(&path).unwrap()
}

fn record(lab: &Lab, chance: &mut Chance) -> Record {
    let empty = empty(lab);
    let fuse = Fuse::start(empty.clone()).unwrap();
    std::fs::create_dir_all(lab.path("fuse")).unwrap();
    // Some stages first, then everything, then some again.
    let some = |chance: &mut Chance| format!("--force,{}", chance.pick(&STAGES));
    let mut runs = vec!["seed,env".to_owned(), "technical".to_owned(), String::from("--jobs,2")];
    runs.extend((0..3).map(|_| some(chance)));
    let mut child = script(lab, RECORDED)
        .env("RUNS", runs.join(" "))
        .stdin(fuse.device())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut start, mut complete, mut last) = (0, Vec::new(), String::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        last = line.unwrap();
        match last.as_str() {
            "mounted" => start = fuse.operations(),
            "over" => {}
            run => {
                let ended = step(lab, run).events();
                let done = ended.iter().filter(|event| event["event"] == "stage_finished");
                let keys = done.filter_map(|event| event["key"].as_str().map(ToOwned::to_owned));
                complete.push((fuse.operations(), keys.collect()));
            }
        }
    }
    let status = child.wait().unwrap();
    assert!(
        status.success() && last == "over",
        "{status}: {last}: {:?}",
        step(lab, "run1")
    );
    let log = fuse.log();
    assert!(
        log.iter().filter(|op| matches!(op, Op::Flush)).count() > 3,
        "flushes reach the disk"
    );
    Record {
        empty,
        log,
        start,
        complete,
    }
}

/// The bytes that a disk writes as a whole.
const SECTOR: usize = 4096;

/// The disk after a power failure at that operation. Of what was not flushed each sector is written with a
/// probability of `kept` per cent.
fn disk(record: &Record, at: usize, kept: usize, chance: &mut Chance) -> Vec<u8> {
    let mut bytes = record.empty.clone();
    let flushed = record.log[..at]
        .iter()
        .rposition(|op| matches!(op, Op::Flush))
        .unwrap_or(0);
    for (i, op) in record.log[..at].iter().enumerate() {
        if let Op::Write(offset, data) = op {
            // Most writes are lost or kept as a whole.
            let (whole, torn) = (chance.below(100) < kept, chance.below(8) == 0);
            for (n, sector) in data.chunks(SECTOR).enumerate() {
                let is_kept = if torn { chance.below(100) < kept } else { whole };
                if i < flushed || is_kept {
                    let from = offset + n * SECTOR;
                    bytes[from..from + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
    bytes
}

/// Writes the disk without its holes.
fn write_image(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::File::create(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (i, block) in bytes.chunks(4096).enumerate() {
        if block.iter().any(|&byte| byte != 0) {
            file.seek(SeekFrom::Start(i as u64 * 4096)).unwrap();
            file.write_all(block).unwrap();
        }
    }
}

fn one(lab: &Lab, reference: &Digests, record: &Record, n: usize, chance: &mut Chance) -> &'static str {
    let at = record.start + chance.below(record.log.len() - record.start) + 1;
    let kept = *chance.pick(&[0, 20, 50, 80, 100]);
    write_image(&lab.path("image"), &disk(record, at, kept, chance));
    std::fs::write(lab.path("boot"), format!("00000000-0000-4000-8000-{n:012}\n")).unwrap();
    let what = format!("operation {at} of {}, {kept} per cent", record.log.len());
    let output = script(lab, RECOVERED).output().unwrap();
    assert!(
        output.status.success(),
        "{what}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let first = step(lab, "1");
    assert_eq!(first.code, 0, "{what}: {}", first.text());
    assert_eq!(&first.digests(), reference, "{what}");
    // A run that had ended was flushed.
    let flushed = record.complete.iter().rfind(|(until, _)| *until <= at);
    for event in first.events() {
        if event["event"] == "stage_finished" && event["status"] == "ran" {
            let key = event["key"].as_str().unwrap();
            assert!(
                flushed.is_none_or(|(_, keys)| !keys.contains(key)),
                "{what}: lost: {event}"
            );
        }
    }
    // Damage to what no stage needed is found now.
    assert!(
        matches!(step(lab, "2").code, 0 | 3),
        "{what}: {}",
        step(lab, "2").text()
    );
    assert_eq!(step(lab, "3").code, 0, "{what}: {}", step(lab, "3").text());
    assert_eq!(step(lab, "4").digests(), *reference, "{what}");
    assert_eq!(step(lab, "4").stages("ran"), [""; 0], "{what}");
    assert_eq!(step(lab, "5").stdout, "", "{what}: left in tmp");
    match first.stages("ran").len() {
        0 => "nothing lost, the same digests",
        n if n < STAGES.len() + 1 => "what was not flushed is computed again, the same digests",
        _ => "all is computed again, the same digests",
    }
}

/// Failures at instants of several recorded sequences of runs.
pub(crate) fn lost(times: usize) -> Tally {
    let fault = "power loss (block-level replay of an ext4)";
    if !*POWER {
        return Tally::skipped(fault, NO_POWER);
    }
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(29));
    let mut recorded = None;
    for n in 0..times {
        if n % 100 == 0 {
            recorded = Some(record(&lab, &mut chance));
        }
        tally.count(one(&lab, &reference, recorded.as_ref().unwrap(), n, &mut chance));
    }
    tally
}

pub(crate) fn the_power_fails() {
    lost(6);
}
