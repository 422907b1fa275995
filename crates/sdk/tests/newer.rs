//! Another version of a library than the known one, with classes and functions that the known one does not have; and what others
//! have in their midst. Linked here, where clang and LLVM's linker are.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;
#[path = "common/links.rs"]
mod links;

use std::fmt::Write as _;

use backtrail_sdk::Fingerprint;
use links::{Judged, Lab, class};

const MEMBERS: u32 = 4;

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

struct Built {
    lab: Lab,
    known: Fingerprint,
}

impl Built {
    fn new() -> Option<Self> {
        let lab = Lab::new("sdk-newer")?;
        lab.compile("vendor-new", &new_member());
        lab.compile("other", &other());
        lab.compile("own", &own());
        lab.compile("main", &main_source());
        for number in 0..MEMBERS {
            lab.compile(&format!("old{number}"), &member(number, false));
            lab.compile(&format!("vendor{number}"), &member(number, true));
        }
        let known = lab.learn(&["old0", "old1", "old2", "old3"]);
        Some(Self { lab, known })
    }

    fn judge(&self, objects: &[&str], flags: &[&str]) -> Judged {
        let judged = self.lab.judge(&self.known, objects, flags);
        assert!(!judged.is_named, "another version is there: {objects:?} {flags:?}");
        judged
    }
}

const WHOLE: [&str; 7] = ["main", "other", "vendor0", "vendor1", "vendor-new", "vendor2", "vendor3"];

#[test]
fn what_is_new_in_another_version_is_the_librarys() {
    let Some(built) = Built::new() else { return };
    // Without the functions behind it, nothing shows that the class that uses nothing of the library lies inside of an object file.
    for (flags, missing) in [(&[][..], 0), (&["-dead_strip", "-u", "_Vend3_call"], 1)] {
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
        let order = built.lab.order(&names);
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
