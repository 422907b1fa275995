//! What servers, desktops and phones send, as people paste it. Each text is our own, of the shape that was seen in a public issue or
//! thread, whose maintainers said what it was.

use super::phones::{expect, place};
use super::{explained, read, whose};

/// Frames of a panic that runtimes put there are no place, whatever underscore their symbols have.
#[test]
fn a_rust_stack_without_names_has_no_place() {
    let text = "thread 'main' panicked at 'called `Option::unwrap()` on a `None` value', src/cart.rs:7:12\nstack backtrace:\n   0:        0x10a2b3c4d - <unknown>\n   1:        0x10a2b3c5e - _rust_begin_unwind\n   2:        0x7ff8a0e07034 - BaseThreadInitThunk\n   3:        0x7ff8a2da2651 - RtlUserThreadStart\n";
    assert_eq!(place(text), None);
    assert_eq!(whose(text), "unknown");
}

/// Files of Node's own are never the program's.
#[test]
fn nodes_own_check() {
    let own = "node:internal/assert:14\n    throw new ERR_INTERNAL_ASSERTION(message);\n    ^\n\nError [ERR_INTERNAL_ASSERTION]: This is caused by either a bug in Node.js or incorrect usage of Node.js internals.\n    at assert (node:internal/assert:14:11)\n    at Socket.onSocketData (node:net:700:5)\n    at Socket.emit (node:events:519:28) {\n  code: 'ERR_INTERNAL_ASSERTION'\n}\n\nNode.js v20.11.0\n";
    expect(
        own,
        "Error: This is caused by either a bug in Node.js or incorrect usage of Node.js internals.",
        &["A check inside of Node.js itself failed.", "A fault of this version of Node.js"],
        &["A package that uses"],
    );
    let with_package = own.replace(
        "at Socket.emit (node",
        "at wrap (/app/node_modules/pool/lib/a.js:3:1)\n    at Socket.emit (node",
    );
    expect(
        &with_package,
        "Error: This is caused by either a bug in Node.js or incorrect usage of Node.js internals.",
        &["A package that uses what is inside of Node.js"],
        &[],
    );
}

/// Debuggers' stacks that end somewhere in the middle do not tell whose the program is.
#[test]
fn a_cut_stack_blames_nobody() {
    let cut = "Program received signal SIGABRT, Aborted.\n#0  0x00007f10 in raise () from /lib64/libc.so.6\n#1  0x00007f20 in abort () from /lib64/libc.so.6\n#2  0x00007f30 in __libc_message () from /lib64/libc.so.6\n";
    assert_eq!(whose(cut), "unknown");
    expect(cut, "glibc ended the process with a message", &["Memory freed twice"], &[]);
}

/// Chromium prints what the signal was before the stack that it prints itself.
#[test]
fn chromium_prints_its_own_stack() {
    let text = "Received signal 11 SEGV_MAPERR 000000000010\n#0 0x55d5c8a6a8e2 base::debug::CollectStackTrace()\n#1 0x55d5c8a5e5b3 base::debug::StackTrace::StackTrace()\n#2 0x55d5c8a6a3a1 base::debug::(anonymous namespace)::StackDumpSignalHandler()\n#3 0x7f5c2f642520 <unknown>\n#4 0x55d5c1111111 shop::Cart::Total()\n#5 0x55d5c1111222 shop::Main()\n[end of stack trace]\n";
    let report = read(text);
    let exception = report.exception.as_ref().unwrap();
    assert_eq!(exception.signal.as_deref(), Some("SIGSEGV"));
    assert_eq!(exception.address.map(backtrail_core::Avma::get), Some(0x10));
    assert_eq!(place(text).as_deref(), Some("shop::Cart::Total()"));
}

/// SSE's aligned moves raise a general protection fault whatever the address.
#[test]
fn a_stack_of_the_kernel_that_is_not_aligned() {
    let text = "[  10.0] general protection fault: 0000 [#1] SMP NOPTI\n[  10.0] CPU: 1 PID: 12 Comm: shop Not tainted 5.8.0 #1\n[  10.0] RIP: 0010:cart_total+0x2a/0x100 [shop]\n[  10.0] Code: 48 89 e5 <0f> 29 45 c0 90\n[  10.0] Call Trace:\n[  10.0]  cart_show+0x12/0x40 [shop]\n[  10.0] ---[ end trace 0123456789abcdef ]---\n";
    let explanation = explained(text);
    let all = format!("{explanation:?}");
    assert!(all.contains("multiple of 16") && all.contains("not aligned to 16 bytes"), "{all}");
    let other = text.replace("<0f> 29", "<48> 8b");
    assert!(!format!("{:?}", explained(&other)).contains("multiple of 16"));
}

/// ZFS prints its failed checks and goes on.
#[test]
fn a_failed_check_of_zfs() {
    let text = "[ 100.1] VERIFY3(remove == 0) failed (5 == 0)\n[ 100.1] PANIC at range_tree.c:485:range_tree_remove_impl()\n[ 100.1] Showing stack for process 812\n[ 100.1] CPU: 2 PID: 812 Comm: z_wr_iss Tainted: P           O      5.15.0 #1\n[ 100.1] Call Trace:\n[ 100.1]  <TASK>\n[ 100.1]  dump_stack_lvl+0x45/0x5b\n[ 100.1]  spl_dumpstack+0x25/0x30 [spl]\n[ 100.1]  spl_panic+0xd1/0xf3 [spl]\n[ 100.1]  range_tree_remove_impl+0x3a1/0x3c0 [zfs]\n[ 100.1]  metaslab_free_concrete+0x1b1/0x2a0 [zfs]\n[ 100.1]  </TASK>\n";
    let explanation = explained(text);
    assert!(format!("{explanation:?}").contains("zpool status -v"), "{explanation:?}");
    assert_eq!(place(text).as_deref(), Some("range_tree_remove_impl"));
}

