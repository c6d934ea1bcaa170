//! Ctrl-C, SIGTERM and SIGHUP.

use crate::output;
use runner_engine::{Control, Failure, exit, no_thread};
use runner_sandbox::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::Builder;
use std::time::Duration;

/// The time from the first signal to the end of the process, whatever it waits for then: longer than the
/// grace period of stages.
const END: Duration = Duration::from_secs(60);

/// The time from the second signal to the end of the process: enough to kill the stages and to close the
/// event log.
const END_AT_ONCE: Duration = Duration::from_secs(2);

fn failed(err: std::io::Error) -> Failure {
    Failure::caused("cannot handle signals", &err)
}

/// True until the command handles signals itself.
static IS_UNHANDLED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// Lets signals end the first process of a container as they end others: for that process, the kernel ignores
/// what has no handler.
pub(crate) fn end_as_first_process() -> Result<(), Failure> {
    if std::process::id() == 1 {
        for signal in [SIGINT, SIGTERM] {
            let is_unhandled = IS_UNHANDLED.clone();
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, is_unhandled)
                .map_err(failed)?;
        }
    }
    Ok(())
}

/// The signals that stop a command. SIGHUP stays ignored where it was: under `nohup`, a run outlives its
/// terminal.
fn handled() -> Vec<i32> {
    IS_UNHANDLED.store(false, Ordering::Relaxed);
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// The control of a run: the first signal asks running stages to stop, the second one kills them. The process
/// ends in a bounded time after either, even if it is stuck in a system call.
pub(crate) fn control() -> Result<Control, Failure> {
    let mut signals = Signals::new(handled()).map_err(failed)?;
    let control = Control::default();
    let signalled = control.clone();
    let watch = move || {
        for _ in signals.forever() {
            let again = signalled.cancel.is_cancelled();
            if again {
                signalled.kill.cancel();
            }
            signalled.cancel.cancel();
            end_after(if again { END_AT_ONCE } else { END });
        }
    };
    Builder::new().spawn(watch).map_err(no_thread)?;
    Ok(control)
}

/// The control of a job on a node. SIGUSR1, by which a cluster announces the end of the job's time,
/// and SIGTERM ask the job to stop; only the cluster kills it.
pub(crate) fn of_job() -> Result<Control, Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1]).map_err(failed)?;
    let control = Control::default();
    let signalled = control.clone();
    let watch = move || signals.forever().for_each(|_| signalled.cancel.cancel());
    Builder::new().spawn(watch).map_err(no_thread)?;
    Ok(control)
}

/// Ends the process after that time, unless it has ended.
fn end_after(time: Duration) {
    let end = move || {
        std::thread::sleep(time);
        output::say(&format!(
            "error: the run did not end within {} s of the signal; what was stored stays\n  hint: a file \
            system may hang: look where the store lies",
            time.as_secs()
        ));
        signal_hook::low_level::exit(i32::from(exit::INTERRUPTED));
    };
    // Without it the run ends when its stages do.
    let _ = Builder::new().spawn(end);
}

/// A flag that the first signal sets; the second one ends the process.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in handled() {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), stop.clone())
            .map_err(failed)?;
        signal_hook::flag::register(signal, stop.clone()).map_err(failed)?;
    }
    Ok(stop)
}
