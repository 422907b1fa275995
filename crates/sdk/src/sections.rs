//! The bytes of an object's sections.

use std::borrow::Cow;

use backtrail_object::{Object, Section};

/// The bytes of each section that is part of the running image, empty ones in the place of the others.
pub(crate) fn loaded_data<'d>(object: &Object<'d>) -> Vec<Cow<'d, [u8]>> {
    let data = |section: &Section<'_>| match section.is_loaded {
        true => object.section_data(section).unwrap_or_default(),
        false => Cow::default(),
    };
    object.sections().iter().map(data).collect()
}
