//! Rows of machine code as programs print their own: glibc's `backtrace_symbols`, with what programs put beside it.
//!
//! `/usr/bin/redis-server *:6379(aeMain+0x34)[0xaaab792107a8]`, `./a.out(+0x1139) [0x55f1]`, `/lib/libc.so.6 [0x3ebf20f7e0]`,
//! Ruby's ` vm_dump.c:684` behind it, Mono's `0x7fb9e3ca5f89 - /usr/lib/libmono.so.1 : mono_handle_native_crash`.

use super::log::{SourcePlace, file_name, hex, named, place};
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::Frame;

/// Such a row.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct NativeRow<'t> {
    /// The file that the code lies in, as the program was called or as it lies on the disk.
    path: &'t str,
    name: &'t str,
    /// From the function's start; from that of the file, where there is no name.
    offset: Option<u64>,
    address: u64,
    place: Option<SourcePlace<'t>>,
}

impl<'t> NativeRow<'t> {
    pub(super) fn read(text: &'t str) -> Option<Self> {
        let text = text.trim();
        if let Some((address, rest)) = text.split_once(" - ").filter(|_| text.starts_with("0x")) {
            return Self::mono(address, rest);
        }
        let at = text.rfind("[0x")?;
        let (before, rest) = (text.get(..at)?.trim_end(), text.get(at + 1..)?);
        let (address, behind) = rest.split_once(']')?;
        let address = hex(address)?;
        let behind = behind.trim();
        let found = place(behind);
        // Nothing but a place may follow.
        if !behind.is_empty() && found.is_none() && behind != "(null):0" {
            return None;
        }
        let found = found.filter(|found| found.line > 0);
        let (path, inside) = match before.strip_suffix(')').and_then(|before| before.rsplit_once('(')) {
            Some((path, inside)) => (path, inside),
            None => (before, ""),
        };
        let (name, offset) = match inside.rsplit_once("+0x") {
            Some((name, digits)) => (name, Some(u64::from_str_radix(digits, 16).ok()?)),
            // Ruby writes an offset in the file, or an address, where it has no name.
            None if inside.starts_with("0x") => {
                ("", hex(inside)?.checked_sub(0).filter(|offset| *offset != address))
            }
            None => (inside, None),
        };
        // `/usr/bin/redis-server *:6379`: what a program made of its command line.
        // Other words may stand before it: a supervisor's name of the program.
        let words = || path.split(' ').filter(|word| !word.is_empty());
        let path =
            words().find(|word| word.starts_with(['/', '.'])).or_else(|| words().next()).unwrap_or_default();
        (!path.contains(['=', '"'])).then_some(Self { path, name, offset, address, place: found })
    }

    /// `0x7fb9e3ca5f89 - /usr/lib/libmono.so.1 : mono_handle_native_crash`.
    fn mono(address: &'t str, rest: &'t str) -> Option<Self> {
        let (path, name) = rest.rsplit_once(" : ").or_else(|| Some((rest.strip_suffix(" :")?, "")))?;
        let name = name.trim();
        let name = if name == "(null)" { "" } else { name };
        Some(Self { path: path.trim(), name, offset: None, address: hex(address)?, place: None })
    }

    /// Whether it names a file and a function or an offset, so that it is nothing else.
    pub(super) fn is_sure(&self) -> bool {
        let is_place = self.offset.is_some() || self.path.starts_with('/') && !self.name.is_empty();
        !self.path.is_empty() && is_place
    }

    /// The frame; addresses are those that calls return to.
    pub(super) fn frame(&self, index: u32) -> Frame {
        let mut frame = named(index, self.name, self.place);
        match &mut frame.reported {
            Some(symbol) if !self.name.is_empty() => symbol.offset = self.offset,
            _ => frame.reported = None,
        }
        frame.image_name = Some(file_name(self.path).to_owned()).filter(|name| !name.is_empty());
        frame.image_offset = self.offset.filter(|_| self.name.is_empty() && frame.image_name.is_some());
        frame.address = Some(FrameAddress::Return(Avma::new(self.address)));
        if self.path.contains('/') {
            frame.annotations.push(format!("from {}", self.path));
        }
        frame
    }
}

/// Whether a line is such a row. This is asked of every line of a text.
pub(super) fn is_likely(line: &str) -> bool {
    let may_be = line.ends_with(']') || line.starts_with("0x") && line.contains(" - /");
    may_be && NativeRow::read(line).is_some_and(|row| row.is_sure())
}

/// What the C library puts on the stack where the kernel called a signal's handler.
const SIGNAL_FRAMES: [&str; 3] = ["__restore_rt", "__kernel_rt_sigreturn", "<signal handler called>"];

/// Whether a signal was delivered at a frame, so that its caller's address is exact.
pub(super) fn is_signal(frame: &Frame) -> bool {
    frame.reported.as_ref().is_some_and(|symbol| SIGNAL_FRAMES.contains(&symbol.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_programs() {
        let read = |text: &str| {
            let row = NativeRow::read(text).unwrap();
            let frame = row.frame(0);
            let name = frame.reported.as_ref().map_or(String::new(), |symbol| symbol.name.clone());
            (frame.image_name.unwrap_or_default(), name, row.offset, row.address)
        };
        let row =
            |image: &str, name: &str, offset, address| (image.to_owned(), name.to_owned(), offset, address);
        for (text, expected) in [
            (
                "/usr/bin/redis-server *:6379(aeMain+0x34)[0xaaab79]",
                row("redis-server", "aeMain", Some(0x34), 0xaa_ab79),
            ),
            (
                "redis-server *:6379 [cluster](call+0x96)[0x42b126]",
                row("redis-server", "call", Some(0x96), 0x42_b126),
            ),
            ("./a.out(+0x1139) [0x55f1]", row("a.out", "", Some(0x1139), 0x55f1)),
            ("/lib/libpthread.so.0 [0x3ebf]", row("libpthread.so.0", "", None, 0x3ebf)),
            ("/lib/libc.so.6(0xa7868) [0x7ff868]", row("libc.so.6", "", Some(0xa_7868), 0x7f_f868)),
            ("/a/x.so(f+0x6a) [0x7ff] x.c:288", row("x.so", "f", Some(0x6a), 0x7ff)),
            ("0x7fb9 - /usr/lib/libmono.so.1 : mono_crash", row("libmono.so.1", "mono_crash", None, 0x7fb9)),
            ("[0x7a62f0842520]", row("", "", None, 0x7a62_f084_2520)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in ["see [0x12] for more", "a[0] = 1", "0x12 - 3", "x (y) [0x1] and so on"] {
            assert_eq!(NativeRow::read(text), None, "{text}");
        }
    }
}
