//! Every code address of the small binaries in `fixtures/symbolize`, as their expectations say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use backtrail_core::Svma;
use backtrail_object::Object;
use backtrail_symbolize::{Answer, FileRequest, FunctionRef, Step, Symbolizer};
use common::{Files, lookup, symbolizer};

/// One line of an expectation.
struct Expected {
    start: u64,
    end: u64,
    frames: Vec<String>,
}

fn expectations(text: &str) -> Vec<Expected> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let line = |line: &str| {
        let line = line.split_once(" # ").map_or(line, |(line, _)| line);
        let (range, frames) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once("..").unwrap();
        Expected {
            start: hex(start),
            end: hex(end),
            frames: frames.split(" | ").map(str::to_owned).collect(),
        }
    };
    text.lines().map(line).collect()
}

fn frame(function: &FunctionRef<'_>) -> String {
    let name = function.linkage_name().unwrap_or("??");
    let file = function.file().map_or("??".to_owned(), ToString::to_string);
    format!("{name} {file}:{}:{}", function.line().unwrap_or(0), function.column().unwrap_or(0))
}

fn frames(answer: &Answer<'_>) -> Vec<String> {
    assert_eq!(answer.reason.is_some(), answer.functions.is_empty() && answer.symbol.is_none());
    let inlined: Vec<_> = answer.functions.iter().map(FunctionRef::is_inlined).collect();
    assert!(inlined.iter().rev().skip(1).all(|inlined| *inlined), "{inlined:?}");
    match &answer.symbol {
        Some(symbol) => vec![format!("{} ??:0:0", symbol.linkage_name())],
        None if answer.functions.is_empty() => vec!["?? ??:0:0".to_owned()],
        None => answer.functions.iter().map(frame).collect(),
    }
}

/// The same, or a part of the function that the compiler split off: debug info has the function's name, the symbol
/// table a name with a suffix.
fn agrees(own: &[String], expected: &[String]) -> bool {
    let (Some((own_last, own)), Some((last, rest))) = (own.split_last(), expected.split_last()) else {
        return false;
    };
    // llvm-symbolizer states the name of an ELF file symbol here, which has no directory and often is no source file.
    let is_symbol = own_last.ends_with(" ??:0:0") && last.ends_with(":0:0");
    let ((own_name, own_place), (name, place)) =
        (own_last.split_once(' ').unwrap(), last.split_once(' ').unwrap());
    own == rest
        && (own_place == place || is_symbol)
        && (name == own_name || name.starts_with(&format!("{own_name}.")))
}

/// Looks up every address that is expected, and gives what differs.
fn differences(files: &Files, image: &str, expected: &str, deny: &[FileRequest]) -> String {
    let symbolizer = symbolizer(files, image);
    let mut differences = String::new();
    for expected in expectations(std::str::from_utf8(files.get(expected).unwrap()).unwrap()) {
        for address in expected.start..expected.end {
            let answer = lookup(files, image, &symbolizer, address, deny);
            let own = frames(&answer);
            if !agrees(&own, &expected.frames) {
                differences += &format!("{image} {address:#x}:\n  {own:?}\n  {:?}\n", expected.frames);
                break;
            }
        }
    }
    for problem in symbolizer.problems() {
        // That there is no package is no fault where the single files are there.
        if !problem.to_string().starts_with("package") {
            differences += &format!("{image}: {problem}\n");
        }
    }
    differences
}

#[test]
fn every_address_has_the_functions_lines_and_inlines_that_are_expected() {
    let files = Files::read();
    let mut names: Vec<_> = files.0.keys().filter_map(|name| name.strip_suffix(".expected")).collect();
    names.sort_unstable();
    assert!(names.len() > 40);
    let told: String =
        names.iter().map(|name| differences(&files, name, &format!("{name}.expected"), &[])).collect();
    assert!(told.is_empty(), "{told}");
}

#[test]
fn split_units_are_found_in_their_own_files_where_there_is_no_package() {
    let files = Files::read();
    for name in ["gcc-split-4.elf", "clang-split-4.elf", "clang-split-5.elf"] {
        let told = differences(&files, name, &format!("{name}.expected"), &[FileRequest::Dwp]);
        assert!(told.is_empty(), "{told}");
    }
}

