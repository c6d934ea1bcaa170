//! Chains, metrics, policies and environments that programs write.

use crate::Project;
use runner_testkit::{PipelineText, pipeline};
use serde_json::{Value, json};

fn show(project: &Project, what: &str) -> Value {
    let output = project.command(&["show", "--json", what]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names and blobs of the partitions of an artifact.
fn partitions(project: &Project, what: &str) -> Vec<String> {
    let shown = show(project, what);
    let entries = shown["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| format!("{} {}", entry["path"], entry["blob"]))
        .collect()
}

const CHAIN: &str = "\
version: 1
name: chain
stages:
  market:
    uses: ingest/simulated_market
    with: { days: 45, partition: month, expiries: { weekly: 0, monthly: 2, quarterly_days: 0 } }
  cleaned:
    run: cp -r ${needs.chain} ${outputs.chain}
    needs: { chain: market.chain }
    outputs: { chain: { path: chain, type: option_chain } }
  volatility: { uses: greeks/implied_volatility, needs: { chain: cleaned, rates: market.rates } }
  greeks: { uses: greeks/analytic, needs: { chain: volatility, rates: market.rates } }
  env:
    uses: env/options
    needs: { chain: volatility, greeks: greeks, rates: market.rates }
    with: { test_fraction: 0.3, episode_length: 5, purge: 0, embargo: 0 }
";

/// A chain that a program passes on unchanged has the same bytes, and reaches an environment; a new month
/// computes one partition downstream. Terms of contracts that no column states are those of the chain that it
/// was given.
#[test]
fn a_chain_of_a_program_is_one_of_the_built_in_stages() {
    let project = Project::new(CHAIN);
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    let before = partitions(&project, "latest/cleaned.chain");
    assert_eq!(before, partitions(&project, "latest/market.chain"));
    let meta = show(&project, "latest/cleaned.chain")["meta"].clone();
    assert_eq!(meta["contracts"]["SIM"]["exercise"], "european", "{meta}");
    assert_eq!(
        meta["contracts"]["SIM"]["origin"]["exercise"], "specification",
        "{meta}"
    );
    assert!(!first.text().contains("nothing states these terms"), "{}", first.text());

    // The last partition is left out: the others are not computed again.
    let last = before.last().unwrap().split('"').nth(1).unwrap().to_owned();
    let shorter = CHAIN.replace(
        "cp -r ${needs.chain} ${outputs.chain}",
        &format!(
            "cp -r ${{needs.chain}} ${{outputs.chain}}; chmod -R u+w ${{outputs.chain}}; rm \
            ${{outputs.chain}}/{last}"
        ),
    );
    project.write("p.yaml", &shorter);
    let cut = project.exec(&["volatility"]);
    assert_eq!(cut.stages("ran"), ["cleaned", "volatility"], "{}", cut.text());
    let after = partitions(&project, "latest/cleaned.chain");
    assert_eq!(after, before[..before.len() - 1]);
    let events = cut.events();
    let memo = events
        .iter()
        .find(|event| event["event"] == "memo" && event["stage"] == "volatility")
        .unwrap_or_else(|| panic!("{}", cut.text()));
    assert_eq!(memo["hits"], memo["total"], "{memo}");
}

/// Own forwards enter with the chain.
#[test]
fn forwards_of_ones_own_are_taken() {
    let project = Project::new(
        pipeline("forwards")
            .run("chain", "cp chain.csv ${outputs.chain}")
            .set("files", "[chain.csv]")
            .output("chain", "{ path: out.csv, type: option_chain }")
            .uses("volatility", "greeks/implied_volatility")
            .needs("chain", "chain"),
    );
    let mut rows =
        "symbol,date,expiry,strike,call,bid,ask,forward,discount_factor,exercise,multiplier\n".to_owned();
    for (strike, call, bid) in [
        (100, true, 5.0),
        (100, false, 4.5),
        (110, true, 1.5),
        (110, false, 10.9),
    ] {
        rows.push_str(&format!(
            "XYZ,2024-01-02,2024-03-15,{strike},{call},{bid},{},100.75,0.99,european,10\n",
            bid + 0.1
        ));
    }
    project.write("chain.csv", &rows);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let shown = show(&project, "latest/volatility.chain");
    let text = shown["preview"].to_string();
    assert!(text.contains("100.75") && text.contains("0.99"), "{text}");
    let meta = show(&project, "latest/chain.chain")["meta"].clone();
    assert_eq!(meta["multiplier"], 10.0, "{meta}");

    project.write(
        "chain.csv",
        rows.replace(
            "XYZ,2024-01-02,2024-03-15,110,true,1.5",
            "XYZ,2024-01-02,2024-03-15,110,true,2.5",
        ),
    );
    let refused = project.exec(&[]);
    assert_eq!(
        refused.error("chain"),
        "the output `chain` is not a data set of the type `option_chain`: `out.csv`, row 4, column `bid`: the \
        bid 2.5 is above the ask 1.6"
    );
}

/// Forwards that know the last price of all are found; those of their own day are not.
#[test]
fn a_chain_that_looks_ahead_is_found() {
    let mut quotes = "symbol,date,expiry,strike,call,bid,ask,underlying\n".to_owned();
    let first: datasets::Date = "2024-01-02".parse().unwrap();
    let days = (0..90).map(|day| first.plus(day)).filter(|day| !day.is_weekend());
    for (i, day) in days.enumerate() {
        for strike in [95, 100, 105] {
            quotes.push_str(&format!(
                "XYZ,{day},2024-06-21,{strike},true,{},{},{}\n",
                3 + i % 5,
                4 + i % 5,
                100 + (i * i) % 7
            ));
        }
    }
    let program = |forward: &str| {
        let awk = format!(
            "awk -F, 'FNR == 1 {{ pass++ }} pass == 1 {{ last = $8; next }} FNR == 1 {{ print $0 \
             \",forward,multiplier,exercise\"; next }} {{ print $0 \",\" {forward} \",100,european\" }}' \
             quotes.csv quotes.csv > ${{outputs.chain}}"
        );
        pipeline("leak")
            .run("chain", &awk)
            .set("files", "[quotes.csv]")
            .output("chain", "{ path: out.csv, type: option_chain }")
    };
    for (forward, code) in [("$8", 0), ("last", 1)] {
        let project = Project::new(program(forward));
        project.write("quotes.csv", &quotes);
        let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2024-02-15", "--json"]);
        assert_eq!(ended.code, code, "{}", ended.text());
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let columns: Vec<&str> = report["moved"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|moved| moved["column"].as_str())
            .collect();
        assert!(columns.iter().all(|column| *column == "forward"), "{report}");
    }
}

/// `show`, `compare` and `runs --where` read them.
#[test]
fn metrics_of_a_program_are_figures_of_its_stage() {
    let pipeline = |figures: &str| {
        pipeline("figures")
            .run("score", &format!("printf '%s' '{figures}' > ${{outputs.metrics}}"))
            .output("metrics", "{ path: metrics.json, type: metrics }")
    };
    let project = Project::new(pipeline(r#"{"sharpe": 1.25, "trades": 7}"#));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert_eq!(
        show(&project, "latest/score.metrics")["meta"]["summary"],
        json!({ "sharpe": 1.25, "trades": 7.0 })
    );
    let listed = |filter: &str| {
        let ended = project
            .command(&["runs", "--json", "--where", filter])
            .output()
            .unwrap();
        let runs: Value = serde_json::from_slice(&ended.stdout).unwrap();
        runs.as_array().unwrap().len()
    };
    assert_eq!((listed("score.sharpe > 1"), listed("score.sharpe > 2")), (1, 0));
    project.write("p.yaml", pipeline(r#"{"sharpe": 0.5, "trades": 7}"#));
    project.exec(&[]);
    assert_eq!(listed("score.sharpe > 0"), 2);
    project.write("p.yaml", pipeline(r#"{"sharpe": "high"}"#));
    let refused = project.exec(&[]);
    assert_eq!(
        refused.error("score"),
        "the output `metrics` is not of the type `metrics`: `metrics.json`, `sharpe`: the value \"high\" is \
        not a number"
    );
    assert_eq!(project.exec(&[]).stages("failed"), ["score"], "nothing is cached");
}

const POLICY: &str = "\
version: 1
name: policy
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 512, n_steps: 32, n_envs: 4, batch_size: 64 }
  own:
    run: |
      file=${needs.policy}
      if [ -d $file ]; then file=$file/policy.safetensors; fi
      COPY
    needs: { policy: train.policy }
    outputs: { policy: { path: own.safetensors, type: policy } }
  trained: { uses: evaluate/backtest, needs: { env: env, policy: train }, with: { episodes: 4 } }
  written: { uses: evaluate/backtest, needs: { env: env, policy: own }, with: { episodes: 4 } }
  more:
    uses: train/ppo
    needs: { env: env, init: own }
    with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 }
";

/// A policy that a program writes is evaluated and trained on from; one that is damaged is refused at the
/// stage that wrote it.
#[test]
fn a_policy_of_a_program_acts() {
    let pipeline = |copy: &str| POLICY.replace("COPY", copy);
    let project = Project::new(pipeline("cp $file ${outputs.policy}"));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let summary = |stage: &str| show(&project, &format!("latest/{stage}.metrics"))["meta"]["summary"].clone();
    assert_eq!(summary("trained"), summary("written"));
    assert_eq!(show(&project, "latest/own.policy")["meta"]["env"], "CartPole-v1");
    for (copy, wanted) in [
        ("head -c 100 $file > ${outputs.policy}", "cannot read the policy"),
        (
            "mkdir ${outputs.policy}; cp $file ${outputs.policy}/a; cp $file ${outputs.policy}/b",
            "it is 2 files, and a policy is one",
        ),
    ] {
        project.write("p.yaml", pipeline(copy));
        let refused = project.exec(&["own"]);
        let wanted = format!("the output `policy` is not of the type `policy`: {wanted}");
        assert!(refused.error("own").starts_with(&wanted), "{}", refused.error("own"));
        assert_eq!(project.exec(&["own"]).stages("failed"), ["own"], "nothing is cached");
    }
}

/// An environment that a program copies and changes, and a training on it.
fn env(change: &str) -> PipelineText {
    pipeline("env")
        .uses("made", "env/lookup")
        .with("rows", 300)
        .with("features", 4)
        .run(
            "own",
            &format!("cp -r ${{needs.env}} ${{outputs.env}}\nchmod -R u+w ${{outputs.env}}\n{change}"),
        )
        .needs("env", "made")
        .output("env", "{ path: env, type: env }")
        .uses("train", "train/ppo")
        .needs("env", "own")
        .with("total_timesteps", 256)
        .with("n_steps", 32)
        .with("n_envs", 4)
        .with("batch_size", 64)
        .uses("evaluate", "evaluate/backtest")
        .needs("env", "own")
        .needs("policy", "train")
}

/// The files of an environment, changed and brought back.
#[test]
fn an_environment_of_a_program_is_trained_on() {
    let project = Project::new(env(
        "echo lookup > ${outputs.env}/family; cp ${outputs.env}/test.arrow ${outputs.env}/train.arrow",
    ));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let files = partitions(&project, "latest/own.env");
    assert_eq!(files.len(), 3, "the family is no file of it: {files:?}");
    for (change, wanted) in [
        ("true", "it has no file `family`"),
        (
            "echo chess > ${outputs.env}/family",
            "unknown environment family `chess`",
        ),
        (
            "echo lookup > ${outputs.env}/family; rm ${outputs.env}/train.arrow",
            "the environment has no `train.arrow`",
        ),
        (
            "echo lookup > ${outputs.env}/family; echo '{\"rows\": 301}' > ${outputs.env}/env.json",
            "`train.arrow` of the environment",
        ),
    ] {
        project.write("p.yaml", env(change));
        let refused = project.exec(&["own"]);
        let wanted = format!("the output `env` is not of the type `env`: {wanted}");
        assert!(refused.error("own").starts_with(&wanted), "{}", refused.error("own"));
    }
}
