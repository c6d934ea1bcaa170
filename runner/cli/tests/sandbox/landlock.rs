//! Programs that have Landlock in place of namespaces.

use crate::{Mode, exec};
use runner_testkit::Project;

fn text(run: &str, more: &str) -> String {
    let lines: String = run.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "version: 1\nname: landlock\nstages:\n  z: \
        {{ run: 'echo 1 > ${{outputs.z}}', outputs: {{ z: z.txt }} }}\n  a:\n    run: |\n{lines}    needs: \
        {{ z: z }}\n    outputs: {{ x: x.txt }}\n{more}"
    )
}

/// The text that a stage writes; it has to succeed.
fn output(mode: Mode, project: &Project) -> String {
    let ended = exec(project, mode, &[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    project.output("a.x")
}

pub(crate) fn files_of_the_host_are_refused(mode: Mode) {
    let secret = tempfile::tempdir().unwrap();
    let file = secret.path().join("key");
    std::fs::write(&file, "private").unwrap();
    let (dir, file) = (secret.path().display(), file.display());
    let project = Project::new("");
    let home = project.home();
    let home = home.display();
    let run = format!(
        "\
# A refusal is no failure of these lines.
set +e; exec 2> /dev/null
cat {file} && echo read >> ${{outputs.x}}
echo 1 > {file} && echo written >> ${{outputs.x}}
echo 1 > {dir}/new && echo created >> ${{outputs.x}}
rm -f {file} && echo removed >> ${{outputs.x}}
ls {dir} && echo listed >> ${{outputs.x}}
ls {home} && echo listed the store >> ${{outputs.x}}
ls ../../../.. && echo listed above >> ${{outputs.x}}
echo 1 > ${{needs.z}} && echo written an input >> ${{outputs.x}}
for path in /x /usr/x /etc/x; do echo 1 > $path && echo $path >> ${{outputs.x}}; done
cat ${{needs.z}} >> ${{outputs.x}}
echo 2 > $TMPDIR/x && mv $TMPDIR/x $HOME/y && cat $HOME/y >> ${{outputs.x}}
grep -c ^root: /etc/passwd >> ${{outputs.x}}
cat <(echo 3) >> ${{outputs.x}}
echo 4 | tee /dev/stderr /dev/null >> ${{outputs.x}}
"
    );
    project.write("p.yaml", text(&run, ""));
    assert_eq!(output(mode, &project), "1\n2\n1\n3\n4\n");
    assert_eq!(std::fs::read_to_string(secret.path().join("key")).unwrap(), "private");
}

pub(crate) fn tcp_is_refused(mode: Mode) {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let run = format!(
        "if (exec 3<> /dev/tcp/127.0.0.1/{port}) 2> /dev/null; then echo reached > ${{outputs.x}}; else \
        echo refused > ${{outputs.x}}; fi"
    );
    let project = Project::new(text(&run, ""));
    let ended = exec(&project, mode, &[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let events = ended.events();
    let event = events.iter().find(|event| event["event"] == "isolation").unwrap();
    // Before version 4 of Landlock, the network is in reach, and that is said.
    let expected = if event["network"] == true {
        "reached\n"
    } else {
        "refused\n"
    };
    assert_eq!(project.output("a.x"), expected);
    assert_eq!(
        output(mode, &Project::new(text(&run, "    network: true\n"))),
        "reached\n"
    );
}

pub(crate) fn the_isolation_is_named(mode: Mode) {
    let project = Project::new(
        "version: 1\nname: n\nstages:\n  a: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }\n",
    );
    let ended = exec(&project, mode, &[]);
    let events = ended.events();
    let event = events.iter().find(|event| event["event"] == "isolation").unwrap();
    assert_eq!(event["isolation"], "landlock");
    assert!(!ended.stdout.contains(r#""event":"warning""#), "{}", ended.stdout);
    let info = crate::programs::info(&project);
    assert_eq!(info["isolation"], "landlock");
    assert!(info["executed"].is_null(), "{info}");
}
