//! Code blocks of Markdown files: each has a tag, and those tagged `sh` are run.
//!
//! `sh` is for what anybody can type in the repository's directory, one command after the other, and that succeeds.
//! `console` is for commands that need something that is not there, or do not end; `text` for output.

use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const README: &str = "README.md";
const TAGS: [&str; 9] = ["c", "console", "cpp", "html", "json", "rust", "sh", "text", "toml"];

/// The first commands of README.md build the program and run all tests. `.ci/run` runs these two itself.
const LEFT_TO_CI: usize = 2;

/// Longer than any command that is fit for a page, on a machine with other work.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of the fence.
    line: usize,
    tag: String,
    text: String,
}

/// One line for each block without a tag, and for each with another tag than those of [`TAGS`].
pub(super) fn faults(path: &Path, text: &str) -> Vec<String> {
    let wrong = blocks(text).into_iter().filter(|block| !TAGS.contains(&block.tag.as_str()));
    let message = |block: Block| {
        format!(
            "{}:{}: a code block is tagged {:?}, not one of {TAGS:?}",
            sh::shown_path(path),
            block.line,
            block.tag
        )
    };
    wrong.map(message).collect()
}

/// Runs every `sh` block of README.md and `docs/`, each in a fresh directory with the repository's files in it.
pub(super) fn run() -> Result<()> {
    let root = sh::root();
    let program = sh::built_for_tests(&["-p", "backtrail-cli"])?;
    let directory = program.parent().unwrap_or(&program).to_path_buf();
    let mut pages = vec![root.join(README)];
    pages.extend(sh::files(&root.join("docs"), "md"));
    let (mut count, mut faults) = (0, Vec::new());
    for page in pages {
        let skipped = if page.ends_with(README) { LEFT_TO_CI } else { 0 };
        for block in runnable(&sh::read(&page)?, skipped) {
            count += 1;
            let place = format!("{}:{}", sh::shown_path(&page), block.line);
            let checkout = Checkout::new(&format!("{}-{count}", std::process::id()))?;
            if let Err(error) = run_block(&block, &checkout, &directory) {
                faults.push(format!("{place}: {error}"));
            }
        }
    }
    println!("{count} shell blocks run");
    if count == 0 {
        faults.push("no page has a shell block".to_owned());
    }
    sh::faults(&faults)
}

/// The `sh` blocks, without the first `skipped` commands of the page.
fn runnable(text: &str, mut skipped: usize) -> Vec<Block> {
    let mut found: Vec<_> = blocks(text).into_iter().filter(|block| block.tag == "sh").collect();
    for block in &mut found {
        let commands = block.text.lines().filter(|line| !line.trim().is_empty());
        let left: Vec<_> = commands.clone().skip(skipped).collect();
        skipped = skipped.saturating_sub(commands.count());
        block.text = left.join("\n");
    }
    found.retain(|block| !block.text.is_empty());
    found
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (line, content) in (1..).zip(text.lines()) {
        match (content.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(tag), None) => {
                open = Some(Block { line, tag: tag.trim().to_owned(), text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(content);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Runs a block as a script that stops at the first command that fails.
fn run_block(block: &Block, checkout: &Checkout, programs: &Path) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = vec![programs.to_path_buf()];
    all.extend(std::env::split_paths(&path));
    let path = std::env::join_paths(all).map_err(|error| error.to_string())?;
    let log = checkout.0.join(".printed");
    let file = || {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log);
        file.map_err(|error| format!("cannot write {}: {error}", log.display()))
    };
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &block.text]).current_dir(&checkout.0);
    command.env("PATH", path).env("HOME", &checkout.0).stdin(Stdio::null());
    command.stdout(file()?).stderr(file()?);
    let mut child = command.spawn().map_err(|error| format!("cannot run bash: {error}"))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break Some(status),
            None if started.elapsed() > TIME_LIMIT => {
                // It may have ended by itself just now.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let why = match status {
        Some(status) if status.success() => return Ok(()),
        Some(status) => format!("ended with {status}"),
        None => format!("still ran after {} s", TIME_LIMIT.as_secs()),
    };
    let printed = sh::read(&log).unwrap_or_default();
    let last: Vec<_> = printed.lines().rev().take(10).collect();
    let last: Vec<_> = last.into_iter().rev().map(|line| format!("    {line}")).collect();
    Err(format!("a shell block {why}\n{}", last.join("\n")))
}

/// A directory with what pages may name of the repository: `fixtures/`, which blocks may change as they like.
struct Checkout(PathBuf);

impl Checkout {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("backtrail-docs-{name}"));
        sh::make_directory(&path)?;
        let checkout = Self(path);
        let fixtures = sh::root().join("fixtures");
        sh::run(Command::new("cp").arg("-R").arg(fixtures).arg(&checkout.0))?;
        Ok(checkout)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        // What stays behind takes up space, no more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# T\n```sh\na\n\nb\n```\nprose\n```text\nout\n```\n\n```sh\nc\n```\n";

    #[test]
    fn the_first_commands_are_left_out() {
        let texts = |skipped| runnable(PAGE, skipped).into_iter().map(|block| block.text).collect::<Vec<_>>();
        assert_eq!(texts(0), ["a\nb", "c"]);
        assert_eq!(texts(1), ["b", "c"]);
        assert_eq!(texts(2), ["c"]);
    }

    #[test]
    fn every_block_needs_a_tag() {
        assert_eq!(faults(Path::new("p.md"), PAGE), [""; 0]);
        assert_eq!(faults(Path::new("p.md"), "```\na\n```\n\n```bash\nb\n```\n").len(), 2);
    }

    #[test]
    fn a_command_that_fails_fails_its_block_and_changes_only_the_copy() {
        let run = |name: &str, text: &str| {
            let checkout = Checkout::new(&format!("test-{}-{name}", std::process::id())).unwrap();
            let block = Block { line: 1, tag: "sh".to_owned(), text: text.to_owned() };
            run_block(&block, &checkout, Path::new("/nowhere"))
        };
        assert_eq!(run("fine", "test -d fixtures/sample && echo > fixtures/new"), Ok(()));
        assert!(!sh::root().join("fixtures/new").exists());
        let error = run("fails", "echo before\nfalse\ntrue").unwrap_err();
        assert!(error.contains("exit status: 1") && error.contains("    before"), "{error}");
        assert!(run("pipe", "false | true").is_err());
    }
}
