//! Completion, by real shells at a terminal of their own (`script` of util-linux).

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use runner_testkit::{Project, runner, wait_for};
use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

const PIPELINE: &str = "\
version: 1
name: sweep
params: { size: 64, speed: 1 }
profiles: { quick: { size: 16 } }
stages:
  env: { uses: env/lookup, with: { rows: '${params.size}', episode_length: 16 } }
  words: \
{ run: 'echo ${matrix.lr} ${matrix.seed} > ${outputs.text}', matrix: { lr: [1e-4, 1e-3], seed: [1, 2] }, outputs: { text: t.txt } }
";

fn main() -> ExitCode {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let test = |name: &'static str, shell: &'static str, test: fn()| {
        let missing = (!has(shell) || !has("script")).then_some("no such shell, or no `script`");
        trial(name, missing, test)
    };
    requirements::run(vec![
        trial("candidates_by_place", None, candidates_by_place),
        test("bash_completes", "bash", bash_completes),
        test("zsh_completes", "zsh", zsh_completes),
        test("fish_completes", "fish", fish_completes),
    ])
}

/// A project with a run of its pipeline.
fn project() -> Project {
    let project = Project::new(PIPELINE);
    let ran = project.exec(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text());
    assert_eq!(project.run(&["runs", "name", "latest", "baseline"]).code, 0);
    project
}

/// The candidates for the last of the words, as Bash is given them.
fn candidates(project: &Project, words: &[&str]) -> String {
    let mut command = project.command(&["--"]);
    command.args(words).env("RUNNER_COMPLETE", "bash");
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .collect::<Vec<_>>()
        .join(" ")
}

