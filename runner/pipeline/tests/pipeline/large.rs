//! Large pipelines. A loop over all pairs of 30,000 stages would be seen in how long these take.

use crate::{bad, good};
use runner_pipeline::select;
use std::fmt::Write as _;

#[test]
fn a_file_of_thirty_thousand_stages() {
    let mut text = "version: 1\nname: a\nparams: { word: w }\nstages:\n".to_owned();
    for i in 0..30_000_usize {
        let _ = write!(
            text,
            "  s{i}: {{ run: \"echo ${{params.word}} > ${{outputs.x}}\", outputs: {{ x: x.txt }}"
        );
        if let Some(before) = i.checked_sub(10) {
            let _ = write!(text, ", needs: {{ a: s{before} }}");
        }
        text.push_str(" }\n");
    }
    let pipeline = good(&text, &[]);
    assert_eq!(pipeline.nodes.len(), 30_000);
    assert_eq!(select(&pipeline, &["s29999".to_owned()]).unwrap().len(), 3_000);
}

#[test]
fn a_matrix_of_thirty_thousand_points() {
    // Three stages of 10,000 points each, by two ways, and one that collects them.
    let text = "\
version: 1
name: a
stages:
  a: \
{ run: 'echo ${matrix.x} ${matrix.y} > ${outputs.o}', outputs: { o: o }, matrix: { x: { from: 1, to: 100 }, y: { from: 1, to: 100 } } }
  b: { run: 'cp ${needs.a} ${outputs.o}', outputs: { o: o }, needs: { a: a } }
  c: { run: 'cat ${needs.a} ${needs.b} > ${outputs.o}', outputs: { o: o }, needs: { a: a, b: b } }
  by_x: { run: 'true', needs: { all: { collect: c, over: [y] } } }
  all: { run: 'true', needs: { all: { collect: c } } }
";
    let pipeline = good(text, &[]);
    assert_eq!(pipeline.nodes.len(), 30_101);
    let node = |id: &str| pipeline.nodes.iter().position(|node| node.id == id).unwrap();
    let needs = |id: &str| pipeline.graph.needs(node(id)).count();
    assert_eq!(
        (needs("c[x=7,y=9]"), needs("by_x[x=7]"), needs("all")),
        (2, 100, 10_000)
    );
    let c = &pipeline.nodes[node("c[x=7,y=9]")];
    assert_eq!(c.needs["b"][0].node, node("b[x=7,y=9]"));
}

#[test]
fn more_stages_than_anyone_means_are_refused() {
    let text = "version: 1\nname: a\nstages:\n  a: \
        { run: 'true', matrix: { x: { from: 1, to: 1000 }, y: { from: 1, to: 1000 } } }\n";
    assert!(bad(text, &[]).contains("`a` has more than 100000 points"));
}
