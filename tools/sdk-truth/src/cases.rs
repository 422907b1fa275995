//! The cases: one app each.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_sdk::Fingerprint;

use crate::app::{LLVM, Random, compile, extension_sources, objects, run as run_program, tiny_objects};
use crate::judge::{Linked, Owner, Score, judge};
use crate::libraries::{
    DEVELOPMENT, FURTHER, HELD_OUT, Language, Library, NEIGHBOURS, NEIGHBOURS_HELD_OUT, NEXT_MINOR, VERSIONS,
};
use crate::{Result, copies, elf, mine, speed, stamps};

/// How an app is linked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Exact,
    DeadStrip,
    Folded,
    /// Only the members that something needs.
    Lazy,
    LazyDeadStrip,
    Permuted,
    PermutedFolded,
    PermutedDeadStrip,
    /// The app's own code comes after the library's, with rebase opcodes instead of chained fixups.
    Opcodes,
    /// The library is not in it.
    Absent,
    /// The app has copies of some classes under another prefix, and the library.
    Copies,
    /// The same without the library.
    CopiesAlone,
    /// Compiled for size.
    Small,
    /// The app has very many small functions of its own.
    Tiny,
    TinyLazy,
    TinyPermuted,
    TinyAlone,
    /// Other libraries are there, too, and the linker takes what is needed of all.
    Among,
    /// The same, dead-stripped.
    AmongDeadStrip,
    /// Other libraries are there, too, each as a whole.
    AmongWhole,
    /// An order file has pieces of some functions of the app's and the library's in turn, as a trace of what runs first.
    Traced,
    /// The app has categories on classes of the library, and the linker joins them.
    Extended,
}

const WAYS: &[(Way, &str)] = &[
    (Way::Exact, "exact"),
    (Way::Opcodes, "opcodes"),
    (Way::DeadStrip, "dead-strip"),
    (Way::Folded, "folded"),
    (Way::Lazy, "lazy"),
    (Way::LazyDeadStrip, "lazy-dead-strip"),
    (Way::Permuted, "order-file"),
    (Way::PermutedFolded, "order-file-folded"),
    (Way::PermutedDeadStrip, "order-file-dead-strip"),
    (Way::Absent, "absent"),
    (Way::Copies, "copies"),
    (Way::CopiesAlone, "copies-alone"),
    (Way::Small, "app-Oz"),
    (Way::Tiny, "app-tiny"),
    (Way::TinyLazy, "app-tiny-lazy"),
    (Way::TinyPermuted, "app-tiny-order-file"),
    (Way::TinyAlone, "app-tiny-alone"),
];

/// The ways that apps with another version are linked in.
const OTHER_VERSION: &[(Way, &str)] =
    &[(Way::Exact, "exact"), (Way::Lazy, "lazy"), (Way::DeadStrip, "dead-strip"), (Way::Folded, "folded")];

/// The ways that bring others' code among that of another version.
const MIXED: &[(Way, &str)] = &[
    (Way::Among, "among"),
    (Way::AmongDeadStrip, "among-dead-strip"),
    (Way::AmongWhole, "among-whole"),
    (Way::Traced, "traced"),
    (Way::Extended, "extended"),
];

/// Libraries that are in one app with another one.
const COMPANIONS: &[&str] = &["wechat", "jpush", "sodium", "eaccount-2.8", "tyrz-2.8", "appsflyer-5.2"];

