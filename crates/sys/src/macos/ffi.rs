//! Mach's calls, as the SDK's headers declare them (`mach/mach.h`, `mach-o/dyld.h`, `pthread.h`).

use std::ffi::{c_char, c_int, c_void};

pub(super) type Port = u32;
pub(super) type Answer = c_int;

pub(super) const SUCCESS: Answer = 0;
/// `KERN_INVALID_ARGUMENT`: of thread calls, a thread that has ended.
pub(super) const INVALID_ARGUMENT: Answer = 4;

pub(super) const THREAD_BASIC_INFO: u32 = 3;
pub(super) const THREAD_IDENTIFIER_INFO: u32 = 4;
pub(super) const THREAD_EXTENDED_INFO: u32 = 5;

/// `thread_basic_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct BasicInfo {
    pub(super) user_seconds: c_int,
    pub(super) user_microseconds: c_int,
    pub(super) system_seconds: c_int,
    pub(super) system_microseconds: c_int,
    pub(super) cpu_usage: c_int,
    pub(super) policy: c_int,
    pub(super) run_state: c_int,
    pub(super) flags: c_int,
    pub(super) suspend_count: c_int,
    pub(super) sleep_time: c_int,
}

/// `thread_identifier_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IdentifierInfo {
    pub(super) thread_id: u64,
    pub(super) thread_handle: u64,
    pub(super) dispatch_qaddr: u64,
}

/// `thread_extended_info`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ExtendedInfo {
    pub(super) user_time: u64,
    pub(super) system_time: u64,
    pub(super) cpu_usage: i32,
    pub(super) policy: i32,
    pub(super) run_state: i32,
    pub(super) flags: i32,
    pub(super) sleep_time: i32,
    pub(super) current_priority: i32,
    pub(super) priority: i32,
    pub(super) max_priority: i32,
    pub(super) name: [u8; 64],
}

/// A kind of information with its number.
pub(super) trait Info: Copy {
    const FLAVOR: u32;
}

impl Info for BasicInfo {
    const FLAVOR: u32 = THREAD_BASIC_INFO;
}

impl Info for IdentifierInfo {
    const FLAVOR: u32 = THREAD_IDENTIFIER_INFO;
}

impl Info for ExtendedInfo {
    const FLAVOR: u32 = THREAD_EXTENDED_INFO;
}

unsafe extern "C" {
    pub(super) static mach_task_self_: Port;

    pub(super) fn task_threads(task: Port, threads: *mut *mut Port, count: *mut u32) -> Answer;
    pub(super) fn thread_suspend(thread: Port) -> Answer;
    pub(super) fn thread_resume(thread: Port) -> Answer;
    pub(super) fn thread_get_state(thread: Port, flavor: c_int, state: *mut u32, count: *mut u32) -> Answer;
    pub(super) fn thread_info(thread: Port, flavor: u32, info: *mut c_int, count: *mut u32) -> Answer;
    pub(super) fn mach_port_allocate(task: Port, right: c_int, name: *mut Port) -> Answer;
    pub(super) fn mach_port_insert_right(task: Port, name: Port, right: Port, kind: u32) -> Answer;
    pub(super) fn task_swap_exception_ports(
        task: Port,
        mask: u32,
        port: Port,
        behaviour: u32,
        flavor: c_int,
        masks: *mut u32,
        count: *mut u32,
        ports: *mut Port,
        behaviours: *mut u32,
        flavors: *mut c_int,
    ) -> Answer;
    pub(super) fn task_set_exception_ports(
        task: Port,
        mask: u32,
        port: Port,
        behaviour: u32,
        flavor: c_int,
    ) -> Answer;
    pub(super) fn thread_set_exception_ports(
        thread: Port,
        mask: u32,
        port: Port,
        behaviour: u32,
        flavor: c_int,
    ) -> Answer;
    pub(super) fn mach_msg(
        message: *mut c_void,
        options: c_int,
        send_size: u32,
        receive_size: u32,
        receive_from: Port,
        timeout: u32,
        notify: Port,
    ) -> Answer;
    pub(super) fn mach_port_deallocate(task: Port, name: Port) -> Answer;
    pub(super) fn mach_vm_read_overwrite(
        task: Port,
        address: u64,
        size: u64,
        data: u64,
        out_size: *mut u64,
    ) -> Answer;
    pub(super) fn mach_vm_deallocate(task: Port, address: u64, size: u64) -> Answer;

    pub(super) fn pthread_mach_thread_np(thread: libc::pthread_t) -> Port;
    pub(super) fn pthread_from_mach_thread_np(port: Port) -> libc::pthread_t;
    pub(super) fn pthread_get_stackaddr_np(thread: libc::pthread_t) -> *mut c_void;
    pub(super) fn pthread_get_stacksize_np(thread: libc::pthread_t) -> usize;

    pub(super) fn _dyld_register_func_for_add_image(call: extern "C" fn(*const c_void, isize));
    pub(super) fn _dyld_register_func_for_remove_image(call: extern "C" fn(*const c_void, isize));
    pub(super) fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
}

/// `Dl_info`.
#[repr(C)]
pub(super) struct DlInfo {
    pub(super) file: *const c_char,
    pub(super) base: *mut c_void,
    pub(super) symbol: *const c_char,
    pub(super) symbol_address: *mut c_void,
}

/// This task's port.
pub(super) fn task() -> Port {
    // SAFETY: set before any code of the program runs, and never changed.
    unsafe { mach_task_self_ }
}
