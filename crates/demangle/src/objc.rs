//! Objective-C: methods are readable as they are, their blocks nearly so.
//!
//! A method's symbol is `-[Class(Category) selector:]`, a class method's starts with `+`. The n-th block in it is
//! `__24-[Class selector:]_block_invoke_n`, where 24 is the length of the method's name.

use crate::error::Failed;
use crate::limited::Limited;
use crate::suffix;
use core::fmt::{self, Write as _};

/// True for a method or a block in one.
pub(crate) fn is_method(name: &str) -> bool {
    split(name).is_some()
}

/// Writes the readable form of a method or a block in one.
pub(crate) fn demangle<W: fmt::Write>(name: &str, out: &mut Limited<W>) -> Result<(), Failed> {
    let (method, rest) = split(name).ok_or(Failed::Invalid(0))?;
    let Some(rest) = rest.strip_prefix("_block_invoke") else {
        out.write_str(method)?;
        return suffix::write(rest, out);
    };
    let digits = rest.strip_prefix('_').unwrap_or_default();
    let number_len = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) =
        digits.split_at_checked(number_len).filter(|_| number_len > 0).unwrap_or(("", rest));
    out.write_str("invocation function for block ")?;
    if !number.is_empty() {
        write!(out, "#{number} ")?;
    }
    write!(out, "in {method}")?;
    suffix::write(suffix, out)
}

/// The method and what follows it.
fn split(name: &str) -> Option<(&str, &str)> {
    let start = name.trim_start_matches('_').trim_start_matches(|c: char| c.is_ascii_digit());
    let body = start.strip_prefix("-[").or_else(|| start.strip_prefix("+["))?;
    // A selector holds no bracket; a category's name is in parentheses.
    let end = body.find(']')?;
    let (method, rest) = start.split_at_checked(end + 3)?;
    let plain = start.len() == name.len();
    let complete = body.get(..end)?.contains(' ') && (plain || rest.starts_with("_block_invoke"));
    complete.then_some((method, rest))
}

#[cfg(test)]
mod tests {
    use crate::{Options, demangle};

    #[test]
    fn methods_and_blocks() {
        for (name, readable) in [
            ("-[Box open:with:]", "-[Box open:with:]"),
            ("\u{1}+[Box(Lid) make]", "+[Box(Lid) make]"),
            ("__17-[Box open:with:]_block_invoke", "invocation function for block in -[Box open:with:]"),
            ("___11+[Box make]_block_invoke_2", "invocation function for block #2 in +[Box make]"),
            (
                "__11+[Box make]_block_invoke.31.cold.1",
                "invocation function for block in +[Box make] (.31.cold.1)",
            ),
            ("-[Box open].cold.1", "-[Box open] (.cold.1)"),
            ("-[", "-["),
            ("-[Box", "-[Box"),
            ("__3-[Box make]", "__3-[Box make]"),
        ] {
            assert_eq!(demangle(name, &Options::default()), readable);
        }
    }
}
