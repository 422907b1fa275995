//! This process's memory, read through the kernel.

use super::OsError;
use super::ffi;
use crate::volatile;
use backtrail_core::{AddrRange, Avma, ReadMemory, Unreadable};
use std::cell::RefCell;
use std::marker::PhantomData;

/// What is read at once: a page of the smallest size, so that it is there as a whole or not at all.
const PIECE: usize = 4096;

/// Memory of this process, read by the kernel (`mach_vm_read_overwrite`), which fails instead of faulting, and kept by the
/// piece: a stack's next frame is near the last one. A calling thread's own stack is read where it lies, as far as its
/// bounds are known.
///
/// # Signal safety
///
/// Neither allocates nor locks.
#[derive(Debug)]
pub struct OwnMemory {
    /// The own stack.
    inside: AddrRange<Avma>,
    piece: RefCell<Piece>,
    _stays: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Piece {
    start: u64,
    bytes: [u8; PIECE],
}

impl OwnMemory {
    /// Memory without a stack of one's own.
    pub fn without_stack() -> Self {
        Self::new(AddrRange::new(Avma::new(0), Avma::new(0)))
    }

    fn new(inside: AddrRange<Avma>) -> Self {
        let piece = RefCell::new(Piece { start: u64::MAX, bytes: [0; PIECE] });
        Self { inside, piece, _stays: PhantomData }
    }

    /// Copies memory from `from` on, as far as it is mapped and `into` has room; says how many bytes it were.
    pub fn copy_stack(&self, from: Avma, into: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = from.get().saturating_add(done as u64);
            let size = (PIECE - at as usize % PIECE).min(rest.len());
            let Some(room) = rest.get_mut(..size) else { break };
            if !read(at, room) {
                break;
            }
            done += size;
        }
        done
    }

    fn from_piece(&self, address: u64, into: &mut [u8]) -> bool {
        let Ok(mut piece) = self.piece.try_borrow_mut() else { return false };
        let start = address - address % PIECE as u64;
        if address % PIECE as u64 + into.len() as u64 > PIECE as u64 {
            return false;
        }
        if piece.start != start {
            piece.start = u64::MAX;
            if !read(start, &mut piece.bytes) {
                return false;
            }
            piece.start = start;
        }
        let offset = (address - start) as usize;
        let Some(bytes) = piece.bytes.get(offset..offset + into.len()) else { return false };
        into.copy_from_slice(bytes);
        true
    }
}

impl ReadMemory for OwnMemory {
    #[inline]
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        let end = address.get().saturating_add(buf.len() as u64);
        if self.inside.contains(address) && end <= self.inside.end().get() {
            // SAFETY: between the stack pointer and the end of the thread's own stack.
            unsafe { volatile::copy(address.get() as *const u8, buf) };
            return Ok(());
        }
        let done = self.from_piece(address.get(), buf) || read(address.get(), buf);
        done.then_some(()).ok_or(Unreadable { address })
    }
}

/// All of the bytes or none.
fn read(address: u64, into: &mut [u8]) -> bool {
    let mut size = 0;
    // SAFETY: the kernel checks the source; the room is as large as is said.
    let answer = unsafe {
        ffi::mach_vm_read_overwrite(
            ffi::task(),
            address,
            into.len() as u64,
            into.as_mut_ptr() as u64,
            &raw mut size,
        )
    };
    answer == ffi::SUCCESS && size == into.len() as u64
}

/// The bounds of the calling thread's stack, which stays mapped for as long as the thread lives.
#[derive(Debug)]
pub struct OwnStack {
    range: AddrRange<Avma>,
    _stays: PhantomData<*const ()>,
}

impl OwnStack {
    /// Asks the C library.
    ///
    /// # Errors
    /// Never here; the signature is that of other systems.
    pub fn find() -> Result<Self, OsError> {
        // SAFETY: the calling thread's own.
        let (end, size) = unsafe {
            let this = libc::pthread_self();
            (ffi::pthread_get_stackaddr_np(this) as u64, ffi::pthread_get_stacksize_np(this) as u64)
        };
        let range = AddrRange::new(Avma::new(end.saturating_sub(size)), Avma::new(end));
        Ok(Self { range, _stays: PhantomData })
    }

    /// Memory as seen from a place where the stack pointer is this.
    ///
    /// # Signal safety
    ///
    /// Safe.
    #[inline]
    pub fn memory(&self, stack_pointer: Avma) -> OwnMemory {
        if !self.range.contains(stack_pointer) {
            return OwnMemory::without_stack();
        }
        OwnMemory::new(AddrRange::new(stack_pointer, self.range.end()))
    }
}
