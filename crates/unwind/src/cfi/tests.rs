use super::*;
use crate::row::{Cfa, Miss, Row, Rule};
use crate::sections::{Section, Sections};
use alloc::vec;
use alloc::vec::Vec;
use backtrail_core::{Arch, Register, Svma};

const TEXT: u64 = 0x1000;
const FRAMES: u64 = 0x9000;

/// Lays out entries; `.eh_frame` unless said otherwise.
struct Maker {
    bytes: Vec<u8>,
    debug: bool,
}

impl Maker {
    fn new() -> Self {
        Self { bytes: Vec::new(), debug: false }
    }

    fn entry(&mut self, parts: &[&[u8]]) -> usize {
        let offset = self.bytes.len();
        let mut body = parts.concat();
        body.resize(body.len().next_multiple_of(4), 0);
        self.bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        self.bytes.extend(body);
        offset
    }

    /// Version 1, augmentation `zR` with this encoding, x86_64's numbers, `CFA = rsp + 8`.
    fn cie(&mut self, encoding: u8) -> usize {
        self.entry(&[&[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, encoding, 0x0c, 7, 8, 0x90, 1]])
    }

    fn fde(&mut self, cie: usize, range: &[u8], instructions: &[u8]) -> usize {
        let id = if self.debug { cie } else { self.bytes.len() + 4 - cie };
        let id = u32::try_from(id).unwrap().to_le_bytes();
        let augmentation: &[u8] = if self.debug { &[] } else { &[0] };
        self.entry(&[&id, range, augmentation, instructions])
    }

    fn frames(&self) -> Frames<'_> {
        Frames::new(&self.sections(), if self.debug { Flavour::DebugFrame } else { Flavour::EhFrame })
            .unwrap()
    }

    fn sections(&self) -> Sections<'_> {
        let section = Some(Section::new(Svma::new(FRAMES), &self.bytes));
        let mut sections = Sections { arch: Some(Arch::X86_64), ..Sections::default() };
        if self.debug {
            sections.debug_frame = section;
        } else {
            sections.eh_frame = section;
        }
        sections
    }
}

fn absolute(start: u64, size: u64) -> Vec<u8> {
    [start.to_le_bytes(), size.to_le_bytes()].concat()
}

fn at(offset: u64) -> Svma {
    Svma::new(TEXT + offset)
}

fn cfa(row: &Row) -> (u8, i32) {
    match row.cfa {
        Cfa::RegisterOffset(register, offset) => (register.0, offset),
        Cfa::Expression(_) => panic!("an expression"),
    }
}

/// One function of 0x100 bytes with these instructions.
fn one(instructions: &[u8]) -> Maker {
    let mut maker = Maker::new();
    let cie = maker.cie(0);
    maker.fde(cie, &absolute(TEXT, 0x100), instructions);
    maker
}

#[test]
fn a_usual_function() {
    // push rbp; mov rbp, rsp; …; pop rbp
    let maker = one(&[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0xf0, 0x0c, 7, 8]);
    let frames = maker.frames();
    let rows: Vec<_> = frames.rows(&frames.find_fde(at(0)).unwrap()).map(Result::unwrap).collect();
    let ranges: Vec<_> = rows.iter().map(|(range, row)| (range.start().get() - TEXT, cfa(row))).collect();
    assert_eq!(ranges, [(0, (7, 8)), (1, (7, 16)), (4, (6, 16)), (0xf4, (7, 8))]);
    assert_eq!(rows[2].1.rule(Register(6)), Rule::Offset(-16));
    assert_eq!(rows[2].1.return_address, Rule::Offset(-8));
    let found = frames.find(at(0xf3)).unwrap();
    assert_eq!((found.covered.start(), found.covered.end()), (at(4), at(0xf4)));
    assert_eq!(frames.find(at(0x100)), Err(Miss::NotCovered));
    assert_eq!(frames.find(Svma::new(TEXT - 1)), Err(Miss::NotCovered));
}

