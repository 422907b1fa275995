//! Threads that wait for locks of Rust's standard library, each named by what it waits for. Built by `locks.rs`; does nothing as a
//! test of its own.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use std::io::Read as _;
use std::process::id;
use std::sync::{Condvar, Mutex, Once, RwLock};
use std::thread::{self, Builder};

/// Behind the word lies what glibc's mutex would have there: no count, an id of a thread, one user, the plain kind.
static MUTEX: Mutex<[u32; 8]> = Mutex::new([0; 8]);
static RW_LOCK: RwLock<()> = RwLock::new(());
static OF_CONDITION: Mutex<()> = Mutex::new(());
static CONDITION: Condvar = Condvar::new();
static ONCE: Once = Once::new();

fn start(name: &str, wait: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    Builder::new().name(name.to_owned()).spawn(wait).unwrap()
}

fn main() {
    let mut guard = MUTEX.lock().unwrap();
    *guard = [id(), 1, 0, 0, 0, 0, 0, 0];
    let _written = RW_LOCK.write().unwrap();
    let mutex = start("mutex", || drop(MUTEX.lock()));
    start("reader", || drop(RW_LOCK.read()));
    start("writer", || drop(RW_LOCK.write()));
    start("condition", || drop(CONDITION.wait(OF_CONDITION.lock().unwrap())));
    start("park", || loop {
        thread::park();
    });
    start("join", || mutex.join().unwrap());
    ONCE.call_once(|| {
        start("once", || ONCE.call_once(|| ()));
        println!("0x0 0x0");
        while std::io::stdin().read(&mut [0]).is_ok_and(|size| size > 0) {}
        std::process::exit(0);
    });
}
