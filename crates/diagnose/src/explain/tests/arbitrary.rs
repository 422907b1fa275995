//! Whatever a model holds, explaining and attributing end with an answer of bounded size.

use super::super::testing::report;
use super::super::{Explanation, LEADING, explain};
use crate::attribute;
use backtrail_core::{Arch, Avma, FrameAddress, Function, Symbol};
use backtrail_model::{
    AppInfo, Backtrace, Exception, Field, Frame, Image, Recursion, Register, Report, ReportedSymbol, Section,
    Termination, Thread,
};

/// A sequence of numbers without any rhyme: SplitMix64.
struct Dice(u64);

impl Dice {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).unwrap()
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| make(self))
    }

    fn some<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    /// Numbers around those that rules compare with.
    fn value(&mut self) -> u64 {
        let edges = [
            0,
            1,
            8,
            0x10,
            0x3fff,
            0x4000,
            0x32,
            0x101,
            0x201,
            1 << 47,
            u64::MAX,
            u64::MAX - 7,
            0x8bad_f00d,
            0x5555_5555_5555_5555,
            0x1_0000_0100,
            3 << 61,
            7 << 61,
        ];
        match self.below(3) {
            0 => self.number(),
            1 => self.of(&edges).wrapping_add(self.number() % 3),
            _ => self.of(&edges),
        }
    }
}

/// Words that rules look for, cut and joined at random.
const WORDS: [&str; 60] = [
    "",
    " ",
    "\n",
    "'",
    "\"",
    ":",
    "::",
    "(",
    ")",
    ",",
    "|",
    "%",
    "0x",
    "0x8",
    " at 0x10",
    "->",
    "--->",
    "ä",
    "🦀",
    "\u{0}",
    "KERN_INVALID_ADDRESS",
    "KERN_PROTECTION_FAILURE at 0x0",
    "EXC_I386_GPFLT",
    "possible pointer authentication failure",
    "*** Terminating app due to uncaught exception ",
    "reason: '",
    "terminating with uncaught exception of type ",
    "Fatal error: ",
    ": file ",
    ", line ",
    "Swift runtime failure: ",
    "BUG IN CLIENT OF LIB",
    "selector name:",
    "malloc",
    "*** error for object ",
    "being freed",
    "Assertion failed: ",
    ", function",
    "time allowance of ",
    "12.5",
    "Elapsed application CPU time (seconds): 0.1, 0% CPU",
    "WatchdogEvent:",
    "Library not loaded:",
    "Symbol not found:",
    "NSFooUsageDescription",
    "code:0x8BADF00D",
    "stack size exceeded",
    "STACK GUARD",
    "16bc7c000-16f480000",
    "r--/rwx",
    "for thread 1",
    "guarded with 0x08fd4dbfade2dead",
    "file descriptor 7",
    "CLOSE",
    "WAKEUPS",
    "GUARD_TYPE_FD",
    "SIGSEGV",
    "NON-FATAL",
    "SIMULATED",
    "received signal SIGABRT",
];

fn text(dice: &mut Dice) -> String {
    let parts = dice.some(6, |dice| {
        let word = dice.of(&WORDS);
        let end = (0..=dice.below(word.len() + 1)).rev().find(|end| word.is_char_boundary(*end)).unwrap_or(0);
        if dice.below(4) == 0 { word.get(..end).unwrap_or_default() } else { word }
    });
    parts.concat()
}

