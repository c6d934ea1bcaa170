//! Stage kinds of installed packages: what a stage of one resolves to, and what is said where a package is
//! wrong. What a package says of its kinds is given here; the command line's tests ask real packages.

use crate::options;
use runner_pipeline::{
    Command, LoadOptions, Node, Packages, Pipeline, Work, describe_kind, graph, load_with_sources, resolved,
    schema,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory with a virtual environment in which packages are installed.
struct Machine {
    dir: tempfile::TempDir,
    /// The package's description of its kinds.
    says: Value,
    /// The number of packages that were asked.
    asked: Arc<AtomicUsize>,
}

const SITE: &str = "env/lib/python3.11/site-packages";

const MARKET: &str = "  market: { uses: ingest/simulated_market }\n";

fn said() -> Value {
    let surface = json!({
        "name": "vol_surface", "version": 3, "about": "A surface of implied volatility.",
        "call": "acme_runner.surface:vol_surface",
        "inputs": [
            { "name": "chain", "type": "option_chain", "optional": false, "list": false, "doc": "Quotes." },
            { "name": "rates", "type": "rates", "optional": true, "list": false, "doc": "" },
        ],
        "outputs": [{ "name": "features", "type": "features", "doc": "" }],
        "schema": {
            "type": "object",
            "required": ["model"],
            "properties": {
                "window": { "type": "integer", "default": 20, "description": "Days.", "minimum": 1 },
                "model": { "enum": ["svi", "sabr"] },
            },
        },
    });
    json!({ "kinds": [surface] })
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            dir: tempfile::tempdir().unwrap(),
            says: said(),
            asked: Arc::default(),
        };
        machine.file("env/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
        machine.file("env/bin/python3", "#!/bin/sh\n");
        let program = fs::Permissions::from_mode(0o755);
        fs::set_permissions(machine.path("env/bin/python3"), program).unwrap();
        machine.file(&format!("{SITE}/pyarrow-21.0.0.dist-info/METADATA"), "");
        machine.package("acme_runner-1.2", "acme = acme_runner:stages");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }

    /// Installs a package with an entry point.
    fn package(&self, record: &str, point: &str) {
        let module = record.split('-').next().unwrap();
        let files = [format!("{module}/__init__.py"), format!("{module}/surface.py")];
        for file in &files {
            self.file(&format!("{SITE}/{file}"), "");
        }
        let record = format!("{SITE}/{record}.dist-info");
        self.file(
            &format!("{record}/entry_points.txt"),
            &format!("[runner.stages]\n{point}\n"),
        );
        self.file(
            &format!("{record}/RECORD"),
            &files.map(|file| file + ",sha256=a,1\n").concat(),
        );
    }

    fn options(&self, set: &[&str]) -> LoadOptions {
        let (says, asked) = (self.says.to_string(), self.asked.clone());
        let mut options = LoadOptions {
            describe: Some(Box::new(move |_: &Node| {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok(says.clone().into_bytes())
            })),
            ..options(set)
        };
        let path = self.path("env/bin").display().to_string();
        options.env.insert("PATH".to_owned(), path);
        options
    }

    fn load(&self, lines: &str, set: &[&str]) -> Result<Pipeline, String> {
        let text = format!("version: 1\nname: a\nstages:\n{MARKET}  x:\n{lines}");
        self.file("p.yaml", &text);
        load_with_sources(&self.path("p.yaml"), &self.options(set)).map_err(|errors| {
            let errors = errors.0.iter().map(|error| {
                let hint = error.hint.as_deref().unwrap_or_default();
                let place = error.place;
                format!("{}:{} {} | {hint}", place.line, place.column, error.message)
            });
            let text: Vec<String> = errors.collect();
            let dir = fs::canonicalize(self.dir.path()).unwrap().display().to_string();
            text.join("\n").replace(&dir, "DIR")
        })
    }
}

impl Machine {
    /// The errors of a stage.
    fn wrong(&self, lines: &str) -> String {
        self.load(lines, &[]).map(|_| ()).unwrap_err()
    }
}

