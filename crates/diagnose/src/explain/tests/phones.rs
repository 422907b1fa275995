//! What phones and Macs send, as people paste it: cut, without addresses, with a log's words around it. Each text is our own, of
//! the shape that was seen in a public issue, whose maintainers said what it was.

use super::{explained, read};
use crate::blamed;

/// The title, and that the explanation holds some texts and not others.
#[track_caller]
pub(super) fn expect(text: &str, title: &str, holds: &[&str], lacks: &[&str]) {
    let explanation = explained(text);
    let lists = [&explanation.evidence, &explanation.causes, &explanation.next_steps];
    let heads = [&explanation.title, &explanation.summary];
    let all: Vec<_> = heads.into_iter().chain(lists.into_iter().flatten()).cloned().collect();
    let all = all.join("\n");
    assert_eq!(explanation.title, title, "{all}");
    holds.iter().for_each(|part| assert!(all.contains(part), "{part:?} expected in:\n{all}"));
    lacks.iter().for_each(|part| assert!(!all.contains(part), "{part:?} not expected in:\n{all}"));
}

/// The name or address of the frame to look at first.
pub(super) fn place(text: &str) -> Option<String> {
    let report = read(text);
    let frame = blamed(&report)?.frame;
    let name = frame.names().next().map(str::to_owned);
    name.or_else(|| frame.address.map(|address| address.raw().to_string()))
}

/// Reporters head stacks by words that do not tell what was raised.
#[test]
fn functions_tell_what_reporters_do_not() {
    for (frames, title) in [
        (
            "0  libsystem_platform.dylib  0x1f97e01c4 _os_unfair_lock_recursive_abort + 36\n1  libsystem_platform.dylib  0x1f97dd55c _os_unfair_lock_lock_slow + 319\n",
            "Deadlock: a lock taken twice by one thread",
        ),
        (
            "0  libGPUSupport.dylib  0x2e21e8a6 _gpus_ReturnNotPermittedKillClient + 9\n",
            "Graphics work in the background",
        ),
        (
            "0  libsystem_kernel.dylib  0x1b400184c __pthread_kill + 8\n1  libsystem_c.dylib  0x193525934 abort + 100\n2  Metal  0x190a5c0f0 MTLReportFailure + 464\n",
            "Metal's validation stopped the process",
        ),
        (
            "0  libswiftCore.dylib  0x1016c3734 _assertionFailure(_:_:file:line:flags:) + 164\n1  libswiftCore.dylib  0x1015c8288 swift_unexpectedError + 26\n",
            "Swift: `try!` met an error",
        ),
        (
            "0  libsystem_kernel.dylib  0x181893048 __abort_with_payload + 8\n1  TCC  0x18480c8a0 __CRASHING_DUE_TO_PRIVACY_VIOLATION__ + 722\n",
            "Private data accessed without a usage description",
        ),
        (
            "0  Shop  0x1090e0a30 printStack + 56\n1  libsystem_platform.dylib  0x186a897a4 _sigtramp + 56\n2  libdispatch.dylib  0x1868fa4f4 _dispatch_assert_queue_fail + 112\n",
            "Code ran on the wrong queue",
        ),
    ] {
        for head in ["Crashed: com.apple.main-thread\n", "What is this?\n", "Thread 3 Crashed:\n"] {
            let text = format!("{head}{frames}3  Shop  0x1002b1ca4 Cart.load() + 12\n");
            assert_eq!(explained(&text).title, title, "{text}");
        }
    }
}