fn exception(dice: &mut Dice) -> Exception {
    let kinds = [
        "EXC_BAD_ACCESS",
        "EXC_CRASH",
        "EXC_BREAKPOINT",
        "EXC_BAD_INSTRUCTION",
        "EXC_ARITHMETIC",
        "EXC_RESOURCE",
        "EXC_GUARD",
        "00000020",
        "EXC_NEW",
        "",
    ];
    let signals = [
        "SIGSEGV",
        "SIGBUS",
        "SIGABRT",
        "SIGKILL",
        "SIGILL",
        "SIGTRAP",
        "SIGFPE",
        "SIGQUIT",
        "Code Signature Invalid",
        "SIGNEW",
        "",
    ];
    Exception {
        kind: dice.maybe(|dice| dice.of(&kinds).to_owned()),
        signal: dice.maybe(|dice| dice.of(&signals).to_owned()),
        codes: dice.maybe(text),
        raw_codes: dice.some(3, Dice::value),
        subtype: dice.maybe(text),
        message: dice.maybe(text),
        note: dice.maybe(text),
        address: dice.maybe(|dice| Avma::new(dice.value())),
    }
}

fn frame(dice: &mut Dice) -> Frame {
    let functions = [
        "objc_msgSend",
        "objc_release",
        "abort",
        "_sigtramp",
        "__ulock_wait",
        "CFRelease",
        "main",
        "std::terminate()",
        "",
        "-[Foo bar]",
        "<redacted>",
        "Swift runtime failure: Index out of range",
        "AutoreleasePoolPage::pop",
    ];
    let mut frame = Frame::new(u32::try_from(dice.below(200)).unwrap());
    frame.address = dice.maybe(|dice| {
        let address = Avma::new(dice.value());
        if dice.below(2) == 0 { FrameAddress::Exact(address) } else { FrameAddress::Return(address) }
    });
    // Positions beyond the list of images too.
    frame.image = dice.maybe(|dice| dice.below(9));
    frame.image_name = dice
        .maybe(|dice| dice.of(&["libobjc.A.dylib", "Demo", "???", "", "libsystem_malloc.dylib"]).to_owned());
    frame.image_offset = dice.maybe(Dice::value);
    frame.reported = dice.maybe(|dice| ReportedSymbol {
        name: dice.of(&functions).to_owned(),
        offset: dice.maybe(Dice::value),
        file: dice.maybe(text),
        line: Some(0),
        column: None,
    });
    frame.functions = dice.some(2, |dice| Function {
        name: dice.of(&functions).to_owned(),
        file: dice.maybe(text),
        ..Function::default()
    });
    frame.symbol = dice.maybe(|dice| Symbol {
        name: dice.of(&functions).to_owned(),
        linkage_name: None,
        offset: dice.value(),
    });
    frame
}

fn thread(dice: &mut Dice) -> Thread {
    let names = [
        "pc", "sp", "fp", "lr", "x0", "x1", "x16", "rip", "rax", "rbp", "r7", "r0", "esr", "far", "trap",
        "err", "esp", "",
    ];
    let mut frames = dice.some(12, frame);
    if dice.below(4) == 0 {
        frames = frames.iter().cycle().take(frames.len() * 30).cloned().collect();
    }
    Thread {
        number: dice.value(),
        name: dice.maybe(text),
        queue: dice.maybe(text),
        frames,
        registers: dice.some(10, |dice| Register {
            name: dice.of(&names).to_owned(),
            value: dice.value(),
            note: dice.maybe(text),
        }),
        recursion: dice.maybe(|dice| Recursion {
            depth: dice.value(),
            first_elided: None,
            last_elided: Some(0),
        }),
        ..Thread::default()
    }
}

fn image(dice: &mut Dice) -> Image {
    let paths = [
        "/usr/lib/libobjc.A.dylib",
        "/private/var/containers/Bundle/Application/8B/Demo.app/Demo",
        "/x/Demo.app/Frameworks/Kit.framework/Kit",
        "/.app/",
        "/",
        "",
        "Demo.app/libswiftCore.dylib",
    ];
    Image {
        name: dice.of(&["Demo", "Kit", "libobjc.A.dylib", ""]).to_owned(),
        path: dice.maybe(|dice| dice.of(&paths).to_owned()),
        load_address: Avma::new(dice.value()),
        end_address: dice.maybe(|dice| Avma::new(dice.value())),
        bundle_id: dice.maybe(|dice| dice.of(&["com.acme.kit", ".", "", "com"]).to_owned()),
        ..Image::default()
    }
}

