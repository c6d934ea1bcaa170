//! A node without inputs, run by itself, of no run.

use crate::action::{self, Action, Mode, Outcome};
use crate::executor::{Executor, JobStore, Limits, Request};
use crate::options::{Control, Options};
use crate::prepare::prepare;
use cache::{Hit, Store};
use runner_pipeline::Node;
use stages_core::{EventSink, StageError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the record of a node that has no inputs. It is run unless the store has its outputs; without an
/// executor, there is then no record.
///
/// # Errors
/// The failure of the node.
pub fn run_alone(
    node: &Node,
    store: &Store,
    executor: Option<&dyn Executor>,
    options: &Options,
    control: &Control,
    events: &Arc<dyn EventSink>,
) -> Result<Option<Hit>, StageError> {
    let prepared = prepare(node, BTreeMap::new(), store, options.verify_inputs, events.as_ref())?;
    let known = store.hit(prepared.key)?;
    let Some(executor) = executor.filter(|_| known.is_none()) else {
        return Ok(known);
    };
    let action = Action {
        node,
        prepared: &prepared,
        threads: 1,
        mode: Mode::Usual,
        store,
        executor,
        here: executor,
        site: None,
        job_store: JobStore::beside(store),
        request: Request::default(),
        options,
    };
    let limits = Limits {
        cancel: control.cancel.clone(),
        kill: control.kill.clone(),
        timeout: node.timeout,
        grace: options.grace,
    };
    match action::run(&action, &limits, events) {
        Outcome::Ran(hit) => Ok(Some(*hit)),
        Outcome::Failed(err) | Outcome::Damaged(err, _) => Err(err),
    }
}
