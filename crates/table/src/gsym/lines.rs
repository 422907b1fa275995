//! Line rows as a program: file, line and address in small steps.

use super::bytes::{Bytes, put_sleb, put_uleb};
use crate::exchange::PlainRow;
use backtrail_core::Svma;

const END: u8 = 0;
const SET_FILE: u8 = 1;
const ADVANCE_PC: u8 = 2;
const ADVANCE_LINE: u8 = 3;
/// From here on one byte is a step of the address and of the line, and a row.
const FIRST_SPECIAL: u8 = 4;

/// Lines that special opcodes reach; as many as LLVM's writer gives them.
const MAX_WINDOW: i64 = 14;

/// Runs a program, and calls `each` with every row as long as it returns `true`. `None` where the program is broken.
pub(super) fn read(mut bytes: Bytes<'_>, start: Svma, mut each: impl FnMut(PlainRow) -> bool) -> Option<()> {
    let (min, max) = (bytes.sleb()?, bytes.sleb()?);
    let window = max.checked_sub(min)?.checked_add(1).filter(|window| *window > 0)?;
    let mut line = bytes.uleb()?.cast_signed();
    let (mut address, mut file) = (start, 1);
    loop {
        match bytes.u8()? {
            END => return Some(()),
            SET_FILE => {
                file = u32::try_from(bytes.uleb()?).ok()?;
                continue;
            }
            ADVANCE_LINE => {
                line = line.checked_add(bytes.sleb()?)?;
                continue;
            }
            ADVANCE_PC => address = address.checked_add(bytes.uleb()?)?,
            special => {
                let adjusted = i64::from(special - FIRST_SPECIAL);
                line = line.checked_add(min.checked_add(adjusted % window)?)?;
                address = address.checked_add((adjusted / window).cast_unsigned())?;
            }
        }
        let row =
            PlainRow { address, file: Some(file).filter(|file| *file != 0), line: u32::try_from(line).ok()? };
        if !each(row) {
            return Some(());
        }
    }
}

/// Writes rows, of which there is at least one, sorted and none below `start`.
pub(super) fn write(rows: &[PlainRow], start: Svma, out: &mut Vec<u8>) {
    let (min, max) = window(rows);
    let first = rows.first().map_or(0, |row| row.line);
    put_sleb(out, min);
    put_sleb(out, max);
    put_uleb(out, first.into());
    let (mut address, mut file, mut line) = (start, 1, i64::from(first));
    for row in rows {
        let number = row.file.unwrap_or(0);
        if number != file {
            out.push(SET_FILE);
            put_uleb(out, number.into());
        }
        let advance = row.address.offset_from(address).unwrap_or(0);
        step(i64::from(row.line) - line, advance, (min, max), out);
        (address, file, line) = (row.address, number, row.line.into());
    }
    out.push(END);
}

fn step(lines: i64, advance: u64, (min, max): (i64, i64), out: &mut Vec<u8>) {
    let special = (min..=max).contains(&lines).then(|| {
        let whole = advance.checked_mul((max - min + 1).cast_unsigned())?;
        let opcode = whole.checked_add((lines - min).cast_unsigned())?.checked_add(FIRST_SPECIAL.into())?;
        u8::try_from(opcode).ok()
    });
    if let Some(Some(opcode)) = special {
        out.push(opcode);
        return;
    }
    if lines != 0 {
        out.push(ADVANCE_LINE);
        put_sleb(out, lines);
    }
    out.push(ADVANCE_PC);
    put_uleb(out, advance);
}

/// The steps of the line that special opcodes are best spent on: the window that takes in most rows.
fn window(rows: &[PlainRow]) -> (i64, i64) {
    let mut steps: Vec<_> = rows
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(i64::from(b.line) - i64::from(a.line)),
            _ => None,
        })
        .collect();
    steps.push(0);
    steps.sort_unstable();
    let mut best = (0, 0, 0);
    for (position, min) in steps.iter().enumerate() {
        let inside = steps.partition_point(|step| *step < min + MAX_WINDOW) - position;
        if inside > best.0 {
            let last = steps.get(position + inside - 1).copied().unwrap_or(*min);
            best = (inside, *min, last);
        }
    }
    (best.1, best.2)
}
