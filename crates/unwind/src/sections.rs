//! What a module's unwinding is read from: bytes and where the file says they lie.

use crate::runtime::RuntimeTable;
use alloc::vec::Vec;
use backtrail_core::{AddrRange, Arch, Svma};

/// Bytes of the file with the address of the first.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Section<'d> {
    /// Where the file says that the bytes lie.
    pub start: Svma,
    /// The bytes.
    pub data: &'d [u8],
}

impl<'d> Section<'d> {
    /// `data`, stated at `start`.
    pub const fn new(start: Svma, data: &'d [u8]) -> Self {
        Self { start, data }
    }

    /// The addresses of the bytes.
    pub fn range(&self) -> AddrRange<Svma> {
        AddrRange::from_size(self.start, self.data.len() as u64)
    }

    /// The bytes from `at` to the section's end; `None` where `at` lies outside.
    #[inline]
    pub fn from(&self, at: Svma) -> Option<&'d [u8]> {
        let offset = usize::try_from(at.offset_from(self.start)?).ok()?;
        self.data.get(offset..).filter(|rest| !rest.is_empty())
    }

    /// The bytes from the section's start up to, without, `at`; `None` where `at` lies outside.
    #[inline]
    pub fn up_to(&self, at: Svma) -> Option<&'d [u8]> {
        self.data.get(..usize::try_from(at.offset_from(self.start)?).ok()?)
    }
}

impl core::fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes at {}", self.data.len(), self.start)
    }
}

/// One image's sections, decompressed. What is missing is left empty; nothing is required.
///
/// Addresses are the file's own (SVMA), pointers in the bytes not relocated. An image with a second set of tables
/// (a separate debug file's `.debug_frame`, the ELF inside `.gnu_debugdata`) gives them by
/// [`Module::add`](crate::Module::add).
#[derive(Clone, Debug, Default)]
pub struct Sections<'d> {
    /// The architecture; without one nothing can be unwound.
    pub arch: Option<Arch>,
    /// Whether the tables are a Mach-O's: Apple's `__eh_frame` for i386 numbers esp and ebp the other way round.
    pub is_mach_o: bool,
    /// Where RVAs count from: `__TEXT`'s `vmaddr`, ELF's first `LOAD` segment.
    pub image_base: Svma,
    /// `.eh_frame_hdr`, or what `PT_GNU_EH_FRAME` points to.
    pub eh_frame_hdr: Option<Section<'d>>,
    /// `.eh_frame`, `__eh_frame`. Where only `eh_frame_hdr` is known (no section headers): the bytes from where it
    /// points to, up to the segment's end.
    pub eh_frame: Option<Section<'d>>,
    /// `.debug_frame`, `__debug_frame`.
    pub debug_frame: Option<Section<'d>>,
    /// `.ARM.exidx`, or what `PT_ARM_EXIDX` points to.
    pub exidx: Option<Section<'d>>,
    /// `.ARM.extab`, or the whole segment that holds it.
    pub extab: Option<Section<'d>>,
    /// A language runtime's own table (Go's), for the functions that it knows asked before all others.
    pub runtime: Option<&'d dyn RuntimeTable>,
    /// `__TEXT,__unwind_info`.
    pub unwind_info: Option<Section<'d>>,
    /// Everything executable: sections where they are known, else segments. Return addresses that lie elsewhere
    /// are none.
    pub text: Vec<Section<'d>>,
    /// Where base-relative pointers count from, if any are found: `.got` (i386's `DW_EH_PE_datarel` outside of
    /// `.eh_frame_hdr`).
    pub got: Option<Svma>,
    /// Further bytes, for indirect pointers.
    pub data: Vec<Section<'d>>,
    /// The file's entry point: unwinding ends in the function there when no table says how to go on.
    pub entry: Option<Svma>,
    /// Where functions start, ascending, as far as the file tells it beside its unwind tables (`LC_FUNCTION_STARTS`,
    /// symbols); parts of functions that are not entered by calls left out. Compact unwind and exidx merge functions,
    /// and a prologue can only be read from its start.
    pub function_starts: Vec<Svma>,
    /// Functions known to be the first of a thread, for images whose tables do not say so.
    pub thread_starts: Vec<AddrRange<Svma>>,
}

impl<'d> Sections<'d> {
    /// The executable section at the address.
    pub fn text_at(&self, at: Svma) -> Option<&Section<'d>> {
        self.text.iter().find(|section| section.range().contains(at))
    }

    /// The bytes from `at` on, of whatever section has them.
    pub(crate) fn bytes_at(&self, at: Svma) -> Option<&'d [u8]> {
        let named =
            [self.eh_frame, self.debug_frame, self.exidx, self.extab, self.unwind_info, self.eh_frame_hdr];
        let all = self.text.iter().chain(&self.data).copied().chain(named.into_iter().flatten());
        all.into_iter().find_map(|section| section.from(at))
    }
}
