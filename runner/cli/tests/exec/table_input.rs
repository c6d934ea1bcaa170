//! The output of a program, ingested: `pipelines/program_table.yaml`.

use crate::Project;

fn project() -> (Project, String) {
    let text = std::fs::read_to_string("../../pipelines/program_table.yaml").unwrap();
    (Project::new(&text), text)
}

#[test]
fn the_output_of_a_program_is_ingested_by_its_contents() {
    let (project, text) = project();
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    assert_eq!(first.stages("ran"), ["export", "bars", "features"]);
    assert!(!first.stderr.contains("not in its key"), "{}", first.stderr);

    // Another program with the same output.
    project.write("p.yaml", text.replace("# 2024 begins", "# The year begins"));
    let again = project.exec(&[]);
    assert_eq!(again.stages("ran"), ["export"], "{}", again.text());
    assert_eq!(again.digests(), first.digests());

    let longer = project.exec(&["--set", "months=7"]);
    assert_eq!(longer.stages("ran"), ["export", "bars", "features"]);
}

#[test]
fn a_table_beside_a_path_is_refused_before_anything_runs() {
    let (project, text) = project();
    project.write(
        "p.yaml",
        text.replace("with: { calendar: weekends }", "with: { path: p.yaml }"),
    );
    let both = project.exec(&[]);
    assert_eq!(both.code, 2);
    assert!(
        both.stderr.contains("`path` of `bars`: files are given twice"),
        "{}",
        both.stderr
    );

    project.write("p.yaml", text.replace("needs: { table: export.bars }", ""));
    let neither = project.exec(&[]);
    assert!(
        neither.stderr.contains("`path` of `bars`: no file is given"),
        "{}",
        neither.stderr
    );

    project.write("p.yaml", text.replace("table: export.bars", "table: features"));
    let typed = project.exec(&[]);
    assert!(
        typed.stderr.contains("has no output of type `file`"),
        "{}",
        typed.stderr
    );
}
