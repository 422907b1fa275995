//! A writer of small Mach-O files, also of ones that no linker would write. `<mach-o/loader.h>`.
#![expect(clippy::expect_used, reason = "a wrong fixture is a fault of the test")]

use crate::assemble::{Assembler, StringTable};

/// A Mach-O file: set what matters, leave the rest.
#[derive(Clone, Debug)]
pub struct MachO {
    /// 64-bit layout.
    pub is_64: bool,
    /// Most significant byte first.
    pub is_big: bool,
    /// `CPU_TYPE_…`.
    pub cpu: u32,
    /// `CPU_SUBTYPE_…`.
    pub cpu_subtype: u32,
    /// `MH_…`.
    pub file_type: u32,
    /// `LC_UUID`.
    pub uuid: Option<[u8; 16]>,
    /// `LC_SEGMENT`s.
    pub segments: Vec<MachSegment>,
    /// `LC_SYMTAB`, none when empty.
    pub symbols: Vec<Nlist>,
    /// `LC_DYLD_EXPORTS_TRIE`, none when empty.
    pub exports: Vec<u8>,
    /// `LC_FUNCTION_STARTS`, none when empty.
    pub function_starts: Vec<u8>,
    /// Further load commands, each a number and what follows its size.
    pub commands: Vec<(u32, Vec<u8>)>,
}

/// A segment of a [`MachO`].
#[derive(Clone, Debug, Default)]
pub struct MachSegment {
    /// `__TEXT`.
    pub name: &'static str,
    /// `vmaddr`.
    pub address: u64,
    /// `vmsize`.
    pub size: u64,
    /// `initprot`: 1 read, 2 write, 4 execute.
    pub protection: u32,
    /// Its sections.
    pub sections: Vec<MachSection>,
}

/// A section of a [`MachSegment`].
#[derive(Clone, Debug, Default)]
pub struct MachSection {
    /// `__text`.
    pub name: &'static str,
    /// `addr`.
    pub address: u64,
    /// `flags`: type and attributes.
    pub flags: u32,
    /// Its bytes; when empty, `size` says how many there would be, and the offset is zero.
    pub data: Vec<u8>,
    /// `size`, where there is no data.
    pub size: u64,
}

/// An entry of the symbol table.
#[derive(Clone, Debug, Default)]
pub struct Nlist {
    /// The name; where it is empty, its offset is zero.
    pub name: &'static str,
    /// `n_type`.
    pub kind: u8,
    /// `n_sect`, from one on.
    pub section: u8,
    /// `n_desc`.
    pub desc: u16,
    /// `n_value`.
    pub value: u64,
}

impl Default for MachO {
    /// An arm64 program without anything in it.
    fn default() -> Self {
        Self {
            is_64: true,
            is_big: false,
            cpu: 0x0100_000c,
            cpu_subtype: 0,
            file_type: 2,
            uuid: None,
            segments: Vec::new(),
            symbols: Vec::new(),
            exports: Vec::new(),
            function_starts: Vec::new(),
            commands: Vec::new(),
        }
    }
}

const LC_SEGMENT: u32 = 0x1;
const LC_SYMTAB: u32 = 0x2;
const LC_SEGMENT_64: u32 = 0x19;
const LC_UUID: u32 = 0x1b;
const LC_FUNCTION_STARTS: u32 = 0x26;
const LC_DYLD_EXPORTS_TRIE: u32 = 0x8000_0033;

fn u32_of(value: usize) -> u32 {
    u32::try_from(value).expect("a small file")
}

impl MachO {
    fn assembler(&self) -> Assembler {
        Assembler::with(self.is_64, self.is_big)
    }

    /// The file's bytes: header, load commands, sections, tables.
    pub fn build(&self) -> Vec<u8> {
        // Sizes do not depend on where things lie, so a first round finds out where they do.
        let start =
            self.commands(0).iter().map(|command| command.len() + 8).sum::<usize>() + self.header_size();
        let commands = self.commands(start);
        let mut out = self.assembler();
        out.u32(if self.is_64 { 0xfeed_facf } else { 0xfeed_face }).u32(self.cpu).u32(self.cpu_subtype);
        let size: usize = commands.iter().map(|command| command.len() + 8).sum();
        out.u32(self.file_type).u32(u32_of(commands.len())).u32(u32_of(size)).u32(0);
        if self.is_64 {
            out.u32(0);
        }
        for (kind, command) in self.command_kinds().into_iter().zip(&commands) {
            out.u32(kind).u32(u32_of(command.len() + 8)).bytes(command);
        }
        self.segments.iter().flat_map(|segment| &segment.sections).for_each(|section| {
            out.bytes(&section.data);
        });
        let (symbols, strings) = self.symbol_table();
        out.bytes(&symbols).bytes(&strings).bytes(&self.exports).bytes(&self.function_starts).finish()
    }

