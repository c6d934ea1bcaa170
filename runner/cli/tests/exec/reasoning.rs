//! `evaluate/reasoning` on policies that are trained in seconds, over a knowledge base that a test writes.

use crate::Project;
use serde_json::Value;

/// Families of three generations, and edges that lead nowhere. Every relation has as many edges, so that only
/// its name tells it from the others. A grandparent follows from the first of three rules, the others prove
/// nothing.
fn facts() -> String {
    let mut text = String::new();
    for i in 0..N {
        text.push_str(&format!("parent(a{i}, b{i}). parent(b{i}, c{i}).\n"));
        for (relation, by) in [("likes", 3), ("near", 7)] {
            let other = (i + by) % N;
            text.push_str(&format!(
                "{relation}(a{i}, b{other}). {relation}(b{i}, c{}).\n",
                (i + 2 * by + 1) % N
            ));
        }
    }
    text + "grand(X, Y) :- likes(X, Z), likes(Z, Y).
grand(X, Y) :- near(X, Z), near(Z, Y).
grand(X, Y) :- parent(X, Z), parent(Z, Y).
"
}

/// Families: enough that constants cannot be learned by heart in these trainings, which would prove nothing
/// about those of the test.
const N: usize = 100;

fn grandparents(of: std::ops::Range<usize>) -> String {
    of.map(|i| format!("grand(a{i}, c{i}).\n")).collect()
}

const PIPELINE: &str = "\
version: 1
name: reason
stages:
  kb:
    uses: ingest/knowledge_base
    with: { graph: [facts.pl], train: train.pl, test: test.pl }
  env: { uses: env/symbolic, needs: { knowledge: kb }, with: { ENV } }
  agent:
    uses: TRAINER
    matrix: { seed: [SEEDS] }
    needs: { env: env }
    resources: { threads: THREADS }
    with:
      seed: ${matrix.seed}
      total_timesteps: STEPS
      n_envs: 32
      n_steps: 8
      batch_size: 128
      learning_rate: 3e-3
      policy_kwargs: { net_arch: { pi: [16], vf: [16] }, symbols: { embedding_dim: 16 }MEMORY }
  evaluate:
    uses: evaluate/reasoning
    needs: { env: env, policy: 'agent[*]' }
    resources: { threads: THREADS }
    with: { bootstrap_draws: 300 }
";

fn pipeline(env: &str, seeds: &str, steps: usize) -> String {
    PIPELINE
        .replace("ENV", env)
        .replace("SEEDS", seeds)
        .replace("STEPS", &steps.to_string())
}

fn plain(pipeline: &str, threads: usize) -> String {
    pipeline
        .replace("TRAINER", "train/ppo")
        .replace("MEMORY", "")
        .replace("THREADS", &threads.to_string())
}

fn project(pipeline: &str) -> Project {
    let project = Project::new(pipeline);
    project.write("facts.pl", facts());
    project.write("train.pl", grandparents(0..N - 10));
    project.write("test.pl", grandparents(N - 10..N));
    project
}

fn show(project: &Project) -> Value {
    let shown = project.run(&["show", "--json", "latest/evaluate.metrics"]);
    serde_json::from_str(&shown.stdout).unwrap()
}

/// The file `proofs.txt` of the evaluation, by the path of its blob.
fn proofs(project: &Project) -> String {
    let shown = show(project);
    let entries = shown["entries"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["path"] == "proofs.txt").unwrap();
    let digest = entry["blob"].as_str().unwrap();
    let (first, rest) = digest.split_at(2);
    std::fs::read_to_string(project.home().join("blobs").join(first).join(rest)).unwrap()
}

struct Summary(Value);

impl Summary {
    fn of(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or_else(|| panic!("no {name}: {}", self.0))
    }

    fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }
}

