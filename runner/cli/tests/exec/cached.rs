//! Hits and misses: the stages that run again, and those that do not.

use crate::Project;

const CHAIN: &str = "\
version: 1
name: chain
params: { word: hello }
stages:
  a:
    run: cat seed.txt > ${outputs.text}
    files: [seed.txt]
    outputs: { text: a.txt }
  b:
    run: wc -l < ${needs.text} > ${outputs.lines}
    needs: { text: a.text }
    outputs: { lines: b.txt }
  c:
    run: echo ${params.word} $(cat ${needs.lines}) > ${outputs.said}
    needs: { lines: b.lines }
    outputs: { said: c.txt }
";

fn chain() -> Project {
    let project = Project::new(CHAIN);
    project.write("seed.txt", "one\ntwo\n");
    project
}

#[test]
fn second_run_is_cached() {
    let project = chain();
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    insta::assert_snapshot!(first.log(), @r"
    ran a
    ran b
    ran c
    ");
    assert_eq!(project.output("c.said"), "hello 2\n");
    let second = project.exec(&[]);
    insta::assert_snapshot!(second.log(), @r"
    cached a
    cached b
    cached c
    ");
    assert_eq!(first.digests(), second.digests());
}

#[test]
fn an_edit_reaches_what_depends_on_it() {
    let project = chain();
    project.exec(&[]);
    insta::assert_snapshot!(project.exec(&["--set", "word=bye"]).log(), @r"
    cached a
    cached b
    ran c
    ");
    insta::assert_snapshot!(project.exec(&["--force", "b"]).log(), @r"
    cached a
    ran b
    cached c
    ");
    insta::assert_snapshot!(project.exec(&["b"]).log(), @r"
    cached a
    cached b
    ");
}

#[test]
fn equal_bytes_cut_off_early() {
    let project = chain();
    project.exec(&[]);
    // Other contents, as many lines: `b` gives the same bytes, so that `c` need not run.
    project.write("seed.txt", "uno\ndos\n");
    insta::assert_snapshot!(project.exec(&[]).log(), @r"
    ran a
    ran b
    cached c
    ");
}

#[test]
fn names_order_comments_and_places_do_not_count() {
    let project = chain();
    let first = project.exec(&[]);
    let renamed = "\
# A comment.
name: another
stages:
  third:
    outputs: { said: c.txt }
    needs: { lines: second.lines }
    run: echo ${params.word} $(cat ${needs.lines}) > ${outputs.said}
  second:
    needs: { text: first.text }
    outputs: { lines: b.txt }
    run: \"wc -l < ${needs.text} > ${outputs.lines}\"
    resources: { threads: 1 }
    retries: 2
    timeout: 1h
  first:
    outputs: { text: a.txt }   # Another comment.
    files:
      - seed.txt
    run: cat seed.txt > ${outputs.text}
version: 1
params:
  word: hello
";
    project.write("elsewhere/deep/p.yaml", renamed);
    project.write("elsewhere/deep/seed.txt", "one\ntwo\n");
    let second = project.run(&["exec", "elsewhere/deep/p.yaml", "--json", "--jobs", "1"]);
    insta::assert_snapshot!(second.log(), @r"
    cached first
    cached second
    cached third
    ");
    assert!(first.digests().values().eq(second.digests().values()));
}

#[test]
fn a_matrix_fans_out() {
    let project = Project::new(
        "\
version: 1
name: fan
stages:
  point:
    matrix: { seed: [1, 2], size: [10, 20] }
    run: echo ${matrix.seed} ${matrix.size} > ${outputs.x}
    outputs: { x: x.txt }
  twice:
    run: cat ${needs.x} ${needs.x} > ${outputs.y}
    needs: { x: point.x }
    outputs: { y: y.txt }
  all:
    run: cat ${needs.y} > ${outputs.z}
    needs: { y: 'twice[*].y' }
    outputs: { z: z.txt }
",
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    insta::assert_snapshot!(ended.log(), @r"
    ran point[seed=1,size=10]
    ran point[seed=1,size=20]
    ran point[seed=2,size=10]
    ran point[seed=2,size=20]
    ran twice[seed=1,size=10]
    ran twice[seed=1,size=20]
    ran twice[seed=2,size=10]
    ran twice[seed=2,size=20]
    ran all
    ");
    assert_eq!(
        project.output("all.z"),
        "1 10\n1 10\n1 20\n1 20\n2 10\n2 10\n2 20\n2 20\n"
    );
    insta::assert_snapshot!(project.exec(&["twice[seed=2,size=10]"]).log(), @r"
    cached point[seed=2,size=10]
    cached twice[seed=2,size=10]
    ");
}

#[test]
fn an_edited_source_is_noticed() {
    let project = chain();
    project.exec(&[]);
    project.write("seed.txt", "one\ntwo\nthree\n");
    insta::assert_snapshot!(project.exec(&[]).log(), @r"
    ran a
    ran b
    ran c
    ");
    project.write("seed.txt", "one\ntwo\n");
    insta::assert_snapshot!(project.exec(&[]).log(), @r"
    cached a
    cached b
    cached c
    ");
}
