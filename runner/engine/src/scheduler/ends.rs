//! The ends of stages: results, retries, recovery from damage, failures, and what is skipped for them.

use super::{Scheduler, State};
use crate::action::Outcome;
use crate::event::{Event, StageStatus};
use crate::grow::Ended;
use cache::{ArtifactDigest, Hit};
use stages_core::error::Cause;
use stages_core::{StageError, StageEvent};
use std::collections::BTreeSet;

/// The maximum number of times that a stage runs again because of damage that it found.
const HEALS: u32 = 100;

impl Scheduler<'_, '_, '_> {
    pub(super) fn ended(&mut self, i: usize, outcome: Outcome) {
        let State::Running(prepared, share, lock) =
            std::mem::replace(&mut self.slots[i].state, State::Preparing)
        else {
            return;
        };
        drop(lock);
        match self.slots[i].site {
            Some(site) => self.sites[site].running -= 1,
            None => self.pool.give(share),
        }
        self.running.remove(&i);
        for &other in &self.delayed {
            let slot = &mut self.slots[other];
            if slot.key == Some(prepared.key) {
                slot.try_at = None;
            }
        }
        match outcome {
            Outcome::Ran(hit) if self.slots[i].check.is_some() => {
                if let Some(cached) = self.slots[i].check.take() {
                    self.checked(i, prepared.key, cached, &hit);
                }
            }
            Outcome::Ran(hit) => {
                self.slots[i].forced = false;
                self.finish(i, StageStatus::Ran, *hit);
            }
            // A blob that was being fetched.
            Outcome::Damaged(..) if self.limits.is_cancelled() => self.fail(i, StageError::interrupted()),
            Outcome::Damaged(err, damaged) => {
                // Each remote blob is rejected once: a stage that finds another rejected blob has made
                // progress.
                let refusals = self.store.upstream().map_or(0, cache::Upstream::rejected_blobs);
                let further = refusals > std::mem::replace(&mut self.slots[i].refusals, refusals);
                let heals = self.slots[i].heals;
                if (heals > 0 && !further) || heals >= HEALS || self.stopping {
                    let err = StageError {
                        cause: Cause::Store,
                        ..err
                    };
                    let hint =
                        "`runner cache verify` looks for damage; the disk or its memory may be failing";
                    return self.fail(i, err.hint(hint));
                }
                self.heal(i, err, &damaged);
            }
            Outcome::Failed(err) => {
                let failed = matches!(err.cause, Cause::Failed | Cause::Diverged);
                let again = failed && self.slots[i].retries > 0 && !self.stopping;
                if !again {
                    return self.fail(i, err);
                }
                let retries = self.node(i).retries;
                let slot = &mut self.slots[i];
                slot.retries -= 1;
                let retry = retries - slot.retries;
                slot.state = State::Ready(prepared);
                self.set_ready(i);
                let stage = self.id(i);
                self.emit(Event::StageRetried {
                    stage,
                    retry,
                    retries,
                    error: err.message,
                });
            }
        }
    }

    /// Reruns the stages that produced the damaged inputs of `i`, and then `i`.
    fn heal(&mut self, i: usize, err: StageError, damaged: &[ArtifactDigest]) {
        self.slots[i].heals += 1;
        // Most damage is nobody's concern once it is healed.
        if err.hint.is_some() {
            let (message, hint) = (err.message, err.hint);
            self.emit_stage(i, StageEvent::Warning { message, hint });
        }
        let mut producers = BTreeSet::new();
        for need in self.pipeline.nodes[i].needs.values().flatten() {
            let made = self.slots[need.node].output(&need.output);
            if made.is_some_and(|digest| damaged.contains(digest)) {
                producers.insert(need.node);
            }
        }
        self.slots[i].state = State::Waiting;
        self.slots[i].missing = producers.len();
        for &producer in &producers {
            let event = Event::StageHealing {
                stage: self.id(producer),
                found_by: self.id(i),
            };
            self.emit(event);
            let slot = &mut self.slots[producer];
            slot.waiters.push(i);
            if matches!(slot.state, State::Over(_)) {
                slot.state = State::Waiting;
                slot.forced = true;
                self.open += 1;
                self.to_prepare.insert(producer);
            }
        }
        if producers.is_empty() {
            // The damaged artifact was not an input but, for example, a memo: it has been removed.
            self.to_prepare.insert(i);
        }
    }

    pub(super) fn finish(&mut self, i: usize, status: StageStatus, hit: Hit) {
        self.end(i, status, Some(&hit), None, None);
        self.slots[i].hit = Some(hit);
        for waiter in std::mem::take(&mut self.slots[i].waiters) {
            let slot = &mut self.slots[waiter];
            if slot.chosen && matches!(slot.state, State::Waiting) {
                slot.missing = slot.missing.saturating_sub(1);
                if slot.missing == 0 {
                    self.to_prepare.insert(waiter);
                }
            }
        }
    }

    /// Ends a stage, with or without a result.
    fn end(
        &mut self,
        i: usize,
        status: StageStatus,
        hit: Option<&Hit>,
        error: Option<String>,
        hint: Option<String>,
    ) {
        let slot = &mut self.slots[i];
        slot.state = State::Over(status);
        let began = slot.began.filter(|_| status != StageStatus::Skipped);
        let event = Event::StageFinished {
            stage: self.pipeline.nodes[i].id.clone(),
            key: slot.key,
            status,
            seconds: began.map_or(0.0, |began| began.elapsed().as_secs_f64()),
            outputs: hit.map(|hit| hit.outputs.clone()).unwrap_or_default(),
            computed_seconds: hit.map(|hit| hit.seconds),
            peak_memory: hit.and_then(|hit| hit.peak_memory),
            log: hit.and_then(|hit| hit.log),
            error,
            hint,
        };
        if self.growing
            && let Event::StageFinished { outputs, error, .. } = &event
        {
            self.ended.push(Ended {
                node: i,
                status,
                outputs: outputs.clone(),
                seconds: hit.map_or(0.0, |hit| hit.seconds),
                error: error.clone(),
            });
        }
        self.emit(event);
        self.open = self.open.saturating_sub(1);
        self.not_ready(i);
        self.delayed.remove(&i);
        self.to_prepare.remove(&i);
    }

    pub(super) fn fail(&mut self, i: usize, err: StageError) {
        let interrupted = err.cause == Cause::Interrupted;
        let is_result = self.slots[i].may_fail && matches!(err.cause, Cause::Failed | Cause::Diverged);
        self.failed |= !interrupted && !is_result;
        self.machine_failed |= matches!(err.cause, Cause::Store | Cause::DamagedInput);
        self.end(i, StageStatus::Failed, None, Some(err.message), err.hint);
        self.stopping |= (!self.options.keep_going && !is_result) || self.machine_failed || interrupted;
        let because = format!(
            "`{}`, which {}",
            self.node(i).id,
            if interrupted { "was interrupted" } else { "failed" }
        );
        let mut waiting = std::mem::take(&mut self.slots[i].waiters);
        while let Some(waiter) = waiting.pop() {
            if self.slots[waiter].chosen && matches!(self.slots[waiter].state, State::Waiting) {
                let why = format!("needs {because}");
                self.end(waiter, StageStatus::Skipped, None, Some(why), None);
                waiting.append(&mut std::mem::take(&mut self.slots[waiter].waiters));
            }
        }
    }

    /// Skips all stages that have not started.
    pub(super) fn skip_rest(&mut self) {
        if self.open == 0 {
            return;
        }
        let because = if self.failed {
            "another stage failed"
        } else {
            "the run was interrupted"
        };
        // After the first call, only newly ready stages are left to skip.
        let left: Vec<usize> = match std::mem::replace(&mut self.skipped, true) {
            false => (0..self.slots.len()).collect(),
            true => self.all_ready(),
        };
        for i in left {
            if self.slots[i].chosen && matches!(self.slots[i].state, State::Waiting | State::Ready(_)) {
                self.end(i, StageStatus::Skipped, None, Some(because.to_owned()), None);
            }
        }
    }
}
