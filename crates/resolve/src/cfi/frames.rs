//! DWARF call frame information.

use super::{Function, Row, Visit};
use backtrail_core::{Arch, Family};
use backtrail_unwind::Sections;
use backtrail_unwind::cfi::{Entry, Fde, Flavour, Frames};
use std::io;

/// Visits the functions of one section; gives what is wrong with the others.
pub(super) fn each(
    sections: &Sections<'_>,
    flavour: Flavour,
    visit: &mut Visit<'_>,
) -> io::Result<Vec<String>> {
    let mut problems = Vec::new();
    let Some(frames) = Frames::new(sections, flavour) else { return Ok(problems) };
    let family = sections.arch.map_or(Family::Other, Arch::family);
    for entry in frames.entries() {
        match entry {
            // Code that the linker dropped keeps an empty range.
            Entry::Fde(fde) if fde.range.is_empty() => {}
            Entry::Fde(fde) => visit(fde.range, true, &|| describe(&frames, flavour, family, &fde))?,
            Entry::Malformed(malformed) => problems.push(format!("{}: {malformed}", table(flavour))),
            Entry::Cie(_) | Entry::Terminator(_) => {}
        }
    }
    Ok(problems)
}

fn table(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::EhFrame => "eh_frame",
        Flavour::DebugFrame => "debug_frame",
    }
}

fn describe(frames: &Frames<'_>, flavour: Flavour, family: Family, fde: &Fde) -> Function {
    let mut function = Function::new(table(flavour), fde.range);
    for row in frames.rows(fde) {
        match row {
            Ok((range, row)) => {
                function.rows.push(Row::new(family, range, &row, &|bytes| frames.expression(bytes)));
            }
            Err(malformed) => function.problem = Some(malformed.to_string()),
        }
    }
    function
}
