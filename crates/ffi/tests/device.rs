//! The C functions for the device: compiled here, stamped, linked in several ways, run into crashes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use backtrail_testkit::TempDir;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn device() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("device")
}

/// The first of these programs that is here.
fn has(programs: &[&'static str]) -> Option<&'static str> {
    let works = |program: &&&'static str| Command::new(program).arg("--version").output().is_ok();
    let found = programs.iter().find(works).copied();
    if found.is_none() {
        eprintln!("skipped: no {programs:?} here");
    }
    found
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

const STRICT: [&str; 6] = ["-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fno-omit-frame-pointer"];

fn compile(compiler: &str, flags: &[&str], source: &Path, object: &Path) {
    run(Command::new(compiler).args(STRICT).args(flags).arg("-I").arg(device()).args([
        Path::new("-c"),
        source,
        Path::new("-o"),
        object,
    ]));
}

const APP: &str = "#include <stdlib.h>\n\
    void meter_watch(void); int meter_read(const volatile int *); int meter_call(int (*)(void));\n\
    static const int *volatile nowhere;\n\
    __attribute__((noinline)) static int own(void) { return *(const volatile int *)nowhere + 2; }\n\
    int main(int count, char **words) {\n\
      (void)count; meter_watch();\n\
      switch (atoi(words[1])) { case 0: return meter_read(nowhere) + 1; case 1: return meter_call(own) + 1; }\n\
      return own() + 1;\n}\n";

#[test]
fn a_crash_handler_tells_whose_code_it_was() {
    let (Some(compiler), Some(_)) = (has(&["cc"]), has(&["ar"])) else { return };
    let directory = TempDir::new("sdk-range");
    let app = directory.write("app.c", APP);
    for (way, compiling, linking) in [
        ("static", &["-fno-pie"][..], &["-static", "-no-pie"][..]),
        ("no-pie", &["-fno-pie"], &["-no-pie"]),
        ("pie", &["-fPIE", "-ffunction-sections"], &["-pie", "-Wl,--gc-sections"]),
    ] {
        let objects = ["example", "sdk_range"].map(|name| {
            let object = directory.join(format!("{name}-{way}.o"));
            compile(
                compiler,
                &[&["-std=c99"], compiling].concat(),
                &device().join(format!("{name}.c")),
                &object,
            );
            object
        });
        let library = directory.join(format!("libmeter-{way}.a"));
        run(Command::new("ar").arg("rcs").arg(&library).args(objects));
        let stamped = directory.join(format!("libmeter-{way}-stamped.a"));
        std::fs::write(&stamped, backtrail::sdk::stamp(&library, "meter", Some("1.0")).unwrap().bytes)
            .unwrap();
        let object = directory.join(format!("app-{way}.o"));
        // A leaf function may do without a frame otherwise, and the walk would miss its caller.
        compile(compiler, &[compiling, &["-O0"]].concat(), &app, &object);
        for (library, said) in [
            (&stamped, ["crashed in the SDK\n", "the SDK called\n", "not the SDK\n"]),
            (&library, ["not known\n"; 3]),
        ] {
            let program = directory.join(format!("app-{way}"));
            run(Command::new(compiler).args(linking).arg(&object).arg(library).arg("-o").arg(&program));
            for (case, said) in ["0", "1", "2"].into_iter().zip(said) {
                let output = Command::new(&program).arg(case).output().unwrap();
                assert_eq!(
                    String::from_utf8_lossy(&output.stdout),
                    said,
                    "{way} {case} {}",
                    library.display()
                );
                assert!(!output.status.success(), "it ends by the signal all the same");
            }
        }
    }
}

const EDGES: &str = "#include \"sdk_range.h\"\n#include <link.h>\n\
    __attribute__((noinline, used)) static int first(void) { return 1; }\n\
    static int slide_of(struct dl_phdr_info *info, size_t size, void *slide) {\n\
      (void)size; *(uintptr_t *)slide = info->dlpi_addr; return 1; }\n\
    int main(void) {\n\
      sdk_range range = sdk_range_at(0x1000, 0x2000, 0x50000), none = sdk_range_at(2, 2, 0);\n\
      uintptr_t frames[] = {0x52000, 0x51000, 0x52000, 0x52001, 0x50000};\n\
      if (!sdk_range_contains(&range, 0x51000) || sdk_range_contains(&range, 0x50fff)) return 1;\n\
      if (sdk_range_contains(&range, 0x52000) || !sdk_range_contains_return(&range, 0x52000)) return 2;\n\
      if (sdk_range_contains_return(&range, 0x51000) || sdk_range_contains(&range, 0x1000)) return 3;\n\
      if (sdk_range_count(&range, frames, 5) != 1 || sdk_range_first(&range, frames, 5) != 2) return 4;\n\
      if (sdk_range_count(&range, frames, 0) || sdk_range_first(&range, frames, 1) != SDK_RANGE_NONE) return 5;\n\
      if (sdk_range_is_known(&none) || sdk_range_contains(&none, 0) || sdk_range_contains(&none, 2)) return 6;\n\
      if (sdk_range_is_known(&(sdk_range){0, 0, 0}) || sdk_range_contains_return(&none, 0)) return 7;\n\
      range = SDK_RANGE_OF_MARKERS(first, (char *)(uintptr_t)first + 1);\n\
      if (!sdk_range_contains(&range, (uintptr_t)first) || sdk_range_contains(&range, (uintptr_t)first + 1)) return 8;\n\
      uintptr_t slide = 0; dl_iterate_phdr(slide_of, &slide);\n\
      range = sdk_range_at((uintptr_t)first - slide, (uintptr_t)first - slide + 1, slide);\n\
      return sdk_range_contains(&range, (uintptr_t)first) ? 0 : 9;\n}\n";

#[test]
fn ends_slides_and_return_addresses() {
    let Some(compiler) = has(&["cc"]) else { return };
    let directory = TempDir::new("sdk-range-edges");
    let source = directory.write("edges.c", EDGES);
    for how in ["-no-pie", "-pie"] {
        let program = directory.join("edges");
        let position = if how == "-pie" { "-fPIE" } else { "-fno-pie" };
        let mut command = Command::new(compiler);
        command.args(["-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", position, how]).arg("-I").arg(device());
        run(command.arg(&source).arg(device().join("sdk_range.c")).arg("-o").arg(&program));
        run(&mut Command::new(&program));
    }
}

/// What may be called in a signal handler calls nothing.
#[test]
fn the_functions_need_no_other() {
    let (Some(compiler), Some(_)) = (has(&["cc"]), has(&["nm"])) else { return };
    let directory = TempDir::new("sdk-range-alone");
    let object = directory.join("sdk_range.o");
    for (compiler, language) in [(compiler, "c"), ("c++", "c++")] {
        if language == "c++" && has(&["c++"]).is_none() {
            continue;
        }
        compile(compiler, &["-x", language], &device().join("sdk_range.c"), &object);
        let undefined = run(Command::new("nm").arg("-u").arg(&object)).stdout;
        assert_eq!(String::from_utf8_lossy(&undefined).trim(), "");
    }
}

/// Enough of Foundation for the example, made up.
const FOUNDATION: &str = "typedef signed char BOOL;\n#define YES ((BOOL)1)\n#define NO ((BOOL)0)\n\
    @interface NSObject\n@end\n\
    @interface NSNumber : NSObject\n@property(readonly) unsigned long unsignedLongValue;\n@end\n\
    typedef struct { unsigned long state; id __unsafe_unretained *itemsPtr; unsigned long *mutationsPtr; \
    unsigned long extra[5]; } NSFastEnumerationState;\n\
    @interface NSArray : NSObject\n- (unsigned long)countByEnumeratingWithState:(NSFastEnumerationState *)state \
    objects:(id __unsafe_unretained *)objects count:(unsigned long)count;\n@end\n\
    @interface NSException : NSObject\n@property(readonly) NSArray *callStackReturnAddresses;\n@end\n";

#[test]
fn for_apple_s_systems_it_compiles_and_links() {
    let (Some(clang), Some(linker), Some(ar)) = (
        has(&["clang-22", "clang-19", "clang"]),
        has(&["ld64.lld-22", "ld64.lld-19", "ld64.lld"]),
        has(&["llvm-ar-22", "llvm-ar-19", "llvm-ar"]),
    ) else {
        return;
    };
    let directory = TempDir::new("sdk-range-apple");
    directory.write("Foundation/Foundation.h", FOUNDATION);
    // The headers of C that the example needs are clang's own.
    for target in
        ["arm64-apple-ios14.0", "arm64e-apple-ios14.0", "x86_64-apple-macos12.0", "armv7-apple-ios10.0"]
    {
        let objects = ["example.m", "sdk_range.c"].map(|name| {
            let object = directory.join(format!("{name}.o"));
            let include = directory.path().display().to_string();
            compile(
                clang,
                &["-target", target, "-ffreestanding", "-I", &include, "-Wno-objc-root-class"],
                &device().join(name),
                &object,
            );
            object
        });
        // `ld64.lld` links neither armv7 nor arm64e here.
        if target.starts_with("armv7") || target.starts_with("arm64e") {
            continue;
        }
        let (library, app) = (directory.join("libmeter.a"), directory.join("app"));
        let _ = std::fs::remove_file(&library);
        run(Command::new(ar).arg("rcs").arg(&library).args(objects));
        let stamped = backtrail::sdk::stamp(&library, "meter", Some("1.0")).unwrap();
        std::fs::write(&library, stamped.bytes).unwrap();
        let (arch, platform) =
            if target.starts_with("arm64") { ("arm64", "ios") } else { ("x86_64", "macos") };
        run(Command::new(linker)
            .args(["-arch", arch, "-platform_version", platform, "14.0", "17.0", "-dylib", "-dead_strip"])
            .args(["-undefined", "dynamic_lookup", "-all_load"])
            .arg(&library)
            .arg("-o")
            .arg(&app));
        let mapped = backtrail::sdk::map(&app, &[], &backtrail::sdk::MapOptions::new()).unwrap();
        let owned: Vec<_> = mapped.iter().flat_map(|one| &one.owners.ranges).collect();
        assert_eq!(owned.len(), 1);
        assert_eq!(owned.first().and_then(|owned| owned.version.as_deref()), Some("1.0"));
    }
}
