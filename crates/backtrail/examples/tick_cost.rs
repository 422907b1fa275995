//! What a beat costs the watched thread: nanoseconds of `tick`, and of one look at the exact clock.
//!
//! ```sh
//! cargo run --release -p backtrail --example tick_cost
//! ```
#![allow(clippy::print_stdout, reason = "an example that prints")]

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use backtrail::hang::{Options, Watch};
    use std::time::Instant;

    let watch = Watch::current_thread(Options::default(), |_| {})?;
    let beat = watch.beat();
    println!("tick: {:.1} ns", best(|| beat.tick()));
    beat.rest();
    println!(
        "Instant::now: {:.1} ns",
        best(|| {
            std::hint::black_box(Instant::now());
        })
    );
    watch.stop();
    Ok(())
}

/// Nanoseconds of one call, in the best of twenty rounds: what else the machine does makes the others longer.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn best(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 500_000;
    let round = |_| {
        let began = std::time::Instant::now();
        (0..CALLS).for_each(|_| call());
        began.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..20).map(round).fold(f64::INFINITY, f64::min)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn main() {}
