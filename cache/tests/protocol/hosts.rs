//! The leases of a store that several hosts share: owners, numbered holders of one lock, and collections,
//! each actor on a host of its own, whose view of the server's directories may be old.
//!
//! An actor may be killed, or stopped and woken later; then a renewal that it had begun may still reach the
//! server. Time passes in ticks, of which a takeover takes three.

use crate::explore::{self, Model, Violation};
use Role::{Collector, Run};
use std::collections::BTreeMap;

/// Ticks without a change after which an observer takes an owner for dead.
const TAKEOVER: u8 = 3;
/// Ticks without a renewal after which an owner takes itself for lost.
const LOST: u8 = 2;
const TICKS: u8 = 4;

#[derive(Clone, Copy, Debug, Hash)]
struct Rules {
    /// An owner and a collector create their file before they list the directory, which refreshes the view.
    creates_before_listing: bool,
    /// The holder of a number is made by a hard link, of which one wins.
    links: bool,
    /// A lock that is released keeps its number.
    keeps_numbers: bool,
    /// An owner takes itself for lost by its own clock.
    watches_clock: bool,
    /// It stays lost when it is renewed again.
    for_good: bool,
    /// An owner is dead only when it has not changed for the whole time.
    waits: bool,
    /// An observer opens the owner's file, so that its view of it is the server's.
    opens: bool,
    /// A collector begins an epoch by a link to its marker, which its successor has removed.
    fences: bool,
    /// A collector removes the locks of earlier epochs only.
    epochs: bool,
}

const SOUND: Rules = Rules {
    creates_before_listing: true,
    links: true,
    keeps_numbers: true,
    watches_clock: true,
    for_good: true,
    waits: true,
    opens: true,
    fences: true,
    epochs: true,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Run,
    Collector,
}

type Actor = usize;
/// The largest number of actors.
const MOST: usize = 3;
type Owners = [Option<u8>; MOST];
type Markers = [bool; MOST];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Create,
    Mark,
    List,
    /// Removes the marker of a dead collector, and lists again.
    RemoveMarker(Actor),
    /// Removes its files, and begins again.
    BackOff,
    /// Begins an epoch, after the one it has seen.
    Begin,
    Sweep,
    /// Looks for the next number after this one.
    Scan(u8),
    Link(u8),
    Hold(u8),
    Release(u8),
    Leave,
    Over,
}

#[derive(Clone, Debug, Hash)]
struct State {
    role: Role,
    at: At,
    /// Its epoch.
    epoch: u8,
    /// The time of its last renewal, by its own clock.
    renewed: u8,
    lost: bool,
    stopped: bool,
    /// For each other: the time of the last change that it has seen, and when it saw it first.
    seen: [Option<(u8, u8)>; MOST],
}

/// The server's files, and the actors.
#[derive(Clone, Debug, Hash)]
struct World {
    actors: Vec<State>,
    now: u8,
    /// The files of owners, with the time of their last change.
    owners: Owners,
    markers: Markers,
    epoch: u8,
    /// The holders of the lock by epoch and number; `None` where it is free.
    locks: BTreeMap<(u8, u8), Option<Actor>>,
    deaths: u8,
    stops: u8,
    rules: Rules,
}

impl World {
    fn new(roles: &[Role], deaths: u8, stops: u8, rules: Rules) -> Self {
        let state = |&role: &Role| State {
            role,
            at: At::Create,
            epoch: 0,
            renewed: 0,
            lost: false,
            stopped: false,
            seen: [None; MOST],
        };
        Self {
            actors: roles.iter().map(state).collect(),
            now: 0,
            owners: [None; MOST],
            markers: [false; MOST],
            epoch: 0,
            locks: BTreeMap::new(),
            deaths,
            stops,
            rules,
        }
    }

    /// True if an owner may use what it holds, by its own clock.
    fn is_alive(&self, who: Actor) -> bool {
        let actor = &self.actors[who];
        !self.rules.watches_clock || !actor.lost && self.now - actor.renewed < LOST
    }

    /// The possible answers of a look at an owner: whether it is dead, and the world afterwards.
    fn look(&self, who: Actor, other: Actor) -> Vec<(bool, Self)> {
        let Some(changed) = self.owners[other] else {
            return vec![(true, self.clone())];
        };
        let mut answers = vec![changed];
        answers.extend(
            self.actors[who].seen[other]
                .map(|(old, _)| old)
                .filter(|_| !self.rules.opens),
        );
        let answer = |changed| {
            let mut world = self.clone();
            let seen = world.actors[who].seen[other].get_or_insert((changed, self.now));
            if seen.0 != changed {
                *seen = (changed, self.now);
            }
            let silent = self.now - seen.1;
            (silent >= if self.rules.waits { TAKEOVER } else { 1 }, world)
        };
        answers.into_iter().map(answer).collect()
    }

