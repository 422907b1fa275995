//! How often and how many at a time passwords are looked at.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Wrong passwords in a row, after which a name has to wait: twice as long each time.
const FREE: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Names that have to wait; strangers may try any.
const MAX_WAITING: usize = 10_000;

/// How long somebody waits for the turn to have a password looked at.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a password is not looked at now.
#[derive(Debug)]
pub(crate) struct TooMany {
    pub(crate) why: &'static str,
    pub(crate) wait: Duration,
}

/// Looks at passwords: one at a time, since each takes 19 MiB and tens of milliseconds, and not as often as somebody who guesses wants.
pub(crate) struct Passwords {
    turn: Semaphore,
    wrong: Mutex<HashMap<String, Wrong>>,
}

/// Wrong passwords for a name in a row, and the last.
struct Wrong {
    count: u32,
    last: Instant,
}

impl Wrong {
    fn wait(&self) -> Duration {
        match self.count.checked_sub(FREE) {
            None => Duration::ZERO,
            Some(more) => LONGEST_WAIT.min(FIRST_WAIT * 2_u32.saturating_pow(more)),
        }
    }

    fn still(&self) -> Duration {
        self.wait().saturating_sub(self.last.elapsed())
    }
}

impl Default for Passwords {
    fn default() -> Self {
        Self { turn: Semaphore::new(1), wrong: Mutex::default() }
    }
}

impl Passwords {
    /// The turn to look at a password.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, TooMany> {
        let turn = timeout(PATIENCE, self.turn.acquire()).await.ok().and_then(std::result::Result::ok);
        turn.ok_or(TooMany { why: "too many log in at this moment", wait: PATIENCE })
    }

    /// Refuses a name that had too many wrong passwords.
    pub(crate) fn may_try(&self, name: &str) -> Result<(), TooMany> {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        match wrong.get(name).map_or(Duration::ZERO, Wrong::still) {
            Duration::ZERO => Ok(()),
            still => Err(TooMany { why: "too many wrong passwords for this name", wait: still }),
        }
    }

    /// Counts wrong passwords in a row.
    pub(crate) fn tried(&self, name: &str, is_right: bool) {
        let mut all = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if is_right {
            all.remove(name);
            return;
        }
        if all.len() >= MAX_WAITING {
            // Whoever waited to the end begins anew; a flood of names makes all do so.
            all.retain(|_, wrong| !wrong.still().is_zero());
            if all.len() >= MAX_WAITING {
                all.clear();
            }
        }
        let wrong = all.entry(name.to_owned()).or_insert(Wrong { count: 0, last: Instant::now() });
        *wrong = Wrong { count: wrong.count.saturating_add(1), last: Instant::now() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_waits() {
        let passwords = Passwords::default();
        for _ in 0..FREE {
            assert!(passwords.may_try("anna").is_ok());
            passwords.tried("anna", false);
        }
        assert!(passwords.may_try("anna").is_err());
        assert!(passwords.may_try("bert").is_ok(), "others do not wait");
        let wait = |count| Wrong { count, last: Instant::now() }.wait();
        assert_eq!(
            [wait(4), wait(5), wait(6), wait(40)],
            [Duration::ZERO, FIRST_WAIT, FIRST_WAIT * 2, LONGEST_WAIT]
        );
        passwords.tried("anna", true);
        assert!(passwords.may_try("anna").is_ok());
    }

    #[test]
    fn what_is_remembered_of_strangers_is_bounded() {
        let passwords = Passwords::default();
        for number in 0..=MAX_WAITING {
            passwords.tried(&number.to_string(), false);
        }
        assert!(passwords.wrong.lock().unwrap().len() <= MAX_WAITING);
    }
}
