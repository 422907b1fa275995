//! DWARF expressions in Breakpad's postfix notation, where that can say them: Breakpad, `docs/symbol_files.md`,
//! "STACK CFI records". It has no comparisons, shifts and branches, so that the rules of PLTs stay unsaid.

use super::expression::{sleb, uleb};
use backtrail_core::{Family, Register};

/// Operations of one expression. Each adds a few words to the text, and some join two texts.
const MAX_OPERATIONS: usize = 64;

/// How Breakpad spells a register: with a `$` where x86's assemblers put a `%`.
pub(crate) fn register(family: Family, register: Register) -> Option<String> {
    let name = family.register_name(register)?;
    let sigil = if matches!(family, Family::X86 | Family::X86_64) { "$" } else { "" };
    Some(format!("{sigil}{name}"))
}

/// The expression's value, with `first` on the stack before it begins. `None` where the notation has no words for it.
pub(crate) fn postfix(family: Family, bytes: &[u8], first: Option<&str>) -> Option<String> {
    let mut stack: Vec<String> = first.map(str::to_owned).into_iter().collect();
    let mut rest = bytes;
    for _ in 0..MAX_OPERATIONS {
        if rest.is_empty() {
            break;
        }
        rest = operation(family, rest, &mut stack)?;
    }
    // The top of the stack is the value; what lies below has served its purpose.
    if rest.is_empty() { stack.pop() } else { None }
}

/// Carries out the first operation (DWARF 5, section 7.7.1) and gives what follows it.
fn operation<'b>(family: Family, bytes: &'b [u8], stack: &mut Vec<String>) -> Option<&'b [u8]> {
    let (&code, rest) = bytes.split_first()?;
    let (value, rest) = match code {
        // DW_OP_lit0 to DW_OP_lit31.
        0x30..=0x4f => ((code - 0x30).to_string(), rest),
        // DW_OP_breg0 to DW_OP_breg31, DW_OP_bregx.
        0x70..=0x8f => based(family, Register(code - 0x70), rest)?,
        0x92 => {
            let (number, rest) = uleb(rest)?;
            based(family, Register(u8::try_from(number).ok()?), rest)?
        }
        // DW_OP_const1u, const1s, constu, consts.
        0x08 => (rest.first()?.to_string(), rest.get(1..)?),
        0x09 => (rest.first()?.cast_signed().to_string(), rest.get(1..)?),
        0x10 => uleb(rest).map(|(number, rest)| (number.to_string(), rest))?,
        0x11 => sleb(rest).map(|(number, rest)| (number.to_string(), rest))?,
        // DW_OP_deref.
        0x06 => (format!("{} ^", stack.pop()?), rest),
        // DW_OP_plus_uconst.
        0x23 => {
            let (number, rest) = uleb(rest)?;
            (format!("{} {number} +", stack.pop()?), rest)
        }
        // DW_OP_plus, minus, mul.
        0x22 => (joined(stack, "+")?, rest),
        0x1c => (joined(stack, "-")?, rest),
        0x1e => (joined(stack, "*")?, rest),
        _ => return None,
    };
    stack.push(value);
    Some(rest)
}

fn based(family: Family, base: Register, bytes: &[u8]) -> Option<(String, &[u8])> {
    let (offset, rest) = sleb(bytes)?;
    Some((format!("{} {offset} +", register(family, base)?), rest))
}

fn joined(stack: &mut Vec<String>, operator: &str) -> Option<String> {
    let (second, first) = (stack.pop()?, stack.pop()?);
    Some(format!("{first} {second} {operator}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (Family, &'static [u8], Option<&'static str>, Option<&'static str>);

    #[test]
    fn what_compilers_write_has_words() {
        let cases: [Case; 9] = [
            // gcc's realigned stack: the CFA was saved below the frame pointer.
            (Family::X86_64, &[0x76, 0x78, 0x06], None, Some("$rbp -8 + ^")),
            // A signal frame's register: readelf says DW_OP_breg7 (rsp): 144.
            (Family::X86_64, &[0x77, 0x90, 0x01], None, Some("$rsp 144 +")),
            // A rule for a register begins with the CFA on the stack, and only the top of the stack counts.
            (Family::X86_64, &[0x77, 0x90, 0x01], Some(".cfa"), Some("$rsp 144 +")),
            (Family::Aarch64, &[0x92, 31, 0, 0x23, 16], None, Some("sp 0 + 16 +")),
            (Family::Arm, &[0x11, 0x70, 0x22], Some(".cfa"), Some(".cfa -16 +")),
            (Family::X86, &[0x09, 0xf8, 0x08, 4, 0x1e, 0x22], Some(".cfa"), Some(".cfa -8 4 * +")),
            // A PLT's, which compares.
            (Family::X86_64, &[0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22], None, None),
            (Family::X86_64, &[0x22], Some(".cfa"), None),
            (Family::X86_64, &[0x92, 0x80], None, None),
        ];
        for (family, bytes, first, text) in cases {
            assert_eq!(postfix(family, bytes, first).as_deref(), text, "{bytes:x?}");
        }
        assert_eq!(postfix(Family::X86_64, &[], Some(".cfa")).as_deref(), Some(".cfa"));
        assert_eq!(postfix(Family::X86_64, &[], None), None);
        assert_eq!(postfix(Family::X86_64, &[0x06; 1000], Some(".cfa")), None);
    }
}
