//! Frames of what HotSpot's compilers generate for x86_64.
//!
//! `MachPrologNode` and `MacroAssembler::build_frame`: each method that has a frame touches the stack far below it first
//! (`mov %eax, -0x14000(%rsp)`), pushes the frame pointer and makes room once. What is in between does not move the stack
//! pointer. The frame pointer holds any value in the body. Endless loops have no return that could be followed.

use crate::code::Code;
use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

const SP: Register = Register(7);
const FP: Register = Register(6);

/// The touch of the stack, up to the upper byte of its distance, and `push %rbp` behind it.
const TOUCH: [u8; 3] = [0x89, 0x84, 0x24];
/// What takes the place of its first five bytes where the method is not to be entered any more: a jump.
const CLOSED: [u8; 1] = [0xe9];
const PROLOGUE: usize = 8;

/// See [`crate::arch::frame_of_generated`].
pub(crate) fn frame(code: &Code<'_>) -> Option<Row> {
    let behind = code.behind();
    let start = behind.windows(PROLOGUE).rposition(|bytes| {
        let is_touch = bytes.starts_with(&TOUCH) || bytes.starts_with(&CLOSED);
        is_touch && matches!(bytes, [.., 0xfe | 0xff, 0xff, 0x55])
    })?;
    let rest = behind.get(start + PROLOGUE..)?;
    // `mov %rsp, %rbp`, in either encoding: code that keeps a frame pointer.
    let rest =
        rest.strip_prefix(&[0x48, 0x8b, 0xec]).or(rest.strip_prefix(&[0x48, 0x89, 0xe5])).unwrap_or(rest);
    let size = match rest {
        [0x48, 0x83, 0xec, size, ..] => i32::from(size.cast_signed()),
        [0x48, 0x81, 0xec, a, b, c, d, ..] => i32::from_le_bytes([*a, *b, *c, *d]),
        _ => return None,
    };
    let cfa = size.checked_add(16).filter(|_| size >= 0 && size % 8 == 0)?;
    Some(Row::new(Cfa::RegisterOffset(SP, cfa), Rule::Offset(-8)).with(FP, Rule::Offset(-16)))
}

/// Whether a frame there is one that HotSpot will deoptimize: it has put the address of the method's handler in the place of
/// the return address, from where no way leads to the return. The handler pushes its own address and leaves by a jump:
/// `movabs $HERE, %r10; push %r10; jmp`, or `call` of what follows, `subq $5, (%rsp); jmp`.
pub(crate) fn is_deoptimized(code: &Code<'_>) -> bool {
    match code.ahead() {
        [0x49, 0xba, here @ .., _] if code.ahead().get(10..13) == Some(&[0x41, 0x52, 0xe9]) => {
            here.first_chunk().is_some_and(|here| u64::from_le_bytes(*here) == code.at.get())
        }
        [0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 5, 0xe9, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::Section;
    use backtrail_core::Svma;

    fn row(bytes: &[u8]) -> Option<Row> {
        let text = Section::new(Svma::new(0x1000), bytes);
        let at = Svma::new(0x1000 + bytes.len() as u64 - 1);
        frame(&Code { text, at, function: None, thumb: false, is_described: false })
    }

    #[test]
    fn handlers_of_deoptimization_are_known() {
        let is_handler = |bytes: &[u8]| {
            let text = Section::new(Svma::new(0x1000), bytes);
            is_deoptimized(&Code {
                text,
                at: Svma::new(0x1000),
                function: None,
                thumb: false,
                is_described: false,
            })
        };
        let mut handler = [0x49, 0xba, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x41, 0x52, 0xe9, 1, 2, 3, 4];
        assert!(is_handler(&handler));
        handler[3] = 0x11;
        assert!(!is_handler(&handler));
        assert!(is_handler(&[0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 5, 0xe9, 1, 2, 3, 4]));
        assert!(!is_handler(&[0xe8, 0, 0, 0, 0, 0x5d, 0xc3]) && !is_handler(&[0x49, 0xba]));
    }

    #[test]
    fn the_last_prologue_tells_the_frame() {
        let touch = [0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55];
        let before = [&touch[..], &[0x48, 0x83, 0xec, 0x40, 0xc3]].concat();
        let small = [&before[..], &touch, &[0x48, 0x83, 0xec, 0x20, 0xff, 0xd0, 0x90]].concat();
        let found = row(&small).unwrap();
        assert_eq!((found.cfa, found.rule(FP)), (Cfa::RegisterOffset(SP, 0x30), Rule::Offset(-16)));
        let large = [&touch[..], &[0x48, 0x8b, 0xec, 0x48, 0x81, 0xec, 0, 1, 0, 0, 0x90]].concat();
        assert_eq!(row(&large).unwrap().cfa, Cfa::RegisterOffset(SP, 0x110));
        // The same, once it is closed.
        let closed = [0xe9, 1, 2, 3, 4, 0xfe, 0xff, 0x55];
        let closed = [&small[..], &closed, &[0x48, 0x81, 0xec, 0xc0, 0, 0, 0, 0x90]].concat();
        assert_eq!(row(&closed).unwrap().cfa, Cfa::RegisterOffset(SP, 0xd0));
        assert_eq!(row(&[0x55, 0x48, 0x83, 0xec, 0x20, 0x90]), None);
        assert_eq!(row(&[&touch[..], &[0x90, 0x90, 0x90, 0x90, 0x90]].concat()), None);
    }
}
