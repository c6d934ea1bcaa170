//! Files, variables and networks that an isolated program does not see.

use crate::{Mode, exec};
use runner_testkit::Project;

fn stage(run: &str, more: &str) -> Project {
    let lines: String = run.lines().map(|line| format!("      {line}\n")).collect();
    Project::new(format!(
        "version: 1\nname: hidden\nstages:\n  a:\n    run: |\n{lines}    outputs: {{ x: x.txt }}\n{more}"
    ))
}

/// The text that a stage writes; it has to succeed.
fn output(run: &str, more: &str) -> String {
    let project = stage(run, more);
    let ended = exec(&project, Mode::Namespaces, &[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    project.output("a.x")
}

pub(crate) fn the_environment_is_clean(mode: Mode) {
    let project = stage(
        "env | cut -d= -f1 | grep -v -e '^_$' -e PWD -e SHLVL | sort > ${outputs.x}\necho $LANG $TZ \
        $GREETING $TOKEN >> ${outputs.x}\nls -A $HOME $TMPDIR | wc -w >> ${outputs.x}",
        "    env: { GREETING: hello }\n    secrets: [TOKEN]\n",
    );
    let ended = project
        .command(&["exec", "p.yaml", "-q", "--isolation", mode.argument()])
        .envs([
            (crate::NAMESPACES, mode.namespaces()),
            ("TOKEN", "secret"),
            ("LANG", "C"),
            ("NOISE", "1"),
            ("LD_LIBRARY_PATH", "/"),
        ])
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let text = project.output("a.x");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..7],
        ["GREETING", "HOME", "LANG", "PATH", "TMPDIR", "TOKEN", "TZ"],
        "{text}"
    );
    assert_eq!(lines[7], "C.UTF-8 UTC hello secret");
    assert!(
        lines[8..]
            .iter()
            .all(|line| line.trim() == "0" || line.ends_with(':') || line.trim() == "2"),
        "{text}"
    );
}

pub(crate) fn files_of_the_host_are_invisible() {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("key"), "private").unwrap();
    let path = secret.path().join("key").display().to_string();
    let text = output(
        &format!(
            "! cat {path} 2> /dev/null\n! ls /root /home /work 2> /dev/null\npwd > ${{outputs.x}}\nls / | \
            tr '\\n' ' ' >> ${{outputs.x}}"
        ),
        "",
    );
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("/stage/work"));
    let root: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let known = [
        "bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "proc", "sbin", "stage", "tmp",
        "usr",
    ];
    assert!(root.iter().all(|name| known.contains(name)), "{root:?}");
}

