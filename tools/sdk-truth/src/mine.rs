//! Addresses only: random return addresses of apps, some inside of a library, some not, and whether the library is seen.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use backtrail_core::{Arch, Confidence, Rva, Svma};
use backtrail_object::{Limits, Object};
use backtrail_sdk::{BuildStacks, CodeOffset, Fingerprint, Layout, LinkMap, Sighting, mine};

use crate::Result;
use crate::app::{Random, objects};
use crate::cases::{Link, link, shown, target};
use crate::libraries::Library;

/// An app as the trials need it: return addresses of the library and all others.
struct Trial {
    size: u64,
    own: Vec<u64>,
    other: Vec<u64>,
    /// Functions' starts, and what calls call, by the address behind them.
    functions: Vec<u64>,
    callees: HashMap<u64, u64>,
}

/// Return addresses of arm64 code, without the product's help.
fn trial(app: &Path, library: Option<&LinkMapFile>) -> Result<Trial> {
    let data = std::fs::read(app).map_err(|error| error.to_string())?;
    let object = Object::parse_with(&data, &Limits::default()).map_err(|error| error.to_string())?;
    let text = object.sections().iter().find(|section| section.name == "__text").ok_or("no __text")?;
    let bytes = object.section_data(text).map_err(|error| error.to_string())?;
    let mut owned = Vec::new();
    if let Some(library) = library {
        let truth = std::fs::read(&library.path).map_err(|error| error.to_string())?;
        let truth = LinkMap::parse(&truth).map_err(|error| error.to_string())?;
        let pieces = truth
            .pieces()
            .filter(|piece| !piece.range.is_empty() && text.address.contains(piece.range.start()))
            .filter(|piece| piece.file.contains(&library.library));
        owned.extend(pieces.map(|piece| piece.range));
    }
    let base = object.image_base();
    let offset = |address: Svma| address.offset_from(base).unwrap_or(0);
    let starts = object.function_starts().map_err(|error| error.to_string())?;
    let mut found = Trial {
        size: offset(text.address.end()),
        own: Vec::new(),
        other: Vec::new(),
        functions: starts.iter().map(|start| offset(*start)).collect(),
        callees: HashMap::new(),
    };
    for (index, word) in bytes.chunks_exact(4).enumerate() {
        let word = word.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if word >> 26 == 0x25 || word & 0xffff_fc1f == 0xd63f_0000 {
            let at = text.address.start().get() + index as u64 * 4;
            let after = owned.partition_point(|range| range.start().get() <= at);
            let is_own = after > 0 && owned.get(after - 1).is_some_and(|range| range.contains(Svma::new(at)));
            let list = if is_own { &mut found.own } else { &mut found.other };
            list.push(at + 4 - base.get());
            if word >> 26 == 0x25 {
                // Its last 26 bits are a distance in words, with a sign.
                let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
                let callee = at.wrapping_add_signed(distance).wrapping_sub(base.get());
                found.callees.insert(at + 4 - base.get(), callee);
            }
        }
    }
    Ok(found)
}

fn choose(random: &mut Random, from: &[u64], count: usize) -> Vec<u64> {
    let pick = |_| from.get(usize::try_from(random.next(from.len() as u64)).unwrap_or(0)).copied();
    (0..count).filter_map(pick).collect()
}

/// How addresses are put on stacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In any order.
    Shuffled,
    /// As they are called: what a call calls has the next inner address, where it is known and calls something itself.
    Chains,
}

/// A stack, outermost first, of `count` addresses of `from`.
fn chain(random: &mut Random, trial: &Trial, from: &[u64], count: usize) -> Vec<u64> {
    let mut chain: Vec<u64> = Vec::new();
    while chain.len() < count {
        let callee = chain.last().and_then(|last| trial.callees.get(last));
        let inner = callee.and_then(|callee| {
            let next = trial.functions.partition_point(|start| start <= callee);
            let end = trial.functions.get(next).copied().unwrap_or(trial.size);
            trial.functions.binary_search(callee).ok()?;
            let first = from.partition_point(|at| at <= callee);
            let last = from.partition_point(|at| *at <= end);
            choose(random, from.get(first..last)?, 1).first().copied()
        });
        let Some(next) = inner.or_else(|| choose(random, from, 1).first().copied()) else { break };
        chain.push(next);
    }
    chain
}

