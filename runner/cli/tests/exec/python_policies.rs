//! A policy in Python wherever a policy stands: backtest with its ablations, walk-forward, comparison, drift,
//! registry and champion, and as a teacher. `policy_act.rs` has its decisions.
//!
//! They need an interpreter with gymnasium and numpy: `RUNNER_TEST_PYTHON`.

use super::python_stages::python;
use crate::{Ended, Project, artifact};
use serde_json::Value;
use stages_policy::AnyPolicy;

/// A function that trains nothing: it draws the weights of a policy with memory, which decides by the
/// observation and by what it remembers.
pub(crate) const AGENT: &str = "\
import io
import numpy as np
from runner.trained import Saved


def train(ctx, env, total_timesteps):
    env.reset()
    env.step(np.zeros(env.num_envs, int))
    shape = env.single_observation_space.shape[0], int(env.single_action_space.n)
    file = io.BytesIO()
    np.save(file, np.random.default_rng(ctx.seed).normal(size=shape))
    return Saved('my_agent:load', {'weights.npy': file.getvalue()}, state_len=1)


def load(path, spec):
    weights = np.load(path / 'weights.npy')

    def policy(obs, state, episode_start):
        assert not state[episode_start].any()
        state = 0.8 * state + obs[:, :1]
        logits = obs @ weights
        logits[:, 1] += 3 * np.sin(9 * state[:, 0])
        return {'logits': logits, 'value': obs.sum(axis=1), 'state': state}

    return policy
";

/// The stage that makes it.
pub(crate) fn agent(python: &str) -> String {
    format!(
        "{{ uses: train/python, needs: {{ env: env }}, \
         with: {{ call: 'my_agent:train', python: {python}, total_timesteps: 64, n_envs: 2, seed: 1 }} }}"
    )
}

const PIPELINE: &str = "\
version: 1
name: own
stages:
  rows: { uses: ingest/table, with: { path: rows.csv, partition: month } }
  env:
    uses: env/table
    needs: { table: rows }
    with: \
{ symbols: [AAA], observe: [signal], price: close, test_fraction: 0.4, episode_length: 20, purge: 0, embargo: 0, actions: { kind: discrete, positions: [0, 1] } }
  agent: AGENT
  evaluate: &judge
    uses: evaluate/backtest
    needs: { env: env, policy: agent }
    with: { random_paths: 2, bootstrap_draws: 10 }
  student:
    uses: train/imitate
    needs: { env: env, teacher: agent }
    with: { total_timesteps: 20_000, n_envs: 8, n_steps: 64, batch_size: 128, seed: 1 }
  imitated:
    <<: *judge
    needs: { env: env, policy: student }
  compare:
    uses: evaluate/compare
    needs: { agent: evaluate, against: imitated }
    with: { bootstrap_draws: 20, verdict: {} }
  whole: { uses: evaluate/walk_forward, needs: { trajectory: evaluate }, with: { bootstrap_draws: 10 } }
  drift: { uses: evaluate/drift, needs: { trajectory: evaluate } }
";

/// Rows of a symbol on so many weekdays.
fn rows(count: usize) -> String {
    let first: datasets::Date = "2019-01-02".parse().unwrap();
    let days = (0..).map(|i| first.plus(i)).filter(|date| !date.is_weekend());
    let rows = days.take(count).enumerate().map(|(i, day)| {
        let (close, signal) = (50.0 + ((i * 3) % 17) as f64, (i * 7) % 11);
        format!("{day},AAA,{close},{signal}\n")
    });
    format!("date,symbol,close,signal\n{}", rows.collect::<String>())
}

fn project(python: &str) -> Project {
    let project = Project::new(PIPELINE.replace("AGENT", &agent(python)));
    project.write("rows.csv", rows(260));
    project.write("my_agent.py", AGENT);
    project
}

fn ok(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.text());
}

fn summary(project: &Project, output: &str) -> Value {
    let shown = project.run(&["show", "--json", output]);
    let shown: Value =
        serde_json::from_str(&shown.stdout).unwrap_or_else(|err| panic!("{err}: {}", shown.text()));
    shown["meta"]["summary"].clone()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name}: {value}"))
}

