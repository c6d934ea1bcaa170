//! Programs that write to their inputs, or to those of a sibling that is reading them, and put the times
//! back.

use crate::lab::{Chance, Digests, Ended, Lab};
use crate::tally::Tally;
use crate::tools::NAMESPACES;

/// The manners; each writes `evil` into the file `$f` if it can, and hides it.
const MANNERS: [(&str, &str); 5] = [
    (
        "touch -r after the write",
        "touch -r $f ts; chmod u+w $f; printf 'evil\\n' > $f; chmod 444 $f; touch -r ts $f",
    ),
    (
        "cp -p over it",
        "cp -p $f copy; chmod u+w copy; printf 'evil\\n' > copy; touch -r $f copy; chmod u+w $f; cp -p copy \
        $f; chmod 444 $f",
    ),
    (
        "another file with its times renamed over it, as rsync -t",
        "printf 'evil\\n' > new; touch -r $f new; chmod 444 new; mv -f new $f",
    ),
    (
        "truncate and append, with the time restored",
        "t=$(date -r $f +%s.%N); chmod u+w $f; truncate -s 0 $f; printf 'evil\\n' >> $f; touch -d @$t $f; \
        chmod 444 $f",
    ),
    (
        "a write through mmap",
        r#"touch -r $f ts; chmod u+w $f; python3 -c 'import mmap; f = open("'$f'", "r+b"); mmap.mmap(f.fileno(), 0)[0:5] = b"evil\n"'; touch -r ts $f"#,
    ),
];

/// The isolation of the whole run, and of the poisoner.
const MODES: [(&str, &str); 3] = [("required", "required"), ("none", "none"), ("required", "none")];

/// `b` poisons its own input, and what it sees of `c`'s, while `c` reads; `d` reads afterwards.
fn pipeline(manner: &str, isolation: &str, waits: [usize; 3]) -> String {
    let [before, after, read] = waits;
    format!(
        "\
version: 1
name: poison
stages:
  a: {{ run: 'echo good > ${{outputs.x}}', outputs: {{ x: x.txt }} }}
  b:
    isolation: {isolation}
    run: |
      own=${{needs.x}}
      sleep 0.0{before:02}
      set +e
      shopt -s nullglob
      for f in $own ../../../*/stage/needs/x/x.txt ../../../*/needs/x/x.txt; do
        {manner}
      done
      sleep 0.0{after:02}
      echo done > ${{outputs.o}}
    needs: {{ x: a }}
    outputs: {{ o: o.txt }}
  c: \
{{ run: 'sleep 0.0{read:02}; cat ${{needs.x}} > ${{outputs.o}}; sleep 0.01', needs: {{ x: a }}, outputs: {{ o: o.txt }} }}
  d: \
{{ run: 'cat ${{needs.x}} > ${{outputs.o}}; cat ${{needs.order}} > /dev/null', needs: {{ x: a, order: b }}, outputs: {{ o: o.txt }} }}
"
    )
}

fn exec(lab: &Lab, isolation: &str, args: &[&str]) -> Ended {
    lab.exec(&[&["--isolation", isolation, "--jobs", "3"], args].concat())
}

/// Checks that the recorded digests are those of an honest run, and that each failure names the cause.
fn one(lab: &Lab, manner: &str, (isolation, of_poisoner): (&str, &str), waits: [usize; 3]) -> &'static str {
    lab.wipe();
    let honest = |lab: &Lab| -> Digests {
        lab.write("p.yaml", pipeline("true", of_poisoner, waits));
        let ended = exec(lab, isolation, &[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        ended.digests()
    };
    lab.write("p.yaml", pipeline(manner, of_poisoner, waits));
    let ended = exec(lab, isolation, &["--keep-going"]);
    let outcome = match ended.code {
        0 => "the write was kept out: the same digests",
        1 => {
            let failed = ended.stages("failed");
            assert!(!failed.is_empty(), "{}", ended.text());
            for stage in failed {
                let error = ended.error(&stage);
                assert!(error.contains("modified"), "{manner}: {stage}: {error}");
            }
            "reported, exit 1; then the same digests"
        }
        code => panic!("{manner}: exit code {code}: {}", ended.text()),
    };
    let verified = lab.run(&["cache", "verify"]);
    assert_eq!(verified.code, 0, "{manner}: {}", verified.text());
    // Whatever was recorded in spite of it is used now.
    let reference = honest(lab);
    lab.recorded_nothing_wrong(&ended, &reference, manner);
    let undisturbed = Lab::new("");
    assert_eq!(honest(&undisturbed), reference, "{manner}");
    outcome
}

/// Each manner in each isolation, a given number of times; nothing in isolation where there is none.
pub(crate) fn every_manner(times: usize) -> Vec<Tally> {
    let mut chance = Chance::new(21);
    let lab = Lab::new("");
    let tallies = MANNERS.into_iter().map(|(name, manner)| {
        let fault = format!("a program poisons inputs: {name}");
        let mut tally = Tally::new(&fault);
        for i in 0..times {
            let mode = MODES[i % MODES.len()];
            if mode.0 != "none" && !*NAMESPACES {
                continue;
            }
            let waits = [chance.below(20), chance.below(20), chance.below(30)];
            tally.count(one(&lab, manner, mode, waits));
        }
        tally
    });
    tallies.collect()
}

pub(crate) fn inputs_are_poisoned() {
    every_manner(3);
}
