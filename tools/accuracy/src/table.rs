//! The table that `backtrail convert` would make of the same file, held against the direct answers.

use crate::Result;
use backtrail_core::Svma;
use backtrail_symbolize::convert::{ConvertOptions, convert};
use backtrail_symbolize::{Answer, Symbolizer, table_lookup};
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
    let of_table = table_lookup(table, Svma::new(address));
    let direct = direct.to_symbol_info(Svma::new(address));
    (of_table != direct).then(|| format!("{address:#x}\n    table: {of_table:#?}\n    direct: {direct:#?}"))
}
