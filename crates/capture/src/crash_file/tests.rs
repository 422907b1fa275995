use super::format::{EM_X86_64, checksum};
use super::*;

fn section(kind: u32, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).unwrap();
    let mut bytes = [kind, size, checksum(kind, size, content)].map(u32::to_le_bytes).concat();
    bytes.extend(content);
    bytes
}

fn header() -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes(), &EM_X86_64.to_le_bytes()].concat()
}

fn crash() -> Vec<u8> {
    let mut content = Vec::new();
    content.extend(7_u32.to_le_bytes());
    content.extend(9_u32.to_le_bytes());
    content.extend(11_i32.to_le_bytes());
    content.extend(1_i32.to_le_bytes());
    content.push(1);
    content.extend(0x18_u64.to_le_bytes());
    content.extend(0_u32.to_le_bytes());
    content.extend(1_700_000_000_u64.to_le_bytes());
    content.extend(1234_u64.to_le_bytes());
    content
}

fn thread() -> Vec<u8> {
    let mut content = Vec::new();
    content.extend(9_u32.to_le_bytes());
    content.extend([THREAD_CRASHED, 4]);
    content.extend(b"main\0\x01");
    content.extend(16_u16.to_le_bytes());
    content.extend(0x1000_u64.to_le_bytes());
    content
}

fn frames() -> Vec<u8> {
    let mut content = 9_u32.to_le_bytes().to_vec();
    content.extend(1_u16.to_le_bytes());
    content.extend(0x1000_u64.to_le_bytes());
    content.push(0);
    content
}

fn whole() -> Vec<Vec<u8>> {
    vec![
        header(),
        section(Kind::Crash as u32, &crash()),
        section(Kind::Thread as u32, &thread()),
        section(Kind::Frames as u32, &frames()),
        section(Kind::Note as u32, b"\x04colour"),
        section(Kind::End as u32, b""),
    ]
}

#[test]
fn a_whole_file_has_all_that_was_written() {
    let data = whole().concat();
    let file = read(&data, &Limits::default()).unwrap();
    assert!(file.is_whole && file.snapshot.notes.is_empty(), "{:?}", file.snapshot.notes);
    let fault = file.snapshot.fault.unwrap();
    assert_eq!((fault.name.as_str(), fault.code.as_deref()), ("SIGSEGV", Some("SEGV_MAPERR")));
    assert_eq!(fault.address, Some(Avma::new(0x18)));
    let thread = &file.snapshot.threads[0];
    assert!(thread.is_crashed && thread.name.as_deref() == Some("main"));
    assert_eq!(thread.registers.pc(), Some(Avma::new(0x1000)));
    assert_eq!(file.walked, [(9, vec![FrameAddress::Exact(Avma::new(0x1000))])]);
    assert_eq!(file.notes, [("colo".to_owned(), "ur".to_owned())]);
    assert_eq!(file.uptime, Some(1234));
}

/// A later writer's sections, and longer ones of known kinds.
#[test]
fn what_is_not_known_is_skipped() {
    let mut parts = whole();
    parts.insert(1, section(77, b"whatever"));
    let mut longer = crash();
    longer.extend([1, 2, 3]);
    parts[2] = section(Kind::Crash as u32, &longer);
    let data = parts.concat();
    let file = read(&data, &Limits::default()).unwrap();
    assert!(file.is_whole && file.snapshot.notes.is_empty() && file.snapshot.fault.is_some());
}

#[test]
fn a_file_that_is_cut_off_tells_what_came_before() {
    let data = whole().concat();
    for size in 0..data.len() {
        match read(&data[..size], &Limits::default()) {
            Ok(file) => {
                assert!(!file.is_whole, "{size}");
                assert!(file.snapshot.notes.iter().any(|note| note.contains("cut off")));
                assert_eq!(file.snapshot.fault.is_some(), size >= 16 + 12 + crash().len(), "{size}");
            }
            Err(_) => assert!(size < HEADER_BYTES, "{size}"),
        }
    }
}

