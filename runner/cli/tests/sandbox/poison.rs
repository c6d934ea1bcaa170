//! Programs that write to their inputs and hide it: no stage may be recorded with what its key does not say.

use crate::{Mode, exec};
use runner_testkit::Project;

/// The cases of the fault table; each writes `evil` into the input `$f` if it can, and hides it.
const MANNERS: [(&str, &str); 7] = [
    (
        "touch -r",
        "touch -r $f ts; chmod u+w $f; printf 'evil\\n' > $f; chmod 444 $f; touch -r ts $f",
    ),
    (
        "cp -p",
        "cp -p $f copy; chmod u+w copy; printf 'evil\\n' > copy; touch -r $f copy; chmod u+w $f; cp -p copy \
        $f; chmod 444 $f",
    ),
    (
        "utimensat",
        "t=$(date -r $f +%s.%N); chmod u+w $f; printf 'evil\\n' | dd of=$f conv=notrunc 2> /dev/null; touch \
        -d @$t $f; chmod 444 $f",
    ),
    (
        "rename",
        "printf 'evil\\n' > new; touch -r $f new; chmod 444 new; mv -f new $f",
    ),
    (
        "append and truncate",
        "touch -r $f ts; chmod u+w $f; printf 'evil' >> $f; truncate -s 5 $f; touch -r ts $f",
    ),
    (
        "a link to it",
        "ln $f hard; touch -r $f ts; chmod u+w hard; printf 'evil\\n' > hard; touch -r ts hard",
    ),
    (
        "mmap",
        r#"touch -r $f ts; chmod u+w $f; python3 -c 'import mmap; f = open("'$f'", "r+b"); mmap.mmap(f.fileno(), 0)[0:5] = b"evil\n"'; touch -r ts $f"#,
    ),
];

fn pipeline(manner: &str) -> String {
    format!(
        "\
version: 1
name: poison
stages:
  a: {{ run: 'echo good > ${{outputs.x}}', outputs: {{ x: x.txt }} }}
  b:
    run: |
      f=${{needs.x}}
      set +e
      {manner}
      echo done > ${{outputs.o}}
    needs: {{ x: a }}
    outputs: {{ o: o.txt }}
  c:
    run: cat ${{needs.x}} > ${{outputs.o}}; cat ${{needs.order}} > /dev/null
    needs: {{ x: a, order: b }}
    outputs: {{ o: o.txt }}
"
    )
}

/// `c` holds what its key says, or `b` fails and nothing of it is cached; the store is sound, and the next
/// run of an honest reader as well.
pub(crate) fn inputs_are_not_poisoned(mode: Mode) {
    for (name, manner) in MANNERS {
        let project = Project::new(pipeline(manner));
        let ended = exec(&project, mode, &[]);
        match ended.code {
            0 => assert_eq!(project.output("c.o"), "good\n", "{name}"),
            _ => {
                assert_eq!(
                    ended.stages("failed"),
                    ["b"],
                    "{name}: {}{}",
                    ended.stdout,
                    ended.stderr
                );
                let error = ended.error("b");
                assert!(error.contains("modified one of its inputs"), "{name}: {error}");
            }
        }
        if mode == Mode::Namespaces {
            assert_eq!(ended.code, 0, "{name}: the input is read-only, and `b` does not mind");
        }
        let verified = project.run(&["cache", "verify"]);
        assert_eq!(verified.code, 0, "{name}: {}{}", verified.stdout, verified.stderr);
        project.write("p.yaml", pipeline("true"));
        assert_eq!(exec(&project, mode, &[]).code, 0, "{name}");
        assert_eq!(project.output("c.o"), "good\n", "{name}");
    }
}