/// React Native ends Android apps by an exception of Java for an error of JavaScript.
#[test]
fn an_error_of_javascript_that_java_carries() {
    let java = "    at com.facebook.react.modules.core.ExceptionsManagerModule.reportException(ExceptionsManagerModule.java:71)\n    at java.lang.reflect.Method.invoke(Native Method)\n    at com.facebook.react.bridge.JavaMethodWrapper.invoke(JavaMethodWrapper.java:372)\n";
    let without = format!(
        "com.facebook.react.common.JavascriptException: TypeError: undefined is not an object\n{java}"
    );
    expect(
        &without,
        "TypeError: undefined is not an object",
        &["ReactNativeJS", "thrown in JavaScript"],
        &["ExceptionsManagerModule.reportException is"],
    );
    assert_eq!(place(&without), None);
    let with = format!(
        "com.facebook.react.common.JavascriptException: TypeError: undefined is not an object, stack:\ntotal@12:345\nrender@13:77\n\n{java}"
    );
    assert_eq!(place(&with).as_deref(), Some("total"));
}

/// Valgrind tells that the program was ended, and the program why.
#[test]
fn valgrind_and_the_last_words_of_the_program() {
    let text = "==12== Memcheck, a memory error detector\n==12== Command: ./shop\n==12== \nterminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check\n==12== \n==12== Process terminating with default action of signal 6 (SIGABRT)\n==12==    at 0x5B0AE97: raise (raise.c:51)\n==12==    by 0x5B0C800: abort (abort.c:79)\n==12==    by 0x50B3892: __gnu_cxx::__verbose_terminate_handler() (vterminate.cc:95)\n==12==    by 0x10A3B4: Cart::total() (cart.cpp:12)\n==12==    by 0x10A4C5: main (main.cpp:7)\n";
    let explanation = explained(text);
    assert!(explanation.title.contains("std::out_of_range"), "{explanation:?}");
    assert_eq!(place(text).as_deref(), Some("Cart::total()"));
}

#[test]
fn qt_without_its_plugin() {
    expect(
        "qt.qpa.plugin: Could not load the Qt platform plugin \"xcb\" in \"/usr/lib/python3/site-packages/cv2/qt/plugins\" even though it was found.\nThis application failed to start because no Qt platform plugin could be initialized. Reinstalling the application may fix this problem.\n\nAborted (core dumped)\n",
        "Qt's platform plugin could not be loaded: xcb",
        &["OpenCV", "QT_DEBUG_PLUGINS", "libxcb-cursor0"],
        &[],
    );
    let plain = "This application failed to start because it could not find or load the Qt platform plugin \"windows\" in \"\".\n";
    expect(plain, "Qt's platform plugin could not be loaded: windows", &["platforms/"], &["OpenCV", "xcb"]);
}

#[test]
fn libraries_that_dyld_could_not_map() {
    let text = "Dyld Error Message:\n  Library not loaded: @rpath/Kit.framework/Kit\n  Referenced from: /private/var/containers/Bundle/Application/0/Shop.app/Shop\n  Reason: no suitable image found.  Did find:\n\t/private/var/containers/Bundle/Application/0/Shop.app/Frameworks/Kit.framework/Kit: mremap_encrypted() => -1, errno=12 for /private/var/containers/Bundle/Application/0/Shop.app/Frameworks/Kit.framework/Kit\n";
    let whole = format!(
        "Exception Type:  EXC_CRASH (SIGABRT)\nTermination Reason: DYLD, [0x1] Library missing\nTermination Description: DYLD, Library not loaded\n{text}"
    );
    let explanation = explained(&whole);
    assert!(explanation.title.contains("no memory"), "{explanation:?}");
}

#[test]
fn what_visual_studio_and_windbg_say() {
    expect(
        "Unhandled exception at 0x00007FF7891A4A56 in shop.exe: 0xC0000005: Access violation reading location 0x0000000000000018.\n",
        "Null pointer read at 0x18 in shop.exe",
        &["a member at offset 0x18"],
        &[],
    );
    expect(
        "Exception thrown: read access violation.\n**cart** was nullptr.\n",
        "Null pointer: `cart`, read",
        &["The code used cart, which was null."],
        &[],
    );
    expect(
        "Exception thrown: write access violation.\n**this** was 0xDDDDDDDD.\n",
        "`this` was 0xdddddddd, write",
        &["the object was freed"],
        &[],
    );
    expect(
        "Unhandled exception at 0x7B8E24C7 (ntdll.dll) in shop.exe: 0xC0000005: Access violation reading location 0xFFFFFFFF.\n",
        "Access violation in ntdll.dll: the address was none",
        &["is Windows' own", "aligned"],
        &[],
    );
}

/// A main thread that waits for the main queue waits for itself.
#[test]
fn a_sample_of_a_main_queue_that_waits_for_itself() {
    let text = "Call graph:\n    2519 Thread_20361   DispatchQueue_1: com.apple.main-thread  (serial)\n      2519 start  (in dyld) + 1903  [0x18c6e90e0]\n        2519 main  (in Shop) + 40  [0x1000a3f28]\n          2519 -[Cart reload]  (in Shop) + 112  [0x1000a4010]\n            2519 _dispatch_sync_f_slow  (in libdispatch.dylib) + 148  [0x18c8ea0a4]\n              2519 __DISPATCH_WAIT_FOR_QUEUE__  (in libdispatch.dylib) + 368  [0x18c8ea0f0]\n                2519 __ulock_wait  (in libsystem_kernel.dylib) + 8  [0x18ca0ddf8]\n\nTotal number in stack (recursive counted multiple, when >=5):\n";
    let explanation = explained(text);
    let all = format!("{explanation:?}");
    assert!(all.contains("waits for itself and will for ever") && all.contains("-[Cart reload]"), "{all}");
    let partly = text.replace("                2519 __ulock_wait", "                2400 __ulock_wait");
    assert!(!format!("{:?}", explained(&partly)).contains("for ever"));
}

