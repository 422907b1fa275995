//! CrashProbe's 64 crashes: every application frame as the dSYMs say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use backtrail_core::{Arch, Avma, Bias, FrameAddress, Svma};
use backtrail_object::{Limits, Object, slices};
use backtrail_symbolize::{Step, Symbolizer};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

fn dsym(data: &[u8]) -> Object<'_> {
    let limits = Limits::default();
    slices(data, &limits).unwrap().first().expect("one slice").parse(&limits).unwrap()
}

/// The dSYM's bytes by architecture and image.
fn read_dsyms(directory: &Path) -> HashMap<(&'static str, &'static str), Vec<u8>> {
    let mut dsyms = HashMap::new();
    for (arch, prefix) in [("arm64", "arm64"), ("armv7", "armv7"), ("x86_64", "simulator")] {
        for (image, bundle) in
            [("CrashLibiOS", "CrashLibiOS.framework"), ("CrashProbeiOS", "CrashProbeiOS.app")]
        {
            let path = directory.join(format!("{prefix}-{bundle}.dSYM/Contents/Resources/DWARF/{image}"));
            dsyms.insert((arch, image), std::fs::read(&path).expect("a dSYM of the corpus"));
        }
    }
    dsyms
}

#[test]
fn every_application_frame_has_the_functions_lines_and_inlines_that_the_dsym_states() {
    let Some(directory) = backtrail_testkit::corpus_file("crashprobe") else { return };
    let expected: Value =
        serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap();
    let dsyms = read_dsyms(&directory.join("dSYMs"));
    let symbolizers: HashMap<_, _> = dsyms
        .iter()
        .map(|(key, data)| {
            let object = dsym(data);
            (*key, (object.image_base(), Symbolizer::new(vec![object]).unwrap()))
        })
        .collect();
    let mut frames = 0;
    for (crash, expected) in expected.as_object().unwrap() {
        let arch = crash.split('/').next().unwrap();
        for frame in expected["frames"].as_array().unwrap() {
            let key = symbolizers.keys().find(|(of, image)| *of == arch && frame["image"] == *image).unwrap();
            let (base, symbolizer) = &symbolizers[key];
            assert_eq!(answer(symbolizer, *base, arch, frame), frame["functions"], "{crash} {frame}");
            frames += 1;
        }
    }
    assert_eq!(frames, 459);
}

/// Looks a frame up and gives its functions in the form of the expectations.
fn answer(symbolizer: &Symbolizer<'_>, base: Svma, arch: &str, frame: &Value) -> Value {
    let offset = frame["image_offset"].as_str().unwrap().trim_start_matches("0x");
    // Not at its stated address: what is loaded elsewhere must not matter.
    let bias = Bias::between(Avma::new(0x7_0000_0000), Svma::new(0x1_0000_0000));
    let avma = bias.to_avma(base.checked_add(u64::from_str_radix(offset, 16).unwrap()).unwrap()).unwrap();
    let address = if frame["frame"] == 0 { FrameAddress::Exact(avma) } else { FrameAddress::Return(avma) };
    let lookup = bias.to_svma(address.lookup(Arch::from_name(arch).unwrap())).unwrap();
    let Step::Answer(answer) = symbolizer.lookup(lookup) else { panic!("a dSYM is all that is needed") };
    // One function of the library is written in assembly and has no debug info.
    let symbol = answer
        .symbol
        .map(|symbol| serde_json::json!({ "file": "", "line": 0, "linkage_name": symbol.linkage_name() }));
    let functions = answer.functions.iter().map(|function| {
        serde_json::json!({
            "file": function.file().unwrap().to_string(),
            "line": function.line().unwrap_or(0),
            "linkage_name": function.linkage_name(),
        })
    });
    assert!(answer.functions.last().is_none_or(|outermost| !outermost.is_inlined()));
    functions.chain(symbol).collect()
}
