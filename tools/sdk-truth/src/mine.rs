//! Addresses only: random return addresses of apps, some inside of a library, some not, and whether the library is seen.

use std::path::Path;

use backtrail_core::{Arch, Confidence, Rva, Svma};
use backtrail_object::{Limits, Object};
use backtrail_sdk::{BuildStacks, CodeOffset, Fingerprint, Layout, LinkMap, Sighting, mine};

use crate::Result;
use crate::app::Random;
use crate::cases::{Link, app_objects, link, shown};
use crate::libraries::{Language, Library};

const TRIALS: usize = 20;

/// An app as the trials need it: return addresses of the library and all others.
struct Trial {
    size: u64,
    start: u64,
    own: Vec<u64>,
    other: Vec<u64>,
}

/// Return addresses of arm64 code, without the product's help.
fn trial(link: &Link, library: Option<&str>) -> Result<Trial> {
    let data = std::fs::read(&link.app).map_err(|error| error.to_string())?;
    let object = Object::parse_with(&data, &Limits::default()).map_err(|error| error.to_string())?;
    let truth = std::fs::read(&link.map).map_err(|error| error.to_string())?;
    let truth = LinkMap::parse(&truth).map_err(|error| error.to_string())?;
    let text = object.sections().iter().find(|section| section.name == "__text").ok_or("no __text")?;
    let bytes = object.section_data(text).map_err(|error| error.to_string())?;
    let of_library = |file: &str| library.is_some_and(|library| file.contains(library));
    let owned: Vec<_> = truth
        .pieces()
        .filter(|piece| !piece.range.is_empty() && text.address.contains(piece.range.start()))
        .filter(|piece| of_library(piece.file))
        .map(|piece| piece.range)
        .collect();
    let base = object.image_base();
    let offset = |address: Svma| address.offset_from(base).unwrap_or(0);
    let mut found = Trial { size: offset(text.address.end()), start: 0, own: Vec::new(), other: Vec::new() };
    found.start = owned.first().map_or(0, |range| offset(range.start()));
    for (index, word) in bytes.chunks_exact(4).enumerate() {
        let word = word.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if word >> 26 == 0x25 || word & 0xffff_fc1f == 0xd63f_0000 {
            let at = text.address.start().get() + index as u64 * 4;
            let after = owned.partition_point(|range| range.start().get() <= at);
            let is_own = after > 0 && owned.get(after - 1).is_some_and(|range| range.contains(Svma::new(at)));
            let list = if is_own { &mut found.own } else { &mut found.other };
            list.push(at + 4 - base.get());
        }
    }
    Ok(found)
}

fn choose(random: &mut Random, from: &[u64], count: usize) -> Vec<u64> {
    let pick = |_| from.get(usize::try_from(random.next(from.len() as u64)).unwrap_or(0)).copied();
    (0..count).filter_map(pick).collect()
}

fn stacks(random: &mut Random, trial: &Trial, own: usize, other: usize) -> (BuildStacks, Vec<u64>) {
    let chosen = choose(random, &trial.own, own);
    let mut all = [chosen.clone(), choose(random, &trial.other, other)].concat();
    for at in (1..all.len()).rev() {
        all.swap(at, usize::try_from(random.next(at as u64 + 1)).unwrap_or(0));
    }
    let mut build = BuildStacks::new(Arch::Arm64, true);
    build.size = Some(trial.size);
    build.stacks = vec![all.into_iter().map(|at| Some(CodeOffset::Return(Rva::new(at)))).collect()];
    (build, chosen)
}

fn is_right(found: &[Sighting], trial: &Trial, chosen: &[u64], is_exact: bool) -> bool {
    found.first().is_some_and(|sighting| {
        sighting.confidence.is_some()
            && (!is_exact || sighting.ranges.first().is_some_and(|(start, _)| start.get() == trial.start))
            && (!is_exact || chosen.iter().all(|at| sighting.owns(CodeOffset::Return(Rva::new(*at)))))
            && sighting.ranges.iter().all(|(start, end)| {
                let inside = |at: &&u64| (start.get()..end.get()).contains(*at);
                trial.other.iter().filter(inside).count() * 20 <= trial.own.iter().filter(inside).count()
            })
    })
}

