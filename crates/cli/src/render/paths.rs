//! Source paths, shortened by what they all have in common.

use backtrail::{Frame, Report};

/// The folder that every source file of a report's frames lies below, with its closing separator.
///
/// Build machines' folders are long and say nothing; they are told once and left out of each line.
pub(crate) fn common_folder(report: &Report) -> Option<String> {
    let threads = report.process.threads.iter().flat_map(|thread| &thread.frames);
    let others = report.process.backtraces.iter().flat_map(|backtrace| &backtrace.frames);
    let mut files = threads.chain(others).flat_map(files);
    let mut common = folder(files.next()?);
    for file in files {
        while !file.starts_with(common) {
            common = folder(common.get(..common.len() - 1)?);
        }
        if common.is_empty() {
            return None;
        }
    }
    // A bare root tells nothing and would make absolute paths look relative.
    (common.matches(['/', '\\']).count() > 1).then(|| common.to_owned())
}

fn files(frame: &Frame) -> impl Iterator<Item = &str> {
    frame.functions.iter().filter_map(|function| function.file.as_deref())
}

/// The path up to and with its last separator.
fn folder(path: &str) -> &str {
    path.rfind(['/', '\\']).and_then(|end| path.get(..=end)).unwrap_or_default()
}

/// `file` below `folder`, or as it is.
pub(crate) fn below<'a>(file: &'a str, folder: Option<&str>) -> &'a str {
    folder.and_then(|folder| file.strip_prefix(folder)).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail::{Function, Thread};

    fn report(files: &[&str]) -> Report {
        let frame = |file: &&str| {
            let mut frame = Frame::new(0);
            frame.functions.push(Function { file: Some((*file).to_owned()), ..Function::default() });
            frame
        };
        let thread = Thread { frames: files.iter().map(frame).collect(), ..Thread::default() };
        Report { threads: vec![thread], ..Report::default() }
    }

    #[test]
    fn the_deepest_shared_folder_is_found() {
        let shared = |files: &[&str]| common_folder(&report(files));
        assert_eq!(shared(&["/b/app/src/a.c", "/b/app/inc/b.h"]).as_deref(), Some("/b/app/"));
        assert_eq!(shared(&["/b/app/a.c", "/b/apple/b.h"]).as_deref(), Some("/b/"));
        assert_eq!(shared(&["/a/x.c", "/b/y.c"]), None, "a bare root is no folder to speak of");
        assert_eq!(shared(&["x.c", "/b/y.c"]), None);
        assert_eq!(shared(&[]), None);
    }

    #[test]
    fn only_the_folder_itself_is_cut() {
        assert_eq!(below("/b/app/src/a.c", Some("/b/app/")), "src/a.c");
        assert_eq!(below("/c/a.c", Some("/b/app/")), "/c/a.c");
    }
}
