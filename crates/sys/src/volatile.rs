//! Bytes of this process that belong to somebody else: other threads write to them meanwhile, and they may lie between variables.

/// Copies bytes, not by `memcpy`, which compilers make of a copy of any size: AddressSanitizer has its own `memcpy`, which ends the process
/// at the bytes between a stack's variables.
///
/// # Safety
/// As many bytes as there is room for are mapped from `from` on.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, into: &mut [u8]) {
    const WORD: usize = size_of::<u64>();
    let (head, rest) = into.split_at_mut(from.align_offset(WORD).min(into.len()));
    let (words, tail) = rest.as_chunks_mut::<WORD>();
    let middle = from.wrapping_add(head.len());
    let end = middle.wrapping_add(words.len() * WORD);
    for (offset, word) in words.iter_mut().enumerate() {
        // SAFETY: the caller's promise; behind the head it is aligned.
        *word = unsafe { middle.cast::<u64>().add(offset).read_volatile() }.to_ne_bytes();
    }
    for (start, bytes) in [(from, head), (end, tail)] {
        for (offset, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *byte = unsafe { start.add(offset).read_volatile() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_whatever_the_alignment() {
        let bytes: Vec<u8> = (0..=80).collect();
        for from in 0..10 {
            for size in 0..64 {
                let mut copied = vec![0xff; size];
                // SAFETY: within the vector.
                unsafe { copy(bytes.as_ptr().add(from), &mut copied) };
                assert_eq!(copied, bytes[from..from + size]);
            }
        }
    }
}
