//! Files that compilers, linkers and archivers of this machine make; each test says so where one is missing.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;

use std::path::{Path, PathBuf};

use backtrail_core::{Arch, Svma};
use backtrail_object::{Format, Kind, Limits, Object, identify, slices};
use backtrail_testkit::TempDir;
use common::{llvm, run};

const SOURCE: &str = "
static int counter = 1;
__attribute__((noinline)) static int square(int x) { return x * x + counter; }
int shared = 7;
int work(int x) { for (int i = 0; i < x; i++) x += square(i); return x + shared; }
";

const ONLY_CODE: &str = "
__attribute__((noinline)) static int square(int x) { return x * x; }
int work(int x) { for (int i = 0; i < x; i++) x += square(i); return x; }
";

/// A directory with a compiled file; `None` where there is no compiler.
fn compile(source: &str, arguments: &[&str], name: &str) -> Option<(TempDir, PathBuf)> {
    let directory = TempDir::new("toolchain");
    let input = directory.write("input.c", source);
    let output = directory.join(name);
    run(llvm("clang").args(arguments).args(["-c", "-o"]).arg(&output).arg(input))?;
    Some((directory, output))
}

fn tool(name: &str, arguments: &[&str], paths: &[&Path]) -> Option<()> {
    run(llvm(name).args(arguments).args(paths)).map(|_| ())
}

#[test]
fn relocated_debug_info_is_what_the_linker_makes_of_it() {
    for target in ["x86_64", "i386", "aarch64", "armv7", "riscv64", "riscv32", "powerpc64le", "powerpc"] {
        let triple = format!("--target={target}-linux-gnu");
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let arguments = [&triple, version, "-O1", "-ffreestanding", "-fno-unwind-tables"];
            let Some((directory, object)) = compile(ONLY_CODE, &arguments, "a.o") else { return };
            let linked = directory.join("a.elf");
            // The same layout: code at zero, nothing merged or relaxed.
            let options = ["-O0", "--image-base=0", "-Ttext=0", "-e", "0", "--no-relax", "-o"];
            if tool("ld.lld", &options, &[&linked, &object]).is_none() {
                return;
            }
            let (ours, theirs) = (std::fs::read(&object).unwrap(), std::fs::read(&linked).unwrap());
            let (ours, theirs) = (Object::parse(&ours).unwrap(), Object::parse(&theirs).unwrap());
            for name in [
                ".debug_info",
                ".debug_line",
                ".debug_addr",
                ".debug_str_offsets",
                ".debug_ranges",
                ".debug_rnglists",
                ".debug_aranges",
            ] {
                let Some(section) = theirs.section(name) else { continue };
                let expected = theirs.section_data(section).unwrap();
                let section = ours.section(name).unwrap();
                assert!(
                    ours.relocated_section_data(section).unwrap() == expected,
                    "{target} {version} {name}"
                );
            }
        }
    }
}

#[test]
fn compressed_debug_info_reads_like_the_plain_one() {
    // Enough functions for compression to pay.
    let function = |index: usize| format!("int function_number_{index}(int x) {{ return x + {index}; }}\n");
    let source: String = (0..200).map(function).collect();
    let arguments = ["--target=x86_64-linux-gnu", "-g"];
    let Some((directory, plain_path)) = compile(&source, &arguments, "a.o") else { return };
    let plain = std::fs::read(&plain_path).unwrap();
    let plain = Object::parse(&plain).unwrap();
    for format in ["zlib", "zstd"] {
        let path = directory.join(format);
        let option = format!("--compress-debug-sections={format}");
        if tool("llvm-objcopy", &[&option], &[&plain_path, &path]).is_none() {
            return;
        }
        // LLVM 14 has no zstd.
        let Ok(data) = std::fs::read(path) else {
            eprintln!("not compared: this llvm-objcopy does not compress by {format}");
            continue;
        };
        let object = Object::parse(&data).unwrap();
        assert!(object.section(".debug_str").unwrap().is_compressed, "{format}");
        for name in [".debug_info", ".debug_str", ".debug_line"] {
            let expected = plain.section_data(plain.section(name).unwrap()).unwrap();
            assert!(
                object.section_data(object.section(name).unwrap()).unwrap() == expected,
                "{format} {name}"
            );
        }
    }
}