#[test]
fn ends_of_kotlin_and_dotnet() {
    let kotlin = "Crashed: com.apple.main-thread\n0  libsystem_kernel.dylib  0x1b4860ef4 __pthread_kill + 8\n1  libsystem_c.dylib  0x1b4711a54 abort + 104\n";
    expect(
        &format!(
            "{kotlin}2  Shop  0x1047360f4 (anonymous namespace)::processUnhandledException(ObjHeader*) + 43\n3  Shop  0x1047360f5 kfun:kotlin.collections#first(){{}} + 1\n4  Shop  0x1047360f6 kfun:shop.Cart#load(){{}} + 5\n"
        ),
        "Uncaught Kotlin exception",
        &["Uncaught Kotlin exception"],
        &["C++"],
    );
    let coroutine = format!(
        "{kotlin}2  Shop  0x1047360f4 ReportBacktraceToIosCrashLog(ObjHeader*) + 43\n3  Shop  0x1047360f5 kfun:kotlinx.coroutines#handleCoroutineException(kotlin.coroutines.CoroutineContext;kotlin.Throwable){{}} + 49\n"
    );
    expect(&coroutine, "Uncaught Kotlin exception in a coroutine", &["CoroutineExceptionHandler"], &[]);
    // Without addresses, as some reporters copy it.
    let bare = "0  libsystem_kernel.dylib  ___pthread_kill\n1  libsystem_c.dylib       _abort\n2  Shop                    konan::abort() (Shop)\n3  Shop                    (anonymous namespace)::terminateWithUnhandledException(ObjHeader*) (Shop)\n";
    expect(&format!("It ends so:\n{bare}"), "Uncaught Kotlin exception", &[], &[]);
    let console = "Uncaught Kotlin exception: shop.OrderException: no order\n    at 0   shared   0x1072e119b   kfun:kotlin.Throwable#<init>(kotlin.String?){} + 99 \n    at 1   shared   0x10766f09b   kfun:shop.Cart#load(){} + 351 \n";
    expect(console, "Uncaught shop.OrderException: no order", &["@Throws"], &["noted"]);
    assert_eq!(place(console).as_deref(), Some("kfun:shop.Cart#load(){}"));

    let mono = "Thread 0 Crashed:\n0  libsystem_kernel.dylib  0x18cdcad88 __pthread_kill + 8\n1  libsystem_c.dylib  0x18cc36940 abort + 112\n2  Shop  0x103349184 xamarin_initialize.cold.1 + 40\n3  Shop  0x10325a3d4 mono_invoke_unhandled_exception_hook + 84\n4  Shop  0x1031f19a0 mono_arm_throw_exception + 96\n5  Shop  0x102417034 Shop_Cart_Load + 84\n";
    expect(mono, "Uncaught .NET exception", &["Unhandled managed exception"], &["C++"]);
    assert_eq!(place(mono).as_deref(), Some("Shop_Cart_Load"));
    let fail_fast = "Exception Type:  EXC_CRASH (SIGABRT)\n\nThread 0 Crashed:\n0   libsystem_kernel.dylib 0x23ee7b1d0 __pthread_kill + 8\n1   shop 0x102cd3110 sigabrt_signal_handler + 196\n2   libsystem_platform.dylib 0x2b0b011b8 _sigtramp + 55\n3   libsystem_c.dylib 0x19b3fefcc abort + 147\n4   shop 0x102c21c90 ves_icall_System_Environment_FailFast + 196\n5   shop 0x102cd9a7c mono_interp_exec_method + 6648\n";
    expect(fail_fast, ".NET code ended the process: Environment.FailFast", &[], &[]);
}

