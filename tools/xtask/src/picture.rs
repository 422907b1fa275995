//! `picture`: the pictures in README.md, taken of pages by a browser that shows no window.

mod server;

use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A picture, and the page that it is of.
struct Picture {
    file: &'static str,
    page: Page,
    /// The window's size.
    size: &'static str,
}

enum Page {
    Report {
        report: &'static str,
        symbols: &'static str,
        /// A static library that is to be learnt first: its file, name and version.
        library: Option<[&'static str; 3]>,
    },
    /// Of the server's demonstration, by its path.
    Server(&'static str),
}

const PICTURES: [Picture; 3] = [
    Picture {
        file: "docs/images/report.png",
        page: Page::Report {
            report: "fixtures/sample/reports/null-member.ips",
            symbols: "fixtures/sample/symbols",
            library: None,
        },
        size: "1280,920",
    },
    Picture {
        file: "docs/images/vendor.png",
        page: Page::Report {
            report: "fixtures/vendor/reports/ledger-crash.ips",
            symbols: "fixtures/vendor/app",
            library: Some(["fixtures/vendor/libLedger.a", "Ledger", "1.2"]),
        },
        size: "1280,660",
    },
    Picture { file: "docs/images/server.png", page: Page::Server("/projects/default"), size: "1280,560" },
];

/// Every clone of the repository has the pictures.
const MAX_BYTES: u64 = 200_000;

/// What the browser is called by its makers and by Debian.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// No window, nothing fetched, and the same picture on every machine with the same fonts.
const FLAGS: [&str; 10] = [
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
];

pub(crate) fn run(_: &[String]) -> Result<()> {
    let Some(browser) = BROWSERS.into_iter().find(|name| is_there(name)) else {
        println!("picture: not taken, there is no chromium (apt-get install chromium)");
        return Ok(());
    };
    let program = sh::built_for_tests(&["-p", "backtrail-cli"])?;
    for picture in &PICTURES {
        let scratch = Scratch::new()?;
        let page = scratch.0.join("report.html");
        match &picture.page {
            Page::Report { report, symbols, library } => {
                write_page(&program, [report, symbols], library.as_ref(), &scratch.0, &page)?;
            }
            Page::Server(path) => server::write_page(&program, path, &scratch.0, &page)?,
        }
        let taken = scratch.0.join("report.png");
        take(browser, &scratch.0, picture.size, &page, &taken)?;
        let bytes = std::fs::read(&taken).map_err(|error| format!("{browser} took no picture: {error}"))?;
        check(&bytes)?;
        sh::write(&sh::root().join(picture.file), &bytes)?;
        println!("picture: {}, {} bytes", picture.file, bytes.len());
    }
    Ok(())
}

fn write_page(
    program: &Path,
    [report, symbols]: [&str; 2],
    library: Option<&[&str; 3]>,
    scratch: &Path,
    page: &Path,
) -> Result<()> {
    let mut symbolicate = Command::new(program);
    symbolicate.args(["symbolicate", report, "-s", symbols]);
    if let Some([library, name, version]) = library {
        let fingerprint = scratch.join(format!("{name}.btsdk"));
        let mut learn = Command::new(program);
        learn.args(["sdk", "learn", library, "-n", name, "--lib-version", version, "-o"]).arg(&fingerprint);
        sh::run(learn.current_dir(sh::root()))?;
        symbolicate.arg("--sdk").arg(fingerprint);
    }
    symbolicate.args(["--format", "html", "-o"]).arg(page).current_dir(sh::root());
    // Exit code 1: a stripped app's frames have owners and no names.
    let status = symbolicate.status().map_err(|error| error.to_string())?;
    if status.code().is_some_and(|code| code <= 1) {
        Ok(())
    } else {
        Err(format!("{report}: symbolicate ended with {status}"))
    }
}

fn is_there(browser: &str) -> bool {
    let mut command = Command::new(browser);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn take(browser: &str, scratch: &Path, size: &str, page: &Path, picture: &Path) -> Result<()> {
    let mut command = Command::new(browser);
    command.args(FLAGS).arg(format!("--user-data-dir={}", scratch.join("profile").display()));
    command.arg(format!("--window-size={size}"));
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
