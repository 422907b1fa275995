//! Any bytes as an object file, as a container of some, and as a file that is read piece by piece.
#![no_main]

use backtrail_object::{Limits, Object, SharedCache, identify_each, slices};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let limits = Limits { decompressed_bytes: 1 << 20, ..Limits::default() };
    let _ = identify_each(&data, &limits);
    let _ = SharedCache::parse(data, &limits);
    for slice in slices(data, &limits).into_iter().flatten() {
        if let Ok(object) = slice.parse(&limits) {
            read_all(&object);
        }
    }
});

fn read_all(object: &Object<'_>) {
    for section in object.sections() {
        let size = object.section_size(section);
        if let Ok(data) = object.section_data(section) {
            assert_eq!(size.ok(), Some(data.len() as u64));
        }
        let _ = object.bytes_at(section.address.start(), 16);
    }
    let (symbols, _) = object.symbols_and_problems();
    let _ = symbols.iter().max_by(|a, b| a.preference().cmp(&b.preference()));
    assert!(symbols.iter().all(|symbol| symbol.section.is_none_or(|index| index < object.sections().len())));
    let _ = object.function_starts();
    let _ = object.load_commands();
    let _ = object.debug_map();
    let _ = (object.debug_link(), object.debug_alt_link());
    let _ = object.gnu_debugdata();
}
