//! A small program with Go's table, in every version of it: `main.main`, into which `main.add` is inlined from 0x10 to
//! 0x20, and `main.other`.

use backtrail_testkit::{Assembler, Elf, ElfProgram, ElfSection};

// Where the parts lie. The text starts elsewhere than its section, as in programs with C in them.
const TEXT_SECTION: u64 = 0x40_0f00;
pub(crate) const TEXT: u64 = 0x40_1000;
const END: u64 = 0x40_1080;
const RODATA: u64 = 0x48_0000;
const TABLE: u64 = 0x49_0000;
const DATA: u64 = 0x4d_a000;

// Where the parts of the table lie.
const NAMES: u32 = 0x100;
const UNITS: u32 = 0x140;
const FILES: u32 = 0x160;
const VALUES: u32 = 0x180;
const FUNCTIONS: u32 = 0x1c0;

/// Of Go 1.2, 1.16, 1.18 and 1.20.
pub(crate) const MAGICS: [u32; 4] = [0xffff_fffb, 0xffff_fffa, 0xffff_fff0, 0xffff_fff1];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) magic: u32,
    pub(crate) is_64: bool,
    pub(crate) is_big: bool,
    /// Whether the runtime's module is there, which leads to the text and the trees.
    pub(crate) has_module: bool,
    /// Whether the module has three sizes more before its read-only data, as since Go 1.27.
    pub(crate) has_sizes: bool,
    /// Whether the header states where the text starts.
    pub(crate) states_text: bool,
    /// The functions' starts, and the end of the last, from the text's.
    pub(crate) entries: [u64; 3],
}

impl Program {
    pub(crate) fn new(magic: u32) -> Self {
        let entries = [0, 0x40, END - TEXT];
        let (is_64, is_big, has_module, has_sizes, states_text) = (true, false, true, false, true);
        Self { magic, is_64, is_big, has_module, has_sizes, states_text, entries }
    }

    pub(crate) fn has_offsets(self) -> bool {
        MAGICS[2..].contains(&self.magic)
    }

    fn is_first(self) -> bool {
        self.magic == MAGICS[0]
    }

    fn assembler(self) -> Assembler {
        Assembler::with(self.is_64, self.is_big)
    }

