//! Small reports of our own, one for each way in which registers and frames disagree.

use super::{add_register_frames, settle_register_frames};
use backtrail_core::{Avma, FrameAddress, Symbol};
use backtrail_model::Report;
use backtrail_report::{Limits, emit, parse};

/// A text report of one thread: code type, rows of the stack, rows of the state.
fn text(code: &str, frames: &str, state: &str) -> String {
    format!(
        "Process: Demo [1]\nIdentifier: com.example.Demo\nCode Type: {code}\n\nException Type: EXC_BAD_ACCESS (SIGSEGV)\n\
         Triggered by Thread: 0\n\nThread 0 Crashed:\n{frames}\nThread 0 crashed with {code} Thread State:\n{state}\n\n\
         Binary Images:\n0x100000 - 0x10ffff App arm64 <11111111222233334444555555555555> /App.app/App\n\
         0x200000 - 0x20ffff Lib arm64 <11111111222233334444555555555556> /usr/lib/Lib\n"
    )
}

struct Filled {
    report: Report,
    taken: usize,
}

fn filled(text: &str) -> Filled {
    let mut report = parse(text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(report.notes, Vec::<String>::new());
    add_register_frames(&mut report);
    let taken = settle_register_frames(&mut report).len();
    assert_eq!(emit(text.as_bytes(), &report), text.as_bytes(), "nothing was found, so nothing changes");
    Filled { report, taken }
}

impl Filled {
    /// Number, address, whether it returns there, trust.
    fn frames(&self) -> Vec<(u32, u64, bool, &'static str)> {
        let row = |frame: &backtrail_model::Frame| {
            let address = frame.address.unwrap();
            let returns = matches!(address, FrameAddress::Return(_));
            (frame.index, address.raw().get(), returns, frame.trust.as_str())
        };
        self.report.process.threads[0].frames.iter().map(row).collect()
    }

    #[track_caller]
    fn notes(&self, words: &[&str]) {
        assert_eq!(self.report.notes.len(), words.len(), "{:#?}", self.report.notes);
        for (note, words) in self.report.notes.iter().zip(words) {
            assert!(note.contains(words), "{note}");
        }
    }
}

#[test]
fn no_frames_and_a_call_through_null() {
    let filled = filled(&text("ARM-64", "", " pc: 0x0 lr: 0x100400 sp: 0x700000 fp: 0x700010"));
    assert_eq!(filled.frames(), [(0, 0, false, "context"), (1, 0x10_0400, true, "link-register")]);
    assert_eq!(filled.report.process.threads[0].frames[1].image, Some(0));
    filled.notes(&[
        "no frames in the report: frame 0 is the program counter, 0x0 (in no image)",
        "frame 1 is not",
    ]);
}

#[test]
fn signatures_are_stripped_and_thumb_bits_stay() {
    let signed = filled(&text("ARM-64", "", " pc: 0x0 lr: 0x3c5a800000100400 sp: 0x700000 fp: 0x700010"));
    assert_eq!(signed.frames()[1], (1, 0x10_0400, true, "link-register"));
    let thumb = filled(&text("ARM", "", " pc: 0x0 lr: 0x100401 sp: 0x700000 r7: 0x700010"));
    assert_eq!(thumb.frames()[1], (1, 0x10_0401, true, "link-register"));
}

#[test]
fn no_frames_and_a_leaf_in_another_image() {
    let filled = filled(&text("ARM-64", "", " pc: 0x200100 lr: 0x100400 sp: 0x700000"));
    assert_eq!(filled.frames(), [(0, 0x20_0100, false, "context"), (1, 0x10_0400, true, "link-register")]);
}

#[test]
fn no_frames_and_no_link_register() {
    let filled = filled(&text("X86-64", "", " rip: 0x0 rsp: 0x700000 rbp: 0x700010"));
    assert_eq!(filled.frames(), [(0, 0, false, "context")]);
    filled.notes(&["on the stack (sp = 0x700000), whose memory the report does not have"]);
}

#[test]
fn the_link_register_in_the_same_image_needs_symbols() {
    let text = text("ARM-64", "", " pc: 0x100500 lr: 0x100400 sp: 0x700000");
    let without = filled(&text);
    assert_eq!((without.frames(), without.taken), (vec![(0, 0x10_0500, false, "context")], 1));
    without.notes(&["no frames", "may point into the function that was running"]);

    let with = |starts: [u64; 2]| {
        let mut report = parse(text.as_bytes(), &Limits::default()).unwrap();
        add_register_frames(&mut report);
        for (frame, start) in report.process.threads[0].frames.iter_mut().zip(starts) {
            let offset = frame.address.unwrap().raw().offset_from(Avma::new(start)).unwrap();
            frame.symbol = Some(Symbol { name: "f".to_owned(), linkage_name: None, offset });
        }
        let taken = settle_register_frames(&mut report).len();
        (taken, report.notes[1].clone())
    };
    let (taken, note) = with([0x10_0480, 0x10_0380]);
    assert!(taken == 0 && note.contains("it is the return address in the link register"), "{note}");
    let (taken, note) = with([0x10_0380, 0x10_0380]);
    assert!(taken == 1 && note.contains("had made a call since"), "{note}");
}

#[test]
fn a_lonely_frame_whose_name_the_report_states() {
    let own = |offset: u64| format!("0 App 0x0000000000100500 f + {offset}\n");
    let state = " pc: 0x100500 lr: 0x100400 sp: 0x700000";
    let same = filled(&text("ARM-64", &own(0x200), state));
    assert_eq!(same.frames().len(), 1);
    same.notes(&["had made a call since"]);
    let other = filled(&text("ARM-64", &own(0x20), state));
    assert_eq!(other.frames()[1], (1, 0x10_0400, true, "link-register"));
}

#[test]
fn the_report_begins_with_the_caller() {
    let rows = "0 App 0x00100401 0x100000 + 1025\n1 Lib 0x00200101 0x200000 + 257\n";
    let filled = filled(&text("ARM", rows, " pc: 0xffda6cfa lr: 0x100401 sp: 0x700000 r7: 0x700010"));
    let expected =
        [(0, 0xffda_6cfa, false, "context"), (1, 0x10_0401, true, "report"), (2, 0x20_0101, true, "report")];
    assert_eq!(filled.frames(), expected);
    filled.notes(&["first frame, 0x100401, is not the program counter, 0xffda6cfa (in no image)"]);
}

#[test]
fn the_report_left_frame_0_out() {
    let rows = "1 App 0x0000000000100400 0x100000 + 1024\n";
    let filled = filled(&text("ARM-64", rows, " pc: 0x200100 lr: 0x100400 sp: 0x700000"));
    assert_eq!(filled.frames(), [(0, 0x20_0100, false, "context"), (1, 0x10_0400, true, "report")]);
}

#[test]
fn registers_and_frames_of_different_moments() {
    let rows = "0 Lib 0x0000000000200100 0x200000 + 256\n";
    let filled = filled(&text("X86-64", rows, " rip: 0x100500 rsp: 0x700000"));
    assert_eq!(filled.frames(), [(0, 0x10_0500, false, "context"), (1, 0x20_0100, false, "report")]);
    filled.notes(&["may be of different moments"]);
}

#[test]
fn under_a_signal_handler_nothing_is_missing() {
    let rows = "0 App 0x0000000000100100 handler + 4\n1 Lib 0x0000000000200100 _sigtramp + 40\n\
                2 App 0x0000000000100500 f + 4\n3 App 0x0000000000100700 g + 4\n";
    let filled = filled(&text("ARM-64", rows, " pc: 0x100500 lr: 0x100700 sp: 0x700000"));
    assert_eq!(filled.frames().len(), 4);
    filled.notes(&[]);
}

#[test]
fn a_wild_jump_whose_caller_was_lost() {
    let rows = "0 ??? 0x0000000000000000 0x0 + 0\n1 App 0x0000000000100700 0x100000 + 1792\n";
    let state = " pc: 0x0 lr: 0x100400 sp: 0x700000 fp: 0x700010";
    let filled = filled(&text("ARM-64", rows, state));
    let expected =
        [(0, 0, false, "report"), (1, 0x10_0400, true, "link-register"), (2, 0x10_0700, true, "report")];
    assert_eq!(filled.frames(), expected);
    filled.notes(&[
        "frame 1 is not in the report: it is the return address in the link register, 0x100400 (App + 1024)",
    ]);
}

#[test]
fn complete_stacks_stay() {
    let state = " pc: 0x200100 lr: 0x100400 sp: 0x700000";
    for rows in [
        "0 Lib 0x0000000000200100 0x200000 + 256\n1 App 0x0000000000100400 0x100000 + 1024\n",
        // The function has called another since, or a leaf's caller was lost: which one, nobody knows.
        "0 Lib 0x0000000000200100 0x200000 + 256\n1 App 0x0000000000100700 0x100000 + 1792\n",
        // Return addresses less one instruction.
        "0 Lib 0x0000000000200100 0x200000 + 256\n1 App 0x00000000001003fc 0x100000 + 1020\n",
    ] {
        let filled = filled(&text("ARM-64", rows, state));
        assert_eq!(filled.frames().len(), 2, "{rows}");
        filled.notes(&[]);
    }
}

#[test]
fn after_an_overwritten_stack_the_link_register_is_no_caller() {
    for state in [
        " pc: 0xa5a5a5a4 lr: 0x200401 sp: 0x700000 r7: 0xa5a5a5a5",
        " pc: 0xa5a5a5a4 lr: 0x200401 sp: 0x700000 r7: 0x12345678",
    ] {
        let filled = filled(&text("ARM", "", state));
        assert_eq!(filled.frames(), [(0, 0xa5a5_a5a4, false, "context")]);
        filled.notes(&["no frames", "is not taken for the caller"]);
    }
}

#[test]
fn after_an_overwritten_stack_the_reports_own_caller_is_doubted() {
    let rows = "0 Lib 0x00200401 __memset_chk + 5\n";
    let state = " pc: 0xa5a5a5a4 lr: 0x200401 sp: 0x700000 r7: 0xa5a5a5a5";
    let filled = filled(&text("ARM", rows, state));
    assert_eq!(filled.frames(), [(0, 0xa5a5_a5a4, false, "context"), (1, 0x20_0401, true, "report")]);
    filled.notes(&["may not be the caller"]);
}

#[test]
fn nothing_is_added_twice_or_without_registers() {
    let text = text("ARM-64", "", " pc: 0x0 lr: 0x100400 sp: 0x700000 fp: 0x700010");
    let mut report = parse(text.as_bytes(), &Limits::default()).unwrap();
    add_register_frames(&mut report);
    let once = report.process.threads[0].frames.clone();
    add_register_frames(&mut report);
    assert_eq!(report.process.threads[0].frames, once);
    report.process.threads[0].registers.clear();
    report.process.threads[0].frames.clear();
    add_register_frames(&mut report);
    assert!(report.process.threads[0].frames.is_empty());
}

#[test]
fn json_reports_alike() {
    let text = r#"{"app_name":"Demo","bug_type":"309","name":"Demo"}
{"procName":"Demo","cpuType":"ARM-64","faultingThread":0,"threads":[{"id":7,"triggered":true,
"threadState":{"flavor":"ARM_THREAD_STATE64","lr":{"value":4310991872},"pc":{"value":0},"sp":{"value":7340032},"fp":{"value":7340048}},
"frames":[{"imageIndex":1,"imageOffset":0},{"imageIndex":0,"imageOffset":1792}]}],
"usedImages":[{"source":"P","arch":"arm64","base":4310990848,"size":16384,"uuid":"35e96ff1-979e-31e0-a805-4b0a98ef18ec","path":"/App.app/App","name":"App"},
{"size":0,"source":"A","base":0,"uuid":"00000000-0000-0000-0000-000000000000"}]}"#;
    let filled = filled(text);
    let rows: Vec<_> = filled.frames().iter().map(|(index, address, ..)| (*index, *address)).collect();
    assert_eq!(rows, [(0, 0), (1, 4_310_991_872), (2, 4_310_992_640)]);
    assert_eq!(filled.frames()[1].3, "link-register");
}
