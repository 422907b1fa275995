//! Another version of a library than the known one, with classes and functions that the known one does not have; and what others
//! have in their midst. Linked here, where clang and LLVM's linker are.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_core::Confidence;
use backtrail_object::{Limits, Object};
use backtrail_sdk::{Fingerprint, LearnOptions, LinkMap, MapOptions, learn, map};
use backtrail_testkit::TempDir;
use common::{run, tool};

const MEMBERS: u32 = 4;

/// A function's body that no other one has.
fn body(state: &str, a: u32) -> String {
    format!(
        "for (int i = 0; i < y; i++) x += {state}[(x ^ i) & 31] * {a};\n  x ^= y << {}; if (x > {a}) x -= {state}[y & 31] * x; {state}[x & 31] ^= y + {a};",
        a % 7 + 1
    )
}

/// A class whose methods have bodies of their own, then what is in the middle, and functions.
fn class(name: &str, superclass: Option<&str>, seed: u32, middle: &str, functions: u32) -> String {
    let root = if superclass.is_none() { "__attribute__((objc_root_class)) " } else { "" };
    let superclass = superclass.map(|superclass| format!(" : {superclass}")).unwrap_or_default();
    let mut text = format!(
        "static int {name}_state[32];\n{root}@interface {name}{superclass}\n+ (int)make;\n- (int)own:(int)x with:(int)y;\n@end\n@implementation {name}\n"
    );
    for number in 0..10 {
        let a = seed * 131 + number * 17 + 3;
        let _ = writeln!(
            text,
            "- (int)run{number}:(int)x with:(int)y {{\n  {} return x;\n}}",
            body(&format!("{name}_state"), a)
        );
    }
    text += "+ (int)make { return 3; }\n@end\n";
    text += middle;
    for number in 0..functions {
        let a = seed * 197 + number * 19 + 5;
        let _ = writeln!(
            text,
            "int {name}_{number}(int x, int y) {{\n  {} return x;\n}}",
            body(&format!("{name}_state"), a)
        );
    }
    text
}

/// A member of the library. The second version has in the first member a new class that names nothing of the library and a new function; its
/// third one uses a new member's class, and another library.
fn member(number: u32, is_second: bool) -> String {
    let root = "__attribute__((objc_root_class)) @interface";
    let mut head = "int Vend0_1(int, int);\n".to_owned();
    let mut middle = String::new();
    let mut make = "return 3;";
    match (number, is_second) {
        (0, true) => {
            let _ = writeln!(
                head,
                "{root} VendItem {{ int _a; int _b; }}\n+ (int)make;\n@end\n\
                 __attribute__((noinline)) static int fresh(int x) {{ return x * 5 + 1; }}"
            );
            middle = "@implementation VendItem\n+ (int)make { return 11; }\n- (int)a { return _a; }\n- (int)b { return _b; }\n@end\n"
                .to_owned();
            make = "return fresh(3) + [VendItem make];";
        }
        (2, true) => {
            let _ = writeln!(
                head,
                "{root} VendNew\n+ (int)make;\n@end\n{root} Other\n+ (int)make;\n@end\nint other_sum(int);"
            );
            make = "return [VendNew make] + [Other make] + other_sum(3);";
        }
        (3, _) => {
            let body = if is_second { "x * 77 + Vend0_1(x, 2)" } else { "x * 76 + 1" };
            let _ = writeln!(
                middle,
                "__attribute__((noinline)) static int changed(int x) {{ return {body}; }}\n\
                 int Vend3_call(int x) {{ return changed(x) + changed(x + 1); }}"
            );
        }
        _ => {}
    }
    let text = class(&format!("Vend{number}"), None, number + 1, &middle, 10);
    head + &text.replace("return 3;", make)
}

/// A member of its own, which the known version does not have: the library uses it, and it uses the library.
fn new_member() -> String {
    "int Vend1_2(int, int);\nint Vend1_3(int, int);\n".to_owned()
        + &class("VendNew", None, 70, "", 0)
            .replace("+ (int)make { return 3; }", "+ (int)make { return Vend1_2(3, 4) + Vend1_3(1, 2); }")
}