#[test]
fn images_without_dsym_are_answered_from_their_object_files() {
    let mut files = Files::read();
    for arch in ["arm64", "x86_64"] {
        let name = format!("macho-{arch}.dwarf.expected");
        let expected = files.0.get_mut(&name).unwrap();
        // Bytes that align the next function: the object file's line table goes on there, dsymutil's does not.
        let lines = std::str::from_utf8(expected).unwrap().lines().filter(|line| !line.ends_with(" ??:0:0"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        assert!(lines.len() > 1000);
        *expected = lines.into_bytes();
        let told = differences(&files, &format!("macho-{arch}.dylib"), &name, &[]);
        assert!(told.is_empty(), "{told}");
    }
}

#[test]
fn a_dsym_and_its_binary_answer_together() {
    let files = Files::read();
    let parse = |name| Object::parse(files.get(name).unwrap()).unwrap();
    let both = Symbolizer::new(vec![parse("macho-arm64.dwarf"), parse("macho-arm64.dylib")]).unwrap();
    let text = std::str::from_utf8(files.get("macho-arm64.dwarf.expected").unwrap()).unwrap();
    for expected in expectations(text) {
        let answer = lookup(&files, "macho-arm64.dylib", &both, expected.start, &[]);
        assert_eq!(frames(&answer), expected.frames);
    }
    let mixed = Symbolizer::new(vec![parse("macho-arm64.dwarf"), parse("macho-x86_64.dylib")]);
    assert!(mixed.unwrap_err().to_string().starts_with("expected files of one build, found UUID "));
}

#[test]
fn in_object_files_an_address_means_the_first_section_that_has_it() {
    let files = Files::read();
    let (object, linked) = (symbolizer(&files, "clang-sections.o"), symbolizer(&files, "clang-sections.elf"));
    let symbols = Object::parse(files.get("clang-sections.elf").unwrap()).unwrap().symbols().unwrap();
    let parsed = Object::parse(files.get("clang-sections.o").unwrap()).unwrap();
    let code: Vec<_> =
        parsed.sections().iter().filter(|section| section.is_code && !section.address.is_empty()).collect();
    assert!(code.len() >= 4);
    let longest = code.iter().map(|section| section.address.size()).max().unwrap();
    for address in 0..longest {
        let owner = code.iter().find(|section| address < section.address.size()).unwrap();
        let function = owner.name.rsplit('.').next().unwrap();
        let start = symbols.iter().find(|symbol| symbol.name == function).unwrap().address;
        let own = lookup(&files, "", &object, address, &[]);
        let expected = lookup(&files, "", &linked, start.get() + address, &[]);
        assert_eq!(frames(&own), frames(&expected), "{address:#x}");
        assert_eq!(expected.functions.last().unwrap().linkage_name(), Some(function));
    }
}

/// What is left of the answer when a file is not to be had.
#[test]
fn missing_files_are_told_once_and_cost_no_more_than_what_they_hold() {
    let files = Files::read();
    let split = symbolizer(&files, "clang-split-5.elf");
    let text = std::str::from_utf8(files.get("clang-split-5.elf.expected").unwrap()).unwrap();
    let expected = expectations(text).into_iter().find(|expected| expected.frames.len() == 3).unwrap();
    for _ in 0..2 {
        let mut asked = 0;
        let answer = loop {
            match split.lookup(Svma::new(expected.start)) {
                Step::Answer(answer) => break answer,
                Step::NeedFile(request) => split.provide(&request, None),
            }
            asked += 1;
            assert!(asked < 3);
        };
        // The skeleton has the line table, the symbol table the function.
        let innermost = expected.frames[0].split_once(' ').unwrap().1;
        assert_eq!(frames(&answer), [format!("outer {innermost}")]);
    }
    let problems: Vec<_> = split.problems().iter().map(ToString::to_string).collect();
    // That there is no package is nothing to tell: then it is the single file that is missing.
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("clang-split-5-chain.dwo"), "{problems:?}");
}

#[test]
fn a_file_that_is_not_the_one_asked_for_counts_as_missing() {
    let files = Files::read();
    let dwz = symbolizer(&files, "dwz-one.elf");
    let start =
        expectations(std::str::from_utf8(files.get("dwz-one.elf.expected").unwrap()).unwrap())[0].start;
    let Step::NeedFile(request) = dwz.lookup(Svma::new(start)) else { panic!("needs dwz-common.debug") };
    assert!(
        matches!(&request, FileRequest::Supplementary { path, id: Some(_) } if path == "dwz-common.debug")
    );
    dwz.provide(&request, files.get("dwz-two.elf"));
    assert!(matches!(dwz.lookup(Svma::new(start)), Step::Answer(_)));
    assert!(dwz.problems()[0].to_string().starts_with("dwz-common.debug: expected build id "));
}