fn arbitrary(dice: &mut Dice) -> Report {
    let archs = [Arch::Arm64, Arch::Arm64e, Arch::Armv7, Arch::X86_64, Arch::X86, Arch::Unknown];
    let mut report =
        if dice.below(2) == 0 { Report::default() } else { report("EXC_BAD_ACCESS", "SIGSEGV").done() };
    let namespaces = ["SIGNAL", "SPRINGBOARD", "DYLD", "TCC", "CODESIGNING", "JETSAM", "7", "NEW"];
    report.process.arch = dice.maybe(|dice| dice.of(&archs));
    report.process.path = dice.maybe(text);
    report.exception = dice.maybe(exception);
    report.termination = dice.maybe(|dice| Termination {
        namespace: dice.maybe(|dice| dice.of(&namespaces).to_owned()),
        code: dice.maybe(Dice::value),
        reason: dice.maybe(text),
        details: dice.some(3, text),
        by_process: dice.maybe(text),
        by_pid: None,
    });
    report.process.threads.extend(dice.some(4, thread));
    report.process.crashed_thread = dice.maybe(|dice| dice.below(7));
    report.process.backtraces = dice.some(2, |dice| Backtrace {
        title: text(dice),
        is_exception: dice.below(2) == 0,
        frames: dice.some(5, frame),
    });
    report.process.images.extend(dice.some(4, image));
    report.app_info = dice.some(3, |dice| AppInfo { image: dice.maybe(text), lines: dice.some(4, text) });
    report.fields = dice.some(3, |dice| Field {
        key: dice.of(&["exceptionReason", "Error Code", "Trap Number", "vmRegionInfo"]).to_owned(),
        value: text(dice),
    });
    report.sections = dice.some(3, |dice| Section {
        title: dice.of(&["", "VM Region Info", "Dyld Error Message", "kernel messages"]).to_owned(),
        text: text(dice),
    });
    report
}

fn check(explanation: &Explanation, report: &Report) {
    let bounded =
        |lines: &[String]| lines.len() <= 24 && lines.iter().all(|line| !line.is_empty() && line.len() < 600);
    assert!(!explanation.title.is_empty() && explanation.title.len() < 600, "{explanation:?} of {report:?}");
    assert!(!explanation.summary.is_empty() && !explanation.title.contains('\n'));
    assert!(
        bounded(&explanation.evidence) && bounded(&explanation.causes) && bounded(&explanation.next_steps)
    );
    assert!(LEADING.iter().any(|rule| rule.id == explanation.rule));
}

#[test]
fn any_model_gets_an_answer() {
    let mut dice = Dice(20_261_121);
    let mut rules = std::collections::BTreeSet::new();
    for _ in 0..6000 {
        let report = arbitrary(&mut dice);
        let explanation = explain(&report);
        check(&explanation, &report);
        rules.insert(explanation.rule);
        let attribution = attribute(&report, &explanation);
        assert!(!attribution.evidence.is_empty(), "{report:?}");
        assert_eq!(explanation, explain(&report));
    }
    // The generator reaches most of the rules, or it would prove little.
    assert!(rules.len() >= 30, "{rules:?}");
}

#[test]
fn huge_reports_cost_little_more_than_ordinary_ones() {
    let mut report = report("EXC_BAD_ACCESS", "SIGSEGV").done();
    let mut dice = Dice(1);
    let long = text(&mut dice) + &"Fatal error: ä ".repeat(100_000);
    report.app_info = vec![AppInfo { image: None, lines: vec![long.clone(); 20] }];
    report.sections = vec![Section { title: "kernel messages".to_owned(), text: long }];
    let frames: Vec<Frame> = (0..200_000).map(Frame::new).collect();
    report.process.threads[0].frames = frames;
    check(&explain(&report), &report);
    assert!(!attribute(&report, &explain(&report)).evidence.is_empty());
}