#[test]
fn a_damaged_section_costs_nothing_but_itself() {
    let parts = whole();
    let before = parts[0].len() + SECTION_HEADER_BYTES;
    let mut data = parts.concat();
    data[before + 2] ^= 0x40;
    let file = read(&data, &Limits::default()).unwrap();
    assert!(file.is_whole && file.snapshot.fault.is_none());
    assert_eq!(file.snapshot.threads.len(), 1);
    assert!(file.snapshot.notes[0].contains("byte 0x10: a section's checksum"), "{:?}", file.snapshot.notes);
}

#[test]
fn others_are_refused_with_what_was_expected() {
    let limits = Limits::default();
    assert_eq!(read(b"MDMP", &limits).unwrap_err().kind(), ErrorKind::Unrecognized);
    let mut later = header();
    later[8] = 2;
    assert!(read(&later, &limits).unwrap_err().to_string().contains("version 2 of crash files"));
    let mut other = header();
    other[12] = 3;
    assert!(read(&other, &limits).unwrap_err().to_string().contains("machine 3"));
}

#[test]
fn an_exception_has_a_type_and_may_have_words() {
    let with = |content: &[u8]| {
        let mut sections = whole();
        sections.insert(1, section(Kind::Exception as u32, content));
        let data = sections.concat();
        let file = read(&data, &Limits::default()).unwrap();
        assert!(file.is_whole);
        (file.exception, file.snapshot.notes.len())
    };
    let told = |name: &str, what: &str| Some((name.to_owned(), what.to_owned()));
    assert_eq!(with(b"\x01\0ino order 17"), (told("i", "no order 17"), 0));
    assert_eq!(with(b"\x01\0i"), (told("i", ""), 0));
    // A type that ends behind the section: the section is left out, with a note.
    assert_eq!(with(b"\x09\0i"), (None, 1));
    assert_eq!(with(b"\x09"), (None, 1));
}

fn mach_exception() -> Vec<u8> {
    let words = [1_u64, 0x18, 0x9200_0006].map(u64::to_le_bytes);
    [&1_u32.to_le_bytes()[..], words.as_flattened()].concat()
}

fn ns_exception() -> Vec<u8> {
    let mut content = b"\x04\0Name\x06\0reason\x02\0".to_vec();
    content.extend([0x1_0000_1000_u64, 0x1_0000_2000].map(u64::to_le_bytes).concat());
    content
}

fn apple_image() -> Vec<u8> {
    let mut content = [0x1_0443_0000_u64, 0x1_0443_8000, 0x443_0000].map(u64::to_le_bytes).concat();
    content.extend([IMAGE_PROGRAM | IMAGE_UUID, 16]);
    content.extend([7; 16]);
    content.extend(b"/Applications/Weather.app/Weather");
    content
}

#[test]
fn a_file_of_an_apple_system_has_uuids_and_exceptions() {
    let with = |more: &[Vec<u8>]| {
        let mut sections = whole();
        sections.splice(2..2, more.iter().cloned());
        sections.concat()
    };
    let data = with(&[
        section(Kind::MachException as u32, &mach_exception()),
        section(Kind::NsException as u32, &ns_exception()),
        section(Kind::Image as u32, &apple_image()),
    ]);
    let file = read(&data, &Limits::default()).unwrap();
    assert!(file.is_whole && file.is_apple() && file.snapshot.notes.is_empty());
    assert_eq!(
        file.mach_exception,
        Some(Exception { kind: 1, code: 1, subcode: 0x18, syndrome: 0x9200_0006 })
    );
    let ns = file.ns_exception.unwrap();
    assert_eq!((&*ns.name, &*ns.reason, ns.thrown_at.len()), ("Name", "reason", 2));
    let image = &file.snapshot.images[0];
    assert_eq!(image.id, Some(ImageId::Uuid([7; 16])));
    assert_eq!(image.bias, Some(Bias::between(Avma::new(0x1_0443_0000), Svma::new(0x1_0000_0000))));
    // Each cut anywhere: left out, with a note.
    for (kind, content) in [(Kind::MachException, mach_exception()), (Kind::NsException, ns_exception())] {
        for size in 0..content.len() {
            let data = with(&[section(kind as u32, &content[..size])]);
            let file = read(&data, &Limits::default()).unwrap();
            assert!(file.is_whole && !file.is_apple() && file.snapshot.notes.len() == 1, "{kind:?} {size}");
        }
    }
    // What says that it is a UUID and has another size is none.
    let mut odd = apple_image();
    odd[25] = 15;
    let data = with(&[section(Kind::Image as u32, &odd)]);
    let file = read(&data, &Limits::default()).unwrap();
    assert!(matches!(file.snapshot.images[0].id, Some(ImageId::BuildId(_))));
    let whole = whole().concat();
    assert!(!read(&whole, &Limits::default()).unwrap().is_apple());
}

