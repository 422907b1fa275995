//! Servers that are asked by TLS, with certificates that are to be trusted and not: `openssl s_server`.

use crate::faults::{debug_info, elf, id};
use backtrail_store::{Debuginfod, DebuginfodOptions, JsonClient, Method, RemoteFiles as _};
use backtrail_testkit::TempDir;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What the child below asks; where it keeps files.
const URL: &str = "BACKTRAIL_TEST_TLS_URL";
const CACHE: &str = "BACKTRAIL_TEST_TLS_CACHE";

/// Runs openssl in a directory; `None` where there is none.
fn openssl(directory: &Path, arguments: &str) -> Option<()> {
    let done = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().ok()?;
    assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    Some(())
}

/// An authority, and certificates that it has signed: for this machine, for another, and for this one a day ago. One that
/// nobody has signed comes with them.
fn certificates(directory: &Path) -> Option<()> {
    const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let ours = "subjectAltName=IP:127.0.0.1";
    openssl(
        directory,
        &format!(
            "req -x509 {KEY} -keyout ca.key -out ca.pem -subj /CN=authority -days 2 -addext keyUsage=keyCertSign"
        ),
    )?;
    openssl(
        directory,
        &format!("req -x509 {KEY} -keyout alone.key -out alone.pem -subj /CN=alone -days 2 -addext {ours}"),
    )?;
    for (name, alternative, days) in
        [("good", ours, "2"), ("other", "subjectAltName=DNS:other.example", "2"), ("old", ours, "-1")]
    {
        std::fs::write(directory.join("extensions"), alternative).unwrap();
        openssl(directory, &format!("req {KEY} -keyout {name}.key -out {name}.csr -subj /CN={name}"))?;
        openssl(
            directory,
            &format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -extfile extensions -out {name}.pem"
            ),
        )?;
    }
    Some(())
}

/// A server that gives the files of a directory.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn new(directory: &Path, certificate: &str) -> Self {
        let arguments =
            format!("s_server -accept 127.0.0.1:0 -WWW -cert {certificate}.pem -key {certificate}.key");
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(directory);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let address = line.strip_prefix("ACCEPT ")?;
            address.rsplit(':').next()?.parse::<u16>().ok()
        });
        Self { child, url: format!("https://127.0.0.1:{}", port.unwrap()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test: asks for image 1, in a process of its own, since what a machine trusts is told by the environment.
#[test]
fn asks_as_the_environment_says() {
    let Ok(url) = std::env::var(URL) else { return };
    let mut options = DebuginfodOptions::default();
    options.urls = vec![url];
    options.cache_directory = std::env::var_os(CACHE).unwrap().into();
    options.timeout = Duration::from_secs(60);
    let client = Debuginfod::new(options).unwrap();
    let answer = client.fetch(&[debug_info(1)]).remove(0);
    match answer {
        Ok(path) => println!("whole: {}", std::fs::read(path).unwrap() == elf(1)),
        Err(error) => println!("{error}; {}", client.problems().join("; ")),
    }
}

#[test]
fn servers_are_asked_by_tls_and_certificates_are_looked_at() {
    let directory = TempDir::new("debuginfod-tls");
    if certificates(directory.path()).is_none() {
        return eprintln!("skipped: there is no openssl");
    }
    let file = format!("buildid/{}/debuginfo", id(1));
    directory.write(&file, elf(1));
    for (certificate, trusts, expected) in [
        ("good", true, "whole: true"),
        ("good", false, "no authority that this machine trusts has signed its certificate"),
        ("alone", true, "its certificate is signed by itself"),
        ("other", true, "its certificate is for another name"),
        ("old", true, "its certificate has expired"),
    ] {
        let server = Server::new(directory.path(), certificate);
        let cache = TempDir::new("debuginfod-tls-cache");
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "tls::asks_as_the_environment_says", "--nocapture"]);
        child.env(URL, &server.url).env(CACHE, cache.path());
        if trusts {
            child.env("SSL_CERT_FILE", directory.join("ca.pem")).env_remove("SSL_CERT_DIR");
        }
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains(expected), "{certificate}, {trusts}: {text}");
        // Who it was is told once, whatever was wrong.
        assert!(expected.starts_with("whole") || text.contains(&server.url), "{text}");
    }
}

#[test]
fn a_server_that_speaks_no_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut piece = [0; 4096];
        let _ = stream.read(&mut piece);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        // What is not read would cut the answer off.
        while stream.read(&mut piece).is_ok_and(|count| count > 0) {}
    });
    let client = JsonClient::new(url, None, Duration::from_secs(20));
    let why = client.send(Method::Get, "/", b"").unwrap_err();
    assert_eq!(why, "cannot be asked: what it says is no TLS");
}
