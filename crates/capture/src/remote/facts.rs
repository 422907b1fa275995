//! What the kernel tells of each thread.

use super::away::Away;
use super::target::Target;
use super::workers;
use crate::ThreadState;
use crate::gregset;
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

/// Threads above this number are asked for by two threads of ours, where there is a processor for the second.
const WORTH_TWO: usize = 100;

/// Reads the facts of all of `ids` that are there.
pub(super) fn read_all(target: &Target, ids: &[u32], away: &mut Away) -> Vec<ThreadFacts> {
    let names = Syscalls::of(target.arch().family());
    let read = |ids: &[u32], away: &mut Away| -> Vec<ThreadFacts> {
        ids.iter().filter_map(|id| one(target, *id, &names, away)).collect()
    };
    if ids.len() < WORTH_TWO || workers() == 1 {
        return read(ids, away);
    }
    let (first, second) = ids.split_at(ids.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut away = Away::default();
            (read(second, &mut away), away.busy())
        });
        let mut facts = read(first, away);
        if let Ok((more, busy)) = other.join() {
            facts.extend(more);
            away.join(busy);
        }
        facts
    })
}

/// The facts of one thread; `None` where it is gone.
pub(super) fn one(target: &Target, id: u32, names: &Syscalls, away: &mut Away) -> Option<ThreadFacts> {
    let stat = target.of_thread(id, "stat", Stat::parse)?;
    away.saw(&stat);
    let mut facts = ThreadFacts {
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
    };
    if facts.state == ThreadState::Uninterruptible || !gregset::tells_calls(target.arch().family()) {
        // It may not stop, so that its registers cannot be asked, or they do not tell.
        facts.ask_what_it_waits_in(target, names);
    }
    Some(facts)
}

impl ThreadFacts {
    /// Whether it waits in something that is not known yet.
    fn is_asked(&self) -> bool {
        self.waiting_in.is_none() && self.state != ThreadState::Running && !self.state.is_gone()
    }

    /// What it waits in, by its registers.
    pub(super) fn waits_in(&mut self, call: Option<(u64, u64)>, target: &Target, names: &Syscalls) {
        if let Some((number, first)) = call.filter(|_| self.is_asked()) {
            self.name_call(number, first, target, names);
        }
    }

    fn name_call(&mut self, number: u64, first: u64, target: &Target, names: &Syscalls) {
        let name = names.name(number).map_or_else(|| format!("system call {number}"), str::to_owned);
        if takes_descriptor(&name) {
            self.waiting_on = target.file_behind(first);
        }
        self.waiting_in = Some(name);
    }

    /// Asks the kernel what the thread waits in. While no thread stands: none must wait for the answer.
    pub(super) fn ask_what_it_waits_in(&mut self, target: &Target, names: &Syscalls) {
        if !self.is_asked() {
            return;
        }
        let calling = target.of_thread(self.id, "syscall", parse_syscall);
        if let Some(Calling::Waiting { call: Some((number, arguments)), .. }) = calling {
            let [first, ..] = arguments;
            self.name_call(number, first, target, names);
        } else if self.state == ThreadState::Uninterruptible {
            let place = target
                .of_thread(self.id, "wchan", |text| Some(String::from_utf8_lossy(text).trim().to_owned()));
            self.waiting_in = place.filter(|place| !matches!(place.as_str(), "" | "0"));
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
