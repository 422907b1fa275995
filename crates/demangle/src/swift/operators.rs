//! Names of operators: each ASCII character stands as a letter.

use super::kinds::Kind;
use super::node::{Arena, NodeRef};

/// `OPERATOR-FIXITY`
pub(super) fn fixity(letter: u8) -> Option<Kind> {
    Some(match letter {
        b'i' => Kind::InfixOperator,
        b'p' => Kind::PrefixOperator,
        b'P' => Kind::PostfixOperator,
        _ => return None,
    })
}

/// Appends to the arena's decoded texts what the letters of an identifier stand for.
pub(super) fn decode(identifier: NodeRef, arena: &mut Arena) -> Option<()> {
    let mut buffer = [0; 4];
    let mut at = 0;
    while let Some(char) = arena.text(identifier).get(at..).and_then(|rest| rest.chars().next()) {
        let decoded = if char.is_ascii() { self::char(char)? } else { char };
        arena.push_text(decoded.encode_utf8(&mut buffer));
        at += char.len_utf8();
    }
    Some(())
}

/// `OPERATOR-CHAR`
fn char(letter: char) -> Option<char> {
    Some(match letter {
        'a' => '&',
        'c' => '@',
        'd' => '/',
        'e' => '=',
        'g' => '>',
        'l' => '<',
        'm' => '*',
        'n' => '!',
        'o' => '|',
        'p' => '+',
        'q' => '?',
        'r' => '%',
        's' => '-',
        't' => '~',
        'x' => '^',
        'z' => '.',
        _ => return None,
    })
}
