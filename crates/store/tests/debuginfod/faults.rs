//! What servers do wrong, and what comes of it.

use backtrail_core::ImageId;
use backtrail_store::{
    Debuginfod, DebuginfodError, DebuginfodOptions, RemoteErrorKind, RemoteFile, RemoteFiles as _, RemoteKind,
};
use backtrail_testkit::{Elf, ElfSection, HttpAnswer as Answer, HttpServer as Server, TempDir};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Two servers, the directory that files are kept in, and a client.
struct Case {
    servers: [Server; 2],
    directory: TempDir,
    options: DebuginfodOptions,
}

pub(crate) fn id(n: u8) -> ImageId {
    ImageId::from_build_id(&[n; 20]).unwrap()
}

pub(crate) fn debug_info(n: u8) -> RemoteFile {
    RemoteFile { id: id(n), kind: RemoteKind::DebugInfo }
}

fn path(n: u8) -> String {
    format!("/buildid/{}/debuginfo", id(n))
}

/// A file with this build id, and sections behind its headers.
pub(crate) fn elf(n: u8) -> Vec<u8> {
    let mut elf = Elf::default();
    let note = elf.build_id_note(&[n; 20]);
    elf.sections.push(ElfSection {
        name: ".note.gnu.build-id",
        kind: 7,
        data: note,
        ..ElfSection::default()
    });
    let data = (0..200_000).map(|at: u32| (at % 251) as u8).collect();
    elf.sections.push(ElfSection { name: ".debug_info", kind: 1, data, ..ElfSection::default() });
    elf.build()
}

impl Case {
    fn new() -> Self {
        let (servers, directory) = ([Server::new(), Server::new()], TempDir::new("debuginfod"));
        let mut options = DebuginfodOptions::default();
        options.urls = servers.iter().map(|server| server.url.clone()).collect();
        options.cache_directory = directory.join("cache");
        options.timeout = Duration::from_secs(20);
        Self { servers, directory, options }
    }

    /// The first server answers for image 1 with this.
    fn answering(answer: Answer) -> Self {
        let case = Self::new();
        case.servers[0].answer(&path(1), answer);
        case
    }

    fn client(&self) -> Debuginfod {
        Debuginfod::new(self.options.clone()).unwrap()
    }

    /// Fetches image 1, which has to fail.
    fn fails(&self) -> (RemoteErrorKind, String, Vec<String>) {
        let client = self.client();
        let error = client.fetch(&[debug_info(1)]).remove(0).unwrap_err();
        assert_eq!(files(&self.directory.join("cache")), self.notes(&error.kind()), "{error}");
        (error.kind(), error.to_string(), client.problems())
    }

    fn notes(&self, kind: &RemoteErrorKind) -> Vec<PathBuf> {
        let note = self.directory.join("cache").join(id(1).to_string()).join("debuginfo");
        if *kind == RemoteErrorKind::NotThere { vec![note] } else { Vec::new() }
    }
}