#[test]
fn errors_of_tcl() {
    let text = "can't read \"total\": no such variable\n    while executing\n\"expr {$total + 1}\"\n    (procedure \"cart::add\" line 3)\n    invoked from within\n\"cart::add apple\"\n    (file \"shop.tcl\" line 12)\n";
    let explanation = explained(text);
    assert!(explanation.title.contains("can't read \"total\": no such variable"), "{explanation:?}");
    assert_eq!(place(text).as_deref(), Some("cart::add"));
}

/// PHP tells who called with the wrong argument.
#[test]
fn php_and_the_call_that_was_wrong() {
    let text = "PHP Catchable fatal error:  Argument 1 passed to Cart::add() must be an instance of Item, null given, called in /srv/shop/index.php on line 12 and defined in /srv/shop/cart.php on line 7\n";
    let explanation = explained(text);
    let all = format!("{explanation:?}");
    assert!(all.contains("/srv/shop/index.php on line 12"), "{all}");
}

/// A kernel's log of a guard does not tell whether it ended the process.
#[test]
fn a_guard_in_a_kernel_log() {
    let text = "2026-10-29 15:03:23.120 E kernel[0:1a2b] [shop:12] EXC_GUARD AST: type=0x1 flavor=0x200 target=0x3029f code=0x200002000003029f subcode=0x0\n";
    let report = read(text);
    assert_eq!(report.exception.as_ref().unwrap().kind.as_deref(), Some("EXC_GUARD"));
}

/// UIKit's views may be used on the main thread alone; images on any.
#[test]
fn uikit_on_another_queue() {
    let text = "Incident Identifier: 1\nProcess: Shop [12]\nException Type: EXC_BAD_ACCESS (SIGSEGV)\nException Codes: KERN_INVALID_ADDRESS at 0x0000000000000020\nCrashed Thread: 3\n\nThread 3 name:  Dispatch queue: com.example.shop.queue\nThread 3 Crashed:\n0   libobjc.A.dylib  0x00000001836f41a0 objc_retain + 16\n1   UIKitCore  0x000000018e0eb9a4 -[UIView layoutIfNeeded] + 32\n2   Shop  0x0000000100012345 -[Cart total] + 8\n";
    let has = |text: &str| format!("{:?}", explained(text)).contains("which is not the main thread's");
    assert!(has(text));
    assert!(!has(&text.replace("com.example.shop.queue", "com.apple.main-thread")));
    assert!(!has(&text.replace("UIView layoutIfNeeded", "UIImage imageNamed:")));
}

/// Android's log with tags alone holds a whole tombstone.
#[test]
fn a_log_of_tags_alone() {
    let text = "A/art: art/runtime/runtime.cc:284] Runtime aborting\nA/libc: Fatal signal 6 (SIGABRT), code -6 in tid 96 (shop.app)\nI/DEBUG: *** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\nI/DEBUG: ABI: 'arm'\nI/DEBUG: pid: 96, tid: 96, name: shop.app  >>> com.example.shop <<<\nI/DEBUG: signal 6 (SIGABRT), code -6 (SI_TKILL), fault addr --------\nI/DEBUG: Abort message: 'art/runtime/verifier/method_verifier.cc:33] Check failed: !IsExceptionPending() '\nI/DEBUG:     #00 pc 00037104  /system/lib/libc.so (tgkill+12)\nI/DEBUG:     #01 pc 00014dbb  /system/lib/libc.so (pthread_kill+52)\n";
    assert!(explained(text).title.contains("IsExceptionPending"), "{:?}", explained(text));
}

/// Code that an interpreter of Unity's runs is the place, and not the interpreter.
#[test]
fn code_that_ilruntime_interprets() {
    let text = "NullReferenceException: Object reference not set to an instance of an object.\nILRuntime.CLR.Method.CLRMethod.Invoke (ILRuntime.Runtime.Intepreter.ILIntepreter intepreter) (at Assets/ILRuntime/CLRMethod.cs:320)\nRethrow as ILRuntimeException: Object reference not set to an instance of an object.\nIL_0049: callvirt System.Void Shop.Item::Show()\nShop.Cart.Total(Int32 count, String name) D:/Shop/Cart.cs:Line 40\nShop.Main.Start() D:/Shop/Main.cs:Line 7\n";
    assert_eq!(place(text).as_deref(), Some("Shop.Cart.Total"));
}

/// Flutter's own classes are known where a stack names no files.
#[test]
fn a_stack_of_flutter_without_files() {
    let text = "flutter: ══╡ EXCEPTION CAUGHT BY WIDGETS LIBRARY ╞════════\nflutter: The following _CastError was thrown while finalizing the widget tree:\nflutter: Null check operator used on a null value\nflutter:\nflutter: When the exception was thrown, this was the stack:\nflutter: #0      Element.widget\nflutter: #1      _CartState.dispose\nflutter: #2      StatefulElement.unmount\n";
    assert_eq!(place(text).as_deref(), Some("_CartState.dispose"));
}

