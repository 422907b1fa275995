//! Stamped libraries in real links: the section must have every function of the library, and nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_object::{Limits, Object};
use backtrail_sdk::{LinkMap, MapOptions, map_file, stamp, unstamp};

use crate::app::{LLVM, objects, run};
use crate::cases::{app_objects, link, order_file, shown, target};
use crate::libraries::Library;
use crate::{Result, elf as elf_cases};

const NAME: &str = "vendor";
const VERSION: &str = "2.1";

pub(crate) fn cases(cache: &Path, arch: &str, libraries: &[Library]) -> Result<()> {
    for library in libraries {
        let file = library.file(cache)?;
        let stamped = stamped(cache, &file, library.name)?;
        let force = ["-force_load".to_owned(), shown(&stamped)];
        let order = ["-order_file".to_owned(), shown(&order_file(cache, arch, library)?)];
        let ways: [(&str, Vec<String>); 5] = [
            ("exact", Vec::new()),
            ("dead-strip", vec!["-dead_strip".to_owned()]),
            ("folded", vec!["--icf=all".to_owned()]),
            ("order-file", order.to_vec()),
            ("app-lto", vec!["-dead_strip".to_owned()]),
        ];
        for (way, flags) in ways {
            let mut arguments = if way == "app-lto" {
                objects(cache, &target(arch), &["-flto"], 40, 1)?.iter().map(|path| shown(path)).collect()
            } else {
                app_objects(cache, arch)?
            };
            arguments.extend(force.clone());
            arguments.extend(flags);
            let linked = link(cache, arch, &format!("{}-stamped-{way}", library.name), &arguments)?;
            report(
                &format!("{} {arch} {way}", library.name),
                &linked.app,
                &linked.map,
                &shown(&stamped),
                &format!("__text_{NAME}"),
            )?;
        }
    }
    elf(cache)
}

fn stamped(cache: &Path, file: &Path, name: &str) -> Result<PathBuf> {
    let data = std::fs::read(file).map_err(|error| error.to_string())?;
    let stamped =
        stamp(&data, NAME, Some(VERSION)).map_err(|error| format!("{}: {error}", file.display()))?;
    let again = unstamp(&stamped.bytes, NAME).map_err(|error| error.to_string())?;
    println!(
        "  {name}: {} sections stamped, unstamped {}",
        stamped.sections,
        if again.bytes == data { "equal" } else { "NOT equal" }
    );
    let path = cache.join("stamped").join(format!("lib{name}-{VERSION}.a"));
    std::fs::create_dir_all(cache.join("stamped")).map_err(|error| error.to_string())?;
    std::fs::write(&path, stamped.bytes).map_err(|error| error.to_string())?;
    Ok(path)
}

fn elf(cache: &Path) -> Result<()> {
    for (name, target, path) in [
        (
            "sodium",
            "aarch64-linux-android21",
            "npm/react-native-libsodium-1.7.0/build/libsodium-android-armv8-a+crypto/lib/libsodium.a",
        ),
        ("z", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libz.a"),
        ("crypto", "x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libcrypto.a"),
    ] {
        let file = if path.starts_with('/') { PathBuf::from(path) } else { cache.join(path) };
        if !file.exists() {
            continue;
        }
        let stamped = stamped(cache, &file, &format!("{name}-{target}"))?;
        for (linker, flags) in [
            ("ld.lld", &[][..]),
            ("ld.lld", &["--gc-sections"][..]),
            ("ld.lld", &["--icf=all"][..]),
            ("ld", &[][..]),
        ] {
            if linker == "ld" && !target.starts_with("x86_64") {
                continue;
            }
            let directory = cache.join("apps").join(target).join(format!("{name}-stamped"));
            std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
            let (map, app) = (directory.join("app.map"), directory.join("app"));
            let linker = if linker == "ld" { "ld".to_owned() } else { format!("{linker}-{LLVM}") };
            let mut command = Command::new(&linker);
            command
                .args(elf_cases::link_options(target, false))
                .args(flags)
                .arg(format!("-Map={}", map.display()));
            command.args(objects(
                cache,
                target,
                &["-fPIC", "-ffunction-sections", "-funwind-tables"],
                40,
                1,
            )?);
            run(command.arg("--whole-archive").arg(&stamped).arg("-o").arg(&app))?;
            run(Command::new(format!("llvm-strip-{LLVM}")).arg(&app))?;
            report(
                &format!("{name} {target} {linker} {flags:?}"),
                &app,
                &map,
                &shown(&stamped),
                &format!("text_{NAME}"),
            )?;
        }
    }
    Ok(())
}

fn report(what: &str, app: &Path, map: &Path, library: &str, section: &str) -> Result<()> {
    let data = std::fs::read(app).map_err(|error| error.to_string())?;
    let truth = std::fs::read(map).map_err(|error| error.to_string())?;
    let truth = LinkMap::parse(&truth).map_err(|error| error.to_string())?;
    let object = Object::parse_with(&data, &Limits::default()).map_err(|error| error.to_string())?;
    let sections: Vec<_> =
        object.sections().iter().filter(|known| known.name == section).map(|known| known.address).collect();
    let code: Vec<_> =
        object.sections().iter().filter(|section| section.is_code).map(|section| section.address).collect();
    let (mut inside, mut outside, mut foreign) = (0, 0, 0);
    for piece in truth
        .pieces()
        .filter(|piece| !piece.range.is_empty() && code.iter().any(|code| code.contains(piece.range.start())))
    {
        let is_inside = sections.iter().any(|section| section.contains(piece.range.start()));
        match (piece.file.contains(library), is_inside) {
            (true, true) => inside += 1,
            (true, false) => outside += 1,
            (false, true) => foreign += 1,
            (false, false) => {}
        }
    }
    let mapped = map_file(&data, None, &[], &MapOptions::default()).map_err(|error| error.to_string())?;
    let mut owned = mapped.iter().flat_map(|one| &one.owners.ranges).filter(|owned| owned.owner == NAME);
    let version = owned.next().and_then(|owned| owned.version.as_deref()).unwrap_or("no version");
    println!(
        "stamped     {what:<46} {NAME} {version}, {} section, {inside} pieces inside, {outside} outside, {foreign} foreign",
        sections.len()
    );
    Ok(())
}
