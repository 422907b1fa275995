//! Apps that are made to have others' code taken for the library's. Linked here, where clang and LLVM's linker are.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;
#[path = "common/links.rs"]
mod links;

use std::fmt::Write as _;

use backtrail_sdk::Fingerprint;
use links::{Lab, body, class};

const ROOT: &str = "__attribute__((objc_root_class)) @interface";
const VEND1: &str = "int Vend1_2(int, int);\nint Vend1_3(int, int);\n__attribute__((objc_root_class)) @interface Vend1\n+ (int)make;\n@end\n";
const MEMBERS: [&str; 4] = ["vendor0", "vendor1", "vendor2", "vendor3"];

fn method(class: &str, number: u32) -> String {
    format!("-[{class} run{number}:with:]")
}

/// A class that others may name.
fn declared(class: &str) -> String {
    format!("{ROOT} {class}\n+ (int)make;\n@end\n")
}

/// Another library of four members, of which the known version differs in one function.
fn library(lab: &Lab) -> Fingerprint {
    for number in 0..4 {
        let old = class(&format!("Vend{number}"), None, number + 1, "", 10);
        lab.compile(&format!("old{number}"), &old);
        let new = if number == 1 { old.replacen("x ^= y", "x ^= y * 77 + 5 - x", 1) } else { old };
        lab.compile(&format!("vendor{number}"), &new);
    }
    main(lab);
    known(lab)
}

fn main(lab: &Lab) {
    let text = class("App", None, 99, "", 10);
    lab.compile("main", &(text + "int main(int c, char **v) { (void)v; return App_3(c, c); }\n"));
}

fn known(lab: &Lab) -> Fingerprint {
    lab.learn(&["old0", "old1", "old2", "old3"])
}