struct Options {
    show: usize,
    wanted: Vec<String>,
    libraries: Vec<String>,
    arch: &'static str,
    /// Whether the apps export what they define, as linkers have it by default.
    has_exports: bool,
    /// Whether the apps' symbols are at hand, as in a debug file.
    has_symbols: bool,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut options = Options {
        show: 0,
        wanted: Vec::new(),
        libraries: Vec::new(),
        arch: "arm64",
        has_exports: true,
        has_symbols: false,
    };
    let mut is_elf = false;
    let mut known = DEVELOPMENT;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--show" => options.show = rest.next().and_then(|count| count.parse().ok()).unwrap_or(20),
            "--library" => options.libraries.extend(rest.next().cloned()),
            "--elf" => is_elf = true,
            "--held-out" => known = HELD_OUT,
            "--further" => known = FURTHER,
            "--no-exports" => options.has_exports = false,
            "--symbols" => options.has_symbols = true,
            "--x86_64" => options.arch = "x86_64",
            other => options.wanted.push(other.to_owned()),
        }
    }
    let cache = cache()?;
    if is_elf {
        return elf::cases(&cache, &|name| options.wants(name), options.has_symbols, options.show);
    }
    let mut totals: Vec<(String, Score)> = Vec::new();
    for library in known.iter().filter(|library| options.takes(library.name)) {
        let fingerprint = library.fingerprint(&cache, library.name)?;
        for (way, name) in WAYS.iter().filter(|(_, name)| options.wants(name)) {
            let known = Known { name: library.name, fingerprint: &fingerprint, names: None };
            let score = case(&cache, &options, library, (*way, name), &known)?;
            println!("{:<11} {name:<18} {}", library.name, score.line());
            match totals.iter_mut().find(|(known, _)| known == name) {
                Some((_, total)) => total.add(&score),
                None => totals.push(((*name).to_owned(), score)),
            }
        }
    }
    if known == DEVELOPMENT && options.wants("versions") {
        versions(&cache, &options, VERSIONS, &[(Way::Exact, "exact")])?;
    }
    for (name, pairs) in
        [("next-minor", NEXT_MINOR), ("neighbours", NEIGHBOURS), ("neighbours-held-out", NEIGHBOURS_HELD_OUT)]
    {
        if options.wanted.iter().any(|wanted| wanted == name) {
            versions(&cache, &options, pairs, OTHER_VERSION)?;
        }
    }
    if options.wanted.iter().any(|wanted| wanted == "mixed") {
        let pairs: Vec<_> = [VERSIONS, NEIGHBOURS, NEIGHBOURS_HELD_OUT].concat();
        let pairs: Vec<_> = pairs.into_iter().filter(|(known, _)| !known.starts_with("sk")).collect();
        versions(&cache, &options, &pairs, MIXED)?;
    }
    if known == DEVELOPMENT && options.wants("several") {
        several(&cache, &options)?;
    }
    if options.wants("mine") && options.arch == "arm64" {
        let wanted: Vec<Library> =
            known.iter().filter(|library| options.takes(library.name)).copied().collect();
        mine::cases(cache.as_path(), &wanted, options.show.max(20))?;
    }
    if options.wanted.iter().any(|wanted| wanted == "speed") {
        speed::cases(&cache)?;
    }
    if options.wants("stamped") {
        stamps::cases(&cache, options.arch, known)?;
    }
    println!();
    for (name, score) in totals {
        println!("all         {name:<18} {}", score.line());
    }
    Ok(())
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == name)
    }

    /// The name of a link, and the arguments for it that all links have.
    fn linked(&self, arguments: &mut Vec<String>, name: String) -> String {
        if self.has_exports {
            return name;
        }
        arguments.push("-no_exported_symbols".to_owned());
        name + "-no-exports"
    }

    fn takes(&self, name: &str) -> bool {
        self.libraries.is_empty() || self.libraries.iter().any(|wanted| wanted == name)
    }
}

fn cache() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = std::env::var_os("BACKTRAIL_SDK_TRUTH");
    let cache = cache.map_or_else(|| home.join(".cache/backtrail-sdk-truth"), PathBuf::from);
    std::fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    Ok(cache)
}

/// What a link is made of.
pub(crate) struct Link {
    pub(crate) app: PathBuf,
    pub(crate) map: PathBuf,
    /// The app before it was stripped.
    whole: PathBuf,
}

impl Link {
    fn linked(&self, has_symbols: bool) -> Linked<'_> {
        Linked { app: &self.app, map: &self.map, symbols: has_symbols.then_some(&self.whole), firm: None }
    }
}

pub(crate) fn link(cache: &Path, arch: &str, name: &str, arguments: &[String]) -> Result<Link> {
    let directory = cache.join("apps").join(arch).join(name);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let (whole, map, app) = (directory.join("app.whole"), directory.join("app.map"), directory.join("app"));
    let stamp = directory.join("arguments");
    let wanted = arguments.join("\n");
    if app.exists() && std::fs::read_to_string(&stamp).is_ok_and(|known| known == wanted) {
        return Ok(Link { app, map, whole });
    }
    let mut command = Command::new(format!("ld64.lld-{LLVM}"));
    let platform = if arch == "x86_64" { ["ios-simulator", "14.0", "17.0"] } else { ["ios", "14.0", "17.0"] };
    command.args(["-arch", arch, "-platform_version"]).args(platform);
    command.args(["-undefined", "dynamic_lookup", "-w"]).args(arguments);
    run_program(command.arg("-map").arg(&map).arg("-o").arg(&whole))?;
    std::fs::copy(&whole, &app).map_err(|error| error.to_string())?;
    run_program(Command::new(format!("llvm-strip-{LLVM}")).arg(&app))?;
    std::fs::write(stamp, wanted).map_err(|error| error.to_string())?;
    Ok(Link { app, map, whole })
}

