//! Apps that are made to have others' code taken for the library's. Linked here, where clang and LLVM's linker are.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;
#[path = "common/links.rs"]
mod links;

use std::fmt::Write as _;

use backtrail_sdk::Fingerprint;
use links::{Lab, body, class};

const ROOT: &str = "__attribute__((objc_root_class)) @interface";

fn method(class: &str, number: u32) -> String {
    format!("-[{class} run{number}:with:]")
}

/// A library of four members in two versions. The second one differs in one function; `more` is put before the third member of it.
fn library(lab: &Lab, more: &str) -> Fingerprint {
    for number in 0..4 {
        let name = format!("Vend{number}");
        let old = class(&name, None, number + 1, "", 10);
        lab.compile(&format!("old{number}"), &old);
        let new = if number == 1 { old.replacen("x ^= y", "x ^= y * 77 + 5 - x", 1) } else { old };
        let new = if number == 2 { format!("{more}\n{new}") } else { new };
        lab.compile(&format!("vendor{number}"), &new);
    }
    lab.compile("main", &(class("App", None, 99, "", 10) + "int main(int c, char **v) { return App_3(c, c); }\n"));
    lab.learn(&["old0", "old1", "old2", "old3"])
}

const VEND1: &str = "int Vend1_2(int, int);\nint Vend1_3(int, int);\n__attribute__((objc_root_class)) @interface Vend1\n+ (int)make;\n@end\n";

#[test]
fn two_libraries_that_need_each_other() {
    let Some(lab) = Lab::new("sdk-mutual") else { return };
    let known = library(&lab, "");
    let user = class("Vend2", None, 3, "", 10).replace("return 3;", "return [Peer0 make];");
    lab.compile("vendor2", &format!("{ROOT} Peer0\n+ (int)make;\n@end\n{user}"));
    let next = format!("{ROOT} Peer1\n+ (int)make;\n@end\n");
    let peer = class("Peer0", None, 50, "", 10).replace("return 3;", "return Vend1_2(3, 4) + [Vend1 make] + [Peer1 make];");
    lab.compile("peer0", &format!("{VEND1}{next}{peer}"));
    let back = format!("{ROOT} Peer0\n+ (int)make;\n@end\n");
    let peer = class("Peer1", None, 51, "", 10).replace("return 3;", "return Vend1_2(3, 4) + [Peer0 make];");
    lab.compile("peer1", &format!("{VEND1}{back}{peer}"));
    for objects in [
        ["main", "vendor0", "vendor1", "vendor2", "vendor3", "peer0", "peer1"],
        ["main", "peer0", "peer1", "vendor0", "vendor1", "vendor2", "vendor3"],
        ["main", "vendor0", "vendor2", "peer0", "peer1", "vendor1", "vendor3"],
    ] {
        let judged = lab.judge(&known, &objects, &[]);
        println!("mutual {objects:?} {judged:?}");
    }
}

#[test]
fn a_category_of_the_app_that_is_merged() {
    let Some(lab) = Lab::new("sdk-category") else { return };
    let known = library(&lab, "");
    let mut text = VEND1.to_owned() + "static int ext_state[32];\n@implementation Vend1 (AppExtension)\n";
    for number in 0..4 {
        let _ = writeln!(text, "- (int)extra{number}:(int)x with:(int)y {{ {} return x; }}", body("ext_state", 1000 + number));
    }
    text += "@end\n";
    lab.compile("own", &text);
    for objects in [["main", "own", "vendor0", "vendor1", "vendor2", "vendor3"], ["main", "vendor0", "vendor1", "own", "vendor2", "vendor3"]] {
        for flags in [&["-objc_category_merging"][..], &[], &["-objc_relative_method_lists", "-objc_category_merging"]] {
            for set in ["vendor", "old"] {
                let objects: Vec<String> = objects.iter().map(|name| name.replace("vendor", set)).collect();
                if set == "old" { for n in 0..4 { std::fs::copy(lab.object(&format!("old{n}")), lab.object(&format!("vendor{n}"))).unwrap(); } }
                let objects: Vec<&str> = objects.iter().map(|s| if s.starts_with("old") { &*Box::leak(s.replace("old", "vendor").into_boxed_str()) } else { &**s }).collect();
                println!("category {set} {objects:?} {flags:?} {:?}", lab.judge(&known, &objects, flags));
            }
            library(&lab, "");
        }
    }
}