pub(crate) fn nothing_of_the_system_is_writable() {
    let project = Project::new(
        "\
version: 1
name: hidden
stages:
  z: { run: 'echo 1 > ${outputs.z}', outputs: { z: z.txt } }
  a:
    needs: { z: z }
    tools: [perl]
    outputs: { x: x.txt }
    run: |
      ls -d /stage/needs/z /stage/tools/perl > ${outputs.x}
      for path in /x /usr/x /etc/x /stage/needs/x /stage/needs/z/z.txt /stage/tools/x \
/proc/sys/kernel/hostname /dev/x; do
        if (echo 1 > $path) 2> /dev/null; then echo $path >> ${outputs.x}; fi
      done
      for path in /tmp/x /stage/home/x /dev/shm/x /dev/null; do
        echo 1 > $path || echo $path >> ${outputs.x}
      done
      ! mount -t tmpfs none /tmp 2> /dev/null || echo mounted >> ${outputs.x}
      ! mount -o remount,rw,bind /usr 2> /dev/null || echo remounted >> ${outputs.x}
      ! umount /stage/needs 2> /dev/null || echo unmounted >> ${outputs.x}
      ! umount /stage 2> /dev/null || echo unmounted >> ${outputs.x}
      ! hostname other 2> /dev/null || echo renamed >> ${outputs.x}
      grep -e ^CapEff -e ^CapBnd -e ^NoNewPrivs /proc/self/status >> ${outputs.x}
",
    );
    let ended = exec(&project, Mode::Namespaces, &[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    insta::assert_snapshot!(project.output("a.x"), @"
    /stage/needs/z
    /stage/tools/perl
    CapEff:\t0000000000000000
    CapBnd:\t0000000000000000
    NoNewPrivs:\t1
    ");
}

/// A supervisor runs one program after the other: none finds what another left.
pub(crate) fn nothing_is_left_for_the_next_program() {
    const LEAVE: &str = "      touch /tmp/left /dev/shm/left /stage/home/left left
      perl -e 'defined shmget(4242, 64, 0666 | 01000) or die \"shmget: $!\"'
      perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die; bind(S, pack_sockaddr_un(\"\\0left\")) or die \"bind: $!\"; sleep 1000' &
      sleep 0.2
";
    const LOOK: &str = "      ls -A /tmp /dev/shm /stage/home /stage > ${outputs.x}
      perl -e 'print defined shmget(4242, 64, 0) ? \"memory\\n\" : \"no memory\\n\"' >> ${outputs.x}
      grep -c left /proc/net/unix >> ${outputs.x} || true
      # No keyring of the user either: keyctl(2).
      perl -e 'my $keyctl = `uname -m` =~ /x86_64/ ? 250 : 219; print syscall($keyctl, 0, -4, 1), \" \", $!{ENOSYS} ? \"refused\\n\" : \"allowed\\n\"' >> ${outputs.x}
";
    let stage = |name: &str, run: &str, more: &str| {
        format!(
            "  {name}:\n    run: |\n{run}      echo {name} >> ${{outputs.x}}\n    tools: [perl]\n    \
            outputs: {{ x: x.txt }}\n{more}"
        )
    };
    let text = format!(
        "version: 1\nname: left\nstages:\n{}{}",
        stage("a", LEAVE, ""),
        stage("b", LOOK, "    needs: { a: a }\n")
    );
    let project = Project::new(&text);
    let ended = exec(&project, Mode::Namespaces, &[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    insta::assert_snapshot!(project.output("b.x"), @"
    /dev/shm:

    /stage:
    home
    needs
    tmp
    tools
    work

    /stage/home:

    /tmp:
    no memory
    0
    -1 refused
    b
    ");
}

pub(crate) fn there_is_no_network() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let run = format!(
        "if (exec 3<> /dev/tcp/127.0.0.1/{port}) 2> /dev/null; then echo reached > ${{outputs.x}}; else \
        echo refused > ${{outputs.x}}; fi\ntail -n +3 /proc/net/dev | cut -d: -f1 >> ${{outputs.x}}"
    );
    assert_eq!(output(&run, "").replace(' ', ""), "refused\nlo\n");
    assert!(output(&run, "    network: true\n").starts_with("reached\n"));
}

pub(crate) fn processes_of_the_host_are_invisible() {
    let text = output(
        "echo $$ $PPID > ${outputs.x}\nkill -0 2 2> /dev/null || true\nls /proc | grep -c '^[0-9]' >> \
        ${outputs.x}\nhostname >> ${outputs.x} || uname -n >> ${outputs.x}",
        "",
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[2]), ("2 1", "stage"), "{text}");
    // Where a container's `/proc` cannot be mounted anew, the host's has more.
    assert!(lines[1].parse::<u32>().unwrap() < 10, "{text}");
}

pub(crate) fn invisible_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.csv").display().to_string();
    std::fs::write(&path, "1\n").unwrap();
    let project = stage(&format!("cat {path} > ${{outputs.x}}"), "");
    let ended = exec(&project, Mode::Namespaces, &[]);
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .stdout
            .contains(&format!("`{path}` exists, but the stage does not see it")),
        "{}",
        ended.stdout
    );
    let project = stage("cat beside.csv > ${outputs.x}\n", "");
    project.write("beside.csv", "1\n");
    assert_eq!(exec(&project, Mode::Namespaces, &[]).code, 1);
    let project = stage("cat /stage/work/beside.csv > ${outputs.x}\n", "");
    project.write("beside.csv", "1\n");
    let ended = exec(&project, Mode::Namespaces, &[]);
    assert!(ended.stdout.contains("add `files: [beside.csv]`"), "{}", ended.stdout);
}

/// A link of the sandbox is resolved in its own tree.
pub(crate) fn links_in_outputs() {
    let text = |link: &str| {
        format!(
            "\
version: 1
name: links
stages:
  a: {{ run: 'echo 1 > ${{outputs.x}}', outputs: {{ x: x.txt }} }}
  b: {{ run: 'echo 2 > /tmp/two; ln -s {link} ${{outputs.y}}', needs: {{ x: a }}, outputs: {{ y: y.txt }} }}
"
        )
    };
    for (link, content) in [("${needs.x}", "1\n"), ("/tmp/two", "2\n"), ("../needs/x/x.txt", "1\n")] {
        let project = Project::new(text(link));
        let ended = exec(&project, Mode::Namespaces, &[]);
        assert_eq!(ended.code, 0, "{link}: {}", ended.stdout);
        assert_eq!(project.output("b.y"), content);
    }
    for link in [
        "/etc/passwd",
        "/stage/../etc/passwd",
        "../../../format",
        "/proc/self/exe",
    ] {
        let project = Project::new(text(link));
        let ended = exec(&project, Mode::Namespaces, &[]);
        assert_eq!(ended.code, 1, "{link}: {}", ended.stdout);
        let error = ended.error("b");
        assert!(error.contains("the output `y` cannot be stored"), "{link}: {error}");
    }
}