/// A sibling that reads while the other writes.
pub(crate) fn a_sibling_is_not_poisoned(mode: Mode) {
    let project = Project::new(
        "\
version: 1
name: race
stages:
  a: { run: 'echo good > ${outputs.x}', outputs: { x: x.txt } }
  b:
    run: |
      sleep 0.2; f=${needs.x}
      set +e
      chmod u+w $f
      printf 'evil\\n' > $f
      for g in ../../../*/stage/needs/x/x.txt ../../../*/needs/x/x.txt; do chmod u+w $g; printf 'evil\\n' > \
$g; done
      sleep 0.4; echo done > ${outputs.o}
    needs: { x: a }
    outputs: { o: o.txt }
  c: { run: 'sleep 0.4; cat ${needs.x} > ${outputs.o}; sleep 0.6', needs: { x: a }, outputs: { o: o.txt } }
",
    );
    let ended = exec(&project, mode, &["--keep-going"]);
    assert_ne!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
    if mode == Mode::Namespaces {
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    }
    assert_eq!(exec(&project, mode, &["c"]).code, 0);
    assert_eq!(project.output("c.o"), "good\n");
    assert_eq!(project.run(&["cache", "verify"]).code, 0);
}

/// A program without isolation that writes to the inputs of an isolated one.
pub(crate) fn an_isolated_sibling_of_a_poisoner_is_not_recorded() {
    let project = Project::new(
        "\
version: 1
name: mixed
stages:
  a: { run: 'echo good > ${outputs.x}', outputs: { x: x.txt } }
  b:
    isolation: none
    run: |
      sleep 0.3
      set +e
      for g in ../../../*/stage/needs/x/x.txt; do
        touch -r $g ts; chmod u+w $g; printf 'evil\\n' > $g; touch -r ts $g
      done
      sleep 0.6; echo done > ${outputs.o}
    needs: { x: a }
    outputs: { o: o.txt }
  c: { run: 'sleep 0.7; cat ${needs.x} > ${outputs.o}', needs: { x: a }, outputs: { o: o.txt } }
",
    );
    let ended = project.run(&["exec", "p.yaml", "--json", "--keep-going", "--jobs", "2"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.error("c").contains("was modified while it ran"),
        "{}",
        ended.stderr
    );
    assert_eq!(exec(&project, Mode::Namespaces, &["c"]).code, 0);
    assert_eq!(project.output("c.o"), "good\n");
    assert_eq!(project.run(&["cache", "verify"]).code, 0);
}

/// The cases by which the faults were found.
pub(crate) fn findings(mode: Mode) {
    let touch = Project::new(
        "\
version: 1
name: poison
stages:
  a: { run: 'echo good > ${outputs.x}', outputs: { x: x.txt } }
  b: \
{ run: 'f=${needs.x}; touch -r $f ts; chmod u+w $f; printf \"evil\\n\" > $f; chmod 444 $f; touch -r ts $f; echo done > ${outputs.o}', needs: { x: a }, outputs: { o: o.txt } }
  c: \
{ run: 'cat ${needs.x} > ${outputs.o}; cat ${needs.order} > /dev/null', needs: { x: a, order: b }, outputs: { o: o.txt } }
",
    );
    let ended = exec(&touch, mode, &[]);
    assert_eq!((ended.code, ended.log().as_str()), (1, "ran a\nfailed b\nskipped c"));
    let race = Project::new(
        "\
version: 1
name: race
stages:
  a: { run: 'echo good > ${outputs.x}', outputs: { x: x.txt } }
  b: \
{ run: 'sleep 0.5; f=${needs.x}; chmod u+w $f; printf \"evil\\n\" > $f; sleep 1; echo done > ${outputs.o}', needs: { x: a }, outputs: { o: o.txt } }
  c: { run: 'sleep 1; cat ${needs.x} > ${outputs.o}; sleep 2', needs: { x: a }, outputs: { o: o.txt } }
",
    );
    let ended = exec(&race, mode, &["--keep-going"]);
    assert_eq!(
        (ended.code, ended.stages("ran")),
        (1, vec!["a".to_owned(), "c".to_owned()])
    );
    assert_eq!(race.run(&["cache", "verify"]).code, 0);
    assert_eq!(exec(&race, mode, &["c"]).log(), "cached a\ncached c");
    assert_eq!(race.output("c.o"), "good\n");
    let failing = Project::new(
        "\
version: 1
name: e
stages:
  s:
    run: |
      sh -c 'exit 3'
      echo partial > ${outputs.o}
    outputs: { o: o }
  p: { run: \"sh -c 'echo 1; exit 7' | cat > ${outputs.o}\", outputs: { o: o } }
",
    );
    let ended = exec(&failing, mode, &["--keep-going"]);
    assert_eq!((ended.code, ended.stages("failed").len()), (1, 2), "{}", ended.stdout);
}
