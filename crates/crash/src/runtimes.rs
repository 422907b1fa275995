//! Runtimes that use faults for their own purposes, told by the image that their handler lies in.

use backtrail_capture::local::LoadedImage;
use backtrail_core::{AddrRange, Avma};
use backtrail_object::{GoTable, Object};
use backtrail_store::FileData;
use backtrail_sys::linux::crash::AskedFirst;

/// HotSpot and OpenJ9, .NET, Mono: null checks are faults, and a crash ends with `abort`.
const MANAGED: [&str; 4] = ["libjvm.so", "libj9prt", "libcoreclr.so", "libmono"];

/// Whether the handler at an address is asked about a fault before anything is written.
pub(crate) fn asked_first(handler: Avma, images: &[LoadedImage]) -> AskedFirst {
    let Some(image) = images.iter().find(|image| image.range.contains(handler)) else {
        return AskedFirst::No;
    };
    let name = image.path.file_name().unwrap_or_default().to_string_lossy();
    if MANAGED.iter().any(|known| name.starts_with(known)) {
        return AskedFirst::Always;
    }
    // Faults of Go's code are panics; of C's they end the process, before anything could be told.
    go_code(image).map_or(AskedFirst::No, AskedFirst::Within)
}

fn go_code(image: &LoadedImage) -> Option<AddrRange<Avma>> {
    let file = FileData::map(&image.path).ok()?;
    let object = Object::parse(&file).ok()?;
    let table = GoTable::read(&object).ok()??;
    let (start, end) = table.functions().fold((u64::MAX, 0), |(start, end), function| {
        let addresses = function.addresses();
        (addresses.start().get().min(start), addresses.end().get().max(end))
    });
    let at = |svma| image.bias.to_avma(backtrail_core::Svma::new(svma));
    (start < end).then(|| Some(AddrRange::new(at(start)?, at(end)?)))?
}