pub(crate) fn target(arch: &str) -> String {
    if arch == "x86_64" {
        "x86_64-apple-ios14.0-simulator".to_owned()
    } else {
        format!("{arch}-apple-ios14.0")
    }
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Symbols of the library that make a linker load some of its members.
fn needed(cache: &Path, arch: &str, library: &Library, share: u64) -> Result<Vec<String>> {
    let exact = exact_link(cache, arch, library)?;
    let text = std::fs::read_to_string(&exact.map).map_err(|error| error.to_string())?;
    let file = shown(&library.file(cache)?);
    let mut files = Vec::new();
    let mut symbols: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let Some((before, rest)) = line.split_once('[') else { continue };
        let Some((number, name)) = rest.split_once("] ") else { continue };
        let number: usize = number.trim().parse().unwrap_or(usize::MAX);
        if before.is_empty() {
            if name.contains(&file) {
                files.push(number);
            }
        } else if files.contains(&number)
            && name.starts_with('_')
            && !before.contains("0x00000000")
            && before.starts_with("0x1")
            && !name.contains(' ')
            && !name.contains("block")
        {
            symbols.push((number, name.to_owned()));
        }
    }
    let mut random = Random(share.wrapping_add(77));
    let chosen: Vec<usize> = files.iter().copied().filter(|_| random.next(100) < share).collect();
    let nm = Command::new(format!("llvm-nm-{LLVM}"))
        .args(["-g", "-U", "--just-symbol-name", "--arch", arch])
        .arg(&file)
        .output();
    let nm = nm.map_err(|error| error.to_string())?;
    let exported: std::collections::HashSet<String> =
        String::from_utf8_lossy(&nm.stdout).lines().map(str::to_owned).collect();
    let first = |file: &usize| {
        symbols
            .iter()
            .find(|(other, name)| other == file && exported.contains(name))
            .map(|(_, name)| name.clone())
    };
    Ok(chosen.iter().filter_map(first).collect())
}

pub(crate) fn app_objects(cache: &Path, arch: &str) -> Result<Vec<String>> {
    Ok(objects(cache, &target(arch), &[], 40, 1)?.iter().map(|path| shown(path)).collect())
}

fn exact_arguments(cache: &Path, arch: &str, library: &Library) -> Result<Vec<String>> {
    let mut arguments = app_objects(cache, arch)?;
    arguments.extend(["-force_load".to_owned(), shown(&library.file(cache)?)]);
    Ok(arguments)
}

fn exact_link(cache: &Path, arch: &str, library: &Library) -> Result<Link> {
    let arguments = exact_arguments(cache, arch, library)?;
    link(cache, arch, &format!("{}-exact", library.name), &arguments)
}

/// All functions of a link in another order.
pub(crate) fn order_file(cache: &Path, arch: &str, library: &Library) -> Result<PathBuf> {
    let mut names = defined(&exact_link(cache, arch, library)?)?;
    let mut random = Random(4242);
    for at in (1..names.len()).rev() {
        let other = usize::try_from(random.next(at as u64 + 1)).unwrap_or(0);
        names.swap(at, other);
    }
    let path = cache.join("apps").join(arch).join(format!("{}.order", library.name));
    std::fs::write(&path, names.join("\n") + "\n").map_err(|error| error.to_string())?;
    Ok(path)
}

/// Three of ten functions of a link, in short runs as they lie, in any order.
fn trace(cache: &Path, arch: &str, library: &Library) -> Result<PathBuf> {
    let names = defined(&exact_link(cache, arch, library)?)?;
    let mut random = Random(777);
    let mut runs: Vec<&[String]> = Vec::new();
    let mut rest = names.as_slice();
    while !rest.is_empty() {
        let length = usize::try_from(1 + random.next(5)).unwrap_or(1).min(rest.len());
        let (run, behind) = rest.split_at(length);
        rest = behind;
        if random.next(10) < 3 {
            runs.push(run);
        }
    }
    for at in (1..runs.len()).rev() {
        runs.swap(at, usize::try_from(random.next(at as u64 + 1)).unwrap_or(0));
    }
    let path = cache.join("apps").join(arch).join(format!("{}.trace", library.name));
    std::fs::write(&path, runs.concat().join("\n") + "\n").map_err(|error| error.to_string())?;
    Ok(path)
}

