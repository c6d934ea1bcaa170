//! The stages that are sent and those that stay here, exit codes, `plan --executor` and `doctor --executor`.

use crate::lab::Lab;
use runner_testkit::{Project, pipeline};

/// One stage of each sort: those that name an executor, one that keeps here, one with a secret.
fn stages() -> String {
    pipeline("places")
        .run("named", "echo named > ${outputs.x}")
        .set("resources", "{ executor: hpc }")
        .run("kept", "echo kept > ${outputs.x}")
        .set("resources", "{ executor: here }")
        .run("secret", "echo $TOKEN | wc -c > ${outputs.x}")
        .set("secrets", "[TOKEN]")
        .run("any", "cat ${needs.a} ${needs.b} ${needs.c} > ${outputs.x}")
        .needs("a", "named")
        .needs("b", "kept")
        .needs("c", "secret")
        .to_string()
}

pub(crate) fn what_stays_here() {
    let lab = Lab::new(&stages());
    let here = lab.command(&["exec", "p.yaml", "--json"]).env("TOKEN", "abc").output();
    let here = runner_testkit::Ended::from(here.unwrap());
    assert_eq!(here.code, 0, "{}", here.text());
    assert_eq!(lab.slurm.ended(), 1, "only what names the executor is sent");
    lab.wipe();
    let there = lab
        .command(&["exec", "p.yaml", "--executor", "hpc", "--json"])
        .env("TOKEN", "abc")
        .output();
    let there = runner_testkit::Ended::from(there.unwrap());
    assert_eq!(there.code, 0, "{}", there.text());
    assert_eq!(there.digests(), here.digests());
    lab.slurm.wait_until_empty();
    assert_eq!(lab.slurm.ended(), 3, "{}", there.text());
    assert!(
        there.text().contains("its secrets do not leave this machine"),
        "{}",
        there.text()
    );
}

/// A program that fails there is the same failure as here: exit code 1, its status and its last lines.
pub(crate) fn stages_that_fail() {
    let text = pipeline("fails")
        .run("good", "echo good > ${outputs.x}")
        .run("bad", "echo reason of the failure >&2; exit 3; echo ${outputs.x}")
        .run("after", "cat ${needs.bad} > ${outputs.x}")
        .needs("bad", "bad");
    let lab = Lab::new(&text.to_string());
    let here = Project::new(&text).exec(&["--keep-going"]);
    let there = lab.exec(&["--keep-going"]);
    assert_eq!((here.code, there.code), (1, 1), "{}", there.text());
    let first = |error: String| error.lines().next().map(str::to_owned);
    assert_eq!(first(there.error("bad")), first(here.error("bad")));
    assert!(
        there.error("bad").contains("reason of the failure"),
        "{}",
        there.error("bad")
    );
    assert_eq!(there.stages("ran"), ["good"]);
    assert_eq!(there.stages("skipped"), ["after"]);
    lab.slurm.wait_until_empty();
    let unknown = lab.run(&["exec", "p.yaml", "--executor", "hcp"]);
    assert_eq!(unknown.code, 2, "{}", unknown.text());
    assert!(unknown.stderr.contains("`hpc`"), "{}", unknown.stderr);
}

pub(crate) fn commands() {
    let lab = Lab::new(
        &pipeline("planned")
            .run("a", "echo ${matrix.n} > ${outputs.x}")
            .matrix("n", "[1, 2, 3]")
            .set("resources", "{ threads: 2, memory: 100MiB, time: 2h }")
            .to_string(),
    );
    let planned = lab.run(&["plan", "p.yaml", "--executor", "hpc"]);
    assert_eq!(planned.code, 0, "{}", planned.text());
    for text in ["hpc: 2 threads, 100.0 MiB, 2 h 00 min", "hpc: 3 jobs"] {
        assert!(planned.stdout.contains(text), "{text}: {}", planned.stdout);
    }
    assert_eq!(lab.slurm.ended(), 0, "a plan submits nothing");
    let doctor = lab.run(&["doctor", "--executor", "hpc"]);
    assert_eq!(doctor.code, 0, "{}", doctor.text());
    assert_eq!(lab.slurm.ended(), 1, "{}", doctor.text());
    lab.slurm.wait_until_empty();
}
