//! Program headers and dynamic entries in words.

use object::elf::*;

use super::dynamic;
use super::sections::EXCEPTION_INDEX;
use super::tables::{Program, Tables};
use crate::load_command::LoadCommand;
use crate::object::{Kind, Object};
use crate::symbol::text;
use crate::view::{string_at, until_nul};

#[rustfmt::skip]
const PROGRAMS: [(ProgramType, &str); 13] = [
    (PT_NULL, "PT_NULL"),
    (PT_LOAD, "PT_LOAD"),
    (PT_DYNAMIC, "PT_DYNAMIC"),
    (PT_INTERP, "PT_INTERP"),
    (PT_NOTE, "PT_NOTE"),
    (PT_SHLIB, "PT_SHLIB"),
    (PT_PHDR, "PT_PHDR"),
    (PT_TLS, "PT_TLS"),
    (PT_GNU_EH_FRAME, "PT_GNU_EH_FRAME"),
    (PT_GNU_STACK, "PT_GNU_STACK"),
    (PT_GNU_RELRO, "PT_GNU_RELRO"),
    (PT_GNU_PROPERTY, "PT_GNU_PROPERTY"),
    (ProgramType(0x6fff_fffa), "PT_SUNWBSS"),
];

/// Dynamic entries that tell something about the file as a whole and are names.
#[rustfmt::skip]
const DYNAMIC: [(DynamicTag, &str); 5] = [
    (DT_SONAME, "DT_SONAME"),
    (DT_NEEDED, "DT_NEEDED"),
    (DT_RPATH, "DT_RPATH"),
    (DT_RUNPATH, "DT_RUNPATH"),
    (DT_AUXILIARY, "DT_AUXILIARY"),
];

/// The program headers, then what the dynamic linker is told by name.
pub(crate) fn describe(object: &Object<'_>, tables: &Tables) -> Vec<LoadCommand> {
    let mut commands: Vec<_> = tables.programs.iter().map(|program| one(object, tables, program)).collect();
    commands.extend(names(object, tables).unwrap_or_default());
    commands
}

fn one(object: &Object<'_>, tables: &Tables, program: &Program) -> LoadCommand {
    let known = PROGRAMS.iter().find(|(kind, _)| *kind == program.kind);
    let name = match known {
        Some((_, name)) => (*name).to_owned(),
        None if program.kind == EXCEPTION_INDEX && tables.header.machine == EM_ARM => {
            "PT_ARM_EXIDX".to_owned()
        }
        None => format!("PT_{:#x}", program.kind.0),
    };
    let mut text = range(program);
    if program.kind == PT_INTERP && object.kind() != Kind::DebugCompanion {
        let bytes =
            object.view.bytes_up_to(program.file.start().get(), program.file.size(), "the interpreter");
        text = bytes.map(|bytes| crate::symbol::text(until_nul(bytes)).into_owned()).unwrap_or(text);
    }
    LoadCommand::new(name, text)
}

fn range(program: &Program) -> String {
    let letter = |flag, letter| if flag { letter } else { '-' };
    let (r, w) = (letter(program.readable, 'r'), letter(program.writable, 'w'));
    let x = letter(program.executable, 'x');
    let (address, file) = (program.address, program.file);
    if address.is_empty() && file.is_empty() {
        return format!("{r}{w}{x}");
    }
    format!("{}..{} {r}{w}{x}, file {}..{}", address.start(), address.end(), file.start(), file.end())
}

fn names(object: &Object<'_>, tables: &Tables) -> Option<Vec<LoadCommand>> {
    let entries = dynamic::read(object.view, tables, &object.headers.sections).ok()?;
    let value = |tag| entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.value);
    let strings = dynamic::file_offset(tables, backtrail_core::Svma::new(value(DT_STRTAB)?))?;
    let strings = object.view.bytes_up_to(strings, value(DT_STRSZ)?, "the dynamic names").ok()?;
    let named = entries.iter().filter_map(|entry| {
        let (_, name) = DYNAMIC.iter().find(|(tag, _)| *tag == entry.tag)?;
        Some(LoadCommand::new(*name, text(string_at(strings, entry.value)?)))
    });
    Some(named.collect())
}
