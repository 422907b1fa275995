//! Which locks threads wait for, and who holds them.

use crate::io::text::{Look, Text};
use backtrail::{Deadlock, DeadlockedThread, LockKind, Process};
use backtrail_render::threads::{called, lock_wait};
use std::io;

/// The process's deadlocks, each thread with what it holds and what it waits for.
pub(crate) fn deadlocks(out: &mut Text<'_>, process: &Process) -> io::Result<()> {
    for deadlock in &process.deadlocks {
        out.end()?;
        let (look, title) = match deadlock.is_certain {
            true => (Look::Bad, "DEADLOCK"),
            false => (Look::Heading, "Possible deadlock"),
        };
        out.painted_line(look, format_args!("{title}: {}", threads(deadlock)))?;
        // What a thread holds is what the one before it in the circle waits for.
        let before = deadlock.threads.last().into_iter().chain(&deadlock.threads);
        for (thread, before) in deadlock.threads.iter().zip(before) {
            member(out, thread, before)?;
        }
        match deadlock.waiting_behind {
            0 => {}
            1 => out.line("  1 further thread waits for them")?,
            count => out.line(format_args!("  {count} further threads wait for them"))?,
        }
        if !deadlock.is_certain {
            out.painted_line(Look::Faint, format_args!("  {}", why_uncertain(deadlock)))?;
        }
    }
    Ok(())
}

fn threads(deadlock: &Deadlock) -> String {
    match deadlock.threads.len() {
        1 => "a thread waits for itself".to_owned(),
        count => format!("{count} threads wait for each other"),
    }
}

fn member(out: &mut Text<'_>, thread: &DeadlockedThread, before: &DeadlockedThread) -> io::Result<()> {
    let held = &before.waits_for;
    let holds = match held.kind {
        LockKind::Mutex => format!("holds mutex {}, ", held.address),
        LockKind::RwLock => format!("holds rwlock {}, ", held.address),
        _ => String::new(),
    };
    let waits = lock_wait(&thread.waits_for, Some(thread.id)).unwrap_or_default();
    out.put_str("  ")?;
    out.paint(Look::Strong, called(thread.id, thread.name.as_deref()))?;
    out.line(format_args!(" {holds}{waits}"))
}

fn why_uncertain(deadlock: &Deadlock) -> &'static str {
    if deadlock.threads.iter().any(|thread| thread.waits_for.has_time_limit) {
        return "one of them waits for some time only";
    }
    "the threads were stopped one after the other; --consistent stops them together"
}