    /// The next steps of an actor.
    fn step(&self, who: Actor) -> Vec<Self> {
        let mut world = self.clone();
        let State { role, at, epoch, .. } = self.actors[who];
        let next = match at {
            At::Over => return Vec::new(),
            At::Create => {
                world.owners[who] = Some(self.now);
                world.actors[who].renewed = self.now;
                if role == Run { At::List } else { At::Mark }
            }
            At::Mark => {
                world.markers[who] = true;
                At::List
            }
            At::List => {
                let mut all = self.list(who, self.markers, self.owners, self.epoch);
                if !self.rules.creates_before_listing {
                    // The view of before, when nobody was there.
                    all.extend(self.list(who, [false; MOST], [None; MOST], 0));
                }
                return all;
            }
            At::RemoveMarker(other) => {
                world.markers[other] = false;
                At::List
            }
            At::BackOff | At::Leave => {
                world.markers[who] = false;
                world.owners[who] = None;
                // A collector that was not let in has ended.
                if at == At::BackOff && role == Run && !self.actors[who].lost {
                    At::Create
                } else {
                    At::Over
                }
            }
            At::Begin if !self.rules.epochs => At::Sweep,
            At::Begin => {
                let may = !self.rules.fences || self.markers[who] && self.epoch == epoch;
                if may {
                    world.epoch = world.epoch.max(epoch + 1);
                    world.actors[who].epoch = epoch + 1;
                }
                if may && self.is_alive(who) {
                    At::Sweep
                } else {
                    At::BackOff
                }
            }
            At::Sweep => {
                match self.rules.epochs {
                    true => world.locks.retain(|(of, _), _| *of >= epoch),
                    false => world.locks.retain(|_, holder| holder.is_some()),
                }
                At::Leave
            }
            At::Scan(n) => {
                let found = self.locks.get(&(epoch, n + 1)).map(|_| At::Scan(n + 1));
                // The view may be that of before the file was made.
                let mut all: Vec<_> = found.map(|at| self.at(who, at)).into_iter().collect();
                match self.locks.get(&(epoch, n)) {
                    Some(&Some(holder)) => {
                        let looks = self.look(who, holder).into_iter();
                        let next = |dead| if dead { At::Link(n + 1) } else { At::Scan(n) };
                        all.extend(looks.map(|(dead, world)| world.at(who, next(dead))));
                    }
                    _ => all.push(self.at(who, At::Link(n + 1))),
                }
                return all;
            }
            At::Link(n) => match self.locks.get(&(epoch, n)) {
                Some(_) if self.rules.links => At::Scan(n),
                _ => {
                    world.locks.insert((epoch, n), Some(who));
                    if self.is_alive(who) { At::Hold(n) } else { At::Leave }
                }
            },
            At::Hold(n) if self.is_alive(who) => At::Release(n),
            At::Hold(_) => At::Leave,
            At::Release(n) => {
                let name = (epoch, n);
                if self.locks.get(&name) == Some(&Some(who)) {
                    match self.rules.keeps_numbers {
                        true => world.locks.insert(name, None),
                        false => world.locks.remove(&name),
                    };
                }
                At::Leave
            }
        };
        vec![world.at(who, next)]
    }

    /// The worlds that follow from a list of the directory of owners.
    fn list(&self, who: Actor, markers: Markers, owners: Owners, epoch: u8) -> Vec<Self> {
        let is_run = self.actors[who].role == Run;
        let is_looked_at =
            |&other: &Actor| other != who && (markers[other] || owners[other].is_some() && !is_run);
        let mut worlds = vec![(At::Begin, self.clone())];
        for other in (0..self.actors.len()).filter(is_looked_at) {
            let is_marked = self.rules.fences && markers[other];
            let look = |(at, world): (At, World)| {
                let looks = world.look(who, other).into_iter();
                looks.map(move |(dead, world)| match (at, dead) {
                    (At::BackOff, _) | (_, false) => (At::BackOff, world),
                    _ if is_marked => (At::RemoveMarker(other), world),
                    _ => (at, world),
                })
            };
            worlds = worlds.into_iter().flat_map(look).collect();
        }
        let next = |(at, mut world): (At, World)| {
            world.actors[who].epoch = epoch;
            let at = match at {
                // A listing is used only by an owner that is still alive after it.
                At::Begin if !self.is_alive(who) => At::BackOff,
                At::Begin if is_run => At::Scan(0),
                at => at,
            };
            world.at(who, at)
        };
        worlds.into_iter().map(next).collect()
    }

    fn at(&self, who: Actor, at: At) -> Self {
        let mut world = self.clone();
        let actor = &mut world.actors[who];
        actor.at = at;
        if at == At::Over {
            // States that differ in what it knew are equal.
            (actor.epoch, actor.renewed, actor.seen) = (0, 0, [None; MOST]);
        }
        world
    }

    /// A tick, in which every owner that runs is renewed.
    fn tick(&self) -> Self {
        let mut world = self.clone();
        world.now += 1;
        for who in 0..world.actors.len() {
            let actor = &world.actors[who];
            let beats = actor.at != At::Over && !actor.stopped && !actor.lost;
            if beats && world.owners[who].is_some() {
                world.renew(who);
            }
        }
        world
    }

