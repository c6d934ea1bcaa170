//! Files, variables, processes and networks that a program does not reach.

use super::{Mode, exec, isolation, output, setup};
use crate::{Lab, PipelineText, pipeline, program};
use std::net::TcpListener;

pub(crate) fn the_environment_is_clean(mode: Mode) {
    let text = program(
        "env | cut -d= -f1 | grep -v -e '^_$' -e PWD -e SHLVL | sort > ${outputs.x}
echo $LANG $TZ $GREETING $TOKEN >> ${outputs.x}
ls -A $HOME $TMPDIR | { grep -v -e '^$' -e ':$' || true; } | wc -l | tr -d ' ' >> ${outputs.x}
ls -A >> ${outputs.x}",
    )
    .set("env", "{ GREETING: hello }")
    .set("secrets", "[TOKEN]");
    let with_token = |value: &str| {
        let mut setup = setup(mode);
        for (name, value) in [
            ("TOKEN", value),
            ("LANG", "C"),
            ("NOISE", "1"),
            ("LD_LIBRARY_PATH", "/"),
        ] {
            setup.env.push((name, value.to_owned()));
        }
        setup
    };
    let lab = Lab::with_workers();
    let ran = lab.run_with(&text, with_token("secret"));
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    insta::allow_duplicates! {
        insta::assert_snapshot!(lab.text(ran.outputs("a")["x"]), @"
        GREETING
        HOME
        LANG
        PATH
        TMPDIR
        TOKEN
        TZ
        C.UTF-8 UTC hello secret
        0
        x.txt
        ");
    }
    // A secret is not part of the key.
    assert_eq!(lab.run_with(&text, with_token("other")).statuses(), "cached a");
}

pub(crate) fn files_of_the_host_are_invisible() {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("key"), "private").unwrap();
    let path = secret.path().join("key").display().to_string();
    let text = format!(
        "! cat {path} 2> /dev/null\n! ls /root /home /work 2> /dev/null\npwd > ${{outputs.x}}\nls / | tr '\\n' \
         ' ' >> ${{outputs.x}}"
    );
    let text = output(program(&text), Mode::Namespaces);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("/stage/work"));
    let known = "bin dev etc gnu lib lib32 lib64 libx32 nix proc sbin stage tmp usr";
    let is_known = |name: &str| known.split(' ').any(|known| known == name);
    assert!(lines.next().unwrap().split_whitespace().all(is_known), "{text}");
}