fn run(project: &Project) -> (Summary, String) {
    let ended = project.exec(&["--report"]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    (Summary(show(project)["meta"]["summary"].clone()), ended.text())
}

#[test]
fn verdicts_beat_random_actions_and_a_blind_copy() {
    let text = plain(&pipeline("task: proofs", "1", 20_480), 2);
    let project = project(&text);
    let (found, log) = run(&project);
    assert_eq!((found.of("queries"), found.of("true_fraction")), (20.0, 0.5));
    assert!(found.of("accuracy") > 0.9, "{}", found.0);
    assert!(found.of("baseline/random/accuracy") < 0.8, "{}", found.0);
    assert!(found.of("versus/random/accuracy_low") > 0.0, "{}", found.0);
    let blind = found.of("ablation/shuffled_relations/accuracy");
    assert!(
        blind < found.of("accuracy") - 0.1 && found.of("blind") == 0.0,
        "{}",
        found.0
    );
    // Every proof is of rule and facts, and as short as can be.
    assert_eq!((found.of("shortest_fraction"), found.of("length_ratio")), (1.0, 1.0));
    assert_eq!(found.of("false_proofs"), 0.0);
    assert!(
        found.of("accuracy_low") <= found.of("accuracy") && found.of("accuracy") <= found.of("accuracy_high")
    );
    assert!(found.of("baseline/search/accuracy") >= found.of("baseline/random/accuracy"));
    assert!((0.0..=0.5).contains(&found.of("calibration_error")) && found.of("auc_pr") > 0.9);
    assert!(!found.has("policies") && !found.has("mrr"));
    assert!(log.contains("with relations exchanged it has"), "{log}");
    let tree = proofs(&project);
    let first = tree.split("\n\n").next().unwrap();
    let lines: Vec<&str> = first.lines().collect();
    assert!(
        lines[0].starts_with("% ") && lines[0].contains("resolution steps, probability"),
        "{tree}"
    );
    assert!(
        lines[1].starts_with("grand(a9") && lines[1].contains("facts.pl"),
        "{tree}"
    );
    assert!(
        lines[2].starts_with("  parent(a9") && lines[3].starts_with("  parent(b9"),
        "{tree}"
    );
    let page = project.home().join("runs");
    let reports = runner_testkit::files(&page);
    let report = reports.iter().find(|path| path.ends_with("report.html")).unwrap();
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        report.contains("it uses them") && report.contains("grand(a9"),
        "the report has no proofs"
    );

    // One thread, the same bytes.
    let other = self::project(&plain(&pipeline("task: proofs", "1", 20_480), 1));
    run(&other);
    assert_eq!(show(&other)["digest"], show(&project)["digest"]);
}

/// With soft rewards in training, the embedding that gives them is a baseline.
#[test]
fn the_embedding_of_soft_rewards_is_ranked_beside_the_policy() {
    let env = "task: paths, hops: 2, soft_reward: { embedding: { dim: 16 } }";
    let project = project(&plain(&pipeline(env, "1", 40_960), 2));
    let (found, _) = run(&project);
    assert!(found.of("mrr") > 0.5, "{}", found.0);
    let embedding = found.of("baseline/embedding/mrr");
    assert!(embedding > 0.1 && found.has("versus/embedding/mrr"), "{embedding}");

    // Where no fact of what is asked is in the graph, there is nothing to embed.
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write(
        "p.yaml",
        text.replace("train: train.pl", "train: train.pl, train_in_graph: false"),
    );
    let ended = project.exec(&[]);
    assert!(ended.text().contains("`soft_reward` gives nothing"), "{}", ended.text());
}

