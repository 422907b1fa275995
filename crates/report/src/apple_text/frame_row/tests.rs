use super::*;

fn read(line: &str) -> Frame {
    FrameRow::read(line.as_bytes()).unwrap_or_else(|| panic!("no row: {line}")).frame()
}

fn symbol(name: &str, offset: Option<u64>, source: Option<(&str, u32)>) -> Option<ReportedSymbol> {
    let file = source.map(|(file, _)| file.to_owned());
    Some(ReportedSymbol {
        name: name.to_owned(),
        offset,
        file,
        line: source.map(|(_, line)| line),
        column: None,
    })
}

#[test]
fn names_with_blanks_and_all_kinds_of_columns() {
    for (line, image, address) in [
        (
            "0   App Namespace                       0x0000000102268e70 0x10211c000 + 1363568",
            "App Namespace",
            0x1_0226_8e70,
        ),
        (
            "0   libobjc.A.dylib               \t0x00000000800bef68 objc_msgSend + 8",
            "libobjc.A.dylib",
            0x800b_ef68,
        ),
        (
            "42  Demo                       \t           0x100f4c4b4 0x100e88000 + 804020",
            "Demo",
            0x1_00f4_c4b4,
        ),
        ("100 libdyld.dylib 0x00007fff9ef875ad start + 1", "libdyld.dylib", 0x7fff_9ef8_75ad),
        (
            "  3  DemoApp                        0x100b32844        UmengSignalHandler (in DemoApp) + 128",
            "DemoApp",
            0x1_00b3_2844,
        ),
        (
            "0   CoreFoundation                       0x09098478 0x8f31000 + 1471608",
            "CoreFoundation",
            0x0909_8478,
        ),
    ] {
        let frame = read(line);
        assert_eq!(frame.image_name.as_deref(), Some(image), "{line}");
        assert_eq!(frame.address.unwrap().raw(), Avma::new(address), "{line}");
    }
}

#[test]
fn tails_of_every_form() {
    let cases = [
        ("objc_msgSend + 8", symbol("objc_msgSend", Some(8), None)),
        ("main (main.m:35)", symbol("main", None, Some(("main.m", 35)))),
        (
            "partial apply for closure #1 in A.b(_:) + 60 (A.swift:0)",
            symbol("partial apply for closure #1 in A.b(_:)", Some(60), Some(("A.swift", 0))),
        ),
        ("f() + 4 (/<compiler-generated>:0)", symbol("f()", Some(4), Some(("/<compiler-generated>", 0)))),
        (
            "closure #1 in log(_:file:line:level:) + 660 (DebugLogger.swift:77)",
            symbol("closure #1 in log(_:file:line:level:)", Some(660), Some(("DebugLogger.swift", 77))),
        ),
        (
            "v8::Execution::Call(v8::Isolate*, int, v8::Handle<v8::Object>*) + 667",
            symbol("v8::Execution::Call(v8::Isolate*, int, v8::Handle<v8::Object>*)", Some(667), None),
        ),
        ("operator+(A const&, A const&) + 3", symbol("operator+(A const&, A const&)", Some(3), None)),
        ("-[A b:c:]", symbol("-[A b:c:]", None, None)),
        ("UmengSignalHandler (in DemoApp) + 128", symbol("UmengSignalHandler", Some(128), None)),
        ("main (in DemoApp) (main.m:14)", symbol("main", None, Some(("main.m", 14)))),
        ("<redacted> + 148", symbol("<redacted>", Some(148), None)),
        ("a + b", symbol("a + b", None, None)),
        (
            "-[NSObject+ 183052 (NSObject) doesNotRecognizeSelector:] + 143",
            symbol("-[NSObject(NSObject) doesNotRecognizeSelector:]", Some(143), None),
        ),
        ("std::terminate+ 77932 () + 44", symbol("std::terminate()", Some(44), None)),
        ("std::__terminate(void (*)+ 78048 ()) + 20", symbol("std::__terminate(void (*)())", Some(20), None)),
        ("f+ 12 (unsigned long) + 0", symbol("f(unsigned long)", Some(0), None)),
        ("main + 25780 (main.m:14)", symbol("main", Some(25780), Some(("main.m", 14)))),
        ("0x189622000 + 0x77354\t// -[CUICatalog b] + 0x824", symbol("-[CUICatalog b]", Some(0x824), None)),
        ("0x10002c000 + 0x20dd8\t// 0x00020d58 + 0x80", None),
        ("0x100000000 + 1234 (-[A b] + 12)", symbol("-[A b]", Some(12), None)),
        ("???", None),
        ("0 + 64", None),
        ("0x0 + 0", None),
        ("", None),
        ("0x10211c000 + 1363568", None),
    ];
    for (tail, expected) in cases {
        assert_eq!(Tail::read(tail).symbol, expected, "{tail}");
    }
}

#[test]
fn offsets_from_the_image_where_a_row_states_them() {
    for (line, offset) in [
        ("0   App Namespace 0x0000000102268e70 0x10211c000 + 1363568", Some(1_363_568)),
        ("0   App 0x100000498 0x100000000 + 1176 (main + 8)", Some(1176)),
        ("16 ??? 0x0000004c000b23b8 0 + 326418244536", None),
        ("2 ??? 0x0000000054485244 0x0 + 0", None),
        ("2 App 0x0000000054485244 main + 12", None),
    ] {
        assert_eq!(read(line).image_offset, offset, "{line}");
    }
}

#[test]
fn inline_marks() {
    let frame = read("1   App   0x100000498 inner(_:) + 8 (A.swift:3) [inlined]");
    assert!(frame.inlined);
    assert_eq!(frame.reported, symbol("inner(_:)", Some(8), Some(("A.swift", 3))));
    let sentrys = read("1   app.exe   0x7ff789c1cb58   [inlined] shop::cart::total (cart.rs:17)");
    assert!(sentrys.inlined);
    assert_eq!(sentrys.reported, symbol("shop::cart::total", None, Some(("cart.rs", 17))));
}

#[test]
fn addresses_past_64_bits_leave_the_rest_of_the_row() {
    let row = FrameRow::read(b"3 App 0x11112222333344445 main + 8").unwrap();
    assert_eq!(row.address, Hex::TooLong);
    let frame = row.frame();
    assert_eq!(frame.address, None);
    assert_eq!(frame.reported, symbol("main", Some(8), None));
}

#[test]
fn what_is_no_row() {
    for line in [
        "",
        "0",
        "0 App",
        "App 0x1234 main",
        "0 App 1234 main",
        "99999999999 App 0x1 x",
        "-1 App 0x1 x",
        "0x1 App 0x2",
        // OpenBSD's list of processes: 24 of syzbot's reports were one group by it.
        "     0     -1      0  3     0x10200  scheduler     swapper",
    ] {
        assert!(FrameRow::read(line.as_bytes()).is_none(), "{line}");
    }
    assert!(FrameRow::read(b"0 \xff\xfe 0x12 \xff").is_some());
}
