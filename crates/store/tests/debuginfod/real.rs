//! Debian's `debuginfod` and `debuginfod-find`, on files that are built here. Where they are not installed, one line says
//! so.

use backtrail_core::ImageId;
use backtrail_store::{
    Debuginfod, DebuginfodOptions, RemoteErrorKind, RemoteFile, RemoteFiles as _, RemoteKind,
};
use backtrail_testkit::{TempDir, not_installed};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_installed(tool: &str) -> bool {
    let run = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

/// Builds a program and takes its debug info into a file of its own; gives its build id.
fn build(directory: &TempDir) -> Option<ImageId> {
    let source = directory.write("src/program.c", "int main(void) { return 0; }\n");
    let (program, debug) = (directory.join("files/program"), directory.join("files/program.debug"));
    directory.create_dir("files");
    let run = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let cc = Command::new("cc").args(["-g", "-Wl,--build-id=sha1", "-o"]).arg(&program).arg(&source).status();
    let copied = cc.is_ok_and(|status| status.success())
        && run(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&debug))
        && run(Command::new("strip").arg(&program));
    if !copied {
        return None;
    }
    let bytes = std::fs::read(&program).unwrap();
    let identities =
        backtrail_object::identify(&bytes.as_slice(), &backtrail_object::Limits::default()).unwrap();
    identities[0].id
}

/// Starts the server, and waits until it has looked at all files.
fn serve(directory: &TempDir) -> Server {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut child = Command::new("debuginfod")
        .args(["-F", "-vvv", "--port", &port.to_string(), "--database", ":memory:"])
        .arg(directory.join("files"))
        .env_remove("DEBUGINFOD_URLS")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let (send, scanned) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // Read to its end: a full pipe would stop the server.
        for line in log.lines().map_while(Result::ok) {
            if line.contains("groom") || line.contains("fdcache") || line.contains("scanned") {
                let _ = send.send(line);
            }
        }
    });
    let _ = scanned.recv_timeout(Duration::from_secs(30));
    Server { child, url: format!("http://127.0.0.1:{port}") }
}

fn client(url: &str, cache: PathBuf) -> Debuginfod {
    let mut options = DebuginfodOptions::default();
    options.urls = vec![url.to_owned()];
    options.cache_directory = cache;
    Debuginfod::new(options).unwrap()
}

fn find(url: &str, cache: &Path, kind: &str, id: &ImageId) -> Option<PathBuf> {
    let run = Command::new("debuginfod-find")
        .args([kind, &id.to_string()])
        .env("DEBUGINFOD_URLS", url)
        .env("DEBUGINFOD_CACHE_PATH", cache)
        .output()
        .unwrap();
    run.status.success().then(|| String::from_utf8(run.stdout).unwrap().trim().into())
}

#[test]
fn the_real_server_is_asked_and_its_cache_shared() {
    if !is_installed("debuginfod") || !is_installed("debuginfod-find") {
        return not_installed("debuginfod");
    }
    let directory = TempDir::new("debuginfod-real");
    let Some(id) = build(&directory) else { return not_installed("cc, objcopy or strip") };
    let server = serve(&directory);
    let file = |kind| RemoteFile { id, kind };
    let (debug_info, executable) = (file(RemoteKind::DebugInfo), file(RemoteKind::Executable));

    // The server scans in the background: until it is done, nothing is there.
    let deadline = Instant::now() + Duration::from_secs(60);
    let fetched = loop {
        let cache = TempDir::new("debuginfod-cache");
        let fetched = client(&server.url, cache.join("cache")).fetch(&[debug_info, executable]);
        if fetched.iter().all(Result::is_ok) {
            break (fetched, cache);
        }
        assert!(Instant::now() < deadline, "{fetched:?}");
        std::thread::sleep(Duration::from_millis(200));
    };
    let (fetched, cache) = fetched;
    let read = |path: &Path| std::fs::read(path).unwrap();
    assert_eq!(read(fetched[0].as_ref().unwrap()), read(&directory.join("files/program.debug")));
    assert_eq!(read(fetched[1].as_ref().unwrap()), read(&directory.join("files/program")));

    // What was fetched here, elfutils finds without a server, and the other way round.
    const NOBODY: &str = "http://127.0.0.1:9";
    for (kind, fetched) in [("debuginfo", &fetched[0]), ("executable", &fetched[1])] {
        let found = find(NOBODY, &cache.join("cache"), kind, &id);
        assert_eq!(found.as_ref(), fetched.as_ref().ok(), "{kind}");
    }
    let other = directory.join("other");
    let found = find(&server.url, &other, "debuginfo", &id).unwrap();
    let ours = client(NOBODY, other.clone());
    assert_eq!(ours.fetch(&[debug_info]), [Ok(found)]);
    assert!(ours.problems().is_empty(), "{:?}", ours.problems());

    // So is that there is none.
    let absent = ImageId::from_build_id(&[7; 20]).unwrap();
    assert_eq!(find(&server.url, &other, "debuginfo", &absent), None);
    let wanted = RemoteFile { id: absent, kind: RemoteKind::DebugInfo };
    let error = client(NOBODY, other.clone()).fetch(&[wanted]).remove(0).unwrap_err();
    assert!(error.kind() == RemoteErrorKind::NotThere && error.to_string().contains("a short while ago"));
    let wanted = RemoteFile { id: absent, kind: RemoteKind::Executable };
    assert!(client(&server.url, other.clone()).fetch(&[wanted]).remove(0).is_err());
    let note = other.join(absent.to_string()).join("executable");
    assert_eq!(std::fs::metadata(&note).unwrap().len(), 0);
    let before = std::fs::metadata(&note).unwrap().modified().unwrap();
    assert_eq!(find(&server.url, &other, "executable", &absent), None);
    assert_eq!(
        std::fs::metadata(&note).unwrap().modified().unwrap(),
        before,
        "elfutils takes the note as its own"
    );
}
