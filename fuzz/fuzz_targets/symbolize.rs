//! Everything that a lookup reads, with a hostile file in every part: as the image, its companion, and each file that is
//! asked for.
#![no_main]

use backtrail_core::Svma;
use backtrail_object::Object;
use backtrail_symbolize::{Step, Symbolizer};
use libfuzzer_sys::fuzz_target;

/// Addresses to look up: where sections start, and steps through code.
fn addresses(object: &Object<'_>) -> Vec<Svma> {
    let mut addresses = vec![Svma::new(0), Svma::new(u64::MAX)];
    for section in object.sections().iter().filter(|section| section.is_loaded).take(16) {
        let steps = if section.is_code { 24 } else { 1 };
        let stride = (section.address.size() / steps).max(1);
        addresses.extend(
            (0..steps).filter_map(|step| section.address.start().checked_add(step.checked_mul(stride)?)),
        );
    }
    addresses
}

fuzz_target!(|data: &[u8]| {
    let Ok(object) = Object::parse(data) else { return };
    let addresses = addresses(&object);
    let Ok(symbolizer) = Symbolizer::new(vec![object]) else { return };
    for address in &addresses {
        // The first file that is asked for is there, and as hostile as the image; the others are missing.
        let mut file = Some(data);
        loop {
            match symbolizer.lookup(*address) {
                Step::Answer(answer) => {
                    for function in &answer.functions {
                        let owned = function.to_owned();
                        assert!(owned.line != Some(0) && owned.column != Some(0));
                    }
                    let symbol = answer.symbol.map(|symbol| symbol.to_owned());
                    assert_eq!(answer.reason.is_some(), answer.functions.is_empty() && symbol.is_none());
                    break;
                }
                Step::NeedFile(request) => symbolizer.provide(&request, file.take()),
            }
        }
    }
    symbolizer.prepare(&addresses);
    assert!(symbolizer.problems().len() < 1000);
});
