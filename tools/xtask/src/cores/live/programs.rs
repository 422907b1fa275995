//! Which programs are started, built how, with how many threads.

use super::jvm;
use crate::cores::builds::{self, Build};
use crate::cores::cases::{self, CLANG_CPP, CPP, GO};
use crate::{Result, sh};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const RUST: &[&str] = &["rustc", "--edition=2021", "-g"];
const THREADS: [usize; 3] = [1, 64, 1000];
/// Interpreters' threads cost some megabytes each.
const INTERPRETED_THREADS: [usize; 2] = [1, 64];
/// All of `Shapes.java`'s kinds of call, each with each way to wait.
const SHAPES: usize = 82;
const JVM: [(&str, &[&str]); 7] = [
    ("interpreted", &["-Xint"]),
    ("tiered", &[]),
    ("c1", &["-XX:TieredStopAtLevel=1"]),
    ("c2", &["-XX:-TieredCompilation", "-XX:CompileThreshold=500"]),
    ("all-compiled", &["-Xcomp"]),
    ("frame-pointers", &["-XX:+PreserveFramePointer"]),
    ("zgc", &["-XX:+UseZGC"]),
];
/// For a program to start, and to stop: none takes long, unless the machine is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// One program, started with a number of threads.
pub(super) struct Case {
    program: Program,
    threads: usize,
}

enum Program {
    Built(Build),
    /// An interpreter, and its script below `fixtures`.
    Interpreted(&'static str, &'static str),
    /// Java's virtual machine, named after the options that it gets beside those of `jvm`.
    Jvm(&'static str, &'static [&'static str]),
}

pub(super) fn all() -> Vec<Case> {
    let built =
        cpp().into_iter().chain(rust()).chain(go()).flat_map(|build| {
            THREADS.map(|threads| Case { program: Program::Built(build.clone()), threads })
        });
    let interpreters = [("python3", "live/waits.py"), ("node", "live/waits.js"), ("java", "live/Waits.java")];
    let interpreted = interpreters.into_iter().flat_map(|(program, script)| {
        INTERPRETED_THREADS.map(|threads| Case { program: Program::Interpreted(program, script), threads })
    });
    let jvm =
        JVM.into_iter().map(|(name, flags)| Case { program: Program::Jvm(name, flags), threads: SHAPES });
    built.chain(interpreted).chain(jvm).collect()
}

fn cpp() -> Vec<Build> {
    let mut all = Vec::new();
    for (name, compiler) in [("gcc", CPP), ("clang", CLANG_CPP)] {
        for level in ["-O0", "-O1", "-O2"] {
            for (kind, flag) in [("", "-fomit-frame-pointer"), ("-fp", "-fno-omit-frame-pointer")] {
                let name = format!("{name}{level}{kind}");
                all.push(cases::build("c++", &name, "live/waits.cc", compiler, &["-g", level, flag]));
            }
        }
    }
    all
}

fn rust() -> Vec<Build> {
    let of = |name: &str, flags: &[&'static str]| cases::build("rust", name, "live/waits.rs", RUST, flags);
    vec![
        of("O0", &["-Copt-level=0"]),
        of("O1", &["-Copt-level=1"]),
        of("O2", &["-Copt-level=2"]),
        of("O2-fp", &["-Copt-level=2", "-Cforce-frame-pointers=yes"]),
    ]
}

fn go() -> Vec<Build> {
    let of = |name: &str, flags: &[&'static str]| cases::build("go", name, "live/waits.go", GO, flags);
    vec![of("plain", &[]), of("not-optimized", &["-gcflags=all=-N -l"]), of("pie", &["-buildmode=pie"])]
}

impl Case {
    pub(super) fn family(&self) -> &'static str {
        match &self.program {
            Program::Built(build) => build.family,
            Program::Interpreted(program, _) => program,
            Program::Jvm(..) => "java, compared with itself",
        }
    }

    pub(super) fn name(&self) -> String {
        match &self.program {
            Program::Built(build) => format!("{}/{}", build.name, self.threads),
            Program::Interpreted(program, _) => format!("{program}/{}", self.threads),
            Program::Jvm(name, _) => format!("java/{name}"),
        }
    }

    /// Whether the virtual machine is asked, and not gdb alone.
    pub(super) fn is_jvm(&self) -> bool {
        matches!(self.program, Program::Jvm(..))
    }

    /// Starts it and waits until all its threads wait; `None` where the compiler or the interpreter is not installed.
    pub(super) fn start(&self, scratch: &Path) -> Result<Option<Process>> {
        let mut command = match &self.program {
            Program::Built(build) => match builds::build(build, scratch)? {
                Some(built) => Command::new(built.program),
                None => return Ok(None),
            },
            Program::Interpreted(program, script) => {
                let mut command = Command::new(program);
                command.arg(sh::root().join("fixtures").join(script));
                command
            }
            Program::Jvm(_, flags) => {
                let mut command = Command::new("java");
                command.args(*flags).args(jvm::FLAGS).arg(sh::root().join("fixtures/live/Shapes.java"));
                command
            }
        };
        command.arg(self.threads.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot be started: {error}")),
        };
        let output = child.stdout.take().ok_or("no pipe")?;
        let mut process = Process { child, id: 0 };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        process.id = line.trim().parse().map_err(|_| format!("said {line:?}, not its process id"))?;
        Ok(Some(process))
    }
}

/// A program that runs, until this is dropped.
pub(super) struct Process {
    child: Child,
    id: u32,
}

impl Process {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Stops all its threads, so that two programs that look one after the other see the same.
    pub(super) fn stop(&self) -> Result<()> {
        sh::run(Command::new("kill").args(["-STOP", &self.id.to_string()]))?;
        let began = Instant::now();
        while !self.has_stopped() {
            if began.elapsed() > PATIENCE {
                return Err("did not stop".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn has_stopped(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.id)) else { return false };
        let is_stopped = |stat: String| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'));
        threads
            .flatten()
            .all(|entry| std::fs::read_to_string(entry.path().join("stat")).is_ok_and(is_stopped))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
