//! Messages inside of what people write, lines of the system's log, and stacks of which somebody left the most out. Each text is our
//! own, of a shape that was seen in a public issue.

use super::phones::{expect, place};
use super::{explained, titles, whose};
use backtrail_report::{Limits, parse};

#[test]
fn messages_inside_of_sentences() {
    titles(&[
        (
            "The cart closes with **-[Cart total]: unrecognized selector sent to instance 0x600000012340** since today.\n",
            "Uncaught NSInvalidArgumentException: -[Cart total]: unrecognized selector sent to instance 0x600000012340",
        ),
        (
            "It says \"Could not cast value of type 'Cart' (0x1f) to 'Shop' (0x2e)\" and is gone.\n",
            "Swift fatal error: Could not cast value of type 'Cart' (0x1f) to 'Shop' (0x2e)",
        ),
        (
            "On my phone: EXC_BAD_ACCESS (code=1, address=0x18) as soon as it opens.\n",
            "Null pointer access at 0x18",
        ),
        (
            "Docker says Exited (139) 3 minutes ago\n\n\"OOMKilled\": false,\n\"ExitCode\": 139,\n",
            "Exit code 139: ended by SIGSEGV",
        ),
    ]);
}

/// What the words around a stack tell of its reason, where the stack is all that the report has.
#[test]
fn a_reason_in_the_words_around_a_stack() {
    let stack = "0   libswiftCore.dylib   0x329453cd4   swift_getObjectType\n1   Shop   0x1065fb554   Cart.total\n2   Shop   0x1065fba94   main\n";
    let told = format!("iOS crash: EXC_BAD_ACCESS (code=1, address=0x10) when the cart opens\n\n{stack}");
    assert_eq!(explained(&told).title, "Null pointer access at 0x10");
    assert_eq!(
        explained(&format!("It crashes there:\n\n{stack}")).title,
        "The report does not tell what happened"
    );
}

/// What the system writes into its log where it ends a process.
#[test]
fn the_systems_log() {
    let locked = "error\t10:32:02\trunningboardd\t[application<com.acme.shop>:186] suspended with locked system files:\n/var/mobile/Containers/Data/Library/cart.db\nerror\t10:32:02\trunningboardd\t[application<com.acme.shop>:186] locked files not in allowed directories: /var/a/tmp\n/var/mobile/Containers/Data/Other/orders.db\n";
    expect(
        locked,
        "Killed for holding a file lock while being suspended (0xdead10cc)",
        &["what was locked: cart.db"],
        &["orders.db"],
    );
}

#[test]
fn watchdogs_that_words_tell() {
    let scene = "Exception Type: EXC_CRASH (SIGKILL)\nTermination Reason: FRONTBOARD scene-create watchdog transgression: application<com.acme.shop>:12 exhausted CPU time allowance of 3.37 seconds\n\nThread 0:\n0   libsystem_kernel.dylib  0x1b0000004 semaphore_wait_trap + 8\n";
    expect(scene, "Killed by the watchdog (scene-create): not done with 3.37 s of processor time", &[], &[]);
}

/// Where nothing tells the signal, the innermost frames do.
#[test]
fn an_abort_without_its_signal() {
    let text = "Thread 0 Crashed:: Dispatch queue: com.apple.main-thread\n0   libsystem_kernel.dylib  0x00007fff85cac286 __pthread_kill + 10\n1   libsystem_c.dylib  0x00007fff868eb9ab abort + 129\n2   shop  0x00000001085cfd4d add_order(Order, bool) + 2237\n3   shop  0x00000001085d11ba main + 666\n";
    expect(text, "The process ended itself with abort()", &["called abort() itself"], &[]);
    let waiting = text.replace("__pthread_kill + 10", "__psynch_cvwait + 10").replace("abort +", "wait +");
    expect(&waiting, "The report does not tell what happened", &[], &[]);
}

/// Xcode's list of frames of an app that ended itself, with and without a name of who threw.
#[test]
fn what_xcode_lists() {
    let thrown_again = "Thread 0#0\t(null) in __pthread_kill ()\n#1\t(null) in abort ()\n#2\t(null) in abort_message ()\n#3\t(null) in std::terminate() ()\n#4\t(null) in objc_exception_rethrow ()\n#5\t(null) in CFRunLoopRunSpecific ()\n#6\t(null) in GSEventRunModal ()\n#7\t(null) in UIApplicationMain ()\n#8\t0x00000001028f04b4 in static ShopApp.$main() at /src/ShopApp.swift:13\n#9\t(null) in main ()\n";
    expect(thrown_again, "Uncaught exception", &["objc_exception_throw"], &[]);
    assert_eq!(whose(thrown_again), "unknown");
    let locked = "Render (10)#0\t0x000000018556ea60 in __pthread_kill ()\n#1\t0x00000001854b3a30 in abort ()\n#2\t0x000000018555dd08 in abort_message ()\n#3\t0x00000001851ec1e0 in _objc_terminate() ()\n#4\t0x000000018556028c in __cxa_throw ()\n#5\t0x00000001854dea28 in std::__1::__throw_system_error(int, char const*) ()\n#6\t0x00000001854d272c in std::__1::mutex::lock() ()\n#7\t0x00000001074d93f0 in Cart::release() at /src/Cart.cpp:50\n";
    expect(locked, "Uncaught C++ exception: std::system_error", &["A mutex could not be locked"], &[]);
    assert_eq!(place(locked).as_deref(), Some("Cart::release()"));
}