/// The throw stands behind the handler that a runtime has for abort's signal, or the bridge of another language throws.
#[test]
fn throws_of_other_languages() {
    let head = "Last Exception Backtrace:\n0   CoreFoundation  0x1d3b30ec4 __exceptionPreprocess + 228\n1   libobjc.A.dylib  0x1d2d01a40 objc_exception_throw + 55\n";
    let react = format!(
        "{head}2   shop  0x101c9f478 RCTFatal + 447\n3   shop  0x101c9cf20 -[RCTExceptionsManager reportFatalException:stack:exceptionId:] + 491\n"
    );
    expect(
        &react,
        "Uncaught RCTFatalException: an error that React Native was told of, mostly one of JavaScript that nobody caught",
        &["only passes it on"],
        &[],
    );
    let dotnet = "Thread 0 Crashed:\n0   libsystem_kernel.dylib 0x1e72612d4 __pthread_kill + 8\n1   libsystem_c.dylib 0x19da95b08 abort + 127\n2   shop 0x106e5de80 sigabrt_signal_handler + 196\n3   libsystem_platform.dylib 0x2206a8ca8 _sigtramp + 55\n4   libsystem_c.dylib 0x19da95b08 abort + 127\n5   libobjc.A.dylib 0x1931d72b8 _objc_terminate() + 143\n6   libobjc.A.dylib 0x1931d53ac objc_exception_throw + 447\n7   shop 0x106b90f58 xamarin_process_managed_exception + 860\n";
    expect(dotnet, "Uncaught exception: a .NET exception that managed code did not catch", &[], &["C++"]);
    // The system's helper has a wrong name in stripped systems; forwarding throws for one reason.
    let forwarded = "Fatal Exception: NSInvalidArgumentException\n0  CoreFoundation  0x9cb4 __exceptionPreprocess\n1  libobjc.A.dylib  0x183d0 objc_exception_throw\n2  CoreFoundation  0x17eab8 +[NSObject(NSObject) _copyDescription]\n3  CoreFoundation  0x200e8 ___forwarding___\n4  CoreFoundation  0x86900 _CF_forwarding_prep_0\n5  Shop  0xf288 -[Cart load] + 87\n";
    expect(
        forwarded,
        "Uncaught NSInvalidArgumentException: a message that the object does not know (unrecognized selector)",
        &[],
        &["does not tell the reason"],
    );
}

#[test]
fn a_throw_without_names() {
    let text = "Process: Shop [1]\nOS Version: Watch OS 2.2.1 (13V420)\nException Type:  EXC_CRASH (SIGABRT)\n\nLast Exception Backtrace:\n(0x2d30401e 0x2ca72d02 0x2d303f60)\n";
    expect(text, "Uncaught Objective-C exception", &[], &["another process sent"]);
    assert_eq!(place(text), None);
}

/// A report that was cut before the thread that it blames may have another one, which is not to blame.
#[test]
fn the_blamed_thread_is_missing() {
    for line in ["Triggered by Thread:  23", "Crashed Thread:  7  Dispatch queue: com.apple.root.default-qos"]
    {
        let text = format!(
            "Process: Shop [1]\n{line}\nException Type:  EXC_CRASH (SIGABRT)\n\nThread 0:\n0   libsystem_kernel.dylib 0x1832a48b0 mach_msg_trap + 8\n1   Shop 0x100001000 main + 8\n"
        );
        expect(
            &text,
            "Abort (SIGABRT) without a reason in the report",
            &["The report ends before the stack of thread"],
            &[],
        );
        assert_eq!(place(&text), None, "{text}");
    }
}

#[test]
fn signatures_and_guards() {
    let page = "Process: Shop\nException Type: EXC_BAD_ACCESS (SIGKILL (Code Signature Invalid))\nException Codes: 0x0000000000000032\nTermination Reason: Namespace CODESIGNING, Code 2, Invalid Page\nTriggered by Thread: 0\n";
    expect(page, "Killed for a page of code whose signature does not fit", &[], &["null", "0x32"]);
    let guard = "Process: Shop [1]\nException Type:  EXC_GUARD\nException Subtype: GUARD_TYPE_FD\nException Message: CLOSE on file descriptor 0 (guarded with 0x08fd4dbfade2dead)\nException Note:  SIMULATED (this is NOT a crash)\nTriggered by Thread:  3\n\nThread 3 Crashed:\n0   libsystem_kernel.dylib 0x1a99dbf44 close + 8\n1   Shop 0x1036f715c closeSocket + 76\n";
    expect(
        guard,
        "Forbidden use of a file descriptor: CLOSE",
        &["let it pass", "closes a descriptor twice"],
        &["Somebody asked"],
    );
    assert_eq!(place(guard).as_deref(), Some("closeSocket"));
}

#[test]
fn names_that_are_none() {
    let text = "Exception Type: Unknown (SIGTRAP)\n\nThread 0 Crashed:\n0   libshop.so  0x7f97bfd274  <unknown> + 548006777460\n";
    assert!(!place(text).unwrap().contains("unknown"));
    let text = "Thread 0 Crashed:: main\n0   <translation info unavailable>  0x104b6ef08 ???\n1   libsystem_c.dylib  0x11eb0a252 abort + 466\n2   Shop  0x11eb0a253 Cart.load() + 4\n";
    expect(text, &explained(text).title, &["Rosetta"], &["translation info"]);
    assert_eq!(place(text).as_deref(), Some("Cart.load()"));
}

