//! `peers-tables RUNS TABLE SYMCACHE GSYM < ADDRESSES`: the same addresses asked of a file's tables in three formats, on one
//! thread, from memory; medians of processor time, the readers in turn. Addresses count from the start of the image.
//!
//! Two pieces of work: *slices*, every frame's name, file and line as the reader hands them out; *spelled out*, name and
//! whole path of every frame written into a buffer. blazesym hands out owned strings and does no less. Ours are asked one by one,
//! and many at a time, which the symbol cache's reader cannot; then the same addresses sorted, of both.

use backtrail_core::Svma;
use backtrail_table::{Lookup, Table};
use blazesym::symbolize::source::{Gsym, GsymData, Source};
use blazesym::symbolize::{Input, Symbolizer};
use std::error::Error;
use std::hint::black_box;
use std::io::stdin;
use symbolic_symcache::SymCache;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How many addresses have an answer, and how many frames all answers have.
#[derive(Clone, Copy, Default)]
struct Count {
    found: usize,
    frames: usize,
}

impl Count {
    fn add(&mut self, frames: usize) {
        self.found += usize::from(frames > 0);
        self.frames += frames;
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, table, symcache, gsym] = arguments.as_slice() else {
        return Err("usage: peers-tables RUNS TABLE SYMCACHE GSYM < ADDRESSES".into());
    };
    let runs: usize = runs.parse()?;
    let addresses: Vec<u64> = stdin()
        .lines()
        .map(|line| Ok(u64::from_str_radix(line?.trim().trim_start_matches("0x"), 16)?))
        .collect::<Result<_>>()?;
    let (table, symcache, gsym) = (std::fs::read(table)?, std::fs::read(symcache)?, std::fs::read(gsym)?);
    let (table, symcache) = (Table::open(&table)?, SymCache::parse(&symcache)?);
    let symbolizer = Symbolizer::builder().enable_demangling(false).build();
    let source = Source::Gsym(Gsym::Data(GsymData::new(&gsym)));
    type Work<'w> = Box<dyn Fn(&[u64]) -> Result<Count> + 'w>;
    let sorted = sorted(&addresses);
    let works: [(&str, Work<'_>); 9] = [
        ("backtrail, slices", Box::new(|addresses| one_by_one(&table, addresses, false))),
        ("backtrail, slices, many at a time", Box::new(|addresses| many(&table, addresses, false))),
        ("symbolic-symcache 13.9, slices", Box::new(|addresses| theirs(&symcache, addresses, false))),
        ("backtrail, spelled out", Box::new(|addresses| one_by_one(&table, addresses, true))),
        ("backtrail, spelled out, many at a time", Box::new(|addresses| many(&table, addresses, true))),
        ("symbolic-symcache 13.9, spelled out", Box::new(|addresses| theirs(&symcache, addresses, true))),
        ("backtrail, spelled out, sorted", Box::new(|_| many(&table, &sorted, true))),
        ("symbolic-symcache 13.9, spelled out, sorted", Box::new(|_| theirs(&symcache, &sorted, true))),
        ("blazesym 0.2, gsymutil's GSYM", Box::new(|addresses| blazesym(&symbolizer, &source, addresses))),
    ];
    let mut times = vec![Vec::new(); works.len()];
    let mut counts = vec![Count::default(); works.len()];
    for round in 0..=runs {
        for ((number, (_, work)), times) in works.iter().enumerate().zip(&mut times) {
            let start = processor_time();
            counts[number] = work(&addresses)?;
            if round > 0 {
                times.push(processor_time() - start);
            }
        }
    }
    println!("| {} addresses | µs each | found | frames an address |", addresses.len());
    println!("| --- | --- | --- | --- |");
    let all = addresses.len().max(1) as f64;
    for (((name, _), mut times), count) in works.iter().zip(times).zip(counts) {
        times.sort_by(f64::total_cmp);
        let time = times[times.len() / 2] * 1e6 / all;
        let (found, frames) = (count.found as f64 / all * 100.0, count.frames as f64 / all);
        println!("| {name} | {time:.2} | {found:.2} % | {frames:.2} |");
    }
    println!();
    Ok(())
}

fn sorted(addresses: &[u64]) -> Vec<u64> {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted
}

fn one_by_one(table: &Table<'_>, addresses: &[u64], is_spelled: bool) -> Result<Count> {
    Ok(ours(addresses.iter().map(|address| table.lookup(Svma::new(*address))), is_spelled))
}

fn many(table: &Table<'_>, addresses: &[u64], is_spelled: bool) -> Result<Count> {
    let answers = table.lookup_many(addresses.iter().map(|address| Svma::new(*address)));
    Ok(ours(answers.map(|(_, answer)| answer), is_spelled))
}

fn ours<'t>(answers: impl Iterator<Item = Lookup<'t>>, is_spelled: bool) -> Count {
    let (mut count, mut text) = (Count::default(), Vec::new());
    for answer in answers {
        let mut frames = 0;
        match answer {
            Lookup::Found(found) => {
                for frame in found.frames() {
                    frames += 1;
                    let name = frame.linkage_name.or(frame.name);
                    if is_spelled {
                        text.clear();
                        name.inspect(|name| name.append_to(&mut text));
                        frame.file.inspect(|file| file.append_to(&mut text));
                        black_box(text.as_slice());
                    } else {
                        black_box((name, frame.file.map(|file| file.path()), frame.line));
                    }
                }
            }
            Lookup::Symbol(symbol) => {
                frames = 1;
                text.clear();
                symbol.name.inspect(|name| name.append_to(&mut text));
                black_box(text.as_slice());
            }
            Lookup::None(_) => {}
        }
        count.add(frames);
    }
    count
}

fn theirs(cache: &SymCache<'_>, addresses: &[u64], is_spelled: bool) -> Result<Count> {
    let (mut count, mut text) = (Count::default(), String::new());
    for address in addresses {
        let mut frames = 0;
        for frame in cache.lookup(*address) {
            frames += 1;
            if is_spelled {
                text.clear();
                text.push_str(frame.function().name());
                frame.file().inspect(|file| text.push_str(&file.full_path()));
                black_box(text.as_str());
            } else {
                black_box((frame.function().name(), frame.file(), frame.line()));
            }
        }
        count.add(frames);
    }
    Ok(count)
}

fn blazesym(symbolizer: &Symbolizer, source: &Source<'_>, addresses: &[u64]) -> Result<Count> {
    let mut count = Count::default();
    for batch in addresses.chunks(1000) {
        for answer in symbolizer.symbolize(source, Input::VirtOffset(batch))? {
            count.add(answer.as_sym().map_or(0, |symbol| 1 + symbol.inlined.len()));
            black_box(&answer);
        }
    }
    Ok(count)
}

/// Seconds that this thread has run.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the kernel fills in the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
