use super::*;
use crate::ErrorKind;
use backtrail_core::{Arch, Bias, Family, ReadMemory as _};
use std::time::{Duration, Instant};

fn note(kind: u32, data: &[u8]) -> Vec<u8> {
    let word = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
    let mut note = [&word(5)[..], &word(data.len()), &kind.to_le_bytes(), b"CORE\0\0\0\0", data].concat();
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

fn put(bytes: &mut [u8], at: usize, value: u64, size: usize) {
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

fn status(id: u64, signal: u64, rip: u64) -> Vec<u8> {
    let mut status = vec![0; 336];
    put(&mut status, 12, signal, 2);
    put(&mut status, 32, id, 4);
    put(&mut status, 112 + 16 * 8, rip, 8);
    put(&mut status, 112 + 19 * 8, 0x7ff0, 8);
    note(notes::NT_PRSTATUS, &status)
}

fn info() -> Vec<u8> {
    let mut info = vec![0; 136];
    put(&mut info, 24, 4242, 4);
    info[40..44].copy_from_slice(b"tiny");
    info[56..66].copy_from_slice(b"tiny --now");
    note(notes::NT_PRPSINFO, &info)
}

fn signal(number: u64, code: u64, address: u64) -> Vec<u8> {
    let mut signal = vec![0; 128];
    put(&mut signal, 0, number, 4);
    put(&mut signal, 8, code, 4);
    put(&mut signal, 16, address, 8);
    note(notes::NT_SIGINFO, &signal)
}

fn files(claimed: u64) -> Vec<u8> {
    let words = [claimed, 4096, 0x40_1000, 0x40_2000, 1].map(u64::to_le_bytes).concat();
    note(notes::NT_FILE, &[&words[..], b"/bin/tiny\0"].concat())
}

/// A core of an x86-64 process: code that was left out, and sixteen bytes of stack.
fn core(notes: &[Vec<u8>]) -> Vec<u8> {
    let notes = notes.concat();
    let start = 64 + 3 * 56;
    let mut file = vec![0; start];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, value, size) in [(16, 4, 2), (18, 62, 2), (32, 64, 8), (54, 56, 2), (56, 3, 2)] {
        put(&mut file, at, value, size);
    }
    let after = (start + notes.len()) as u64;
    let programs = [
        (4, 0, start as u64, 0, notes.len() as u64, 0),
        (1, 5, after, 0x40_1000, 0, 0x1000),
        (1, 6, after, 0x7ff0, 16, 16),
    ];
    for (index, (kind, flags, offset, address, in_file, in_memory)) in programs.into_iter().enumerate() {
        let at = 64 + index * 56;
        put(&mut file, at, kind, 4);
        put(&mut file, at + 4, flags, 4);
        for (place, value) in [(8, offset), (16, address), (32, in_file), (40, in_memory)] {
            put(&mut file, at + place, value, 8);
        }
    }
    file.extend(notes);
    file.extend([0x40_1020_u64.to_le_bytes(), [0; 8]].concat());
    file
}

fn usual() -> Vec<u8> {
    core(&[status(4243, 11, 0x40_1010), info(), signal(11, 1, 0x10), files(1), status(4242, 11, 0x40_1018)])
}

#[test]
fn a_core_tells_process_threads_fault_and_images() {
    let data = usual();
    let snapshot = read(&data, None, &Limits::default()).unwrap();
    assert_eq!((snapshot.arch, snapshot.process.pid), (Arch::X86_64, Some(4242)));
    assert_eq!(snapshot.process.name.as_deref(), Some("tiny"));
    assert_eq!(snapshot.process.command_line.as_deref(), Some("tiny --now"));
    let threads: Vec<_> =
        snapshot.threads.iter().map(|thread| (thread.id, thread.is_crashed, thread.registers.pc())).collect();
    let pc = |value| Some(Avma::new(value));
    assert_eq!(threads, [(Some(4243), true, pc(0x40_1010)), (Some(4242), false, pc(0x40_1018))]);
    let fault = snapshot.fault.as_ref().unwrap();
    assert_eq!(
        (fault.name.as_str(), fault.code.as_deref(), fault.address),
        ("SIGSEGV", Some("SEGV_MAPERR"), pc(0x10))
    );
    assert_eq!(snapshot.images.len(), 1);
    assert_eq!((snapshot.images[0].path.as_str(), snapshot.images[0].id), ("/bin/tiny", None));
    assert_eq!(snapshot.mappings[1].offset, FileOffset::new(4096));
    assert_eq!(snapshot.memory.read_u64(Avma::new(0x7ff0)), Ok(0x40_1020));
    assert!(snapshot.memory.read_u64(Avma::new(0x40_1000)).is_err(), "left out of the core");
    assert!(snapshot.notes.iter().any(|note| note.contains("threads' names")));
}

#[test]
fn a_core_that_is_cut_off_says_what_is_missing() {
    let data = usual();
    let cut = read(&data[..data.len() - 4], None, &Limits::default()).unwrap();
    assert!(
        cut.notes.iter().any(|note| note.contains("4 bytes of memory in 1 of 2 segments are missing")),
        "{:?}",
        cut.notes
    );
    for end in 0..data.len() {
        // Nothing to check but that each answers.
        let _ = read(&data[..end], None, &Limits::default());
    }
    let error = read(&data[..100], None, &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
}

#[test]
fn lists_that_claim_too_much_give_what_is_there() {
    let data = core(&[status(1, 0, 0x40_1010), files(u64::MAX)]);
    let snapshot = read(&data, None, &Limits::default()).unwrap();
    assert!(snapshot.notes.iter().any(|note| note.contains("list of mapped files")), "{:?}", snapshot.notes);
    assert!(
        snapshot.fault.is_none() && !snapshot.threads.iter().any(|thread| thread.is_crashed),
        "nothing stopped it"
    );
}

#[test]
fn what_is_no_core_is_refused_by_name() {
    let refused = |data: &[u8]| read(data, None, &Limits::default()).unwrap_err();
    assert!(refused(b"MDMP....").to_string().contains("found a minidump"));
    assert!(refused(b"").to_string().contains("an empty file"));
    let mut other = usual();
    other[16] = 3;
    assert!(refused(&other).to_string().contains("a library or position-independent executable"));
    other[16] = 4;
    other[18] = 243;
    assert!(refused(&other).to_string().contains("machine 243"));
    assert!(refused(&core(&[info()])).to_string().contains("NT_PRSTATUS"));
}

#[test]
fn registers_come_in_the_kernels_order() {
    let data = usual();
    let snapshot = read(&data, None, &Limits::default()).unwrap();
    let registers = snapshot.threads[0].registers;
    assert_eq!(registers.get(Family::X86_64.sp()), Some(0x7ff0));
    assert_eq!(registers.iter().count(), 17);
}

/// A page of a file's beginning, mapped with this access.
fn first_page(start: u64, access: &str) -> Mapping {
    Mapping {
        range: AddrRange::from_size(Avma::new(start), 4096),
        offset: FileOffset::new(0),
        readable: access.contains('r'),
        writable: access.contains('w'),
        executable: access.contains('x'),
        name: "/bin/tiny".to_owned(),
    }
}

#[test]
fn segments_that_share_the_first_page_are_one_image() {
    let (data, limits) = (usual(), Limits::default());
    let header = Header::parse(&data, &limits).unwrap();
    let (memory, vector) = (Memory::new([]), AuxVector::default());
    let ranges = |mappings: &[Mapping]| {
        let known =
            images::Known { header: &header, memory: &memory, mappings, vector: &vector, program: None };
        let images = images::find(&known, &limits);
        images.iter().map(|image| image.range.unwrap().start().get()).collect::<Vec<_>>()
    };
    let mut mappings = vec![first_page(0x1000, "r"), first_page(0x2000, "rx"), first_page(0x3000, "rw")];
    assert_eq!(ranges(&mappings), [0x1000]);
    // The same program once more, right behind.
    mappings.extend([first_page(0x4000, "r"), first_page(0x5000, "rx")]);
    assert_eq!(ranges(&mappings), [0x1000, 0x4000]);
    // Code that is mapped once more elsewhere is a copy of its own.
    let code = |start| Mapping { offset: FileOffset::new(0x1000), ..first_page(start, "rx") };
    assert_eq!(
        ranges(&[first_page(0x1000, "r"), code(0x2000), code(0x9000), code(0x1_9000)]),
        [0x1000, 0x9000, 0x1_9000]
    );
    // With a hole between them nothing tells that they belong together.
    assert_eq!(ranges(&[first_page(0x1000, "r"), first_page(0x9000, "rx")]), [0x9000]);
}

/// Seen with gcore and a program of Go that was started by a relative path: its file was looked for by that.
#[test]
fn a_program_whose_code_is_left_out_has_the_path_of_its_file() {
    let (data, limits) = (usual(), Limits::default());
    let header = Header::parse(&data, &limits).unwrap();
    let mut headers = vec![0; 2 * 56];
    for (at, kind, address, size) in [(0, 6_u64, 0x40_0040, 112), (56, 1, 0x40_0000, 0x6_0000)] {
        put(&mut headers, at, kind, 4);
        put(&mut headers, at + 16, address, 8);
        put(&mut headers, at + 40, size, 8);
    }
    let memory = Memory::new([(Avma::new(0x40_0040), headers.into())]);
    let words: Vec<u8> = [3_u64, 0x40_0040, 4, 56, 5, 2, 9, 0x40_2000, 0, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let vector = AuxVector::parse(&words, true);
    let part = |start, size, offset| Mapping {
        range: AddrRange::from_size(Avma::new(start), size),
        offset: FileOffset::new(offset),
        ..first_page(0, "r")
    };
    let mappings = [part(0x40_0000, 0x2000, 0), part(0x40_2000, 0x5_e000, 0x2000)];
    let known = images::Known {
        header: &header,
        memory: &memory,
        mappings: &mappings,
        vector: &vector,
        program: None,
    };
    let images = images::find(&known, &limits);
    let program = images.iter().find(|image| image.is_executable).unwrap();
    assert_eq!((program.path.as_str(), program.bias), ("/bin/tiny", Some(Bias::default())));
}

/// Seen with gcore and V8, which maps the code of its builtins once more for each of its threads: gcore leaves out code, and does
/// not say then what may be done there.
#[test]
fn code_that_is_mapped_once_more_and_left_out_is_an_image_of_its_own() {
    let (data, limits) = (usual(), Limits::default());
    let header = Header::parse(&data, &limits).unwrap();
    let (memory, vector) = (Memory::new([]), AuxVector::default());
    let part = |name: &str, start, offset, access| Mapping {
        range: AddrRange::from_size(Avma::new(start), 0x8000),
        offset: FileOffset::new(offset),
        name: name.to_owned(),
        ..first_page(0, access)
    };
    let all = |original| {
        let mappings = [
            part("/bin/js", 0x7f00_0000_0000, 0, "r"),
            part("/bin/js", 0x7f00_0000_8000, 0x8000, original),
            part("/bin/js", 0x7f00_0001_0000, 0x1_0000, "r"),
            part("/bin/js", 0x7f10_0000_0000, 0x8000, "r"),
            part("/bin/js", 0x7f20_0000_0000, 0x8000, "r"),
            part("/usr/share/font", 0x7f30_0000_0000, 0x8000, "r"),
            part("/usr/share/font", 0x7f40_0000_0000, 0x8000, "r"),
        ];
        let known = images::Known {
            header: &header,
            memory: &memory,
            mappings: &mappings,
            vector: &vector,
            program: None,
        };
        let images = images::find(&known, &limits);
        let places = images.iter().map(|image| (image.name().to_owned(), image.range.unwrap().start().get()));
        places.collect::<Vec<_>>()
    };
    let of = |start: u64| ("js".to_owned(), start);
    assert_eq!(all("rx"), [of(0x7f00_0000_0000), of(0x7f10_0000_0000), of(0x7f20_0000_0000)]);
    // Of a file that nothing else says to be code, nothing says that its parts are.
    assert_eq!(all("r"), []);
}

/// A core of some megabytes can list as many ranges: what is looked for among all of them for each would take hours.
#[test]
fn many_mappings_take_no_longer_each_than_few() {
    const COUNT: u64 = 200_000;
    let (limits, memory, vector) = (Limits::default(), Memory::new([]), AuxVector::default());
    let segment = |index: u64| header::Segment {
        kind: header::PT_LOAD,
        flags: header::PF_X,
        offset: 0,
        start: Avma::new(index << 16),
        file_size: 0,
        memory_size: 0x2000,
    };
    let header = Header::new(Arch::X86_64, true, (0..COUNT).map(segment).collect());
    let of = |offset: fn(u64) -> u64, name: fn(u64) -> String, access| {
        let mapping = |index: u64| Mapping {
            range: AddrRange::from_size(Avma::new((index << 16) + 0x4000), 0x2000),
            offset: FileOffset::new(offset(index)),
            name: name(index),
            ..first_page(0, access)
        };
        (0..COUNT).map(mapping).collect::<Vec<_>>()
    };
    let one = |_: u64| "/bin/one".to_owned();
    let own = |index: u64| format!("/lib/{index}");
    let rising = |index: u64| (index + 1) << 12;
    let lists = [
        of(rising, one, "r"),
        of(rising, one, "rx"),
        of(|_| 0x8000, one, "r"),
        of(|_| 0x8000, one, "rx"),
        of(rising, own, "rx"),
        of(|_| 0, one, "rx"),
    ];
    let began = Instant::now();
    for mappings in &lists {
        let known =
            images::Known { header: &header, memory: &memory, mappings, vector: &vector, program: None };
        images::find(&known, &limits);
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
