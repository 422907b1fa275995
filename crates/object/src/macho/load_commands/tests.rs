use backtrail_testkit::{Assembler, MachO, MachSegment};

use super::KNOWN;
use crate::Object;

fn string(fields: &[u32], text: &str) -> Vec<u8> {
    let mut out = Assembler::new();
    out.u32(u32::try_from(8 + 4 + fields.len() * 4).unwrap());
    for field in fields {
        out.u32(*field);
    }
    out.bytes(text.as_bytes()).u8(0).align(8).finish()
}

#[test]
fn load_commands_are_told_in_words() {
    let tools =
        Assembler::new().u32(2).u32(0x000e_0500).u32(0x0011_0002).u32(1).u32(3).u32(0x0409_0100).finish();
    let commands = vec![
        (0xc, string(&[2, 0x0519_0203, 0x0001_0000], "/usr/lib/libSystem.B.dylib")),
        (0x8000_001c, string(&[], "@executable_path/Frameworks")),
        (0x32, tools),
        (0x25, Assembler::new().u32(0x0009_0000).u32(0x000d_0200).finish()),
        (0x8000_0028, Assembler::new().u64(0x4abc).u64(0).finish()),
        (0x2c, Assembler::new().u32(0x4000).u32(0x8000).u32(1).u32(0).finish()),
        (0x2a, Assembler::new().u64(1 << 40 | 2 << 30 | 3 << 20).finish()),
        (0x29, Assembler::new().u32(0x9000).u32(16).finish()),
        (0x2d, Assembler::new().u32(2).bytes(b"-framework\0UIKit\0\0").finish()),
        (0x31, Assembler::new().text("addrable bits", 16).u64(0).u64(12).finish()),
        (0x7f, vec![0; 8]),
        (0xc, vec![0; 4]),
    ];
    let segment =
        MachSegment { name: "__TEXT", address: 0x4000, size: 0x2000, protection: 5, sections: vec![] };
    let file = MachO { uuid: Some([0xab; 16]), segments: vec![segment], commands, ..MachO::default() };
    let data = file.build();
    let lines: Vec<_> =
        Object::parse(&data).unwrap().load_commands().iter().map(ToString::to_string).collect();
    let expected = [
        "LC_SEGMENT_64 __TEXT 0x4000..0x6000 r-x, 0 sections",
        "LC_UUID ABABABAB-ABAB-ABAB-ABAB-ABABABABABAB",
        "LC_LOAD_DYLIB /usr/lib/libSystem.B.dylib (version 1305.2.3, compatible with 1.0)",
        "LC_RPATH @executable_path/Frameworks",
        "LC_BUILD_VERSION iOS 14.5 or later, SDK 17.0.2, ld 1033.1",
        "LC_VERSION_MIN_IPHONEOS 9.0 or later, SDK 13.2",
        "LC_MAIN entry at file offset 0x4abc",
        "LC_ENCRYPTION_INFO_64 0x4000..0xc000 encrypted (method 1)",
        "LC_SOURCE_VERSION 1.2.3",
        "LC_DATA_IN_CODE 16 bytes at 0x9000",
        "LC_LINKER_OPTION -framework UIKit",
        "LC_NOTE addrable bits, 12 bytes",
        "LC_0x7f 16 bytes",
        "LC_LOAD_DYLIB",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn no_command_is_listed_twice() {
    for (index, (kind, name, _)) in KNOWN.iter().enumerate() {
        assert!(!KNOWN.iter().skip(index + 1).any(|(other, ..)| other == kind), "{name}");
    }
}
