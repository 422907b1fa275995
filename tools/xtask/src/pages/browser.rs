//! A browser without a window, asked by its debugging protocol over two pipes:
//! <https://chromedevtools.github.io/devtools-protocol/>. Messages are JSON, each ended by a zero byte.

use crate::{Result, sh};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What the browser is called by its makers and by Debian.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// One tab of a browser that ends when this is dropped.
pub(super) struct Browser {
    process: Child,
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// What it told of scripts, styles and loads that failed.
    pub(super) errors: Vec<String>,
    is_loaded: bool,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// The browser of this machine.
pub(super) fn find() -> Option<&'static str> {
    NAMES.into_iter().find(|name| {
        let mut command = Command::new(name);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

impl Browser {
    /// Starts it with its files and pipes in a directory.
    pub(super) fn start(name: &str, directory: &Path) -> Result<Self> {
        let pipes = ["in", "out"].map(|name| directory.join(name));
        for pipe in &pipes {
            sh::run(Command::new("mkfifo").arg(pipe))?;
        }
        let [to, from] = &pipes;
        let mut command = Command::new("sh");
        // It takes the pipes as its third and fourth file.
        command
            .args(["-c", "in=$1 out=$2; shift 2; exec \"$@\" 3<\"$in\" 4>\"$out\"", "sh"])
            .args([to, from]);
        command.arg(name).args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", directory.join("profile").display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let to = OpenOptions::new().write(true).open(to).map_err(failed)?;
        let out = BufReader::new(File::open(from).map_err(failed)?);
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in out.split(0).map_while(std::io::Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser =
            Self { process, to, from, session: None, last: 0, errors: Vec::new(), is_loaded: false };
        let target = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target.get("targetId"), "flatten": true });
        let attached = browser.ask("Target.attachToTarget", &attach)?;
        browser.session = text(&attached, "/sessionId").map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let (Some(session), Some(members)) = (&self.session, message.as_object_mut()) {
            members.insert("sessionId".to_owned(), json!(session));
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).map_err(|error| format!("the browser: {error}"))?;
        loop {
            let mut message = self.next(method)?;
            if message.get("id").and_then(Value::as_u64) != Some(self.last) {
                continue;
            }
            return match message.get("error") {
                None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
                Some(error) => Err(format!("{method}: {error}")),
            };
        }
    }

    /// The next message, after what it tells was written down.
    fn next(&mut self, for_what: &str) -> Result<Value> {
        let message = self.from.recv_timeout(PATIENCE);
        let message = message.map_err(|error| format!("the browser does not answer {for_what}: {error}"))?;
        match text(&message, "/method") {
            Some("Page.loadEventFired") => self.is_loaded = true,
            Some("Runtime.exceptionThrown") => {
                self.errors.extend(message.pointer("/params/exceptionDetails").map(Value::to_string));
            }
            Some("Log.entryAdded") if text(&message, "/params/entry/level") == Some("error") => {
                self.errors.extend(text(&message, "/params/entry/text").map(str::to_owned));
            }
            _ => {}
        }
        Ok(message)
    }

    /// Goes to a page, and waits until it is there with all that belongs to it.
    pub(super) fn go(&mut self, url: &str) -> Result<()> {
        self.is_loaded = false;
        self.errors.clear();
        let went = self.ask("Page.navigate", &json!({ "url": url }))?;
        if let Some(error) = text(&went, "/errorText") {
            return Err(format!("{url}: {error}"));
        }
        while !self.is_loaded {
            self.next(url)?;
        }
        Ok(())
    }

    /// The value of an expression in the page.
    pub(super) fn value(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "returnByValue": true });
        let mut answer = self.ask("Runtime.evaluate", &asked)?;
        if let Some(error) = answer.get("exceptionDetails") {
            return Err(error.to_string());
        }
        Ok(answer.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }

    /// Presses the tabulator.
    pub(super) fn press_tab(&mut self) -> Result<()> {
        for kind in ["rawKeyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            self.ask("Input.dispatchKeyEvent", &key)?;
        }
        Ok(())
    }
}
