//! `LC_FUNCTION_STARTS`: distances between functions as LEB128 numbers, the first from `__TEXT`.

use backtrail_core::Svma;

use super::parser::{Tables, code_address, too_many};
use crate::error::Result;
use crate::object::Object;
use crate::view::uleb128;

/// Where functions start, ascending.
pub(crate) fn read(object: &Object<'_>, tables: &Tables<'_>) -> Result<Vec<Svma>> {
    let Some(range) = tables.function_starts else { return Ok(Vec::new()) };
    let mut bytes = object.view.bytes(range.start().get(), range.size(), "the function starts")?;
    let mut address = object.image_base().get();
    let mut starts = Vec::new();
    while let Some(distance) = uleb128(&mut bytes) {
        // Zero ends the table; the rest is padding.
        let next = if distance == 0 { None } else { address.checked_add(distance) };
        let Some(next) = next else { break };
        address = next;
        starts.push(code_address(object, address, true));
        if starts.len() > object.limits.symbols {
            let offset = object.view.absolute(range.start().get());
            return Err(too_many(offset, "symbols", object.limits.symbols));
        }
    }
    starts.dedup();
    Ok(starts)
}

#[cfg(test)]
mod tests;
