//! Lets a program crash, and finds its core.

use super::builds::{Built, Machine};
use super::cases::{Case, Producer, Treatment};
use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seconds that a program may take to crash.
const PATIENCE: &str = "60";

/// A core with what the tools are told of it.
#[derive(Debug)]
pub(super) struct Made {
    /// As it was written, for tools that do not unpack.
    pub(super) core: PathBuf,
    /// As we get it.
    pub(super) ours: PathBuf,
    /// The program, for the tools that are to know it.
    pub(super) program: PathBuf,
    /// Whether we are told it.
    pub(super) is_program_named: bool,
    /// Directories that have the program or its debug info.
    pub(super) symbols: Vec<PathBuf>,
    pub(super) debug_directory: Option<PathBuf>,
    /// The emulated machine's libraries.
    pub(super) system: Option<&'static str>,
    /// How often the repeated functions were called.
    pub(super) depth: Option<u64>,
}

/// `None` where the machine cannot make one: no emulator, or cores are piped to a program.
pub(super) fn core(case: &Case, built: &Built, directory: &Path) -> Result<Option<Made>> {
    let _ = std::fs::remove_dir_all(directory);
    sh::make_directory(directory)?;
    let program = match case.treatment {
        Treatment::ProgramMoved | Treatment::ProgramGone => copied(&built.program, &directory.join("gone"))?,
        _ => built.program.clone(),
    };
    let Some(ended) = crash(case, &program, directory)? else { return Ok(None) };
    let Some(core) = found(directory) else {
        return Err(format!("no core in {}; the program {ended}", directory.display()));
    };
    let mut made = Made {
        ours: core.clone(),
        core,
        program: built.program.clone(),
        is_program_named: true,
        symbols: Vec::new(),
        debug_directory: built.debug_directory.clone(),
        system: None,
        depth: depth(directory),
    };
    if let Machine::Qemu(_, libraries) = case.build.machine {
        made.system = Some(libraries);
        made.symbols.push(Path::new(libraries).join("lib"));
    }
    made.symbols.extend(built.debug_directory.clone());
    treat(case.treatment, &mut made, built)?;
    Ok(Some(made))
}

fn treat(treatment: Treatment, made: &mut Made, built: &Built) -> Result<()> {
    match treatment {
        Treatment::None => {}
        // The peers get all of it: what is left is to give the first of the same frames.
        Treatment::Cut(left) => made.ours = cut(&made.core, left)?,
        Treatment::ProgramMoved => {
            made.is_program_named = false;
            made.symbols.extend(built.program.parent().map(Path::to_owned));
        }
        Treatment::ProgramGone => made.is_program_named = false,
        Treatment::Packed(by) => {
            let packed = made.core.with_extension("packed");
            let to =
                std::fs::File::create(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
            sh::run(Command::new(by).args(["-q", "-c"]).arg(&made.core).stdout(to))?;
            made.ours = packed;
        }
    }
    Ok(())
}

/// How the program ended; `None` where it cannot be run here.
fn crash(case: &Case, program: &Path, directory: &Path) -> Result<Option<String>> {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", PATIENCE]);
    match (case.build.machine, case.producer) {
        (Machine::Host, Producer::Crash) if is_piped() => return Ok(None),
        (Machine::Host, Producer::Crash) => command.arg(program),
        (Machine::Host, Producer::Gdb) => command
            .args(["gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "run"])
            .args(["-ex", "generate-core-file core", "--args"])
            .arg(program),
        (Machine::Qemu(emulator, libraries), _) => {
            if Command::new(emulator).arg("--version").stdout(Stdio::null()).status().is_err() {
                return Ok(None);
            }
            command.args([emulator, "-L", libraries]).arg(program)
        }
    };
    command.args(case.way.arguments).current_dir(directory).env("GOTRACEBACK", "crash");
    if matches!(case.treatment, Treatment::ProgramMoved | Treatment::ProgramGone) {
        command.env("CRASH_REMOVES_ITSELF", "1");
    }
    let output = command.output().map_err(|error| format!("cannot run timeout: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(Some(format!("ended with {}: {}", output.status, said.lines().next().unwrap_or_default())))
}

/// Whether the kernel hands cores to a program, which keeps them where we do not know.
fn is_piped() -> bool {
    std::fs::read("/proc/sys/kernel/core_pattern").is_ok_and(|pattern| pattern.first() == Some(&b'|'))
}

/// The core below the directory, whatever it is called.
fn found(directory: &Path) -> Option<PathBuf> {
    let is_core = |path: &PathBuf| {
        std::fs::File::open(path).is_ok_and(|mut file| {
            let mut header = [0; 18];
            std::io::Read::read_exact(&mut file, &mut header).is_ok()
                && header.starts_with(b"\x7fELF")
                && header.ends_with(&[4, 0])
        })
    };
    // qemu is dumped too, as the process that the kernel knows.
    let is_guest =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("qemu_"));
    let mut cores: Vec<_> = sh::entries(directory).into_iter().filter(is_core).collect();
    cores.sort_by_key(|path| !is_guest(path));
    cores.into_iter().next()
}

fn depth(directory: &Path) -> Option<u64> {
    let bytes = std::fs::read(directory.join("depth")).ok()?;
    Some(u64::from(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?)))
}

fn copied(from: &Path, to: &Path) -> Result<PathBuf> {
    std::fs::copy(from, to).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
    Ok(to.to_owned())
}

fn cut(core: &Path, left: u64) -> Result<PathBuf> {
    let cut = copied(core, &core.with_extension("cut"))?;
    let file = std::fs::OpenOptions::new().write(true).open(&cut);
    let shorten = |file: std::fs::File| file.set_len(file.metadata()?.len() * left / 100);
    file.and_then(shorten).map_err(|error| format!("cannot cut {}: {error}", cut.display()))?;
    Ok(cut)
}
