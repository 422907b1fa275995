//! The images that dyld has mapped, kept by its callbacks.

use super::ffi;
use backtrail_core::Avma;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, Once, PoisonError};

/// How many images were mapped and unmapped so far: while both stay the same, so does the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Images that were mapped.
    pub added: u64,
    /// Images that were unmapped.
    pub removed: u64,
}

/// One image: where its header lies, and its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// Its Mach-O header.
    pub header: Avma,
    /// The file, or what it would be: libraries of the shared cache have none.
    pub path: String,
}

static ADDED: AtomicU64 = AtomicU64::new(0);
static REMOVED: AtomicU64 = AtomicU64::new(0);
static IMAGES: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// Begins to follow dyld; every image that is there already is told at once. Once for the process: dyld's callbacks cannot
/// be taken back. A library that holds this code must not be unloaded afterwards.
pub fn follow_images() {
    static ONCE: Once = Once::new();
    // SAFETY: the callbacks are functions of this program.
    ONCE.call_once(|| unsafe {
        ffi::_dyld_register_func_for_add_image(add);
        ffi::_dyld_register_func_for_remove_image(remove);
    });
}

/// The counters of this moment. Takes no lock.
pub fn counters() -> Counters {
    Counters { added: ADDED.load(SeqCst), removed: REMOVED.load(SeqCst) }
}

/// Every image, the program first, and the counters of that moment. Takes a lock that only dyld's callbacks take, for as
/// long as it takes to note an image; none of dyld's.
pub fn images() -> (Vec<Loaded>, Counters) {
    let images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    (images.clone(), counters())
}

/// Called by dyld, with its lock held: notes and calls nothing but `dladdr`, which dyld allows there.
extern "C" fn add(header: *const c_void, _slide: isize) {
    let path = path_of(header);
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    images.push(Loaded { header: Avma::new(header as u64), path });
    ADDED.fetch_add(1, SeqCst);
}

extern "C" fn remove(header: *const c_void, _slide: isize) {
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    images.retain(|image| image.header.get() != header as u64);
    REMOVED.fetch_add(1, SeqCst);
}

fn path_of(header: *const c_void) -> String {
    let mut info = ffi::DlInfo {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        symbol: std::ptr::null(),
        symbol_address: std::ptr::null_mut(),
    };
    // SAFETY: the header is mapped while dyld calls; the path lives as long as the image.
    unsafe {
        if ffi::dladdr(header, &raw mut info) == 0 || info.file.is_null() {
            return String::new();
        }
        CStr::from_ptr(info.file).to_string_lossy().into_owned()
    }
}
