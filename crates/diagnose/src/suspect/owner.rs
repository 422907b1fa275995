//! Whose an image is.

use super::paths::{
    APPLE_IN_BUNDLE, INJECTED_PATHS, SYSTEM_PATHS, bundle_root, is_system_name, rule_for, without_private,
};
use crate::names::{image_name, image_of, is_any_of};
use backtrail_core::Confidence;
use backtrail_model::{Frame, Image, OwnerKind, Process, Report};

/// An owner, and what says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ownership {
    pub(crate) owner: OwnerKind,
    /// By what it was told, in a word or two.
    pub(crate) how: &'static str,
    pub(crate) confidence: Option<Confidence>,
    pub(crate) why: String,
}

impl Ownership {
    /// What is sure: the system's own places.
    pub(super) fn certain(owner: OwnerKind, how: &'static str, why: impl Into<String>) -> Self {
        Self { owner, how, confidence: Some(Confidence::Certain), why: why.into() }
    }

    pub(super) fn strong(owner: OwnerKind, how: &'static str, why: impl Into<String>) -> Self {
        Self { owner, how, confidence: Some(Confidence::Strong), why: why.into() }
    }

    /// What may be otherwise: others' libraries may have been linked into the app's executable, and its makers' own may
    /// ship beside it.
    pub(super) fn likely(owner: OwnerKind, how: &'static str, why: impl Into<String>) -> Self {
        Self { owner, how, confidence: Some(Confidence::Likely), why: why.into() }
    }

    pub(super) fn unknown(why: impl Into<String>) -> Self {
        Self { owner: OwnerKind::Unknown, how: "", confidence: None, why: why.into() }
    }
}

/// Tells whose the image of `frame` is.
pub(crate) fn owner_of(report: &Report, frame: &Frame) -> Ownership {
    match image_of(report, frame) {
        Some(image) => owner_of_image(report, image),
        None => owner_by_name(report, image_name(report, frame)),
    }
}

/// Whether a method is of the class that Xcode's templates name the app's delegate, or a scene's: libraries have none.
pub(crate) fn is_delegates(frame: &Frame) -> bool {
    let class = |name: &str| {
        let name = name.trim_start_matches(['-', '+', '[']);
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        name.get(..end).is_some_and(|class| matches!(class, "AppDelegate" | "SceneDelegate"))
    };
    frame.names().next().is_some_and(class)
}

/// Tells whose an image is.
pub(crate) fn owner_of_image(report: &Report, image: &Image) -> Ownership {
    let process = &report.process;
    let Some(path) = image.path.as_deref().filter(|path| path.contains('/')) else {
        if image.source.as_deref() == Some("S") {
            return Ownership::certain(
                OwnerKind::System,
                "shared cache",
                format!("{} lies in the system's shared cache", image.name),
            );
        }
        return owner_by_name(report, Some(&image.name));
    };
    if let Some(rule) = rule_for(&*INJECTED_PATHS, path) {
        let why = format!("{} was loaded from {path}: {}", image.name, rule.what);
        return Ownership::strong(OwnerKind::Sdk, "path", why);
    }
    if let Some(rule) = rule_for(&*SYSTEM_PATHS, path) {
        let why = format!("{} was loaded from {path}: {}", image.name, rule.what);
        return Ownership::certain(OwnerKind::System, "path", why);
    }
    if is_system_app(report, path) {
        let why = format!("{} was loaded from {path}, where iOS keeps its own apps", image.name);
        return Ownership::certain(OwnerKind::System, "path", why);
    }
    if is_main_binary(process, image, path) {
        let why = format!("{} is the process's own executable ({path})", image.name);
        return Ownership::likely(OwnerKind::App, "executable", why);
    }
    match shared_bundle(process, path) {
        Some(root) => inside_the_bundle(process, image, path, root),
        None => outside_the_bundle(image, path),
    }
}

