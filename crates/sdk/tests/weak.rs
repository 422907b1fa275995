//! Functions that a linker keeps one definition of, and functions that are too small to be told by their bodies: libraries and apps that are
//! linked here, where clang and LLVM's linker are.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use backtrail_object::{Limits, Object};
use backtrail_sdk::{LearnOptions, LinkMap, MapOptions, learn, map};
use backtrail_testkit::TempDir;
use common::{run, tool};

/// Classes without a home: their functions and tables are weak. `Shared` is the library's and the app's, `Own…` the library's alone.
fn header() -> String {
    let mut text = "inline void *operator new(unsigned long, void *place) { return place; }\n\
         struct Base { virtual int work(int x) = 0; virtual bool is_ready() { return true; } virtual ~Base() {} };\n\
         struct Shared : Base { int n; int work(int x) override { for (int i = 0; i < n; i++) x = x * 31 + i; return x ^ 77; } };\n"
        .to_owned();
    for number in 0..6 {
        let _ = writeln!(
            text,
            "struct Own{number} : Base {{ int n; int work(int x) override {{ for (int i = 0; i < n; i++) x = x * {} + i; return x; }}\n\
             bool is_ready() override {{ return false; }} }};",
            number + 3
        );
    }
    text
}

fn strong(name: &str, seed: u32, count: u32) -> String {
    let mut text = format!("static int {name}_state[32];\nextern \"C\" {{\n");
    for number in 0..count {
        let (a, b) = (seed * 131 + number * 17 + 3, number % 7 + 1);
        let _ = writeln!(
            text,
            "int {name}_{number}(int x, int y) {{ for (int i = 0; i < y; i++) x += {name}_state[(x ^ i) & 31] * {a};\n\
             x ^= y << {b}; if (x > {a}) x -= {name}_state[y & 31] * x; {name}_state[x & 31] ^= y + {a}; return x; }}\n\
             int {name}_size_{number}(void) {{ return {number}; }}"
        );
    }
    text + "}\n"
}

fn library() -> String {
    let mut text = header() + &strong("lib", 7, 24);
    text += "extern \"C\" Base *lib_shared(void *place) { return new (place) Shared; }\n";
    for number in 0..6 {
        let _ = writeln!(
            text,
            "extern \"C\" Base *lib_make_{number}(void *place) {{ return new (place) Own{number}; }}"
        );
    }
    text
}

fn app() -> String {
    header()
        + &strong("app", 99, 30)
        + "extern \"C\" Base *app_shared(void *place) { return new (place) Shared; }\n\
           int main(int c, char **v) { return app_3(c, c) + app_shared(v)->work(c); }\n"
}

/// All functions in another order than the library's.
fn order() -> String {
    let mut names = Vec::new();
    for number in (0..30).rev() {
        names.extend([format!("_app_{number}"), format!("_lib_size_{}", (number * 7) % 24)]);
        names.extend([format!("_lib_{}", (number * 5) % 24), format!("_app_size_{number}")]);
        let own = (number * 5) % 6;
        names.extend([format!("__ZN4Own{own}4workEi"), format!("__ZN4Own{own}8is_readyEv")]);
        names.extend([format!("__ZN4Own{own}D0Ev"), "__ZN6Shared4workEi".to_owned()]);
        names.push(format!("_lib_make_{own}"));
    }
    names.join("\n")
}

struct Built {
    directory: TempDir,
    app: PathBuf,
    archive: PathBuf,
    linker: String,
    strip: String,
}

fn build() -> Option<Built> {
    let (clang, ar) = (tool("clang")?, tool("llvm-ar")?);
    let (linker, strip) = (tool("ld64.lld")?, tool("llvm-strip")?);
    let directory = TempDir::new("sdk-weak");
    let compile = |name: &str, text: &str, flags: &[&str]| {
        let source = directory.write(format!("{name}.cpp"), text);
        let object = directory.join(format!("{name}.o"));
        let mut command = Command::new(&clang);
        command.args(["-target", "arm64-apple-ios14.0", "-O2", "-fno-exceptions", "-fno-rtti", "-w"]);
        run(command.args(flags).arg("-c").arg(source).arg("-o").arg(&object));
        object
    };
    let (app, member) = (compile("app", &app(), &[]), compile("lib", &library(), &["-fvisibility=hidden"]));
    let archive = directory.join("libvendor.a");
    run(Command::new(ar).arg("rcs").arg(&archive).arg(member));
    Some(Built { directory, app, archive, linker, strip })
}

/// Of the library's functions in the app, those that were not found; and those of others that were claimed.
fn judge(built: &Built, flags: &[&str]) -> (usize, Vec<u64>, Vec<u64>) {
    let (app, link_map) = (built.directory.join("linked"), built.directory.join("linked.map"));
    let mut command = Command::new(&built.linker);
    command.args(["-arch", "arm64", "-platform_version", "ios", "14.0", "17.0"]);
    command.args(["-undefined", "dynamic_lookup", "-map"]).arg(&link_map).args(flags);
    run(command.arg(&built.app).arg("-force_load").arg(&built.archive).arg("-o").arg(&app));
    run(Command::new(&built.strip).arg(&app));
    let data = std::fs::read(&built.archive).unwrap();
    let known = learn(&[("libvendor.a", &data)], &LearnOptions::new("Vendor", "1")).unwrap();
    let app = std::fs::read(app).unwrap();
    let object = Object::parse_with(&app, &Limits::default()).unwrap();
    let found = map(&object, &[known.fingerprint], &MapOptions::default()).unwrap();
    let truth = LinkMap::parse(&std::fs::read(link_map).unwrap()).unwrap();
    let pieces: Vec<_> = truth.pieces().filter(|piece| !piece.range.is_empty()).collect();
    let (mut there, mut missing, mut wrong) = (0, Vec::new(), Vec::new());
    for start in object.function_starts().unwrap() {
        let piece = pieces.iter().rev().find(|piece| piece.range.contains(start)).unwrap();
        let is_ours = piece.file.contains("libvendor");
        let is_found = found.ranges.iter().any(|owned| owned.range.contains(start));
        there += usize::from(is_ours);
        if is_ours && !is_found {
            missing.push(start.get());
        }
        if !is_ours && is_found {
            wrong.push(start.get());
        }
    }
    (there, missing, wrong)
}

#[test]
fn virtual_functions_are_the_librarys_where_nobody_else_mentions_them() {
    let Some(built) = build() else { return };
    for flags in [&[][..], &["-no_exported_symbols"]] {
        let (there, missing, wrong) = judge(&built, flags);
        // Two functions of each class at least, and all that is strong.
        assert!(there > 24 * 2 + 6 * 3, "{flags:?}: {there}");
        assert_eq!(missing, [0u64; 0], "{flags:?}");
        assert_eq!(wrong, [0u64; 0], "{flags:?}");
    }
}

/// What returns a number alone is told by no body where the app has the same, and no name: it is left out rather than guessed.
#[test]
fn small_functions_in_any_order_are_no_guess() {
    let Some(built) = build() else { return };
    let order = built.directory.write("order", order());
    let flags = ["-order_file", order.to_str().unwrap(), "-no_exported_symbols"];
    let (there, missing, wrong) = judge(&built, &flags);
    assert_eq!(wrong, [0u64; 0]);
    assert!((24..there - 24).contains(&missing.len()), "{} of {there}", missing.len());
}