/// HotSpot saves what its compiler needs where that crashed.
#[test]
fn a_crash_of_javas_compiler() {
    let text = "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at pc=0x00007f7bfaa351c9, pid=13060, tid=13080\n#\n# JRE version: OpenJDK Runtime Environment (13.0.1+9) (build 13.0.1+9)\n# Problematic frame:\n# V  [libjvm.so+0xce71c9]  PhaseIterGVN::transform_old(Node*)+0x159\n#\n# Compiler replay data is saved as:\n# /srv/replay_pid13060.log\n#\n";
    let all = format!("{:?}", explained(text));
    assert!(all.contains("virtual machine's compiler (JIT)"), "{all}");
    let other = text.replace("Compiler replay data", "The core dump");
    assert!(!format!("{:?}", explained(&other)).contains("(JIT)"));
}

/// What the kernel reports by is neither a place nor to blame.
#[test]
fn a_stack_of_the_kernel_that_was_cut() {
    let text = "Jan 24 22:35:30 host kernel: VERIFY3(0 == alloc(hdr)) failed (0 == 0)\nJan 24 22:35:30 host kernel: PANIC at arc.c:5245:arc_read()\nJan 24 22:35:30 host kernel: Showing stack for process 12605\nJan 24 22:35:30 host kernel: Call Trace:\nJan 24 22:35:30 host kernel:  dump_stack+0x5c/0x85\nJan 24 22:35:30 host kernel:  spl_panic+0xc8/0x110 [spl]\nJan 24 22:35:30 host kernel:  ? dnode_setdirty+0x4d/0xf0 [zfs]\n";
    assert_eq!(place(text), None);
    assert_eq!(whose(text), "unknown");
}

/// Valgrind's words of an address that it does not know end as those of freed memory do.
#[test]
fn valgrind_and_an_address_next_to_null() {
    let text = "==12== Memcheck, a memory error detector\n==12== Command: ./shop\n==12== \n==12== Invalid read of size 8\n==12==    at 0x10A3B4: total (cart.c:12)\n==12==    by 0x10A4C5: main (main.c:7)\n==12==  Address 0x10 is not stack'd, malloc'd or (recently) free'd\n==12== \n";
    expect(
        text,
        "Valgrind: Invalid read where there is no block, next to null",
        &["A pointer that was never set"],
        &["after it had been freed"],
    );
    let far = text.replace("0x10 is", "0x5203d98 is");
    expect(&far, "Valgrind: Invalid read where there is no block", &[], &["next to null"]);
}

/// Old releases of Rust name the functions of their library without its name.
#[test]
fn a_panic_of_an_old_rust() {
    let text = "thread '<main>' panicked at 'called `Option::unwrap()` on a `None` value', ../src/libcore/option.rs:330\nstack backtrace:\n   1:     0x7f2b0a3f6a20 - sys::backtrace::tracing::imp::write::hf7e21f48f7cb711bEju\n   2:     0x7f2b0a3f9a5b - panicking::default_handler::_<closure>::closure.42502\n   3:     0x7f2b0a3c9d1d - sys_common::unwind::begin_unwind_inner::hf13a3e016c1e78e1bct\n   4:     0x7f2b0a3f5f51 - rust_begin_unwind\n   5:     0x7f2b0a424c9f - panicking::panic_fmt::h9f005ee999496200zYL\n   6:     0x7f2b0a31d5a4 - option::Option<T>::unwrap::h16515609606882990218\n   7:     0x7f2b0a31d1f0 - shop::total::hdeadbeef\n";
    assert_eq!(place(text).as_deref(), Some("shop::total::hdeadbeef"));
}

/// LLDB names images of Apple's without their path.
#[test]
fn lldb_names_the_systems_libraries() {
    let text = "* thread #1, queue = 'com.apple.main-thread', stop reason = signal SIGSTOP\n  * frame #0: 0x00000001953ce7d8 libsystem_kernel.dylib`__psynch_mutexwait + 8\n    frame #1: 0x0000000195467ab8 libsystem_pthread.dylib`_pthread_mutex_lock_slow + 264\n    frame #2: 0x0000000194ba2f9c libobjc.A.dylib`recursive_mutex_tt<false>::lock() + 16\n    frame #3: 0x0000000194b9bbf8 libobjc.A.dylib`objc_sync_enter + 36\n    frame #4: 0x0000000100062e7c Shop`-[Cart total] + 88 at Cart.m:108\n";
    assert_eq!(place(text).as_deref(), Some("-[Cart total]"));
}

/// Classes of Java are none of .NET's, though their rows look alike in consoles.
#[test]
fn an_exception_of_java_is_none_of_dot_net() {
    let text = "java.lang.IllegalStateException: \n  at com.example.Cart.total (Cart.java:12)\n  at com.example.Main.main (Main.java:7)\n";
    assert!(read(text).source.is_android_or_java());
    assert_eq!(place(text).as_deref(), Some("com.example.Cart.total"));
    let play = "Exception com.facebook.react.common.JavascriptException:\n  at com.facebook.react.modules.core.ExceptionsManagerModule.reportException (ExceptionsManagerModule.java:72)\n  at java.lang.reflect.Method.invoke\n";
    assert_eq!(place(play), None);
}

/// What is thrown once more by a run loop tells nothing of the crash reporter's handler.
#[test]
fn a_handler_behind_a_rethrow_is_no_place() {
    let text = "Exception Type:  EXC_CRASH (SIGABRT)\nCrashed Thread:  2\n\nThread 2 Crashed:\n0   libsystem_kernel.dylib  0x1980371e0 __pthread_kill + 8\n1   libsystem_c.dylib  0x197fac978 abort + 108\n2   Shop  0x1000a1234 uncaught_exception_handler + 32\n3   CoreFoundation  0x182a2a1b0 __handleUncaughtException + 652\n4   libobjc.A.dylib  0x1974d3f3c _objc_terminate() + 112\n5   libc++abi.dylib  0x197290af8 std::__terminate(void (*)()) + 16\n6   libc++abi.dylib  0x1972908f0 __cxa_rethrow + 144\n7   libobjc.A.dylib  0x1974d3e04 objc_exception_rethrow + 44\n8   CoreFoundation  0x182935e3c CFRunLoopRunSpecific + 552\n9   WebCore  0x192e4d1a8 RunWebThread(void*) + 468\n";
    assert_ne!(place(text).as_deref(), Some("uncaught_exception_handler"));
}

