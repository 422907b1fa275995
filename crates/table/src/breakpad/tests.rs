//! What is written is read back; what is broken breaks nothing.

use super::*;
use crate::exchange::testing::{Random, addresses, model, program};
use crate::exchange::{PlainFrame, PlainFunction, PlainPath, Sink};
use backtrail_core::{Arch, ImageId, Svma};

fn written(functions: &[PlainFunction<'_>], base: u64) -> Vec<u8> {
    let id = ImageId::parse_build_id("6fc3066a42132cbd9626c8f469af71b862e801c6").unwrap();
    let module = Module::new(Some(&id), Arch::X86_64, false, "lib with space.so");
    let mut writer = BreakpadWriter::new(module, Svma::new(base));
    for number in 0..=4 {
        let name = format!("file{number}.c");
        assert_eq!(writer.file(PlainPath { directory: b"/src", name: name.as_bytes() }).unwrap(), number);
    }
    functions.iter().for_each(|function| writer.function(function).unwrap());
    let mut out = Vec::new();
    writer.finish(["STACK CFI INIT 1000 20 .cfa: $rsp 8 +\n"].into_iter(), &mut out).unwrap();
    out
}

fn frame(frame: &PlainFrame<'_>) -> (String, Option<String>, u32) {
    (String::from_utf8_lossy(frame.name).into_owned(), frame.file.map(|file| file.to_text()), frame.line)
}

#[test]
fn every_address_is_answered_as_it_was_written() {
    let mut random = Random::new(4);
    for round in 0..200 {
        let base = [0, 0x400, 0x1_0000_0000][round % 3];
        let functions = program(&mut random, base);
        let bytes = written(&functions, base);
        let file = Breakpad::open(&bytes).unwrap();
        assert_eq!(file.broken_lines(), 0);
        for address in addresses(&functions) {
            let wanted = model(&functions, address, &|file| format!("/src/file{file}.c"));
            let found = file.lookup(Svma::new(address.get() - base));
            let found = found.map(|answer| answer.frames.iter().map(frame).collect::<Vec<_>>());
            assert_eq!(found, wanted, "round {round} at {address}");
        }
    }
}

#[test]
fn what_was_read_is_written_again() {
    let mut random = Random::new(6);
    let functions = program(&mut random, 0);
    let bytes = written(&functions, 0);
    let file = Breakpad::open(&bytes).unwrap();
    let again = written(&file.functions().collect::<Vec<_>>(), 0);
    let second = Breakpad::open(&again).unwrap();
    for address in addresses(&functions) {
        assert_eq!(file.lookup(address), second.lookup(address));
    }
}

/// By hand, with the oddities of several writers.
const SYM: &str = "MODULE Linux x86_64 6A06C36F1342BD2C9626C8F469AF71B80 lib so\r
INFO CODE_ID 6FC3066A42132CBD9626C8F469AF71B862E801C6
INFO GENERATOR mozilla/dump_syms 2.3.9
FILE 0 /src/a b.c
INLINE_ORIGIN 3 inner(int, int)
FUNC m 1000 20 0 f(int, int)
INLINE 0 8 0 3 1004 4 1010 2
1000 4 7 0
1004 4 9 0
1010 2 -1 0
PUBLIC 900 0 before
PUBLIC m 1020 8 behind
this is nothing
FUNC 2000 10 0 \r
STACK CFI INIT 1000 20 .cfa: $rsp 8 +
STACK CFI 1004 .cfa: $rsp 16 +
PUBLIC 3000 0
";

#[test]
fn records_are_read_as_they_come() {
    let file = Breakpad::open(SYM.as_bytes()).unwrap();
    assert_eq!(file.module().name, "lib so");
    assert_eq!(file.module().id().unwrap().to_string(), "6fc3066a42132cbd9626c8f469af71b862e801c6");
    assert_eq!(file.module().arch(), Arch::X86_64);
    assert_eq!((file.broken_lines(), file.stack().len()), (1, 2));
    let frames = |address| {
        let answer = file.lookup(Svma::new(address));
        answer.map(|answer| answer.frames.iter().map(frame).collect::<Vec<_>>())
    };
    let at = |name: &str, line| (name.to_owned(), Some("/src/a b.c".to_owned()), line);
    let bare = |name: &str| Some(vec![(name.to_owned(), None, 0)]);
    assert_eq!(frames(0x1001), Some(vec![at("f(int, int)", 7)]));
    assert_eq!(frames(0x1005), Some(vec![at("inner(int, int)", 9), at("f(int, int)", 8)]));
    assert_eq!(frames(0x1010), Some(vec![at("inner(int, int)", 0), at("f(int, int)", 8)]));
    assert_eq!(frames(0x1008), bare("f(int, int)"));
    assert_eq!((frames(0x8ff), frames(0x900)), (None, bare("before")));
    assert_eq!(frames(0x1fff), bare("behind"));
    assert_eq!((frames(0x2001), frames(0x2010)), (bare(""), None));
}

#[test]
fn what_is_no_symbol_file_is_refused() {
    for text in ["", "MODULE", "MODULE Linux x86_64", "FILE 0 a.c\nMODULE Linux x86_64 0 a"] {
        assert!(Breakpad::open(text.as_bytes()).is_err(), "{text:?}");
    }
    let error = Breakpad::open(b"FUNC").unwrap_err().to_string();
    assert_eq!(error, "not a symbol table file, at byte 0x0: expected a MODULE record");
}

#[test]
fn broken_files_break_nothing() {
    let mut random = Random::new(12);
    let original = [SYM.as_bytes(), &written(&program(&mut random, 0), 0)].concat();
    for _ in 0..3000 {
        let mut bytes = original.clone();
        for _ in 0..=random.below(8) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = b"0123456789abcdef \n-mFUNCINLE"[random.below(28) as usize];
        }
        bytes.truncate(random.below(bytes.len() as u64) as usize);
        let Ok(file) = Breakpad::open(&bytes) else { continue };
        for function in file.functions() {
            for range in function.ranges.iter() {
                let _ = file.lookup(range.start());
            }
        }
    }
}

#[test]
fn the_forms_are_those_of_dump_syms() {
    let mut random = Random::new(8);
    let text = String::from_utf8(written(&program(&mut random, 0x1000), 0x1000)).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("MODULE Linux x86_64 6A06C36F1342BD2C9626C8F469AF71B80 lib with space.so"));
    assert_eq!(lines.next(), Some("INFO CODE_ID 6FC3066A42132CBD9626C8F469AF71B862E801C6"));
    assert!(lines.next().unwrap().starts_with("INFO GENERATOR backtrail "));
    assert_eq!(lines.next(), Some("FILE 0 /src/file0.c"));
    assert!(text.contains("\nINLINE_ORIGIN 0 "), "{text}");
}