pub(crate) fn cases(cache: &Path, libraries: &[Library]) -> Result<()> {
    let linked = |name: &str, library: Option<&str>, flags: &[&str]| -> Result<Link> {
        let mut arguments = app_objects(cache, "arm64")?;
        // The same app, but its own code is another share of it.
        arguments.truncate(arguments.len() - if flags.is_empty() { 0 } else { 24 });
        if let Some(library) = library {
            arguments.extend(["-force_load".to_owned(), library.to_owned()]);
        }
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        link(cache, "arm64", name, &arguments)
    };
    for library in libraries.iter().filter(|library| library.language != Language::Cpp) {
        let file = shown(&library.file(cache)?);
        let fingerprint = library.fingerprint(cache, library.name)?;
        let fingerprints = std::slice::from_ref(&fingerprint);
        let known = linked(&format!("{}-exact", library.name), Some(&file), &[])?;
        let other = linked(&format!("{}-mine", library.name), Some(&file), &["-no_fixup_chains"])?;
        let layouts = layouts(&known, fingerprints)?;
        let present = trial(&other, Some(&file))?;
        for own in [5, 6, 8, 12, 20] {
            let counts = run(&present, own, &layouts, fingerprints, true);
            println!("mine        {:<11} layout, {own} of {}: {}", library.name, own * 3, counts);
        }
        for own in [8, 20, 40, 80] {
            let counts = run(&present, own, &[], fingerprints, false);
            println!("mine        {:<11} archive, {own} of {}: {}", library.name, own * 3, counts);
        }
        for absent in libraries
            .iter()
            .filter(|absent| !absent.name.starts_with(library.name.get(..5).unwrap_or_default()))
        {
            let file = shown(&absent.file(cache)?);
            let app = linked(&format!("{}-exact", absent.name), Some(&file), &[])?;
            let app = trial(&app, None)?;
            for (what, layouts) in [("layout", layouts.as_slice()), ("archive", &[])] {
                for count in [24, 120] {
                    let mut random = Random(99);
                    let (mut strong, mut likely) = (0, 0);
                    for _ in 0..TRIALS {
                        let (build, _) = stacks(&mut random, &app, 0, count);
                        match mine(&build, layouts, fingerprints).first().and_then(|found| found.confidence) {
                            Some(Confidence::Strong) => strong += 1,
                            Some(_) => likely += 1,
                            None => {}
                        }
                    }
                    println!(
                        "mine        {:<11} absent from the app of {}, {what}, {count} addresses: {strong} strong, {likely} likely of {TRIALS}",
                        library.name, absent.name
                    );
                }
            }
        }
    }
    Ok(())
}

fn layouts(link: &Link, fingerprints: &[Fingerprint]) -> Result<Vec<Layout>> {
    let data = std::fs::read(&link.app).map_err(|error| error.to_string())?;
    let object = Object::parse_with(&data, &Limits::default()).map_err(|error| error.to_string())?;
    let from_app = Layout::from_app(&object, fingerprints, None).map_err(|error| error.to_string())?;
    let map = std::fs::read(&link.map).map_err(|error| error.to_string())?;
    let map = LinkMap::parse(&map).map_err(|error| error.to_string())?;
    let from_map =
        Layout::from_link_map(&map, Arch::Arm64, fingerprints).map_err(|error| error.to_string())?;
    for (what, layouts) in [("app", &from_app), ("link map", &from_map)] {
        for layout in layouts {
            println!(
                "  layout of the {what}: {} {}, {} calls",
                layout.name(),
                layout.version(),
                layout.calls()
            );
        }
    }
    Ok(from_app)
}

fn run(
    present: &Trial,
    own: usize,
    layouts: &[Layout],
    fingerprints: &[Fingerprint],
    is_exact: bool,
) -> String {
    let mut random = Random(7);
    let (mut right, mut wrong, mut strong) = (0, 0, 0);
    for _ in 0..TRIALS {
        let (build, chosen) = stacks(&mut random, present, own, own * 2);
        let found = mine(&build, layouts, fingerprints);
        let is_claimed = found.first().is_some_and(|found| found.confidence.is_some());
        strong +=
            usize::from(found.first().is_some_and(|found| found.confidence == Some(Confidence::Strong)));
        if is_right(&found, present, &chosen, is_exact) {
            right += 1;
        } else if is_claimed {
            wrong += 1;
        }
    }
    format!("{right} of {TRIALS} right ({strong} strong), {wrong} elsewhere")
}
