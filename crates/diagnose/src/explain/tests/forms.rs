//! Texts of forms that were found in issues last: what happened, the place, and whose code it was. All are own ones.

use super::phones::{expect, place};
use super::read;
use crate::attribute::attribute;
use crate::explain::explain;
use crate::suspect::skip::is_reporters_name;
use backtrail_model::OwnerKind;

fn owner(text: &str) -> OwnerKind {
    let report = read(text);
    attribute(&report, &explain(&report)).verdict
}

#[test]
fn failed_checks_of_libraries() {
    let metal =
        "-[MTLDebugDevice validateBuffer:]:366: failed assertion `length 0x20 must not exceed 16 MB.'\n";
    expect(
        metal,
        "Metal's validation stopped the process: length 0x20 must not exceed 16 MB",
        &["device or simulator"],
        &[],
    );
    let ffmpeg = "Assertion ctx->lock failed at src/libavcodec/shop.c:155\n";
    expect(ffmpeg, "Assertion failed: ctx->lock", &["takes for granted"], &[]);
    let node = "/usr/bin/node[77]: ../src/pipe.cc:12:static void node::Pipe::Open(int): Assertion `(fd) >= (0)' failed.\n 1: node::Abort() [/usr/bin/node]\n 2: node::Assert(char const* const (*) [4]) [/usr/bin/node]\n 3: 0x14135d1 node::Pipe::Open(int) [/usr/bin/node]\n";
    expect(node, "Assertion failed: (fd) >= (0)", &["Node.js's own"], &[]);
    assert_eq!(place(node).as_deref(), Some("node::Pipe::Open(int)"));
    let addon = node.replace(
        "3: 0x14135d1 node::Pipe::Open(int) [/usr/bin/node]",
        "3: 0x1413abc shop::Open(int) [/srv/shop/build/shop.node]",
    );
    assert_eq!(place(&addon).as_deref(), Some("shop::Open(int)"));
    assert_eq!((owner(node), owner(&addon)), (OwnerKind::Unknown, OwnerKind::Sdk));
}

#[test]
fn a_changed_collection_is_where_it_was_walked() {
    let text = "*** Terminating app due to uncaught exception 'NSGenericException', reason: '*** Collection <__NSArrayM: 0x15> was mutated while being enumerated.'\n0   CoreFoundation   0x0000000182f642d8 __exceptionPreprocess + 132\n1   libobjc.A.dylib  0x0000000194c380e4 objc_exception_throw + 56\n2   CoreFoundation   0x0000000182f63c8c __NSFastEnumerationMutationHandler + 136\n3   MobileCoreServices  0x00000001859f2298 -[LSShop send] + 408\n4   libdispatch.dylib  0x00000001952b5994 _dispatch_call_block_and_release + 20\n";
    assert_eq!(place(text).as_deref(), Some("-[LSShop send]"));
}

#[test]
fn a_delegate_does_not_answer_for_what_it_calls() {
    let row = |number: u32, name: &str| format!("{number}   Shop   0x0000000102ab63a{number} {name} + 36\n");
    let head = "Thread 0 Crashed:\n0   libobjc.A.dylib   0x000000019f6de010 objc_retain + 16\n";
    let delegate = row(1, "-[AppDelegate application:openURL:]");
    assert_eq!(owner(&format!("{head}{delegate}")), OwnerKind::App);
    let delegate = row(2, "-[AppDelegate application:openURL:]");
    let called = format!("{head}{}{delegate}", row(1, "-[PayCart pay]"));
    assert_eq!(place(&called).as_deref(), Some("-[PayCart pay]"));
    assert_eq!(owner(&called), OwnerKind::Unknown);
}

#[test]
fn components_tell_whose_androids_frames_are() {
    let text = |class: &str| {
        format!(
            "java.lang.RuntimeException: Unable to start activity ComponentInfo{{io.example.shop/{class}}}: android.view.InflateException: Binary XML file line #12: Error inflating class io.example.shop.Line\n\tat android.app.ActivityThread.performLaunchActivity(ActivityThread.java:2200)\n\tat android.os.Looper.loop(Looper.java:136)\n"
        )
    };
    assert_eq!(owner(&text("io.example.shop.MainActivity")), OwnerKind::App);
    assert_eq!(owner(&text("com.other.pay.PayActivity")), OwnerKind::Unknown);
    let service = "android.app.RemoteServiceException: Context.startForegroundService() did not then call Service.startForeground(): ServiceRecord{f49 u0 io.example.shop/.Player}\n\tat android.app.ActivityThread$H.handleMessage(ActivityThread.java:1867)\n\tat android.os.Looper.loop(Looper.java:193)\n";
    assert_eq!(owner(service), OwnerKind::App);
}

#[test]
fn pools_and_runtimes_hide_who_it_was() {
    let pool = "Thread 3 Crashed:\n0   libobjc.A.dylib   0x000000019f6de010 objc_release + 16\n1   libobjc.A.dylib   0x000000019f6de110 AutoreleasePoolPage::releaseUntil(objc_object**) + 204\n2   libobjc.A.dylib   0x000000019f6de210 objc_autoreleasePoolPop + 244\n3   libdispatch.dylib   0x000000019f6de310 _dispatch_last_resort_autorelease_pool_pop + 44\n";
    expect(pool, "Released object in an autorelease pool", &["once too often"], &[]);
    assert_eq!(owner(pool), OwnerKind::Unknown);
}

#[test]
fn stacks_of_servers() {
    let perl = "Can't locate object method \"price\" via package \"Shop::Cart\" at /srv/shop/lib/Shop/Order.pm line 12.\n";
    expect(perl, "Can't locate object method \"price\" via package \"Shop::Cart\"", &["Perl"], &[]);
    let rust = "stack backtrace:\n   0: rust_begin_unwind\n             at /rustc/1/library/std/src/panicking.rs:584:5\n   1: core::result::unwrap_failed\n             at /rustc/1/library/core/src/result.rs:1785:5\n   2: shop::price\n             at ./src/shop.rs:17:19\n";
    assert_eq!(place(rust).as_deref(), Some("shop::price"));
    assert_eq!(owner(rust), OwnerKind::App);
    let java = "# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at pc=0x00007fb0b5c75557, pid=26, tid=14\n#\n# Problematic frame:\n# C  [libshop.so+0x3fb557]  shop::price() const+0x17\n#\n";
    assert_eq!(place(java).as_deref(), Some("shop::price() const"));
    assert_eq!(owner(java), OwnerKind::Sdk);
    // Who called the JDK is not in the text.
    assert_eq!(owner(&java.replace("libshop.so", "libzip.so")), OwnerKind::Unknown);
}

#[test]
fn a_demo_of_a_reporter_is_no_reporter() {
    assert!(is_reporters_name("sentry_backtrace::trace::current_stacktrace"));
    assert!(!is_reporters_name("sentry_ios_demo.ViewController.causeCrash"));
}