#[test]
fn mach_o_objects_of_every_architecture() {
    for (target, arch) in [
        ("arm64-apple-macos11", Arch::Arm64),
        ("arm64e-apple-ios14", Arch::Arm64e),
        ("x86_64-apple-macos10.15", Arch::X86_64),
        ("x86_64h-apple-macos10.15", Arch::X86_64h),
        ("i386-apple-macos10.13", Arch::X86),
        ("armv7-apple-ios9", Arch::Armv7),
        ("armv7k-apple-watchos4", Arch::Armv7k),
        ("arm64_32-apple-watchos7", Arch::Arm64_32),
    ] {
        let Some((_directory, path)) = compile(SOURCE, &["-target", target, "-g"], "a.o") else { return };
        let data = std::fs::read(path).unwrap();
        let object = Object::parse(&data).unwrap();
        assert_eq!((object.format(), object.kind(), object.arch()), (Format::MachO, Kind::Relocatable, arch));
        assert_eq!((object.problems(), object.image_base()), (&[][..], Svma::new(0)));
        assert!(object.has_debug_info(), "{target}");
        let symbols = object.symbols().unwrap();
        let work = symbols.iter().find(|symbol| symbol.name == "_work").unwrap();
        assert!(work.is_code && !symbols.iter().find(|symbol| symbol.name == "_shared").unwrap().is_code);
        assert_eq!(object.sections()[work.section.unwrap()].name, "__text");
    }
}

/// Links two objects and an archive to an image with a debug map.
fn link_mach_o() -> Option<(TempDir, PathBuf)> {
    let target = ["-target", "arm64-apple-macos11", "-g"];
    let (directory, one) = compile(SOURCE, &target, "one.o")?;
    let other = SOURCE.replace("work", "other").replace("shared", "common");
    let (_second_directory, two) = compile(&other, &target, "two.o")?;
    let archive = directory.join("libtwo.a");
    tool("llvm-ar", &["--format=darwin", "rcs"], &[&archive, &two])?;
    let image = directory.join("image");
    let options = ["-arch", "arm64", "-platform_version", "macos", "11", "11", "-dylib", "-all_load", "-o"];
    tool("ld64.lld", &options, &[&image, &one, &archive])?;
    image.is_file().then_some((directory, image))
}

#[test]
fn the_debug_map_is_the_one_that_dsymutil_reads() {
    let Some((_directory, image)) = link_mach_o() else { return };
    let data = std::fs::read(&image).unwrap();
    let map = Object::parse(&data).unwrap().debug_map();
    assert_eq!(map.iter().map(|entry| entry.member.as_deref()).collect::<Vec<_>>(), [None, Some("two.o")]);
    assert!(map[0].path.ends_with("one.o") && map[1].path.ends_with("libtwo.a"), "{map:?}");
    let Some(dump) = run(llvm("dsymutil").args(["--dump-debug-map", "-arch", "arm64"]).arg(&image)) else {
        return;
    };
    let dump = String::from_utf8(dump).unwrap();
    // - { sym: _work, objAddr: 0x0, binAddr: 0x328, size: 0x58 }
    let field = |line: &str, name: &str| {
        let rest = line.split_once(&format!("{name}: "))?.1;
        Some(rest.split([',', ' ']).next().unwrap().to_owned())
    };
    let hex = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut rows = 0;
    for line in dump.lines().filter(|line| line.contains("sym: ")) {
        let name = field(line, "sym").unwrap();
        let (address, size) = (hex(field(line, "binAddr").unwrap()), hex(field(line, "size").unwrap()));
        let is_function = |entry: &backtrail_object::DebugMapEntry<'_>| {
            let is_it = |function: &&backtrail_object::DebugMapFunction<'_>| function.name == name;
            entry.functions.iter().find(is_it).is_some_and(|f| f.address.get() == address && f.size == size)
        };
        let is_variable = |entry: &backtrail_object::DebugMapEntry<'_>| {
            let is_it = |variable: &&backtrail_object::DebugMapVariable<'_>| variable.name == name;
            entry.variables.iter().find(is_it).is_some_and(|v| v.address == Some(Svma::new(address)))
        };
        assert!(map.iter().any(|entry| is_function(entry) || is_variable(entry)), "{line}");
        rows += 1;
    }
    let ours: usize = map.iter().map(|entry| entry.functions.len() + entry.variables.len()).sum();
    assert_eq!(rows, ours, "{dump}");
}

#[test]
fn dsyms_have_the_identity_of_their_image() {
    let Some((directory, image)) = link_mach_o() else { return };
    let dsym = directory.join("image.dwarf");
    if tool("dsymutil", &["--flat", "-o"], &[&dsym, &image]).is_none() {
        return;
    }
    let (image, dsym) = (std::fs::read(image).unwrap(), std::fs::read(dsym).unwrap());
    let (image, dsym) = (Object::parse(&image).unwrap(), Object::parse(&dsym).unwrap());
    assert!(image.id().is_some() && image.id() == dsym.id());
    assert_eq!((image.kind(), dsym.kind()), (Kind::Library, Kind::DebugCompanion));
    assert_eq!((image.has_debug_info(), dsym.has_debug_info()), (false, true));
    assert_eq!(image.image_base(), dsym.image_base());
    assert!(!image.function_starts().unwrap().is_empty());
    let symbols = image.symbols().unwrap();
    assert_eq!(symbols.iter().filter(|symbol| symbol.name == "_work").count(), 1, "exported and listed");
}