pub(crate) fn nothing_of_the_system_is_writable() {
    let text = pipeline("hidden")
        .run("z", "echo 1 > ${outputs.z}")
        .run(
            "a",
            "ls -d /stage/needs/z /stage/tools/perl > ${outputs.x}
for path in /x /usr/x /etc/x /stage/needs/x /stage/needs/z/z.txt /stage/tools/x /proc/sys/kernel/hostname /dev/x; do
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
grep -e ^CapEff -e ^CapBnd -e ^NoNewPrivs /proc/self/status >> ${outputs.x}",
        )
        .needs("z", "z")
        .set("tools", "[perl]");
    insta::assert_snapshot!(output(text, Mode::Namespaces), @"
    /stage/needs/z
    /stage/tools/perl
    CapEff:\t0000000000000000
    CapBnd:\t0000000000000000
    NoNewPrivs:\t1
    ");
}

/// A supervisor runs one program after the other: none finds what another left.
pub(crate) fn nothing_is_left_for_the_next_program() {
    const LEAVE: &str = "touch /tmp/left /dev/shm/left /stage/home/left left
perl -e 'defined shmget(4242, 64, 0666 | 01000) or die \"shmget: $!\"'
perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die; bind(S, pack_sockaddr_un(\"\\0left\")) or die \"bind: $!\"; sleep 1000' &
sleep 0.2
echo 1 > ${outputs.x}";
    // No keyring of the user either: keyctl(2).
    const LOOK: &str = "ls -A /tmp /dev/shm /stage/home /stage > ${outputs.x}
perl -e 'print defined shmget(4242, 64, 0) ? \"memory\\n\" : \"no memory\\n\"' >> ${outputs.x}
grep -c left /proc/net/unix >> ${outputs.x} || true
perl -e 'my $keyctl = `uname -m` =~ /x86_64/ ? 250 : 219; print syscall($keyctl, 0, -4, 1), \" \", $!{ENOSYS} ? \"refused\\n\" : \"allowed\\n\"' >> ${outputs.x}";
    let text = pipeline("left")
        .run("first", LEAVE)
        .set("tools", "[perl]")
        .run("a", LOOK)
        .set("tools", "[perl]")
        .needs("a", "first");
    insta::assert_snapshot!(output(text, Mode::Namespaces), @"
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
    ");
}

/// A program kills the server that forks supervisors: the second of two programs at a time gets another.
pub(crate) fn a_killed_server_is_started_again() {
    let lab = Lab::with_workers();
    let text = pipeline("killed")
        .run(
            "first",
            "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat)\necho 1 > ${outputs.x}",
        )
        .run("a", "sleep 0.3\necho 2 > ${outputs.x}")
        .needs("a", "first")
        .run("b", "sleep 0.3\necho 3 > ${outputs.x}")
        .needs("b", "first");
    let ran = exec(&lab, text, Mode::None);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    assert_eq!(lab.text(ran.outputs("b")["x"]), "3\n");
}

/// A stage that says whether it reaches a server of this machine, and which network devices it has.
fn connects(server: &TcpListener) -> PipelineText {
    let port = server.local_addr().unwrap().port();
    program(&format!(
        "if (exec 3<> /dev/tcp/127.0.0.1/{port}) 2> /dev/null; then echo reached > ${{outputs.x}}; else echo \
         refused > ${{outputs.x}}; fi"
    ))
}

pub(crate) fn there_is_no_network() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(output(connects(&server), Mode::Namespaces), "refused\n");
    assert_eq!(
        output(connects(&server).set("network", true), Mode::Namespaces),
        "reached\n"
    );
    let devices = program("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' > ${outputs.x}");
    assert_eq!(output(devices, Mode::Namespaces), "lo\n");
}

pub(crate) fn tcp_is_refused(mode: Mode) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let lab = Lab::with_workers();
    let ran = exec(&lab, connects(&server), mode);
    // Before version 4 of Landlock, the network is in reach, and that is said.
    let expected = if isolation(&ran).1 { "reached\n" } else { "refused\n" };
    assert_eq!(lab.text(ran.outputs("a")["x"]), expected);
    assert_eq!(output(connects(&server).set("network", true), mode), "reached\n");
}

pub(crate) fn processes_of_the_host_are_invisible() {
    let text = output(
        program(
            "echo $$ $PPID > ${outputs.x}\nkill -0 2 2> /dev/null || true\nls /proc | grep -c '^[0-9]' >> \
             ${outputs.x}\nhostname >> ${outputs.x} || uname -n >> ${outputs.x}",
        ),
        Mode::Namespaces,
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[2]), ("2 1", "stage"), "{text}");
    // Where a container's `/proc` cannot be mounted anew, the host's has more.
    assert!(lines[1].parse::<u32>().unwrap() < 10, "{text}");
}

/// A link of the sandbox is resolved in its own tree.
pub(crate) fn links_in_outputs() {
    let run = |link: &str| {
        let text = pipeline("links")
            .run("a", "echo 1 > ${outputs.x}")
            .run("b", &format!("echo 2 > /tmp/two; ln -s {link} ${{outputs.y}}"))
            .needs("x", "a");
        let lab = Lab::with_workers();
        let ran = exec(&lab, text, Mode::Namespaces);
        match ran.summary.exit_code() {
            0 => lab.text(ran.outputs("b")["y"]),
            _ => ran.error("b"),
        }
    };
    for (link, content) in [("${needs.x}", "1\n"), ("/tmp/two", "2\n"), ("../needs/x/x.txt", "1\n")] {
        assert_eq!(run(link), content, "{link}");
    }
    for link in [
        "/etc/passwd",
        "/stage/../etc/passwd",
        "../../../format",
        "/proc/self/exe",
    ] {
        let error = run(link);
        assert!(error.contains("the output `y` cannot be stored"), "{link}: {error}");
    }
}

pub(crate) fn files_of_the_host_are_refused(mode: Mode) {
    let secret = tempfile::tempdir().unwrap();
    let file = secret.path().join("key");
    std::fs::write(&file, "private").unwrap();
    let lab = Lab::with_workers();
    let home = lab.path("home");
    let (dir, file, home) = (secret.path().display(), file.display(), home.display());
    // A refusal is no failure of these lines.
    let run = format!(
        "set +e; exec 2> /dev/null
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
echo 4 | tee /dev/stderr /dev/null >> ${{outputs.x}}"
    );
    let text = pipeline("landlock")
        .run("z", "echo 1 > ${outputs.z}")
        .run("a", &run)
        .needs("z", "z");
    let ran = exec(&lab, text, mode);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    assert_eq!(lab.text(ran.outputs("a")["x"]), "1\n2\n1\n3\n4\n");
    assert_eq!(std::fs::read_to_string(secret.path().join("key")).unwrap(), "private");
}
