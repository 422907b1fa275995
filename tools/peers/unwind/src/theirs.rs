//! The others.

use crate::images::Mapped;
use crate::{State, Walker};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use std::ffi::{c_int, c_void};

pub struct Framehop {
    unwinder: UnwinderX86_64<&'static [u8]>,
    cache: CacheX86_64,
}

impl Framehop {
    pub fn new(images: &[Mapped]) -> Self {
        let mut unwinder = UnwinderX86_64::new();
        for image in images {
            let section = |name| image.section(name);
            let range =
                |found: Option<(u64, &'static [u8])>| found.map(|(at, data)| at..at + data.len() as u64);
            let info = ExplicitModuleSectionInfo {
                base_svma: image.base_svma,
                text_svma: range(section(".text")),
                text: section(".text").map(|(_, data)| data),
                got_svma: range(section(".got")),
                eh_frame_svma: range(section(".eh_frame")),
                eh_frame: section(".eh_frame").map(|(_, data)| data),
                eh_frame_hdr_svma: range(section(".eh_frame_hdr")),
                eh_frame_hdr: section(".eh_frame_hdr").map(|(_, data)| data),
                ..Default::default()
            };
            unwinder.add_module(Module::new(image.path.clone(), image.start..image.end, image.start, info));
        }
        Self { unwinder, cache: CacheX86_64::new() }
    }
}

impl Walker for Framehop {
    fn name(&self) -> &'static str {
        "framehop 0.16"
    }

    fn walk(&mut self, state: &State, forget: bool) -> usize {
        if forget {
            self.cache = CacheX86_64::new();
        }
        let registers = UnwindRegsX86_64::new(state.rip, state.rsp, state.rbp);
        // SAFETY: framehop reads the stack between where it is and its end, which lie in this thread's.
        let mut read = |address: u64| unsafe { Ok((address as *const u64).read_unaligned()) };
        let mut frames = self.unwinder.iter_frames(state.rip, registers, &mut self.cache, &mut read);
        let mut count = 0;
        while let Ok(Some(frame)) = frames.next() {
            count += usize::from(matches!(
                std::hint::black_box(frame),
                FrameAddress::InstructionPointer(_) | FrameAddress::ReturnAddress(_)
            ));
        }
        count
    }

    fn remembers(&self) -> bool {
        true
    }
}

pub struct Libunwind {
    call: Option<unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int>,
}

impl Libunwind {
    pub fn new() -> Self {
        // SAFETY: the names are C strings; the symbol has that type in every version of libunwind.
        let call = unsafe {
            let library = libc::dlopen(c"libunwind.so.8".as_ptr(), libc::RTLD_NOW);
            let symbol =
                if library.is_null() { library } else { libc::dlsym(library, c"unw_backtrace".as_ptr()) };
            (!symbol.is_null()).then(|| std::mem::transmute(symbol))
        };
        Self { call }
    }
}

impl Walker for Libunwind {
    fn name(&self) -> &'static str {
        if self.call.is_some() { "libunwind 1.6, unw_backtrace" } else { "libunwind (not installed)" }
    }

    fn walk(&mut self, _: &State, _: bool) -> usize {
        let mut room = [std::ptr::null_mut(); 256];
        // SAFETY: the count is that of the room.
        self.call.map_or(1, |call| usize::try_from(unsafe { call(room.as_mut_ptr(), 256) }).unwrap_or(1))
    }

    fn remembers(&self) -> bool {
        false
    }
}

pub struct Backtrace;

impl Walker for Backtrace {
    fn name(&self) -> &'static str {
        "backtrace 0.3, trace_unsynchronized"
    }

    fn walk(&mut self, _: &State, _: bool) -> usize {
        let mut count = 0;
        // SAFETY: this program has one thread.
        unsafe {
            backtrace::trace_unsynchronized(|frame| {
                count += usize::from(!std::hint::black_box(frame.ip()).is_null());
                true
            });
        }
        count
    }

    fn remembers(&self) -> bool {
        false
    }
}

pub struct Glibc;

impl Walker for Glibc {
    fn name(&self) -> &'static str {
        "glibc, backtrace()"
    }

    fn walk(&mut self, _: &State, _: bool) -> usize {
        let mut room = [std::ptr::null_mut(); 256];
        // SAFETY: the count is that of the room.
        usize::try_from(unsafe { libc::backtrace(room.as_mut_ptr(), 256) }).unwrap_or(1)
    }

    fn remembers(&self) -> bool {
        false
    }
}

pub struct FramePointers;

impl Walker for FramePointers {
    fn name(&self) -> &'static str {
        "loop over frame pointers (only what has them)"
    }

    fn walk(&mut self, state: &State, _: bool) -> usize {
        let mut fp = state.rbp;
        let mut count = 1;
        let mut last = state.rsp;
        while fp > last && fp - last < 1 << 20 && fp.is_multiple_of(8) {
            last = fp;
            // SAFETY: between the stack pointer and a megabyte above, which this stack has.
            fp = unsafe { (fp as *const u64).read() };
            count += 1;
        }
        count
    }

    fn remembers(&self) -> bool {
        false
    }
}
