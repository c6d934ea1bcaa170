//! The resolution of valid files.

use crate::{GOOD, bad, good, options};
use runner_pipeline::{Pipeline, Work, load, load_with_sources, select};
use serde_json::{Value, json};

fn config<'a>(pipeline: &'a Pipeline, id: &str) -> &'a Value {
    let node = pipeline.nodes.iter().find(|node| node.id == id);
    match &node.unwrap_or_else(|| panic!("no node {id}")).work {
        Work::Kind { config, .. } => config,
        Work::Command(_) => panic!("{id} is a command"),
    }
}

fn ids(pipeline: &Pipeline) -> Vec<&str> {
    pipeline.nodes.iter().map(|node| node.id.as_str()).collect()
}

#[test]
fn a_pipeline_with_something_of_everything() {
    let pipeline = good(GOOD, &[]);
    assert_eq!(pipeline.name, "example");
    assert!(pipeline.base.is_absolute());
    assert_eq!(pipeline.params["lr"], json!(3e-4));
    insta::assert_snapshot!(runner_pipeline::graph::text(&pipeline), @r"
    market            ingest/simulated_market
    iv                greeks/implied_volatility                       <- chain=market.chain rates=market.rates
    greeks            greeks/analytic                                 <- chain=iv.chain
    technical         features/technical                              <- bars=market.bars
    volatility        features/volatility                             <- bars=market.bars
    env               env/options                                     <- chain=iv.chain features=technical.features features=volatility.features greeks=greeks.greeks
    train[seed=1]     train/ppo                                       <- env=env.env
    train[seed=2]     train/ppo                                       <- env=env.env
    train[seed=3]     train/ppo                                       <- env=env.env
    evaluate[seed=1]  evaluate/backtest                               <- env=env.env policy=train[seed=1].policy
    evaluate[seed=2]  evaluate/backtest                               <- env=env.env policy=train[seed=2].policy
    evaluate[seed=3]  evaluate/backtest                               <- env=env.env policy=train[seed=3].policy
    plot[seed=1]      run: python plot.py ${needs.metrics} ${output…  <- metrics=evaluate[seed=1].metrics
    plot[seed=2]      run: python plot.py ${needs.metrics} ${output…  <- metrics=evaluate[seed=2].metrics
    plot[seed=3]      run: python plot.py ${needs.metrics} ${output…  <- metrics=evaluate[seed=3].metrics
    ");
    assert_eq!(config(&pipeline, "market")["seed"], json!(7));
    assert_eq!(config(&pipeline, "train[seed=2]")["seed"], json!(2));
    assert_eq!(config(&pipeline, "train[seed=2]")["learning_rate"], json!(3e-4));
    let train = pipeline.nodes.iter().find(|node| node.id == "train[seed=3]").unwrap();
    assert_eq!(
        (train.resources.threads, train.resources.memory),
        (Some(2), Some(4 << 30))
    );
    assert_eq!((train.retries, train.timeout.unwrap().as_secs()), (1, 7200));
    assert_eq!((train.place.line, train.place.column), (38, 3));
    let plot = pipeline.nodes.last().unwrap();
    let Work::Command(command) = &plot.work else {
        panic!("plot is a command");
    };
    assert_eq!(
        command.command,
        "python plot.py ${needs.metrics} ${outputs.figure} ${HOME} $${params.seed} s7-3"
    );
    assert_eq!(command.outputs["figure"], "out/figure.png");
    assert_eq!(command.env["N"], "3");
    assert_eq!(command.secrets, ["TOKEN"]);
}

#[test]
fn parameters_and_configurations_can_be_set() {
    let pipeline = good(
        GOOD,
        &[
            "seed=9",
            "lr=1",
            "data=2019",
            "fast=true",
            "window={ from: a, to: b }",
            "train.with.learning_rate={linear: [1e-3, 0]}",
            "train.with.device=cpu",
            "env.with.slate.count=5",
            "env.with.slate.deltas[1]=0.75",
            "technical.with.periods=[3]",
        ],
    );
    assert_eq!(pipeline.params["seed"], json!(9));
    assert_eq!(pipeline.params["lr"], json!(1.0));
    assert_eq!(pipeline.params["data"], json!("2019"));
    assert_eq!(pipeline.params["fast"], json!(true));
    assert_eq!(pipeline.params["window"], json!({"from": "a", "to": "b"}));
    assert_eq!(config(&pipeline, "market")["seed"], json!(9));
    for seed in 1..=3 {
        let train = config(&pipeline, &format!("train[seed={seed}]"));
        assert_eq!(train["learning_rate"], json!({"linear": [1e-3, 0.0]}));
        assert_eq!(train["device"], json!("cpu"));
    }
    assert_eq!(
        config(&pipeline, "env")["slate"],
        json!({"count": 5, "deltas": [0.25, 0.75]})
    );
    assert_eq!(config(&pipeline, "technical")["periods"], json!([3]));
}

#[test]
fn the_environment_is_read() {
    let text = "version: 1\nname: a\nparams: { n: '${env.COUNT}' }\nstages:\n  m:\n    uses: \
        ingest/simulated_market\n    with: { days: '${params.n}', symbol: 'x${env.HOME}' }\n";
    let pipeline = good(text, &[]);
    assert_eq!(config(&pipeline, "m")["days"], json!(12));
    assert_eq!(config(&pipeline, "m")["symbol"], json!("x/home/x"));
}

const FAN: &str = r#"
version: 1
name: fan
stages:
  market:
    uses: ingest/simulated_market
    matrix: { days: [10, 20] }
    with: { days: "${matrix.days}" }
  iv: { uses: greeks/implied_volatility, needs: { chain: market } }
  greeks: { uses: greeks/analytic, needs: { chain: iv } }
  technical:
    uses: features/technical
    needs: { bars: market }
    matrix: { period: [5, 6] }
    with: { periods: ["${matrix.period}"] }
  env:
    uses: env/options
    needs: { chain: iv, greeks: greeks, features: "technical[period=*]" }
  train:
    uses: train/ppo
    needs: { env: env }
    matrix: { seed: [1, 2] }
    with: { seed: "${matrix.seed}", gamma: 0.9 }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: train } }
  one: { uses: evaluate/compare, needs: { metrics: "evaluate[days=10,seed=2].metrics" } }
  each: { uses: evaluate/compare, needs: { metrics: ["evaluate[seed=*].metrics", "train[days=20].metrics"] } }
  all: { uses: evaluate/compare, needs: { metrics: "evaluate[*].metrics" } }
  named: { uses: evaluate/study, needs: { ours: "evaluate[*]", tens: { collect: "evaluate[days=10]" } } }
"#;

#[test]
fn matrices_fan_out() {
    let pipeline = good(FAN, &[]);
    insta::assert_snapshot!(runner_pipeline::graph::text(&pipeline), @r"
    market[days=10]              ingest/simulated_market
    market[days=20]              ingest/simulated_market
    iv[days=10]                  greeks/implied_volatility  <- chain=market[days=10].chain
    iv[days=20]                  greeks/implied_volatility  <- chain=market[days=20].chain
    greeks[days=10]              greeks/analytic            <- chain=iv[days=10].chain
    greeks[days=20]              greeks/analytic            <- chain=iv[days=20].chain
    technical[days=10,period=5]  features/technical         <- bars=market[days=10].bars
    technical[days=10,period=6]  features/technical         <- bars=market[days=10].bars
    technical[days=20,period=5]  features/technical         <- bars=market[days=20].bars
    technical[days=20,period=6]  features/technical         <- bars=market[days=20].bars
    env[days=10]                 env/options                <- chain=iv[days=10].chain features=technical[days=10,period=5].features features=technical[days=10,period=6].features greeks=greeks[days=10].greeks
    env[days=20]                 env/options                <- chain=iv[days=20].chain features=technical[days=20,period=5].features features=technical[days=20,period=6].features greeks=greeks[days=20].greeks
    train[days=10,seed=1]        train/ppo                  <- env=env[days=10].env
    train[days=10,seed=2]        train/ppo                  <- env=env[days=10].env
    train[days=20,seed=1]        train/ppo                  <- env=env[days=20].env
    train[days=20,seed=2]        train/ppo                  <- env=env[days=20].env
    evaluate[days=10,seed=1]     evaluate/backtest          <- env=env[days=10].env policy=train[days=10,seed=1].policy
    evaluate[days=10,seed=2]     evaluate/backtest          <- env=env[days=10].env policy=train[days=10,seed=2].policy
    evaluate[days=20,seed=1]     evaluate/backtest          <- env=env[days=20].env policy=train[days=20,seed=1].policy
    evaluate[days=20,seed=2]     evaluate/backtest          <- env=env[days=20].env policy=train[days=20,seed=2].policy
    one                          evaluate/compare           <- metrics=evaluate[days=10,seed=2].metrics
    each[days=10,seed=1]         evaluate/compare           <- metrics=evaluate[days=10,seed=1].metrics metrics=evaluate[days=10,seed=2].metrics metrics=train[days=20,seed=1].metrics
    each[days=10,seed=2]         evaluate/compare           <- metrics=evaluate[days=10,seed=1].metrics metrics=evaluate[days=10,seed=2].metrics metrics=train[days=20,seed=2].metrics
    each[days=20,seed=1]         evaluate/compare           <- metrics=evaluate[days=20,seed=1].metrics metrics=evaluate[days=20,seed=2].metrics metrics=train[days=20,seed=1].metrics
    each[days=20,seed=2]         evaluate/compare           <- metrics=evaluate[days=20,seed=1].metrics metrics=evaluate[days=20,seed=2].metrics metrics=train[days=20,seed=2].metrics
    all                          evaluate/compare           <- metrics=evaluate[days=10,seed=1].metrics metrics=evaluate[days=10,seed=2].metrics metrics=evaluate[days=20,seed=1].metrics metrics=evaluate[days=20,seed=2].metrics
    named                        evaluate/study             <- ours=evaluate[days=10,seed=1].trajectory ours=evaluate[days=10,seed=2].trajectory ours=evaluate[days=20,seed=1].trajectory ours=evaluate[days=20,seed=2].trajectory tens=evaluate[days=10,seed=1].trajectory tens=evaluate[days=10,seed=2].trajectory
    ");
    assert_eq!(config(&pipeline, "market[days=20]")["days"], json!(20));
    for (index, node) in pipeline.nodes.iter().enumerate() {
        for input in node.needs.values().flatten() {
            assert!(input.node < index, "{} comes before what it needs", node.id);
        }
    }
}

#[test]
fn the_order_does_not_depend_on_that_of_the_file() {
    let head = "version: 1\nname: a\nstages:\n";
    let a = "  a: { uses: ingest/simulated_market }\n";
    let b = "  b: { uses: greeks/implied_volatility, needs: { chain: a } }\n";
    let c = "  c: { uses: greeks/analytic, needs: { chain: b } }\n";
    assert_eq!(ids(&good(&format!("{head}{a}{b}{c}"), &[])), ["a", "b", "c"]);
    assert_eq!(ids(&good(&format!("{head}{c}{b}{a}"), &[])), ["a", "b", "c"]);
}

#[test]
fn stages_are_selected_with_what_they_need() {
    let pipeline = good(GOOD, &[]);
    let chosen = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        select(&pipeline, &names).map(|nodes| {
            let ids: Vec<&str> = nodes
                .into_iter()
                .map(|index| pipeline.nodes[index].id.as_str())
                .collect();
            ids.join(" ")
        })
    };
    assert_eq!(chosen(&["greeks"]).unwrap(), "market iv greeks");
    assert_eq!(chosen(&["technical", "iv"]).unwrap(), "market iv technical");
    assert_eq!(
        chosen(&["train[seed=2]"]).unwrap(),
        "market iv greeks technical volatility env train[seed=2]"
    );
    assert_eq!(chosen(&[]).unwrap().split(' ').count(), pipeline.nodes.len());
    insta::assert_snapshot!(chosen(&["grek"]).unwrap_err(), @r"
    STAGE:1:1: the pipeline `example` has no stage `grek`
      |
    1 | grek
      | ^^^^
      = hint: did you mean `greeks`?
    ");
    insta::assert_snapshot!(chosen(&["train[seed=9]"]).unwrap_err(), @r"
    STAGE:1:1: the pipeline `example` has no stage `train[seed=9]`
      |
    1 | train[seed=9]
      | ^^^^^^^^^^^^^
      = hint: its points are `train[seed=1]`, `train[seed=2]`, `train[seed=3]`
    ");
    // As in `needs:`.
    assert_eq!(chosen(&["train[*]"]).unwrap(), chosen(&["train"]).unwrap());
    assert_eq!(
        chosen(&["train[seed=0x2]"]).unwrap(),
        chosen(&["train[seed=2]"]).unwrap()
    );
    let hint = |name: &str| {
        let error = chosen(&[name]).unwrap_err().to_string();
        let shown = error
            .lines()
            .filter(|line| line.contains("STAGE:1") || line.contains("hint"));
        shown.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let hints = ["train[sed=1]", "train.policy", "train[seed=2", "grek[seed=1]"].map(hint);
    insta::assert_snapshot!(hints.join("\n"), @r"
    STAGE:1:1: the stage `train` has no axis `sed` = hint: did you mean `seed`?
    STAGE:1:1: `train.policy` is an output, not a stage = hint: a stage runs as a whole: `train`
    STAGE:1:1: the `[` is not closed = hint: write STAGE, `STAGE[AXIS=VALUE]` or `STAGE[*]`
    STAGE:1:1: the pipeline `example` has no stage `grek[seed=1]` = hint: did you mean `greeks`?
    ");
}

#[test]
fn files_are_looked_for_beside_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("plot.py", "");
    write("lib/a.py", "");
    write("lib/deep/b.py", "");
    write("lib/c.txt", "");
    let text = "version: 1\nname: a\nstages:\n  x: { run: true, files: [lib/*.py, plot.py, lib] }\n"
        .replace("true", "\"true\"");
    write("p.yaml", &text);
    let file = folder.path().join("p.yaml");
    let pipeline = load(&file, &options(&[])).unwrap_or_else(|errors| panic!("{errors}"));
    let Work::Command(command) = &pipeline.nodes[0].work else {
        panic!("x is a command");
    };
    let names: Vec<&str> = command.files.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["lib/a.py", "lib/c.txt", "lib/deep/b.py", "plot.py"]);
    assert!(command.files.iter().all(|source| source.path.is_file()));

    // A list that is one parameter is the same list.
    let list = "[lib/*.py, plot.py, lib]";
    let parameter = text
        .replace(list, "\"${params.files}\"")
        .replace("stages:", &format!("params: {{ files: {list} }}\nstages:"));
    write("p.yaml", &parameter);
    let filled = load(&file, &options(&[])).unwrap_or_else(|errors| panic!("{errors}"));
    let Work::Command(filled) = &filled.nodes[0].work else {
        panic!("x is a command");
    };
    assert_eq!(filled.files, command.files);
    write("p.yaml", &parameter.replace("plot.py", "plott.py, nothing*"));
    let errors = load(&file, &options(&[])).map(|_| ()).unwrap_err();
    assert_eq!(errors.0.len(), 2, "{errors}");

    write("p.yaml", &text.replace("plot.py", "plott.py, nothing*"));
    let errors = load(&file, &options(&[])).map(|_| ()).unwrap_err();
    assert_eq!(errors.0.len(), 2, "{errors}");

    write(
        "q.yaml",
        "version: 1\nname: a\nstages:\n  x: { uses: ingest/option_chain, with: { path: none.csv } }\n",
    );
    let file = folder.path().join("q.yaml");
    assert!(load(&file, &options(&[])).is_ok());
    let errors = load_with_sources(&file, &options(&[])).map(|_| ()).unwrap_err();
    assert_eq!(errors.0[0].message, "`path` of `x`: no such file");
    assert_eq!((errors.0[0].place.line, errors.0[0].place.column), (4, 49));
}

#[test]
fn several_mistakes_are_found_at_once() {
    let text = GOOD
        .replace("periods: [5, 20]", "periods: [5, 1]")
        .replace("model: black", "model: blak")
        .replace("0.25, 0.5]", "0.25, 5]")
        .replace("retries: 1", "retries: -1");
    let errors = bad(&text, &["seeed=1"]);
    assert_eq!(errors.matches("hint:").count(), 5, "{errors}");
}

#[test]
fn an_output_has_the_type_that_it_names() {
    let text = "\
version: 1
name: typed
stages:
  a: { run: 'echo > ${outputs.x}', outputs: { x: { path: x.csv, type: features }, y: y.csv } }
";
    let pipeline = good(text, &[]);
    let Work::Command(command) = &pipeline.nodes[0].work else {
        panic!("not a command");
    };
    assert_eq!(format!("{:?}", command.types), r#"{"x": Features}"#);
    assert_eq!(command.outputs["x"], "x.csv");
    let provided = pipeline.nodes[0].provides.values();
    let types: Vec<&str> = provided.map(|provided| provided.ty.name()).collect();
    assert_eq!(types, ["features", "file"]);
}

#[test]
fn the_number_of_tried_policies_is_asked_of_the_registry() {
    let text = GOOD.replace("timesteps: 8192", "timesteps: ${policies.desk.tried}");
    assert_ne!(text, GOOD);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("p.yaml");
    std::fs::write(&file, &text).unwrap();
    for tried in [3, 4] {
        let options = runner_pipeline::LoadOptions {
            tried: Some(Box::new(move |name| {
                assert_eq!(name, "desk");
                Ok(tried)
            })),
            ..options(&[])
        };
        let pipeline = load_with_sources(&file, &options).unwrap_or_else(|errors| panic!("{errors}"));
        let is_tried =
            |work: &Work| matches!(work, Work::Kind { config, .. } if config["timesteps"] == tried);
        assert!(pipeline.nodes.iter().any(|node| is_tried(&node.work)));
    }
    let errors = load_with_sources(&file, &options(&[]))
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(
        errors.contains("the registry of policies is not known here"),
        "{errors}"
    );
}
