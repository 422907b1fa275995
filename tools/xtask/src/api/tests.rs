use super::*;
use std::process::Command;

const INNER: &str = "
pub struct Hidden;
mod private {
    use super::Hidden;
    pub struct Report<T = u8> { pub kind: Option<T>, size: usize }
    impl<T: Clone> Report<T> {
        pub fn new(kind: T, path: impl AsRef<str>) -> Self { let _ = path; Self { kind: Some(kind), size: 1 } }
        pub fn size(&self) -> usize { self.size }
        pub fn hidden(&mut self, _: &Hidden) {}
        fn own(&self) {}
    }
    impl<T> Iterator for Report<T> { type Item = T; fn next(&mut self) -> Option<T> { None } }
    #[non_exhaustive]
    pub enum Kind { Crash, Other(u8, String), Named { line: u32 } }
    pub trait Progress: Send { fn tell(&self, done: u64) -> bool; fn end(&self) {} }
}
pub use private::{Kind, Progress, Report};
pub struct Raw(pub *const u8, u8);
";

const FACADE_SOURCE: &str = "
pub use inner::{Kind, Progress};
pub use inner::Raw as Pointer;
pub mod report { pub use inner::Report; pub const LIMIT: usize = 3; }
pub use std::collections::BTreeMap as Map;
pub fn read<'a, F>(data: &'a [u8], each: F) -> Result<&'a str, Box<dyn std::error::Error + Send>>
where F: FnMut(&report::Report) -> bool { drop((data, each)); Ok(\"\") }
";

/// The documentation of two crates, as rustdoc writes it; `None` where it writes another format.
fn documented(directory: &Path) -> Option<Crates> {
    let mut crates = Crates::default();
    for (name, source) in [("inner", INNER), ("facade", FACADE_SOURCE)] {
        let path = directory.join(format!("{name}.rs"));
        sh::write(&path, source).unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(["--edition=2024", "--crate-type=lib", "-L."]).args(arguments).arg(&path);
            sh::output(command.current_dir(directory).env("RUSTC_BOOTSTRAP", "1")).unwrap();
        };
        run(
            "rustdoc",
            &["-Zunstable-options", "--output-format=json", "--extern=inner"]
                [..if name == "inner" { 2 } else { 3 }],
        );
        run("rustc", &["--emit=metadata", "--extern=inner"][..if name == "inner" { 1 } else { 2 }]);
        crates.add(
            name.to_owned(),
            parse(&sh::read(&directory.join(format!("doc/{name}.json"))).unwrap()).unwrap()?,
        );
    }
    Some(crates)
}

#[test]
fn items_of_several_crates_are_named_as_users_find_them() {
    let directory = sh::root().join(format!("target/tools/api-test-{}", std::process::id()));
    sh::make_directory(&directory).unwrap();
    let crates = documented(&directory);
    std::fs::remove_dir_all(&directory).unwrap();
    let Some(crates) = crates else {
        eprintln!("not checked: this rustdoc writes another format than {FORMAT_VERSION}");
        return;
    };
    let text = items::text(&crates, "facade").unwrap();
    let expected = "\
        #[non_exhaustive] pub enum facade::Kind\n\
        fn facade::Progress::end(&self) { … }\n\
        fn facade::Progress::tell(&self, done: u64) -> bool\n\
        impl<T> Iterator for facade::report::Report<T> { Item = T }\n\
        impl !Send, !Sync for facade::Pointer\n\
        pub const facade::report::LIMIT: usize\n\
        pub facade::Kind::Crash\n\
        pub facade::Kind::Named {}\n\
        pub facade::Kind::Named::line: u32\n\
        pub facade::Kind::Other(u8, String)\n\
        pub facade::report::Report::kind: Option<T>\n\
        pub fn facade::read<'a, F>(data: &'a [u8], each: F) -> Result<&'a str, Box<dyn Error + Send>> where F: FnMut(&facade::report::Report) -> bool\n\
        pub fn facade::report::Report::hidden(&mut self, _: &inner::Hidden) (impl<T: Clone> facade::report::Report<T>)\n\
        pub fn facade::report::Report::new(kind: T, path: impl AsRef<str>) -> Self (impl<T: Clone> facade::report::Report<T>)\n\
        pub fn facade::report::Report::size(&self) -> usize (impl<T: Clone> facade::report::Report<T>)\n\
        pub mod facade::report\n\
        pub struct facade::Pointer(*const u8, _)\n\
        pub struct facade::report::Report<T = u8> { … }\n\
        pub trait facade::Progress: Send\n\
        pub use facade::Map = std::collections::BTreeMap\n\
        \n\
        In signatures, but not re-exported:\n\
        inner::Hidden\n";
    let (mut found, mut wanted): (Vec<_>, Vec<_>) = (text.lines().collect(), expected.lines().collect());
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "{text}");
}

#[test]
fn differences_name_both_sides() {
    assert_eq!(differences("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
}

#[test]
fn another_format_is_told_from_a_broken_file() {
    assert!(parse("{\"format_version\": 1}").unwrap().is_none());
    assert!(parse("{}").is_err());
}
