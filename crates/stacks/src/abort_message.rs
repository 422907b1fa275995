//! What glibc wrote down before it ended the process: `__abort_msg`, which points to the text of an assertion, of malloc or
//! of the stack protector. glibc, `assert/assert.c` and `sysdeps/posix/libc_fatal.c`.

use crate::loaded_image::Part;
use crate::process_memory::text_at;
use backtrail_core::{Arch, Avma, ReadMemory};

/// Bytes of a message; glibc's have hundreds.
const MAX_MESSAGE: usize = 4096;

/// The message and the image that has it; `None` where glibc is not among the images, or wrote nothing.
pub(crate) fn read(parts: &[Part], memory: &impl ReadMemory, arch: Arch) -> Option<(String, String)> {
    parts.iter().find_map(|part| {
        let name = part.name.rsplit('/').next().unwrap_or_default();
        // A program that has glibc inside would do too, but its symbols are many, and this is asked of every core.
        let is_libc = name.starts_with("libc.so") || name.starts_with("libc-2.");
        let message = is_libc.then(|| message_of(part, memory, arch)).flatten()?;
        Some((name.to_owned(), message))
    })
}

fn message_of(part: &Part, memory: &impl ReadMemory, arch: Arch) -> Option<String> {
    let object = part.file.as_ref()?.object()?;
    let symbols = object.symbols().ok()?;
    let symbol = symbols.iter().find(|symbol| symbol.name == "__abort_msg")?;
    let pointer = part.headers()?.bias.to_avma(symbol.address)?;
    let at = memory.read_pointer(pointer, arch.pointer_size()).ok().filter(|at| *at != 0)?;
    // A number that says how much was mapped for it, then the text and a zero.
    let (text, _) = text_at(memory, Avma::new(at).checked_add(4)?, MAX_MESSAGE)?;
    let text = text.trim_end().to_owned();
    (!text.is_empty()).then_some(text)
}
