//! Marks a static library's code, so that every app that links it carries the code's exact range.
//!
//! The sections of instructions get a name of their own, which linkers keep apart: nothing else changes, and no byte moves
//! in Mach-O. In ELF the names stand in a table of strings, which has to grow: it goes to the end of each member.

mod archive;
mod elf;
mod macho;

use backtrail_object::{Limits, slices};

use crate::error::{Error, ErrorKind, Result};

/// Longest name of a stamp: a Mach-O section's name has 16 bytes, `__text_` takes seven of them.
pub const LONGEST_STAMP: usize = 9;

/// What was done to a library.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stamped {
    /// The library's new bytes.
    pub bytes: Vec<u8>,
    /// How many sections got another name.
    pub sections: usize,
    /// How many members have code that other libraries may have as well, which is not marked: weak or COMDAT functions in
    /// ELF. In Mach-O these lie in the marked section with the rest.
    pub shared: usize,
}

/// What the sections of a stamped library are called.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Names {
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
        Ok(Self { mach_o: format!("__text_{name}"), elf: format!("text_{name}") })
    }
}

/// Whether sections get the stamp or lose it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Stamp,
    Unstamp,
}

/// Gives the code of a static library (an archive, an object file, or a fat file of either) a section of its own.
///
/// # Errors
/// Where the name does not fit, the bytes are no static library, a member is bitcode, which a linker compiles anew, or
/// nothing is there to mark.
pub fn stamp(bytes: &[u8], name: &str) -> Result<Stamped> {
    change(bytes, &Names::of(name)?, Direction::Stamp)
}

/// Gives the code of a stamped library its common names again. The result equals the library before, but where Mach-O had
/// code in `__StaticInit`, which becomes `__text`.
///
/// # Errors
/// As [`stamp`], and where the library has no such stamp.
pub fn unstamp(bytes: &[u8], name: &str) -> Result<Stamped> {
    change(bytes, &Names::of(name)?, Direction::Unstamp)
}

fn change(bytes: &[u8], names: &Names, direction: Direction) -> Result<Stamped> {
    archive::refuse_bitcode(bytes)?;
    let mut stamped = Stamped { bytes: bytes.to_vec(), sections: 0, shared: 0 };
    let mut grown: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    for slice in slices(bytes, &Limits::default())? {
        let object = slice.parse(&Limits::default())?;
        if object.kind() != backtrail_object::Kind::Relocatable {
            return Err(Error::new(ErrorKind::WrongInput, "expected a static library, found linked code"));
        }
        let start = usize::try_from(slice.range.start().get()).unwrap_or(usize::MAX);
        let end = usize::try_from(slice.range.end().get()).unwrap_or(usize::MAX);
        if object.format() == backtrail_object::Format::MachO {
            let member = stamped.bytes.get_mut(start..end).unwrap_or_default();
            stamped.sections += macho::rename(member, names, direction)?;
        } else {
            let member = bytes.get(start..end).unwrap_or_default();
            let renamed = elf::rename(member, names, direction)?;
            stamped.sections += renamed.sections;
            stamped.shared += usize::from(renamed.has_shared);
            if let Some(bytes) = renamed.bytes {
                grown.push((start, end, bytes));
            }
        }
    }
    if stamped.sections == 0 {
        let detail = match direction {
            Direction::Stamp => "expected sections of code that have no stamp, found none",
            Direction::Unstamp => "expected sections with this stamp, found none",
        };
        return Err(Error::new(ErrorKind::WrongInput, detail));
    }
    if !grown.is_empty() {
        stamped.bytes = archive::replace(bytes, &grown)?;
    }
    Ok(stamped)
}
