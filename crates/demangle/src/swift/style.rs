//! The form in which a name is to be shown.

use crate::{FoldTemplates, Options, SwiftStyle};

#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    /// The short form: no modules, no types, no details.
    pub(super) is_simplified: bool,
    /// `[Int]`, `Int?` rather than `Array<Int>`, `Optional<Int>`.
    pub(super) has_sugar: bool,
    pub(super) has_parameters: bool,
    pub(super) has_return_types: bool,
    pub(super) fold: Option<FoldTemplates>,
}

impl Style {
    pub(super) fn new(options: &Options) -> Self {
        Style {
            is_simplified: options.swift == SwiftStyle::Simplified,
            has_sugar: options.sugar,
            has_parameters: options.parameters,
            has_return_types: options.return_types,
            fold: options.fold_templates,
        }
    }

    /// The form of a name within a name: Swift's own demangler shows those in full and without sugar.
    pub(super) fn nested() -> Self {
        Style {
            is_simplified: false,
            has_sugar: false,
            has_parameters: true,
            has_return_types: true,
            fold: None,
        }
    }
}
