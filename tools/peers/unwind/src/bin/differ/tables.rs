//! The sections of one file, for each of the readers.

use backtrail_core::{Arch, Svma};
use backtrail_unwind::{Section, Sections};
use framehop::ExplicitModuleSectionInfo;
use object::{Object, ObjectSection, ObjectSegment, SectionKind};
use std::collections::BTreeMap;

pub struct Tables {
    pub arch: Arch,
    pub base: u64,
    sections: BTreeMap<String, (u64, &'static [u8])>,
    pub text: Vec<(u64, &'static [u8])>,
    is_mach_o: bool,
    segment: Option<(u64, &'static [u8])>,
}

impl Tables {
    pub fn read(data: &'static [u8]) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let arch = match file.architecture() {
            object::Architecture::X86_64 => Arch::X86_64,
            object::Architecture::Aarch64 => Arch::Arm64,
            _ => return None,
        };
        let is_mach_o = file.format() == object::BinaryFormat::MachO;
        let named = |wanted| file.segments().find(|segment| segment.name().ok().flatten() == Some(wanted));
        let segment = named("__TEXT").and_then(|segment| Some((segment.address(), segment.data().ok()?)));
        let lowest = file.segments().map(|segment| segment.address()).min()? & !0xfff;
        let base = segment.map_or(lowest, |(start, _)| start);
        let mut sections = BTreeMap::new();
        for section in file.sections() {
            if let (Ok(name), Ok(data)) = (section.name(), section.data()) {
                sections.entry(name.to_owned()).or_insert((section.address(), data));
            }
        }
        let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
        let text = code.filter_map(|section| Some((section.address(), section.data().ok()?))).collect();
        Some(Self { arch, base, sections, text, is_mach_o, segment })
    }

    pub fn get(&self, names: [&str; 2]) -> Option<(u64, &'static [u8])> {
        names.iter().find_map(|name| self.sections.get(*name).copied())
    }

    pub fn ours(&self) -> Sections<'static> {
        let section = |names| self.get(names).map(|(at, data)| Section::new(Svma::new(at), data));
        Sections {
            arch: Some(self.arch),
            is_mach_o: self.is_mach_o,
            image_base: Svma::new(self.base),
            eh_frame_hdr: section([".eh_frame_hdr"; 2]),
            eh_frame: section([".eh_frame", "__eh_frame"]),
            unwind_info: section(["__unwind_info"; 2]),
            text: self.text.iter().map(|(at, data)| Section::new(Svma::new(*at), data)).collect(),
            ..Sections::default()
        }
    }

    pub fn theirs(&self) -> framehop::Module<&'static [u8]> {
        let range = |names| self.get(names).map(|(at, data)| at..at + data.len() as u64);
        let bytes = |names| self.get(names).map(|(_, data)| data);
        let info = ExplicitModuleSectionInfo {
            base_svma: self.base,
            text_svma: range([".text", "__text"]),
            text: bytes([".text", "__text"]),
            stubs_svma: range(["__stubs"; 2]),
            stub_helper_svma: range(["__stub_helper"; 2]),
            got_svma: range([".got", "__got"]),
            unwind_info: bytes(["__unwind_info"; 2]),
            eh_frame_svma: range([".eh_frame", "__eh_frame"]),
            eh_frame: bytes([".eh_frame", "__eh_frame"]),
            eh_frame_hdr_svma: range([".eh_frame_hdr"; 2]),
            eh_frame_hdr: bytes([".eh_frame_hdr"; 2]),
            text_segment_svma: self.segment.map(|(at, data)| at..at + data.len() as u64),
            text_segment: self.segment.map(|(_, data)| data),
            debug_frame: None,
        };
        framehop::Module::new(String::new(), self.base..self.base + (1 << 32), self.base, info)
    }
}
