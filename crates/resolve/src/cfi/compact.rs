//! Apple's compact unwind information.

use super::text::no_expressions;
use super::{Function, Row, Visit};
use backtrail_unwind::Sections;
use backtrail_unwind::compact::{Compact, CompactFound, Entry, Mode};
use std::io;

pub(super) fn each(sections: &Sections<'_>, visit: &mut Visit<'_>) -> io::Result<()> {
    let Some(compact) = Compact::new(sections) else { return Ok(()) };
    for entry in compact.entries() {
        let is_rule = entry.encoding.mode() != Mode::Nothing;
        visit(entry.range, is_rule, &|| describe(&compact, &entry))?;
    }
    Ok(())
}

fn describe(compact: &Compact<'_>, entry: &Entry) -> Function {
    let encoding = entry.encoding;
    let mut function = Function::new("compact-unwind", entry.range);
    function.entry = Some(format!("{:#010x} {encoding}", encoding.raw()));
    function.lsda = entry.lsda;
    function.personality = entry.personality;
    match compact.row_of(entry) {
        Ok(CompactFound::Row(found)) => {
            function.rows.push(Row::new(compact.family(), entry.range, &found.row, &no_expressions));
        }
        Err(backtrail_unwind::Miss::Malformed(malformed)) => function.problem = Some(malformed.to_string()),
        Ok(CompactFound::EhFrame(_)) | Err(_) => {}
    }
    function
}
