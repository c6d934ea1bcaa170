//! A file system with one file, `disk`, whose requests are answered here (FUSE, protocol 7.31): its writes
//! and flushes are recorded in their order, and its answers can be held back.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// An operation that reached the disk.
#[derive(Clone)]
pub(crate) enum Op {
    /// Bytes at an offset; lost by a power failure that comes before the next flush, or not.
    Write(usize, Vec<u8>),
    /// A flush: earlier writes are safe.
    Flush,
}

/// The state that the server and the test share.
struct State {
    bytes: Vec<u8>,
    log: Vec<Op>,
    held: bool,
    /// Requests that wait for a server that takes none.
    waiting: usize,
}

/// The server of one file system; it ends when that is unmounted.
pub(crate) struct Fuse {
    device: File,
    state: Arc<(Mutex<State>, Condvar)>,
}

/// The options of `mount -i -t fuse`, whose standard input is [`Fuse::device`].
pub(crate) const OPTIONS: &str = "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other";

impl Fuse {
    /// A file system whose file holds these bytes. `None` without `/dev/fuse`.
    pub(crate) fn start(bytes: Vec<u8>) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        let state = State {
            bytes,
            log: Vec::new(),
            held: false,
            waiting: 0,
        };
        let fuse = Self {
            device,
            state: Arc::new((Mutex::new(state), Condvar::new())),
        };
        let (mut device, state) = (fuse.device.try_clone().ok()?, fuse.state.clone());
        std::thread::spawn(move || serve(&mut device, &state));
        Some(fuse)
    }

    /// The device, for the program that mounts it.
    pub(crate) fn device(&self) -> Stdio {
        OwnedFd::from(self.device.try_clone().unwrap()).into()
    }

    /// The number of operations so far.
    pub(crate) fn operations(&self) -> usize {
        self.state.0.lock().unwrap().log.len()
    }

    /// All operations.
    pub(crate) fn log(&self) -> Vec<Op> {
        self.state.0.lock().unwrap().log.clone()
    }

    /// Takes no more requests but the next one, or takes them again.
    pub(crate) fn hold(&self, held: bool) {
        let mut state = self.state.0.lock().unwrap();
        state.held = held;
        state.waiting = 0;
        self.state.1.notify_all();
    }

    /// True if somebody waits for an answer, now or within this time.
    pub(crate) fn is_waited_for(&self, time: Duration) -> bool {
        let state = self.state.0.lock().unwrap();
        let (state, _) = self
            .state
            .1
            .wait_timeout_while(state, time, |state| state.waiting == 0)
            .unwrap();
        state.waiting > 0
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Answers until the file system is unmounted.
fn serve(device: &mut File, state: &(Mutex<State>, Condvar)) {
    let mut request = vec![0; 1 << 21];
    loop {
        // A request that nobody has taken ends with the process that made it; of one that was taken, the
        // kernel awaits the answer.
        if state.0.lock().unwrap().held {
            let mut polled = [PollFd::new(&*device, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0) {
                state.0.lock().unwrap().waiting = 1;
                state.1.notify_all();
            }
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let len = match device.read(&mut request) {
            Ok(len) if len >= 40 => len,
            // Not mounted yet.
            Err(err) if err.raw_os_error() == Some(1) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(err) if matches!(err.raw_os_error(), Some(2 | 4 | 11)) => continue,
            _ => return,
        };
        let request = &request[..len];
        let (opcode, unique, node) = (u32_at(request, 4), u64_at(request, 8), u64_at(request, 16));
        // Forgotten nodes and interrupts get no answer.
        if matches!(opcode, 2 | 36 | 42) {
            continue;
        }
        let mut shared = state.0.lock().unwrap();
        let (error, body) = answer(opcode, node, &request[40..], &mut shared);
        drop(shared);
        let mut reply = Vec::with_capacity(16 + body.len());
        reply.extend((16 + body.len() as u32).to_le_bytes());
        reply.extend(error.to_le_bytes());
        reply.extend(unique.to_le_bytes());
        reply.extend(body);
        // Whoever asked may be gone.
        let _ = device.write(&reply);
    }
}

/// `fuse_attr` of the root (1) or of the file (2).
fn attributes(node: u64, size: usize) -> Vec<u8> {
    let (mode, size) = if node == 1 {
        (0o40755_u32, 0)
    } else {
        (0o100_644, size as u64)
    };
    let mut out = Vec::new();
    for number in [node, size, size / 512, 1_700_000_000, 1_700_000_000, 1_700_000_000] {
        out.extend(number.to_le_bytes());
    }
    for number in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        out.extend(number.to_le_bytes());
    }
    out
}

fn numbers(of: &[u32]) -> Vec<u8> {
    of.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The error number and the body of the answer to a request.
fn answer(opcode: u32, node: u64, body: &[u8], state: &mut State) -> (i32, Vec<u8>) {
    let none = (0, Vec::new());
    match opcode {
        // LOOKUP, GETATTR, SETATTR: nothing is remembered by the kernel.
        1 if body.starts_with(b"disk\0") => {
            let head = [2_u64, 0, 0, 0].iter().flat_map(|number| number.to_le_bytes());
            let mut out: Vec<u8> = head.collect();
            out.extend(numbers(&[0, 0]));
            out.extend(attributes(2, state.bytes.len()));
            (0, out)
        }
        1 => (-2, Vec::new()),
        3 | 4 => {
            let mut out = vec![0; 16];
            out.extend(attributes(node, state.bytes.len()));
            (0, out)
        }
        // OPEN, without a FLUSH at each close (FOPEN_NOFLUSH): a process that is killed would wait for its
        // answer.
        14 => (0, numbers(&[0, 0, 1 << 5, 0])),
        // OPENDIR
        27 => (0, vec![0; 16]),
        // READ
        15 => {
            let at = (u64_at(body, 8) as usize).min(state.bytes.len());
            let end = (at + u32_at(body, 16) as usize).min(state.bytes.len());
            (0, state.bytes[at..end].to_vec())
        }
        // WRITE
        16 => {
            let (at, len) = (u64_at(body, 8) as usize, u32_at(body, 16) as usize);
            let data = body[40..40 + len].to_vec();
            if at + len > state.bytes.len() {
                return (-28, Vec::new());
            }
            state.bytes[at..at + len].copy_from_slice(&data);
            state.log.push(Op::Write(at, data));
            (0, numbers(&[len as u32, 0]))
        }
        // STATFS
        17 => (0, vec![0; 80]),
        // FSYNC
        20 => {
            state.log.push(Op::Flush);
            none
        }
        // RELEASE, FLUSH, RELEASEDIR, ACCESS, DESTROY
        18 | 25 | 29 | 34 | 38 => none,
        // READDIR: empty
        28 => none,
        // INIT: writes of up to 1 MiB.
        26 => {
            let mut out = numbers(&[7, 31, 1 << 17, (1 << 22) | (1 << 5)]);
            out.extend(numbers(&[12 | (10 << 16), 1 << 20, 1, 256]));
            out.resize(64, 0);
            (0, out)
        }
        // FALLOCATE and the rest
        _ => (-38, Vec::new()),
    }
}
