//! Factors in pandas, by `env/table` and PPO to an ONNX file, and one day more.

use crate::Project;
use runner_testkit::{PipelineText, pipeline};

fn nightly() -> PipelineText {
    pipeline("factors")
        .uses("rows", "ingest/table")
        .with("path", "rows.csv")
        .with("partition", "month")
        .uses("factors", "python")
        .set("call", "factors:make")
        .set("python", "PYTHON")
        .needs("rows", "rows")
        .output("table", "table")
        .uses("env", "env/table")
        .needs("table", "factors")
        .with("price", "close")
        .with("actions", "{ kind: discrete }")
        .with("test_fraction", 0.3)
        .with("episode_length", 20)
        .with("purge", 0)
        .with("embargo", 0)
        .uses("train", "train/ppo")
        .needs("env", "env")
        .with("total_timesteps", 256)
        .with("n_steps", 32)
        .with("n_envs", 4)
        .with("batch_size", 64)
}

/// A factor that needs the last close of the month before.
const MODULE: &str = "\
from runner import stage

@stage(by='partition', state=True)
def make(ctx, rows):
    frame = rows.to_pandas()
    last = ctx.state or {}
    by = frame.groupby('symbol', observed=True)['close']
    before = by.shift(1).fillna(frame['symbol'].astype(str).map(last)).fillna(frame['close'])
    frame['change'] = frame['close'] / before - 1.0
    ctx.state = {**last, **by.last().to_dict()}
    return frame[['date', 'symbol', 'close', 'change']]
";

/// Rows of two symbols on so many weekdays from 2019-01-02 on.
fn rows(count: usize) -> String {
    let first: datasets::Date = "2019-01-02".parse().unwrap();
    let days = (0..).map(|i| first.plus(i)).filter(|date| !date.is_weekend());
    let mut text = "date,symbol,close\n".to_owned();
    for (i, day) in days.take(count).enumerate() {
        for (s, symbol) in ["AAA", "BBB"].iter().enumerate() {
            text.push_str(&format!("{day},{symbol},{}\n", 50 + (i * (s + 3)) % 17));
        }
    }
    text
}

#[test]
fn a_new_day_reaches_the_policy_by_one_partition() {
    let Some(python) = crate::python_stages::python() else {
        return;
    };
    let project = Project::new(nightly().to_string().replace("PYTHON", &python));
    project.write("factors.py", MODULE);
    project.write("rows.csv", rows(200));
    let log = || project.run(&["show", "latest/factors"]).text();
    let first = project.exec(&[]);
    assert_eq!(
        first.stages("ran"),
        ["rows", "factors", "env", "train"],
        "{}",
        first.text()
    );
    assert!(log().contains("computed 10 of 10 partitions"), "{}", log());
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());

    project.write("rows.csv", rows(201));
    let nightly = project.exec(&[]);
    assert_eq!(
        nightly.stages("ran"),
        ["rows", "factors", "env", "train"],
        "{}",
        nightly.text()
    );
    assert!(log().contains("computed 1 of 10 partitions: "), "{}", log());
    assert!(log().contains("2019-10-01_2019-10-31"), "{}", log());
    let exported = project.run(&["policy", "export", "latest/train", "policy.onnx", "--format", "onnx"]);
    assert_eq!(exported.code, 0, "{}", exported.text());
    assert!(std::fs::metadata(project.path("policy.onnx")).unwrap().len() > 1000);

    // The carried state is that of a run from nothing.
    std::fs::remove_dir_all(project.home()).unwrap();
    assert_eq!(project.exec(&[]).digests()["factors"], nightly.digests()["factors"]);
}