#[test]
fn every_instruction() {
    let row = |instructions: &[u8]| {
        let maker = one(instructions);
        maker.frames().find(at(0xff)).unwrap().row
    };
    assert_eq!(cfa(&row(&[0x0c, 3, 0x90, 1])), (3, 144));
    assert_eq!(cfa(&row(&[0x12, 3, 2])), (3, -16));
    assert_eq!(cfa(&row(&[0x0d, 5])), (5, 8));
    assert_eq!(cfa(&row(&[0x0e, 24])), (7, 24));
    assert_eq!(cfa(&row(&[0x13, 0x7e])), (7, 16));
    assert_eq!(row(&[0x83, 3]).rule(Register(3)), Rule::Offset(-24));
    assert_eq!(row(&[0x05, 3, 3]).rule(Register(3)), Rule::Offset(-24));
    assert_eq!(row(&[0x11, 3, 0x7d]).rule(Register(3)), Rule::Offset(24));
    assert_eq!(row(&[0x2f, 3, 3]).rule(Register(3)), Rule::Offset(24));
    assert_eq!(row(&[0x14, 3, 1]).rule(Register(3)), Rule::ValueOffset(-8));
    assert_eq!(row(&[0x15, 3, 0x7f]).rule(Register(3)), Rule::ValueOffset(8));
    assert_eq!(row(&[0x07, 3]).rule(Register(3)), Rule::Undefined);
    assert_eq!(row(&[0x83, 3, 0x08, 3]).rule(Register(3)), Rule::Same);
    assert_eq!(row(&[0x09, 3, 12]).rule(Register(3)), Rule::Register(Register(12)));
    assert_eq!(row(&[0x83, 3, 0xc3]).rule(Register(3)), Rule::Same);
    assert_eq!(row(&[0x83, 3, 0x06, 3]).rule(Register(3)), Rule::Same);
    assert_eq!(row(&[0x83, 3, 0x0a, 0x83, 5, 0x0e, 64, 0x0b]), row(&[0x83, 3]));
    assert_eq!(row(&[0x2e, 0x40, 0x2d, 0x2c, 0]), row(&[]));
    assert_eq!(row(&[0x07, 16]).return_address, Rule::Undefined);
    // A register that there is no place for (xmm0) is let go.
    assert_eq!(row(&[0x05, 17, 3, 0x05, 0x80, 0x02, 3]), row(&[]));
    for advance in [
        &[0x50][..],
        &[0x02, 0x10],
        &[0x03, 0x10, 0],
        &[0x04, 0x10, 0, 0, 0],
        &[0x1d, 0x10, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let maker = one(&[advance, &[0x0e, 16]].concat());
        assert_eq!(maker.frames().find(at(0x10)).unwrap().covered.start(), at(0x10), "{advance:x?}");
    }
    let maker = one(&[&[0x01][..], &(TEXT + 0x20).to_le_bytes(), &[0x0e, 16]].concat());
    assert_eq!(maker.frames().find(at(0x20)).unwrap().covered.start(), at(0x20));
}

#[test]
fn expressions_keep_their_bytes() {
    let maker = one(&[0x0f, 2, 0x77, 8, 0x10, 3, 1, 0x31, 0x16, 6, 1, 0x32]);
    let frames = maker.frames();
    let row = frames.find(at(0)).unwrap().row;
    let Cfa::Expression(expression) = row.cfa else { panic!("no expression") };
    assert_eq!(frames.expression(expression), Some(&[0x77, 8][..]));
    let Rule::Expression(expression) = row.rule(Register(3)) else { panic!("no expression") };
    assert_eq!(frames.expression(expression), Some(&[0x31][..]));
    let Rule::ValueExpression(expression) = row.rule(Register(6)) else { panic!("no expression") };
    assert_eq!(frames.expression(expression), Some(&[0x32][..]));
}

#[test]
fn broken_programs_are_faults_and_end() {
    let fault = |instructions: &[u8]| {
        let maker = one(instructions);
        let result = maker.frames().find(at(0xff));
        assert!(matches!(result, Err(Miss::Malformed(_))), "{instructions:x?}: {result:?}");
    };
    fault(&[0x3f]);
    fault(&[0x0b]);
    fault(&[0x0c, 0x80]);
    fault(&[0x0f, 0x70, 0]);
    fault(&[0x0f, 1, 0x30, 0x0e, 8]);
    fault(&[0x0a; 100]);
    fault(&[0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    fault(&[&[0x41, 0x01][..], &TEXT.to_le_bytes()].concat());
    // A fault behind the address does not matter.
    let maker = one(&[0x50, 0x0e, 16, 0x50, 0x3f]);
    assert_eq!(cfa(&maker.frames().find(at(0x10)).unwrap().row), (7, 16));
}

#[test]
fn pointer_encodings() {
    let start = |encoding: u8, pointer: &[u8], size: &[u8], sections: &dyn Fn(&mut Sections<'static>)| {
        let mut maker = Maker::new();
        let cie = maker.cie(encoding);
        maker.fde(cie, &[pointer, size].concat(), &[]);
        let bytes: &'static [u8] = maker.bytes.leak();
        let mut given = Sections { arch: Some(Arch::X86_64), ..Sections::default() };
        given.eh_frame = Some(Section::new(Svma::new(FRAMES), bytes));
        sections(&mut given);
        let frames = Frames::new(&given, Flavour::EhFrame).unwrap();
        let fde =
            frames.entries().find_map(|entry| if let Entry::Fde(fde) = entry { Some(fde) } else { None });
        fde.map(|fde| (fde.range.start().get(), fde.range.size()))
    };
    let none = |_: &mut Sections<'static>| {};
    assert_eq!(start(0x02, &[0, 0x10], &[0, 1], &none), Some((0x1000, 0x100)));
    assert_eq!(start(0x03, &[0, 0x10, 0, 0], &[0, 1, 0, 0], &none), Some((0x1000, 0x100)));
    assert_eq!(start(0x04, &TEXT.to_le_bytes(), &[0, 1, 0, 0, 0, 0, 0, 0], &none), Some((0x1000, 0x100)));
    assert_eq!(start(0x01, &[0x80, 0x20], &[0x80, 0x02], &none), Some((0x1000, 0x100)));
    // pcrel sdata4, from the pointer's own place: behind the CIE (24 bytes) and eight bytes of the FDE
    let distance = i32::try_from(TEXT.cast_signed() - (FRAMES + 24 + 8).cast_signed()).unwrap();
    assert_eq!(start(0x1b, &distance.to_le_bytes(), &[0, 1, 0, 0], &none), Some((0x1000, 0x100)));
    let got = |sections: &mut Sections<'static>| sections.got = Some(Svma::new(0x4000));
    assert_eq!(start(0x3b, &(-0x3000i32).to_le_bytes(), &[0, 1, 0, 0], &got), Some((0x1000, 0x100)));
    assert_eq!(start(0x3b, &[0, 0, 0, 1], &[0, 1, 0, 0], &none), None);
    let text =
        |sections: &mut Sections<'static>| sections.text = vec![Section::new(Svma::new(TEXT), &[0; 64])];
    assert_eq!(start(0x2b, &[8, 0, 0, 0], &[0, 1, 0, 0], &text), Some((0x1008, 0x100)));
    let data = |sections: &mut Sections<'static>| {
        sections.data = vec![Section::new(Svma::new(0x6000), &[0, 0x10, 0, 0, 0, 0, 0, 0])];
    };
    assert_eq!(start(0x83, &[0, 0x60, 0, 0], &[0, 1, 0, 0], &data), Some((0x1000, 0x100)));
    assert_eq!(start(0x83, &[0, 0x70, 0, 0], &[0, 1, 0, 0], &data), None);
    assert_eq!(start(0x0d, &[0, 0x10, 0, 0], &[0, 1, 0, 0], &none), None);
}

#[test]
fn augmentations_and_versions() {
    let cie = |bytes: &[u8]| {
        let mut maker = Maker::new();
        maker.entry(&[&[0, 0, 0, 0], bytes]);
        let entry = maker.frames().entries().next();
        if let Some(Entry::Cie(cie)) = entry { Some(cie) } else { None }
    };
    let signal = cie(&[1, b'z', b'R', b'S', 0, 1, 0x78, 16, 1, 0x1b]).unwrap();
    assert!(signal.is_signal_frame);
    assert_eq!(signal.encoding, 0x1b);
    let all = cie(&[
        3, b'z', b'P', b'L', b'R', b'B', b'G', 0, 4, 0x7c, 0x9e, 0x01, 7, 0x03, 1, 2, 3, 4, 0x1b, 0x1b,
    ]);
    let all = all.unwrap();
    assert_eq!((all.version, all.code_alignment, all.data_alignment), (3, 4, -4));
    assert_eq!((all.return_address_register, all.encoding), (158, 0x1b));
    // An unknown letter behind `z` costs nothing; without `z` nobody knows where the instructions begin.
    assert!(cie(&[1, b'z', b'?', 0, 1, 0x78, 16, 3, 1, 2, 3]).is_some());
    assert!(cie(&[1, b'?', 0, 1, 0x78, 16]).is_none());
    assert_eq!(cie(&[1, b'e', b'h', 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0x78, 16]).unwrap().data_alignment, -8);
    let four = cie(&[4, 0, 4, 0, 1, 0x78, 8]).unwrap();
    assert_eq!((four.address_size, four.return_address_register), (4, 8));
    assert!(cie(&[2, 0, 1, 0x78, 16]).is_none());
    assert!(cie(&[4, 0, 4, 2, 1, 0x78, 8]).is_none());
    let padded = |size: usize| cie(&[&[1, 0, 1, 0x78, 16][..], &vec![0; size]].concat());
    assert!(padded(4000).is_some() && padded(4200).is_none());
}

#[test]
fn a_cie_may_come_last_and_terminators_anywhere() {
    let mut maker = Maker::new();
    // `.debug_frame` refers to its CIE from the section's start, wherever that is.
    maker.debug = true;
    maker.fde(24 + 4, &absolute(TEXT, 0x10), &[]);
    maker.bytes.extend([0; 4]);
    assert_eq!(maker.bytes.len(), 28);
    maker.entry(&[&[0xff; 4], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]]);
    maker.fde(28, &absolute(TEXT + 0x10, 0x10), &[0x0e, 40]);
    let frames = maker.frames();
    assert_eq!(cfa(&frames.find(at(0)).unwrap().row), (7, 8));
    assert_eq!(cfa(&frames.find(at(0x1f)).unwrap().row), (7, 40));
    assert!(frames.entries().any(|entry| entry == Entry::Terminator(24)));
}

#[test]
fn one_broken_entry_does_not_cost_the_rest() {
    let mut maker = Maker::new();
    let cie = maker.cie(0);
    // A CIE pointer to before the section; then an entry of the wrong version with an FDE of its own.
    maker.entry(&[&[0xff, 0xff, 0, 0], &absolute(TEXT, 0x10)]);
    let wrong = maker.entry(&[&[0, 0, 0, 0, 9, 0, 1, 0x78, 16]]);
    maker.fde(wrong, &absolute(TEXT + 0x10, 0x10), &[]);
    maker.fde(cie, &absolute(TEXT + 0x20, 0x10), &[]);
    let frames = maker.frames();
    assert_eq!(frames.entries().filter(|entry| matches!(entry, Entry::Malformed(_))).count(), 3);
    assert_eq!(frames.find(at(0x10)), Err(Miss::NotCovered));
    assert_eq!(cfa(&frames.find(at(0x20)).unwrap().row), (7, 8));
    // A length that leaves the section ends the reading.
    maker.bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    let last = maker.frames().entries().last();
    assert!(matches!(last, Some(Entry::Malformed(malformed)) if malformed.at.get() > FRAMES));
}

#[test]
fn sixty_four_bit_lengths() {
    let mut maker = Maker::new();
    maker.debug = true;
    let mut wide = |parts: &[&[u8]]| {
        let body = parts.concat();
        maker.bytes.extend([0xff; 4]);
        maker.bytes.extend((body.len() as u64).to_le_bytes());
        maker.bytes.extend(body);
    };
    wide(&[&[0xff; 8], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]]);
    wide(&[&[0; 8], &absolute(TEXT, 0x10), &[0x0e, 48]]);
    assert_eq!(cfa(&maker.frames().find(at(4)).unwrap().row), (7, 48));
}

