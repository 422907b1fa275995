//! What an Apple process's memory and answers of its kernel mean: Mach-O headers as mapped, names of dispatch queues, exceptions. Takes memory and words, makes no calls: works on any system, and is tested on any.

mod header;
mod queue;

pub use backtrail_sys::mach_exception::Exception;
pub use header::{MappedImage, MappedSection, read_image};
pub use queue::{QueueOffsets, queue_name};
