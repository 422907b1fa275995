//! A saved stack: registers, mapped ranges and memory, divided by zero bytes.
#![no_main]

use backtrail_capture::{Limits, offline};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let registers = parts.next().unwrap_or_default();
    let maps = parts.next().unwrap_or_default();
    let memory = parts.next().unwrap_or_default();
    let memory = vec![("stack.data".to_owned(), memory.into())];
    let parts = offline::Parts { registers, maps, memory, arch: None };
    if let Ok(snapshot) = offline::read(parts, &Limits::default()) {
        assert!(snapshot.threads.iter().all(|thread| thread.registers.pc().is_some()));
        assert!(snapshot.mappings.iter().all(|mapping| !mapping.range.is_empty()));
    }
});
