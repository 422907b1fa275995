//! Which of a key path's helper functions it is.

pub(super) const GETTER: u32 = 0;
pub(super) const SETTER: u32 = 1;
pub(super) const UNAPPLIED_METHOD: u32 = 2;
pub(super) const APPLIED_METHOD: u32 = 3;
pub(super) const EQUALS: u32 = 4;
pub(super) const HASH: u32 = 5;

/// Set beside one of the above.
pub(super) const SERIALIZED: u32 = 8;

/// How it is shown.
pub(super) fn text(bits: u32) -> &'static str {
    match bits & !SERIALIZED {
        GETTER => "key path getter for ",
        SETTER => "key path setter for ",
        UNAPPLIED_METHOD => "key path unapplied method ",
        APPLIED_METHOD => "key path applied method ",
        EQUALS => "key path index equality operator for ",
        _ => "key path index hash operator for ",
    }
}