fn stacks(
    random: &mut Random,
    trial: &Trial,
    own: usize,
    other: usize,
    form: Form,
) -> (BuildStacks, Vec<u64>) {
    let mut build = BuildStacks::new(Arch::Arm64, true);
    build.size = Some(trial.size);
    let stack = |addresses: &[u64]| -> Vec<Option<CodeOffset>> {
        addresses.iter().map(|at| Some(CodeOffset::Return(Rva::new(*at)))).collect()
    };
    if form == Form::Chains {
        let chosen = chain(random, trial, &trial.own, own);
        let others = chain(random, trial, &trial.other, other);
        // Innermost first, eight frames a stack.
        for part in chosen.chunks(8).chain(others.chunks(8)) {
            build.stacks.push(stack(&part.iter().rev().copied().collect::<Vec<_>>()));
        }
        return (build, chosen);
    }
    let chosen = choose(random, &trial.own, own);
    let mut all = [chosen.clone(), choose(random, &trial.other, other)].concat();
    for at in (1..all.len()).rev() {
        all.swap(at, usize::try_from(random.next(at as u64 + 1)).unwrap_or(0));
    }
    build.stacks = vec![stack(&all)];
    (build, chosen)
}

/// Whether a library is seen where it is: of a layout every address of the library is a hit there, and the same code is
/// around them.
fn is_right(sighting: &Sighting, trial: &Trial, chosen: &[u64], is_exact: bool) -> bool {
    let is_inside =
        |at: &u64| sighting.ranges.iter().any(|(start, end)| *at > start.get() && *at <= end.get());
    // A stack may have one address twice, which counts once.
    let chosen: BTreeSet<u64> = chosen.iter().copied().collect();
    let inside = chosen.iter().filter(|at| is_inside(at)).count();
    let is_placed = !is_exact || (inside * 10 >= chosen.len() * 9 && sighting.hits >= inside);
    is_placed
        && sighting.ranges.iter().all(|(start, end)| {
            let inside = |at: &&u64| (start.get()..end.get()).contains(*at);
            trial.other.iter().filter(inside).count() * 20 <= trial.own.iter().filter(inside).count()
        })
}

fn own_code(cache: &Path, seed: u64) -> Result<Vec<String>> {
    Ok(objects(cache, &target("arm64"), &[], 40, seed)?.iter().map(|path| shown(path)).collect())
}

/// Links an app around a library. `drop` objects of its own are left out.
fn linked(cache: &Path, name: &str, seed: u64, drop: usize, library: Option<&str>) -> Result<Link> {
    let mut arguments = own_code(cache, seed)?;
    arguments.truncate(arguments.len() - drop);
    if let Some(library) = library {
        arguments.extend(["-force_load".to_owned(), library.to_owned()]);
    }
    if drop > 0 {
        arguments.push("-no_fixup_chains".to_owned());
    }
    link(cache, "arm64", name, &arguments)
}

pub(crate) fn cases(cache: &Path, libraries: &[Library], trials: usize) -> Result<()> {
    let mut apps = Vec::new();
    for seed in [1, 2] {
        let app = linked(cache, &format!("mine-alone-{seed}"), seed, 0, None)?;
        apps.push((format!("alone-{seed}"), trial(&app.app, None)?));
    }
    for library in libraries {
        let file = shown(&library.file(cache)?);
        let app = linked(cache, &format!("{}-exact", library.name), 1, 0, Some(&file))?;
        apps.push((library.name.to_owned(), trial(&app.app, None)?));
    }
    for path in std::env::var("APPS").unwrap_or_default().split_whitespace() {
        apps.push((path.rsplit('/').next().unwrap_or_default().to_owned(), trial(Path::new(path), None)?));
    }
    let (mut of_all, mut of_near, mut of_archive) = (Vec::new(), Vec::new(), Vec::new());
    for library in libraries {
        let file = shown(&library.file(cache)?);
        let fingerprint = library.fingerprint(cache, library.name)?;
        let fingerprints = std::slice::from_ref(&fingerprint);
        let known = linked(cache, &format!("{}-exact", library.name), 1, 0, Some(&file))?;
        let other = linked(cache, &format!("{}-mine", library.name), 1, 24, Some(&file))?;
        let layouts = layouts(&known, fingerprints)?;
        let truth = LinkMapFile { path: other.map.clone(), library: file.clone() };
        let present = trial(&other.app, Some(&truth))?;
        println!("  {}: {} calls of it, {} others", library.name, present.own.len(), present.other.len());
        for (form, what) in [(Form::Shuffled, "layout"), (Form::Chains, "layout, stacks")] {
            for own in [5, 6, 8, 10, 12, 14, 16, 20] {
                let counts = run(&present, (own, form), &layouts, fingerprints, true, trials.min(200));
                println!("mine        {:<11} {what}, {own} of {}: {counts}", library.name, own * 3);
            }
        }
        for own in [20, 40] {
            let counts = run(&present, (own, Form::Shuffled), &[], fingerprints, false, trials.min(50));
            println!("mine        {:<11} archive, {own} of {}: {counts}", library.name, own * 3);
        }
        for (name, app) in &apps {
            if library.name == name {
                continue;
            }
            // Another version of the same library is there.
            let is_near = name.get(..5) == library.name.get(..5);
            let near = if is_near { "other version, " } else { "" };
            for (count, form, what) in [
                (12, Form::Shuffled, "layout"),
                (24, Form::Shuffled, "layout"),
                (24, Form::Chains, "layout, stacks"),
                (60, Form::Shuffled, "layout"),
                (120, Form::Chains, "layout, stacks"),
            ] {
                let trials = if count > 24 { trials / 5 } else { trials };
                let chances = run_absent(app, (count, form), &layouts, fingerprints, trials);
                let counts = histogram(&chances);
                println!("mine-absent {:<11} {near}from {name}, {what}, {count}: {counts}", library.name);
                let into = if is_near { &mut of_near } else { &mut of_all };
                into.extend(chances);
            }
            let chances = run_absent(app, (24, Form::Shuffled), &[], fingerprints, trials / 20);
            println!(
                "mine-absent {:<11} {near}from {name}, archive, 24: {}",
                library.name,
                histogram(&chances)
            );
            of_archive.extend(chances);
        }
    }
    for (what, chances) in [
        ("by layout", of_all),
        ("by layout, another version is there", of_near),
        ("by the archive", of_archive),
    ] {
        println!("mine-absent all {what}: {}", histogram(&chances));
    }
    Ok(())
}

