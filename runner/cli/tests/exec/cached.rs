//! Hits and misses, as the command line asks for them and shows them.

use crate::Project;
use runner_testkit::pipeline;

#[test]
fn what_is_edited_and_what_is_forced_runs_again() {
    let project = Project::new(
        pipeline("chain")
            .param("word", "hello")
            .run("a", "cat seed.txt > ${outputs.text}")
            .set("files", "[seed.txt]")
            .run("b", "wc -l < ${needs.text} > ${outputs.lines}")
            .needs("text", "a.text")
            .run("c", "echo ${params.word} $(cat ${needs.lines}) > ${outputs.said}")
            .needs("lines", "b.lines"),
    );
    project.write("seed.txt", "one\ntwo\n");
    let first = project.exec(&[]);
    assert_eq!(
        (first.code, first.log().as_str()),
        (0, "ran a\nran b\nran c"),
        "{}",
        first.stderr
    );
    assert_eq!(project.output("c.said"), "hello 2\n");
    let second = project.exec(&[]);
    assert_eq!(second.log(), "cached a\ncached b\ncached c");
    assert_eq!(first.digests(), second.digests());
    assert_eq!(project.exec(&["--set", "word=bye"]).log(), "cached a\ncached b\nran c");
    assert_eq!(project.exec(&["--force", "b"]).log(), "cached a\nran b\ncached c");
    assert_eq!(project.exec(&["b"]).log(), "cached a\ncached b");
    // Other contents, as many lines: `b` gives the same bytes, so that `c` need not run.
    project.write("seed.txt", "uno\ndos\n");
    assert_eq!(project.exec(&[]).log(), "ran a\nran b\ncached c");
}
