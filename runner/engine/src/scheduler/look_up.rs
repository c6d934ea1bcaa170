//! Cache look-ups of stages: in the store, and then, in threads, in the remote store.

use super::threads::in_thread;
use super::{Message, Scheduler, State};
use crate::event::{Event, StageStatus};
use crate::prepare::Prepared;
use cache::{ActionKey, ArtifactDigest, Hit};
use runner_pipeline::Work;
use stages_core::{StageError, StageEvent};

/// The maximum number of concurrent look-ups in the remote store.
const ASKING: usize = 16;

impl Scheduler<'_, '_, '_> {
    pub(super) fn prepared(&mut self, i: usize, prepared: Prepared) {
        self.slots[i].key = Some(prepared.key);
        if self.options.planned.get(&i).is_some_and(|key| *key != prepared.key) {
            let error = StageError::new("an input changed since the plan was made");
            return self.fail(i, error.hint("create a new plan with `runner plan --save FILE`"));
        }
        if self.look_up(i, &prepared) || !matches!(self.slots[i].state, State::Preparing) {
            return;
        }
        let prepared = Box::new(prepared);
        let asks = self.store.upstream().is_some_and(cache::Upstream::is_available);
        if asks && self.looks_up(i) {
            self.to_ask.push_back((i, prepared));
        } else {
            self.make_ready(i, prepared);
        }
    }

    pub(super) fn make_ready(&mut self, i: usize, prepared: Box<Prepared>) {
        match self.place(i, &prepared) {
            Ok(site) => {
                self.slots[i].site = site;
                self.slots[i].state = State::Ready(prepared);
                self.set_ready(i);
            }
            Err(err) => self.fail(i, err),
        }
    }

    /// Starts queued look-ups in the remote store.
    pub(super) fn ask_remote(&mut self) {
        while self.stopping || self.asking < ASKING {
            let Some((i, prepared)) = self.to_ask.pop_front() else {
                return;
            };
            if self.stopping {
                self.make_ready(i, prepared);
            } else {
                self.ask(i, prepared);
            }
        }
    }

    /// Handles the result of a remote look-up.
    pub(super) fn asked(&mut self, i: usize, prepared: Box<Prepared>, hit: cache::Result<Option<Hit>>) {
        self.asking -= 1;
        if !self.handle_look_up(i, &prepared, hit) {
            self.make_ready(i, prepared);
        }
    }

    /// Looks a stage up in the remote store, in a thread, because the request blocks.
    fn ask(&mut self, i: usize, prepared: Box<Prepared>) {
        self.asking += 1;
        let (store, unasked) = (self.store, prepared.clone());
        let work = move || {
            let hit = store.hit(prepared.key);
            Message::Asked(i, prepared, hit)
        };
        // Without an answer, the stage is computed.
        in_thread(self.scope, &self.sender, work, move |_| {
            Message::Asked(i, unasked.clone(), Ok(None))
        });
    }

    /// True if a cached result of a stage may be used.
    fn looks_up(&self, i: usize) -> bool {
        !self.slots[i].forced && self.slots[i].check.is_none()
    }

    /// Ends a stage that is cached (or whose look-up fails), and returns true if it did.
    pub(super) fn look_up(&mut self, i: usize, prepared: &Prepared) -> bool {
        if !self.looks_up(i) {
            return false;
        }
        let hit = self.store.hit_here(prepared.key);
        self.handle_look_up(i, prepared, hit)
    }

    /// Handles the result of a look-up, and returns true if the stage has ended.
    fn handle_look_up(&mut self, i: usize, prepared: &Prepared, hit: cache::Result<Option<Hit>>) -> bool {
        match hit {
            Ok(Some(hit)) if self.slots[i].to_check && self.is_comparable(i, prepared) => {
                self.slots[i].check = Some(hit);
                false
            }
            Ok(Some(hit)) => {
                self.finish(i, StageStatus::Cached, hit);
                true
            }
            Ok(None) => false,
            Err(err) => {
                self.fail(i, err.into());
                true
            }
        }
    }

    /// True if recomputing a stage must reproduce its cached result; otherwise reports the reason.
    fn is_comparable(&mut self, i: usize, prepared: &Prepared) -> bool {
        let why = match &self.node(i).work {
            Work::Kind { kind, .. } => kind.nondeterministic(),
            Work::Command(_) => None,
        };
        let class = self.store.recorded(prepared.key).ok().flatten();
        let class = class.map(|record| record.numerics_class).unwrap_or_default();
        let why = match why {
            Some(why) => Some(why.to_owned()),
            None if class == stages_numerics::class::numerics_class() => None,
            None => Some(format!(
                "it was computed on the numerics class {class}, whose bytes may differ"
            )),
        };
        let Some(line) = why else { return true };
        self.slots[i].to_check = false;
        let line = format!("no determinism check: {line}");
        self.emit_stage(i, StageEvent::Log { line });
        false
    }

    /// Compares the recomputed result of a cached stage with the stored one.
    pub(super) fn checked(&mut self, i: usize, key: ActionKey, cached: Hit, again: &Hit) {
        let different: Vec<String> = cached
            .outputs
            .iter()
            .filter(|(name, digest)| again.outputs.get(*name) != Some(digest))
            .map(|(name, digest)| {
                let now = again.outputs.get(name).map(ArtifactDigest::short).unwrap_or_default();
                format!("`{name}` is {now}, but was {}", digest.short())
            })
            .collect();
        let stage = self.id(i);
        self.emit(Event::DeterminismChecked {
            stage,
            key,
            same: different.is_empty(),
            seconds: again.seconds,
        });
        if different.is_empty() {
            return self.finish(i, StageStatus::Cached, cached);
        }
        let err = StageError::new(format!("the result is not deterministic: {}", different.join(", ")));
        self.fail(
            i,
            err.hint(
                "check for clocks, unseeded random numbers, and the order of threads or files; the \
                cached result is kept",
            ),
        );
    }
}
