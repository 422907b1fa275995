//! A crash report, symbolicated and explained: what happened, whose code it was, and where.
//!
//! ```sh
//! cargo run -p backtrail --example report -- fixtures/sample/reports/null-member.ips fixtures/sample/symbols
//! ```
#![allow(clippy::print_stdout, reason = "an example that prints")]

use backtrail::{Analysis, Limits, NoProgress, Symbols};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let report = arguments.next().ok_or("usage: report REPORT [SYMBOLS…]")?;
    // Looked through once; the same `Symbols` serves as many reports as there are, on as many threads.
    let symbols = Symbols::scan(&arguments.collect::<Vec<_>>(), &NoProgress);

    let analysis = Analysis::new(&std::fs::read(report)?, &symbols, &Limits::default())?;
    println!("{}", analysis.explanation.title);
    println!("{}", analysis.explanation.summary);
    println!("whose code: {}", analysis.attribution.verdict.as_str());
    let images = &analysis.report.process.images;
    for frame in analysis.report.fault_frames() {
        let names: Vec<_> = frame.names().collect();
        let image = frame.image.and_then(|position| images.get(position));
        let image = image.map_or("no image", |image| image.name.as_str());
        match (names.is_empty(), frame.reason) {
            (true, Some(reason)) => println!("{:3} {image}: no name, {reason}", frame.index),
            _ => println!("{:3} {image}: {}", frame.index, names.join(", inlined into ")),
        }
    }
    // What would have helped.
    for image in images.iter().filter(|image| image.symbols.is_incomplete()) {
        println!("symbols of {} are {}", image.name, image.symbols.status.as_str());
    }
    Ok(())
}
