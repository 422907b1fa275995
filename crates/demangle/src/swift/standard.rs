//! The standard library's types that have a letter of their own.

use super::kinds::Kind;

/// Which set of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// `S` and the letter.
    First,
    /// `Sc` and the letter: the concurrency library.
    Concurrency,
    /// `S` and the letter, in manglings before Swift 4.
    BeforeSwift4,
}

/// What a letter stands for.
pub(super) type Entry = (Kind, &'static str);

/// The type that a letter stands for.
pub(super) fn lookup(set: Set, letter: u8) -> Option<Entry> {
    match set {
        Set::First => first(letter),
        Set::Concurrency => concurrency(letter),
        Set::BeforeSwift4 => before_swift_4(letter),
    }
}

/// The type as a number, to be kept in a node.
pub(super) fn pack(set: Set, letter: u8) -> u32 {
    ((set as u32) << 8) | u32::from(letter)
}

/// The type behind a number made by [`pack`].
pub(super) fn unpack(packed: u32) -> Option<Entry> {
    let [.., set, letter] = packed.to_be_bytes();
    let set = match set {
        0 => Set::First,
        1 => Set::Concurrency,
        _ => Set::BeforeSwift4,
    };
    lookup(set, letter)
}

fn first(letter: u8) -> Option<Entry> {
    use Kind::{Enum, Protocol, Structure};
    Some(match letter {
        b'A' => (Structure, "AutoreleasingUnsafeMutablePointer"),
        b'a' => (Structure, "Array"),
        b'B' => (Protocol, "BinaryFloatingPoint"),
        b'b' => (Structure, "Bool"),
        b'D' => (Structure, "Dictionary"),
        b'd' => (Structure, "Double"),
        b'E' => (Protocol, "Encodable"),
        b'e' => (Protocol, "Decodable"),
        b'F' => (Protocol, "FloatingPoint"),
        b'f' => (Structure, "Float"),
        b'G' => (Protocol, "RandomNumberGenerator"),
        b'H' => (Protocol, "Hashable"),
        b'h' => (Structure, "Set"),
        b'I' => (Structure, "DefaultIndices"),
        b'i' => (Structure, "Int"),
        b'J' => (Structure, "Character"),
        b'j' => (Protocol, "Numeric"),
        b'K' => (Protocol, "BidirectionalCollection"),
        b'k' => (Protocol, "RandomAccessCollection"),
        b'L' => (Protocol, "Comparable"),
        b'l' => (Protocol, "Collection"),
        b'M' => (Protocol, "MutableCollection"),
        b'm' => (Protocol, "RangeReplaceableCollection"),
        b'N' => (Structure, "ClosedRange"),
        b'n' => (Structure, "Range"),
        b'O' => (Structure, "ObjectIdentifier"),
        b'P' => (Structure, "UnsafePointer"),
        b'p' => (Structure, "UnsafeMutablePointer"),
        b'Q' => (Protocol, "Equatable"),
        b'q' => (Enum, "Optional"),
        b'R' => (Structure, "UnsafeBufferPointer"),
        b'r' => (Structure, "UnsafeMutableBufferPointer"),
        b'S' => (Structure, "String"),
        b's' => (Structure, "Substring"),
        b'T' => (Protocol, "Sequence"),
        b't' => (Protocol, "IteratorProtocol"),
        b'U' => (Protocol, "UnsignedInteger"),
        b'u' => (Structure, "UInt"),
        b'V' => (Structure, "UnsafeRawPointer"),
        b'v' => (Structure, "UnsafeMutableRawPointer"),
        b'W' => (Structure, "UnsafeRawBufferPointer"),
        b'w' => (Structure, "UnsafeMutableRawBufferPointer"),
        b'X' => (Protocol, "RangeExpression"),
        b'x' => (Protocol, "Strideable"),
        b'Y' => (Protocol, "RawRepresentable"),
        b'y' => (Protocol, "StringProtocol"),
        b'Z' => (Protocol, "SignedInteger"),
        b'z' => (Protocol, "BinaryInteger"),
        _ => return None,
    })
}

fn concurrency(letter: u8) -> Option<Entry> {
    use Kind::{Class, Protocol, Structure};
    Some(match letter {
        b'A' => (Protocol, "Actor"),
        b'C' => (Structure, "CheckedContinuation"),
        b'c' => (Structure, "UnsafeContinuation"),
        b'E' => (Structure, "CancellationError"),
        b'e' => (Structure, "UnownedSerialExecutor"),
        b'F' => (Protocol, "Executor"),
        b'f' => (Protocol, "SerialExecutor"),
        b'G' => (Structure, "TaskGroup"),
        b'g' => (Structure, "ThrowingTaskGroup"),
        b'h' => (Protocol, "TaskExecutor"),
        b'I' => (Protocol, "AsyncIteratorProtocol"),
        b'i' => (Protocol, "AsyncSequence"),
        b'J' => (Structure, "UnownedJob"),
        b'M' => (Class, "MainActor"),
        b'P' => (Structure, "TaskPriority"),
        b'S' => (Structure, "AsyncStream"),
        b's' => (Structure, "AsyncThrowingStream"),
        b'T' => (Structure, "Task"),
        b't' => (Structure, "UnsafeCurrentTask"),
        _ => return None,
    })
}

/// A smaller set, with two types that are gone.
fn before_swift_4(letter: u8) -> Option<Entry> {
    use Kind::{Enum, Structure};
    Some(match letter {
        b'c' => (Structure, "UnicodeScalar"),
        b'Q' => (Enum, "ImplicitlyUnwrappedOptional"),
        b'a' | b'b' | b'd' | b'f' | b'i' | b'V' | b'v' | b'P' | b'p' | b'q' | b'R' | b'r' | b'S' | b'u' => {
            return first(letter);
        }
        _ => return None,
    })
}
