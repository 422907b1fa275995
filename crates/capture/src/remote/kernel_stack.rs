//! Where in the kernel threads wait: `/proc/PID/task/TID/stack`, which takes `CAP_SYS_ADMIN`, or the function that `wchan` names.

use super::options::Options;
use super::target::Target;
use super::thread_info::ThreadInfo;
use crate::procfs::{Calling, parse_kernel_stack, parse_syscall};
use crate::{Thread, ThreadState};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Fills in where threads wait: those in uninterruptible sleep, and with `all` those that sleep. None of them is stopped: a stopped
/// thread's kernel stack is that of its stop. What is told is of the very wait that the thread's registers are of: one that has to come
/// to sleep there again after its stop is waited for. Says for how many that was in vain.
pub(super) fn read(
    target: &Target,
    infos: &mut [ThreadInfo],
    threads: &[Thread],
    options: &Options,
) -> usize {
    // For all threads together; on a busy machine each needs its turn on a processor.
    let until = Instant::now() + options.patience.saturating_mul(10);
    let mut unknown = 0;
    for (info, thread) in infos.iter_mut().zip(threads) {
        let is_asked = match info.state {
            ThreadState::Uninterruptible => true,
            ThreadState::Sleeping => options.kernel_stacks,
            _ => false,
        };
        if is_asked && !read_one(target, info, thread, until) {
            unknown += 1;
        }
    }
    unknown
}

/// Whether it was there.
fn read_one(target: &Target, info: &mut ThreadInfo, thread: &Thread, until: Instant) -> bool {
    const PAUSE: Duration = Duration::from_millis(1);
    let now = || target.of_thread(info.id, "syscall", parse_syscall);
    loop {
        let before = now();
        if before.as_ref().is_some_and(|calling| is_there(calling, thread)) {
            let stack = target.kernel_stack(info.id);
            let channel = if stack.is_empty() { target.wait_channel(info.id) } else { None };
            if now() == before {
                (info.kernel_stack, info.wait_channel) = (stack, channel);
                return true;
            }
        }
        if before.is_none() || Instant::now() >= until {
            return false;
        }
        sleep(PAUSE);
    }
}

/// Whether a thread waits where its registers are of.
fn is_there(calling: &Calling, thread: &Thread) -> bool {
    let Calling::Waiting { stack_pointer, program_counter, .. } = *calling else { return false };
    let (sp, pc) = (thread.registers.sp(), thread.registers.pc());
    sp.is_none_or(|sp| sp == stack_pointer) && pc.is_none_or(|pc| pc == program_counter)
}

impl Target {
    /// The functions of the kernel that a thread waits in, innermost first; none where the kernel does not tell.
    fn kernel_stack(&self, id: u32) -> Vec<String> {
        self.of_thread(id, "stack", |text| Some(parse_kernel_stack(text))).unwrap_or_default()
    }
}
