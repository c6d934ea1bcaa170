//! The stage kind: its settings, what it refuses, and its artifact.

use super::batch::mark;
use super::{SymbolicConfig, SymbolicTask, TaskConfig};
use cache::{ActionKey, Artifact, Store};
use serde_json::{Value, json};
use stages_core::{Context, Input, PlanContext, PortType, Provided, StageError, erase};
use stages_env::CandidateBatch;
use stages_env::Step;
use stages_env::{Actions, OpenOptions};
use stages_knowledge::{Builder, KnowledgeBase, Split, artifact, text};
use std::collections::BTreeMap;
use std::path::Path;

const FAMILY: &str = "aunt(X, Y) :- sister(X, Z), parent(Z, Y).
    sister(eve, bob). parent(bob, ann). parent(bob, joe). aunt(eve, ann). aunt(eve, joe).";

/// A knowledge base of facts and rules, and of queries by split.
pub(super) fn knowledge(graph: &str, queries: &[(Split, &str)]) -> KnowledgeBase {
    let mut builder = Builder::new();
    builder.graph("graph", &text::prolog(graph, false).unwrap()).unwrap();
    for (split, queries) in queries {
        builder
            .queries(*split, &text::prolog(queries, false).unwrap(), false)
            .unwrap();
    }
    builder.finish().unwrap()
}

fn family() -> KnowledgeBase {
    knowledge(
        FAMILY,
        &[
            (Split::Train, "aunt(eve, ann)."),
            (Split::Test, "aunt(eve, joe). \\+ aunt(bob, joe)."),
        ],
    )
}

/// A context over a store in `dir`.
pub(super) fn context(dir: &Path, inputs: BTreeMap<String, Vec<Input>>) -> Context {
    let mut context = Context::new(ActionKey::from_bytes([0; 32]), Store::open(dir).unwrap());
    context.inputs = inputs;
    context
}

/// A context whose input `knowledge` is a knowledge base.
pub(super) fn with_knowledge(dir: &Path, base: &KnowledgeBase) -> Context {
    let store = Store::open(dir).unwrap();
    let blob = artifact::put(&store, base).unwrap();
    let digest = artifact::write(&store, blob, None, artifact::sizes(base)).unwrap();
    let input = Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    };
    context(dir, BTreeMap::from([("knowledge".to_owned(), vec![input])]))
}

pub(super) fn run(with: Value, context: &Context) -> Result<Artifact, StageError> {
    let stage = erase(super::Symbolic);
    let config = stage.resolve(with).unwrap();
    let digest = stage.run(&config, context)?["env"];
    Ok(context.store.artifact(digest).unwrap())
}

/// Checks that the same actions have other rewards in two environments in training, and the same in
/// validation and test.
pub(super) fn assert_differ_in_training_alone(context: &Context, a: &Artifact, b: &Artifact) {
    let rewards = |artifact, options: &OpenOptions| {
        let mut env = super::open(&context.store, artifact, options).unwrap();
        let mut out = Step::new(env.spec(), env.num_envs());
        env.reset(out.buffers());
        let mut all = Vec::new();
        for step in 0..30 {
            let actions = [step % 3; 6];
            env.step(Actions::Discrete(&actions), out.buffers()).unwrap();
            all.extend(out.reward.iter().map(|reward| reward.to_bits()));
        }
        all
    };
    for (options, differ) in [
        (OpenOptions::train(6, 5), true),
        (OpenOptions::validation(6, 5), false),
        (OpenOptions::test(6, 5), false),
    ] {
        assert_eq!(rewards(a, &options) != rewards(b, &options), differ, "{options:?}");
    }
}

fn check(with: Value, is_connected: bool, base: &Path) -> Result<(), stages_core::ConfigProblem> {
    let stage = erase(super::Symbolic);
    let inputs = match is_connected {
        true => BTreeMap::from([("knowledge".to_owned(), vec![Provided::unknown(PortType::Knowledge)])]),
        false => BTreeMap::new(),
    };
    let config = stage.resolve(with)?;
    stage.check(&config, &PlanContext { base, inputs })?;
    stage.sources(&config, base).map(|_| ())
}

