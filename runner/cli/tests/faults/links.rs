//! File systems that can do less.

use crate::lab::{Ended, Lab, QUICK, runner};
use crate::tally::Tally;
use crate::tools::{NO_STRACE, STRACE, strace};

/// No hard links, no clones of blocks, no exchange of names: as NFS and many others.
const NO_LINKS: [&str; 3] = [
    "inject=link,linkat:error=EPERM",
    "inject=renameat2:error=EINVAL",
    "inject=copy_file_range:error=EXDEV",
];

pub(crate) fn none(times: usize) -> Tally {
    let fault = "a file system without hard links";
    if !*STRACE {
        return Tally::skipped(fault, NO_STRACE);
    }
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let mut tally = Tally::new(fault);
    for _ in 0..times {
        lab.wipe();
        for _ in 0..2 {
            let mut command =
                strace(&[&["trace=link,linkat,renameat2,copy_file_range"], &NO_LINKS[..]].concat());
            lab.at_home(&mut command)
                .arg(runner())
                .args(["exec", "p.yaml", "--json"]);
            let run = Ended::from(command.output().unwrap());
            assert_eq!(run.code, 0, "{}", run.text());
            assert_eq!(run.digests(), reference);
        }
        lab.complete();
        lab.sweep();
        tally.count("the same digests");
    }
    tally
}

/// Without locks two runs could not know of each other: it is refused.
pub(crate) fn no_locks(times: usize) -> Tally {
    let fault = "a file system without locks";
    if !*STRACE {
        return Tally::skipped(fault, NO_STRACE);
    }
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let mut tally = Tally::new(fault);
    for _ in 0..times {
        let mut command = strace(&["trace=flock", "inject=flock:error=ENOLCK"]);
        lab.at_home(&mut command)
            .arg(runner())
            .args(["exec", "p.yaml", "--json"]);
        let run = Ended::from(command.output().unwrap());
        assert_eq!(run.code, 3, "{}", run.text());
        assert!(run.stderr.contains("lock"), "{}", run.text());
        lab.ends_well(&reference, &Default::default());
        lab.wipe();
        tally.count("reported, exit 3");
    }
    tally
}

pub(crate) fn less_able_file_systems() {
    none(1);
    no_locks(1);
}