fn candidates_by_place() {
    let project = project();
    let id = project.run(&["runs", "--json"]).stdout;
    let id = serde_json::from_str::<serde_json::Value>(&id).unwrap()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let of = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        format!("{line}> {}", candidates(&project, &words).replace(&id, "ID"))
    };
    let lines = [
        "runner pl",
        "runner plan p",
        "runner exec p.yaml e",
        "runner exec p.yaml words[",
        "runner exec p.yaml words[lr=0.001",
        "runner exec p.yaml --set s",
        "runner exec p.yaml --set env.with.r",
        "runner exec p.yaml --profile ",
        "runner why p.yaml w",
        "runner stages env/l",
        "runner report l",
        "runner report 2",
        "runner logs b",
        "runner logs latest/e",
        "runner show baseline/words[lr=0.0001,seed=1].",
        "runner data layouts optionsd",
        "runner -C .. report nothing",
    ];
    insta::assert_snapshot!(lines.map(of).join("\n"), @r"
    runner pl> plan
    runner plan p> p.yaml
    runner exec p.yaml e> env
    runner exec p.yaml words[> words[lr=0.0001,seed=1] words[lr=0.0001,seed=2] words[lr=0.001,seed=1] words[lr=0.001,seed=2] words[*]
    runner exec p.yaml words[lr=0.001> words[lr=0.001,seed=1] words[lr=0.001,seed=2]
    runner exec p.yaml --set s> size= speed=
    runner exec p.yaml --set env.with.r> env.with.rows=
    runner exec p.yaml --profile > quick
    runner why p.yaml w> words
    runner stages env/l> env/lookup
    runner report l> latest
    runner report 2> ID
    runner logs b> baseline/
    runner logs latest/e> latest/env
    runner show baseline/words[lr=0.0001,seed=1].> baseline/words[lr=0.0001,seed=1].text
    runner data layouts optionsd> optionsdx
    runner -C .. report nothing>
    ");
    // Of a pipeline with errors, the names that are there.
    project.write("p.yaml", PIPELINE.replace("rows:", "rowz:"));
    assert_eq!(candidates(&project, &["runner", "plan", "p.yaml", "w"]), "words");
    project.write("p.yaml", "stages: [");
    assert_eq!(candidates(&project, &["runner", "plan", "p.yaml", "w"]), "");
}

/// A shell at a terminal.
struct Shell<'p> {
    project: &'p Project,
    child: Child,
    keys: ChildStdin,
    /// The number of lines that it has shown.
    shown: usize,
}

impl<'p> Shell<'p> {
    /// Starts a shell, and types commands that bind ^G to a print of the line to the file `lines`.
    fn new(project: &'p Project, command: &str, setup: &[&str]) -> Self {
        let programs = runner().parent().unwrap().to_owned();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut script = Command::new("script");
        project
            .at_home(&mut script)
            .args(["-q", "-e", "-c", command, "typescript"]);
        script
            .env("PATH", path)
            .env("HOME", project.path("."))
            .env("TERM", "vt100")
            .env_remove("INPUTRC");
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = script.spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let mut shell = Self {
            project,
            child,
            keys,
            shown: 0,
        };
        for line in setup {
            shell.press(&format!("{line}\n"));
        }
        shell.press("echo set up > ready\n");
        wait_for("the shell", || project.path("ready").exists());
        shell
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The line after a text and the tabulator key.
    fn complete(&mut self, text: &str) -> String {
        // ^G prints the line, ^E and ^U clear it.
        self.press(&format!("{text}\t\u{7}\u{5}\u{15}"));
        self.shown += 1;
        let file = self.project.path("lines");
        let lines = || std::fs::read_to_string(&file).unwrap_or_default();
        wait_for("the line", || lines().lines().count() >= self.shown);
        lines().lines().nth(self.shown - 1).unwrap().to_owned()
    }
}

impl Drop for Shell<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bash_completes() {
    let project = project();
    let setup = [
        "PS1='$ '",
        "show() { printf '%s\\n' \"$READLINE_LINE\" >> lines; }",
        "bind -x '\"\\C-g\": show'",
        "runner completions bash > completions; source ./completions",
    ];
    let mut shell = Shell::new(&project, "bash --norc --noprofile -i", &setup);
    let lines = [
        "runner comple",
        "runner exec p",
        "runner exec p.yaml wo",
        "runner exec p.yaml words[lr=0.001,seed=1",
        "runner exec p.yaml 'words[lr=0.001,seed=1",
        "runner exec p.yaml --set siz",
        "runner exec p.yaml --set=siz",
        "runner exec p.yaml --set env.w",
        "runner exec p.yaml --profile=q",
        "runner exec p.yaml --set size=32 --force en",
        "runner show base",
        "runner logs latest/en",
        "runner stages env/look",
    ];
    let shown = lines.map(|line| shell.complete(line) + "|");
    insta::assert_snapshot!(shown.join("\n"), @r"
    runner completions |
    runner exec p.yaml |
    runner exec p.yaml words |
    runner exec p.yaml words[lr=0.001,seed=1] |
    runner exec p.yaml 'words[lr=0.001,seed=1]' |
    runner exec p.yaml --set size=|
    runner exec p.yaml --set=size=|
    runner exec p.yaml --set env.with.|
    runner exec p.yaml --profile=quick |
    runner exec p.yaml --set size=32 --force env |
    runner show baseline/|
    runner logs latest/env |
    runner stages env/lookup |
    ");
}

fn zsh_completes() {
    let project = project();
    let setup = [
        "show() { print -r -- \"$BUFFER\" >> lines }; zle -N show; bindkey -e; bindkey '^G' show",
        "autoload -U compinit; compinit -u -D",
        "runner completions zsh > completions; source ./completions",
    ];
    let mut shell = Shell::new(&project, "zsh -f -i", &setup);
    let lines = [
        "runner exec p.yaml wo",
        "runner exec p.yaml --set siz",
        "runner exec p.yaml --profile q",
        "runner logs latest/en",
        "runner stages env/look",
    ];
    let shown = lines.map(|line| shell.complete(line) + "|");
    insta::assert_snapshot!(shown.join("\n"), @r"
    runner exec p.yaml words |
    runner exec p.yaml --set size= |
    runner exec p.yaml --profile quick |
    runner logs latest/env |
    runner stages env/lookup |
    ");
}

fn fish_completes() {
    let project = project();
    let setup = [
        "bind \\cg 'commandline >> lines'",
        "runner completions fish > completions; source ./completions",
    ];
    let mut shell = Shell::new(&project, "fish --private --no-config -i", &setup);
    let lines = [
        "runner exec p.yaml wo",
        "runner exec p.yaml --set siz",
        "runner exec p.yaml --profile q",
        "runner logs latest/en",
        "runner stages env/look",
    ];
    let shown = lines.map(|line| shell.complete(line) + "|");
    insta::assert_snapshot!(shown.join("\n"), @r"
    runner exec p.yaml words |
    runner exec p.yaml --set size=|
    runner exec p.yaml --profile quick |
    runner logs latest/env |
    runner stages env/lookup |
    ");
}