#[test]
fn a_policy_in_python_plays_everywhere() {
    let Some(python) = python() else { return };
    let project = project(&python);
    let first = project.exec(&[]);
    ok(&first);
    let (store, made) = artifact(&project, &first, "agent.policy");
    let policy = AnyPolicy::read(&store, &made).unwrap();
    assert_eq!(
        (policy.form(), policy.kind(), policy.remembers()),
        ("python", "train/python", true)
    );
    // Its memory counts, and the ablation takes it away.
    let figures = summary(&project, "latest/evaluate.metrics");
    let total = number(&figures, "total_return");
    assert_ne!(total, number(&figures, "ablation/no_memory/total_return"), "{figures}");
    assert_ne!(total, number(&figures, "baseline/cash/total_return"), "{figures}");
    // A walk-forward of one fold is its backtest.
    let whole = summary(&project, "latest/whole.metrics");
    assert!((total - number(&whole, "total_return")).abs() < 1e-9, "{total} {whole}");
    // A student that has seen 20,000 labels trades, which one of a teacher that says nothing would not.
    let imitated = summary(&project, "latest/imitated.metrics");
    assert_ne!(
        number(&imitated, "total_return"),
        number(&imitated, "baseline/cash/total_return")
    );
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    // The same text gives the same bytes.
    let again = project.exec(&["--force", "agent", "--force", "evaluate"]);
    ok(&again);
    assert_eq!(again.digests(), first.digests());

    // A name in the registry, and the champion of another pipeline.
    ok(&project.run(&["policy", "register", "latest/agent", "desk", "--alias", "champion"]));
    let shown = project.run(&["policy", "show", "desk@champion"]);
    ok(&shown);
    assert!(shown.stdout.contains("python"), "{}", shown.stdout);
    ok(&project.run(&["policy", "list"]));
    ok(&project.run(&["policy", "register", "latest/student", "desk"]));
    ok(&project.run(&["policy", "diff", "desk@champion", "desk@2"]));
    let text = PIPELINE.replace("AGENT", &agent(&python));
    let (before, rest) = text.split_once("  agent:").unwrap();
    let (_, judge) = rest.split_once("  evaluate:").unwrap();
    let (judge, _) = judge.split_once("  student:").unwrap();
    let acted = format!("{before}  evaluate:{judge}").replace("policy: agent", "policy: desk@champion");
    project.write("p.yaml", acted);
    let nightly = project.exec(&[]);
    ok(&nightly);
    let champion = summary(&project, "latest/evaluate.metrics");
    assert_eq!(number(&champion, "total_return"), total);
    // What needs a network of this program says so.
    let more = "train/ppo, needs: { env: env, init: desk@champion }, with: { total_timesteps: 64 }";
    project.write("p.yaml", format!("{before}  more: {{ uses: {more} }}\n"));
    let refused = project.exec(&["more"]);
    assert_eq!(refused.code, 1, "{}", refused.text());
    assert!(refused.stderr.contains("has the form `python`"), "{}", refused.stderr);
}

/// A wrong answer of the policy fails the evaluation, with its own traceback, and caches nothing.
#[test]
fn a_policy_that_fails_is_told_with_its_place() {
    let Some(python) = python() else { return };
    let text = PIPELINE.replace("AGENT", &agent(&python));
    let project = Project::new(text);
    project.write("rows.csv", rows(260));
    project.write(
        "my_agent.py",
        AGENT.replace("'state': state}", "'state': state[:, :0]}"),
    );
    let ended = project.exec(&["evaluate"]);
    assert_eq!(ended.code, 1, "{}", ended.text());
    assert!(
        ended
            .stderr
            .contains("`state` of the policy has the shape [2, 0] instead of [2, 1]"),
        "{}",
        ended.stderr
    );
    project.write(
        "my_agent.py",
        AGENT.replace("np.load(path / 'weights.npy')", "np.load(path / 'none.npy')"),
    );
    let ended = project.exec(&["evaluate"]);
    assert_eq!(ended.code, 1, "{}", ended.text());
    assert!(
        ended.stderr.contains("FileNotFoundError") && ended.stderr.contains("in load"),
        "{}",
        ended.stderr
    );
}
