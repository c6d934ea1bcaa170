//! The inputs, environment and outputs of external programs.

use crate::Project;

#[test]
fn clean_environment() {
    let project = Project::new(
        "\
version: 1
name: env
stages:
  a:
    run: env | cut -d= -f1 | grep -v -e '^_$' -e PWD -e SHLVL -e OLDPWD | sort > ${outputs.x}; echo \
$GREETING $TOKEN >> ${outputs.x}; ls -A >> ${outputs.x}
    env: { GREETING: hello }
    secrets: [TOKEN]
    outputs: { x: x.txt }
",
    );
    let run = |token: &str| {
        let output = project
            .command(&["exec", "p.yaml", "-q"])
            .env("TOKEN", token)
            .env("HOME", "/")
            .env("LANG", "C")
            .env("NOISE", "1")
            .output()
            .unwrap();
        assert!(output.status.success());
    };
    run("secret");
    insta::assert_snapshot!(project.output("a.x"), @r"
    GREETING
    HOME
    LANG
    PATH
    TMPDIR
    TOKEN
    TZ
    hello secret
    x.txt
    ");
    // A secret is not part of the key.
    run("other");
    assert!(project.output("a.x").contains("hello secret"));
}

#[test]
fn other_dollars_are_the_shells() {
    let project = Project::new(
        "\
version: 1
name: dollars
stages:
  a:
    run: |
      x=5
      echo ${x} ${y:-none} $${needs.z} '$${x}' \"${x}1\" > ${outputs.x}
    outputs: { x: x.txt }
",
    );
    let ended = project.exec(&[]);
    // `$${needs.z}` reaches the shell as `${needs.z}`, which it refuses.
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    project.write(
        "p.yaml",
        "\
version: 1
name: dollars
stages:
  a:
    run: |
      x=5
      echo ${x} ${y:-none} '$${x}' \"${x}1\" > ${outputs.x}
    outputs: { x: x.txt }
",
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    assert_eq!(project.output("a.x"), "5 none ${x} 51\n");
}

#[test]
fn files_and_directories() {
    let project = Project::new(
        "\
version: 1
name: directories
stages:
  a:
    run: mkdir -p ${outputs.tree}/deep && echo 1 > ${outputs.tree}/one.txt && echo 2 > \
${outputs.tree}/deep/two.txt && echo 3 > three.txt
    outputs: { tree: tree, file: three.txt }
  b:
    run: sh scripts/list.sh ${needs.tree} > ${outputs.x} && cat ${needs.file} >> ${outputs.x}
    files: [scripts/*.sh]
    needs: { tree: a.tree, file: a.file }
    outputs: { x: nested/x.txt }
",
    );
    project.write("scripts/list.sh", "cd $1 && find . -type f | sort\n");
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    assert_eq!(project.output("b.x"), "./deep/two.txt\n./one.txt\n3\n");
    assert_eq!(project.output("a.tree"), "2\n1\n");
}

#[test]
fn what_writes_to_its_input_harms_nothing() {
    let text = |command: &str| {
        format!(
            "\
version: 1
name: through
stages:
  a: {{ run: 'echo good > ${{outputs.x}}', outputs: {{ x: x.txt }} }}
  b:
    run: {command}
    needs: {{ x: a.x }}
    outputs: {{ y: y.txt }}
"
        )
    };
    let project = Project::new(&text(
        "chmod u+w ${needs.x}; echo bad > ${needs.x}; cp ${needs.x} ${outputs.y}",
    ));
    // An isolated program cannot; see the tests of the sandbox.
    let ended = project.exec(&["--isolation", "none"]);
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    let error = ended.error("b");
    assert!(error.contains("the command modified one of its inputs"), "{error}");
    project.write("p.yaml", &text("cp ${needs.x} ${outputs.y}"));
    assert_eq!(project.exec(&[]).code, 0);
    assert_eq!(project.output("b.y"), "good\n");
}

#[test]
fn the_log_is_kept() {
    let project = Project::new(
        "\
version: 1
name: log
stages:
  a: { run: 'echo first; echo second >&2; echo x > ${outputs.x}', outputs: { x: x.txt } }
",
    );
    assert_eq!(project.exec(&[]).code, 0);
    let shown = project.run(&["show", "latest/a"]);
    assert!(shown.stdout.contains("  first\n  second\n"), "{}", shown.stdout);
    // Also when it comes from the store.
    assert_eq!(project.exec(&[]).code, 0);
    assert!(
        project
            .run(&["show", "latest/a"])
            .stdout
            .contains("  first\n  second\n")
    );
}

/// Directories are used again: by a program that finds nothing in them, whatever an earlier one left or left
/// running.
#[test]
fn each_program_finds_an_empty_directory() {
    let mut pipeline = "version: 1\nname: directories\nstages:\n  s0:\n    run: |\n      mkdir -p deep/er \
                        && touch .hidden deep/er/x ../beside && chmod 555 deep\n      \
                        ! command -v setsid || setsid sh -c 'sleep 0.2; echo late > late.txt' &\n      \
                        sleep 0.1; echo 0 > ${outputs.x}\n    outputs: { x: x.txt }\n"
        .to_owned();
    for i in 1..6 {
        pipeline.push_str(&format!(
            "  s{i}: \
            {{ run: 'sleep 0.1; found=$(find .. -mindepth 1 | sort); echo \"$found {i}\" > ${{outputs.x}}', needs: {{ a: s{} }}, outputs: {{ x: x.txt }} }}\n",
            i - 1
        ));
    }
    let project = Project::new(&pipeline);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    for i in 1..6 {
        assert_eq!(
            project.output(&format!("s{i}")),
            format!("../home\n../needs\n../needs/a\n../needs/a/x.txt\n../tmp\n../work {i}\n")
        );
    }
    assert_eq!(std::fs::read_dir(project.home().join("tmp")).unwrap().count(), 0);
}
