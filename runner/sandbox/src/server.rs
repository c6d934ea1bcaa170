//! The server's side: `runner sandbox`. It forks supervisors on request, and exits when the engine does.

use super::descriptors::receive;
use super::process::{self, Fork, fork};
use super::supervisor::supervise;
use rustix::fd::OwnedFd;
use std::os::fd::AsFd as _;

/// Serves the requests on standard input, a socket, until end of file. A request is the control socket of a
/// new supervisor.
pub fn sandbox() -> u8 {
    let Ok(requests) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return 1;
    };
    // The null device is standard input of all processes that the server forks.
    let null = std::fs::File::open("/dev/null");
    if null.is_ok_and(|null| rustix::stdio::dup2_stdin(&null).is_ok()) {
        serve(requests);
    }
    0
}

fn serve(requests: OwnedFd) {
    process::reap_automatically();
    loop {
        let control = match receive(requests.as_fd(), &mut [0]) {
            Ok((0, _)) | Err(_) => return,
            Ok((_, None)) => continue,
            Ok((_, Some(control))) => control,
        };
        match fork() {
            Ok(Fork::Child) => {
                drop(requests);
                process::default_signal(rustix::process::Signal::CHILD);
                supervise(control);
                process::exit(0);
            }
            // Without a supervisor, the engine sees the end of the control socket.
            Ok(Fork::Parent(_)) | Err(_) => {}
        }
    }
}