    fn renew(&mut self, who: Actor) {
        self.owners[who] = Some(self.now);
        self.actors[who].renewed = self.now;
    }

    /// An actor goes on after it was stopped.
    fn wake(&self, who: Actor) -> Vec<Self> {
        let mut world = self.clone();
        world.actors[who].stopped = false;
        let mut stray = world.clone();
        if let Some(changed) = &mut stray.owners[who] {
            *changed = self.now;
        }
        let mut all = vec![world, stray];
        for world in &mut all {
            let is_lost = self.now - world.actors[who].renewed >= LOST;
            if is_lost && self.rules.for_good {
                world.actors[who].lost = true;
            } else if world.owners[who].is_some() {
                world.renew(who);
            }
        }
        all
    }
}

impl Model for World {
    type Rules = ();

    fn successors(&self, _: &()) -> Vec<(usize, Self)> {
        let mut all = Vec::new();
        for (who, actor) in self.actors.iter().enumerate() {
            if actor.at == At::Over {
                continue;
            }
            if actor.stopped {
                all.extend(self.wake(who).into_iter().map(|world| (who, world)));
                continue;
            }
            all.extend(self.step(who).into_iter().map(|world| (who, world)));
            if self.stops > 0 {
                let mut stopped = self.clone();
                stopped.stops -= 1;
                stopped.actors[who].stopped = true;
                all.push((who, stopped));
            }
            if self.deaths > 0 {
                let mut dead = self.at(who, At::Over);
                dead.deaths -= 1;
                all.push((who, dead));
            }
        }
        // While all are renewed, time makes no difference.
        let is_silent = |who: Actor| {
            let actor = &self.actors[who];
            self.owners[who].is_some() && (actor.stopped || actor.at == At::Over)
        };
        if self.now < TICKS && (0..self.actors.len()).any(is_silent) {
            all.push((0, self.tick()));
        }
        all
    }

    fn check(&self) -> Result<(), String> {
        let those = |may: fn(At) -> bool| {
            let all = self.actors.iter().enumerate();
            all.filter(|(who, actor)| may(actor.at) && self.is_alive(*who)).count()
        };
        if those(|at| matches!(at, At::Hold(_) | At::Release(_))) > 1 {
            return Err("two hold the lock".to_owned());
        }
        let runs = those(|at| matches!(at, At::Scan(_) | At::Link(_) | At::Hold(_) | At::Release(_)));
        let collectors = those(|at| at == At::Sweep);
        if collectors > 1 || collectors == 1 && runs > 0 {
            return Err("a collection is not alone".to_owned());
        }
        Ok(())
    }

    fn check_end(&self, (): &()) -> Result<(), String> {
        Ok(())
    }

    fn describe(&self, who: usize) -> String {
        format!("at {}, {who}: {:?}", self.now, self.actors[who])
    }
}

/// The cases: the actors, the number of them that may be killed and that may be stopped, and whether the lock
/// was held before.
const CASES: [(&[Role], u8, u8, bool); 5] = [
    (&[Run, Run], 1, 1, false),
    (&[Run, Collector], 1, 1, true),
    (&[Collector, Collector], 0, 1, false),
    (&[Run, Run, Run], 0, 1, false),
    (&[Run, Run, Collector], 0, 1, true),
];

fn explore_case(n: usize, rules: Rules) -> Result<usize, Violation> {
    let (roles, deaths, stops, was_held) = CASES[n];
    let mut world = World::new(roles, deaths, stops, rules);
    if was_held {
        world.locks.insert((0, 1), None);
    }
    explore::all(world, &())
}

#[test]
fn a_lock_between_hosts_has_one_holder() {
    for n in 0..CASES.len() {
        let states = explore_case(n, SOUND).unwrap_or_else(|violation| panic!("{:?}: {violation}", CASES[n]));
        assert!(states > 1_000, "{states}");
        eprintln!("{:?}: {states} states", CASES[n]);
    }
}

#[test]
fn each_rule_between_hosts_is_needed() {
    const SHARED: &str = "two hold the lock";
    type LeaveOut = fn(&mut Rules);
    let without: [(&str, usize, LeaveOut); 9] = [
        ("a collection is not alone", 1, |rules| {
            rules.creates_before_listing = false
        }),
        (SHARED, 0, |rules| rules.links = false),
        (SHARED, 3, |rules| rules.keeps_numbers = false),
        (SHARED, 0, |rules| rules.watches_clock = false),
        (SHARED, 0, |rules| rules.for_good = false),
        (SHARED, 0, |rules| rules.waits = false),
        (SHARED, 3, |rules| rules.opens = false),
        (SHARED, 4, |rules| rules.fences = false),
        (SHARED, 4, |rules| rules.epochs = false),
    ];
    for (what, case, leave_out) in without {
        let mut rules = SOUND;
        leave_out(&mut rules);
        let violation = explore_case(case, rules).expect_err("a rule is left out, and nothing goes wrong");
        assert_eq!(violation.what, what, "{rules:?}: {violation}");
        assert!(!violation.steps.is_empty());
    }
}
