//! Marks a static library's code, so that every app that links it carries the code's exact range, and the library's name and
//! version.
//!
//! The sections of instructions get a name of their own, which linkers keep apart. An archive also gets a member with the
//! record, and each member with code a symbol that asks for it. Nothing else changes: what is new goes behind the old end of a
//! member, with the bytes that were overwritten, so that [`unstamp`] can put them back.

mod archive;
mod edit;
mod elf;
mod fat;
mod macho;
mod record;

use std::collections::HashMap;

use backtrail_core::Confidence;
use backtrail_object::{Limits, Object, slices};

use crate::error::{Error, ErrorKind, Result};
use crate::owned::OwnedRange;

/// Longest name of a stamp: a Mach-O section's name has 16 bytes, `__text_` takes seven of them.
pub const LONGEST_STAMP: usize = 9;
/// Longest version of a stamp.
pub const LONGEST_STAMP_VERSION: usize = 40;

/// What was done to a library.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stamped {
    /// The library's new bytes.
    pub bytes: Vec<u8>,
    /// How many sections got another name.
    pub sections: usize,
    /// How many members have code that other libraries may have as well, weak or in COMDAT groups: a linker takes one copy for
    /// all. In ELF these functions are not marked. In Mach-O they lie in the marked section with the rest.
    pub shared: usize,
    /// Whether there is a record of name and version: archives have one, an object by itself has not.
    pub has_record: bool,
}

/// What is called how in a stamped library.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Names {
    name: String,
    mach_o: String,
    elf: String,
}

impl Names {
    fn of(name: &str) -> Result<Self> {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || name.len() > LONGEST_STAMP || !name.bytes().all(is_fine) {
            let detail = format!(
                "expected a name of 1 to {LONGEST_STAMP} letters, digits and _ for a stamp, found {:?}",
                name.chars().take(40).collect::<String>()
            );
            return Err(Error::new(ErrorKind::WrongInput, detail));
        }
        Ok(Self { name: name.to_owned(), mach_o: format!("__text_{name}"), elf: format!("text_{name}") })
    }
}

fn check_version(version: &str) -> Result<()> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if version.is_empty() || version.len() > LONGEST_STAMP_VERSION || !version.bytes().all(is_fine) {
        let detail = format!(
            "expected a version of 1 to {LONGEST_STAMP_VERSION} letters, digits and . _ + - for a stamp, found {:?}",
            version.chars().take(60).collect::<String>()
        );
        return Err(Error::new(ErrorKind::WrongInput, detail));
    }
    Ok(())
}

/// Gives the code of a static library (an archive, an object file, or a fat file of either) a section of its own, and an archive
/// a record of `name` and `version`.
///
/// # Errors
/// Where name or version do not fit, the bytes are no static library, a member is bitcode, which a linker compiles anew, or
/// nothing is there to mark.
pub fn stamp(bytes: &[u8], name: &str, version: Option<&str>) -> Result<Stamped> {
    let names = Names::of(name)?;
    version.map_or(Ok(()), check_version)?;
    check(bytes)?;
    let mut stamped = Stamped { bytes: Vec::new(), sections: 0, shared: 0, has_record: false };
    stamped.bytes = fat::each(bytes, |thin| stamp_thin(thin, &names, version, &mut stamped))?;
    if stamped.sections == 0 {
        return Err(Error::new(
            ErrorKind::WrongInput,
            "expected sections of code that have no stamp, found none",
        ));
    }
    Ok(stamped)
}

/// Gives the code of a stamped library its common names again, and takes the record away: the library's bytes as they were.
///
/// # Errors
/// As [`stamp`], where the library has no such stamp, and where another tool wrote a member since.
pub fn unstamp(bytes: &[u8], name: &str) -> Result<Stamped> {
    let names = Names::of(name)?;
    check(bytes)?;
    let mut stamped = Stamped { bytes: Vec::new(), sections: 0, shared: 0, has_record: false };
    stamped.bytes = fat::each(bytes, |thin| unstamp_thin(thin, &names, &mut stamped))?;
    if stamped.sections == 0 {
        return Err(Error::new(ErrorKind::WrongInput, "expected sections with this stamp, found none"));
    }
    Ok(stamped)
}

/// Fails where the bytes are no static library that can be stamped.
fn check(bytes: &[u8]) -> Result<()> {
    archive::refuse_bitcode(bytes)?;
    for slice in slices(bytes, &Limits::default())? {
        if slice.parse(&Limits::default())?.kind() != backtrail_object::Kind::Relocatable {
            return Err(Error::new(ErrorKind::WrongInput, "expected a static library, found linked code"));
        }
    }
    Ok(())
}

/// What came of one object.
#[derive(Default)]
struct Changed {
    /// `None` where there is nothing to mark.
    bytes: Option<Vec<u8>>,
    sections: usize,
    has_shared: bool,
}

