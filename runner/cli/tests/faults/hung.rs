//! Obstacles in the place of a file, which would block its reader, and a file system that does not answer.

use crate::fuse::{Fuse, OPTIONS};
use crate::lab::{Chance, Digests, LONGEST, Lab, copy, files, runner};
use crate::tally::Tally;
use crate::tools::{HUNG, NO_HUNG};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PIPELINE: &str = "\
version: 1
name: hung
stages:
  bars: { uses: ingest/bars, with: { path: data } }
  technical: { uses: features/technical, needs: { bars: bars }, with: { indicators: [{ rsi: 2 }] } }
  seed: { run: 'cat seed.txt > ${outputs.x}', files: [seed.txt], outputs: { x: x.txt } }
  all: { run: 'wc ${needs.x} > ${outputs.x}', needs: { x: seed.x }, outputs: { x: x.txt } }
";

const BARS: &str = "\
date,open,high,low,close,volume
2020-01-02,1,2,1,2,10
2020-01-03,2,3,2,3,10
2020-01-06,3,4,3,3,10
2020-01-07,3,4,2,4,10
";

type Obstacle = (&'static str, fn(&Path));

const OBSTACLES: [Obstacle; 5] = [
    ("a FIFO", |path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
    ("a link to nothing", |path| symlink("/nowhere/at/all", path).unwrap()),
    ("a link to itself", |path| symlink(path, path).unwrap()),
    ("a link to a device without end", |path| {
        symlink("/dev/zero", path).unwrap()
    }),
    ("a socket", |path| {
        let short = std::env::temp_dir().join(format!("f{}", std::process::id()));
        let _ = fs::remove_file(&short);
        drop(std::os::unix::net::UnixListener::bind(&short).unwrap());
        if fs::rename(&short, path).is_err() {
            // On another file system.
            fs::remove_file(&short).unwrap();
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }
    }),
];

/// Places of users: what is named in a pipeline, and what names it.
const SOURCES: [&str; 5] = ["p.yaml", "seed.txt", "data", "data/a.csv", "data/b.csv"];

/// Directories and files of a home.
const PLACES: [&str; 12] = [
    "home/blobs",
    "home/actions",
    "home/memos",
    "home/derived",
    "home/stat",
    "home/scratch",
    "home/locks",
    "home/tmp",
    "home/runs",
    "home/config.yaml",
    "home/unflushed",
    "home/damaged",
];

struct Kept {
    lab: Lab,
    reference: Digests,
}

impl Kept {
    fn new() -> Self {
        let lab = Lab::new(PIPELINE);
        lab.write("data/a.csv", BARS);
        let first = lab.exec(&[]);
        assert_eq!(first.code, 0, "{}", first.text());
        let kept = Self {
            reference: first.digests(),
            lab,
        };
        for name in ["home", "data", "seed.txt", "p.yaml"] {
            copy(&kept.lab.path(name), &kept.lab.path(&format!("kept-{name}")));
        }
        kept
    }

    fn restore(&self) {
        for name in ["home", "data", "seed.txt", "p.yaml"] {
            let path = self.lab.path(name);
            clear(&path);
            copy(&self.lab.path(&format!("kept-{name}")), &path);
        }
    }
}

fn clear(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Commands that look at the place, the last of them a run. Each ends, with a result, or with an error that
/// says what is in the way.
fn one(kept: &Kept, place: &str, (name, make): Obstacle, chance: &mut Chance) -> &'static str {
    let lab = &kept.lab;
    let victim = lab.path(place);
    let what = format!("{name} in the place of {place}");
    clear(&victim);
    make(&victim);
    let commands: [&[&str]; 6] = [
        &["plan", "p.yaml"],
        &["why", "p.yaml", "all"],
        &["runs"],
        &["show", "latest"],
        &["report", "latest"],
        &["cache", "verify"],
    ];
    for args in [*chance.pick(&commands), &["exec", "p.yaml", "--json"]] {
        let ended = lab.run_within(LONGEST, args);
        assert!(
            matches!(ended.code, 0..=3),
            "{what}: {args:?}: {}: {}",
            ended.code,
            ended.text()
        );
        assert!(!ended.stderr.contains("panicked"), "{what}: {}", ended.text());
        if args[0] != "exec" {
            continue;
        }
        for (stage, digests) in ended.digests() {
            // A data set without one of its files is another one.
            let is_source = place.starts_with("data");
            assert!(
                is_source || digests == "{}" || kept.reference.get(&stage) == Some(&digests),
                "{what}: `{stage}`"
            );
        }
        if ended.code == 0 {
            return "healed, or not needed: the same digests";
        }
        let text = ended.text();
        let is_named =
            text.contains("hint") || text.contains("regular file") || text.contains("No such file");
        assert!(is_named, "{what}: {text}");
    }
    "reported, exit 1 to 3; then the same digests"
}

fn then(kept: &Kept, place: &str) {
    if !place.starts_with("home") {
        kept.restore();
    }
    let victim = kept.lab.path(place);
    if fs::symlink_metadata(&victim).is_ok_and(|meta| !meta.is_dir() && !meta.is_file()) {
        // As the message asks for.
        clear(&victim);
    }
    let last = kept.lab.exec(&[]);
    assert_eq!(
        (last.code, last.digests()),
        (0, kept.reference.clone()),
        "{place}: {}",
        last.text()
    );
}

/// Obstacles in places of sources and of the home.
pub(crate) fn obstacles(times: usize) -> Vec<Tally> {
    let kept = Kept::new();
    let mut chance = Chance::new(30);
    let mut tallies = Vec::new();
    for (fault, places) in [
        (
            "a FIFO, a link or a socket in the place of a source or pipeline",
            &SOURCES[..],
        ),
        (
            "a FIFO, a link or a socket in the place of a directory of the home",
            &PLACES,
        ),
        ("a FIFO, a link or a socket in the place of a file of the store", &[]),
    ] {
        let mut tally = Tally::new(fault);
        for i in 0..times * OBSTACLES.len() {
            kept.restore();
            let place = if places.is_empty() {
                let root = kept.lab.path(".");
                let all = files(&kept.lab.home());
                let path = chance.pick(&all);
                path.strip_prefix(&root).unwrap_or(path).display().to_string()
            } else {
                (*chance.pick(places)).to_owned()
            };
            tally.count(one(&kept, &place, OBSTACLES[i % OBSTACLES.len()], &mut chance));
            then(&kept, &place);
        }
        tallies.push(tally);
    }
    tallies
}

/// A source lies on a file system that stops to answer while it is looked at, hashed, copied or read.
pub(crate) fn file_systems(times: usize) -> Tally {
    let fault = "a source on a file system that does not answer (FUSE)";
    if !*HUNG {
        return Tally::skipped(fault, NO_HUNG);
    }
    const TEXT: &str = "\
version: 1
name: hung
stages:
  a: { run: 'cat fuse/disk > ${outputs.x}', files: [fuse/disk], outputs: { x: x.txt } }
  b: { run: 'wc ${needs.x} > ${outputs.x}', needs: { x: a }, outputs: { x: x.txt } }
";
    let bytes: Vec<u8> = (0..3 << 20).map(|i: usize| (i % 251) as u8).collect();
    let reference = {
        let lab = Lab::new(TEXT);
        fs::create_dir(lab.path("fuse")).unwrap();
        fs::write(lab.path("fuse/disk"), &bytes).unwrap();
        let ended = lab.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        ended.digests()
    };
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(31));
    for _ in 0..times {
        let lab = Lab::new(TEXT);
        fs::create_dir(lab.path("fuse")).unwrap();
        tally.count(one_file_system(&lab, &bytes, &reference, &mut chance));
    }
    tally
}

/// The run in the namespace in which the file system is mounted: first as it is, then once more.
const HANGING: &str = r#"
mount -i -t fuse -o "$OPTIONS" hung "$PWD/fuse" || exit 99
"$RUNNER" exec p.yaml --json > 1.out 2> 1.err < /dev/null &
echo $! > pid.new && mv pid.new pid
wait $!; echo $? > 1.code
while [ ! -e go ]; do sleep 0.01; done
"$RUNNER" exec p.yaml --json > 2.out 2> 2.err < /dev/null; echo $? > 2.code
umount "$PWD/fuse"
"#;

fn one_file_system(lab: &Lab, bytes: &[u8], reference: &Digests, chance: &mut Chance) -> &'static str {
    let fuse = Fuse::start(bytes.to_vec()).unwrap();
    let mut command = Command::new("unshare");
    let mut child = lab
        .at_home(&mut command)
        .args(["-m", "sh", "-c", HANGING])
        .env("RUNNER", runner())
        .env("OPTIONS", OPTIONS)
        .stdin(fuse.device())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    runner_testkit::wait_for("the run", || lab.path("pid").exists());
    std::thread::sleep(Duration::from_micros(chance.below(60_000) as u64));
    fuse.hold(true);
    let over = || lab.path("1.code").exists();
    let started = Instant::now();
    while !over() && !fuse.is_waited_for(Duration::from_millis(10)) {
        assert!(started.elapsed() < LONGEST, "the run neither ends nor reads");
    }
    // Two signals end it at once, whatever it waits for; or the file system answers again in time.
    let is_ended = chance.below(4) == 0;
    if is_ended {
        let pid = fs::read_to_string(lab.path("pid")).unwrap();
        while !over() {
            assert!(started.elapsed() < LONGEST, "two signals do not end it");
            let _ = Command::new("kill")
                .args(["-s", "TERM", pid.trim()])
                .stderr(Stdio::null())
                .status();
            std::thread::sleep(Duration::from_millis(50));
        }
    } else {
        std::thread::sleep(Duration::from_millis(50));
    }
    fuse.hold(false);
    runner_testkit::wait_for("the end of the run", over);
    fs::write(lab.path("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    let code = |n: usize| {
        fs::read_to_string(lab.path(&format!("{n}.code")))
            .unwrap()
            .trim()
            .to_owned()
    };
    let read = |n: usize, what: &str| fs::read_to_string(lab.path(&format!("{n}.{what}"))).unwrap();
    let digests = |n: usize| {
        crate::lab::Ended {
            code: 0,
            stdout: read(n, "out"),
            stderr: String::new(),
        }
        .digests()
    };
    let first = code(1);
    assert!(
        matches!(first.as_str(), "0" | "130" | "143"),
        "{first}: {}{}",
        read(1, "out"),
        read(1, "err")
    );
    assert!(
        is_ended || first == "0",
        "{first}: {}{}",
        read(1, "out"),
        read(1, "err")
    );
    for (stage, found) in digests(1) {
        assert_eq!(reference.get(&stage), Some(&found), "`{stage}`");
    }
    assert_eq!(code(2), "0", "{}{}", read(2, "out"), read(2, "err"));
    assert_eq!(&digests(2), reference);
    lab.settle();
    assert_eq!(lab.run(&["cache", "verify"]).code, 0);
    lab.sweep();
    match first.as_str() {
        "0" if is_ended => "it was over: the same digests",
        "0" => "waited for, until it answered: the same digests",
        _ => "ended by signals, exit 130; then the same digests",
    }
}

pub(crate) fn places_are_obstructed() {
    obstacles(2);
}

pub(crate) fn file_systems_hang() {
    file_systems(3);
}
