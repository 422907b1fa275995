//! Exceptions of Objective-C that nobody catches, by the functions of its runtime and of Foundation. They are looked up when they are
//! wanted: a program without Objective-C needs neither. Nobody has run this yet.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

type Object = *const c_void;
type Handler = extern "C" fn(Object);
/// What is told of an exception: its name, what it says, the return addresses of the stack that threw it.
pub type Tell = fn(&[u8], &[u8], &[u64]);

/// Return addresses that are told.
const MOST: usize = 256;

/// What is there of Objective-C.
struct Runtime {
    /// `objc_msgSend`, which has the type of the method that is called.
    send: *mut c_void,
    selector: extern "C" fn(*const c_char) -> *const c_void,
    before: Option<Handler>,
    tell: Tell,
}

// SAFETY: functions, which any thread may call.
unsafe impl Send for Runtime {}
// SAFETY: the same.
unsafe impl Sync for Runtime {}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Has exceptions that nobody catches told from now on, on the thread that threw them, before the handler from before is called. `false`
/// where the program has no Foundation, or it was done already. Not for signal handlers.
pub fn tell_uncaught(tell: Tell) -> bool {
    let all = (
        function(c"objc_msgSend"),
        function(c"sel_registerName"),
        function(c"NSGetUncaughtExceptionHandler"),
        function(c"NSSetUncaughtExceptionHandler"),
    );
    let (Some(send), Some(selector), Some(get), Some(set)) = all else { return false };
    // SAFETY: functions of these types, by the headers of Objective-C's runtime (`objc/runtime.h`) and Foundation (`NSException.h`).
    let (selector, get, set) = unsafe {
        (
            std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char) -> *const c_void>(selector),
            std::mem::transmute::<*mut c_void, extern "C" fn() -> Option<Handler>>(get),
            std::mem::transmute::<*mut c_void, extern "C" fn(Option<Handler>)>(set),
        )
    };
    let is_first = RUNTIME.set(Runtime { send, selector, before: get(), tell }).is_ok();
    if is_first {
        set(Some(handle));
    }
    is_first
}

extern "C" fn handle(exception: Object) {
    let Some(runtime) = RUNTIME.get() else { return };
    let name = runtime.text(runtime.object(exception, c"name"));
    let reason = runtime.text(runtime.object(exception, c"reason"));
    let addresses = runtime.object(exception, c"callStackReturnAddresses");
    let mut room = [0; MOST];
    let count = runtime.number(addresses, c"count").min(MOST);
    for (index, place) in room.iter_mut().enumerate().take(count) {
        let address = runtime.object_at(addresses, index);
        *place = runtime.number(address, c"unsignedLongLongValue") as u64;
    }
    (runtime.tell)(name, reason, room.get(..count).unwrap_or_default());
    if let Some(before) = runtime.before {
        before(exception);
    }
}

/// Messages. Those to no object at all answer nothing, as the runtime has it.
impl Runtime {
    fn object(&self, to: Object, method: &CStr) -> Object {
        // SAFETY: the methods that are called so take nothing and give an object.
        let send: extern "C" fn(Object, *const c_void) -> Object = unsafe { std::mem::transmute(self.send) };
        send(to, (self.selector)(method.as_ptr()))
    }

    fn object_at(&self, list: Object, index: usize) -> Object {
        // SAFETY: an array's method takes a number and gives an object.
        let send: extern "C" fn(Object, *const c_void, usize) -> Object =
            unsafe { std::mem::transmute(self.send) };
        send(list, (self.selector)(c"objectAtIndex:".as_ptr()), index)
    }

    fn number(&self, of: Object, method: &CStr) -> usize {
        // SAFETY: the methods that are called so take nothing and give a word.
        let send: extern "C" fn(Object, *const c_void) -> usize = unsafe { std::mem::transmute(self.send) };
        send(of, (self.selector)(method.as_ptr()))
    }

    /// A string's bytes, which live as long as the exception.
    fn text<'e>(&self, string: Object) -> &'e [u8] {
        let bytes = self.object(string, c"UTF8String").cast::<c_char>();
        // SAFETY: a C string where it is one.
        if bytes.is_null() { &[] } else { unsafe { CStr::from_ptr(bytes) }.to_bytes() }
    }
}
