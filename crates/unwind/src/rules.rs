//! One image's rules, compiled into small rows of fixed size.

use crate::row::Found;
use backtrail_core::Svma;

/// Every row of one image's tables, ready for stepping without any parsing: made by [`Module::compile`].
///
/// [`Module::compile`]: crate::Module::compile
#[derive(Clone, Debug, Default)]
pub struct Rules {}

impl Rules {
    /// The rules at `at`.
    pub fn find(&self, _at: Svma) -> Option<Found> {
        None
    }
}