/// Where Crashlytics heads a stack with the queue, that is not the main thread's either.
#[test]
fn uikit_on_a_queue_of_crashlytics() {
    let text = "Crashed: com.apple.root.default-qos\nEXC_BAD_ACCESS KERN_INVALID_ADDRESS 0x0000000000000010\n0  libobjc.A.dylib  0x1f40 objc_release + 16\n1  UIKitCore  0xfd3e8 -[UILabel setText:] + 40\n2  Shop  0x1a2b4 -[Cart total] + 12 (Cart.m:12)\n";
    let has = |text: &str| format!("{:?}", explained(text)).contains("which is not the main thread's");
    assert!(has(text));
    assert!(!has(&text.replace("com.apple.root.default-qos", "com.apple.main-thread")));
    assert!(!has(&text.replace("com.apple.root.default-qos", "WebThread")));
}

/// The thread that Crashlytics records exceptions on is nobody's.
#[test]
fn the_recorder_of_exceptions_is_no_place() {
    let text = "# Platform: ios\n\n#0. Crashed: com.twitter.crashlytics.ios.exception\n0  Shop  0x392a25 CLSProcessRecordAllThreads (CLSProcess.c:376)\n1  Shop  0x3869ed CLSHandler (CLSHandler.m:26)\n2  libdispatch.dylib  0x1b076083 _dispatch_client_callout + 22\n";
    expect(text, "An uncaught exception, which the text does not name", &["the crash reporter's own"], &[]);
    assert_eq!(place(text), None);
    assert_eq!(whose(text), "unknown");
}

/// Foundation's word of auto layout is a warning.
#[test]
fn auto_layout_off_the_main_thread() {
    let text = "2026-09-11 12:54:27.252 Shop[58:84] This application is modifying the autolayout engine from a background thread, which can lead to engine corruption and weird crashes.  This will cause an exception in a future release.\n Stack:(\n\t0   CoreFoundation  0x0000000106615f65 __exceptionPreprocess + 165\n\t1   libobjc.A.dylib  0x0000000105c4adeb objc_exception_throw + 48\n\t2   Shop  0x0000000100012345 -[Cart total] + 8\n)\n";
    expect(
        text,
        "This application is modifying the autolayout engine from a background thread, which can lead to engine corruption and weird crashes. This will cause an exception in a future release.",
        &["the process went on"],
        &["nobody caught it"],
    );
}