/// Another library that only this one uses. It knows nothing of it.
fn other() -> String {
    class("Other", None, 80, "int other_sum(int x) { return x * 9 + 4; }\n", 10)
}

/// The app's own code that uses the library: an heir, a caller.
fn own() -> String {
    let vend = "int Vend1_2(int, int);\nint Vend1_3(int, int);\n__attribute__((objc_root_class)) @interface Vend1\n+ (int)make;\n@end\n";
    vend.to_owned()
        + &class(
            "AppPart",
            Some("Vend1"),
            90,
            "int AppPart_use(int x) { return Vend1_2(x, x) + [Vend1 make]; }\n",
            10,
        )
}

fn main_source() -> String {
    class("App", None, 99, "", 10) + "int main(int c, char **v) { (void)v; return App_3(c, c); }\n"
}

struct Tools {
    clang: String,
    ar: String,
    linker: String,
    strip: String,
}

struct Built {
    tools: Tools,
    directory: TempDir,
    known: Fingerprint,
}

impl Built {
    fn new() -> Option<Self> {
        let tools = Tools {
            clang: tool("clang")?,
            ar: tool("llvm-ar")?,
            linker: tool("ld64.lld")?,
            strip: tool("llvm-strip")?,
        };
        let directory = TempDir::new("sdk-newer");
        let mut sources = vec![
            ("vendor-new".to_owned(), new_member()),
            ("other".to_owned(), other()),
            ("own".to_owned(), own()),
            ("main".to_owned(), main_source()),
        ];
        for number in 0..MEMBERS {
            sources.push((format!("old{number}"), member(number, false)));
            sources.push((format!("vendor{number}"), member(number, true)));
        }
        for (name, text) in sources {
            let source = directory.write(format!("{name}.m"), &text);
            let mut command = Command::new(&tools.clang);
            command.args(["-target", "arm64-apple-ios14.0", "-O1", "-w", "-c"]).arg(source);
            run(command.arg("-o").arg(directory.join(format!("{name}.o"))));
        }
        let library = directory.join("libold.a");
        let members = (0..MEMBERS).map(|number| directory.join(format!("old{number}.o")));
        run(Command::new(&tools.ar).arg("rcs").arg(&library).args(members));
        let data = std::fs::read(&library).unwrap();
        let known = learn(&[("libold.a", &data)], &LearnOptions::new("Vendor", "1.0")).unwrap().fingerprint;
        Some(Self { tools, directory, known })
    }

    fn object(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.o"))
    }

    /// Links these object files, and says how many functions of the second version there are and are found, and whose others are claimed.
    fn judge(&self, objects: &[&str], flags: &[&str]) -> Judged {
        let (app, link_map) = (self.directory.join("app"), self.directory.join("app.map"));
        let mut command = Command::new(&self.tools.linker);
        command.args([
            "-arch",
            "arm64",
            "-platform_version",
            "ios",
            "14.0",
            "17.0",
            "-undefined",
            "dynamic_lookup",
        ]);
        command.args(flags).args(objects.iter().map(|name| self.object(name)));
        run(command.arg("-map").arg(&link_map).arg("-o").arg(&app));
        run(Command::new(&self.tools.strip).arg(&app));
        judge(&app, &link_map, &self.known)
    }

    /// An order file for the linker.
    fn order(&self, names: &[String]) -> String {
        self.directory.write("order", names.join("\n")).display().to_string()
    }
}

#[derive(PartialEq, Eq, Debug)]
struct Judged {
    there: usize,
    found: usize,
    wrong: Vec<String>,
}

fn judge(app: &Path, link_map: &Path, known: &Fingerprint) -> Judged {
    let data = std::fs::read(app).unwrap();
    let object = Object::parse_with(&data, &Limits::default()).unwrap();
    let found = map(&object, std::slice::from_ref(known), &MapOptions::default()).unwrap();
    let text = std::fs::read(link_map).unwrap();
    let truth = LinkMap::parse(&text).unwrap();
    let pieces: Vec<_> = truth.pieces().filter(|piece| !piece.range.is_empty()).collect();
    let mut judged = Judged { there: 0, found: 0, wrong: Vec::new() };
    for start in object.function_starts().unwrap() {
        let piece = pieces.iter().rev().find(|piece| piece.range.contains(start)).unwrap();
        let is_ours = piece.file.contains("vendor");
        let owned = found.ranges.iter().find(|owned| owned.range.contains(start));
        judged.there += usize::from(is_ours);
        judged.found += usize::from(is_ours && owned.is_some());
        if let Some(owned) = owned {
            assert_eq!(owned.version, None, "another version is there");
            assert!(owned.how != "changed" || owned.confidence == Confidence::Likely);
            if !is_ours {
                judged.wrong.push(format!("{start} of {}: {}", piece.file, owned.how));
            }
        }
    }
    judged
}

