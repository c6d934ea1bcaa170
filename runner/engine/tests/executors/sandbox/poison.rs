//! Programs that write to their inputs and hide it: no stage may be recorded with what its key does not say.

use super::{Mode, exec, setup};
use crate::{Lab, PipelineText, Setup, pipeline};

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

/// `a` makes an input of `b`, which has it in `$f`, and of the honest reader `c`.
fn poisoned(manner: &str, reader: &str) -> PipelineText {
    pipeline("poison")
        .run("a", "echo good > ${outputs.x}")
        .run("b", &format!("f=${{needs.x}}\n{manner}\necho done > ${{outputs.o}}"))
        .needs("x", "a")
        .run("c", reader)
        .needs("x", "a")
}

/// `c` runs after `b`.
fn in_order(manner: &str) -> PipelineText {
    poisoned(manner, "cat ${needs.x} > ${outputs.o}; cat ${needs.order} > /dev/null").needs("order", "b")
}

fn keep_going(mode: Mode) -> Setup {
    Setup {
        keep_going: true,
        ..setup(mode)
    }
}

/// Nothing in the store is damaged.
fn is_sound(lab: &Lab, what: &str) {
    let report = lab.store().verify(|_| {}).unwrap();
    assert_eq!((report.damaged, report.missing), (Vec::new(), Vec::new()), "{what}");
    assert!(report.actions_removed.is_empty(), "{what}");
}

/// `c` reads what its key says.
fn reads_well(lab: &Lab, text: &PipelineText, mode: Mode, what: &str) {
    let only = Setup {
        only: vec!["c"],
        ..setup(mode)
    };
    let ran = lab.run_with(text, only);
    assert_eq!(lab.text(ran.outputs("c")["o"]), "good\n", "{what}");
}

/// `c` holds what its key says, or `b` fails and nothing of it is cached; the store is sound, and the next
/// run of an honest reader as well.
pub(crate) fn inputs_are_not_poisoned(mode: Mode) {
    for (name, manner) in MANNERS {
        let lab = Lab::with_workers();
        let ran = exec(&lab, in_order(&format!("set +e\n{manner}")), mode);
        match ran.summary.exit_code() {
            0 => assert_eq!(lab.text(ran.outputs("c")["o"]), "good\n", "{name}"),
            _ => {
                assert!(
                    ran.error("b").contains("modified one of its inputs"),
                    "{name}: {}",
                    ran.log
                );
                assert!(ran.log.contains("1 failed, 1 skipped"), "{name}: {}", ran.log);
                // In namespaces, the input is read-only, and `b` does not mind.
                assert_ne!(mode, Mode::Namespaces, "{name}: {}", ran.log);
            }
        }
        is_sound(&lab, name);
        reads_well(&lab, &in_order("true"), mode, name);
    }
}

/// A sibling that reads while the other writes, to its own input and to those of others.
pub(crate) fn a_sibling_is_not_poisoned(mode: Mode) {
    let evil = "sleep 0.2
set +e
chmod u+w $f
printf 'evil\\n' > $f
for g in ../../../*/stage/needs/x/x.txt ../../../*/needs/x/x.txt; do chmod u+w $g; printf 'evil\\n' > $g; done
sleep 0.4";
    let text = poisoned(evil, "sleep 0.4; cat ${needs.x} > ${outputs.o}; sleep 0.6");
    let lab = Lab::with_workers();
    let code = lab.run_with(&text, keep_going(mode)).summary.exit_code();
    assert_ne!(code, 3);
    assert!(mode != Mode::Namespaces || code == 0, "{code}");
    reads_well(&lab, &text, mode, "siblings");
    is_sound(&lab, "siblings");
}

/// The cases by which the faults were found: a writer whose failure is noticed, before and beside a reader.
pub(crate) fn what_comes_after_a_poisoner_is_sound(mode: Mode) {
    let lab = Lab::with_workers();
    let ran = exec(&lab, in_order(MANNERS[0].1), mode);
    assert_eq!(ran.statuses(), "ran a\nfailed b\nskipped c", "{}", ran.log);
    let beside = poisoned(
        "sleep 0.5; chmod u+w $f; printf \"evil\\n\" > $f; sleep 0.3",
        "sleep 0.6; cat ${needs.x} > ${outputs.o}; sleep 0.5",
    );
    let ran = lab.run_with(&beside, keep_going(mode));
    assert!(ran.log.contains("b failed") && ran.log.contains("c ran"), "{}", ran.log);
    is_sound(&lab, "beside");
    reads_well(&lab, &beside, mode, "beside");
}

/// A program without isolation that writes to the inputs of an isolated one.
pub(crate) fn an_isolated_sibling_of_a_poisoner_is_not_recorded() {
    let evil = "sleep 0.3
set +e
for g in ../../../*/stage/needs/x/x.txt; do
  touch -r $g ts; chmod u+w $g; printf 'evil\\n' > $g; touch -r ts $g
done
sleep 0.6";
    let text = pipeline("mixed")
        .run("a", "echo good > ${outputs.x}")
        .run("c", "sleep 0.7; cat ${needs.x} > ${outputs.o}")
        .needs("x", "a")
        .run("b", &format!("{evil}\necho done > ${{outputs.o}}"))
        .needs("x", "a")
        .set("isolation", "none");
    let lab = Lab::with_workers();
    let auto = Setup {
        keep_going: true,
        ..Setup::jobs(2)
    };
    let error = lab.run_with(&text, auto).error("c");
    assert!(error.contains("was modified while it ran"), "{error}");
    // The damage that it did is found, and mended by the next run.
    reads_well(&lab, &text, Mode::Namespaces, "mixed");
    is_sound(&lab, "mixed");
}
