//! `picture`: the picture of a report in README.md, taken of the sample's page by a browser that shows no window.

use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PICTURE: &str = "docs/images/report.png";
const REPORT: &str = "fixtures/sample/reports/null-member.ips";
const SYMBOLS: &str = "fixtures/sample/symbols";

/// Every clone of the repository has the picture.
const MAX_BYTES: u64 = 200_000;

/// What the browser is called by its makers and by Debian.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// No window, nothing fetched, and the same picture on every machine with the same fonts.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",
    "--hide-scrollbars",
    "--window-size=1280,920",
];

pub(crate) fn run(_: &[String]) -> Result<()> {
    let Some(browser) = BROWSERS.into_iter().find(|name| is_there(name)) else {
        println!("picture: not taken, there is no chromium (apt-get install chromium)");
        return Ok(());
    };
    let scratch = Scratch::new()?;
    let page = scratch.0.join("report.html");
    let program = sh::built_for_tests(&["-p", "backtrail-cli"])?;
    let mut symbolicate = Command::new(program);
    symbolicate.current_dir(sh::root()).args([
        "symbolicate",
        REPORT,
        "-s",
        SYMBOLS,
        "--format",
        "html",
        "-o",
    ]);
    sh::run(symbolicate.arg(&page))?;
    let taken = scratch.0.join("report.png");
    take(browser, &scratch.0, &page, &taken)?;
    let bytes = std::fs::read(&taken).map_err(|error| format!("{browser} took no picture: {error}"))?;
    check(&bytes)?;
    sh::write(&sh::root().join(PICTURE), &bytes)?;
    println!("picture: {PICTURE}, {} bytes", bytes.len());
    Ok(())
}

fn is_there(browser: &str) -> bool {
    let mut command = Command::new(browser);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn take(browser: &str, scratch: &Path, page: &Path, picture: &Path) -> Result<()> {
    let mut command = Command::new(browser);
    command.args(FLAGS).arg(format!("--user-data-dir={}", scratch.join("profile").display()));
    command.arg(format!("--screenshot={}", picture.display())).arg(format!("file://{}", page.display()));
    // It complains of buses and displays that are not there.
    sh::output(&mut command).map(drop)
}

fn check(bytes: &[u8]) -> Result<()> {
    if !bytes.starts_with(b"\x89PNG") {
        return Err("expected a PNG file of the browser".to_owned());
    }
    let size = bytes.len() as u64;
    if size > MAX_BYTES {
        return Err(format!("the picture has {size} bytes, at most {MAX_BYTES} are kept in the repository"));
    }
    Ok(())
}

/// A directory for the page and the browser's profile, new and empty.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("backtrail-picture-{}", std::process::id()));
        sh::make_directory(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind takes up space, no more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_a_small_png_is_kept() {
        assert_eq!(check(b"\x89PNG\r\n\x1a\n"), Ok(()));
        assert!(check(b"<html>").is_err());
        let large = [b"\x89PNG".to_vec(), vec![0; 200_000]].concat();
        assert!(check(&large).unwrap_err().contains("200004 bytes"));
    }
}