#[test]
fn archives_of_every_format() {
    let target = ["-target", "arm64-apple-macos11"];
    let name = "an object with a long name.o";
    let Some((directory, object)) = compile(SOURCE, &target, name) else { return };
    let short = directory.join("short.o");
    std::fs::copy(&object, &short).unwrap();
    for format in ["gnu", "bsd", "darwin"] {
        let archive = directory.join(format!("lib{format}.a"));
        if tool("llvm-ar", &[&format!("--format={format}"), "rcs"], &[&archive, &object, &short]).is_none() {
            return;
        }
        let data = std::fs::read(&archive).unwrap();
        let names: Vec<_> = slices(&data, &Limits::default())
            .unwrap()
            .into_iter()
            .map(|slice| slice.member.unwrap())
            .collect();
        assert_eq!(names, [name, "short.o"], "{format}");
        assert_eq!(identify(&data, &Limits::default()).unwrap().len(), 2);
    }
    let thin = directory.join("libthin.a");
    if tool("llvm-ar", &["--thin", "rcs"], &[&thin, &short]).is_some() {
        let error = slices(&std::fs::read(thin).unwrap(), &Limits::default()).unwrap_err();
        assert!(error.to_string().contains("thin archive"), "{error}");
    }
}

#[test]
fn debug_files_belong_to_what_they_were_split_from() {
    let Some((directory, object)) = compile(SOURCE, &["--target=x86_64-linux-gnu", "-g", "-fPIC"], "a.o")
    else {
        return;
    };
    let image = directory.join("liba.so");
    if tool("ld.lld", &["-shared", "--build-id", "-o"], &[&image, &object]).is_none() {
        return;
    }
    let data = std::fs::read(&image).unwrap();
    let whole = Object::parse(&data).unwrap();
    let (debug, stripped) = (directory.join("liba.debug"), directory.join("liba.stripped"));
    let link = format!("--add-gnu-debuglink={}", debug.display());
    if tool("llvm-objcopy", &["--only-keep-debug"], &[&image, &debug]).is_none() {
        return;
    }
    tool("llvm-objcopy", &["--strip-all", &link], &[&image, &stripped]).unwrap();
    let mut debugs = vec![debug];
    let elfutils = directory.join("liba.elfutils");
    let mut strip = std::process::Command::new("eu-strip");
    if run(strip.arg("-f").arg(&elfutils).arg("-o").arg(directory.join("discarded")).arg(&image)).is_some() {
        debugs.push(elfutils);
    }
    for path in debugs {
        let data = std::fs::read(&path).unwrap();
        let debug = Object::parse(&data).unwrap();
        assert_eq!((debug.kind(), debug.id()), (Kind::DebugCompanion, whole.id()), "{}", path.display());
        assert_eq!(debug.image_base(), whole.image_base());
        assert!(debug.has_debug_info() && debug.section(".text").unwrap().is_no_bits());
        assert_eq!(debug.bytes_at(whole.section(".text").unwrap().address.start(), 4), None);
        assert_eq!(debug.symbols().unwrap().len(), whole.symbols().unwrap().len());
    }
    let data = std::fs::read(&stripped).unwrap();
    let stripped = Object::parse(&data).unwrap();
    assert_eq!((stripped.kind(), stripped.id()), (Kind::Library, whole.id()));
    let link = stripped.debug_link().unwrap();
    assert_eq!(link.name, "liba.debug");
    let mut crc = flate2::Crc::new();
    crc.update(&std::fs::read(directory.join("liba.debug")).unwrap());
    assert_eq!(link.crc32, crc.sum());
}

#[test]
fn symbols_in_gnu_debugdata_are_an_object_of_their_own() {
    let Some((directory, object)) = compile(SOURCE, &["--target=x86_64-linux-gnu"], "a.o") else { return };
    let packed = directory.join("a.o.xz");
    let Some(xz) = run(std::process::Command::new("xz").args(["-9", "--stdout"]).arg(&object)) else {
        return;
    };
    std::fs::write(&packed, xz).unwrap();
    let with = directory.join("with.o");
    let section = format!(".gnu_debugdata={}", packed.display());
    if tool("llvm-objcopy", &["--strip-all", "--add-section", &section], &[&object, &with]).is_none() {
        return;
    }
    let data = std::fs::read(&with).unwrap();
    let outer = Object::parse(&data).unwrap();
    assert!(outer.has_symbols() && outer.symbols().unwrap().is_empty());
    let inner = outer.gnu_debugdata().unwrap().unwrap();
    assert!(inner == std::fs::read(&object).unwrap());
    let symbols = Object::parse(&inner).unwrap().symbols().unwrap();
    assert!(symbols.iter().any(|symbol| symbol.name == "work" && symbol.size.is_some()), "{symbols:?}");
}
