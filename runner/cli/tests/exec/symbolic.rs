//! `pipelines/symbolic.yaml`: proofs about families that it makes; paths in a folder's knowledge base, and
//! proofs with rules that are mined from it.

use crate::Project;
use runner_testkit::Ended;

fn project() -> Project {
    Project::new(std::fs::read_to_string("../../pipelines/symbolic.yaml").unwrap())
}

/// The first and the last mean return of the training.
fn returns(ended: &Ended) -> [f64; 2] {
    let events = ended.events();
    let of_training = events.iter().filter(|event| {
        event["event"] == "metric" && event["stage"] == "train" && event["name"] == "charts/episodic_return"
    });
    let values: Vec<f64> = of_training.map(|event| event["value"].as_f64().unwrap()).collect();
    [values[0], values[values.len() - 1]]
}

#[test]
fn proofs_about_made_families_are_learned() {
    let ended = project().exec(&["--set", "timesteps=200000"]);
    assert_eq!(
        ended.stages("ran"),
        ["families", "knowledge", "rules", "env", "train", "evaluate"],
        "{}",
        ended.text()
    );
    // Random actions are right in 0.6 of the episodes, which is a return of 0.2.
    let [first, last] = returns(&ended);
    assert!(first < 0.4 && last > 0.6, "{first} {last}");
}

/// The files of a folder take the families' place: a ring of people who each like the next one.
#[test]
fn a_folder_takes_the_place_of_the_families() {
    let project = project();
    let likes = |people: std::ops::Range<usize>| -> String {
        people
            .map(|i| format!("likes(p{i},p{}).\nis_liked(p{},p{i}).\n", (i + 1) % 12, (i + 1) % 12))
            .collect()
    };
    project.write("ring/train.nl", likes(0..8));
    project.write("ring/dev.nl", likes(8..10));
    project.write("ring/test.nl", likes(10..12));
    project.write("ring/entities.txt", "p0\np1\n");
    let ended = project.exec(&["--set", "data=ring", "--set", "task=paths", "--set", "timesteps=120000"]);
    assert_eq!(
        ended.stages("ran"),
        ["families", "knowledge", "rules", "env", "train", "evaluate"],
        "{}",
        ended.text()
    );
    // A fact that is hidden is still there as its inverse, `is_liked`.
    let [first, last] = returns(&ended);
    assert!(first < 0.4 && last > 0.6, "{first} {last}");
    let refused = project.exec(&["--set", "data=nowhere"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.text().contains("there is no folder `nowhere`"),
        "{}",
        refused.text()
    );
}

/// A folder of facts without rules: they are mined, and proofs are made of them.
#[test]
fn rules_are_mined_where_a_folder_has_none() {
    let project = project();
    let parents: String = (0..60)
        .map(|i| format!("a{i}\tparent\tb{i}\nb{i}\tparent\tc{i}\n"))
        .collect();
    let asked = |chains: std::ops::Range<usize>| -> String {
        chains.map(|i| format!("a{i}\tgrandparent\tc{i}\n")).collect()
    };
    project.write("chains/facts.txt", &parents);
    project.write("chains/train.txt", asked(0..40));
    project.write("chains/valid.txt", asked(40..50));
    project.write("chains/test.txt", asked(50..60));
    let ended = project.exec(&["--set", "data=chains", "--set", "timesteps=60000"]);
    assert_eq!(
        ended.stages("ran"),
        ["families", "knowledge", "rules", "env", "train", "evaluate"],
        "{}",
        ended.text()
    );
    let metric = |stage: &str, name: &str| {
        let events = ended.events();
        let is_it = |event: &&serde_json::Value| event["stage"] == stage && event["name"] == name;
        events.iter().find(is_it).map(|event| event["value"].as_f64().unwrap())
    };
    assert_eq!(metric("rules", "rules"), Some(1.0));
    assert_eq!(metric("rules", "mean_confidence"), Some(40.0 / 60.0));
    // Nothing else proves a grandparent; none of those asked for is in the graph.
    assert_eq!(metric("evaluate", "success"), Some(1.0), "{}", ended.text());
    assert_eq!(metric("evaluate", "false_proofs"), Some(0.0));
}