const STAGE: &str = "    uses: acme/vol_surface
    needs: { chain: market.chain }
    with: { model: svi }
";

fn command(pipeline: &Pipeline) -> &Command {
    match &pipeline.nodes[1].work {
        Work::Command(command) => command,
        Work::Kind { .. } => panic!("a stage kind"),
    }
}

#[test]
fn a_stage_of_a_package_is_a_call_of_its_function() {
    let machine = Machine::new();
    let stage = STAGE.to_owned() + "    seed: 4\n    env: { A: b }\n    retries: 2\n";
    let pipeline = machine.load(&stage, &["x.with.window=5"]).unwrap();
    let command = command(&pipeline);
    let call = command.python.as_ref().unwrap();
    assert_eq!(call.call, "acme_runner.surface:vol_surface");
    assert_eq!(json!(call.with), json!({ "model": "svi", "window": 5 }));
    assert_eq!(call.seed, 4);
    assert_eq!(call.packages["acme-runner"], "1.2");
    assert_eq!(json!(call.kind), json!({ "name": "acme/vol_surface", "version": 3 }));
    assert_eq!(json!(command.outputs), json!({ "features": "outputs/features" }));
    assert_eq!(json!(command.types), json!({ "features": "features" }));
    assert_eq!(json!(command.env), json!({ "A": "b" }));
    let files: Vec<&str> = command.tools[0].sources.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(files, ["acme_runner/__init__.py", "acme_runner/surface.py"]);
    assert_eq!(pipeline.nodes[1].retries, 2);
    assert!(graph::text(&pipeline).contains("acme/vol_surface"));
    // A pipeline in one file is the same pipeline.
    let text = resolved(&machine.path("p.yaml"), &machine.options(&["x.with.window=5"])).unwrap();
    machine.file("again.yaml", &text);
    let again = load_with_sources(&machine.path("again.yaml"), &machine.options(&[])).unwrap();
    assert_eq!(self::command(&again).key_config(), command.key_config());
}

#[test]
fn mistakes_in_a_stage_of_a_package_are_found_before_it_runs() {
    let machine = Machine::new();
    let wrong = |lines: &str| machine.wrong(lines);
    let with = |with: &str| wrong(&STAGE.replace("{ model: svi }", with));
    let found = [
        with("{ model: svi, windw: 3 }"),
        with("{ model: svi, window: x }"),
        with("{ model: svi, window: 0 }"),
        with("{ model: svj }"),
        with("{ window: 3 }"),
        wrong(&STAGE.replace("chain: market.chain", "chain: market.bars")),
        wrong(&STAGE.replace("chain: market.chain", "chian: market.chain")),
        wrong(&STAGE.replace("    needs: { chain: market.chain }\n", "")),
        wrong(&STAGE.replace("vol_surface", "vol_surfaces")),
        wrong(&(STAGE.to_owned() + "    outputs: { a: features }\n")),
        wrong(&(STAGE.to_owned() + "    call: a:b\n")),
        wrong(&(STAGE.to_owned() + "    matrix: { p: [env] }\n    python: ${matrix.p}\n")),
        wrong(&STAGE.replace("acme/", "acne/")),
        wrong(&(STAGE.replace("acme/", "acne/") + "    python: ./none\n")),
        wrong("    uses: trian/ppo\n"),
    ]
    .join("\n");
    insta::assert_snapshot!(found);
}

#[test]
fn nothing_is_asked_of_packages_whose_prefix_no_stage_names() {
    let machine = Machine::new();
    machine.package("evil-1", "env = evil:stages");
    machine.wrong("    uses: greeks/analytic\n");
    machine.load("    run: echo 1\n    outputs: {}\n", &[]).unwrap();
    machine.wrong("    uses: env/nothing\n");
    assert_eq!(machine.asked.load(Ordering::Relaxed), 0);
    machine.load(STAGE, &[]).unwrap();
    assert_eq!(machine.asked.load(Ordering::Relaxed), 1);
}