#[test]
fn ranks_beat_random_walks_with_intervals_over_seeds() {
    let env = "task: paths, hops: 2, sides: both";
    let project = project(&plain(&pipeline(env, "1, 2", 40_960), 2));
    let (found, _) = run(&project);
    assert_eq!((found.of("queries"), found.of("policies")), (20.0, 2.0));
    assert!(found.of("mrr") > 0.8, "{}", found.0);
    assert!(found.of("versus/random/mrr_low") > 0.2, "{}", found.0);
    assert!(found.of("ablation/shuffled_relations/mrr") < 0.5, "{}", found.0);
    assert!(found.of("blind") == 0.0 && found.of("ablation/shuffled_relations/loss_mrr_low") > 0.2);
    assert!(
        found.of("baseline/rules/mrr") > 0.9 && found.of("baseline/tail_frequency/mrr") < 0.5,
        "{}",
        found.0
    );
    assert!(!found.has("baseline/embedding/mrr"));
    let mean =
        |name: &str| (found.of(&format!("policy/1/{name}")) + found.of(&format!("policy/2/{name}"))) / 2.0;
    for name in ["mrr", "hits_1", "hits_10", "tails_mrr", "heads_mrr", "auc_pr"] {
        assert!((found.of(name) - mean(name)).abs() < 1e-12, "{name}: {}", found.0);
    }
    assert!((found.of("mrr") - (found.of("tails_mrr") + found.of("heads_mrr")) / 2.0).abs() < 1e-12);
    assert!(found.of("mrr_low") <= found.of("mrr_over_queries_low") + 0.05);
    let paths = proofs(&project);
    assert!(
        paths.contains(" grand ?: a9") && paths.contains("-parent-> b9"),
        "{paths}"
    );

    // Fewer queries, tails of a facts each; candidates are entities.
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    let with = |settings: &str| {
        let replaced = text.replace("bootstrap_draws: 300", settings);
        project.write("p.yaml", &replaced);
    };
    with(
        "bootstrap_draws: 30, queries: 4, candidates: [c90, c91, c92], ablations: false, baselines: [random]",
    );
    let (few, _) = run(&project);
    assert_eq!(few.of("queries"), 8.0);
    assert!(few.has("baseline/random/mrr") && !few.has("baseline/rules/mrr") && !few.has("blind"));
    with("candidates: [nobody]");
    let ended = project.exec(&[]);
    assert!(
        ended.error("evaluate").contains("`nobody` is not an entity"),
        "{}",
        ended.text()
    );
}

#[test]
fn a_policy_that_remembers_is_evaluated_with_its_memory() {
    let text = pipeline("task: paths, hops: 2", "1", 40_960)
        .replace("TRAINER", "train/recurrent_ppo")
        .replace("MEMORY", ", lstm_hidden_size: 16")
        .replace("THREADS", "2");
    let (found, _) = run(&project(&text));
    assert!(found.of("mrr") > 0.6, "{}", found.0);
    assert!(
        found.of("versus/random/mrr_low") > 0.0 && found.of("blind") == 0.0,
        "{}",
        found.0
    );
}

#[test]
fn plans_beat_random_actions() {
    let text = plain(
        &pipeline("task: rules, world: gripper, size: 1, steps: 12", "1", 40_960),
        2,
    )
    .replace("needs: { knowledge: kb }, ", "");
    let project = project(&text);
    let (found, _) = run(&project);
    assert!(
        found.of("success") > found.of("baseline/random/success") + 0.1,
        "{}",
        found.0
    );
    assert!(
        found.of("length_ratio") >= 1.0 && found.of("baseline/search/success") > 0.0,
        "{}",
        found.0
    );
    assert!(
        proofs(&project).contains("actions, probability"),
        "{}",
        proofs(&project)
    );
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let one = plain(&pipeline("task: proofs", "1", 512), 1);
    let text = one.replace(
        "  evaluate:\n",
        "  other: { uses: env/symbolic, needs: { knowledge: kb }, with: { task: paths } }\n  evaluate:\n",
    );
    let project = project(&text.replace(
        "needs: { env: env, policy: 'agent[*]' }",
        "needs: { env: other, policy: 'agent[*]' }",
    ));
    let error = |project: &Project| {
        let ended = project.exec(&[]);
        assert_ne!(ended.code, 0);
        ended.error("evaluate")
    };
    let said = error(&project);
    assert!(said.contains("trained on another environment: its token"), "{said}");
    let text = one.replace("  evaluate:\n", "  classic: { uses: env/classic }\n  evaluate:\n");
    project.write(
        "p.yaml",
        text.replace(
            "needs: { env: env, policy: 'agent[*]' }",
            "needs: { env: classic, policy: 'agent[*]' }",
        ),
    );
    let said = error(&project);
    assert!(said.contains("not `symbolic`"), "{said}");
    project.write("p.yaml", one.replace("bootstrap_draws: 300", "candidates: [a1]"));
    let said = error(&project);
    assert!(said.contains("`candidates` is a setting of `task: paths`"), "{said}");
    project.write("p.yaml", one.replace("bootstrap_draws: 300", "split: valid"));
    let said = error(&project);
    assert!(said.contains("no queries of `valid`"), "{said}");
    project.write("p.yaml", one.replace("bootstrap_draws: 300", "beam: 0"));
    let ended = project.exec(&[]);
    assert!(ended.text().contains("must be at least 1"), "{}", ended.text());
}