/// Everything that is kept, settings left out: a file that came in part or is not the right one must not be there.
fn files(cache: &Path) -> Vec<PathBuf> {
    let directories = std::fs::read_dir(cache).unwrap().flatten().filter(|entry| entry.path().is_dir());
    let mut files: Vec<_> = directories
        .flat_map(|directory| std::fs::read_dir(directory.path()).unwrap().flatten())
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

#[test]
fn a_file_comes_whole_and_only_once() {
    let case = Case::answering(Answer::File(elf(1)));
    let client = case.client();
    let path = client.fetch(&[debug_info(1)]).remove(0).unwrap();
    assert_eq!(path, case.directory.join("cache").join(id(1).to_string()).join("debuginfo"));
    assert_eq!(std::fs::read(&path).unwrap(), elf(1));
    assert_eq!(client.fetch(&[debug_info(1)]), [Ok(path.clone())]);
    assert_eq!(case.client().fetch(&[debug_info(1)]), [Ok(path)], "another run");
    assert_eq!(case.servers[0].asked().len(), 1);
    assert!(case.servers[1].asked().is_empty());
    assert!(client.problems().is_empty());
}

#[test]
fn what_no_server_has_is_not_asked_for_again() {
    let case = Case::new();
    let (kind, error, problems) = case.fails();
    assert_eq!(kind, RemoteErrorKind::NotThere);
    assert!(error.contains(&case.servers[0].url) && error.contains(&case.servers[1].url), "{error}");
    assert!(problems.is_empty(), "{problems:?}");
    let (_, error, _) = case.fails();
    assert!(error.contains("a short while ago"), "{error}");
    assert_eq!(case.servers.each_ref().map(|server| server.asked().len()), [1, 1]);
}

#[test]
fn the_next_server_is_asked_for_what_one_does_not_have() {
    let case = Case::new();
    case.servers[1].answer(&path(1), Answer::File(elf(1)));
    assert!(case.client().fetch(&[debug_info(1)]).remove(0).is_ok());
    assert_eq!(case.servers[0].asked().len(), 1);
}

#[test]
fn a_failing_server_is_asked_once() {
    let case = Case::answering(Answer::Status(500));
    (2..20).for_each(|n| case.servers[0].answer(&path(n), Answer::Status(500)));
    (1..20).for_each(|n| case.servers[1].answer(&path(n), Answer::File(elf(n))));
    let wanted: Vec<_> = (1..20).map(debug_info).collect();
    let client = case.client();
    assert!(client.fetch(&wanted).iter().all(Result::is_ok));
    assert_eq!(case.servers[0].asked().len(), 1);
    let problems = client.problems();
    assert!(problems.len() == 1 && problems[0].contains("500"), "{problems:?}");
}

#[test]
fn a_server_that_is_not_there_is_said() {
    let mut case = Case::new();
    case.options.urls = vec!["http://127.0.0.1:9".to_owned(), case.servers[1].url.clone()];
    let (kind, error, problems) = case.fails();
    assert_eq!(kind, RemoteErrorKind::Server, "{error}");
    assert!(problems[0].starts_with("http://127.0.0.1:9: cannot be asked"), "{problems:?}");
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let mut case = Case::answering(Answer::Hang);
    case.options.timeout = Duration::from_secs(1);
    // Either of the two may be asked for first.
    case.servers[0].answer(&path(2), Answer::Hang);
    case.servers[1].answer(&path(2), Answer::File(elf(2)));
    let client = case.client();
    let fetched = client.fetch(&[debug_info(1), debug_info(2)]);
    let error = fetched[0].clone().unwrap_err();
    assert_eq!(error.kind(), RemoteErrorKind::Server);
    assert!(fetched[1].is_ok());
    assert_eq!(case.servers[0].asked().len(), 1);
    assert!(client.problems()[0].contains("did not answer in time"), "{:?}", client.problems());
}

#[test]
fn a_server_that_stops_in_the_middle_is_given_up() {
    let mut case = Case::answering(Answer::Stall(elf(1)));
    case.options.timeout = Duration::from_secs(1);
    let (kind, error, problems) = case.fails();
    assert_eq!(kind, RemoteErrorKind::Server, "{error}");
    assert!(problems[0].contains("sent nothing for 1s"), "{problems:?}");
}

#[test]
fn a_file_that_breaks_off_is_not_kept() {
    let (kind, error, _) = Case::answering(Answer::Cut(elf(1), 100_000)).fails();
    assert_eq!(kind, RemoteErrorKind::WrongFile, "{error}");
    // Nothing but the file itself tells.
    let (kind, error, _) = Case::answering(Answer::CutUnnoticed(elf(1), 100_000)).fails();
    assert_eq!(kind, RemoteErrorKind::WrongFile, "{error}");
}

#[test]
fn another_file_than_was_asked_for_is_refused_and_said() {
    for bytes in [elf(2), b"<html>please log in</html>".to_vec(), Vec::new()] {
        let (kind, error, problems) = Case::answering(Answer::File(bytes)).fails();
        assert_eq!(kind, RemoteErrorKind::WrongFile, "{error}");
        assert!(problems[0].contains("another file than was asked for"), "{problems:?}");
    }
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let case = Case::answering(Answer::Redirect("/elsewhere".to_owned()));
    case.servers[0].answer("/elsewhere", Answer::File(elf(1)));
    assert!(case.client().fetch(&[debug_info(1)]).remove(0).is_ok());
    let case = Case::answering(Answer::Redirect(path(1)));
    let (kind, error, _) = case.fails();
    assert_eq!(kind, RemoteErrorKind::Server, "{error}");
    assert!(error.contains("more than 5 times"), "{error}");
    assert!(case.servers[0].asked().len() <= 6, "{:?}", case.servers[0].asked());
}

#[test]
fn a_file_that_is_too_large_is_not_taken_in() {
    let mut case = Case::answering(Answer::Huge(u64::MAX / 2));
    let (kind, error, _) = case.fails();
    assert_eq!(kind, RemoteErrorKind::Limit, "{error}");
    case.options.max_bytes = 1 << 20;
    case.servers[0].answer(&path(1), Answer::Endless);
    let (kind, error, _) = case.fails();
    assert_eq!(kind, RemoteErrorKind::Limit, "{error}");
    case.options.max_total_bytes = 1 << 19;
    let (kind, error, _) = case.fails();
    assert!(kind == RemoteErrorKind::Limit && error.contains("all files together"), "{error}");
}

#[test]
fn many_files_come_side_by_side_and_in_order() {
    let case = Case::new();
    (1..60).for_each(|n| case.servers[0].answer(&path(n), Answer::File(elf(n))));
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = std::sync::Arc::clone(&seen);
    let client = case.client().with_listener(move |counts| listener.lock().unwrap().push(*counts));
    // Each twice, to be asked for once.
    let wanted: Vec<_> = (1..60).chain(1..60).map(debug_info).collect();
    for (wanted, fetched) in wanted.iter().zip(client.fetch(&wanted)) {
        assert!(fetched.unwrap().ends_with(format!("{}/debuginfo", wanted.id)));
    }
    assert_eq!(case.servers[0].asked().len(), 59);
    let last = seen.lock().unwrap().iter().copied().max_by_key(|counts| counts.done).unwrap();
    assert_eq!((last.done, last.wanted), (59, 59));
}

#[test]
fn what_lies_in_the_cache_and_is_wrong_is_fetched_again() {
    let case = Case::answering(Answer::File(elf(1)));
    let kept = case.directory.write(format!("cache/{}/debuginfo", id(1)), elf(2));
    assert_eq!(case.client().fetch(&[debug_info(1)]), [Ok(kept.clone())]);
    assert_eq!(std::fs::read(kept).unwrap(), elf(1));
}

#[test]
fn a_cache_that_cannot_be_written_is_said() {
    let mut case = Case::answering(Answer::File(elf(1)));
    case.options.cache_directory = case.directory.write("file", "in the way");
    let client = case.client();
    let error = client.fetch(&[debug_info(1)]).remove(0).unwrap_err();
    assert_eq!(error.kind(), RemoteErrorKind::Io, "{error}");
    assert!(client.problems()[0].contains("cannot be kept below"), "{:?}", client.problems());
}

#[test]
fn only_build_ids_are_asked_for() {
    let case = Case::new();
    let uuid = RemoteFile { id: ImageId::Uuid([1; 16]), kind: RemoteKind::DebugInfo };
    assert!(case.client().fetch(&[uuid]).remove(0).is_err());
    assert!(case.servers.iter().all(|server| server.asked().is_empty()));
}

#[test]
fn without_a_server_there_is_no_client() {
    let none = Debuginfod::new(DebuginfodOptions::default());
    assert_eq!(none.unwrap_err(), DebuginfodError::NoServer);
    let mut options = DebuginfodOptions::default();
    options.urls = vec!["file:///etc".to_owned()];
    assert!(matches!(Debuginfod::new(options).unwrap_err(), DebuginfodError::BadServer(..)));
}