#[test]
fn an_order_file_puts_functions_between_methods() {
    let Some(lab) = Lab::new("sdk-orders") else { return };
    let new = format!("{ROOT} VendNew\n+ (int)make;\n@end\nint vend_new(int x) {{ return [VendNew make] + x; }}\n");
    let known = library(&lab, &new);
    let text = class("VendNew", None, 60, "", 10).replace("return 3;", "return Vend1_2(3, 4) + [Vend1 make];");
    lab.compile("vendor-new", &format!("{VEND1}{text}"));
    let objects = ["main", "vendor0", "vendor1", "vendor2", "vendor-new", "vendor3"];
    for class in ["Vend1", "VendNew", "Vend3"] {
        let mut names = Vec::new();
        for number in 0..10 {
            names.push(method(class, number));
            names.push(format!("_App_{number}"));
        }
        for number in 0..10 { names.push(format!("_{class}_{number}")); }
        // The rest as it lies.
        let order = lab.order(&names);
        for fold in [&[][..], &["--icf=all"]] {
            let flags = [&["-order_file", &*order][..], fold].concat();
            println!("order {class} {fold:?} {:?}", lab.judge(&known, &objects, &flags));
        }
        // All of the library, but app's functions between.
        let mut names = Vec::new();
        for c in ["Vend0", "Vend1", "Vend2", "VendNew", "Vend3"] {
            for number in 0..10 {
                names.push(method(c, number));
                if c == class { names.push(format!("_App_{number}")); }
            }
            names.push(format!("+[{c} make]"));
            for number in 0..10 { names.push(format!("_{c}_{number}")); }
        }
        let order = lab.order(&names);
        for fold in [&[][..], &["--icf=all"]] {
            let flags = [&["-order_file", &*order][..], fold].concat();
            println!("order all {class} {fold:?} {:?}", lab.judge(&known, &objects, &flags));
        }
    }
}

#[test]
fn a_function_that_became_somebody_elses() {
    let Some(lab) = Lab::new("sdk-moved") else { return };
    let helper = |name: &str, kind: &str| format!("{kind} int {name}(int x, int y) {{ for (int i = 0; i < y; i++) x = x * 31 + (x >> 7) + y; return x ^ 77; }}\n");
    let other = |name: &str| format!("int {name}(int x, int y) {{ for (int i = 0; i < y; i++) x = x * 37 + (x >> 9) + y * x; return x ^ 99; }}\n");
    let user = |name: &str| format!("int vend_user0(int x) {{ return {name}(x, 3) + {name}(x, 9); }}\nint vend_user1(int x) {{ return {name}(x, 7) * {name}(x + 1, 11); }}\n");
    // A helper of its own, a global one, and another library's instead.
    for (kind, is_exported) in [("__attribute__((noinline)) static", false), ("", true)] {
        library(&lab, "");
        let old = class("Vend2", None, 3, &(helper("vend_hash", kind) + &user("vend_hash")), 10);
        lab.compile("old2", &old);
        let name = if is_exported { "vend_hash" } else { "other_hash" };
        lab.compile("vendor2", &class("Vend2", None, 3, &(format!("int {name}(int, int);\n") + &user(name)), 10));
        let known = lab.learn(&["old0", "old1", "old2", "old3"]);
        lab.compile("other", &(class("Other", None, 80, &other(name), 10)));
        for objects in [
            ["main", "other", "vendor0", "vendor1", "vendor2", "vendor3"],
            ["main", "vendor0", "vendor1", "vendor2", "other", "vendor3"],
        ] {
            for flags in [&[][..], &["-no_exported_symbols"], &["-dead_strip", "-u", "_vend_user1"]] {
                println!("moved {kind} {flags:?} {:?}", lab.judge(&known, &objects, flags));
            }
        }
    }
}

