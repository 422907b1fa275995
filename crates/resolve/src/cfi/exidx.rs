//! ARM's exception index tables.

use super::text::no_expressions;
use super::{Function, Row, Visit};
use backtrail_core::Family;
use backtrail_unwind::Sections;
use backtrail_unwind::exidx::{Code, Content, Entry, Exidx, Model, Op, row};
use std::io;

pub(super) fn each(sections: &Sections<'_>, visit: &mut Visit<'_>) -> io::Result<()> {
    let Some(exidx) = Exidx::new(sections) else { return Ok(()) };
    // Linkers end the index with an entry for the address behind the code.
    for entry in exidx.entries().filter(|entry| !entry.range.is_empty()) {
        visit(entry.range, true, &|| describe(&entry))?;
    }
    Ok(())
}

fn describe(entry: &Entry<'_>) -> Function {
    let mut function = Function::new("exidx", entry.range);
    match entry.content() {
        Ok(Content::CannotUnwind) => function.entry = Some("cannot unwind".to_owned()),
        Ok(Content::Unwind { model, code, data }) => {
            function.entry = Some(listing(model, code));
            function.lsda = data;
            if let Model::Generic(routine) = model {
                function.personality = Some(routine);
            }
            match row(code) {
                Ok(row) => {
                    function.rows.push(Row::new(Family::Arm, entry.range, &row, &no_expressions));
                }
                Err(stopped) => function.problem = Some(stopped.to_string()),
            }
        }
        Err(malformed) => function.problem = Some(malformed.to_string()),
    }
    function
}

/// `inline: vsp = r7; pop {r4, lr}`. Padding with `finish` is left out.
fn listing(model: Model, code: Code<'_>) -> String {
    let model = match model {
        Model::Inline => "inline".to_owned(),
        Model::Compact(index) => format!("compact model {index}"),
        Model::Generic(_) => "personality".to_owned(),
        _ => "unknown model".to_owned(),
    };
    let ops: Vec<_> = code.take_while(|op| *op != Op::Finish).map(|op| op.to_string()).collect();
    let ops = if ops.is_empty() { "finish".to_owned() } else { ops.join("; ") };
    format!("{model}: {ops}")
}
