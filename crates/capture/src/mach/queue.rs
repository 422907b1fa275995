//! Names of dispatch queues.

use backtrail_core::{Avma, ReadMemory};

/// Where a queue has its label: the beginning of libdispatch's `dispatch_queue_offsets`, which it exports for debuggers
/// (libdispatch, `private/layout_private.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueOffsets {
    label: u16,
    label_size: u16,
}

impl QueueOffsets {
    /// The offsets from the first words of the structure: its version, where the label is, and how large. Older versions
    /// than 4 keep the label elsewhere.
    pub fn new(words: [u16; 3]) -> Option<Self> {
        let [version, label, label_size] = words;
        (version >= 4 && label_size == 8).then_some(Self { label, label_size })
    }
}

/// Names longer than this are cut.
const MOST: usize = 128;
const WORD: u8 = 8;

/// The name of the queue that a thread serves: `place` is the kernel's `dispatch_qaddr` of it, where the thread keeps a
/// pointer to its queue. `None` where it serves none.
///
/// The queue may go away while it is looked at, unless its thread is suspended: `memory` must answer for addresses that are
/// no longer mapped.
pub fn queue_name<M: ReadMemory + ?Sized>(memory: &M, place: Avma, offsets: QueueOffsets) -> Option<String> {
    let pointer = |at: Avma| memory.read_pointer(at, WORD).ok().filter(|value| *value != 0).map(Avma::new);
    let queue = pointer(Some(place).filter(|place| place.get() != 0)?)?;
    debug_assert_eq!(offsets.label_size, 8);
    let label = pointer(queue.checked_add(offsets.label.into())?)?;
    let mut name = Vec::new();
    for index in 0..MOST as u64 {
        let mut byte = [0];
        // The name may end right before what cannot be read.
        memory.read(label.checked_add(index)?, &mut byte).ok()?;
        let [byte] = byte;
        if byte == 0 {
            break;
        }
        name.push(byte);
    }
    Some(String::from_utf8_lossy(&name).into_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers may")]
mod tests {
    use super::*;
    use backtrail_core::MemorySlice;

    const START: u64 = 0x1_0400_0000;

    /// A thread's place, a queue with its label behind 16 bytes, the label.
    fn memory(label: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(&(START + 16).to_le_bytes());
        bytes[32..40].copy_from_slice(&(START + 48).to_le_bytes());
        bytes.truncate(48);
        bytes.extend(label);
        bytes
    }

    #[test]
    fn the_label_is_found_and_broken_memory_is_no_name() {
        let offsets = QueueOffsets::new([5, 16, 8]).unwrap();
        let name = |bytes: &[u8]| {
            let memory = MemorySlice::new(Avma::new(START), bytes);
            queue_name(&memory, Avma::new(START), offsets)
        };
        let good = memory(b"com.example.work\0");
        assert_eq!(name(&good).as_deref(), Some("com.example.work"));
        for cut in 0..good.len() {
            assert_eq!(name(&good[..cut]), None, "{cut}");
        }
        assert_eq!(name(&memory(b"\0")), None);
        assert_eq!(name(&memory(&[b'a'; 500])).map(|name| name.len()), Some(MOST));
        assert_eq!(queue_name(&MemorySlice::new(Avma::new(0), &good), Avma::new(0), offsets), None);
        assert_eq!(QueueOffsets::new([3, 16, 8]), None);
        assert_eq!(QueueOffsets::new([4, 16, 64]), None);
    }
}