/// Each is an error that names the package, at the stage that names its prefix; others do not notice.
#[test]
fn a_wrong_entry_point_is_refused_before_its_package_is_asked() {
    let mut found = Vec::new();
    for (point, uses) in [
        ("evil = os:system", "evil/x"),
        ("evil = evil", "evil/x"),
        ("evil = evil:a b", "evil/x"),
        ("evil = evil:stages [extra]", "evil/x"),
        ("evil = ../evil:stages", "evil/x"),
        ("Evil = evil:stages", "Evil/x"),
        ("../x = evil:stages", "../x/y"),
        ("acme = evil:stages", "acme/vol_surface"),
    ] {
        let machine = Machine::new();
        machine.package("evil-6.6", point);
        let error = machine
            .load(&format!("    uses: {uses}\n"), &[])
            .map(|_| ())
            .unwrap_err();
        found.push(format!("{point}\n  {error}"));
        if !uses.starts_with("acme") {
            machine.load(STAGE, &[]).unwrap();
        }
    }
    let machine = Machine::new();
    machine.package("evil-6.6", "evil = evil:stages");
    fs::remove_file(machine.path(&format!("{SITE}/evil-6.6.dist-info/RECORD"))).unwrap();
    let error = machine.wrong("    uses: evil/x\n");
    found.push(format!("no RECORD\n  {error}"));
    insta::assert_snapshot!(found.join("\n"));

    // The entry points of all packages are shown with what is wrong with them.
    machine.package("bad-1", "env = bad:stages");
    let options = machine.options(&[]);
    let prefixes: Vec<String> = Packages::new(&options)
        .prefixes()
        .into_iter()
        .map(|prefix| format!("{} {} {:?}", prefix.name, prefix.package, prefix.wrong.is_some()))
        .collect();
    assert_eq!(
        prefixes,
        [
            "acme `acme-runner` 1.2 false",
            "env `bad` 1 true",
            "evil `evil` 6.6 false"
        ]
    );
}

#[test]
fn what_a_package_says_of_its_kinds_is_not_trusted() {
    let mut found = Vec::new();
    let mut try_with = |change: &dyn Fn(&mut Value)| {
        let mut machine = Machine::new();
        change(&mut machine.says);
        let error = machine.wrong(STAGE);
        found.push(error.split(" | ").next().unwrap().chars().take(220).collect::<String>());
    };
    try_with(&|says| *says = json!("x"));
    try_with(&|says| says["kinds"][0]["name"] = json!("../../env/x"));
    try_with(&|says| says["kinds"][0]["name"] = json!("a\u{1b}[2J"));
    try_with(&|says| says["kinds"][0]["call"] = json!("acme:f; import os"));
    try_with(&|says| says["kinds"][0]["inputs"][0]["type"] = json!("chain"));
    try_with(&|says| says["kinds"][0]["outputs"][0]["type"] = json!("trajectory"));
    try_with(&|says| says["kinds"][0]["outputs"][0]["name"] = json!("../up"));
    try_with(&|says| says["kinds"][0]["outputs"] = json!([]));
    try_with(&|says| says["kinds"][0]["inputs"][1]["name"] = json!("settings"));
    try_with(&|says| says["kinds"][0]["schema"] = json!({ "type": "object", "allOf": [{ "$ref": "#" }] }));
    try_with(&|says| says["kinds"][0]["extra"] = json!(1));
    try_with(&|says| says["kinds"] = json!([says["kinds"][0], says["kinds"][0]]));
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn kinds_of_packages_are_described_as_others_are() {
    let machine = Machine::new();
    let options = machine.options(&[]);
    let packages = Packages::new(&options);
    let kinds = packages.kinds("acme").unwrap();
    insta::assert_snapshot!(describe_kind(kinds[0].as_ref()));
    let schema = schema(&[kinds[0].as_ref()]);
    let rules = schema["definitions"]["stage"]["allOf"].to_string();
    assert!(rules.contains(r#""const":"acme/vol_surface""#), "{rules}");
    let window = &schema["definitions"]["acme/vol_surface"]["properties"]["window"];
    assert_eq!(
        (&window["default"], &window["description"]),
        (&json!(20), &json!("Days."))
    );
}
