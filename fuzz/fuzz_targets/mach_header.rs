//! Any bytes as a Mach-O header in memory, and as a thread's place with its dispatch queue.
#![no_main]

use backtrail_capture::mach::{QueueOffsets, queue_name, read_image};
use backtrail_core::{Avma, MemorySlice};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let start = Avma::new(0x1_0000_4000);
    let memory = MemorySlice::new(start, data);
    if let Some(image) = read_image(&memory, start) {
        assert!(image.sections.len() * 80 <= data.len());
        assert_eq!(image.bias.to_avma(image.text.start()), Some(start));
    }
    let label = data.get(..2).map_or(16, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    if let Some(offsets) = QueueOffsets::new([5, label, 8])
        && let Some(name) = queue_name(&memory, start, offsets)
    {
        assert!(!name.is_empty());
    }
});