    fn header_size(&self) -> usize {
        if self.is_64 { 32 } else { 28 }
    }

    fn command_kinds(&self) -> Vec<u32> {
        let segment = if self.is_64 { LC_SEGMENT_64 } else { LC_SEGMENT };
        let mut kinds = vec![segment; self.segments.len()];
        kinds.extend(self.uuid.map(|_| LC_UUID));
        let optional = [
            (LC_SYMTAB, self.symbols.is_empty()),
            (LC_DYLD_EXPORTS_TRIE, self.exports.is_empty()),
            (LC_FUNCTION_STARTS, self.function_starts.is_empty()),
        ];
        kinds.extend(optional.into_iter().filter(|(_, is_empty)| !is_empty).map(|(kind, _)| kind));
        kinds.extend(self.commands.iter().map(|(kind, _)| *kind));
        kinds
    }

    /// What follows number and size of each load command, with data from `offset` on.
    fn commands(&self, mut offset: usize) -> Vec<Vec<u8>> {
        let mut commands = Vec::new();
        for segment in &self.segments {
            commands.push(self.segment(segment, offset));
            offset += segment.sections.iter().map(|section| section.data.len()).sum::<usize>();
        }
        commands.extend(self.uuid.map(|uuid| uuid.to_vec()));
        let (symbols, strings) = self.symbol_table();
        if !self.symbols.is_empty() {
            let names = offset + symbols.len();
            let (count, size) = (u32_of(self.symbols.len()), u32_of(strings.len()));
            commands
                .push(self.assembler().u32(u32_of(offset)).u32(count).u32(u32_of(names)).u32(size).finish());
        }
        offset += symbols.len() + strings.len();
        for data in [&self.exports, &self.function_starts] {
            if !data.is_empty() {
                commands.push(self.assembler().u32(u32_of(offset)).u32(u32_of(data.len())).finish());
            }
            offset += data.len();
        }
        commands.extend(self.commands.iter().map(|(_, command)| command.clone()));
        commands
    }

    fn segment(&self, segment: &MachSegment, offset: usize) -> Vec<u8> {
        let file_size: usize = segment.sections.iter().map(|section| section.data.len()).sum();
        let file_offset = if file_size == 0 { 0 } else { offset as u64 };
        let mut out = self.assembler();
        out.text(segment.name, 16)
            .word(segment.address)
            .word(segment.size)
            .word(file_offset)
            .word(file_size as u64);
        out.u32(segment.protection).u32(segment.protection).u32(u32_of(segment.sections.len())).u32(0);
        let mut at = offset;
        for section in &segment.sections {
            let size = if section.data.is_empty() { section.size } else { section.data.len() as u64 };
            out.text(section.name, 16).text(segment.name, 16).word(section.address).word(size);
            out.u32(if section.data.is_empty() { 0 } else { u32_of(at) });
            out.u32(0).u32(0).u32(0).u32(section.flags).u32(0).u32(0);
            if self.is_64 {
                out.u32(0);
            }
            at += section.data.len();
        }
        out.finish()
    }

    /// The entries and the names; both empty where there are no symbols.
    fn symbol_table(&self) -> (Vec<u8>, Vec<u8>) {
        if self.symbols.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (mut out, mut names) = (self.assembler(), StringTable::default());
        for symbol in &self.symbols {
            out.u32(names.add(symbol.name))
                .u8(symbol.kind)
                .u8(symbol.section)
                .u16(symbol.desc)
                .word(symbol.value);
        }
        (out.finish(), names.bytes)
    }
}

/// A fat file of slices, each with its CPU type and subtype; `is_64` for the form with 64-bit offsets.
pub fn fat(is_64: bool, slices: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = Assembler::with(is_64, true);
    out.u32(if is_64 { 0xcafe_babf } else { 0xcafe_babe }).u32(u32_of(slices.len()));
    let mut offset = (8 + slices.len() * 32).next_multiple_of(64);
    for (cpu, subtype, data) in slices {
        out.u32(*cpu).u32(*subtype).word(offset as u64).word(data.len() as u64).u32(6);
        if is_64 {
            out.u32(0);
        }
        offset = (offset + data.len()).next_multiple_of(64);
    }
    out.pad_to((8 + slices.len() * 32).next_multiple_of(64));
    for (_, _, data) in slices {
        out.align(64).bytes(data);
    }
    out.finish()
}
