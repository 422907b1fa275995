//! What the kernel tells of each thread.

use super::lock_wait::LockWait;
use super::processors::{CpuAvoidance, workers};
use super::target::Target;
use crate::ThreadState;
use crate::gregset;
use crate::procfs::{
    Calling, Stat, Syscalls, SystemCall, called_by_code, is_restarted_by_number, parse_syscall,
    restarted_call,
};
use backtrail_core::{Avma, Family};
use std::time::{Duration, Instant};

/// What is known of a thread besides its stack.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadInfo {
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
    /// Which lock it waits for, where that call is `futex` and its registers tell (x86).
    pub waits_for: Option<LockWait>,
    /// The functions of the kernel that it waits in, innermost first, where that was asked for and the kernel tells.
    pub kernel_stack: Vec<String>,
    /// The innermost of them alone, where the kernel tells no more.
    pub wait_channel: Option<String>,
    /// The share of one processor that it used over a short while, 1 for all of it.
    pub cpu_usage: Option<f64>,
    /// When it began, since the system did. Tells it from a later thread with the same id.
    pub start: Duration,
    /// Time in its own code since it began.
    pub user_time: Duration,
    /// Time in the kernel on its behalf since it began.
    pub system_time: Duration,
    /// The kernel's priority: 20 plus the nice value; below zero for real-time threads.
    pub priority: i64,
    /// 19 (nice to the others) to -20.
    pub nice: i64,
    /// How its stack was copied.
    pub stack_copy: StackCopyMethod,
    /// Whether its stack is deeper than what was copied.
    pub is_cut: bool,
}

/// How a thread's stack was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackCopyMethod {
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
pub(super) fn read_all(target: &Target, ids: &[u32], away: &mut CpuAvoidance) -> Vec<ThreadInfo> {
    let names = Syscalls::of(target.arch().family());
    let read = |ids: &[u32], away: &mut CpuAvoidance| -> Vec<ThreadInfo> {
        ids.iter().filter_map(|id| one(target, *id, &names, away)).collect()
    };
    if ids.len() < WORTH_TWO || workers() == 1 {
        return read(ids, away);
    }
    let (first, second) = ids.split_at(ids.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut away = CpuAvoidance::default();
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
pub(super) fn one(target: &Target, id: u32, names: &Syscalls, away: &mut CpuAvoidance) -> Option<ThreadInfo> {
    let stat = target.of_thread(id, "stat", Stat::parse)?;
    away.saw(&stat);
    let mut facts = ThreadInfo {
        id,
        inner_id: target.inner_id_of(id),
        state: stat.state,
        waiting_in: None,
        waiting_on: None,
        waits_for: None,
        kernel_stack: Vec::new(),
        wait_channel: None,
        cpu_usage: None,
        start: stat.start_time(),
        user_time: stat.user_time(),
        system_time: stat.system_time(),
        priority: stat.priority,
        nice: stat.nice,
        stack_copy: StackCopyMethod::Not("it was not reached".to_owned()),
        is_cut: false,
        name: stat.name,
    };
    if facts.state == ThreadState::Uninterruptible || !gregset::tells_calls(target.arch().family()) {
        // It may not stop, so that its registers cannot be asked, or they do not tell.
        facts.ask_what_it_waits_in(target, names);
    }
    Some(facts)
}

impl ThreadInfo {
    /// Whether it waits in something that is not known yet.
    fn is_asked(&self) -> bool {
        self.waiting_in.is_none() && self.state != ThreadState::Running && !self.state.is_gone()
    }

    /// What it waits in, by its registers. Where the kernel began that call anew, it is asked for the call until a moment: a
    /// thread that was let go of has to come to sleep again.
    pub(super) fn waits_in(&mut self, call: &Waiting, target: &Target, names: &Syscalls, until: Instant) {
        if self.is_asked() {
            self.name_call(call, target, names, until);
        }
    }

    fn name_call(&mut self, waiting: &Waiting, target: &Target, names: &Syscalls, until: Instant) {
        let number = waiting.call.number;
        let mut name = names.name(number).map_or_else(|| format!("system call {number}"), str::to_owned);
        if name == "restart_syscall" {
            let restarted = self.restarted(waiting, target, names, until);
            restarted.unwrap_or("unknown (restarted)").clone_into(&mut name);
        }
        let [descriptor, ..] = waiting.call.arguments;
        if takes_descriptor(&name) {
            self.waiting_on = target.file_behind(descriptor);
        }
        self.waiting_in = Some(name);
    }

    /// The call that the kernel began anew: by the code that calls it, or by where in the kernel the thread sleeps.
    fn restarted(
        &self,
        waiting: &Waiting,
        target: &Target,
        names: &Syscalls,
        until: Instant,
    ) -> Option<&'static str> {
        const PAUSE: Duration = Duration::from_millis(1);
        if let Some(name) = waiting.called_by_code(target, names) {
            return Some(name);
        }
        let now = || target.of_thread(self.id, "syscall", parse_syscall);
        let is_there = |calling: &Calling| Waiting::of(calling).as_ref() == Some(waiting);
        loop {
            match now()? {
                // It has to come to sleep first.
                Calling::Running => {}
                calling if is_there(&calling) => {
                    if let Some(channel) = target.wait_channel(self.id)
                        && now().as_ref().is_some_and(is_there)
                    {
                        return restarted_call(&waiting.call, &channel);
                    }
                }
                // It waits in something else by now.
                Calling::Waiting { .. } => return None,
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks the kernel what the thread waits in. While no thread stands: none must wait for the answer.
    pub(super) fn ask_what_it_waits_in(&mut self, target: &Target, names: &Syscalls) {
        if !self.is_asked() {
            return;
        }
        let calling = target.of_thread(self.id, "syscall", parse_syscall);
        if let Some(waiting) = calling.as_ref().and_then(Waiting::of) {
            self.name_call(&waiting, target, names, Instant::now());
        } else if self.state == ThreadState::Uninterruptible {
            self.waiting_in = target.wait_channel(self.id);
        }
    }
}

/// A system call that a thread waits in, and from where it called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) call: SystemCall,
    pub(super) program_counter: Avma,
}

impl Waiting {
    fn of(calling: &Calling) -> Option<Self> {
        match *calling {
            Calling::Waiting { call, program_counter, .. } => Some(Self { call: call?, program_counter }),
            Calling::Running => None,
        }
    }

    /// The call that the code before the program counter makes, if it is one that the kernel begins anew.
    fn called_by_code(&self, target: &Target, names: &Syscalls) -> Option<&'static str> {
        if !matches!(target.arch().family(), Family::X86_64 | Family::X86) {
            return None;
        }
        let mut code = [0; 8];
        let start = self.program_counter.checked_sub(code.len() as u64)?;
        let copied = target.memory().copy(start, &mut code);
        let name = names.name(called_by_code(code.get(..copied)?)?)?;
        is_restarted_by_number(name).then_some(name)
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