#[test]
fn what_was_read_is_written_again_byte_by_byte_alike() {
    let mut sections = whole();
    let last = sections.len() - 1;
    let image = {
        let mut content = [0x1000_u64, 0x9000, 0x1000].map(u64::to_le_bytes).concat();
        content.extend([IMAGE_PROGRAM, 3, 0xab, 0xcd, 0xef]);
        content.extend(b"/usr/bin/orders");
        content
    };
    let more = [
        section(Kind::Program as u32, b"/usr/bin/orders"),
        section(Kind::System as u32, b"Linux 6.1"),
        section(Kind::Image as u32, &image),
        section(Kind::Maps as u32, b"1000-9000 r-xp 0 00:00 0 /usr/bin/orders\n"),
        section(Kind::Memory as u32, &[&0x7000_u64.to_le_bytes()[..], &[7; 100]].concat()),
        section(Kind::Breadcrumb as u32, &[&5_u64.to_le_bytes()[..], b"loaded"].concat()),
        section(Kind::Message as u32, b"\x01free(): invalid pointer"),
        section(Kind::Exception as u32, b"\x02\0Xywhat"),
        section(Kind::MachException as u32, &mach_exception()),
        section(Kind::NsException as u32, &ns_exception()),
        section(Kind::Image as u32, &apple_image()),
        section(Kind::Limit as u32, &[&7_u32.to_le_bytes()[..], &[1; 16]].concat()),
        section(Kind::OpenFile as u32, &[&2_u32.to_le_bytes()[..], b"/dev/null"].concat()),
        section(Kind::OpenFiles as u32, &3_u32.to_le_bytes()),
        section(Kind::Missing as u32, b"2 threads were left out"),
    ];
    sections.splice(last..last, more);
    let first = sections.concat();
    let read_first = read(&first, &Limits::default()).unwrap();
    let second = write(&read_first).unwrap();
    let read_second = read(&second, &Limits::default()).unwrap();
    assert!(read_second.is_whole);
    assert_eq!(format!("{read_first:?}"), format!("{read_second:?}"));
    assert_eq!(second, write(&read_second).unwrap());
    assert_eq!(second.len(), first.len(), "nothing was left out");
}

#[test]
fn what_is_no_crash_has_its_event() {
    for event in [Event::Hang(1500), Event::Exit { thread: 9, code: 3 }] {
        let whole = whole().concat();
        let mut file = read(&whole, &Limits::default()).unwrap();
        (file.event, file.snapshot.fault, file.uptime) = (Some(event), None, None);
        let data = write(&file).unwrap();
        let again = read(&data, &Limits::default()).unwrap();
        assert_eq!((again.event, again.snapshot.process.pid), (Some(event), Some(7)));
        assert!(again.snapshot.fault.is_none());
        assert_eq!(again.snapshot.process.time, Some(1_700_000_000));
    }
}

#[test]
fn a_report_that_was_written_from_outside_has_no_uptime() {
    let whole = whole().concat();
    let mut file = read(&whole, &Limits::default()).unwrap();
    file.uptime = None;
    let data = write(&file).unwrap();
    assert_eq!(read(&data, &Limits::default()).unwrap().uptime, None);
    file.snapshot.arch = Arch::Arm;
    assert!(write(&file).unwrap_err().to_string().contains("expected x86_64 or aarch64"));
}

