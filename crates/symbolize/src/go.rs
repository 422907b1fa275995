//! Go's own table, as what it says of names, files and lines.

use crate::dwarf::{DebugInfoAnswer, FilePath, Frame, Names};
use crate::problem::{ProblemKind, Problems};
use backtrail_core::Svma;
use backtrail_object::{GoFrame, GoTable, Object};
use std::sync::Arc;

/// The table of the first file that has one.
pub(crate) fn read<'d>(objects: &[Arc<Object<'d>>], problems: &Problems) -> Option<GoTable<'d>> {
    objects.iter().find_map(|object| match GoTable::read(object) {
        Ok(table) => table,
        Err(error) => {
            problems.add(ProblemKind::Symbols, format!(".gopclntab: {error}"));
            None
        }
    })
}

/// What the table says of an address; `None` where it knows no function there.
pub(crate) fn lookup<'t>(table: &'t GoTable<'_>, address: Svma) -> Option<DebugInfoAnswer<'t>> {
    let function = table.function_at(address)?;
    function.name()?;
    let frames = function.frames(address).into_iter().map(frame).collect();
    let function_start = Some(function.addresses().start().get());
    Some(DebugInfoAnswer { frames, function_start, has_mangled_names: false })
}

fn frame(frame: GoFrame<'_>) -> Frame<'_> {
    let names = Names { plain: frame.name, ..Names::default() };
    let file = frame.file.map(FilePath::whole);
    Frame { names, file, line: frame.line, column: 0, inlined: frame.is_inlined }
}