/// On iOS and its kin, `/Applications` holds the system's apps; on a Mac, everybody's.
fn is_system_app(report: &Report, path: &str) -> bool {
    let is_mac = report.os.as_deref().is_some_and(|os| os.contains("Mac OS") || os.contains("macOS"));
    let is_known = report.os.is_some();
    is_known && !is_mac && path.starts_with("/Applications/")
}

/// The executable that the process was started from. Where the report hides or lacks the process's path, a file
/// with its bundle's name at the place of a bundle's executable is one.
fn is_main_binary(process: &Process, image: &Image, path: &str) -> bool {
    let main = process.path.as_deref().filter(|main| main.contains('/'));
    if main.is_some_and(|main| without_private(main) == without_private(path)) {
        return true;
    }
    let Some(root) = bundle_root(path) else {
        return main.is_none() && process.name.as_deref() == Some(image.name.as_str());
    };
    let bundle = root.rsplit('/').next().unwrap_or(root);
    let stem = bundle.rsplit_once('.').map_or(bundle, |(stem, _)| stem);
    let inside = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
    inside.strip_prefix("Contents/MacOS/").unwrap_or(inside) == stem
}

/// The bundle that holds both the process's executable and `path`.
fn shared_bundle<'p>(process: &Process, path: &'p str) -> Option<&'p str> {
    let root = bundle_root(path)?;
    let own = process.path.as_deref().and_then(bundle_root);
    // A report that does not give the process's path: any app bundle will be its own.
    let same = own.is_none_or(|own| without_private(own) == without_private(root));
    same.then_some(root)
}

fn inside_the_bundle(process: &Process, image: &Image, path: &str, root: &str) -> Ownership {
    let file = path.rsplit('/').next().unwrap_or(path);
    if let Some((_, what)) = APPLE_IN_BUNDLE.iter().find(|(name, _)| is_apple_file(file, name)) {
        let why = format!("{file} lies inside the app and is {what}");
        return Ownership::strong(OwnerKind::System, "file name", why);
    }
    if is_debug_dylib(process, file) {
        let why = format!("{file} is the app's own code, which debug builds keep in a library of its own");
        return Ownership::likely(OwnerKind::App, "file name", why);
    }
    let inside = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
    let ships = |rest: &str| format!("{} ships inside the app ({inside}); {rest}", image.name);
    match &image.bundle_id {
        Some(id) if shared_identifier(process, image) => {
            let rest = format!(
                "its bundle identifier {id} begins as the app's: it may be the app's makers' own framework"
            );
            Ownership::likely(OwnerKind::Sdk, "bundle path", ships(&rest))
        }
        Some(id) => {
            let rest = format!("its bundle identifier {id} is not of the app's family");
            Ownership::strong(OwnerKind::Sdk, "bundle identifier", ships(&rest))
        }
        None => {
            let rest =
                "the path alone does not tell a framework of the app's own makers from a third party's";
            Ownership::likely(OwnerKind::Sdk, "bundle path", ships(rest))
        }
    }
}

/// `libswift` begins many names; the others name one framework each.
fn is_apple_file(file: &str, name: &str) -> bool {
    if name.starts_with("lib") { file.starts_with(name) && file.contains(".dylib") } else { file == name }
}

/// Xcode 16 puts a debug build's code into `Demo.debug.dylib` beside a stub `Demo`.
fn is_debug_dylib(process: &Process, file: &str) -> bool {
    let main = process.path.as_deref().and_then(|path| path.rsplit('/').next()).or(process.name.as_deref());
    main.is_some_and(|main| file.strip_prefix(main) == Some(".debug.dylib")) || file == "__preview.dylib"
}

/// First labels under which many unrelated makers publish, and those of examples.
const SHARED_FAMILIES: [&str; 9] = [
    "com.github",
    "io.github",
    "com.gitlab",
    "org.cocoapods",
    "org.swift",
    "com.apple",
    "com.example",
    "com.yourcompany",
    "com.company",
];

