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

/// What making a capturer costs, in this program and with 50 more libraries in it.
pub fn print_new() {
    println!("\n| Capturer::new | images | ms | memory |\n| --- | --- | --- | --- |");
    for title in ["this program", "with more libraries"] {
        if title != "this program" {
            load_more();
        }
        let images = crate::images::all().len();
        let before = resident();
        let start = Instant::now();
        let capturer = capturer(Method::Rules);
        let took = start.elapsed().as_secs_f64() * 1e3;
        println!("| {title} | {images} | {took:.1} | {:.1} MB |", (resident() - before) as f64 / 1e6);
        drop(capturer);
    }
}

/// Loads libraries of the system's, as far as they let themselves.
fn load_more() {
    let directory = std::fs::read_dir("/usr/lib/x86_64-linux-gnu").into_iter().flatten().flatten();
    let mut paths: Vec<_> = directory.map(|entry| entry.path()).collect();
    paths.sort();
    let names = paths.iter().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ["libX", "libc", "libg", "libp", "libs"].iter().any(|start| name.starts_with(start))
            && name.ends_with(".0")
    });
    let mut loaded = 0;
    for path in names {
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: a C string; libraries of the system's do no harm by being there.
        loaded += usize::from(!unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) }.is_null());
        if loaded == 50 {
            return;
        }
    }
}

/// Bytes of this process that are in memory and its own.
fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let private = text.lines().filter(|line| line.starts_with("Private_Dirty"));
    let sizes = private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<i64>().ok());
    sizes.sum::<i64>() * 1024
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
