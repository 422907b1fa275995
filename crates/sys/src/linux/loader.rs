//! What the dynamic loader has mapped.

use backtrail_core::{AddrRange, Avma, Bias, Svma};
use std::ffi::{CStr, c_int, c_void};

/// How many images the loader has mapped and unmapped so far: while both stay the same, so does the list. (musl counts
/// no unmapping, since it never does.)
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Images that were mapped.
    pub added: u64,
    /// Images that were unmapped.
    pub removed: u64,
}

/// One image, as the loader lists it.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<'l> {
    /// The file's name as the loader has it; the program's own is empty, or anything.
    pub name: &'l CStr,
    /// From the file's addresses to the process's.
    pub bias: Bias,
    headers: &'l [ProgramHeader],
}

#[cfg(target_pointer_width = "64")]
type ProgramHeader = libc::Elf64_Phdr;
#[cfg(target_pointer_width = "32")]
type ProgramHeader = libc::Elf32_Phdr;

/// A part of an image that is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Where the file says that it lies.
    pub address: AddrRange<Svma>,
    /// Whether it holds code.
    pub is_executable: bool,
}

impl Loaded<'_> {
    /// The parts that are mapped, in the file's order.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let load = self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        load.map(|header| Segment { address: range(header), is_executable: header.p_flags & libc::PF_X != 0 })
    }

    /// Where notes lie, among them the build id.
    pub fn notes(&self) -> impl Iterator<Item = AddrRange<Svma>> + '_ {
        self.headers.iter().filter(|header| header.p_type == libc::PT_NOTE).map(range)
    }
}

#[allow(clippy::useless_conversion, reason = "addresses have 32 bits on some systems")]
fn range(header: &ProgramHeader) -> AddrRange<Svma> {
    AddrRange::from_size(Svma::new(header.p_vaddr.into()), header.p_memsz.into())
}

/// What is done with each image; says whether to go on.
type Visit<'v> = dyn FnMut(&Loaded<'_>, Counters) -> bool + 'v;

/// The loader's counters; `None` where it keeps none. Takes the loader's lock: not for signal handlers, and it waits
/// while another thread is inside of `dl_iterate_phdr`.
pub fn counters() -> Option<Counters> {
    let mut counters = None;
    visit(&mut |_, now| {
        counters = Some(now);
        false
    });
    counters
}

/// Visits every image and gives the counters of that moment. Takes the loader's lock, as [`counters`] does; `each` should
/// be short and load nothing.
pub fn images(mut each: impl FnMut(&Loaded<'_>)) -> Counters {
    let mut counters = Counters::default();
    visit(&mut |loaded, now| {
        counters = now;
        each(loaded);
        true
    });
    counters
}

fn visit(mut each: &mut Visit<'_>) {
    // SAFETY: `entered` gets the pointer back as it is given, while `each` is borrowed here.
    unsafe { libc::dl_iterate_phdr(Some(entered), (&raw mut each).cast()) };
}

unsafe extern "C" fn entered(info: *mut libc::dl_phdr_info, size: usize, each: *mut c_void) -> c_int {
    // SAFETY: the loader gives valid information of `size` bytes; `each` is what `visit` passed.
    let (info, each) = unsafe { (&*info, &mut *each.cast::<&mut Visit<'_>>()) };
    let headers = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the loader's own array and its length.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
    };
    let name = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the loader's own string.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    #[allow(clippy::useless_conversion, reason = "addresses have 32 bits on some systems")]
    let base: u64 = info.dlpi_addr.into();
    let bias = Bias::between(Avma::new(base), Svma::new(0));
    // Loaders older than the counters give less.
    let has_counters = size >= std::mem::offset_of!(libc::dl_phdr_info, dlpi_subs) + 8;
    let counters = if has_counters {
        Counters { added: info.dlpi_adds, removed: info.dlpi_subs }
    } else {
        Counters::default()
    };
    c_int::from(!each(&Loaded { name, bias, headers }, counters))
}

/// Where the kernel's own library lies, if there is one. Not every loader lists it.
pub fn vdso() -> Option<Avma> {
    // SAFETY: no preconditions.
    let address = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    #[allow(clippy::useless_conversion, reason = "addresses have 32 bits on some systems")]
    let address: u64 = address.into();
    (address != 0).then_some(Avma::new(address))
}

/// Whether the kernel started a loader for the program. It does not for a static program, and where the loader is the program
/// that was started.
pub fn is_program_interpreted() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_BASE) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_among_the_images() {
        let here = the_program_is_among_the_images as *const () as u64;
        let mut found = 0;
        let counters = images(|loaded| {
            let mut code = loaded.segments().filter(|segment| segment.is_executable);
            let svma = loaded.bias.to_svma(Avma::new(here));
            found += u32::from(code.any(|segment| svma.is_some_and(|svma| segment.address.contains(svma))));
        });
        assert_eq!(found, 1);
        assert_eq!(super::counters(), Some(counters));
    }
}