/// The library with other object files before, in the midst of it, and behind.
fn orders(others: &[&'static str]) -> [Vec<&'static str>; 3] {
    let with = |at: usize| {
        let mut objects = MEMBERS.to_vec();
        objects.splice(at..at, others.iter().copied());
        objects.insert(0, "main");
        objects
    };
    [with(0), with(2), with(4)]
}

fn expect_none_wrong(lab: &Lab, known: &Fingerprint, objects: &[&str], flags: &[&str], least: usize) {
    let judged = lab.judge(known, objects, flags);
    assert_eq!(judged.wrong, [""; 0], "{objects:?} {flags:?}");
    assert!(judged.found >= least, "{objects:?} {flags:?}: {judged:?}");
}

#[test]
fn two_libraries_that_need_each_other() {
    let Some(lab) = Lab::new("sdk-mutual") else { return };
    let known = library(&lab);
    let user = class("Vend2", None, 3, "", 10).replace("return 3;", "return [Peer0 make];");
    lab.compile("vendor2", &(declared("Peer0") + &user));
    for (name, other) in [("Peer0", "Peer1"), ("Peer1", "Peer0")] {
        let uses = format!("return Vend1_2(3, 4) + [Vend1 make] + [{other} make];");
        let text =
            class(name, None, if name == "Peer0" { 50 } else { 51 }, "", 10).replace("return 3;", &uses);
        lab.compile(&name.to_lowercase(), &(VEND1.to_owned() + &declared(other) + &text));
    }
    for objects in orders(&["peer0", "peer1"]) {
        expect_none_wrong(&lab, &known, &objects, &[], 80);
    }
}

#[test]
fn a_category_of_the_app_that_the_linker_joined_with_a_class() {
    let Some(lab) = Lab::new("sdk-category") else { return };
    let known = library(&lab);
    let mut text = VEND1.to_owned() + "static int ext_state[32];\n@implementation Vend1 (AppExtension)\n";
    for number in 0..4 {
        let body = body("ext_state", 1000 + number);
        let _ = writeln!(text, "- (int)extra{number}:(int)x with:(int)y {{ {body} return x; }}");
    }
    lab.compile("own", &(text + "@end\n"));
    for is_known_version in [false, true] {
        if is_known_version {
            for number in 0..4 {
                let (old, new) =
                    (lab.object(&format!("old{number}")), lab.object(&format!("vendor{number}")));
                std::fs::copy(old, new).unwrap();
            }
        }
        for objects in orders(&["own"]) {
            for flags in [
                &["-objc_category_merging"][..],
                &["-objc_category_merging", "-objc_relative_method_lists"],
                &[],
            ] {
                expect_none_wrong(&lab, &known, &objects, flags, 80);
                assert_eq!(lab.judge(&known, &objects, flags).is_named, is_known_version);
            }
        }
    }
}

#[test]
fn an_order_file_that_puts_functions_between_methods() {
    let Some(lab) = Lab::new("sdk-orders") else { return };
    let known = library(&lab);
    let user = class("Vend2", None, 3, "", 10).replace("return 3;", "return [VendNew make];");
    lab.compile("vendor2", &(declared("VendNew") + &user));
    let new = class("VendNew", None, 60, "", 10).replace("return 3;", "return Vend1_2(3, 4) + [Vend1 make];");
    lab.compile("vendor-new", &(VEND1.to_owned() + &new));
    let objects = ["main", "vendor0", "vendor1", "vendor2", "vendor-new", "vendor3"];
    let classes = ["Vend0", "Vend1", "Vend2", "VendNew", "Vend3"];
    for mixed in ["Vend1", "VendNew", "Vend3"] {
        // All of the library, or this class alone.
        for listed in [&classes[..], &[mixed]] {
            let mut names = Vec::new();
            for class in listed {
                for number in 0..10 {
                    names.push(method(class, number));
                    names.extend((*class == mixed).then(|| format!("_App_{number}")));
                }
                names.push(format!("+[{class} make]"));
                names.extend((0..10).map(|number| format!("_{class}_{number}")));
            }
            let order = lab.order(&names);
            for fold in [&[][..], &["--icf=all"]] {
                let flags = [&["-order_file", &*order][..], fold].concat();
                expect_none_wrong(&lab, &known, &objects, &flags, 70);
            }
        }
    }
}

#[test]
fn a_function_that_another_version_left_to_somebody_else() {
    let Some(lab) = Lab::new("sdk-moved") else { return };
    let users = |name: &str| {
        format!(
            "int vend_user0(int x) {{ return {name}(x, 3) + {name}(x, 9); }}\n\
             int vend_user1(int x) {{ return {name}(x, 7) * {name}(x + 1, 11); }}\n"
        )
    };
    // A helper of the object file's own, a global one by the same name.
    for (kind, name) in [("__attribute__((noinline)) static", "other_hash"), ("", "vend_hash")] {
        library(&lab);
        let helper = format!(
            "{kind} int vend_hash(int x, int y) {{ for (int i = 0; i < y; i++) x = x * 31 + (x >> 7) + y; return x ^ 77; }}\n"
        );
        lab.compile("old2", &class("Vend2", None, 3, &(helper + &users("vend_hash")), 10));
        let now = format!("int {name}(int, int);\n{}", users(name));
        lab.compile("vendor2", &class("Vend2", None, 3, &now, 10));
        let known = known(&lab);
        let other = format!(
            "int {name}(int x, int y) {{ for (int i = 0; i < y; i++) x = x * 37 + (x >> 9) + y * x; return x ^ 99; }}\n"
        );
        lab.compile("other", &class("Other", None, 80, &other, 10));
        for objects in orders(&["other"]) {
            for flags in [&[][..], &["-no_exported_symbols"]] {
                expect_none_wrong(&lab, &known, &objects, flags, 80);
            }
            expect_none_wrong(&lab, &known, &objects, &["-dead_strip", "-u", "_vend_user1"], 40);
        }
    }
}

#[test]
fn a_function_of_the_app_that_only_the_library_calls() {
    let Some(lab) = Lab::new("sdk-hook") else { return };
    let known = library(&lab);
    let user = class("Vend2", None, 3, "", 10).replace("return 3;", "return app_hook(3) + app_hook(4);");
    lab.compile("vendor2", &format!("int app_hook(int);\n{user}"));
    let hook = "int app_hook(int x) { return Vend1_2(x, 3) + Vend1_3(x * 3, 4) + [Vend1 make]; }\n";
    lab.compile("own", &(VEND1.to_owned() + hook));
    for objects in orders(&["own"]) {
        for flags in [&[][..], &["-no_exported_symbols"]] {
            expect_none_wrong(&lab, &known, &objects, flags, 80);
        }
    }
}

#[test]
fn open_source_that_the_library_embeds_and_the_app_has_without_it() {
    const OPEN: u32 = 12;
    let Some(lab) = Lab::new("sdk-embeds") else { return };
    let open = |number: u32, seed: u32| {
        let next = format!("Open{}", (number + 1) % OPEN);
        let text = class(&format!("Open{number}"), None, number + seed, "", 3);
        declared(&next) + &text.replace("return 3;", &format!("return [{next} make];"))
    };
    let mut objects = vec!["main".to_owned()];
    let mut members = Vec::new();
    for number in 0..OPEN {
        lab.compile(&format!("old{number}"), &open(number, 200));
        lab.compile(&format!("open{number}"), &open(number, 300));
        objects.push(format!("open{number}"));
        members.push(format!("old{number}"));
    }
    for number in OPEN..OPEN + 3 {
        let text = class(&format!("Vend{number}"), None, number + 200, "", 3);
        let text = text.replace("return 3;", "return [Open3 make];");
        lab.compile(&format!("old{number}"), &(declared("Open3") + &text));
        members.push(format!("old{number}"));
    }
    main(&lab);
    let known = lab.learn(&members.iter().map(|name| &**name).collect::<Vec<_>>());
    let objects: Vec<&str> = objects.iter().map(|name| &**name).collect();
    expect_none_wrong(&lab, &known, &objects, &[], 0);
}