#[test]
fn a_hook_that_the_app_has_for_it() {
    let Some(lab) = Lab::new("sdk-hook") else { return };
    let known = library(&lab, "");
    let user = class("Vend2", None, 3, "", 10).replace("return 3;", "return app_hook(3) + app_hook(4);");
    lab.compile("vendor2", &format!("int app_hook(int);\n{user}"));
    lab.compile("own", &format!("{VEND1}int app_hook(int x) {{ return Vend1_2(x, 3) + Vend1_3(x * 3, 4) + [Vend1 make]; }}\n"));
    for objects in [
        ["main", "own", "vendor0", "vendor1", "vendor2", "vendor3"],
        ["main", "vendor0", "vendor1", "own", "vendor2", "vendor3"],
    ] {
        for flags in [&[][..], &["-no_exported_symbols"]] {
            println!("hook {flags:?} {:?}", lab.judge(&known, &objects, flags));
        }
    }
}

#[test]
fn open_source_that_it_embeds() {
    let Some(lab) = Lab::new("sdk-embeds") else { return };
    for number in 0..30 {
        let name = format!("Open{number}");
        let next = format!("Open{}", (number + 1) % 30);
        let user = |text: String| format!("{ROOT} {next}\n+ (int)make;\n@end\n{}", text.replace("return 3;", &format!("return [{next} make];")));
        lab.compile(&format!("old{number}"), &user(class(&name, None, number + 200, "", 3)));
        lab.compile(&format!("open{number}"), &user(class(&name, None, number + 300, "", 3)));
    }
    for number in 30..36 {
        let text = class(&format!("Vend{number}"), None, number + 200, "", 3).replace("return 3;", "return [Open3 make];");
        lab.compile(&format!("old{number}"), &format!("{ROOT} Open3\n+ (int)make;\n@end\n{text}"));
    }
    lab.compile("main", &(class("App", None, 99, "", 10) + "int main(int c, char **v) { return App_3(c, c); }\n"));
    let known: Vec<String> = (0..36).map(|number| format!("old{number}")).collect();
    let known = lab.learn(&known.iter().map(|name| &**name).collect::<Vec<_>>());
    let mut objects: Vec<String> = (0..30).map(|number| format!("open{number}")).collect();
    objects.insert(0, "main".to_owned());
    let judged = lab.judge(&known, &objects.iter().map(|name| &**name).collect::<Vec<_>>(), &[]);
    println!("open {} {:?}", judged.wrong.len(), judged.wrong.get(..2));
}

#[test]
fn an_order_file_of_a_trace() {
    let Some(lab) = Lab::new("sdk-trace") else { return };
    // Small functions that are alike, so that only order tells them.
    let small = (0..12).map(|number| format!("int vend_get{number}(int *p) {{ return p[{}]; }}\nint vend_big{number}(int x, int y) {{ {} return x; }}\n", number % 3, body("Vend2_state", 5000 + number))).collect::<String>();
    library(&lab, "");
    let text = class("Vend2", None, 3, &small, 10);
    lab.compile("old2", &text);
    lab.compile("vendor2", &text.replacen("x ^= y", "x ^= y * 77 + 5 - x", 1));
    let known = lab.learn(&["old0", "old1", "old2", "old3"]);
    let objects = ["main", "vendor0", "vendor1", "vendor2", "vendor3"];
    let mut names = Vec::new();
    for number in 0..6 {
        names.extend([format!("_vend_big{}", number * 2), format!("_App_{number}"), format!("_vend_get{}", number * 2), format!("_vend_big{}", number * 2 + 1)]);
    }
    let order = lab.order(&names);
    println!("trace {:?}", lab.judge(&known, &objects, &["-order_file", &order]));
}
