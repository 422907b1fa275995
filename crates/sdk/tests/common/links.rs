//! Apps for Apple's systems that are linked here, with sources of our own, and what the linker says of them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "for tests")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use backtrail_core::Confidence;
use backtrail_object::{Limits, Object};
use backtrail_sdk::{Fingerprint, LearnOptions, LinkMap, MapOptions, learn, map};
use backtrail_testkit::TempDir;

use crate::common::{run, tool};

/// Where sources are compiled and linked.
pub(crate) struct Lab {
    directory: TempDir,
    clang: String,
    ar: String,
    linker: String,
    strip: String,
}

#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Judged {
    pub(crate) there: usize,
    pub(crate) found: usize,
    pub(crate) wrong: Vec<String>,
    /// Whether a version was named.
    pub(crate) is_named: bool,
}

impl Lab {
    /// Nothing where a tool is missing.
    pub(crate) fn new(name: &str) -> Option<Self> {
        Some(Self {
            directory: TempDir::new(name),
            clang: tool("clang")?,
            ar: tool("llvm-ar")?,
            linker: tool("ld64.lld")?,
            strip: tool("llvm-strip")?,
        })
    }

    pub(crate) fn object(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.o"))
    }

    /// Compiles Objective-C.
    pub(crate) fn compile(&self, name: &str, text: &str) {
        let source = self.directory.write(format!("{name}.m"), text);
        let mut command = Command::new(&self.clang);
        command.args(["-target", "arm64-apple-ios14.0", "-O1", "-w", "-c"]);
        run(command.arg(source).arg("-o").arg(self.object(name)));
    }

    pub(crate) fn learn(&self, members: &[&str]) -> Fingerprint {
        let archive = self.directory.join("libknown.a");
        let _ = std::fs::remove_file(&archive);
        let members = members.iter().map(|member| self.object(member));
        run(Command::new(&self.ar).arg("rcs").arg(&archive).args(members));
        let data = std::fs::read(archive).unwrap();
        learn(&[("libknown.a", &data)], &LearnOptions::new("Vendor", "1.0")).unwrap().fingerprint
    }

    /// An order file for the linker.
    pub(crate) fn order(&self, names: &[String]) -> String {
        self.directory.write("order", names.join("\n")).display().to_string()
    }

    /// Links these object files, and says how many functions of those that are called `vendor` there are and are found, and whose others are
    /// claimed.
    pub(crate) fn judge(&self, known: &Fingerprint, objects: &[&str], flags: &[&str]) -> Judged {
        let (app, link_map) = (self.directory.join("app"), self.directory.join("app.map"));
        let mut command = Command::new(&self.linker);
        command.args(["-arch", "arm64", "-platform_version", "ios", "14.0", "17.0"]);
        command.args(["-undefined", "dynamic_lookup"]).args(flags);
        command.args(objects.iter().map(|name| self.object(name)));
        run(command.arg("-map").arg(&link_map).arg("-o").arg(&app));
        run(Command::new(&self.strip).arg(&app));
        let data = std::fs::read(&app).unwrap();
        let object = Object::parse_with(&data, &Limits::default()).unwrap();
        let found = map(&object, std::slice::from_ref(known), &MapOptions::default()).unwrap();
        let text = std::fs::read(&link_map).unwrap();
        let truth = LinkMap::parse(&text).unwrap();
        let pieces: Vec<_> = truth.pieces().filter(|piece| !piece.range.is_empty()).collect();
        let mut judged = Judged { there: 0, found: 0, wrong: Vec::new(), is_named: false };
        for start in object.function_starts().unwrap() {
            // Padding is nobody's.
            let Some(piece) = pieces.iter().rev().find(|piece| piece.range.contains(start)) else { continue };
            // Folded code is of all that were folded.
            let is_ours =
                truth.pieces().any(|other| other.range.start() == start && other.file.contains("vendor"))
                    || piece.file.contains("vendor");
            let owned = found.ranges.iter().find(|owned| owned.range.contains(start));
            judged.there += usize::from(is_ours);
            judged.found += usize::from(is_ours && owned.is_some());
            if let Some(owned) = owned {
                judged.is_named |= owned.version.is_some();
                assert!(owned.how != "changed" || owned.confidence == Confidence::Likely);
                if !is_ours {
                    let line = format!("0x{:X}\t", start.get());
                    let text = String::from_utf8_lossy(&text);
                    let name = text.lines().find(|other| other.starts_with(&line)).unwrap_or_default();
                    let name = name.rsplit("] ").next().unwrap_or_default();
                    judged.wrong.push(format!("{name}: {}", owned.how));
                }
            }
        }
        judged
    }
}

/// A function's body that no other one has.
pub(crate) fn body(state: &str, a: u32) -> String {
    format!(
        "for (int i = 0; i < y; i++) x += {state}[(x ^ i) & 31] * {a};\n  x ^= y << {}; if (x > {a}) x -= {state}[y & 31] * x; {state}[x & 31] ^= y + {a};",
        a % 7 + 1
    )
}

/// A class whose methods have bodies of their own, then what is in the middle, and functions.
pub(crate) fn class(name: &str, superclass: Option<&str>, seed: u32, middle: &str, functions: u32) -> String {
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
