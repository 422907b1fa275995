//! How long `learn` and `map` take. Run it on a machine that does nothing else; the best of three counts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use backtrail_object::{Limits, Object, slices};
use backtrail_sdk::{Fingerprint, LearnOptions, MapOptions, learn, map};

use crate::Result;
use crate::app::{LLVM, objects, run};
use crate::cases::{shown, target};
use crate::libraries::Library;

const MEMBERS: usize = 1000;
const FINGERPRINTS: usize = 100;
/// Big binaries that hold none of the libraries, from PyPI.
const WHEEL: &str = "pyarrow==18.1.0";
const BINARY: &str = "pyarrow/libarrow.1801.dylib";

pub(crate) fn cases(cache: &Path) -> Result<()> {
    let data = std::fs::read(archive(cache)?).map_err(|error| error.to_string())?;
    let size = data.len() / 1_000_000;
    let seconds = best(&mut || {
        let learned = learn(&[("app", &data)], &LearnOptions::new("app", "1"));
        learned.map(drop).map_err(|error| error.to_string())
    })?;
    println!("speed       learn {MEMBERS} members, {size} MB: {seconds:.2} s");
    let mut known: Vec<Fingerprint> = Vec::new();
    let names = ["wechat", "jpush", "sodium", "skia"];
    for number in 0..FINGERPRINTS / names.len() {
        for library in names.iter().filter_map(|name| Library::find(name)) {
            let data = std::fs::read(library.file(cache)?).map_err(|error| error.to_string())?;
            let options = LearnOptions::new(format!("{}{number}", library.name), library.version);
            let learned = learn(&[(library.name, &data)], &options).map_err(|error| error.to_string())?;
            known.push(learned.fingerprint);
        }
    }
    let data = std::fs::read(binary(cache)?).map_err(|error| error.to_string())?;
    let slice = slices(&data, &Limits::default()).map_err(|error| error.to_string())?.into_iter().next();
    let slice = slice.ok_or("no slice")?;
    let object: Object<'_> = slice.parse(&Limits::default()).map_err(|error| error.to_string())?;
    let seconds = best(&mut || {
        map(&object, &known, &MapOptions::default()).map(drop).map_err(|error| error.to_string())
    })?;
    let (size, count) = (data.len() / 1_000_000, known.len());
    println!("speed       map {size} MB against {count} fingerprints: {seconds:.2} s, reading them left out");
    Ok(())
}

fn best(work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// An archive of so many members: the app's own objects, under other names each time.
fn archive(cache: &Path) -> Result<PathBuf> {
    let path = cache.join("members.a");
    if path.exists() {
        return Ok(path);
    }
    let own = objects(cache, &target("arm64"), &[], 40, 1)?;
    let room = cache.join("members");
    std::fs::create_dir_all(&room).map_err(|error| error.to_string())?;
    let mut command = Command::new(format!("llvm-ar-{LLVM}"));
    command.arg("rcS").arg(&path);
    for (number, object) in own.iter().cycle().take(MEMBERS).enumerate() {
        let copy = room.join(format!("m{number}.o"));
        std::fs::copy(object, &copy).map_err(|error| error.to_string())?;
        command.arg(copy);
    }
    run(&mut command)?;
    Ok(path)
}

fn binary(cache: &Path) -> Result<PathBuf> {
    let room = cache.join("wheel");
    let path = room.join(BINARY);
    if path.exists() {
        return Ok(path);
    }
    std::fs::create_dir_all(&room).map_err(|error| error.to_string())?;
    let mut command = Command::new("pip");
    command.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12"]);
    run(command.args(["--platform", "macosx_12_0_arm64", "--dest"]).arg(&room).arg(WHEEL))?;
    let entries = std::fs::read_dir(&room).map_err(|error| error.to_string())?;
    let wheel =
        entries.flatten().map(|entry| entry.path()).find(|path| path.extension() == Some("whl".as_ref()));
    let wheel = wheel.ok_or_else(|| format!("{}: no wheel", shown(&room)))?;
    run(Command::new("unzip").args(["-q", "-o"]).arg(wheel).arg(BINARY).arg("-d").arg(&room))?;
    Ok(path)
}