/// A page of a stack that may not be accessed; what the sentence above the rows says; rows without addresses.
#[test]
fn a_guard_of_a_stack_by_its_address() {
    let text = "Crash: EXC_BAD_ACCESS (code=2, address=0x16cf0fc00) on the main thread.\n\n  frame #0: Kit`-[Cart total] + 124\n  frame #1: Kit`-[Cart layout] + 180\n";
    expect(text, "Stack overflow, very probably", &["0x16cf0fc00 lies where the system puts stacks"], &[]);
    let elsewhere = text.replace("0x16cf0fc00", "0x10cf0fc00");
    assert_ne!(explained(&elsewhere).title, "Stack overflow, very probably");
    // Of an access to memory that is not there, nothing follows from the place.
    assert_ne!(explained(&text.replace("code=2", "code=1")).title, "Stack overflow, very probably");
}

/// LLDB names the image of each frame: the app's own begins the main thread's stack.
#[test]
fn an_image_that_the_app_called() {
    let text = "* thread #1, queue = 'com.apple.main-thread', stop reason = EXC_BAD_ACCESS (code=1, address=0x8)\n    frame #0: 0x000000010db958d0 KitNative`kit::Core::Shutdown() + 56\n    frame #1: 0x000000010d9a1004 Kit`Manager.start() + 512\n    frame #2: 0x0000000104b1a8e4 Shop`CartController.viewDidLoad(self=0x0000000131e1d800) at CartController.swift:120:9\n";
    assert_eq!(whose(text), "sdk");
    let own = text.replace("KitNative`kit", "Shop`kit");
    assert_eq!(whose(&own), "app");
    assert_eq!(whose(&text.replace("thread #1,", "thread #4,")), "app");
}

/// Go's runtime errors that a program recovers from, and writes down with the stack.
#[test]
fn a_recovered_panic_of_go() {
    let text = "panic in handler: runtime error: invalid memory address or nil pointer dereference: goroutine 33 [running]:\npanic(0xdd36c0, 0x14b5180)\n\t/usr/local/go/src/runtime/panic.go:491 +0x283\nshop.(*Cart).total(0xc4214b1920, 0x0)\n\t/src/shop/cart.go:180 +0x170\n";
    expect(
        text,
        "Go panic: runtime error: invalid memory address or nil pointer dereference",
        &["A nil pointer was followed"],
        &[],
    );
    assert_eq!(place(text).as_deref(), Some("shop.(*Cart).total"));
    // A program's own words are none of the runtime's.
    let other = "oops: runtime error: no carts: goroutine 33 [running]:\n";
    assert!(!explained(other).title.contains("no carts"));
}

/// A module that says by its own `__getattr__` that it has no such member was asked by somebody.
#[test]
fn a_member_that_a_module_has_no_more() {
    let text = "Traceback (most recent call last):\n  File \"/home/u/shop/cart.py\", line 31, in <module>\n    kit.warnings.off()\n  File \"/usr/lib/python3.12/site-packages/kit/__init__.py\", line 427, in __getattr__\n    raise AttributeError(name)\nAttributeError: module 'kit' has no attribute 'warnings'\n";
    assert_eq!(whose(text), "app");
    assert_eq!(place(text).as_deref(), Some("<module>"));
    let objects = text.replace("module 'kit'", "'Cart' object");
    assert_eq!(whose(&objects), "sdk");
}

/// Rust's library says so in every program; some print nothing else.
#[test]
fn rusts_message_alone() {
    titles(&[
        (
            "│ shutting down\n│ called `Result::unwrap()` on an `Err` value: NoOrder\n",
            "Rust panic: called `Result::unwrap()` on an `Err` value: NoOrder",
        ),
        (
            "called `Option::unwrap()` on a `None` value\n",
            "Rust panic: called `Option::unwrap()` on a `None` value",
        ),
    ]);
}

