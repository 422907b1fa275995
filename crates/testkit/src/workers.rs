use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Starts threads that only wait, `worker 0` and so on, and returns when all of them run: for programs that crash beside them.
pub fn start_workers(count: usize) {
    let running = Arc::new(Barrier::new(count + 1));
    for number in 0..count {
        let thread = std::thread::Builder::new().name(format!("worker {number}"));
        let running = Arc::clone(&running);
        let work = move || {
            running.wait();
            std::thread::sleep(Duration::from_secs(600));
        };
        drop(thread.spawn(work));
    }
    running.wait();
}
