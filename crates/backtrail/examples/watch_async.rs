//! An asynchronous runtime, watched: `cargo run -p backtrail --example watch_async`.
//!
//! Two ways. Where the runtime tells when it goes to sleep and wakes, it rests and ticks there, which sees every task that
//! blocks. Where it does not, a task ticks on a timer: while something blocks the thread, the timer does not come to run.
#![allow(clippy::print_stdout, reason = "an example")]

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use backtrail::Symbols;
    use backtrail::hang::{Event, Options, Watch};
    use std::time::Duration;

    let report = |event: Event<'_>| {
        if let Event::Ended(hang) = event {
            let mut hang = hang.clone();
            hang.name(&Symbols::new());
            println!("{hang}");
        }
    };

    println!("By the runtime's own hooks:\n");
    let watch = Watch::current_thread(Options::default(), report)?;
    let (parking, unparking) = (watch.beat(), watch.beat());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .on_thread_park(move || parking.rest())
        .on_thread_unpark(move || unparking.tick())
        .build()?;
    watch.beat().tick();
    runtime.block_on(serve());
    watch.stop();

    println!("By a task that ticks:\n");
    let watch = Watch::current_thread(Options::default(), report)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let beat = watch.beat();
    runtime.block_on(async move {
        let ticks = tokio::spawn(async move {
            loop {
                beat.tick();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        serve().await;
        ticks.abort();
    });
    watch.stop();
    Ok(())
}

/// Does asynchronous work, and once what no task should do.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
async fn serve() {
    for request in 0..4 {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        if request == 2 {
            block_the_thread();
        }
    }
    tokio::task::yield_now().await;
}

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
#[inline(never)]
fn block_the_thread() {
    std::thread::sleep(std::time::Duration::from_millis(800));
    std::hint::black_box(());
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "ios")))]
fn main() {
    println!("watching needs captures of other threads, which are for Linux so far");
}