/// What other tools read of it.
#[test]
#[cfg(feature = "minidump")]
fn a_minidump_has_threads_images_memory_and_why() {
    use crate::{MappedImage, Memory, minidump};
    use backtrail_core::{AddrRange, ImageId};
    let data = whole().concat();
    let mut snapshot = read(&data, &Limits::default()).unwrap().snapshot;
    let build_id = ImageId::parse_build_id("00112233445566778899aabbccddeeff00112233").unwrap();
    snapshot.images = vec![MappedImage {
        path: "/opt/orders/orders".to_owned(),
        id: Some(build_id),
        range: Some(AddrRange::new(Avma::new(0x1000), Avma::new(0x3000))),
        is_executable: true,
        ..MappedImage::default()
    }];
    let sp = Avma::new(0x8000);
    let registers = &mut snapshot.threads[0].registers;
    registers.set(registers.family().sp(), sp.get());
    snapshot.memory =
        Memory::new([(sp, b"0123456789abcdef"[..].into()), (Avma::new(0x9000), b"xyz"[..].into())]);
    (snapshot.mappings, _) = crate::parse_maps(b"1000-3000 r-xp 0 00:00 0 /opt/orders/orders\n", 9);
    let written = minidump::write(&snapshot).unwrap();
    let again = minidump::read(&written, &Limits::default()).unwrap();
    assert!(again.notes.is_empty(), "{:?}", again.notes);
    assert_eq!(again.fault.as_ref().unwrap().name, "SIGSEGV");
    assert_eq!(again.fault.as_ref().unwrap().address, Some(Avma::new(0x18)));
    assert_eq!(again.process.pid, snapshot.process.pid);
    assert_eq!(again.threads.len(), snapshot.threads.len());
    for (ours, theirs) in snapshot.threads.iter().zip(&again.threads) {
        assert_eq!((ours.id, &ours.name, ours.is_crashed), (theirs.id, &theirs.name, theirs.is_crashed));
        for (register, value) in ours.registers.iter() {
            assert_eq!(theirs.registers.get(register), Some(value), "{register:?}");
        }
    }
    assert_eq!(again.images[0].path, "/opt/orders/orders");
    assert_eq!(again.images[0].range, snapshot.images[0].range);
    assert!(again.images[0].id.as_ref().unwrap().as_bytes().starts_with(&build_id.as_bytes()[..16]));
    assert_eq!(again.memory.bytes_from(sp), Some(&b"0123456789abcdef"[..]));
    assert_eq!(again.memory.bytes_from(Avma::new(0x9000)), Some(&b"xyz"[..]));
    assert_eq!(again.mappings, snapshot.mappings);
}

/// Only a fault is about an address, and no code is told where Linux's is 0.
#[test]
#[cfg(feature = "minidump")]
fn a_minidump_tells_codes_of_signals() {
    use crate::{Fault, minidump};
    let data = whole().concat();
    let mut snapshot = read(&data, &Limits::default()).unwrap().snapshot;
    for (signal, code, told, has_address) in [
        (11, 1, Some("SEGV_MAPERR"), true),
        (11, 0x80, Some("SI_KERNEL"), false),
        (11, 0, None, true),
        (11, -6, Some("SI_TKILL"), false),
        (6, -6, Some("SI_TKILL"), false),
        (15, 0, None, false),
        (5, 1, Some("TRAP_BRKPT"), true),
    ] {
        snapshot.fault = Some(Fault::of_signal(signal, code, None, None));
        let fault =
            minidump::read(&minidump::write(&snapshot).unwrap(), &Limits::default()).unwrap().fault.unwrap();
        let found = (fault.number, fault.code.as_deref(), fault.address.is_some());
        assert_eq!(found, (signal, told, has_address), "{code}");
    }
}