const WHOLE: [&str; 7] = ["main", "other", "vendor0", "vendor1", "vendor-new", "vendor2", "vendor3"];

#[test]
fn what_is_new_in_another_version_is_the_librarys() {
    let Some(built) = Built::new() else { return };
    // Without the functions behind it, nothing shows that the class that uses nothing of the library lies inside of an object file.
    for (flags, missing) in [(&[][..], 0), (&["-dead_strip", "-u", "_Vend3_call"], 3)] {
        let judged = built.judge(&WHOLE, flags);
        assert_eq!(judged.wrong, [""; 0], "{flags:?}");
        assert!(judged.found + missing == judged.there && judged.there > 40, "{flags:?}: {judged:?}");
    }
}

#[test]
fn what_others_have_in_the_midst_of_it_is_not() {
    let Some(built) = Built::new() else { return };
    let cases = [
        // Another library's member, which only this one uses.
        ["main", "own", "vendor0", "vendor1", "other", "vendor2", "vendor-new", "vendor3"],
        ["main", "own", "vendor0", "vendor1", "vendor-new", "other", "vendor2", "vendor3"],
        // The app's own code, which uses the library.
        ["main", "other", "vendor0", "vendor1", "own", "vendor-new", "vendor2", "vendor3"],
        ["main", "vendor0", "own", "vendor1", "vendor-new", "vendor2", "other", "vendor3"],
    ];
    for objects in cases {
        for flags in [&[][..], &["--icf=all"], &["-no_exported_symbols"]] {
            let judged = built.judge(&objects, flags);
            assert_eq!(judged.wrong, [""; 0], "{objects:?} {flags:?}");
            assert!(judged.found * 10 >= judged.there * 7, "{objects:?} {flags:?}: {judged:?}");
        }
    }
}

#[test]
fn an_order_file_brings_nothing_in() {
    let Some(built) = Built::new() else { return };
    let method = |class: &str, number: u32| format!("-[{class} run{number}:with:]");
    // Functions of the app among those of one object file: every second one, one after some, after a run of them.
    let mut second = Vec::new();
    let mut runs = Vec::new();
    for number in 0..10 {
        second.extend([
            method("Vend1", number),
            method("AppPart", number),
            format!("_Vend1_{number}"),
            format!("_Other_{number}"),
        ]);
        runs.push(method("Vend1", number));
        if number % 5 == 4 {
            runs.extend((0..5).map(|other| format!("_App_{}", other + number - 4)));
            runs.extend((0..5).map(|other| method("Other", other + number - 4)));
        }
    }
    runs.extend((0..5).map(|number| format!("_Vend1_{number}")));
    runs.extend(["_AppPart_use".to_owned(), "_other_sum".to_owned()]);
    runs.extend((5..10).map(|number| format!("_Vend1_{number}")));
    for names in [second, runs] {
        let order = built.order(&names);
        let objects = ["main", "own", "other", "vendor0", "vendor1", "vendor-new", "vendor2", "vendor3"];
        for fold in [&[][..], &["--icf=all"]] {
            let flags = [&["-order_file", &*order][..], fold].concat();
            assert_eq!(built.judge(&objects, &flags).wrong, [""; 0], "{names:?}");
        }
    }
}

#[test]
fn nothing_is_new_where_the_library_is_not() {
    let Some(built) = Built::new() else { return };
    for objects in [&["main", "other"][..], &["main", "other", "own"], &["main", "other", "vendor-new"]] {
        let judged = built.judge(objects, &[]);
        assert_eq!((judged.found, judged.wrong), (0, Vec::new()), "{objects:?}");
    }
}
