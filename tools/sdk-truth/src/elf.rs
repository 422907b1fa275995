//! The same for ELF: Linux' and Android's shared libraries.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_sdk::{LearnOptions, learn};

use crate::Result;
use crate::app::{LLVM, objects, run};
use crate::judge::{Linked, Owner, Score, judge};

/// Static libraries by name, target and path: below the cache, or the system's own (Debian's packages libssl-dev,
/// libsqlite3-dev, zlib1g-dev; libcurl4-openssl-dev, libexpat1-dev, libpng-dev, libzstd-dev).
const LIBRARIES: &[(&str, &str, &str)] = &[
    (
        "sodium",
        "aarch64-linux-android21",
        "npm/react-native-libsodium-1.7.0/build/libsodium-android-armv8-a+crypto/lib/libsodium.a",
    ),
    (
        "sodium",
        "x86_64-linux-android21",
        "npm/react-native-libsodium-1.7.0/build/libsodium-android-westmere/lib/libsodium.a",
    ),
    (
        "sodium",
        "armv7a-linux-androideabi21",
        "npm/react-native-libsodium-1.7.0/build/libsodium-android-armv7-a/lib/libsodium.a",
    ),
    (
        "sodium",
        "i686-linux-android21",
        "npm/react-native-libsodium-1.7.0/build/libsodium-android-i686/lib/libsodium.a",
    ),
    ("crypto", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libcrypto.a"),
    ("sqlite", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libsqlite3.a"),
    ("z", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libz.a"),
    ("stdcpp", "x86_64-linux-gnu", "/usr/lib/gcc/x86_64-linux-gnu/12/libstdc++.a"),
    // Those that nobody had looked at before the rules stood.
    ("curl", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libcurl.a"),
    ("expat", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libexpat.a"),
    ("png", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libpng.a"),
    ("zstd", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libzstd.a"),
    // Of Debian's packages libc6-dev-arm64-cross and libstdc++-12-dev-arm64-cross.
    ("m", "aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib/libm.a"),
    ("resolv", "aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib/libresolv.a"),
    ("gomp", "aarch64-linux-gnu", "/usr/lib/gcc-cross/aarch64-linux-gnu/12/libgomp.a"),
    ("stdcpp", "aarch64-linux-gnu", "/usr/lib/gcc-cross/aarch64-linux-gnu/12/libstdc++.a"),
];

const WAYS: &[(&str, &[&str])] = &[
    ("exact", &[]),
    ("gc-sections", &["--gc-sections"]),
    ("folded", &["--icf=all"]),
    ("symbolic", &["-Bsymbolic"]),
    ("absent", &[]),
    // A program that lies where it was linked to: without any relocation.
    ("static", &[]),
    ("gnu-ld", &[]),
];

/// What a program or shared library of a system is linked with.
pub(crate) fn link_options(target: &str, is_static: bool) -> Vec<&'static str> {
    let mut options = vec!["--eh-frame-hdr", "--allow-multiple-definition", "-z", "notext"];
    // Debian's archives are for programs: not all of their code can be in a shared library.
    if target.contains("linux-gnu") {
        options.push(if is_static { "-static" } else { "-pie" });
        options.extend(["-e", "main", "--unresolved-symbols=ignore-all", "--defsym=__dso_handle=0"]);
    } else {
        options.push("-shared");
    }
    if target == "x86_64-linux-gnu" {
        // Programs have a copy of this variable of the C library; a position-independent link without that library cannot.
        options.push("--defsym=stderr=0");
    }
    options
}

/// Where functions are that are not weak.
fn firm(whole: &Path) -> Result<HashSet<u64>> {
    let nm = Command::new(format!("llvm-nm-{LLVM}")).args(["-U", "--format=bsd"]).arg(whole).output();
    let nm = nm.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&nm.stdout);
    let firm = text.lines().filter_map(|line| {
        let (address, rest) = line.split_once(' ')?;
        matches!(rest.split_once(' ')?.0, "T" | "t").then(|| u64::from_str_radix(address, 16).ok())?
    });
    Ok(firm.collect())
}

pub(crate) fn cases(
    cache: &Path,
    wants: &dyn Fn(&str) -> bool,
    has_symbols: bool,
    show: usize,
) -> Result<()> {
    let mut totals: Vec<(String, Score)> = Vec::new();
    for (name, target, path) in LIBRARIES {
        let file = if path.starts_with('/') { PathBuf::from(path) } else { cache.join(path) };
        let Ok(data) = std::fs::read(&file) else {
            println!("{name} {target}: {} is not here, left out", file.display());
            continue;
        };
        let learned =
            learn(&[(name, &data)], &LearnOptions::new(*name, "1")).map_err(|error| error.to_string())?;
        let own = objects(cache, target, &["-fPIC", "-ffunction-sections", "-funwind-tables"], 40, 1)?;
        for (way, flags) in WAYS.iter().filter(|(way, _)| wants(way)) {
            let is_gnu = *way == "gnu-ld";
            let is_static = *way == "static";
            if is_gnu && *target != "x86_64-linux-gnu" || is_static && !target.contains("linux-gnu") {
                continue;
            }
            let directory = cache.join("apps").join(target).join(format!("{name}-{way}"));
            std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
            let (whole, map, app) =
                (directory.join("app.whole"), directory.join("app.map"), directory.join("app"));
            let mut command = Command::new(if is_gnu { "ld".to_owned() } else { format!("ld.lld-{LLVM}") });
            command.args(link_options(target, is_static)).args(*flags);
            command.arg(format!("-Map={}", map.display())).args(&own);
            if *way != "absent" {
                command.arg("--whole-archive").arg(&file).arg("--no-whole-archive");
            }
            run(command.arg("-o").arg(&whole))?;
            std::fs::copy(&whole, &app).map_err(|error| error.to_string())?;
            run(Command::new(format!("llvm-strip-{LLVM}")).arg(&app))?;
            let path = file.display().to_string();
            let owners = [Owner { path: &path, name }];
            let firm = firm(&whole)?;
            let symbols = has_symbols.then_some(&*whole);
            let linked = Linked { app: &app, map: &map, symbols, firm: Some(&firm) };
            let score = judge(linked, std::slice::from_ref(&learned.fingerprint), &owners, None, show)?;
            println!("{name:<8} {target:<27} {way:<12} {}  {}", score.line(), score.firm_line());
            match totals.iter_mut().find(|(known, _)| known == way) {
                Some((_, total)) => total.add(&score),
                None => totals.push(((*way).to_owned(), score)),
            }
        }
    }
    for (way, score) in totals {
        println!("all      ELF                         {way:<12} {}", score.line());
    }
    Ok(())
}