/// The symbols of a link, as they lie.
fn defined(link: &Link) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(&link.map).map_err(|error| error.to_string())?;
    let symbols = text.split("# Symbols:").nth(1).unwrap_or_default();
    let symbols = symbols.split("# Dead").next().unwrap_or_default();
    let names = symbols.lines().filter_map(|line| Some(line.split_once('[')?.1.split_once("] ")?.1));
    Ok(names.map(str::to_owned).collect())
}

/// The app's own categories on every second class of a library.
fn extensions(cache: &Path, target: &str, library: &Library, file: &str) -> Result<Vec<PathBuf>> {
    let classes = names(file, if target.starts_with("x86_64") { "x86_64" } else { "arm64" })?;
    let mut classes: Vec<&str> =
        classes.iter().filter_map(|name| name.strip_prefix("_OBJC_CLASS_$_")).collect();
    classes.sort_unstable();
    let classes: Vec<&str> = classes.into_iter().step_by(2).collect();
    compile(cache, target, &[], &format!("{target}-extends-{}", library.name), extension_sources(&classes))
}

/// What is known of the library that an app has.
struct Known<'a> {
    name: &'a str,
    fingerprint: &'a Fingerprint,
    /// Of another version: the names of its functions.
    names: Option<&'a HashSet<String>>,
}

fn case(
    cache: &Path,
    options: &Options,
    library: &Library,
    (way, name): (Way, &str),
    known: &Known<'_>,
) -> Result<Score> {
    let arch = options.arch;
    let file = shown(&library.file(cache)?);
    let mut arguments = app_objects(cache, arch)?;
    let force = ["-force_load".to_owned(), file.clone()];
    if matches!(way, Way::Tiny | Way::TinyLazy | Way::TinyPermuted | Way::TinyAlone) {
        arguments.extend(tiny_objects(cache, &target(arch))?.iter().map(|path| shown(path)));
    }
    match way {
        Way::TinyAlone => {}
        Way::Exact | Way::Tiny => arguments.extend(force),
        Way::Opcodes => {
            arguments = force.into_iter().chain(arguments).collect();
            arguments.push("-no_fixup_chains".to_owned());
        }
        Way::DeadStrip | Way::PermutedDeadStrip => {
            arguments.extend(force);
            arguments.push("-dead_strip".to_owned());
            if way == Way::PermutedDeadStrip {
                let order = shown(&order_file(cache, arch, library)?);
                arguments.extend(["-order_file".to_owned(), order]);
            }
            for symbol in needed(cache, arch, library, 70)? {
                arguments.extend(["-u".to_owned(), symbol]);
            }
        }
        Way::Folded => {
            arguments.extend(force);
            arguments.push("--icf=all".to_owned());
        }
        Way::Lazy | Way::LazyDeadStrip | Way::TinyLazy => {
            arguments.push(file.clone());
            for symbol in needed(cache, arch, library, 25)? {
                arguments.extend(["-u".to_owned(), symbol]);
            }
            if way == Way::LazyDeadStrip {
                arguments.push("-dead_strip".to_owned());
            }
        }
        Way::Permuted | Way::PermutedFolded | Way::TinyPermuted => {
            arguments.extend(force);
            arguments.extend(["-order_file".to_owned(), shown(&order_file(cache, arch, library)?)]);
            if way == Way::PermutedFolded {
                arguments.push("--icf=all".to_owned());
            }
        }
        Way::Among | Way::AmongDeadStrip | Way::AmongWhole => {
            let family = known.name;
            let others = COMPANIONS.iter().filter(|name| !name.starts_with(family));
            let others: Vec<&Library> = others.filter_map(|name| Library::find(name)).collect();
            let mut symbols = needed(cache, arch, library, 25)?;
            let middle = others.len() / 2;
            for (number, other) in others.iter().enumerate() {
                symbols.extend(needed(cache, arch, other, 25)?);
                if number == middle {
                    arguments.extend((way == Way::AmongWhole).then(|| "-force_load".to_owned()));
                    arguments.push(file.clone());
                }
                arguments.extend((way == Way::AmongWhole).then(|| "-force_load".to_owned()));
                arguments.push(shown(&other.file(cache)?));
            }
            let mut random = Random(9);
            for at in (1..symbols.len()).rev() {
                symbols.swap(at, usize::try_from(random.next(at as u64 + 1)).unwrap_or(0));
            }
            arguments.extend(symbols.into_iter().flat_map(|symbol| ["-u".to_owned(), symbol]));
            if way == Way::AmongDeadStrip {
                arguments.push("-dead_strip".to_owned());
            }
        }
        Way::Traced => {
            arguments.extend(force);
            arguments.extend(["-order_file".to_owned(), shown(&trace(cache, arch, library)?)]);
        }
        Way::Extended => {
            if library.language != Language::ObjectiveC {
                return Ok(Score::default());
            }
            let own = extensions(cache, &target(arch), library, &file)?;
            arguments.extend(own.iter().map(|path| shown(path)));
            arguments.extend(force);
            arguments.push("-objc_category_merging".to_owned());
        }
        Way::Copies | Way::CopiesAlone => {
            if library.language != Language::ObjectiveC {
                return Ok(Score::default());
            }
            let copies =
                copies::make(Path::new(&file), arch, &cache.join("copies").join(arch).join(library.name))?;
            // In the midst of the app's own code.
            let middle = arguments.len() / 2;
            arguments.splice(middle..middle, copies.iter().map(|path| shown(path)));
            if way == Way::Copies {
                arguments.extend(force);
            }
        }
        Way::Small => {
            arguments =
                objects(cache, &target(arch), &["-Oz"], 40, 1)?.iter().map(|path| shown(path)).collect();
            arguments.extend(force);
        }
        Way::Absent => {
            // Another library of another kind is there instead.
            let other = DEVELOPMENT.iter().find(|other| {
                other.name != library.name && other.language != library.language && other.name != "skia"
            });
            if let Some(other) = other {
                arguments.extend(["-force_load".to_owned(), shown(&other.file(cache)?)]);
            }
        }
    }
    let name = options.linked(&mut arguments, format!("{}-{name}", library.name));
    let link = link(cache, arch, &name, &arguments)?;
    let owners = [Owner { path: &file, name: known.name }];
    let fingerprints = std::slice::from_ref(known.fingerprint);
    judge(link.linked(options.has_symbols), fingerprints, &owners, known.names, options.show)
}

