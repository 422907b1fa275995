//! `backtrail::capture`: the whole way of a program that wants its stack, from registers to a list of frames.

use crate::{State, Walker, descend, median};
use backtrail::capture::{Capturer, Method, Options, RawStack, ThreadCache, ThreadId};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Instant;

fn capturer(method: Method) -> Capturer {
    let mut options = Options::default();
    options.method = method;
    Capturer::new(options).unwrap()
}

/// The own stack.
pub struct Own {
    name: &'static str,
    capturer: Capturer,
    cache: Option<ThreadCache>,
    stack: RawStack,
}

impl Own {
    pub fn new(name: &'static str, method: Method, has_cache: bool) -> Self {
        let cache = has_cache.then(|| ThreadCache::new().unwrap());
        Self { name, capturer: capturer(method), cache, stack: RawStack::new() }
    }
}

impl Walker for Own {
    fn name(&self) -> &'static str {
        self.name
    }

    fn walk(&mut self, _: &State, forget: bool) -> usize {
        match self.cache.as_mut().filter(|_| !forget) {
            Some(cache) => self.capturer.current_cached(cache, 0, &mut self.stack),
            None => self.capturer.current(&mut self.stack),
        }
        self.stack.frames().len()
    }

    fn remembers(&self) -> bool {
        self.cache.is_some()
    }
}

static READY: AtomicU32 = AtomicU32::new(0);
static OVER: AtomicBool = AtomicBool::new(false);

/// How long it takes to capture another thread, and all of many.
pub fn print_others() {
    let capturer = capturer(Method::Rules);
    println!("\n| capture of other threads | µs each |");
    println!("| --- | --- |");
    for (count, title) in
        [(1, "1 thread that waits"), (100, "100 threads that wait"), (1000, "1,000 threads that wait")]
    {
        READY.store(0, SeqCst);
        OVER.store(false, SeqCst);
        let threads: Vec<_> = (0..count)
            .map(|_| {
                std::thread::spawn(|| {
                    descend(20, &mut || {
                        READY.fetch_add(1, SeqCst);
                        while !OVER.load(SeqCst) {
                            std::thread::park();
                        }
                    });
                })
            })
            .collect();
        while READY.load(SeqCst) < count {
            std::thread::yield_now();
        }
        let mut times = Vec::new();
        let first = ThreadId::of(&threads[0]).unwrap();
        let mut stack = RawStack::new();
        for _ in 0..if count == 1 { 1000 } else { 9 } {
            let start = Instant::now();
            if count == 1 {
                capturer.thread(first, &mut stack).unwrap();
            } else {
                let all = capturer.all();
                assert!(all.iter().all(|thread| thread.stack.is_ok()));
            }
            times.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(count));
        }
        println!("| {title} | {:.1} |", median(times));
        OVER.store(true, SeqCst);
        for thread in threads {
            thread.thread().unpark();
            thread.join().unwrap();
        }
    }
}
