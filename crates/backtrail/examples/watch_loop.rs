//! A plain loop, watched: `cargo run -p backtrail --example watch_loop [DIRECTORY]`.
//!
//! It handles events and stalls at one of them. Hangs go to DIRECTORY while they last; kill it during the stall and start it
//! again to see that it is not lost.
#![allow(clippy::print_stdout, reason = "an example")]

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use backtrail::Symbols;
    use backtrail::hang::{Event, Options, Watch, unfinished};
    use std::time::Duration;

    let directory: std::path::PathBuf = std::env::args_os().nth(1).unwrap_or_else(|| "hangs".into()).into();
    for mut found in unfinished(&directory)? {
        if let Ok(hang) = &mut found.hang {
            hang.name(&Symbols::new());
            println!("The last run did not survive this:\n{hang}");
        }
        found.remove()?;
    }

    let mut options = Options::default();
    options.directory = Some(directory);
    let watch = Watch::main_thread(options, |event| {
        if let Event::Ended(hang) = event {
            let mut hang = hang.clone();
            hang.name(&Symbols::new());
            println!("{hang}");
        }
    })?;

    let beat = watch.beat();
    let events = [10, 20, 3_000, 10].map(Duration::from_millis);
    for event in events {
        beat.rest();
        std::thread::sleep(Duration::from_millis(300)); // waits for the next event
        beat.tick();
        handle(event);
    }
    beat.rest();
    watch.stop();
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
#[inline(never)]
fn handle(work: std::time::Duration) {
    let begin = std::time::Instant::now();
    let mut sum = 0_u64;
    while begin.elapsed() < work {
        sum = std::hint::black_box(sum.wrapping_mul(31) + 7);
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "ios")))]
fn main() {
    println!("watching needs captures of other threads, which are for Linux so far");
}