    fn word(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    /// Before 1.16 all offsets count from the table's start.
    fn from(self, part: u32, offset: u32) -> u32 {
        if self.is_first() { part + offset } else { offset }
    }

    pub(crate) fn table(self) -> Vec<u8> {
        let mut out = self.assembler();
        out.u32(self.magic).u8(0).u8(0).u8(1).u8(self.word()).word(2);
        if self.is_first() {
            self.functions(&mut out, 0);
        } else {
            out.word(3);
            if self.has_offsets() {
                out.word(if self.states_text { TEXT } else { 0 });
            }
            [NAMES, UNITS, FILES, VALUES, FUNCTIONS].iter().for_each(|offset| {
                out.word((*offset).into());
            });
        }
        out.pad_to(NAMES as usize).bytes(b"\0main.main\0main.add\0main.other\0").pad_to(UNITS as usize);
        if self.is_first() {
            out.u32(4).u32(FILES + 1).u32(FILES + 9).u32(FILES + 16);
        } else {
            // Of the second unit's files no code of the first is left.
            out.u32(1).u32(9).u32(u32::MAX).u32(16);
        }
        out.pad_to(FILES as usize).bytes(b"\0main.go\0add.go\0other.go\0");
        out.pad_to(VALUES as usize).bytes(&self.values()).pad_to(FUNCTIONS as usize);
        if !self.is_first() {
            self.functions(&mut out, FUNCTIONS);
        }
        out.finish()
    }

    /// From 1, 8 and 15 on files, lines and inlined calls of the first function, from 22 and 25 on files and lines of the
    /// second; from 28 on the first's depths: none up to 16, 32 bytes up to 48, none. Files count from 1 in one list, from 0 in
    /// that of a unit.
    fn values(self) -> Vec<u8> {
        let (first, second) = if self.is_first() { (4, 8) } else { (2, 4) };
        let main = [first, 16, 2, 16, 1, 32, 0, 22, 16, 20, 16, 15, 32, 0, 0, 16, 2, 16, 1, 32, 0];
        let depths = [2, 16, 64, 32, 63, 16, 0];
        [&[0], &main[..], &[second, 64, 0, 42, 64, 0], &depths].concat()
    }

    fn functions(self, out: &mut Assembler, from: u32) {
        let first = if self.is_first() { 0x50 } else { FUNCTIONS + 0x40 };
        let ends = self.entries.map(|entry| if self.has_offsets() { entry } else { TEXT + entry });
        let number = |out: &mut Assembler, value: u64| {
            if self.has_offsets() {
                out.u32(u32::try_from(value).unwrap())
            } else {
                out.word(value)
            };
        };
        for (entry, offset) in [(ends[0], first), (ends[1], first + 0x50)] {
            number(out, entry);
            number(out, (offset - from).into());
        }
        number(out, ends[2]);
        // Behind it, before 1.16: where the list of files is.
        out.u32(UNITS).pad_to(first as usize);
        number(out, ends[0]);
        self.function(out, 1, [28, 1, 8, 15], 0);
        out.pad_to(first as usize + 0x50);
        number(out, ends[1]);
        self.function(out, 20, [0, 22, 25, 0], 2);
    }

    fn function(self, out: &mut Assembler, name: u32, [depth, file, line, inlined]: [u32; 4], unit: u32) {
        let values = |offset| if offset == 0 { 0 } else { self.from(VALUES, offset) };
        // Name, size of arguments, deferred return, stack, files, lines, number of tables.
        out.u32(self.from(NAMES, name))
            .u32(0)
            .u32(0)
            .u32(values(depth))
            .u32(values(file))
            .u32(values(line))
            .u32(3);
        if !self.is_first() {
            out.u32(unit);
        }
        if self.magic == MAGICS[3] {
            out.u32(9);
        }
        // The second is marked as one that writes the stack pointer (flags, since 1.17).
        out.u8(0).u8(if depth == 0 { 2 } else { 0 }).u8(0).u8(4).u32(0).u32(0).u32(values(inlined));
        if self.has_offsets() {
            out.u32(u32::MAX).u32(u32::MAX).u32(u32::MAX).u32(if inlined == 0 { u32::MAX } else { 0x20 });
        }
    }

    /// The runtime's module, behind words that look like its start.
    pub(crate) fn data(self) -> Vec<u8> {
        let mut out = self.assembler();
        out.word(7).word(TABLE);
        let coverage = if self.magic == MAGICS[3] { 2 } else { 0 };
        let sizes = if self.has_sizes { 3 } else { 0 };
        for word in 0..47 {
            out.word(match word {
                // `types`, `typedesclen`, `etypes`, `itaboffset`, `itabsize`.
                39 if self.has_sizes => RODATA + 8,
                38 | 40 | 41 if self.has_sizes => 0x48,
                0 => TABLE,
                1 => TABLE + u64::from(NAMES),
                20 => TEXT + self.entries[0],
                22 => TEXT,
                _ if word == 37 + coverage + sizes => RODATA,
                _ if word == 38 + coverage + sizes => RODATA + 0x10,
                _ => 0,
            });
        }
        out.finish()
    }

    /// The tree of the one inlined call, 0x20 from what offsets count from. It stands where 0x2f belongs to.
    pub(crate) fn rodata(self) -> Vec<u8> {
        let mut out = self.assembler();
        out.zeros(0x30);
        if self.magic == MAGICS[3] {
            out.u32(0).u32(11).u32(0x2f).u32(30);
        } else {
            out.u32(0xffff).u32(0).u32(12).u32(11).u32(0x2f);
        }
        out.finish()
    }

    pub(crate) fn build(self) -> Vec<u8> {
        self.build_with(self.table())
    }

    pub(crate) fn build_with(self, table: Vec<u8>) -> Vec<u8> {
        let section = |name, flags, address, data| ElfSection {
            name,
            kind: 1,
            flags,
            address,
            data,
            ..ElfSection::default()
        };
        let text = vec![0x90; (END + 0x20 - TEXT_SECTION) as usize];
        let data = if self.has_module { self.data() } else { Vec::new() };
        let sections = vec![
            section(".text", 6, TEXT_SECTION, text),
            section(".rodata", 2, RODATA, self.rodata()),
            section(".gopclntab", 2, TABLE, table),
            section(".data", 3, DATA, data),
        ];
        let rodata = Some((2, 2));
        let programs = vec![ElfProgram {
            kind: 1,
            flags: 4,
            address: RODATA,
            sections: rodata,
            ..ElfProgram::default()
        }];
        let machine = if self.is_64 { 62 } else { 3 };
        let Self { is_64, is_big, .. } = self;
        Elf { is_64, is_big, machine, file_type: 2, sections, programs, ..Elf::default() }.build()
    }
}