/// What a crash of Ruby's has of machine code, also as macOS prints it, and of the functions in C that its frames name.
#[test]
fn a_crash_of_ruby() {
    let apples = "-- C level backtrace information ----------------\n0   libruby.2.1.0.dylib  0x0000000107e6f546 rb_vm_bugreport + 134\n1   libruby.2.1.0.dylib  0x0000000107df2249 sigsegv + 153\n2   libsystem_platform.dylib  0x00007fff964405aa _sigtramp + 26\n3   cart_native.bundle  0x00000001084302d2 cart_total + 210\n4   libruby.2.1.0.dylib  0x0000000107df2349 rb_funcall + 3\n";
    expect(apples, "Ruby crashed", &["SIGSEGV", "cart_total"], &[]);
    assert_eq!(whose(apples), "sdk");
    let linux = "'-- C level backtrace information -----\n/usr/lib/libruby.so.3.1(rb_print_backtrace+0x11) [0x7fdc2222ca28] vm_dump.c:759\n/usr/lib/libruby.so.3.1(sigsegv+0x49) [0x7fdc221827c9] signal.c:964\n/lib/libpthread.so.0(__restore_rt+0x0) [0x7fdc21f25140]\n/app/vendor/gems/cart-0.3/lib/cart.so(cart_total+0x8) [0x7fdc2220e298]\n/usr/lib/libruby.so.3.1(rb_call0+0x1df) [0x7fdc2221fa2f]\n";
    expect(linux, "Ruby crashed", &["SIGSEGV", "cart_total"], &[]);
    assert_eq!(whose(linux), "sdk");
    let control = "/app/shop.rb:41: [BUG] Segmentation fault at 0x00000000000000\n\n-- Control frame information ----------\nc:0003 p:---- s:0026 e:000025 CFUNC  :encode\nc:0002 p:0178 s:0022 e:000021 METHOD /app/shop.rb:41\nc:0001 p:0000 s:0002 E:0020d0 (none) [FINISH]\n\n-- Ruby level backtrace information ----\n-e:1:in `<main>'\n";
    assert_eq!(place(control).as_deref(), Some("(shop.rb)"));
    let names: Vec<_> = read(control).process.backtraces[0]
        .frames
        .iter()
        .flat_map(|it| it.names().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert_eq!(names, ["encode", "(shop.rb)"]);
}

/// A bad access in the C library's allocator blames nobody; what stands between rows that count on does not end a stack.
#[test]
fn a_bad_access_in_the_allocator() {
    let text = "Program received signal SIGSEGV, Segmentation fault.\n(gdb) bt\n#0  0x00007f10 in _int_free () from /usr/lib/libc.so.6\n#1  0x00007f20 in CRYPTO_free () from /usr/lib/libcrypto.so.1\n.0.0\n#2  0x00007f30 in SSL_free () from /usr/lib/libssl.so.1.0.0\n\n#3  0x00007f40 in cart_close (cart=0x55) at cart.c:12\n#4  0x00007f50 in main () at main.c:3\n";
    expect(
        text,
        "Damaged heap, or a pointer that is no block of it (SIGSEGV in the allocator)",
        &["freed twice"],
        &[],
    );
    assert_eq!(whose(text), "unknown");
    assert_eq!(read(text).process.threads[0].frames.len(), 5);
}

/// gdb shows which argument of the program's own function is null, where a library that has no arguments followed it.
#[test]
fn a_null_argument() {
    let text = "Program terminated with signal 11, Segmentation fault.\n#0  0xf76e1714 in cart_reset () from /app/libcart.so\n#1  0x0805deb7 in total (cart=0x0, count=3) at shop.c:44\n#2  0x0804fbd0 in main () at shop.c:9\n";
    expect(text, "The program got SIGSEGV", &["`cart` is null"], &["`count`"]);
}

/// Flutter's errors of plugins say what they stand for; what another package calls is a library.
#[test]
fn a_plugin_of_flutter_that_is_missing() {
    let text = "19:08:21.757 26 info flutter.tools [VERBOSE-2:ui_dart_state.cc(148)] Unhandled Exception: MissingPluginException(No implementation found for method total on channel cart)\n19:08:21.757 27 info flutter.tools #0      MethodChannel.invokeMethod (package:flutter/src/services/platform_channel.dart:300:7)\n19:08:21.757 29 info flutter.tools #1      Cart.total (package:cart/cart.dart:33:27)\n19:08:21.757 32 info flutter.tools #2      ShopState.build (package:shop/main.dart:33:15)\n";
    expect(
        text,
        "Unhandled exception: MissingPluginException(No implementation found for method total on channel cart)",
        &["built anew", "the plugin is not there"],
        &[],
    );
    assert_eq!(whose(text), "sdk");
}

/// Google Play's pages have a thread's heading twice, blank lines, and places that are no files.
#[test]
fn a_hang_as_google_play_shows_it() {
    let text = "\"main\" tid=1 Blocked\n\"main\" prio=5 tid=1 Blocked\n  | sysTid=7789 nice=-10 cgrp=default\n \n  at com.example.ads.v.E (com.example.part@20290004@20290004.249178941)\n- waiting to lock <0x0fe119da> (a com.example.ads.v) held by thread 5\n \n  at com.example.ads.t.F (com.example.part@20290004@20290004.249178941:8)\n \n  at android.os.Looper.loop (Looper.java:164)\n";
    expect(
        text,
        "ANR: the app did not respond; the main thread waits for a lock",
        &["which thread 5 holds"],
        &["could not be taken"],
    );
    assert_eq!(read(text).process.threads.len(), 1);
}

/// Crashlytics' pages have rows of Java without the word before them.
#[test]
fn rows_of_java_as_crashlytics_shows_them() {
    let text = "Fatal Exception: java.lang.NullPointerException\nAttempt to invoke virtual method 'x' on a null object reference\ncom.example.ads.zza.zzc (zza.java:10)\nandroid.os.Handler.dispatchMessage (Handler.java:110)\n";
    expect(
        text,
        "java.lang.NullPointerException: Attempt to invoke virtual method 'x' on a null object reference",
        &["a reference that is null"],
        &[],
    );
    assert_eq!(place(text).as_deref(), Some("com.example.ads.zza.zzc"));
}

/// An exception that another process handed back was not thrown where its stack begins.
#[test]
fn an_exception_of_another_process() {
    let text = "java.lang.NullPointerException: no bundle\n\tat android.os.Parcel.createException(Parcel.java:2410)\n\tat android.os.Parcel.readException(Parcel.java:2393)\n\tat android.view.IWindowManager$Stub$Proxy.getSupported(IWindowManager.java:6342)\n\tat com.example.shop.Cart.total(Cart.java:7)\n";
    expect(
        text,
        "java.lang.NullPointerException: no bundle",
        &["IWindowManager$Stub$Proxy.getSupported` called", "handed back"],
        &[],
    );
}

/// Go's runtime says of a signal for an address next to null that a pointer was nil; the line may have been cut, or a number masked.
#[test]
fn a_nil_pointer_of_go_without_its_head() {
    let text = "[signal SIGSEGV: segmentation violation code=0x1 addr=0x8 pc=0x796022]\n\ngoroutine XXXX [running]:\nexample.com/shop.Cart.Total({0x0, 0x1})\n\t/src/shop/cart.go:41 +0x42\n";
    expect(
        text,
        "Go panic: invalid memory address or nil pointer dereference",
        &["A nil pointer was followed."],
        &[],
    );
    assert_eq!(place(text).as_deref(), Some("example.com/shop.Cart.Total"));
}

/// A main thread that is below one call in all samples hangs; one that waits for events does not.
#[test]
fn samples_of_one_call() {
    let text = "Analysis of sampling Shop (pid 33) every 1 millisecond\nProcess:         Shop [33]\n\nCall graph:\n    2598 Thread_81   DispatchQueue_1: com.apple.main-thread  (serial)\n    + 2598 start  (in libdyld.dylib) + 1  [0x7fffa09e2255]\n    +   2598 main  (in Shop) + 4  [0x10046f800]\n    +     2598 NSApplicationMain  (in AppKit) + 1237  [0x7fff88f7fd80]\n    +       2598 -[NSApplication run]  (in AppKit) + 1002  [0x7fff88fb54b1]\n    +         2598 -[Cart total]  (in Shop) + 33  [0x10046f961]\n    +           2598 -[NSCarbonMenu perf\n";
    expect(
        text,
        "Samples of Shop [33]: the main thread did one thing all the time",
        &["In all 2598 samples"],
        &[],
    );
    assert_eq!(
        whose(
            &text
                .replace("    +         2598 -[Cart total]  (in Shop) + 33  [0x10046f961]\n", "")
                .replace("    +   2598 main  (in Shop) + 4  [0x10046f800]\n", "")
        ),
        "unknown"
    );
    let bare = "Thread_2166370   DispatchQueue_1: com.apple.main-thread  (serial)\n  NSHostingView.layout()  (in SwiftUI)\n    Cart.total.getter  (in Shop) + 220\n      __psynch_mutexwait  (in libsystem_kernel)      <- blocked\n";
    expect(bare, "Samples of the process: nothing crashed", &["waits for a mutex"], &[]);
    assert_eq!(place(bare).as_deref(), Some("Cart.total.getter"));
}

/// Libraries that a package manager installed are nobody's own.
#[test]
fn libraries_of_package_managers() {
    let text = "[23470] signal (11.2): Segmentation fault: 11\nin expression starting at none:0\ncart_pick at /opt/homebrew/Cellar/cart/8.10.0/lib/libcart.4.dylib (unknown line)\ntotal_92891 at /home/u/.julia/packages/Shop/a/src/shop.jl:3\n";
    expect(text, "Julia crashed: Segmentation fault: 11", &["cart_pick"], &[]);
    assert_eq!(whose(text), "sdk");
}

/// Panics about sleep and drivers, by the kernel's words.
#[test]
fn panics_of_power_and_drivers() {
    for (words, title) in [
        (
            "Wake transition timed out after 180 seconds while calling power state change callbacks. Suspected bundle: com.example.driver. Thread 0xe575.",
            "Kernel panic: waking up took too long",
        ),
        (
            "busy timeout[0], (60s): 'ExampleController' @IOService.cpp:5529",
            "Kernel panic: a driver did not become ready",
        ),
    ] {
        let text = format!(
            "panic(cpu 0 caller 0xffffff801bf92217): {words}\nBacktrace (CPU 0), Frame : Return Address\n0xffffffd8a7783710 : 0xffffff801b97eff7 mach_kernel : _machine_switch_context + 0xd7\n0xffffffd8a7897cd0 : 0xffffff7fb07b001d com.example.driver\n"
        );
        expect(&text, title, &[], &[]);
        assert_eq!(
            read(&text).process.threads[0].frames[1].image_name.as_deref(),
            Some("com.example.driver")
        );
    }
}

/// Images beside that of `main` are libraries, where no list of images tells it.
#[test]
fn an_image_beside_mains() {
    let text = "Crashed: com.apple.main-thread\nEXC_BAD_ACCESS KERN_INVALID_ADDRESS 0x0000000000000010\n0  CartKit  0x1f40 -[CartKit total] + 16\n1  UIKitCore  0xfd3e8 UIApplicationMain + 40\n2  Shop  0x1a2b4 main + 12 (main.m:12)\n";
    assert_eq!(whose(text), "sdk");
    assert_eq!(whose(&text.replace("CartKit  0x", "Shop  0x")), "app");
}

/// A fault of the kernel that is not the first since it started, and what the processor said of it.
#[test]
fn a_later_oops() {
    let text = "[   57.658354] BUG: unable to handle page fault for address: ffff888058a67000\n[   57.659526] #PF: supervisor write access in kernel mode\n[   57.659526] #PF: error_code(0x000b) - reserved bit violation\n[   57.659526] Oops: 000b [#3] SMP NOPTI\n[   57.659526] CPU: 1 PID: 650 Comm: cart Tainted: G      D 5.2.0 #15\n[   57.659526] RIP: 0010:cart_clear+0x12/0x40\n";
    expect(
        text,
        "BUG: unable to handle page fault for address: ffff888058a67000",
        &["the table itself was overwritten", "oops 3 since the start"],
        &[],
    );
    let first = text
        .replace("[#3]", "[#1]")
        .replace("0x000b) - reserved bit violation", "0x0002) - not-present page");
    expect(
        &first,
        "BUG: unable to handle page fault for address: ffff888058a67000",
        &[],
        &["since the start", "overwritten"],
    );
}

/// The reason alone, as pages of trackers have it.
#[test]
fn a_reason_of_foundations() {
    let text = "**Context**\n\n*** -[__NSArrayM objectAtIndex:]: index 0 beyond bounds for empty array\n0 CoreFoundation | ___exceptionPreprocess + 124\n";
    expect(
        text,
        "Uncaught exception: *** -[__NSArrayM objectAtIndex:]: index 0 beyond bounds for empty array",
        &["outside of the container"],
        &[],
    );
}

/// One thread of a hang that is not the main one tells nothing.
#[test]
fn a_hang_without_its_main_thread() {
    let text = "\"worker\" prio=5 tid=28 Waiting\n  | sysTid=24664 nice=0\n  at java.lang.Object.wait (Native method)\n- waiting on <0x0cda70b3> (a java.lang.Object)\n  at com.example.shop.Pool.run (Pool.java:164)\n";
    assert_eq!((place(text), whose(text)), (None, "unknown"));
}

/// What exceptions of Android's own and messages of its libraries stand for.
#[test]
fn exceptions_of_android() {
    let of = |head: &str| {
        format!(
            "FATAL EXCEPTION: main\nProcess: com.example.shop, PID: 12\n{head}\n\tat android.app.ActivityThread.main(ActivityThread.java:1)\n"
        )
    };
    let text = of("android.view.WindowManager$BadTokenException: Unable to add window");
    expect(
        &text,
        "android.view.WindowManager$BadTokenException: Unable to add window",
        &["an activity that is gone"],
        &[],
    );
    let text =
        of("java.lang.IllegalStateException: Module with the Main dispatcher is missing. Add dependency");
    expect(
        &text,
        "java.lang.IllegalStateException: Module with the Main dispatcher is missing. Add dependency",
        &["kotlinx-coroutines-android is not in the app"],
        &["A call came at a time"],
    );
}

/// Rows that people left out do not end a stack without addresses.
#[test]
fn a_stack_with_gaps() {
    let text = "Thread 15 Crashed:\n0  libdispatch.dylib  _dispatch_assert_queue_fail\n5  Shop.debug.dylib   closure #1 in static Cart.total(at:)\n7  Shop.debug.dylib   static Cart.total(at:) (Cart.swift:250)\n";
    expect(text, "Code ran on the wrong queue", &["Cart.total"], &[]);
    assert_eq!(read(text).process.threads[0].frames.len(), 3);
}

/// gdb's frame without a number, and Xcode's list of frames with functions that are inlined.
#[test]
fn frames_as_debuggers_show_them_otherwise() {
    let text = "Program received signal SIGSEGV, Segmentation fault.\ncart_total (cart=0x55555574fae8) at shop/cart.c:697\n697\t  if(cart->name[0] == '[') {\n";
    expect(text, "The program got SIGSEGV", &["cart_total"], &[]);
    assert_eq!(place(text).as_deref(), Some("cart_total"));
    let text = "#0\t(null) in Swift runtime failure: Index out of range ()\n#1\t(null) in specialized _ContiguousArrayBuffer.firstElementAddress.getter ()\n#2\t0x00000001044ea894 in Cart.total(_:) at /src/Cart.swift:534\n#3\t(null) in @objc Cart.total(_:) ()\n";
    expect(text, "Swift runtime failure: Index out of range", &[], &["(null)"]);
    assert_eq!(place(text).as_deref(), Some("Cart.total(_:)"));
}

/// The oops of an old kernel names where it was by `IP`; what only fills memory for its caller is no place.
#[test]
fn an_oops_of_an_old_kernel() {
    let text = "Mar 12 14:07:43 host kernel: [  267.752739] BUG: unable to handle kernel paging request at ffff88009d5e3000\nMar 12 14:07:43 host kernel: [  267.761826] IP: [<ffffffffa0a42101>] cart_init+0x101/0x1000 [cart]\nMar 12 14:07:43 host kernel: [  267.779723] Oops: 0000 [#1] SMP \n";
    assert_eq!(place(text).as_deref(), Some("cart_init"));
    assert_eq!(whose(text), "sdk");
    assert_eq!(whose(&text.replace("cart_init", "memset_erms").replace(" [cart]", "")), "unknown");
}

/// What reporters head the stack of a hang with.
#[test]
fn a_hang_of_a_reporter() {
    let text = "App Hang: The app was terminated while unresponsive\n\n0  libsystem_kernel.dylib semaphore_wait_trap\n1  libdispatch.dylib      _dispatch_semaphore_wait_slow\n2  Shop                   Cart.total (Cart.swift:29:24)\n3  libdispatch.dylib      __dispatch_call_block_and_release\n";
    expect(text, "The app hung", &["waits for a semaphore"], &[]);
}

/// Android's log of an app that did not respond, without its trace; and a lock as Dalvik has it.
#[test]
fn a_hang_in_androids_log() {
    let text = "09-22 18:49:03.613 951-969/? E/ActivityManager: ANR in com.example.shop (com.example.shop/.Main)\n  PID: 27003\n  Reason: Input dispatching timed out (Waiting to send non-key event because the touched window has not finished.)\n  Load: 12.25 / 10.66 / 8.94\n";
    expect(text, "ANR: Input dispatching timed out; no main thread in the trace", &[], &[]);
    let dalvik = "----- pid 6945 at 2015-02-22 12:52:51 -----\nCmd line: com.example.shop\n\nDALVIK THREADS:\n\"main\" prio=5 tid=1 MONITOR\n  | sysTid=6945 nice=0\n  at com.example.ads.ae.get((null):~-1)\n  - waiting to lock <0x430caa90> held by tid=26 (fetcher)\n  at com.example.shop.Cart.total(Cart.java:23)\n";
    expect(
        dalvik,
        "ANR: the app did not respond; the main thread waits for a lock",
        &["which thread 26 holds"],
        &[],
    );
}

/// The exception of an export whose rows were cut off.
#[test]
fn an_export_without_rows() {
    let text = "# Crashlytics - Stack trace\n# Platform: apple\n\nFatal Exception: NSRangeException\nindex 3 beyond bounds\n\nCrashed: com.google.firebase.crashlytics.ios.exceptionSHOP\n0  SHOP\n";
    expect(text, "Uncaught NSRangeException: index 3 beyond bounds", &["outside of the container"], &[]);
    assert_eq!(place(text), None);
}

/// Apple numbers the main thread 0.
#[test]
fn uikit_on_a_later_thread() {
    let text = "Exception Type:  SIGSEGV\nException Codes: SEGV_ACCERR at 0x10\nCrashed Thread:  5\n\nThread 5 Crashed:\n0   UIKit  0x0000000187f2cf70 +[UIViewAnimationState pop] + 252\n1   UIKit  0x0000000187f43e94 -[UIButton layoutSubviews] + 104\n2   Shop  0x00000001002ccb78 -[Cart total] + 8\n";
    let has = |text: &str| format!("{:?}", explained(text)).contains("which is not the main thread");
    assert!(has(text));
    assert!(!has(&text.replace("Thread 5", "Thread 0").replace("Thread:  5", "Thread:  0")));
}

/// Obfuscated classes of the system's web view name its package in place of a file.
#[test]
fn javas_side_of_the_web_view() {
    let text = "FATAL EXCEPTION: main\nProcess: com.example.shop, PID: 12\njava.lang.IllegalStateException: gone\n\tat WV.h22.run(chromium-SystemWebViewGoogle6432.aab-beta-777802813:41)\n\tat android.os.Handler.handleCallback(Handler.java:938)\n";
    assert_ne!(whose(text), "app");
}