/// .NET Framework writes rows in the user's language.
#[test]
fn rows_of_dot_net_in_other_languages() {
    let french = "Impossible de charger le type 'Kit.ICart'.\n\nTypeLoadException\n   à System.Signature.GetSignature(Void* pCorSig, Int32 cCorSig)\n   à Shop.Registry.LoadPlugins() dans C:\\src\\Registry.cs:ligne 12\n   à Shop.Program.Main(String[] args)\n";
    expect(french, "TypeLoadException: Impossible de charger le type 'Kit.ICart'.", &[], &[]);
    assert_eq!(place(french).as_deref(), Some("Shop.Registry.LoadPlugins"));
    let german = "System.InvalidOperationException: Der Wagen ist leer.\n   bei Shop.Cart.Total(String currency) in C:\\src\\Cart.cs:Zeile 7.\n";
    assert_eq!(place(german).as_deref(), Some("Shop.Cart.Total"));
    // Sentences have no types before the names of what they call.
    for prose in ["in cart.total(currency)\n", "en shop.cart (el carro)\n", "v 1.2.3(4)\n"] {
        assert!(parse(prose.as_bytes(), &Limits::default()).is_err(), "{prose}");
    }
}

/// React Native's error is the root also where Java carries it twice.
#[test]
fn a_script_is_the_root() {
    let text = "FATAL EXCEPTION: mqt_native_modules\nProcess: com.acme.shop, PID: 12\ncom.facebook.react.common.JavascriptException: null is not an object (evaluating 'v.cart'), stack:\n<unknown>@1009:2226\nh@2:1670\n\n\tat com.facebook.react.modules.core.ExceptionsManagerModule.reportException(ExceptionsManagerModule.java:83)\n\tat java.lang.reflect.Method.invoke(Native Method)\n";
    expect(text, "null is not an object (evaluating 'v.cart')", &[], &[]);
    assert_eq!(whose(text), "app");
}

/// Firebase's console heads the stack of a signal with its cause.
#[test]
fn a_signal_with_its_cause_before() {
    let text = "null pointer dereference: SIGSEGV  0x0000000000000008\n#00 pc 0x2cfd1ff libshop.so (BuildId: 47683010e37de3dd50e36a4ccc8d02a75ec6b1ff)\n#01 pc 0xcc4be libc.so (BuildId: 0bf27f8fcefe3acc55b2dd5ca6e5b4aa)\n";
    expect(text, "Null pointer access at 0x8", &[], &[]);
}

/// Views that lie in each other are drawn by the same function of the system, once for each.
#[test]
fn nested_views_are_no_recursion() {
    let row =
        |index: usize, image: &str, name: &str, at: u64| format!("{index}   {image}   {at:#x}   {name}\n");
    let stack = |image: &str| {
        let mut text = "Thread 0 Crashed:\n".to_owned() + &row(0, "CoreText", "TLine::width", 0x1_8000_0010);
        for index in 1..13 {
            text += &row(index, image, "-[View layout]", 0x1_9000_0020);
        }
        text + &row(13, "Shop", "main", 0x1_0000_0030)
    };
    assert_ne!(explained(&stack("UIKitCore")).title, "Recursion, probably without an end");
    expect(&stack("Shop"), "Recursion, probably without an end", &["12 frames from frame 1 on"], &[]);
}

#[test]
fn libraries_that_were_found_and_not_used() {
    let text = |why: &str| {
        format!(
            "Exception Type:  EXC_CRASH (SIGABRT)\nTermination Reason: DYLD, [0x1] Library missing\nTermination Description: DYLD, Library not loaded: @rpath/Kit.framework/Kit | Referenced from: /var/a/Shop.app/Shop | Reason: no suitable image found.  Did find: | \t/var/a/Shop.app/Frameworks/Kit.framework/Kit: {why}\n"
        )
    };
    titles(&[
        (
            &text("mmap() errno=1 validating first page of '/var/a/Kit'"),
            "A library was refused at launch: @rpath/Kit.framework/Kit (code signature)",
        ),
        (
            &text("mach-o, but wrong architecture"),
            "A library was found and could not be loaded at launch: @rpath/Kit.framework/Kit",
        ),
    ]);
}

/// Where somebody shortened LLDB's rows, nothing tells whether an image is the program.
#[test]
fn shortened_rows_do_not_tell_the_program() {
    let text = "EXC_BAD_ACCESS (code=1, address=0x18)\n  frame #0: Kit`-[Cart total] + 124\n  frame #1: Kit`-[Cart layout] + 180\n";
    assert_eq!(whose(text), "unknown");
    assert_eq!(whose(&format!("{text}  frame #2: Kit`main + 18\n")), "app");
}

/// What other programs write behind `panic: ` is not Go's.
#[test]
fn panics_of_others_in_sentences() {
    for text in [
        "TITLE: panic: timeout too short\n",
        "[ 1.0] XFS (loop0): WARNING: Reset corrupted list. Please run xfs_repair.\n",
    ] {
        assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
    }
    titles(&[(
        "iOS stops there: Swift runtime failure: Array index is out of range + 0\n",
        "Swift runtime failure: Array index is out of range",
    )]);
}
