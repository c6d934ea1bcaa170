//! The leases on actions: a run waits for the holder and then looks the action up again, while a collector
//! removes lock files without a holder.

use crate::explore::{self, Model};
use Role::{Collector, Run};
use std::collections::BTreeMap;

/// A file, numbered in the order of creation.
type FileId = u8;

#[derive(Clone, Copy, Debug)]
struct Rules {
    /// The holder of a lock checks that its file still has the name.
    looks_at_name: bool,
    /// The collector removes only what it has locked itself.
    collector_locks: bool,
    /// The holder of the lock looks the action up once more.
    looks_up_again: bool,
}

const SOUND: Rules = Rules {
    looks_at_name: true,
    collector_locks: true,
    looks_up_again: true,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Run,
    Collector,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    LookUp,
    Open,
    Lock(FileId),
    LookAtName(FileId),
    LookUpAgain(FileId),
    Compute(FileId),
    Record(FileId),
    Remove(FileId),
    Unlock(FileId),
    Over,
}

/// Files, locks and actors.
#[derive(Clone, Debug, Hash)]
struct World {
    actors: Vec<(Role, At)>,
    /// The file that has the lock's name.
    named: Option<FileId>,
    made: u8,
    /// The holder of each file.
    held: BTreeMap<FileId, usize>,
    recorded: bool,
    computed: u8,
    deaths: u8,
    died: bool,
}

impl World {
    fn new(roles: &[Role], deaths: u8) -> Self {
        let first = |&role: &Role| match role {
            Run => (role, At::LookUp),
            Collector => (role, At::Open),
        };
        Self {
            actors: roles.iter().map(first).collect(),
            named: None,
            made: 0,
            held: BTreeMap::new(),
            recorded: false,
            computed: 0,
            deaths,
            died: false,
        }
    }

    /// The next step of an actor; none when it waits or has ended.
    fn step(&self, who: usize, rules: Rules) -> Option<Self> {
        let mut world = self.clone();
        let (role, at) = self.actors[who];
        let run = role == Run;
        let next = match at {
            At::LookUp if self.recorded => At::Over,
            At::LookUp => At::Open,
            At::Open => {
                let file = self.named.unwrap_or(self.made);
                if self.named.is_none() {
                    world.made += 1;
                    world.named = Some(file);
                }
                if run || rules.collector_locks {
                    At::Lock(file)
                } else {
                    At::Remove(file)
                }
            }
            At::Lock(file) => match self.held.contains_key(&file) {
                // A run waits, the collector tries.
                true if run => return None,
                true => At::Over,
                false => {
                    world.held.insert(file, who);
                    if rules.looks_at_name {
                        At::LookAtName(file)
                    } else {
                        Self::locked(run, file, rules)
                    }
                }
            },
            At::LookAtName(file) if self.named == Some(file) => Self::locked(run, file, rules),
            At::LookAtName(file) => {
                world.held.remove(&file);
                At::Open
            }
            At::LookUpAgain(file) if self.recorded => At::Unlock(file),
            At::LookUpAgain(file) => At::Compute(file),
            At::Compute(file) => {
                world.computed += 1;
                At::Record(file)
            }
            At::Record(file) => {
                world.recorded = true;
                At::Unlock(file)
            }
            At::Remove(file) => {
                world.named = None;
                At::Unlock(file)
            }
            At::Unlock(file) => {
                if self.held.get(&file) == Some(&who) {
                    world.held.remove(&file);
                }
                At::Over
            }
            At::Over => return None,
        };
        world.actors[who].1 = next;
        Some(world)
    }

    fn locked(run: bool, file: FileId, rules: Rules) -> At {
        match run {
            true if rules.looks_up_again => At::LookUpAgain(file),
            true => At::Compute(file),
            false => At::Remove(file),
        }
    }
}

impl Model for World {
    type Rules = Rules;

    fn successors(&self, rules: &Rules) -> Vec<(usize, Self)> {
        let mut all = Vec::new();
        for who in 0..self.actors.len() {
            all.extend(self.step(who, *rules).map(|world| (who, world)));
            if self.deaths > 0 && self.actors[who].1 != At::Over {
                let mut dead = self.clone();
                dead.deaths -= 1;
                dead.died = true;
                dead.held.retain(|_, holder| *holder != who);
                dead.actors[who].1 = At::Over;
                all.push((who, dead));
            }
        }
        all
    }

    fn check(&self) -> Result<(), String> {
        let computing = |(_, at): &&(Role, At)| matches!(at, At::Compute(_) | At::Record(_));
        if self.actors.iter().filter(computing).count() > 1 {
            return Err("two compute one action at once".to_owned());
        }
        if self.computed > 1 && !self.died {
            return Err("an action was computed twice".to_owned());
        }
        Ok(())
    }

    fn check_end(&self, _: &Rules) -> Result<(), String> {
        if self.actors.iter().any(|(_, at)| *at != At::Over) {
            return Err("somebody waits for ever".to_owned());
        }
        if !self.recorded && !self.died && self.actors.iter().any(|(role, _)| *role == Run) {
            return Err("nobody has computed it".to_owned());
        }
        Ok(())
    }

    fn describe(&self, who: usize) -> String {
        format!("{who}: {:?}", self.actors[who])
    }
}

const CASES: [(&[Role], u8); 5] = [
    (&[Run, Run, Run], 0),
    (&[Run, Run, Collector], 1),
    (&[Run, Run, Collector, Collector], 0),
    (&[Run, Run, Run, Collector], 2),
    (&[Run, Collector, Collector], 2),
];

fn explore_all(rules: Rules) -> Result<usize, explore::Violation> {
    let counts = CASES
        .iter()
        .map(|(roles, deaths)| explore::all(World::new(roles, *deaths), &rules));
    counts.sum()
}

#[test]
fn an_action_is_computed_once() {
    let states = explore_all(SOUND).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(states > 1_000, "{states}");
}

#[test]
fn each_rule_is_needed() {
    let without = [
        Rules {
            looks_at_name: false,
            ..SOUND
        },
        Rules {
            collector_locks: false,
            ..SOUND
        },
        Rules {
            looks_up_again: false,
            ..SOUND
        },
    ];
    let found: Vec<String> = without
        .into_iter()
        .map(|rules| {
            explore_all(rules)
                .expect_err("a rule is left out, and nothing goes wrong")
                .what
        })
        .collect();
    assert!(
        found[..2].iter().all(|what| what == "two compute one action at once"),
        "{found:?}"
    );
    assert_eq!(found[2], "an action was computed twice");
}