/// The names of a library's functions.
fn names(file: &str, arch: &str) -> Result<HashSet<String>> {
    let mut nm = Command::new(format!("llvm-nm-{LLVM}"));
    let output = nm.args(["-U", "--just-symbol-name", "--arch", arch]).arg(file).output();
    let output = output.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// One version is known, another one is in the app, linked in each of these ways.
fn versions(cache: &Path, options: &Options, pairs: &[(&str, &str)], ways: &[(Way, &str)]) -> Result<()> {
    let mut totals: Vec<(&str, Score)> = Vec::new();
    for pair in pairs {
        for (known, there) in [(pair.0, pair.1), (pair.1, pair.0)] {
            let (Some(known), Some(there)) = (Library::find(known), Library::find(there)) else { continue };
            if !options.takes(known.name) {
                continue;
            }
            let name = known.name.split('-').next().unwrap_or_default();
            let fingerprint = known.fingerprint(cache, name)?;
            let names = names(&shown(&known.file(cache)?), options.arch)?;
            for (way, way_name) in ways {
                let known_as = Known { name, fingerprint: &fingerprint, names: Some(&names) };
                let score = case(cache, options, there, (*way, way_name), &known_as)?;
                let known = format!("by {}", known.version);
                println!("{:<18} {known:<11} {way_name:<10} {}", there.name, score.line());
                println!("{:41} {}", "", score.named_line());
                match totals.iter_mut().find(|(known, _)| known == way_name) {
                    Some((_, total)) => total.add(&score),
                    None => totals.push((way_name, score)),
                }
            }
        }
    }
    for (way, score) in totals {
        println!("{:<30} {way:<10} {}", "all versions", score.line());
    }
    Ok(())
}

/// Several libraries in one app, all known.
fn several(cache: &Path, options: &Options) -> Result<()> {
    let libraries: Vec<&Library> =
        DEVELOPMENT.iter().filter(|library| !matches!(library.name, "wechat-old" | "skia")).collect();
    let mut arguments = app_objects(cache, options.arch)?;
    let mut fingerprints = Vec::new();
    let mut files = Vec::new();
    for library in &libraries {
        let file = shown(&library.file(cache)?);
        arguments.extend(["-force_load".to_owned(), file.clone()]);
        files.push(file);
        fingerprints.push(library.fingerprint(cache, library.name)?);
    }
    let name = options.linked(&mut arguments, "several".to_owned());
    let link = link(cache, options.arch, &name, &arguments)?;
    let owners: Vec<Owner<'_>> = libraries
        .iter()
        .zip(&files)
        .map(|(library, file)| Owner { path: file, name: library.name })
        .collect();
    let score = judge(link.linked(options.has_symbols), &fingerprints, &owners, None, options.show)?;
    println!("{:<11} {:<18} {}", "three", "several", score.line());
    Ok(())
}
