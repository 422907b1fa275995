//! Go's own table, function by function.

use backtrail_object::{GoFunction, GoPiece, GoTable};
use backtrail_table::{Batch, Builder, CallSite, FileId, FunctionHead, Language, NameId};

/// `DW_LANG_Go`.
const GO: Language = Language(0x16);

/// Functions of one batch.
const BATCH: usize = 4096;

/// Hands all functions to the builder.
pub(super) fn emit(table: &GoTable<'_>, builder: &Builder) {
    let mut functions = table.functions().peekable();
    for number in 0u64.. {
        if functions.peek().is_none() {
            break;
        }
        let mut batch = builder.batch();
        functions.by_ref().take(BATCH).for_each(|function| add(builder, &mut batch, function));
        builder.add(number, batch);
    }
}

fn add(builder: &Builder, batch: &mut Batch, function: GoFunction<'_>) {
    batch.begin_function(name(builder, function.name()), &[function.addresses()]);
    for GoPiece { addresses, frames } in function.pieces() {
        // Outermost first; each frame stands where the one around it says.
        let calls = frames.iter().rev();
        for (depth, (around, inlined)) in (1u32..).zip(calls.clone().zip(calls.skip(1))) {
            let site = CallSite { file: file(builder, around.file), line: around.line, column: 0 };
            batch.inline(depth, name(builder, inlined.name), site, [addresses]);
        }
        let (path, line) = frames.first().map_or((None, 0), |frame| (frame.file, frame.line));
        batch.row(addresses.start(), file(builder, path), line, 0);
    }
    batch.end_function();
}

fn name(builder: &Builder, name: Option<&[u8]>) -> NameId {
    let name = name.map(|name| builder.string(name));
    builder.name(FunctionHead { name, linkage_name: None, language: GO })
}

fn file(builder: &Builder, path: Option<&[u8]>) -> Option<FileId> {
    path.map(|path| builder.file(path))
}
