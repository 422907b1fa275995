use backtrail_testkit::{Assembler, MachO, MachSection, MachSegment};

use crate::{ErrorKind, Limits, identify, slices};

/// A collection of one kernel extension, whose offsets count from the start of the file.
fn collection() -> Vec<u8> {
    let entry = |offset: u64, name: &str| {
        let size = 24 + name.len() + 1;
        Assembler::new().u64(0xffff_fe00_0700_0000).u64(offset).u32(32).u32(0).text(name, size - 24).finish()
    };
    let commands =
        vec![(0x8000_0035, entry(0x400, "com.example.kext")), (0x8000_0035, entry(0x300, "broken"))];
    let mut file = MachO { file_type: 12, commands, ..MachO::default() }.build();
    let text =
        MachSection { name: "__text", address: 0x5000, flags: 0x8000_0400, data: vec![7; 16], size: 0 };
    let segment =
        MachSegment { name: "__TEXT", address: 0x4000, size: 0x2000, protection: 5, sections: vec![text] };
    let kext = MachO { file_type: 11, uuid: Some([5; 16]), segments: vec![segment], ..MachO::default() };
    let mut bytes = kext.build();
    let (in_kext, data) = (bytes.len() - 16, bytes.split_off(bytes.len() - 16));
    // The segment's and the section's offset, moved behind the extension's own headers.
    for at in [32 + 40, 32 + 72 + 48] {
        let offset = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(offset as usize, in_kext);
        bytes[at..at + 4].copy_from_slice(&0x800u32.to_le_bytes());
    }
    file.resize(0x400, 0);
    file.extend(bytes);
    file.resize(0x800, 0);
    file.extend(data);
    file
}

#[test]
fn entries_of_a_kernel_collection_are_objects() {
    let data = collection();
    let slices = slices(&data, &Limits::default()).unwrap();
    let names: Vec<_> = slices.iter().map(|slice| slice.member.as_deref()).collect();
    assert_eq!(names, [None, Some("com.example.kext"), Some("broken")]);
    let object = slices[1].parse(&Limits::default()).unwrap();
    assert_eq!(object.id().unwrap().as_bytes(), [5; 16]);
    assert_eq!(object.section_data(object.section("__text").unwrap()).unwrap(), vec![7; 16]);
    assert_eq!(slices[2].parse(&Limits::default()).unwrap_err().kind(), ErrorKind::Malformed);
    let identities = identify(&data, &Limits::default()).unwrap();
    assert_eq!(identities[1].id, object.id());
}
