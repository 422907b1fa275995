//! What an input says that the model has no place for.

/// A `Key: value` line, or a JSON member printed as one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Field {
    /// The key as printed.
    pub key: String,
    /// The value as printed, without surrounding blanks.
    pub value: String,
}

/// A titled block of text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Section {
    /// The title, without its colon.
    pub title: String,
    /// The text below it.
    pub text: String,
}