/// A header that lists these pairs of function start and FDE offset.
fn header(pairs: &[(u64, usize)]) -> Vec<u8> {
    const HEADER: u64 = 0x8000;
    let mut bytes = vec![1, 0x03, 0x03, 0x3b];
    bytes.extend(u32::try_from(FRAMES).unwrap().to_le_bytes());
    bytes.extend(u32::try_from(pairs.len()).unwrap().to_le_bytes());
    for (start, offset) in pairs {
        bytes.extend((u32::try_from(*start).unwrap().wrapping_sub(HEADER as u32)).to_le_bytes());
        bytes.extend(
            (u32::try_from(FRAMES - HEADER).unwrap() + u32::try_from(*offset).unwrap()).to_le_bytes(),
        );
    }
    bytes
}

#[test]
fn headers_are_searched_and_those_that_lie_are_not_believed() {
    let mut maker = Maker::new();
    let cie = maker.cie(0);
    let first = maker.fde(cie, &absolute(TEXT, 0x10), &[]);
    // A function of no bytes, which shares its address with the next; LLD lists only one of the two.
    let empty = maker.fde(cie, &absolute(TEXT + 0x10, 0), &[]);
    let second = maker.fde(cie, &absolute(TEXT + 0x10, 0x10), &[0x0e, 32]);
    let find = |header: &[u8], offset: u64| {
        let mut sections = maker.sections();
        sections.eh_frame_hdr = Some(Section::new(Svma::new(0x8000), header));
        assert_eq!(eh_frame_start(&sections.eh_frame_hdr.unwrap(), Arch::X86_64), Some(Svma::new(FRAMES)));
        let frames = Frames::new(&sections, Flavour::EhFrame).unwrap();
        frames.find(at(offset)).map(|found| cfa(&found.row).1)
    };
    let honest = header(&[(TEXT, first), (TEXT + 0x10, empty)]);
    let swapped = header(&[(TEXT, second), (TEXT + 0x10, first)]);
    let nowhere = header(&[(TEXT, 0x4000), (TEXT + 0x10, 0x5000)]);
    let unsorted = header(&[(TEXT + 0x10, second), (TEXT, first)]);
    let mut cut = honest.clone();
    cut.truncate(20);
    for header in [honest, swapped, nowhere, unsorted, cut, header(&[])] {
        assert_eq!(find(&header, 0xf), Ok(8), "{header:x?}");
        assert_eq!(find(&header, 0x10), Ok(32), "{header:x?}");
        assert_eq!(find(&header, 0x20), Err(Miss::NotCovered));
    }
}

