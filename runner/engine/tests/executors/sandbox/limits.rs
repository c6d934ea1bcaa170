//! The end of programs: their shells, their families, and the limit of their memory.

use super::{Mode, exec, info, isolation};
use crate::{Lab, program};
use runner_testkit::marked;

pub(crate) fn failures_of_lines_and_pipes(mode: Mode) {
    for (run, shell, code) in [
        ("false\necho 1 > ${outputs.x}", "bash", 1),
        ("false | cat > ${outputs.x}", "bash", 1),
        ("sh -c 'echo 1; exit 7' | cat > ${outputs.x}", "bash", 1),
        ("echo $UNSET_VARIABLE > ${outputs.x}", "bash", 1),
        ("[[ a == a ]] && echo 1 > ${outputs.x}", "bash", 0),
        ("false\necho 1 > ${outputs.x}", "sh", 1),
        // `sh` has no `pipefail` everywhere, and does not mind what is unset.
        ("false | echo $UNSET_VARIABLE > ${outputs.x}", "sh", 0),
    ] {
        let ran = exec(&Lab::with_workers(), program(run).set("shell", shell), mode);
        assert_eq!(ran.summary.exit_code(), code, "{run} {shell}: {}", ran.log);
    }
    let killed = exec(&Lab::with_workers(), program("kill -9 $$\necho 1 > ${outputs.x}"), mode);
    assert_eq!(killed.error("a"), "the command was killed by signal 9 (SIGKILL)");
}

/// Leaves a process in its own session, one whose parent has exited, one that ignores signals, and one that
/// does all of it.
pub(crate) fn nothing_outlives_a_stage(mode: Mode) {
    const ESCAPES: &str = "setsid sleep 1000 &
(setsid sh -c 'sleep 1001 & exit' &)
sh -c 'trap \"\" TERM INT HUP; sleep 1002; sleep 1003' &
setsid nohup sh -c 'trap \"\" TERM; (sleep 1004 &) ; sleep 1005' > /dev/null 2>&1 &
sleep 0.3; echo 1 > ${outputs.x}";
    let mark = format!("stage-{mode:?}-{}", std::process::id());
    let text = program(ESCAPES).set("env", format!("{{ MARK: {mark} }}"));
    let ran = exec(&Lab::with_workers(), text, mode);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    assert_eq!(marked(&mark), Vec::<String>::new());
}

/// A program that exceeds the limit of its memory ends with its family, and nothing of it is stored, even if
/// its shell would not mind.
pub(crate) fn memory_is_limited(mode: Mode) {
    let text = |limit: &str| {
        program("perl -e '$x = \"x\" x (300 << 20); print length $x' > ${outputs.x} || echo 0 > ${outputs.x}")
            .set("resources", format!("{{ memory: {limit} }}"))
            .set("tools", "[perl]")
    };
    let lab = Lab::with_workers();
    let error = exec(&lab, text("100MiB"), mode).error("a");
    assert!(
        error.contains("was killed for memory: its limit is 100.0 MiB"),
        "{error}"
    );
    let ran = exec(&lab, text("2GiB"), mode);
    assert_eq!(lab.text(ran.outputs("a")["x"]), (300_u64 << 20).to_string());
    assert_eq!(isolation(&ran).2, Some(2 << 30));
    assert_eq!(info(&lab, &ran, "memory_limit"), 2_u64 << 30);
}

/// Where limits cannot be enforced, nothing claims that they are.
pub(crate) fn a_limit_that_is_not_enforced_is_not_claimed() {
    let lab = Lab::with_workers();
    let text = program("echo 1 > ${outputs.x}").set("resources", "{ memory: 2GiB }");
    let ran = exec(&lab, text, Mode::None);
    assert_eq!(isolation(&ran).2, None);
    assert!(info(&lab, &ran, "memory_limit").is_null());
}