/// Whether the image's bundle identifier begins as the app's: `com.company`.
fn shared_identifier(process: &Process, image: &Image) -> bool {
    let family = |id: &str| -> Option<String> {
        let mut labels = id.split('.').filter(|label| !label.is_empty());
        Some(format!("{}.{}", labels.next()?, labels.next()?))
    };
    let own = process.identifier.as_deref().and_then(family);
    let theirs = image.bundle_id.as_deref().and_then(family);
    let (Some(own), Some(theirs)) = (own, theirs) else { return false };
    !SHARED_FAMILIES.contains(&own.as_str()) && own.eq_ignore_ascii_case(&theirs)
}

fn outside_the_bundle(image: &Image, path: &str) -> Ownership {
    let why =
        format!("{} was loaded from {path}, neither the app's bundle nor the system's place", image.name);
    Ownership::likely(OwnerKind::Sdk, "path", why)
}

fn owner_by_name(report: &Report, name: Option<&str>) -> Ownership {
    let process = &report.process;
    let Some(name) = name else {
        return Ownership::unknown("the frame lies in no image that the report names");
    };
    let own = [process.name.as_deref(), process.identifier.as_deref()];
    if own.contains(&Some(name)) {
        // One of the system's own programs, in a report without paths of images.
        let path = process.path.as_deref().unwrap_or_default();
        if let Some(rule) = rule_for(&*SYSTEM_PATHS, path) {
            let why = format!("{name} is the process's own name, which runs from {path}: {}", rule.what);
            return Ownership::strong(OwnerKind::System, "path", why);
        }
        return Ownership::likely(OwnerKind::App, "image name", format!("{name} is the process's own name"));
    }
    if is_system_name(name) {
        let why = format!("{name} is the name of one of the system's images");
        return Ownership::strong(OwnerKind::System, "image name", why);
    }
    if let Some(what) = shipped_runtime(name) {
        return Ownership::likely(OwnerKind::Sdk, "image name", format!("{name} is {what}, which apps ship"));
    }
    if process.name.is_none() && process.path.is_none() && image_of_main(report) == Some(name) {
        let why = format!("{name} is the process's executable: it has the function `main`");
        return Ownership::likely(OwnerKind::App, "function main", why);
    }
    let program = process.name.is_none() && process.path.is_none();
    if let Some(main) = program.then(|| image_of_main(report)).flatten() {
        let why = format!(
            "{name} is no image of the system's, and the process's executable, which has `main`, is {main}"
        );
        return Ownership::likely(OwnerKind::Sdk, "image name", why);
    }
    Ownership::unknown(format!("the report gives no path for {name}"))
}

/// Engines and runtimes that apps ship under a name of their own. Unity's framework is not one: it has the game's code in it.
pub(super) fn shipped_runtime(name: &str) -> Option<&'static str> {
    let known = [
        ("Flutter", "Flutter's engine"),
        ("FlutterMacOS", "Flutter's engine"),
        ("hermes", "React Native's JavaScript engine"),
        ("libmonosgen-2.0.dylib", "Mono's runtime"),
        ("libxamarin-dotnet.dylib", ".NET's runtime"),
        ("libcoreclr.dylib", ".NET's runtime"),
    ];
    known.iter().find(|(known, _)| *known == name).map(|(_, what)| *what)
}

/// The image, by name, of the `main` that a stack of the report runs through.
pub(super) fn image_of_main(report: &Report) -> Option<&str> {
    let stacks = report.process.threads.iter().map(|thread| &thread.frames);
    let stacks =
        stacks.chain(report.process.backtraces.iter().map(|backtrace| &backtrace.frames)).take(MAX_STACKS);
    // `main` is among the outermost frames.
    let mut outermost = stacks.flat_map(|frames| frames.iter().rev().take(4));
    outermost.find(|frame| is_any_of(frame, &["main"])).and_then(|frame| image_name(report, frame))
}

/// Stacks that are searched for `main`; it is on the first in every report seen.
const MAX_STACKS: usize = 16;
