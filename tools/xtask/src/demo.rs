//! The server's demonstration, for chores that look at its pages.

use crate::Result;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends when this is dropped.
pub(crate) struct Demo {
    process: Child,
    /// Host and port.
    pub(crate) address: String,
    /// Who is logged in: `NAME=VALUE`.
    pub(crate) cookie: String,
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// How long its reports may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Demo {
    /// Starts it, and logs in.
    pub(crate) fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| error.to_string())?;
        let output = process.stdout.take().ok_or("serve has no output")?;
        let mut demo = Self { process, address: String::new(), cookie: String::new() };
        let mut token = String::new();
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| error.to_string())?;
            let word = |name: &str| line.strip_prefix(name).and_then(|rest| rest.split_whitespace().next());
            if let Some(url) = word("listening at ") {
                demo.address = url.trim_start_matches("http://").to_owned();
            }
            if let Some(found) = word("token:") {
                token = found.to_owned();
                break;
            }
        }
        let body = format!("token={token}");
        let head = format!(
            "POST /login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
            body.len()
        );
        let answer = demo.ask(&head, &body)?;
        let cookie = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("set-cookie")
                .then(|| value.split(';').next().unwrap_or_default().to_owned())
        });
        demo.cookie = cookie.ok_or("the server gave no cookie")?;
        Ok(demo)
    }

    /// The page of its issues, once all is there: nothing changes any more, and every title has the name of a function.
    pub(crate) fn settled(&self) -> Result<String> {
        let path = "/projects/default";
        let begun = Instant::now();
        let mut text = self.page(path)?;
        loop {
            std::thread::sleep(Duration::from_secs(2));
            let before = std::mem::replace(&mut text, self.page(path)?);
            if text == before && text.contains("<li>") && !text.contains(" + 0x") {
                return Ok(text);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{path}: expected issues with names"));
            }
        }
    }

    /// A page, for who is logged in.
    pub(crate) fn page(&self, path: &str) -> Result<String> {
        let answer = self.ask(&format!("GET {path} HTTP/1.1\r\nCookie: {}\r\n", self.cookie), "")?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        if head.starts_with("HTTP/1.1 200") { Ok(body.to_owned()) } else { Err(format!("{path}: {head}")) }
    }

    fn ask(&self, head: &str, body: &str) -> Result<String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.address);
        let mut stream = TcpStream::connect(&self.address).map_err(failed)?;
        let request = format!("{head}Host: {}\r\nConnection: close\r\n\r\n{body}", self.address);
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(failed)?;
        Ok(answer)
    }
}
