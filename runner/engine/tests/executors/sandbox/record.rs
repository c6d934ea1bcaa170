//! Reports and records of programs.

use super::{Mode, exec, info, isolation};
use crate::{Lab, program};

pub(crate) fn executed_programs_are_recorded() {
    let lab = Lab::with_workers();
    let text = program(
        "printf '#!/usr/bin/perl\\nprint 1;' > script; chmod +x script; ./script > ${outputs.x}; cat \
         ${outputs.x}; setsid true; no-such-program || true",
    );
    let ran = exec(&lab, text, Mode::Namespaces);
    let warning = ran.log.lines().find(|line| line.starts_with("a: warning"));
    assert_eq!(
        warning,
        Some("a: warning: executed `/usr/bin/perl`, which is not in its key (hint: add `tools: [perl]`)")
    );
    let executed = info(&lab, &ran, "executed").to_string();
    for path in [
        "bash\"",
        "\"/stage/work/script\"",
        "/cat\"",
        "/perl\"",
        "/setsid\"",
        "/true\"",
    ] {
        assert!(executed.contains(path), "{path}: {executed}");
    }
    assert!(!executed.contains("no-such-program"), "{executed}");
    let quiet = exec(&lab, program("seq 3 | sort -r > ${outputs.x}"), Mode::Namespaces);
    assert!(!quiet.log.contains("warning"), "{}", quiet.log);
}

pub(crate) fn the_isolation_is_reported(mode: Mode) {
    let lab = Lab::with_workers();
    let text = program("echo 1 > ${outputs.x}");
    let ran = exec(&lab, &text, mode);
    let name = format!("{mode:?}").to_lowercase();
    let (reported, network, _) = isolation(&ran);
    assert_eq!(
        (reported, info(&lab, &ran, "isolation").as_str()),
        (name.as_str(), Some(name.as_str()))
    );
    if mode != Mode::Landlock {
        assert_eq!(network, mode == Mode::None);
    }
    assert_eq!(info(&lab, &ran, "executed").is_null(), mode != Mode::Namespaces);
    assert!(!ran.log.contains("warning"), "{}", ran.log);
    // No mode is in the key.
    assert_eq!(exec(&lab, &text, Mode::None).statuses(), "cached a");
}

pub(crate) fn invisible_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.csv").display().to_string();
    std::fs::write(&path, "1\n").unwrap();
    let error = |command: &str| {
        let lab = Lab::with_workers();
        lab.write("beside.csv", "1\n");
        exec(&lab, program(&format!("{command} > ${{outputs.x}}")), Mode::Namespaces).error("a")
    };
    let foreign = error(&format!("cat {path}"));
    assert!(
        foreign.contains(&format!("`{path}` exists, but the stage does not see it")),
        "{foreign}"
    );
    assert!(error("cat beside.csv").starts_with("the command exited with status 1"));
    let beside = error("cat /stage/work/beside.csv");
    assert!(beside.contains("add `files: [beside.csv]`"), "{beside}");
}