struct LinkMapFile {
    path: std::path::PathBuf,
    library: String,
}

fn run_absent(
    app: &Trial,
    (count, form): (usize, Form),
    layouts: &[Layout],
    fingerprints: &[Fingerprint],
    trials: usize,
) -> Vec<f64> {
    let mut random = Random(99 + count as u64);
    let mut chances = Vec::new();
    for _ in 0..trials {
        let (build, _) = stacks(&mut random, app, 0, count, form);
        let found = mine(&build, layouts, fingerprints);
        // What is not claimed for another reason counts as not claimed.
        let claimed = |found: &&Sighting| found.elsewhere <= 0.01;
        chances.push(found.first().filter(claimed).map_or(f64::INFINITY, |found| found.chance));
    }
    chances
}

fn histogram(chances: &[f64]) -> String {
    let mut text = String::new();
    for power in [0, -1, -2, -3, -4, -5] {
        let count = chances.iter().filter(|chance| **chance <= 10f64.powi(power)).count();
        text += &format!(" {count:>5}");
    }
    format!("{} trials; chance up to 1, 0.1, ... 1e-5:{text}", chances.len())
}

fn layouts(link: &Link, fingerprints: &[Fingerprint]) -> Result<Vec<Layout>> {
    let data = std::fs::read(&link.app).map_err(|error| error.to_string())?;
    let object = Object::parse_with(&data, &Limits::default()).map_err(|error| error.to_string())?;
    let from_app = Layout::from_app(&object, fingerprints, None).map_err(|error| error.to_string())?;
    for layout in &from_app {
        println!("  layout of the app: {} {}, {} calls", layout.name(), layout.version(), layout.calls());
    }
    Ok(from_app)
}

fn run(
    present: &Trial,
    (own, form): (usize, Form),
    layouts: &[Layout],
    fingerprints: &[Fingerprint],
    is_exact: bool,
    trials: usize,
) -> String {
    let mut random = Random(7);
    let (mut right, mut wrong, mut strong, mut likely) = (0, 0, 0, 0);
    let mut chances = Vec::new();
    for _ in 0..trials {
        let (build, chosen) = stacks(&mut random, present, own, own * 2, form);
        let found = mine(&build, layouts, fingerprints);
        let Some(first) = found.first() else { continue };
        chances.push(first.chance);
        let is_right = is_right(first, present, &chosen, is_exact);
        right += usize::from(is_right);
        match first.confidence {
            Some(_) if !is_right => wrong += 1,
            Some(Confidence::Strong) => strong += 1,
            Some(_) => likely += 1,
            None => {}
        }
    }
    format!(
        "{right} right of {trials} ({strong} strong, {likely} likely), {wrong} claimed elsewhere; {}",
        histogram(&chances)
    )
}