#[test]
fn words_of_apples_logs() {
    expect(
        "Every hour:\n    process shop[65] caught causing excessive wakeups. Observed wakeups rate (per sec): 493; Maximum permitted wakeups rate (per sec): 150\n",
        "Too many wake-ups: process shop[65] caught causing excessive wakeups. Observed wakeups rate (per sec): 493; Maximum permitted wakeups rate (per sec): 150",
        &[],
        &[],
    );
    expect(
        "08:52:24.043  kernel  memorystatus: Shop [15] exceeded mem limit: ActiveHard 50 MB (fatal)\n08:52:24.544  Process Shop [15] killed by jetsam reason per-process-limit\n",
        "Too much memory: Shop [15] exceeded mem limit: ActiveHard 50 MB (fatal)",
        &[],
        &[],
    );
    expect(
        "Process Shop [15] killed by jetsam reason highwater\n",
        "Killed for exceeding its memory mark",
        &[],
        &[],
    );
    for text in [
        "[access] This app has crashed because it attempted to access privacy-sensitive data without a usage description.  The app's Info.plist must contain an NSCameraUsageDescription key with a string value explaining to the user how the app uses this data.\n",
        "```\nShop[1:2] [access] This app has crashed because it attempted to access \nprivacy-sensitive data without a usage description.  The app's Info.plist must contain an \nNSCameraUsageDescription key with a string value explaining to the user how the app uses this \ndata.\n```\n",
        "> Termination Reason: TCC, This app has crashed because it attempted to access privacy-sensitive data without a usage description. The app's Info.plist must contain an NSCameraUsageDescription key with a string value explaining to the user how the app uses this data.\n",
    ] {
        expect(
            text,
            "Private data accessed without a usage description",
            &["The missing key is NSCameraUsageDescription."],
            &[],
        );
    }
}

#[test]
fn calls_of_jni() {
    let text = "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\npid: 1, tid: 2, name: render  >>> com.example.shop <<<\nsignal 6 (SIGABRT), code -1 (SI_QUEUE), fault addr --------\nAbort message: 'JNI DETECTED ERROR IN APPLICATION: java_object == null\n    in call to GetObjectClass\n    from boolean com.example.map.Map.draw(long)'\n    x0  0000000000000000  x1  0000000000002807\n";
    expect(
        text,
        "Misuse of JNI: java_object == null",
        &[
            "It was in the call of GetObjectClass, made by the native code of `boolean com.example.map.Map.draw(long)`.",
            "null was given where JNI takes none",
        ],
        &["deleted"],
    );
    let log = "19:06:32.604 23704-24169 com.example.shop      A  java_vm_ext.cc:570] JNI DETECTED ERROR IN APPLICATION: use of invalid jobject 0xcc\n19:06:32.604 23704-24169 com.example.shop      A  java_vm_ext.cc:570]     from int com.example.map.Map.draw(long)\n";
    expect(
        log,
        "Misuse of JNI: use of invalid jobject 0xcc",
        &["com.example.map.Map.draw(long)", "NewGlobalRef"],
        &[],
    );
}

#[test]
fn androids_web_view() {
    let text = "signal 5 (SIGTRAP), code 1 (TRAP_BRKPT)\n\nbacktrace:\n #00  pc 0000000000f73a88  /data/app/com.android.chrome-F4ci==/base.apk\n";
    expect(text, "Trap (SIGTRAP)", &["the system's web view"], &[]);
    let ended = "E/chromium: [ERROR:aw_browser_terminator.cc(123)] Renderer process (32341) crash detected (code 5).\nA/chromium: [FATAL:crashpad_client_linux.cc(667)] Render process (32341)'s crash wasn't handled by all associated  webviews, triggering application crash.\nA/libc: Fatal signal 5 (SIGTRAP), code -6 (SI_TKILL) in tid 32300 (shop), pid 32300\n";
    expect(
        ended,
        "The WebView's renderer crashed, and the app does not handle it: Render process (32341)'s crash wasn't handled by all associated webviews, triggering application crash.",
        &["onRenderProcessGone"],
        &[],
    );
}

