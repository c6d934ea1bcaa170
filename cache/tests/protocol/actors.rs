//! The users of a store, each as the steps of the real code: one system call each (or several between which
//! no other step makes a difference).

use crate::disk::{Data, Disk, FileId, Id, Name};
use crate::explore::Model;
use crate::rules::Rules;
use std::collections::BTreeSet;

/// An operation of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// `Store::guard`.
    Guard,
    /// `Store::put`, of a blob.
    Put(Id),
    /// `Store::put_action`; continues at the given operation when a blob is missing.
    Record(Id, usize),
    /// `Store::flush`.
    Flush,
    /// `Store::hit`; continues at the given operation on a miss.
    Hit(Id, usize),
    /// `Store::blob`; continues at the given operation when the blob has to be computed again.
    Open(Id, usize),
    Goto(usize),
    /// Drops the guard.
    Release,
    /// `Store::gc`, keeping these records and their blobs.
    Gc(&'static [Id]),
    /// Damages a file in place, or removes it.
    Harm,
}

/// The blobs that a record names. Consecutive records share one.
pub(crate) fn blobs_of(record: Id) -> [Id; 2] {
    [record, record + 1]
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Actor {
    pub ops: &'static [Op],
    /// The current operation, and its step.
    pub op: usize,
    step: u8,
    /// The state of a quarantine: the name, the damaged file, the step.
    quarantine: Option<(Name, FileId, u8)>,
    /// Its temporary file.
    tmp: Option<FileId>,
    made: u8,
    pub guard: bool,
    alone: bool,
    /// The names that a collector has yet to visit.
    todo: Vec<Name>,
    /// The time that a flush will record: everything written before is on the disk.
    until: u8,
    pub dead: bool,
    /// The records that it takes for flushed.
    pub claims: BTreeSet<Id>,
    recorded: BTreeSet<Id>,
}

impl Actor {
    pub(crate) fn new(ops: &'static [Op]) -> Self {
        Self {
            ops,
            op: 0,
            step: 0,
            quarantine: None,
            tmp: None,
            made: 0,
            guard: false,
            alone: false,
            todo: Vec::new(),
            until: 0,
            dead: false,
            claims: BTreeSet::new(),
            recorded: BTreeSet::new(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.dead || self.op >= self.ops.len()
    }

    /// Its open files.
    pub(crate) fn held(&self) -> impl Iterator<Item = FileId> + '_ {
        self.quarantine.map(|(_, seen, _)| seen).into_iter().chain(self.tmp)
    }

    fn at(&mut self, op: usize) {
        (self.op, self.step) = (op, 0);
    }

    fn next(&mut self) {
        self.at(self.op + 1);
    }
}

/// All actors and their shared state.
#[derive(Clone, Debug, Hash)]
pub(crate) struct World {
    pub disk: Disk,
    pub actors: Vec<Actor>,
    flush_lock: Option<Id>,
    /// The remaining numbers of kills and of damaged files.
    pub deaths: u8,
    pub died: bool,
    pub harmed: bool,
    /// True if a collector has removed records.
    collected: bool,
    /// The blobs written after a file was damaged.
    pub intact: BTreeSet<Id>,
    pub violation: Option<&'static str>,
}

impl World {
    pub(crate) fn new(actors: &[&'static [Op]], deaths: u8) -> Self {
        Self {
            disk: Disk::default(),
            actors: actors.iter().map(|ops| Actor::new(ops)).collect(),
            flush_lock: None,
            deaths,
            died: false,
            harmed: false,
            collected: false,
            intact: BTreeSet::new(),
            violation: None,
        }
    }

    /// Adds a complete record with its blobs, flushed, of an earlier run.
    pub(crate) fn with_record(self, record: Id) -> Self {
        let mut world = self.with_blobs(record);
        world
            .disk
            .create(Name::Record(record), (100 + record, 9), Data::Record(record));
        world.disk.sync();
        world
    }

    /// Adds the blobs of a record, flushed.
    pub(crate) fn with_blobs(mut self, record: Id) -> Self {
        for (n, blob) in blobs_of(record).into_iter().enumerate() {
            self.disk
                .create(Name::Blob(blob), (100 + record, n as u8), Data::Blob(blob));
        }
        self.disk.sync();
        self
    }

    fn is_whole(&self, record: Id) -> bool {
        blobs_of(record)
            .into_iter()
            .all(|blob| self.disk.data(Name::Blob(blob)) == Some(Data::Blob(blob)))
    }

    /// Kills an actor; the system releases its locks.
    fn death(&self, who: usize) -> World {
        let mut world = self.clone();
        world.deaths -= 1;
        world.died = true;
        world.disk.unlock_all_of(who as Id);
        if world.flush_lock == Some(who as Id) {
            world.flush_lock = None;
        }
        let actor = &mut world.actors[who];
        let claims = std::mem::take(&mut actor.claims);
        *actor = Actor {
            dead: true,
            claims,
            ..Actor::new(&[])
        };
        world.tidy();
        world
    }

    fn tidy(&mut self) {
        let held = self.actors.iter().flat_map(Actor::held).collect();
        self.disk.tidy(&held);
    }

    /// The possible next steps of an actor: none when it waits or has ended, several where the outcome is
    /// random.
    fn step(&self, who: usize, rules: &Rules) -> Vec<World> {
        let actor = &self.actors[who];
        if actor.is_over() {
            return Vec::new();
        }
        if actor.quarantine.is_none() && actor.ops[actor.op] == Op::Harm {
            return self.harm(who);
        }
        let mut world = self.clone();
        if !world.advance(who, rules) {
            return Vec::new();
        }
        world.tidy();
        vec![world]
    }

    fn harm(&self, who: usize) -> Vec<World> {
        let mut all = Vec::new();
        for name in self.disk.names() {
            if !matches!(name, Name::Blob(_) | Name::Record(_)) {
                continue;
            }
            let mut world = self.clone();
            world.harmed = true;
            if let Name::Blob(blob) = name {
                world.intact.remove(&blob);
            }
            world.actors[who].next();
            let mut removed = world.clone();
            removed.disk.remove(name);
            let file = world.disk.named(name).unwrap();
            // A disk changes no modification time.
            world.disk.file_mut(file).data = Data::Damaged;
            for mut world in [world, removed] {
                world.tidy();
                all.push(world);
            }
        }
        all
    }

    /// Returns whether it could proceed.
    fn advance(&mut self, who: usize, rules: &Rules) -> bool {
        if let Some(quarantine) = self.actors[who].quarantine {
            self.quarantine_step(who, quarantine, rules);
            return true;
        }
        match self.actors[who].ops[self.actors[who].op] {
            Op::Guard => {
                if self.actors.iter().any(|actor| actor.alone) {
                    return false;
                }
                self.actors[who].guard = rules.guard;
                self.actors[who].next();
            }
            Op::Release => {
                self.actors[who].guard = false;
                self.actors[who].next();
            }
            Op::Goto(op) => self.actors[who].at(op),
            Op::Put(blob) => self.put(who, blob, rules),
            Op::Record(record, again) => self.put_record(who, record, again, rules),
            Op::Hit(record, otherwise) => self.hit(who, record, otherwise),
            Op::Open(blob, otherwise) => self.open(who, blob, otherwise, rules),
            Op::Flush => return self.flush(who, rules),
            Op::Gc(keep) => self.gc(who, keep, rules),
            Op::Harm => {}
        }
        true
    }

    fn put(&mut self, who: usize, blob: Id, rules: &Rules) {
        let name = Name::Blob(blob);
        if self.actors[who].step > 0 {
            return self.publish(who, name, Data::Blob(blob), rules);
        }
        match self.disk.named(name) {
            Some(file) if self.disk.file(file).data == Data::Blob(blob) => self.actors[who].next(),
            Some(file) => {
                self.actors[who].step = 1;
                self.actors[who].quarantine = Some((name, file, 0));
            }
            None => self.actors[who].step = 1,
        }
    }

    fn put_record(&mut self, who: usize, record: Id, again: usize, rules: &Rules) {
        if self.actors[who].step == 0 {
            let lost = |blob: Id| self.disk.named(Name::Blob(blob)).is_none();
            if rules.record_last && blobs_of(record).into_iter().any(lost) {
                return self.actors[who].at(again);
            }
            self.actors[who].step = 1;
            return;
        }
        self.publish(who, Name::Record(record), Data::Record(record), rules);
        if self.actors[who].step == 0 {
            self.actors[who].recorded.insert(record);
        }
    }

    /// `atomic_write::temp_file` and `atomic_write::persist`, from step 1 on.
    fn publish(&mut self, who: usize, name: Name, data: Data, rules: &Rules) {
        let id = who as Id;
        let is_taken = rules.temp_file && self.disk.named(name).is_some();
        let actor = &mut self.actors[who];
        match (actor.step, actor.tmp) {
            (1, _) => {
                actor.step = 2;
                self.mark(who);
            }
            (2, _) => {
                let file = (id, actor.made);
                actor.made += 1;
                actor.tmp = Some(file);
                actor.step = if rules.temp_file { 3 } else { 4 };
                let at = if rules.temp_file { Name::Tmp(id) } else { name };
                self.disk.create(at, file, Data::Nothing);
            }
            (3, Some(file)) => {
                // Waits for a collector that took it for a leftover and unlinks it.
                if self.disk.named(Name::Tmp(id)) == Some(file) {
                    self.disk.file_mut(file).locked = rules.tmp_locked.then_some(id);
                    actor.step = 4;
                } else {
                    actor.step = 2;
                }
            }
            (4, Some(file)) => {
                self.disk.write(file, data);
                actor.step = 5;
            }
            (5, Some(_)) if is_taken && matches!(name, Name::Blob(_)) && rules.keeps_existing_blob => {
                // The existing one is checked, and this one removed.
                self.disk.remove(Name::Tmp(id));
                actor.tmp = None;
                actor.step = 0;
            }
            (5, Some(_)) if is_taken && matches!(name, Name::Record(_)) && rules.flushes_replacement => {
                actor.step = 7
            }
            (7, Some(file)) => {
                self.disk.sync_file(file);
                actor.step = 8;
            }
            (5 | 8, Some(file)) => {
                if rules.temp_file && !self.disk.rename(Name::Tmp(id), name) {
                    self.violation = Some("a temporary file was removed before its rename");
                }
                self.disk.file_mut(file).locked = None;
                actor.tmp = None;
                if let (true, Name::Blob(blob)) = (self.harmed, name) {
                    self.intact.insert(blob);
                }
                if rules.marks_after_rename {
                    self.actors[who].step = 6;
                } else {
                    self.actors[who].next();
                }
            }
            _ => {
                self.mark(who);
                self.actors[who].next();
            }
        }
    }

    fn mark(&mut self, who: usize) {
        if self.disk.named(Name::Unflushed).is_none() {
            let actor = &mut self.actors[who];
            let file = (who as Id, actor.made);
            actor.made += 1;
            self.disk.create(Name::Unflushed, file, Data::Nothing);
        }
    }

    fn hit(&mut self, who: usize, record: Id, otherwise: usize) {
        let name = Name::Record(record);
        let whole = blobs_of(record)
            .into_iter()
            .all(|blob| self.disk.named(Name::Blob(blob)).is_some());
        match self.disk.named(name) {
            Some(file) if self.disk.file(file).data != Data::Record(record) => {
                self.actors[who].quarantine = Some((name, file, 0));
                self.actors[who].at(otherwise);
            }
            Some(_) if whole => self.actors[who].next(),
            _ => self.actors[who].at(otherwise),
        }
    }

    fn open(&mut self, who: usize, blob: Id, otherwise: usize, rules: &Rules) {
        let name = Name::Blob(blob);
        match self.disk.named(name).map(|file| (file, self.disk.file(file).data)) {
            Some((_, data)) if data == Data::Blob(blob) => self.actors[who].next(),
            Some((file, Data::Damaged)) if rules.reader_checks => {
                self.actors[who].quarantine = Some((name, file, 0));
                self.actors[who].at(otherwise);
            }
            Some(_) => self.violation = Some("a reader has wrong bytes"),
            None => {
                if !self.harmed {
                    self.violation = Some("a blob is gone that a run has just seen");
                }
                self.actors[who].at(otherwise);
            }
        }
    }

    /// `Store::quarantine`.
    fn quarantine_step(&mut self, who: usize, (name, seen, step): (Name, FileId, u8), rules: &Rules) {
        let there = self.disk.named(name);
        let moved = self.disk.named(name.quarantined());
        let go_on = match step {
            0 => !rules.quarantine_checks || there == Some(seen),
            1 => {
                self.disk.rename(name, name.quarantined());
                rules.quarantine_checks
            }
            2 => moved.is_some_and(|moved| moved != seen),
            _ => {
                self.disk.rename(name.quarantined(), name);
                false
            }
        };
        self.actors[who].quarantine = go_on.then_some((name, seen, step + 1));
    }

    /// `Store::flush`.
    fn flush(&mut self, who: usize, rules: &Rules) -> bool {
        let id = who as Id;
        let (unflushed, flushing) = [Name::Unflushed, Name::Flushing]
            .map(|name| self.disk.named(name).is_some())
            .into();
        let next = match self.actors[who].step {
            // Without a lock: the marker is renamed before it is removed.
            0 if unflushed => 2,
            0 => 1,
            1 if flushing => 2,
            1 => 8,
            2 if rules.flush_locked && self.flush_lock.is_some() => return false,
            2 => {
                self.flush_lock = rules.flush_locked.then_some(id);
                3
            }
            3 => {
                let marked = if rules.renames_marker {
                    self.disk.rename(Name::Unflushed, Name::Flushing) || flushing
                } else {
                    self.disk.remove(Name::Unflushed);
                    unflushed
                };
                if marked {
                    self.disk.clock += 1;
                    self.actors[who].until = self.disk.clock;
                }
                if marked { 4 } else { 7 }
            }
            step @ (4 | 5) => {
                if (step == 4) == rules.flush_before_note {
                    self.disk.sync();
                } else {
                    let actor = &mut self.actors[who];
                    let file = (id, actor.made);
                    actor.made += 1;
                    let until = std::mem::take(&mut actor.until);
                    self.disk.create(Name::Flushed, file, Data::Note(until));
                }
                step + 1
            }
            6 => {
                self.disk.remove(Name::Flushing);
                7
            }
            7 => {
                if self.flush_lock == Some(id) {
                    self.flush_lock = None;
                }
                8
            }
            _ => {
                let actor = &mut self.actors[who];
                actor.claims.extend(std::mem::take(&mut actor.recorded));
                actor.next();
                return true;
            }
        };
        self.actors[who].step = next;
        true
    }

    fn gc(&mut self, who: usize, keep: &[Id], rules: &Rules) {
        if self.actors[who].step == 0 {
            if self.actors.iter().any(|actor| actor.guard) {
                return self.actors[who].next();
            }
            self.actors[who].alone = true;
            self.actors[who].step = 1;
            let kept: BTreeSet<Name> = keep
                .iter()
                .filter(|&&record| self.disk.data(Name::Record(record)) == Some(Data::Record(record)))
                .flat_map(|&record| {
                    blobs_of(record)
                        .map(Name::Blob)
                        .into_iter()
                        .chain([Name::Record(record)])
                })
                .collect();
            let mut todo: Vec<Name> = self.disk.names().filter(|name| !kept.contains(name)).collect();
            // Taken from the end: records before blobs, then leftovers.
            todo.sort_by_key(|name| match name {
                Name::Record(_) if rules.gc_records_first => 3,
                Name::Blob(_) => 2,
                Name::Record(_) => 1,
                _ => 0,
            });
            self.actors[who].todo = todo;
            return;
        }
        let Some(name) = self.actors[who].todo.pop() else {
            self.actors[who].alone = false;
            return self.actors[who].next();
        };
        let locked = self
            .disk
            .named(name)
            .is_some_and(|file| self.disk.file(file).locked.is_some());
        match name {
            Name::Unflushed | Name::Flushing | Name::Flushed => {}
            Name::Tmp(_) if locked => {}
            name => {
                self.collected |= matches!(name, Name::Record(_));
                self.disk.remove(name);
            }
        }
    }
}

impl Model for World {
    type Rules = Rules;

    fn check(&self) -> Result<(), String> {
        if let Some(violation) = self.violation {
            return Err(violation.to_owned());
        }
        if !self.harmed {
            for name in self.disk.names() {
                if let Name::Record(record) = name
                    && !self.is_whole(record)
                {
                    return Err(format!("record {record} is visible without its blobs"));
                }
            }
            for record in self.actors.iter().flat_map(|actor| &actor.claims) {
                let names = blobs_of(*record)
                    .map(Name::Blob)
                    .into_iter()
                    .chain([Name::Record(*record)]);
                // A collector removes everything that it may.
                let collected = self.collected && self.disk.named(Name::Record(*record)).is_none();
                for name in names.filter(|_| !collected) {
                    if !self.disk.survives(name) {
                        return Err(format!(
                            "record {record} counts as flushed, and a power failure loses {name:?}"
                        ));
                    }
                }
            }
            for record in self
                .actors
                .iter()
                .flat_map(|actor| actor.recorded.iter().chain(&actor.claims))
            {
                if !self.collected && self.disk.data(Name::Record(*record)) != Some(Data::Record(*record)) {
                    return Err(format!("record {record} was complete, and is lost"));
                }
            }
            if let Some(name) = self.disk.missed_by_recovery() {
                return Err(format!("a power failure may damage {name:?}, and recovery skips it"));
            }
        }
        Ok(())
    }

    fn check_end(&self, rules: &Rules) -> Result<(), String> {
        // Without a file there is nothing to damage.
        let goes_on = |actor: &Actor| !actor.is_over() && actor.ops[actor.op] != Op::Harm;
        if self.actors.iter().any(goes_on) {
            return Err("somebody waits for ever".to_owned());
        }
        if !self.died {
            for &blob in &self.intact {
                if self.disk.data(Name::Blob(blob)) != Some(Data::Blob(blob)) {
                    return Err(format!("an intact blob {blob} was removed"));
                }
            }
            for name in self.disk.names() {
                if let Name::AsideBlob(blob) = name
                    && self.disk.data(name) == Some(Data::Blob(blob))
                {
                    return Err(format!("an intact blob {blob} was quarantined"));
                }
            }
        }
        // A killed actor holds nothing.
        let mut swept = self.clone();
        swept.actors = vec![Actor::new(&[Op::Gc(&[])])];
        swept.flush_lock = None;
        while let Some(next) = swept.step(0, rules).pop() {
            swept = next;
        }
        let left: Vec<Name> = swept
            .disk
            .names()
            .filter(|name| !matches!(name, Name::Unflushed | Name::Flushing | Name::Flushed))
            .collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("gc leaves {left:?}"))
        }
    }

    fn successors(&self, rules: &Rules) -> Vec<(usize, World)> {
        let mut all = Vec::new();
        for who in 0..self.actors.len() {
            all.extend(self.step(who, rules).into_iter().map(|world| (who, world)));
            if self.deaths > 0 && !self.actors[who].is_over() && self.actors[who].ops != [Op::Harm] {
                all.push((who, self.death(who)));
            }
        }
        all
    }

    fn describe(&self, who: usize) -> String {
        let actor = &self.actors[who];
        match actor.ops.get(actor.op) {
            Some(op) => format!("{who}: {op:?} {actor:?}"),
            None => format!("{who}: ended"),
        }
    }
}
