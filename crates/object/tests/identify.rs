//! How much a scan reads of a file.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;

use std::cell::Cell;

use backtrail_core::FileOffset;
use backtrail_object::{Error, ErrorKind, Format, Limits, ReadAt, identify, slices};
use backtrail_testkit::{Elf, ElfSection, MachO, MachSection, MachSegment, fat};

/// Counts what is read of it, and pretends to be larger than it is.
struct Counting<'d> {
    data: &'d [u8],
    len: u64,
    bytes: Cell<u64>,
    calls: Cell<u64>,
    fails: bool,
}

impl<'d> Counting<'d> {
    fn new(data: &'d [u8]) -> Self {
        let (bytes, calls) = (Cell::new(0), Cell::new(0));
        Self { data, len: data.len() as u64, bytes, calls, fails: false }
    }
}

impl ReadAt for Counting<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: FileOffset, buf: &mut [u8]) -> Result<(), Error> {
        self.bytes.set(self.bytes.get() + buf.len() as u64);
        self.calls.set(self.calls.get() + 1);
        if self.fails && self.calls.get() > 1 {
            return Err(Error::io(offset, &std::io::Error::other("device gone")));
        }
        buf.fill(0);
        let start = usize::try_from(offset.get()).unwrap_or(usize::MAX).min(self.data.len());
        let there = &self.data[start..(start + buf.len()).min(self.data.len())];
        buf[..there.len()].copy_from_slice(there);
        Ok(())
    }
}

#[test]
fn a_scan_reads_headers_alone() {
    for file in common::files() {
        let counting = Counting::new(&file.data);
        let Ok(identities) = identify(&counting, &Limits::default()) else { continue };
        let name = file.path.display();
        let slices = slices(&file.data, &Limits::default()).unwrap();
        let whole = counting.len;
        // ELF: the names of sections are at the end, and dynamic section, notes and a page of code somewhere.
        let headers: u64 = slices
            .iter()
            .filter_map(|slice| slice.parse(&Limits::default()).ok())
            .map(|object| match object.format() {
                Format::MachO => 12 << 10,
                Format::Elf => (40 << 10) + 96 * object.sections().len() as u64,
            })
            .sum();
        assert!(counting.bytes.get() <= headers, "{name}: {} bytes of {whole}", counting.bytes.get());
        assert!(
            counting.calls.get() <= 12 * (1 + identities.len() as u64),
            "{name}: {}",
            counting.calls.get()
        );
    }
}

#[test]
fn a_scan_sees_what_parsing_sees() {
    for file in common::files() {
        let Ok(identities) = identify(&file.data, &Limits::default()) else { continue };
        let slices = slices(&file.data, &Limits::default()).unwrap();
        assert_eq!(identities.len(), slices.len(), "{}", file.path.display());
        for (identity, slice) in identities.iter().zip(&slices) {
            let object = slice.parse(&Limits::default()).unwrap();
            let parsed = (object.format(), object.kind(), object.arch(), object.id());
            assert_eq!((identity.format, identity.kind, identity.arch, identity.id), parsed);
            assert_eq!(identity.has_debug_info, object.has_debug_info());
            assert_eq!(identity.has_symbols, object.has_symbols());
            assert_eq!((identity.range, &identity.member), (slice.range, &slice.member));
            assert_eq!(slice.arch, object.arch());
        }
    }
}

#[test]
fn large_files_cost_no_more_than_small_ones() {
    let info = MachSection { name: "__debug_info", address: 0x9000, flags: 0, data: vec![1; 16], size: 0 };
    let segment =
        MachSegment { name: "__DWARF", address: 0x9000, size: 16, protection: 3, sections: vec![info] };
    let mach_o =
        MachO { uuid: Some([1; 16]), segments: vec![segment], file_type: 10, ..MachO::default() }.build();
    let elf = Elf::default();
    let note =
        ElfSection { name: ".note", kind: 7, data: elf.build_id_note(&[2; 20]), ..ElfSection::default() };
    let elf = Elf { sections: vec![note], ..elf }.build();
    for data in [fat(false, &[(0x0100_000c, 0, mach_o.clone()), (0x0100_0007, 3, mach_o)]), elf] {
        let counting = Counting { len: 1 << 50, ..Counting::new(&data) };
        let identities = identify(&counting, &Limits::default()).unwrap();
        assert!(identities.iter().all(|identity| identity.id.is_some()));
        assert!(counting.bytes.get() < 32 << 10, "{}", counting.bytes.get());
    }
}

#[test]
fn headers_that_would_be_huge_are_not_read() {
    let mut mach_o = MachO { uuid: Some([1; 16]), ..MachO::default() }.build();
    mach_o[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut elf = Elf::default().build();
    elf[60..62].fill(0);
    let table = usize::try_from(u64::from_le_bytes(elf[40..48].try_into().unwrap())).unwrap();
    elf[table + 32..table + 40].copy_from_slice(&(1u64 << 19).to_le_bytes());
    for data in [mach_o, elf] {
        let counting = Counting { len: 1 << 50, ..Counting::new(&data) };
        let limits = Limits { identify_bytes: 64 << 10, ..Limits::default() };
        let _ = identify(&counting, &limits);
        assert!(counting.bytes.get() <= 80 << 10, "{}", counting.bytes.get());
    }
}

#[test]
fn a_device_that_fails_is_named() {
    let data = Elf::default().build();
    let counting = Counting { fails: true, ..Counting::new(&data) };
    let error = identify(&counting, &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("device gone"), "{error}");
}
