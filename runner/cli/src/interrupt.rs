//! Ctrl-C and SIGTERM.

use runner_engine::{Control, Failure, exit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn failed(err: std::io::Error) -> Failure {
    Failure::caused("cannot handle signals", &err)
}

/// The control of a run: the first signal asks running stages to stop, the second one kills them.
pub(crate) fn control() -> Result<Control, Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let control = Control::default();
    let signalled = control.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if signalled.cancel.is_cancelled() {
                signalled.kill.cancel();
            }
            signalled.cancel.cancel();
        }
    });
    Ok(control)
}

/// A flag that the first signal sets; the second one ends the process.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), stop.clone())
            .map_err(failed)?;
        signal_hook::flag::register(signal, stop.clone()).map_err(failed)?;
    }
    Ok(stop)
}
