//! Calls everything there is to call.

use backtrail_object::{Limits, Object, SharedCache, identify, identify_each, slices};

/// Reads all that a file has; the result does not matter, only that there is one.
pub fn everything(data: &[u8], limits: &Limits) {
    let identities = identify(&data, limits);
    let each = identify_each(&data, limits);
    assert_eq!(identities.is_ok(), each.is_ok_and(|each| each.is_empty() || each.iter().any(Result::is_ok)));
    let _ = SharedCache::parse(data, limits);
    let Ok(slices) = slices(data, limits) else { return };
    for slice in slices {
        if let Ok(object) = slice.parse(limits) {
            all_of(&object);
        }
    }
}

fn all_of(object: &Object<'_>) {
    for section in object.sections() {
        let size = object.section_size(section);
        if let Ok(data) = object.section_data(section) {
            assert_eq!(size.ok(), Some(data.len() as u64));
        }
        let _ = object.bytes_at(section.address.start(), 16);
    }
    let (symbols, _) = object.symbols_and_problems();
    let best = symbols.iter().max_by(|a, b| a.preference().cmp(&b.preference()));
    assert_eq!(best.is_some(), !symbols.is_empty());
    assert!(symbols.iter().all(|symbol| symbol.section.is_none_or(|index| index < object.sections().len())));
    let _ = object.function_starts();
    let _ = object.load_commands();
    let _ = object.debug_map();
    let _ = (object.debug_link(), object.debug_alt_link());
    let _ = object.gnu_debugdata();
    assert!(
        object.section(".debug_info").is_some()
            || !object.has_debug_info()
            || object.section(".debug_info.dwo").is_some()
    );
}
