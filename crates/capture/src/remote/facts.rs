//! What the kernel tells of each thread.

use super::target::{Target, small_file};
use super::usage::Usage;
use crate::ThreadState;
use crate::procfs::{Calling, Stat, Syscalls, parse_syscall};
use std::time::Duration;

/// What is known of a thread besides its stack.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadFacts {
    /// Its id.
    pub id: u32,
    /// Its id in the innermost namespace of processes that it is in, where that is another.
    pub inner_id: Option<u32>,
    /// Its name.
    pub name: String,
    /// What it was doing.
    pub state: ThreadState,
    /// The system call that it waited in; of a thread that waits in the kernel for another reason, the kernel's function.
    pub waiting_in: Option<String>,
    /// What that call was about: the file behind its file descriptor.
    pub waiting_on: Option<String>,
    /// The share of one processor that it used over a short while, 1 for all of it.
    pub cpu_usage: Option<f64>,
    /// Time in its own code since it began.
    pub user_time: Duration,
    /// Time in the kernel on its behalf since it began.
    pub system_time: Duration,
    /// The kernel's priority: 20 plus the nice value; below zero for real-time threads.
    pub priority: i64,
    /// 19 (nice to the others) to -20.
    pub nice: i64,
    /// How its stack was copied.
    pub how: How,
    /// Whether its stack is deeper than what was copied.
    pub is_cut: bool,
}

/// How a thread's stack was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It was stopped for so long at most.
    Stopped(Duration),
    /// It was not stopped, for this reason, but stood still anyway. Of its registers only the stack pointer and the
    /// program counter are known.
    Unstopped(String),
    /// It was not, for this reason.
    Not(String),
}

/// Threads above this number are asked for by two threads of ours.
const WORTH_TWO: usize = 100;

/// Reads the facts of all of `ids` that are there, and begins to measure their CPU usage.
pub(super) fn read_all(target: &Target, ids: &[u32]) -> (Vec<ThreadFacts>, Usage) {
    let mut usage = Usage::default();
    let mut facts = Vec::with_capacity(ids.len());
    let read = |ids: &[u32]| {
        let mut usage = Usage::default();
        let facts: Vec<_> = ids.iter().filter_map(|id| one(target, *id, &mut usage)).collect();
        (facts, usage)
    };
    let parts: Vec<_> = if ids.len() < WORTH_TWO {
        vec![read(ids)]
    } else {
        let (first, second) = ids.split_at(ids.len() / 2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| read(second));
            let own = read(first);
            [Some(own), other.join().ok()].into_iter().flatten().collect()
        })
    };
    for (more, times) in parts {
        facts.extend(more);
        usage.join(times);
    }
    (facts, usage)
}

/// The facts of one thread; `None` where it is gone.
pub(super) fn one(target: &Target, id: u32, usage: &mut Usage) -> Option<ThreadFacts> {
    let stat = Stat::parse(&small_file(&target.thread_file(id, "stat"))?)?;
    usage.begin(target, id, &stat);
    Some(ThreadFacts {
        id,
        inner_id: target.inner_id_of(id),
        state: stat.state,
        waiting_in: None,
        waiting_on: None,
        cpu_usage: None,
        user_time: stat.user_time(),
        system_time: stat.system_time(),
        priority: stat.priority,
        nice: stat.nice,
        how: How::Not("it was not reached".to_owned()),
        is_cut: false,
        name: stat.name,
    })
}

impl ThreadFacts {
    /// Asks what the thread waits in; to be asked before it is stopped.
    pub(super) fn ask_what_it_waits_in(&mut self, target: &Target, names: &Syscalls) {
        if matches!(self.state, ThreadState::Running) || self.state.is_gone() {
            return;
        }
        let calling =
            small_file(&target.thread_file(self.id, "syscall")).and_then(|line| parse_syscall(&line));
        if let Some(Calling::Waiting { call: Some((number, arguments)), .. }) = calling {
            let name = names.name(number).map_or_else(|| format!("system call {number}"), str::to_owned);
            if takes_descriptor(&name) {
                let [descriptor, ..] = arguments;
                self.waiting_on = target.file_behind(descriptor);
            }
            self.waiting_in = Some(name);
        } else if self.state == ThreadState::Uninterruptible {
            let place = small_file(&target.thread_file(self.id, "wchan")).unwrap_or_default();
            let place = String::from_utf8_lossy(&place).trim().to_owned();
            self.waiting_in = Some(place).filter(|place| !matches!(place.as_str(), "" | "0"));
        }
    }
}

/// Whether a call's first argument is a file descriptor whose file says what is waited for.
fn takes_descriptor(name: &str) -> bool {
    matches!(
        name,
        "read"
            | "readv"
            | "pread64"
            | "preadv"
            | "write"
            | "writev"
            | "pwrite64"
            | "pwritev"
            | "recvfrom"
            | "recvmsg"
            | "recvmmsg"
            | "sendto"
            | "sendmsg"
            | "accept"
            | "accept4"
            | "connect"
            | "epoll_wait"
            | "epoll_pwait"
            | "epoll_pwait2"
            | "fsync"
            | "fdatasync"
            | "flock"
            | "fcntl"
            | "ioctl"
            | "io_uring_enter"
            | "getdents64"
    )
}
