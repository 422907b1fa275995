//! A writer of small ELF files, also of ones that no linker would write. The gABI.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a wrong fixture is a fault of the test")]

use crate::assemble::{Assembler, StringTable};

/// An ELF file: set what matters, leave the rest. Section 0 and the table of the sections' names are added.
#[derive(Clone, Debug)]
pub struct Elf {
    /// 64-bit layout.
    pub is_64: bool,
    /// Most significant byte first.
    pub is_big: bool,
    /// `ET_…`.
    pub file_type: u16,
    /// `EM_…`.
    pub machine: u16,
    /// `e_entry`.
    pub entry: u64,
    /// Sections, from number 1 on.
    pub sections: Vec<ElfSection>,
    /// Program headers.
    pub programs: Vec<ElfProgram>,
    /// Whether to leave the section headers out, as `sstrip` does.
    pub is_stripped: bool,
}

/// A section of an [`Elf`].
#[derive(Clone, Debug, Default)]
pub struct ElfSection {
    /// `.text`.
    pub name: &'static str,
    /// `SHT_…`.
    pub kind: u32,
    /// `SHF_…`.
    pub flags: u64,
    /// `sh_addr`.
    pub address: u64,
    /// Its bytes.
    pub data: Vec<u8>,
    /// `sh_size`, where it is not that of the data.
    pub size: Option<u64>,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
}

/// A program header of an [`Elf`].
#[derive(Clone, Debug, Default)]
pub struct ElfProgram {
    /// `PT_…`.
    pub kind: u32,
    /// `PF_…`: 4 read, 2 write, 1 execute.
    pub flags: u32,
    /// `p_vaddr`.
    pub address: u64,
    /// `p_memsz`, where it is not `p_filesz`.
    pub size: Option<u64>,
    /// Numbers of the first and the last section that it covers.
    pub sections: Option<(usize, usize)>,
}

/// An entry of a symbol table.
#[derive(Clone, Debug, Default)]
pub struct ElfSymbol {
    /// The name.
    pub name: &'static str,
    /// `st_value`.
    pub value: u64,
    /// `st_size`.
    pub size: u64,
    /// `STT_…`.
    pub kind: u8,
    /// `STB_…`.
    pub binding: u8,
    /// `st_shndx`.
    pub section: u16,
}

impl Default for Elf {
    /// An x86-64 library without anything in it.
    fn default() -> Self {
        let (sections, programs) = (Vec::new(), Vec::new());
        Self {
            is_64: true,
            is_big: false,
            file_type: 3,
            machine: 62,
            entry: 0,
            sections,
            programs,
            is_stripped: false,
        }
    }
}

fn u16_of(value: usize) -> u16 {
    u16::try_from(value).expect("a small file")
}

fn u32_of(value: usize) -> u32 {
    u32::try_from(value).expect("a small file")
}

impl Elf {
    fn assembler(&self) -> Assembler {
        Assembler::with(self.is_64, self.is_big)
    }

    /// A symbol table and its names as bytes, the null entry included.
    pub fn symbol_table(&self, symbols: &[ElfSymbol]) -> (Vec<u8>, Vec<u8>) {
        let (mut out, mut names) = (self.assembler(), StringTable::default());
        let null = ElfSymbol::default();
        for symbol in std::iter::once(&null).chain(symbols) {
            let (name, info) = (names.add(symbol.name), symbol.binding << 4 | symbol.kind);
            if self.is_64 {
                out.u32(name).u8(info).u8(0).u16(symbol.section).u64(symbol.value).u64(symbol.size);
            } else {
                out.u32(name).word(symbol.value).word(symbol.size).u8(info).u8(0).u16(symbol.section);
            }
        }
        (out.finish(), names.bytes)
    }

    /// A note of `GNU`, as `.note.gnu.build-id` holds it.
    pub fn build_id_note(&self, id: &[u8]) -> Vec<u8> {
        self.assembler().u32(4).u32(u32_of(id.len())).u32(3).text("GNU", 4).bytes(id).align(4).finish()
    }

    /// The file's bytes: header, program headers, sections, section headers. Data does not lie where its address says.
    pub fn build(&self) -> Vec<u8> {
        let (header_size, program_size) = if self.is_64 { (64, 56) } else { (52, 32) };
        let mut names = StringTable::default();
        let mut sections = vec![ElfSection::default()];
        sections.extend(self.sections.iter().cloned());
        sections.push(ElfSection { name: ".shstrtab", kind: 3, ..ElfSection::default() });
        let name_offsets: Vec<u32> = sections.iter().map(|section| names.add(section.name)).collect();
        if let Some(table) = sections.last_mut() {
            table.data = names.bytes;
        }
        let mut body = self.assembler();
        body.zeros(header_size + program_size * self.programs.len());
        let mut offsets = Vec::new();
        for section in &sections {
            offsets.push(body.align(8).len());
            body.bytes(&section.data);
        }
        let table = body.align(8).len();
        if !self.is_stripped {
            let rows = sections.iter().zip(&name_offsets).zip(&offsets);
            for ((section, name), offset) in rows {
                self.section_header(&mut body, section, *name, *offset);
            }
        }
        let mut out = self.header(if self.is_stripped { 0 } else { table }, sections.len());
        for program in &self.programs {
            self.program_header(&mut out, program, &sections, &offsets);
        }
        let mut bytes = out.finish();
        bytes.extend_from_slice(&body.finish()[bytes.len()..]);
        bytes
    }

    fn header(&self, section_table: usize, section_count: usize) -> Assembler {
        let (header_size, program_size, section_size) = if self.is_64 { (64, 56, 64) } else { (52, 32, 40) };
        let mut out = self.assembler();
        out.bytes(b"\x7fELF").u8(1 + u8::from(self.is_64)).u8(1 + u8::from(self.is_big)).u8(1).zeros(9);
        out.u16(self.file_type).u16(self.machine).u32(1).word(self.entry);
        out.word(if self.programs.is_empty() { 0 } else { header_size as u64 }).word(section_table as u64);
        out.u32(0)
            .u16(u16_of(header_size))
            .u16(program_size)
            .u16(u16_of(self.programs.len()))
            .u16(section_size);
        if section_table == 0 {
            out.u16(0).u16(0);
        } else {
            out.u16(u16_of(section_count)).u16(u16_of(section_count - 1));
        }
        out
    }

    fn section_header(&self, out: &mut Assembler, section: &ElfSection, name: u32, offset: usize) {
        let size = section.size.unwrap_or(section.data.len() as u64);
        out.u32(name)
            .u32(section.kind)
            .word(section.flags)
            .word(section.address)
            .word(offset as u64)
            .word(size);
        out.u32(section.link).u32(section.info).word(1).word(0);
    }

    fn program_header(
        &self,
        out: &mut Assembler,
        program: &ElfProgram,
        sections: &[ElfSection],
        offsets: &[usize],
    ) {
        let (start, end) = program.sections.map_or((0, 0), |(first, last)| {
            (offsets[first] as u64, (offsets[last] + sections[last].data.len()) as u64)
        });
        let size = end - start;
        out.u32(program.kind);
        if self.is_64 {
            out.u32(program.flags);
        }
        out.word(start)
            .word(program.address)
            .word(program.address)
            .word(size)
            .word(program.size.unwrap_or(size));
        if !self.is_64 {
            out.u32(program.flags);
        }
        out.word(4);
    }
}
