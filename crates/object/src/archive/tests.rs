use backtrail_testkit::{ArchiveStyle, MachO, archive, fat};

use crate::{ErrorKind, Limits, identify, identify_each, slices};

fn object(uuid: u8) -> Vec<u8> {
    MachO { file_type: 1, uuid: Some([uuid; 16]), ..MachO::default() }.build()
}

fn names(data: &[u8]) -> Vec<String> {
    slices(data, &Limits::default()).unwrap().into_iter().map(|slice| slice.member.unwrap()).collect()
}

#[test]
fn members_have_their_names_in_either_style() {
    let long = "a name of more than sixteen bytes.o";
    let members = [
        ("short.o", 7, object(1)),
        ("notes.txt", 0, b"just text".to_vec()),
        (long, 8, object(2)),
        ("short.o", 9, object(3)),
    ];
    for style in [ArchiveStyle::Bsd, ArchiveStyle::Gnu] {
        let data = archive(style, &members);
        assert_eq!(names(&data), ["short.o", long, "short.o"], "{style:?}");
        let slices = slices(&data, &Limits::default()).unwrap();
        assert_eq!(slices.iter().map(|slice| slice.modified.unwrap()).collect::<Vec<_>>(), [7, 8, 9]);
        for (slice, uuid) in slices.iter().zip(1..) {
            let object = slice.parse(&Limits::default()).unwrap();
            assert_eq!(object.id().unwrap().as_bytes(), [uuid; 16], "{style:?}");
        }
        let identities = identify(&data, &Limits::default()).unwrap();
        assert_eq!(identities.len(), 3);
        assert!(identities.iter().zip(&slices).all(|(identity, slice)| identity.range == slice.range));
    }
}

#[test]
fn archives_in_fat_files_are_opened() {
    let one = archive(ArchiveStyle::Bsd, &[("a.o", 0, object(1)), ("b.o", 0, object(2))]);
    let data = fat(false, &[(0x0100_000c, 0, one), (0x0100_0007, 3, object(3))]);
    let slices = slices(&data, &Limits::default()).unwrap();
    let ids: Vec<_> = slices
        .iter()
        .map(|slice| slice.parse(&Limits::default()).unwrap().id().unwrap().as_bytes()[0])
        .collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(slices[1].member.as_deref(), Some("b.o"));
}

#[test]
fn thin_archives_say_what_they_are() {
    let error = slices(b"!<thin>\n/               0  ", &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("thin archive"), "{error}");
}

#[test]
fn what_comes_before_a_broken_header_is_kept() {
    let mut data = archive(ArchiveStyle::Bsd, &[("a.o", 0, object(1)), ("b.o", 0, object(2))]);
    let second = data.windows(4).position(|window| window == b"b.o ").unwrap();
    data[second + 58] = b'x';
    let each = identify_each(&data, &Limits::default()).unwrap();
    assert!(each[0].is_ok());
    let error = each[1].as_ref().unwrap_err();
    assert_eq!(error.offset().unwrap().get(), second as u64);
    assert_eq!(identify(&data, &Limits::default()).unwrap().len(), 1);
    let slices = slices(&data, &Limits::default()).unwrap();
    assert_eq!((slices.len(), slices[1].parse(&Limits::default()).is_err()), (2, true));
}

#[test]
fn sizes_that_lie_and_too_many_members_end_the_list() {
    let mut data = archive(ArchiveStyle::Bsd, &[("a.o", 0, object(1))]);
    let member = data.windows(4).position(|window| window == b"a.o ").unwrap();
    data[member + 48..member + 58].copy_from_slice(b"9999999999");
    let slices = slices(&data, &Limits::default()).unwrap();
    assert!(slices[0].data.len() < data.len());
    let many = archive(ArchiveStyle::Gnu, &[("a.o", 0, object(1)), ("b.o", 0, object(2))]);
    let limits = Limits { slices: 3, ..Limits::default() };
    assert_eq!(super::super::slices(&many, &limits).unwrap_err().kind(), ErrorKind::LimitExceeded);
}
