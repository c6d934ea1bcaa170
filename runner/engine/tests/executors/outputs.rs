//! Symbolic links, pipes, sockets and devices where files are expected: nothing outside a stage's directory
//! is read, and nothing blocks for ever.

use crate::{Lab, Setup, output, program};
use cache::BlobRef;

tests![
    only_files_of_its_own_are_taken_in,
    a_socket_is_not_a_file,
    a_device_is_not_a_file,
    links_within_the_directory_are_followed,
    another_name_of_a_file_is_copied,
    a_missing_output_is_an_error,
    outputs_of_one_bytes_are_one_artifact,
];

/// The error of a command that writes `out`, without the directories that change from run to run; `OUTSIDE`
/// is a directory beside the pipeline.
fn refused(command: &str) -> String {
    let lab = Lab::with_workers();
    lab.write("outside/private.txt", "private\n");
    let outside = lab.path("outside").canonicalize().unwrap().display().to_string();
    // An isolated program does not see what is outside.
    let ran = lab.run_with(
        program(&command.replace("OUTSIDE", &outside)).output("x", "out"),
        Setup::on_host(),
    );
    assert_eq!(ran.summary.exit_code(), 1, "{command}: {}", ran.log);
    assert!(
        !lab.store().has(BlobRef::of(b"private\n")),
        "{command}: it is in the store"
    );
    let tmp: Vec<_> = std::fs::read_dir(lab.path("home/tmp")).unwrap().collect();
    assert!(tmp.is_empty(), "{command}: left {tmp:?}");
    let error = ran.error("a").replace(&outside, "OUTSIDE");
    let error = error.lines().next().unwrap();
    let (_, rest) = error.split_once("the output `x` cannot be stored: `").unwrap();
    let (path, what) = rest.split_once("` ").unwrap();
    let path = path.split_once("/work/").unwrap().1;
    format!("{path} {}", what.split(" (os error").next().unwrap_or(what))
}

fn only_files_of_its_own_are_taken_in() {
    let commands = [
        "ln -s OUTSIDE/private.txt ${outputs.x}",
        "ln -s OUTSIDE ${outputs.x}",
        "ln -s ../../../../../../../../../../../..OUTSIDE/private.txt ${outputs.x}",
        "mkdir ${outputs.x}; ln -s OUTSIDE/private.txt ${outputs.x}/link",
        "mkdir ${outputs.x}; ln -s OUTSIDE ${outputs.x}/link",
        "mkdir ${outputs.x}; ln -s OUTSIDE/private.txt ../first; ln -s ../../first ${outputs.x}/second",
        "mkdir ${outputs.x}; ln -s nothing ${outputs.x}/link",
        "mkdir ${outputs.x}; ln -s link ${outputs.x}/link",
        "mkfifo ${outputs.x}",
        "mkdir ${outputs.x}; mkfifo ${outputs.x}/pipe",
        "mkdir ${outputs.x}; ln -s /dev/zero ${outputs.x}/link",
        "mkdir ${outputs.x}; touch ${outputs.x}/\"$(printf 'a\\nb')\"",
        "mkdir ${outputs.x}; touch ${outputs.x}/\"$(printf 'a\\377b')\"",
        "mkdir ${outputs.x}; touch ${outputs.x}/'a\\b' ",
    ];
    let said: Vec<String> = commands.iter().map(|command| refused(command)).collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    out links to `OUTSIDE/private.txt`, outside the stage's directory
    out links to `OUTSIDE`, outside the stage's directory
    out links to `OUTSIDE/private.txt`, outside the stage's directory
    out/link links to `OUTSIDE/private.txt`, outside the stage's directory
    out/link links to `OUTSIDE`, outside the stage's directory
    out/second links to `OUTSIDE/private.txt`, outside the stage's directory
    out/link cannot be read: No such file or directory
    out/link cannot be read: Too many levels of symbolic links
    out is a named pipe, not a file
    out/pipe is a named pipe, not a file
    out/link links to `/dev/zero`, outside the stage's directory
    out/a\nb has a control character
    out/a�b has a name that is not UTF-8
    out/a\\b has a backslash; the parts of a path are separated by `/`
    ");
}

/// Only some systems let a program create a socket.
fn a_socket_is_not_a_file() {
    let lab = Lab::with_workers();
    let socket = lab.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let move_it = format!("mv {} ${{outputs.x}}", socket.display());
    let error = lab.run_with(program(&move_it), Setup::on_host()).error("a");
    assert!(error.contains("is a socket, not a file"), "{error}");
}

/// Where no device can be made, the output is missing.
fn a_device_is_not_a_file() {
    let ran = Lab::with_workers().run_with(program("mknod ${outputs.x} c 1 5 || exit 0"), Setup::default());
    let error = ran.error("a");
    assert!(
        error.contains("is a device, not a file") || error.contains("is missing"),
        "{error}"
    );
}

fn links_within_the_directory_are_followed() {
    let text = program(
        "mkdir ${outputs.x}; echo model > ${outputs.x}/model-3; ln -s model-3 ${outputs.x}/latest; echo b > b; \
         ln -s ../b ${outputs.x}/b",
    );
    assert_eq!(output(&Lab::with_workers(), text, "a"), "b\nmodel\nmodel\n");
}

/// Another name of a file elsewhere gives its bytes as they were; what happens to the file later is its own
/// affair.
fn another_name_of_a_file_is_copied() {
    let lab = Lab::with_workers();
    lab.write("private.txt", "private\n");
    let file = lab.path("private.txt").canonicalize().unwrap();
    let text = format!(
        "ln {0} ${{outputs.x}} 2>/dev/null || cp {0} ${{outputs.x}}",
        file.display()
    );
    let ran = lab.run_with(program(&text), Setup::on_host());
    std::fs::write(&file, "changed\n").unwrap();
    assert_eq!(lab.text(ran.outputs("a")["x"]), "private\n");
}

fn a_missing_output_is_an_error() {
    let ran = Lab::with_workers().run_with(program("echo hi > x.tx").output("x", "x.txt"), Setup::default());
    insta::assert_snapshot!(ran.error("a"), @"
    the command succeeded, but its output `x` (`x.txt`) is missing
    hint: the command must write it at ${outputs.x}
    ");
    assert_eq!(ran.summary.exit_code(), 1);
}

fn outputs_of_one_bytes_are_one_artifact() {
    let text = program("echo 1 > ${outputs.x}; echo 1 > ${outputs.y}").output("y", "sub/x.txt");
    let ran = Lab::with_workers().run_with(text, Setup::default());
    let outputs = ran.outputs("a");
    assert_eq!(outputs["x"], outputs["y"], "{}", ran.log);
}
