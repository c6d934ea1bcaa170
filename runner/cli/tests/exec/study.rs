//! `pipelines/rppo_options_study.yaml` with few seeds and markets: its table is that of its last stage.

use crate::Project;

fn shipped(name: &str) -> String {
    std::fs::read_to_string(format!("../../pipelines/{name}.yaml")).unwrap()
}

#[test]
#[ignore = "minutes: rules are searched in eight environments"]
fn the_study_ends_with_its_table() {
    let text = shipped("rppo_options_study")
        .replace("[101, 102, 103, 104, 105]", "[101, 102]")
        .replace("[2027, 2028, 2029]", "[2027, 2028]");
    let project = Project::new(text);
    project.write("rppo_options.yaml", shipped("rppo_options"));
    let settings = ["--profile", "quick", "--set", "timesteps=8192"];
    let ended = project.exec(&settings);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let shown = project.run(&["show", "latest/study.metrics"]).text();
    for wanted in [
        "| recurrent less | utility | **widest** | over worlds | over seeds | over both | over markets |",
        "| visible |",
        "| best_constant |",
        "mean of 2 markets and 4 test worlds",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    let again = project.exec(&settings);
    assert!(again.stages("ran").is_empty(), "{}", again.text());
}

/// awk prints other numbers under gawk than under mawk, and no shipped program needs it.
#[test]
fn no_shipped_program_is_one_of_awk() {
    for entry in std::fs::read_dir("../../pipelines").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("awk"), "{}", path.display());
    }
}