/// `symbol` is what the object shall ask for, as C would say it.
fn stamp_object(object: &[u8], names: &Names, symbol: Option<&str>) -> Result<Changed> {
    let symbol = symbol.map(|symbol| record::linkage_name(object, symbol));
    let symbol = symbol.as_deref();
    let changed = match object.first_chunk() {
        Some(b"\x7fELF") => elf::stamp(object, names, symbol),
        Some([0xcf | 0xce, 0xfa, 0xed, 0xfe]) => macho::stamp(object, names, symbol),
        _ => Ok(Changed::default()),
    }?;
    // Of a damaged object, parts lie over each other: what is written for one changes another.
    let is_right = |bytes: &Vec<u8>| {
        stamped_sections(bytes, names) == changed.sections
            && edit::put_back(bytes).is_ok_and(|before| before == object)
    };
    if changed.bytes.as_ref().is_none_or(is_right) {
        return Ok(changed);
    }
    let detail = "expected an object file whose parts lie apart: what is changed could not be undone";
    Err(Error::new(ErrorKind::Malformed, detail))
}

/// How many sections of an object have the stamp.
fn stamped_sections(object: &[u8], names: &Names) -> usize {
    let parsed = Object::parse_with(object, &Limits::default()).ok();
    parsed.map_or(0, |parsed| {
        parsed.sections().iter().filter(|section| names.is(&section.name, &section.segment)).count()
    })
}

fn stamp_thin(
    thin: &[u8],
    names: &Names,
    version: Option<&str>,
    stamped: &mut Stamped,
) -> Result<Option<Vec<u8>>> {
    if !archive::is_archive(thin) {
        let changed = stamp_object(thin, names, None)?;
        stamped.sections += changed.sections;
        stamped.shared += usize::from(changed.has_shared);
        return Ok(changed.bytes);
    }
    let symbol = record::symbol(&names.name, version);
    let mut replaced = HashMap::new();
    let mut like: Option<&[u8]> = None;
    for member in archive::members(thin)? {
        let object = thin.get(member.data..member.end).unwrap_or_default();
        let changed = stamp_object(object, names, Some(&symbol)).map_err(|error| member.in_it(error))?;
        stamped.sections += changed.sections;
        stamped.shared += usize::from(changed.has_shared);
        if let Some(bytes) = changed.bytes {
            like = like.or(Some(object));
            replaced.insert(member.header, bytes);
        }
    }
    let Some(like) = like else { return Ok(None) };
    let record = record::object(like, &names.name, version, &symbol)?;
    let defined = record::linkage_name(like, &symbol);
    stamped.has_record = true;
    archive::rewrite(thin, &replaced, &archive::Record::Add { object: &record, symbol: &defined }).map(Some)
}

fn unstamp_thin(thin: &[u8], names: &Names, stamped: &mut Stamped) -> Result<Option<Vec<u8>>> {
    if !archive::is_archive(thin) {
        stamped.sections += stamped_sections(thin, names);
        return if stamped.sections == 0 { Ok(None) } else { edit::put_back(thin).map(Some) };
    }
    let (mut replaced, mut record) = (HashMap::new(), None);
    for member in archive::members(thin)? {
        let object = thin.get(member.data..member.end).unwrap_or_default();
        if member.is_record() && record::read_object(object).is_some_and(|(name, _)| name == names.name) {
            record = Some(member.header);
            continue;
        }
        let sections = stamped_sections(object, names);
        if sections > 0 {
            stamped.sections += sections;
            let before = edit::put_back(object).map_err(|error| member.in_it(error))?;
            replaced.insert(member.header, before);
        }
    }
    if replaced.is_empty() {
        return Ok(None);
    }
    let record = record.map_or(archive::Record::Keep, archive::Record::Remove);
    archive::rewrite(thin, &replaced, &record).map(Some)
}

impl Names {
    /// Whether this is the section's name.
    fn is(&self, section: &str, segment: &str) -> bool {
        if segment.is_empty() { section == self.elf } else { section == self.mach_o && segment == "__TEXT" }
    }
}

/// The ranges of an app, or of its dSYM, that bear a stamp, and what is to be said about records. Names are those of the stamps,
/// versions those of the records.
pub(crate) fn read(object: &Object<'_>) -> (Vec<OwnedRange>, Vec<String>) {
    let is_mach_o = object.format() == backtrail_object::Format::MachO;
    let sections = object.sections().iter().filter(|section| section.is_code && section.is_loaded);
    let mut stamped: Vec<OwnedRange> = sections
        .filter_map(|section| {
            let name = section.name.strip_prefix(if is_mach_o { "__text_" } else { "text_" })?;
            Some(OwnedRange::new(section.address, name.to_owned(), None, Confidence::Certain, "stamp"))
        })
        .filter(|owned| !owned.range.is_empty())
        .collect();
    let records = record::read(object);
    for owned in &mut stamped {
        let mut versions =
            records.iter().filter(|(name, _)| *name == owned.owner).map(|(_, version)| version);
        // Libraries of one name and several versions: which code is which is not told.
        let first = versions.next().filter(|version| !version.is_empty());
        owned.version = first.filter(|first| versions.all(|other| other == *first)).cloned();
    }
    // Seen with zig's own linker for Mach-O.
    let is_lost = |name: &str| stamped.iter().all(|owned| owned.owner != name);
    let lost = records.iter().filter(|(name, _)| is_lost(name)).map(|(name, version)| {
        format!(
            "the stamp of {name} {version} is in the app without a section of its code: the linker joined it with other code"
        )
    });
    let notes = lost.collect();
    (stamped, notes)
}
