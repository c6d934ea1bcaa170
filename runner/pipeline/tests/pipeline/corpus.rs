//! Malformed files: `tests/bad/*.yaml`, whose first line says what is expected, and files generated from a
//! good one.

use crate::{GOOD, options, read};
use runner_pipeline::{PipelineErrors, load};
use std::path::Path;

/// Asserts the properties of every error.
fn check(errors: &PipelineErrors, file: &str, lines: usize) {
    assert!(!errors.0.is_empty(), "{file}");
    for error in &errors.0 {
        let place = error.place;
        assert!(place.line >= 1 && place.column >= 1, "{file}: no place in {error}");
        assert!(place.line <= lines.max(1), "{file}: line {} of {lines}", place.line);
        assert!(!error.message.is_empty(), "{file}");
        assert!(!error.message.starts_with(char::is_uppercase), "{file}: {error}");
        let hint = error.hint.as_deref().unwrap_or_default();
        assert!(!hint.is_empty(), "{file}: no hint in {error}");
        let shown = error.to_string();
        assert!(shown.contains("hint: "), "{file}");
        assert!(shown.contains(&format!(":{}:{}: ", place.line, place.column)), "{file}");
    }
}

/// `UPDATE=1 cargo test` writes the first lines; a plain run fails where they are not true.
#[test]
fn bad_files() {
    let mut paths: Vec<_> = std::fs::read_dir("tests/bad")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() > 100, "{} files", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Err(errors) = load(&path, &options(&[])) else {
            panic!("{name} is a valid pipeline");
        };
        check(&errors, &name, text.lines().count());
        let first = &errors.0[0];
        let found = format!("# {}:{} {}", first.place.line, first.place.column, first.message);
        let (expected, rest) = text.split_once('\n').unwrap();
        if expected != found {
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, format!("{found}\n{rest}")).unwrap();
            } else {
                wrong.push(format!("{name}\n  expected {expected}\n  found    {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_that_are_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut huge = GOOD.as_bytes().to_vec();
    huge.resize(17 << 20, b'#');
    let cases: [(&str, Vec<u8>); 7] = [
        ("empty", Vec::new()),
        ("latin-1", b"version: 1\nname: b\xe9te\n".to_vec()),
        ("utf-16", b"\xff\xfev\0e\0r\0".to_vec()),
        ("nul", b"version: 1\nname: a\0b\n".to_vec()),
        ("escape", b"version: 1\nname: \x1b[31mred\n".to_vec()),
        ("huge", huge),
        ("binary", (0..=255).cycle().take(5000).collect()),
    ];
    let mut text = String::new();
    for (name, bytes) in cases {
        let path = folder.path().join(format!("{name}.yaml"));
        std::fs::write(&path, &bytes).unwrap();
        let errors = load(&path, &options(&[])).map(|_| ()).unwrap_err();
        check(&errors, name, 5000);
        let error = &errors.0[0];
        text.push_str(&format!(
            "{name}: {}:{} {}\n",
            error.place.line, error.place.column, error.message
        ));
    }
    for path in [folder.path().join("none.yaml"), folder.path().to_owned()] {
        let errors = load(&path, &options(&[])).map(|_| ()).unwrap_err();
        check(&errors, "none", 1);
        text.push_str(&format!("{}\n", errors.0[0].message));
    }
    insta::assert_snapshot!(text, @r"
    empty: 1:1 the file is empty
    latin-1: 2:8 byte 0xe9 is not UTF-8
    utf-16: 1:1 the file is UTF-16, not UTF-8
    nul: 2:8 control character \u{0} in the file
    escape: 2:7 control character \u{1b} in the file
    huge: 1:1 the file is longer than 16 MiB
    binary: 2:118 byte 0x80 is not UTF-8
    cannot read the pipeline file: No such file or directory (os error 2)
    this is a directory, not a pipeline file
    ");
    // A byte order mark is no mistake.
    let path = folder.path().join("mark.yaml");
    std::fs::write(&path, format!("\u{feff}{GOOD}").replace('\n', "\r\n")).unwrap();
    load(&path, &options(&[])).unwrap_or_else(|errors| panic!("{errors}"));
}

/// Every key of the good file misspelt, every line's indentation changed, every `:` dropped.
#[test]
fn generated_files() {
    let lines: Vec<&str> = GOOD.lines().collect();
    let mut count = 0;
    let mut try_one = |number: usize, line: &str| {
        let mut changed = lines.clone();
        changed[number] = line;
        let text = changed.join("\n");
        if let Err(errors) = read(&text, &[]) {
            check(&errors, line, lines.len() + 1);
            count += 1;
        }
    };
    for (number, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        if let Some((key, rest)) = trimmed.split_once(':').filter(|_| !trimmed.starts_with('#')) {
            try_one(number, &format!("{indent}{key}x:{rest}"));
            try_one(number, &format!("{indent}{key}{rest}"));
            try_one(number, &format!("{indent}{key}:"));
            try_one(number, &format!("{indent}{key}: [{{"));
            try_one(number, &format!("{indent}{key}: !x 5"));
            try_one(number, &format!("{indent}{key}: {{ a: [1, null], b: ${{x}} }}"));
        }
        try_one(number, &format!("   {line}"));
        try_one(number, &format!("\t{line}"));
        try_one(number, "");
    }
    assert!(count > 200, "{count} mistakes");
}

#[test]
fn bad_arguments() {
    let mut text = String::new();
    for set in [
        "",
        "seed",
        "=5",
        "sed=5",
        "seed=abc",
        "seed=1.5",
        "seed=",
        "lr=fast",
        "fast=yes",
        "window=5",
        "window={a: }}",
        "train=5",
        "trian.with.gamma=1",
        "train.gamma=1",
        "train.with=1",
        "train.with.=1",
        "train.with.gama=1",
        "train.with.gamma=high",
        "train.with.gamma=[1",
        "train.with.gamma.x=1",
        "train.with.layers[5]=1",
        "train.with.timesteps=0",
        "env.with.slate.cuont=1",
        "env.with.slate.deltas=[0.5, 7]",
        "plot.with.x=1",
        "train.with.seed=.nan",
        "seed 5",
        "seed: 5",
        "SEED=5",
        "seeds=5",
        "params.seed=5",
        "params.seeds=5",
        "param.seed=5",
        "parameters.seed=5",
        "Params.Seed=5",
        "${params.seed}=5",
        "gamma=1",
        "Train.gamma=1",
        "train/gamma=1",
        "train.config.gamma=1",
        "train.wiht.gamma=1",
        "train.With.gamma=1",
        "stages.train.with.gamma=1",
        "stages.train.gamma=1",
        "stage.trian.gamma=1",
        "train[seed=1].with.gamma=1",
        "train.env=env",
        "train.input.env=env",
        "train.needs.env.x=1",
    ] {
        let errors = read(GOOD, &[set]).map(|_| ()).unwrap_err();
        check(&errors, set, 1);
        for error in &errors.0 {
            assert_eq!(error.file, Path::new("--set"), "{error}");
        }
        let error = &errors.0[0];
        text.push_str(&format!(
            "{set:30} {}: {} | {}\n",
            error.place.column,
            error.message,
            error.hint.as_deref().unwrap()
        ));
    }
    insta::assert_snapshot!(text, @r#"
                                   1: `` sets nothing | write `--set NAME=VALUE` or `--set STAGE.with.KEY=VALUE`
    seed                           1: `seed` sets nothing | write `--set seed=VALUE`
    =5                             1: the pipeline has no parameter `` | the parameters are `seed`, `lr`, `data`, `fast`, `window`
    sed=5                          1: the pipeline has no parameter `sed` | did you mean `seed`?
    seed=abc                       6: `seed`: the string "abc" does not fit: it replaces the number 7 | give an integer
    seed=1.5                       6: `seed`: the number 1.5 does not fit: it replaces the number 7 | give an integer
    seed=                          6: `seed`: null does not fit: it replaces the number 7 | give an integer
    lr=fast                        4: `lr`: the string "fast" does not fit: it replaces the number 0.0003 | give a number
    fast=yes                       6: `fast`: the string "yes" does not fit: it replaces `false` | give `true` or `false`
    window=5                       8: `window`: the number 5 does not fit: it replaces a map | give a map: `{ key: value }`
    window={a: }}                  8: `window`: this is not valid YAML: misplaced bracket | quote values that hold `: `, ` #` or begin with one of `{ [ & * ! | > % @`, and keep the same indentation for the keys of a map
    train=5                        1: the pipeline has no parameter `train` | `train` is a stage: write `train.with.KEY`
    trian.with.gamma=1             1: the pipeline has no stage `trian` | write `--set train.with.gamma=1`
    train.gamma=1                  1: `train.gamma` cannot be set | write `--set train.with.gamma=1`
    train.with=1                   1: `train.with` cannot be set | write `train.with.KEY`, or `train.needs.PORT`
    train.with.=1                  1: `train.with.` cannot be set | write `train.with.KEY`, or `train.needs.PORT`
    train.with.gama=1              1: unknown key `gama` in the configuration of `train` (train/ppo) | did you mean `gamma`?
    train.with.gamma=high          18: `gamma` of `train` is the string "high", not a number | write a number, such as 10 or 3e-4
    train.with.gamma=[1            18: `with.gamma`: this `[` is not closed | close it
    train.with.gamma.x=1           1: `gamma` of `train` is a map, not a number | see `runner stages train/ppo` for its configuration
    train.with.layers[5]=1         1: `with.layers[5]` cannot be set: `[5]` would be an item of null | set the whole value, or see `runner stages KIND` for the configuration
    train.with.timesteps=0         22: `timesteps` of `train`: must be at least 1 | see `runner stages train/ppo` for its configuration
    env.with.slate.cuont=1         1: unknown key `cuont` in the configuration of `env` (env/options) | did you mean `count`?
    env.with.slate.deltas=[0.5, 7] 29: `slate.deltas[1]` of `env`: must lie between 0 and 1 | see `runner stages env/options` for its configuration
    plot.with.x=1                  1: `plot` is a `run:` stage and has no `with:` | let its command read a parameter, and set that
    train.with.seed=.nan           17: `with.seed`: `.nan` is not a finite number | write a number, or put it in quotes if it is a string
    seed 5                         1: `seed 5` sets nothing | write `--set seed=5`
    seed: 5                        1: `seed: 5` sets nothing | write `--set seed=5`
    SEED=5                         1: the pipeline has no parameter `SEED` | did you mean `seed`?
    seeds=5                        1: the pipeline has no parameter `seeds` | did you mean `seed`?
    params.seed=5                  1: the pipeline has no stage `params` | write `--set seed=5`
    params.seeds=5                 1: the pipeline has no stage `params` | write `--set seed=5`
    param.seed=5                   1: the pipeline has no stage `param` | write `--set seed=5`
    parameters.seed=5              1: the pipeline has no stage `parameters` | write `--set seed=5`
    Params.Seed=5                  1: the pipeline has no stage `Params` | write `--set seed=5`
    ${params.seed}=5               1: the pipeline has no stage `${params` | write `--set seed=5`
    gamma=1                        1: the pipeline has no parameter `gamma` | the parameters are `seed`, `lr`, `data`, `fast`, `window`
    Train.gamma=1                  1: the pipeline has no stage `Train` | write `--set train.with.gamma=1`
    train/gamma=1                  1: the pipeline has no parameter `train/gamma` | write `--set train.with.gamma=1`
    train.config.gamma=1           1: `train.config.gamma` cannot be set | write `--set train.with.gamma=1`
    train.wiht.gamma=1             1: `train.wiht.gamma` cannot be set | write `--set train.with.gamma=1`
    train.With.gamma=1             1: `train.With.gamma` cannot be set | write `--set train.with.gamma=1`
    stages.train.with.gamma=1      1: the pipeline has no stage `stages` | write `--set train.with.gamma=1`
    stages.train.gamma=1           1: the pipeline has no stage `stages` | write `--set train.with.gamma=1`
    stage.trian.gamma=1            1: the pipeline has no stage `stage` | write `--set train.with.gamma=1`
    train[seed=1].with.gamma=1     1: the pipeline has no stage `train[seed=1]` | write `--set train.with.gamma=1`
    train.env=env                  1: `train.env` cannot be set | write `--set train.needs.env=env`
    train.input.env=env            1: `train.input.env` cannot be set | write `--set train.needs.env=env`
    train.needs.env.x=1            1: `train.needs.env.x` cannot be set | write `train.with.KEY`, or `train.needs.PORT`
    "#);
}