#[test]
fn libraries_that_android_does_not_load() {
    let stack = "\tat java.lang.Runtime.loadLibrary0(Runtime.java:1081)\n\tat com.example.Shop.onCreate(Shop.java:22)\n";
    for (message, said) in [
        (
            "dlopen failed: \"/data/app/a/lib.so\" program alignment (4096) cannot be smaller than system page size (16384)",
            "pages of 16 KB",
        ),
        ("dlopen failed: /data/app/a/lib.so: has text relocations", "position-independent"),
        (
            "dlopen failed: cannot locate symbol \"aligned_alloc\" referenced by \"/data/app/a/lib.so\"...",
            "newer Android",
        ),
        (
            "dalvik.system.PathClassLoader[DexPathList[[zip file \"/a.apk\"]]] couldn't find \"liba.so\"",
            "not built or packaged",
        ),
        ("dlopen failed: library \"liba.so\" not found", "not packaged"),
        ("dlopen failed: \"/data/app/a/lib.so\" is 32-bit instead of 64-bit", "several ABIs"),
        ("No implementation found for int com.example.Shop.count()", "loadLibrary"),
    ] {
        let text = format!("java.lang.UnsatisfiedLinkError: {message}\n{stack}");
        expect(
            &text,
            &format!("java.lang.UnsatisfiedLinkError: {message}"),
            &[said],
            &["A native library or method was not found"],
        );
    }
}

/// A view that is told of changes which do not fit; the throw's helper bears the next function's name.
#[test]
fn batch_updates() {
    let text = "Exception Type:  EXC_CRASH (SIGABRT)\nCrashed Thread:  0\n\nApplication Specific Information:\n*** Terminating app due to uncaught exception 'NSInternalInconsistencyException', reason: 'Invalid batch updates detected: the number of rows is inconsistent.'\n\nThread 0 Crashed:\n0   CoreFoundation  0x1907d91b8 __exceptionPreprocess + 124\n1   libobjc.A.dylib 0x18f21055c objc_exception_throw + 56\n2   CoreFoundation  0x1907d908c -[NSException raise:format:] + 0\n3   UIKit  0x1968607f0 -[UICollectionViewData indexPathForItemAtGlobalIndex:] + 300\n";
    expect(
        text,
        "Uncaught NSInternalInconsistencyException: Invalid batch updates detected: the number of rows is inconsistent.",
        &["changes that do not fit its data"],
        &[],
    );
    assert_eq!(place(text).as_deref(), Some("-[UICollectionViewData indexPathForItemAtGlobalIndex:]"));
}

#[test]
fn logs_of_services_and_tools() {
    let short = "13:24:30 A libc : Fatal signal 11 (SIGSEGV), code 1, fault addr 0xa in tid 29 (1.gpu)\n13:24:30 A DEBUG : pid: 28, tid: 29, name: 1.gpu  >>> com.example.shop <<<\n13:24:30 A DEBUG : signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0xa\n13:24:30 A DEBUG : backtrace:\n13:24:30 A DEBUG : #00 pc 00204064  /data/app/com.example.shop-1/lib/arm/libflutter.so (offset 0x113000)\n";
    expect(short, "Null pointer access at 0xa", &["libflutter.so"], &[]);
    let tool = "[        ]       #00 pc 00000000004a3394  /data/app/com.example.shop-1/lib/arm64/libapp.so\n[  +21 ms]       #01 pc 00000000004a3244  /data/app/com.example.shop-1/lib/arm64/libapp.so\n";
    expect(tool, "Stacks without a signal", &["libapp.so"], &[]);
}

#[test]
fn pointers_that_read_as_text() {
    let text = "F libc : Fatal signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x5265766974616e in tid 27725 (mqt_js), pid 27682 (shop)\n";
    expect(
        text,
        "Access to memory that is not mapped, at 0x5265766974616e (SIGSEGV)",
        &["read \"nativeR\" as text"],
        &[],
    );
}
