//! The table that `backtrail convert` would make of the same file, held against the direct answers.

use crate::Result;
use backtrail_core::Svma;
use backtrail_symbolize::convert::{ConvertOptions, convert};
use backtrail_symbolize::{Answer, FunctionRef, SymbolRef, Symbolizer, TableAnswer};
use backtrail_table::Table;
use std::io::Cursor;

/// The addresses for which the table does not answer as `answers` do, which are those of the addresses at the same
/// positions.
pub(crate) fn differences(
    symbolizer: &Symbolizer<'_>,
    addresses: &[u64],
    answers: &[Answer<'_>],
) -> Result<Vec<String>> {
    let bytes = bytes(symbolizer)?;
    let table = Table::open(&bytes)?;
    let pairs = addresses.iter().zip(answers);
    Ok(pairs.filter_map(|(address, answer)| difference(&table, *address, answer)).collect())
}

/// The table.
pub(crate) fn bytes(symbolizer: &Symbolizer<'_>) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    convert(symbolizer, &ConvertOptions::default(), &mut bytes)?;
    Ok(bytes.into_inner())
}

fn difference(table: &Table<'_>, address: u64, direct: &Answer<'_>) -> Option<String> {
    let of_table = TableAnswer::new(table, Svma::new(address));
    let functions: Vec<_> = direct.functions.iter().map(FunctionRef::to_owned).collect();
    let symbol = direct.symbol.as_ref().map(SymbolRef::to_owned);
    let is_same = (&of_table.functions, &of_table.symbol, of_table.reason, of_table.function_start)
        == (&functions, &symbol, direct.reason, direct.function_start);
    (!is_same).then(|| {
        let start = direct.function_start;
        format!("{address:#x}\n    table: {of_table:#?}\n    direct ({start:?}): {functions:#?} {symbol:?}")
    })
}
