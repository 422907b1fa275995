//! `names`: judges the demangler by the names of real binaries, against LLVM's and GNU's, and by other projects' lists.
//! What the differences mean is in `docs/demangle.md`.

mod binaries;
mod lists;

use crate::{Result, inputs, sh};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Binaries of that page: two C++ programs, a Swift dSYM, a Rust program.
const FILES: [&str; 4] = ["ceph-osd", "libjvm.so", "ExpoModulesCore", "rg"];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let is_shown = arguments.iter().any(|argument| argument == "--show");
    let files: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--show").collect();
    let files = if files.is_empty() { FILES.to_vec() } else { files };
    if let Some(option) = files.iter().find(|word| word.starts_with('-')) {
        return Err(format!("no option {option}"));
    }
    let names = Names { program: sh::built(&["-p", "backtrail-demangle", "--example", "names"])?, is_shown };
    println!(
        "| file | names | as expected | but for spaces | different | of these as LLVM | left mangled: here, there |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for file in files {
        let path = if inputs::is_known(file) { inputs::get(file)? } else { PathBuf::from(file) };
        match lists::read(&path)? {
            Some(list) => names.judge_list(file, &list)?,
            None => binaries::judge(&names, file, &path)?,
        }
    }
    Ok(())
}

/// LLVM's filter, with its major version in its name, as Debian has it.
const LLVM: &str = "llvm-cxxfilt-22";

/// Ours, as a program that reads a name a line.
struct Names {
    program: PathBuf,
    is_shown: bool,
}

/// How many names came out how.
#[derive(Default)]
struct Score {
    same: usize,
    but_for_spaces: usize,
    different: usize,
    as_llvm: usize,
    left_here: usize,
    left_there: usize,
}

impl Names {
    fn judge_list(&self, label: &str, list: &lists::List) -> Result<()> {
        let mangled: Vec<&str> = list.pairs.iter().map(|(name, _)| name.as_str()).collect();
        let got = filtered(Command::new(&self.program).args(&list.arguments), &mangled)?;
        let expected: Vec<&str> = list.pairs.iter().map(|(_, expected)| expected.as_str()).collect();
        let llvm = filtered(Command::new(LLVM).arg("--types"), &mangled)?;
        self.compare(label, &mangled, &got, &expected, Some(&llvm));
        Ok(())
    }

    /// Compares with what is expected; where that is not LLVM's answer, counts those that are LLVM's all the same.
    fn compare<A: AsRef<str>, B: AsRef<str>>(
        &self,
        label: &str,
        names: &[&str],
        ours: &[A],
        expected: &[B],
        llvm: Option<&[String]>,
    ) {
        let mut score = Score::default();
        for (number, ((name, ours), theirs)) in names.iter().zip(ours).zip(expected).enumerate() {
            let (ours, theirs) = (ours.as_ref(), theirs.as_ref());
            score.left_here += usize::from(ours == *name && theirs != *name);
            score.left_there += usize::from(theirs == *name && ours != *name);
            if ours == theirs {
                score.same += 1;
            } else if without_spaces(ours) == without_spaces(theirs) {
                score.but_for_spaces += 1;
            } else {
                score.different += 1;
                let llvm = llvm.and_then(|llvm| llvm.get(number));
                score.as_llvm += usize::from(llvm.is_some_and(|llvm| llvm == ours));
                if self.is_shown {
                    eprintln!("{name}\n  here  {ours}\n  there {theirs}");
                }
            }
        }
        let Score { same, but_for_spaces, different, as_llvm, left_here, left_there } = score;
        let count = names.len();
        println!(
            "| {label} | {count} | {same} | {but_for_spaces} | {different} | {as_llvm} | {left_here}, {left_there} |"
        );
    }
}

fn without_spaces(text: &str) -> String {
    text.replace(' ', "")
}

/// What a program makes of the names, a line each.
fn filtered(command: &mut Command, names: &[&str]) -> Result<Vec<String>> {
    let path = std::env::temp_dir().join(format!("backtrail-names-{}", std::process::id()));
    sh::write(&path, names.join("\n"))?;
    let file = std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let printed = sh::output(command.stdin(Stdio::from(file)));
    // What stays behind costs room, no more.
    let _ = std::fs::remove_file(&path);
    let lines: Vec<String> = printed?.lines().map(str::to_owned).collect();
    let program = Path::new(command.get_program()).display();
    let is_right = lines.len() == names.len();
    is_right.then_some(lines).ok_or_else(|| format!("{program}: not a line for each name"))
}
