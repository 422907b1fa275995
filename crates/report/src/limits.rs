//! How much of a report is read before the rest is only kept as text.

/// Bounds on what reading a report may cost. The defaults hold every report that Apple's systems write with room to
/// spare; a larger input is refused or, inside a report, kept as text with a note.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of input; larger ones are refused.
    pub max_bytes: usize,
    /// Bytes in one line that is looked at; a longer one is kept as text.
    pub max_line: usize,
    /// Threads, and stacks that are no thread's.
    pub max_threads: usize,
    /// Frames in all stacks together.
    pub max_frames: usize,
    /// Images.
    pub max_images: usize,
    /// How deep JSON may nest. MetricKit nests two levels a frame, so this also bounds its stacks.
    pub max_json_depth: usize,
    /// Values in a JSON document.
    pub max_json_values: usize,
    /// Fields, sections, lines of messages, registers of a thread: of each this many.
    pub max_items: usize,
    /// Notes; further ones are counted only.
    pub max_notes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            max_line: 1 << 20,
            max_threads: 100_000,
            max_frames: 1_000_000,
            max_images: 200_000,
            max_json_depth: 4_096,
            max_json_values: 4_000_000,
            max_items: 100_000,
            max_notes: 200,
        }
    }
}