#[test]
fn apple_swaps_two_registers_of_i386() {
    let mut maker = Maker::new();
    let cie = maker.entry(&[&[0, 0, 0, 0, 1, 0, 1, 0x7c, 8, 0x0c, 5, 4, 0x88, 1]]);
    let back = u32::try_from(maker.bytes.len() + 4 - cie).unwrap().to_le_bytes();
    maker.entry(&[&back, &[0, 0x10, 0, 0, 0x10, 0, 0, 0], &[0x84, 2]]);
    let mut sections = maker.sections();
    sections.arch = Some(Arch::X86);
    sections.is_mach_o = true;
    let row = Frames::new(&sections, Flavour::EhFrame).unwrap().find(at(0)).unwrap().row;
    assert_eq!(cfa(&row), (4, 4));
    assert_eq!(row.rule(Register(5)), Rule::Offset(-8));
}

#[test]
fn numbers_of_any_length() {
    let number = |bytes: &[u8]| Cursor::new(Svma::new(0), bytes).uleb();
    assert_eq!(number(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), Ok(u64::MAX));
    assert!(number(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).is_err());
    assert!(number(&[0x80; 12]).is_err());
    let signed = |bytes: &[u8]| Cursor::new(Svma::new(0), bytes).sleb();
    assert_eq!(signed(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f]), Ok(i64::MIN));
    assert_eq!(signed(&[0xff, 0x00]), Ok(127));
    assert!(signed(&[0x80]).is_err());
}