#[test]
fn settings_of_a_task_stand_beside_it() {
    let stage = erase(super::Symbolic);
    let config = |with: Value| stage.resolve(with).unwrap();
    assert_eq!(config(Value::Null), json!({ "task": "proofs" }));
    // A setting that equals its default is left out, whatever the task.
    assert_eq!(
        config(json!({ "task": "rules", "size": 4, "world": "gripper", "step_reward": 0 })),
        json!({ "task": "rules", "world": "gripper" })
    );
    let with =
        json!({ "task": "proofs", "depth": 8, "preset": "deepprooflog", "goal": "leftmost", "steps": 9 });
    let typed: SymbolicConfig = serde_json::from_value(with).unwrap();
    let TaskConfig::Proofs(proofs) = typed.task_config().unwrap() else {
        panic!("another task");
    };
    assert_eq!((proofs.depth, proofs.steps), (8, Some(9)));
    assert_eq!(
        serde_json::to_value(&typed).unwrap(),
        json!({ "task": "proofs", "depth": 8, "goal": "leftmost", "steps": 9 })
    );
    assert_eq!(
        stage.key_config(&config(json!({ "task": "proofs", "preset": "deepprooflog" }))),
        json!({})
    );

    let schema = stage.schema();
    let about = |field: &str| {
        schema["properties"][field]["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        about("steps").starts_with("`proofs`: ") && about("steps").contains("`rules`: Steps in an episode.")
    );
    assert_eq!(
        about("world"),
        "`rules`: The world whose problems are drawn, where no files are given."
    );
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn what_does_not_fit_is_refused_with_its_field() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    std::fs::write(dir.path().join("d.pddl"), "(define (domain d))").unwrap();
    let refused = |with: Value, is_connected: bool| {
        let problem = check(with, is_connected, dir.path()).unwrap_err();
        format!(
            "{}: {} ({})",
            problem.field,
            problem.message,
            problem.hint.unwrap_or_default()
        )
    };
    let text = [
        refused(json!({ "task": "proofs", "world": "blocks" }), true),
        refused(json!({ "task": "rules", "corrupted": 0.5 }), false),
        refused(json!({ "task": "proofs", "corrupted": 2 }), true),
        refused(json!({ "task": "rules", "size": 0 }), false),
        refused(json!({ "task": "proofs", "depth": "deep" }), true),
        refused(json!({ "task": "paths", "shaping": {} }), true),
        refused(
            json!({ "task": "proofs", "shaping": { "embedding": { "dim": 12 } } }),
            true,
        ),
        refused(json!({ "task": "paths", "soft_reward": { "range": 1e-60 } }), true),
        refused(
            json!({ "task": "paths", "soft_reward": { "embedding": { "learning_rate": 1e-60 } } }),
            true,
        ),
        refused(
            json!({ "task": "paths", "soft_reward": { "embedding": { "model": "transe" } } }),
            true,
        ),
        refused(json!({ "task": "plans" }), true),
        refused(json!({ "task": "proofs" }), false),
        refused(json!({ "task": "rules" }), true),
        refused(json!({ "task": "rules", "train": ["d.pddl"] }), false),
        refused(json!({ "task": "rules", "domain": "d.pddl" }), false),
        refused(
            json!({ "task": "rules", "domain": "e.pddl", "train": ["d.pddl"] }),
            false,
        ),
        refused(
            json!({ "task": "rules", "domain": "d.pddl", "train": ["d.pddl", "empty"] }),
            false,
        ),
        refused(
            json!({ "task": "rules", "domain": "d.pddl", "train": ["d.pddl"], "size": 7 }),
            false,
        ),
    ]
    .join("\n");
    insta::assert_snapshot!(text, @r#"
    world: it is not a setting of `task: proofs` (remove it, or write `task: rules`, which has it)
    corrupted: it is not a setting of `task: rules` (remove it, or write `task: proofs`, which has it)
    corrupted: 2 is not a fraction from 0 to 1 ()
    size: a problem has 1 to 64 blocks, balls or cells ()
    depth: invalid type: string "deep", expected u32 ()
    shaping: it is not a setting of `task: paths` (remove it, or write `task: proofs`, which has it)
    shaping.embedding.dim: 12 is not a multiple of 8 from 8 to 512 ()
    soft_reward.range: 0.000000000000000000000000000000000000000000000000000000000001 is not from 0.000001 to 1,000,000 ()
    soft_reward.embedding.learning_rate: 0.000000000000000000000000000000000000000000000000000000000001 is not from 0.000000001 to 10 ()
    soft_reward: unknown field `model`, expected one of `dim`, `epochs`, `batch_size`, `candidates`, `learning_rate`, `penalty`, `seed` ()
    task: unknown variant `plans`, expected one of `proofs`, `paths`, `rules` ()
    : no knowledge base is connected (write `needs: { knowledge: STAGE }`; ingest/knowledge_base reads one)
    task: rule worlds use no knowledge base, and one is connected (remove `needs: { knowledge: … }`, or write another `task:`)
    train: problems are given without their domain (write `domain: domain.pddl`)
    domain: no problems are given (write `train: [problems/train]`, files or directories of them)
    domain: there is no file `e.pddl` (paths are relative to the pipeline file)
    train[1]: the directory `empty` has no problem (it is searched for files ending in .pddl)
    size: problems are either drawn or read from files, and `domain` is given (remove `size`, or remove `domain` and its problems)
    "#);
    let problem = check(json!({ "task": "rules", "planet": "blocks" }), false, dir.path()).unwrap_err();
    assert!(
        problem
            .message
            .starts_with("unknown field `planet`, expected one of `task`, `"),
        "{problem:?}"
    );
}

#[test]
fn proofs_are_opened_by_split() {
    let dir = tempfile::tempdir().unwrap();
    let context = with_knowledge(dir.path(), &family());
    let artifact = run(json!({ "depth": 4 }), &context).unwrap();
    assert_eq!(
        artifact.meta,
        json!({ "family": "symbolic", "format": 1, "task": "proofs", "queries": { "train": 1, "valid": 0,
            "test": 2 } })
    );
    // The knowledge base is the same blob.
    let knowledge = &context.inputs["knowledge"][0].artifact;
    let blob = |artifact: &Artifact| artifact.entry(artifact::KNOWLEDGE).unwrap().blob;
    assert_eq!(blob(&artifact), blob(knowledge));

    let open = |split| SymbolicTask::open(&context.store, &artifact, split);
    let (train, test) = (open(Split::Train).unwrap(), open(Split::Test).unwrap());
    assert_eq!((train.size(), test.size(), train.vocabulary().width), (1, 2, 3));
    assert_eq!(
        open(Split::Valid).unwrap_err().message,
        "the knowledge base has no queries of `valid`"
    );
    let spec = test.spec();
    assert_eq!(spec.difference(&train.spec()), None);
    assert_eq!(
        spec.action_space.names().len(),
        test.vocabulary().mark(mark::COUNT) as usize
    );
    assert_eq!(
        spec.action_space.names()[..8],
        [
            "<padding>",
            "aunt/2",
            "sister/2",
            "parent/2",
            "eve",
            "bob",
            "ann",
            "joe"
        ]
    );
    let at = |token: u32| spec.action_space.names()[token as usize].as_str();
    let vocabulary = test.vocabulary();
    assert_eq!(
        (at(vocabulary.variable(3)), at(vocabulary.mark(mark::GIVE_UP))),
        ("_3", "<give_up>")
    );
    assert_eq!(at(vocabulary.mark(mark::PROVED)), "<proved>");

    // The environments are those of the task.
    let mut envs = train.batch_env(2, 5);
    let mut batch = CandidateBatch::default();
    envs.observe_candidates(&mut batch);
    assert_eq!((envs.num_envs(), batch.width), (2, 3));
    // What follows from the query by the only rule: states with one successor are passed.
    assert_eq!(at(batch.state_rows[0]), "parent/2");

    stages_env::register(&[crate::ENV_FAMILY]);
    let err = stages_env::open(&context.store, &artifact, &OpenOptions::train(1, 0))
        .err()
        .unwrap();
    assert!(err.hint.unwrap().contains("train/ppo"));
}

#[test]
fn knowledge_bases_that_cannot_be_used_are_refused_when_the_environment_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |base: &KnowledgeBase, with: Value| {
        let err = run(with, &with_knowledge(dir.path(), base)).unwrap_err();
        format!("{err} ({})", err.hint.as_deref().unwrap_or_default())
    };
    let negated = knowledge("p(a). q(X) :- p(X), \\+ r(X). r(b).", &[(Split::Train, "q(a).")]);
    insta::assert_snapshot!(refused(&negated, json!({})), @"proof search cannot use a rule with a negated \
        condition (`graph`, line 1) (leave the rule out, or derive its facts by reason/datalog)");
    let unasked = knowledge(FAMILY, &[]);
    insta::assert_snapshot!(refused(&unasked, json!({})), @"the knowledge base has no queries of `train` \
        (give ingest/knowledge_base files of them, or set `queries: facts` for training)");
    // Facts may be asked in their place.
    let context = with_knowledge(dir.path(), &unasked);
    let artifact = run(json!({ "queries": "facts" }), &context).unwrap();
    assert_eq!(artifact.meta["queries"], json!({ "train": 5, "valid": 0, "test": 0 }));
}

#[test]
fn rule_worlds_are_drawn_or_read() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = run(
        json!({ "task": "rules", "world": "gripper", "size": 2, "problems": 3 }),
        &context(dir.path(), BTreeMap::new()),
    )
    .unwrap();
    assert_eq!(drawn.meta["problems"], json!({ "train": 3, "valid": 3, "test": 3 }));

    // The same, from files.
    let store = Store::open(dir.path()).unwrap();
    let texts: super::rules::RuleTexts =
        serde_json::from_slice(&store.blob(drawn.entry("problems.json").unwrap().blob).unwrap()).unwrap();
    let base = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(base.path().join("train")).unwrap();
        std::fs::write(base.path().join(name), text).unwrap();
    };
    write("domain.pddl", &texts.domain.1);
    for (at, (_, text)) in texts.problems(Split::Train).iter().enumerate() {
        write(&format!("train/p{at}.pddl"), text);
    }
    write("test.pddl", &texts.problems(Split::Test)[0].1);
    let stage = erase(super::Symbolic);
    let with = json!({ "task": "rules", "domain": "domain.pddl", "train": ["train"], "test": ["test.pddl"],
        "steps": 9 });
    let config = stage.resolve(with).unwrap();
    let mut context = context(dir.path(), BTreeMap::new());
    context.sources = stage.sources(&config, base.path()).unwrap();
    let names: Vec<&str> = context.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "domain",
            "test/0000/test.pddl",
            "train/0000/p0.pddl",
            "train/0000/p1.pddl",
            "train/0000/p2.pddl"
        ]
    );
    let digest = stage.run(&config, &context).unwrap()["env"];
    let read = store.artifact(digest).unwrap();
    assert_eq!(read.meta["problems"], json!({ "train": 3, "valid": 0, "test": 1 }));
    let open = |artifact: &Artifact, split| SymbolicTask::open(&store, artifact, split);
    let (one, other) = (open(&drawn, Split::Test).unwrap(), open(&read, Split::Test).unwrap());
    assert_eq!((one.spec(), one.size(), other.size()), (other.spec(), 3, 1));
    let spec = one.spec();
    assert_eq!(spec.name, "symbolic/rules");
    assert!(
        spec.action_space.names().contains(&"action:pick/3".to_owned())
            && spec.action_space.names().contains(&"ball0".to_owned())
    );
    assert!(open(&read, Split::Valid).unwrap_err().hint.unwrap().contains("`valid`"));

    // Problems that are not of the subset.
    write("test.pddl", "(define (problem p) (:domain gripper) (:goal (or)))");
    context.sources = stage.sources(&config, base.path()).unwrap();
    let err = stage.run(&config, &context).unwrap_err();
    assert!(err.message.starts_with("`test.pddl`, line 1, column 46"), "{err}");
}

#[test]
fn golden() {
    let dir = tempfile::tempdir().unwrap();
    let stage = erase(super::Symbolic);
    let digest = |with: Value, context: &Context| {
        stage.run(&stage.resolve(with).unwrap(), context).unwrap()["env"].to_hex()
    };
    let proofs = digest(json!({ "depth": 4 }), &with_knowledge(dir.path(), &family()));
    let rules = digest(
        json!({ "task": "rules", "problems": 5, "size": 3, "steps": 9 }),
        &context(dir.path(), BTreeMap::new()),
    );
    insta::assert_snapshot!(format!("{proofs}\n{rules}"), @r"
    3765037f383e2f4cd355635d17788e2401a9d4e066d1eea3b42b7a044c0d9990
    db71cdde2bb22eed51bf3d942d2015021362556e997ebcba3383f4f4c794ce8a
    ");
}
