//! `backtrail upload`, with a line that breaks.

use backtrail_server::{Config, Server};
use backtrail_testkit::{TempDir, fixtures};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Leads on to a server until so many bytes have gone there; then it breaks every connection.
struct Line {
    address: SocketAddr,
    left: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
}

impl Line {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (left, sent) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicUsize::new(0)));
        let shared = (Arc::clone(&left), Arc::clone(&sent));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (left, sent) = shared.clone();
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { continue };
                let (mut answers, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut answers, &mut to_client);
                    let _ = to_client.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || lead(client, server, &left, &sent));
            }
        });
        Self { address, left, sent }
    }
}

fn lead(mut client: TcpStream, mut server: TcpStream, left: &AtomicUsize, sent: &AtomicUsize) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let take = |left: usize| left.checked_sub(count);
        let is_whole = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
        if !is_whole || server.write_all(&bytes[..count]).is_err() {
            break;
        }
        sent.fetch_add(count, Ordering::SeqCst);
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

fn upload(file: &std::path::Path, to: SocketAddr, token: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
    command.arg("upload").arg(file).arg("--to").arg(format!("http://{to}"));
    command.env("BACKTRAIL_TOKEN", token).output().unwrap()
}

#[test]
fn an_upload_goes_on_where_it_broke_off() {
    const MIB: usize = 1 << 20;
    let directory = TempDir::new("upload");
    let mut config = Config::new(directory.join("data"));
    config.listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(config).unwrap();
    let token = server.first_start().unwrap().token.clone();
    // Bytes behind an ELF file are nobody's. Each piece is another one.
    let mut bytes = std::fs::read(fixtures().join("stacks/orders")).unwrap();
    bytes.extend((bytes.len() / 8..5 * MIB).flat_map(usize::to_le_bytes));
    let file = directory.join("orders");
    std::fs::write(&file, &bytes).unwrap();

    let line = Line::to(server.address());
    line.left.store(30 * MIB, Ordering::SeqCst);
    let broken = upload(&file, line.address, &token);
    assert_eq!(broken.status.code(), Some(2), "{broken:?}");
    assert!(
        String::from_utf8_lossy(&broken.stderr).contains("what has arrived is not sent again"),
        "{broken:?}"
    );
    line.left.store(usize::MAX, Ordering::SeqCst);
    line.sent.store(0, Ordering::SeqCst);
    let whole = upload(&file, line.address, &token);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    assert!(String::from_utf8_lossy(&whole.stdout).contains("orders: sent, x86_64 "), "{whole:?}");
    let sent = line.sent.load(Ordering::SeqCst);
    assert!((8 * MIB..25 * MIB).contains(&sent), "three of five pieces were there: {sent}");
    let again = upload(&file, line.address, &token);
    assert!(String::from_utf8_lossy(&again.stdout).contains("there already"), "{again:?}");
    server.stop();
}

#[test]
fn an_address_without_a_scheme_is_said_to_be_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_backtrail"))
        .args(["upload", "fixtures/sample/symbols", "--to", "127.0.0.1:4747"])
        .current_dir(backtrail_testkit::workspace_root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--to 127.0.0.1:4747: expected an address that begins with https:// or http://"),
        "{said}"
    );
}

fn fixture(name: &str) -> std::path::PathBuf {
    fixtures().join(name)
}

/// The process that the server starts compares the app with the library; `symbolicate` says the same with the same files.
#[test]
fn whose_code_it_is_is_uploaded_too() {
    let directory = TempDir::new("upload-owners");
    let mut config = Config::new(directory.join("data"));
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.tables = Some(env!("CARGO_BIN_EXE_backtrail").into());
    let server = Server::start(config).unwrap();
    let token = server.first_start().unwrap().token.clone();
    let rules = directory.write("ours.toml", "[[owner]]\nkind = \"app\"\nsymbol = \"ours\"\n");
    let broken = directory.write("broken.map", "# Path: /x/App\n# Object files:\n");
    let program = || Command::new(env!("CARGO_BIN_EXE_backtrail"));
    let upload = |arguments: &[&std::ffi::OsStr]| {
        let mut command = program();
        command.arg("upload").args(arguments).args(["--to", &format!("http://{}", server.address())]);
        command.env("BACKTRAIL_TOKEN", &token).output().unwrap()
    };
    let owners = fixture("owners");
    let map = owners.join("Demo.map");
    let sent =
        upload(&[owners.as_ref(), "--link-map".as_ref(), map.as_ref(), "--rules".as_ref(), rules.as_ref()]);
    let text = String::from_utf8(sent.stdout).unwrap();
    assert!(sent.status.success(), "{text}{}", String::from_utf8_lossy(&sent.stderr));
    for said in [
        "Vendor.btsdk: sent, fingerprint Vendor 2.1",
        "Demo.map: sent, link map Demo.map",
        "ours.toml: sent, rules",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let refused = upload(&["--link-map".as_ref(), broken.as_ref()]);
    let problem = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && problem.contains("expected"), "{problem}");
    let ask = |method: &str, path: &str, body: &[u8]| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n"
        );
        stream.write_all(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let report = std::fs::read(fixture("owners/in-library.crash")).unwrap();
    let answer = ask("POST", "/api/1/reports/", &report);
    assert!(answer.contains("200 OK"), "{answer}");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(180);
    loop {
        let vendor = ask("GET", "/api/v1/projects/1/owners?owner=sdk%20Vendor", b"");
        let sources = ask("GET", "/api/v1/projects/1/owner-sources", b"");
        if vendor.contains("\"versions\":[{") && sources.to_ascii_uppercase().contains("4C4C44C4-5555") {
            break;
        }
        assert!(std::time::Instant::now() < until, "{vendor}\n{sources}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    server.stop();
}
