//! The engine's side of the sandbox.

use super::descriptors::{pair, send};
use super::protocol::{self, KILL, SANDBOX, Said, Spec, Surroundings, TERMINATE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The maximum number of idle supervisors, which wait for their next program.
const IDLE: usize = 64;
/// The number of new supervisors that may be killed before they get their program.
const ATTEMPTS: usize = 3;

/// The path of this program, on Linux even if its file is replaced meanwhile.
///
/// # Errors
/// If the system does not report it, as on Linux without `/proc`.
pub fn this_program() -> io::Result<PathBuf> {
    let link = Path::new("/proc/self/exe");
    match link.exists() {
        true => Ok(link.to_owned()),
        false => std::env::current_exe(),
    }
}

/// Supervisors without a program: their control sockets.
#[derive(Default)]
struct Idle(Mutex<Vec<(Surroundings, UnixStream)>>);

impl Idle {
    /// Takes a supervisor that has prepared these surroundings.
    fn take(&self, surroundings: &Surroundings) -> Option<UnixStream> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(|(prepared, _)| prepared == surroundings)?;
        Some(idle.remove(at).1)
    }

    fn put(&self, surroundings: Surroundings, control: UnixStream) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((surroundings, control));
        let excess = idle.len().saturating_sub(IDLE);
        idle.drain(..excess);
    }
}

/// A process that forks supervisors. Dropping it ends all of them.
struct Server {
    child: Child,
    requests: Option<OwnedFd>,
}

impl Server {
    fn start(program: &Path, home: &Path) -> io::Result<Self> {
        let (ours, theirs) = pair()?;
        if !Path::new("/dev/null").exists() {
            return Err(io::Error::other("`/dev/null` does not exist"));
        }
        let child = Command::new(program)
            .arg0("runner")
            .arg(SANDBOX)
            .env_clear()
            .env("RUNNER_HOME", home)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal reaches only the engine.
            .process_group(0)
            .spawn()?;
        Ok(Self {
            child,
            requests: Some(ours),
        })
    }

    /// Requests a supervisor, and returns its control socket.
    fn supervisor(&self) -> io::Result<UnixStream> {
        let (control, theirs) = pair()?;
        let requests = self.requests.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        send(requests.as_fd(), theirs.as_fd())?;
        Ok(control.into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.requests.take();
        let _ = self.child.wait();
    }
}

/// A server of supervisors, for the programs of one engine. Dropping the client ends all of them.
pub struct Client {
    program: PathBuf,
    home: PathBuf,
    server: Mutex<Server>,
    idle: Arc<Idle>,
}

impl Client {
    /// Starts the server, which is the executable `program`: this program. From the engine's environment,
    /// which may hold credentials, the server inherits nothing; it is only passed the path of its `home`.
    pub fn start(program: &Path, home: &Path) -> io::Result<Self> {
        Ok(Self {
            program: program.to_owned(),
            home: home.to_owned(),
            server: Mutex::new(Server::start(program, home)?),
            idle: Arc::default(),
        })
    }

    /// Starts a program whose standard output and error are `log`.
    pub fn run(&self, spec: &Spec, log: &OwnedFd) -> io::Result<Running> {
        let submit = |control: &mut UnixStream| {
            send(control.as_fd(), log.as_fd())?;
            protocol::write(control, spec)
        };
        let mut attempts = 0;
        let control = loop {
            let idle = self.idle.take(&spec.surroundings);
            let is_new = idle.is_none();
            let mut control = idle.map_or_else(|| self.supervisor(), Ok)?;
            attempts += usize::from(is_new);
            // Another takes the place of one that somebody killed.
            match submit(&mut control) {
                Ok(()) => break control,
                Err(err) if is_new && attempts == ATTEMPTS => return Err(err),
                Err(_) => {}
            }
        };
        Ok(Running {
            control: Some(control),
            surroundings: spec.surroundings.clone(),
            is_commanded: false,
            has_ended: false,
            idle: Arc::downgrade(&self.idle),
        })
    }

    /// Asks the server to fork a supervisor, and returns the supervisor's control socket. A server that
    /// somebody killed is started again.
    fn supervisor(&self) -> io::Result<UnixStream> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.supervisor().or_else(|_| {
            *server = Server::start(&self.program, &self.home)?;
            server.supervisor()
        })
    }
}

/// A running program. Dropping it kills the program and its family, unless they have ended.
pub struct Running {
    control: Option<UnixStream>,
    surroundings: Surroundings,
    /// True once a command was sent, which the supervisor may read after the program's end.
    is_commanded: bool,
    has_ended: bool,
    idle: Weak<Idle>,
}

impl Running {
    /// The next message within `time`; `None` if there is none yet.
    ///
    /// # Errors
    /// If the supervisor is gone.
    pub fn said(&mut self, time: Duration) -> io::Result<Option<Said>> {
        let time = Timespec::try_from(time).ok();
        let control = self.control.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut readable = [PollFd::new(control, PollFlags::IN)];
        match poll(&mut readable, time.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) => {
                let said = protocol::read(control)?;
                self.has_ended |= matches!(said, Said::Ended { .. } | Said::Failed { .. });
                Ok(Some(said))
            }
            Err(err) => Err(err.into()),
        }
    }

    /// Asks every process of the program to end.
    pub fn terminate(&mut self) {
        self.command(TERMINATE);
    }

    /// Kills every process of the program.
    pub fn kill(&mut self) {
        self.command(KILL);
    }

    fn command(&mut self, command: u8) {
        self.is_commanded = true;
        if let Some(control) = &mut self.control {
            // A supervisor that has exited is noticed by the end of its messages.
            let _ = control.write_all(&[command]);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended
            && !self.is_commanded
            && let (Some(idle), Some(control)) = (self.idle.upgrade(), self.control.take())
        {
            idle.put(std::mem::take(&mut self.surroundings), control);
        }
    }
}
