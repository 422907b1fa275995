//! Finds a library's functions in a stripped app.
//!
//! Strongest first: methods of the library's classes; bodies that occur once in the library and once in the app, and
//! whose texts, imports and calls agree; what those call and point to; what lies between them, where the app keeps the
//! library's order; and what must be there, where nothing was left out. Never what is merely near.

mod classes;
mod embedded;
mod ground;
mod newer;
mod order;
mod present;
mod spread;
mod weak;
mod work;

use crate::app::App;
use crate::fingerprint::Slice;
use work::Work;

/// By what a function was told to be the library's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum How {
    /// A method of one of its classes, with its body.
    Name,
    /// Its body, and what that refers to.
    Body,
    /// What a known function calls or points to, with its body.
    Call,
    /// Its body, between known functions of its object file.
    Order,
    /// Its body: it must be somewhere, and nowhere else is one.
    Present,
    /// Another body where a known function of it must be.
    Changed,
    /// A method of its class that is not known: of another version, or of a member without code of its own (bitcode).
    Added,
}

impl How {
    /// Whether the body is the known one.
    pub(crate) fn is_equal(self) -> bool {
        !matches!(self, Self::Changed | Self::Added)
    }
}

/// What was found of one library.
pub(crate) struct Placed {
    /// Numbers of the app's functions, ascending.
    pub(crate) claims: Vec<(usize, How)>,
    /// How many of them have the library's very body.
    pub(crate) equal: usize,
    /// Whether nothing shows that it is another version.
    pub(crate) is_version: bool,
}

/// Distinct functions that must have been found by what does not rest on order, and what they must weigh together.
const LEAST_FUNCTIONS: usize = 8;
const LEAST_WEIGHT: u64 = 400;

/// Places a library; nothing where too little of it is there to be sure.
pub(crate) fn place(app: &App<'_>, slice: &Slice) -> Option<Placed> {
    let mut work = Work::new(app, slice);
    spread::names(&mut work);
    spread::symbols(&mut work);
    by_bodies(&mut work);
    work.is_there = is_there(&work);
    // Claims that rest on names come last, but also tell that something of it is there.
    if !work.is_there && !spread::renewed(&mut work) {
        return None;
    }
    if !work.is_there {
        newer::fill(&mut work);
        spread::stray(&mut work);
        return Some(Placed { claims: work.claims(), equal: 0, is_version: false });
    }
    if app.has_symbols() {
        by_bodies(&mut work);
    }
    order::fill(&mut work);
    // What order placed may call what nothing else does.
    spread::calls(&mut work);
    weak::fill(&mut work);
    order::fill(&mut work);
    present::fill(&mut work);
    classes::fill(&mut work);
    spread::renewed(&mut work);
    spread::renamed(&mut work);
    spread::changed(&mut work);
    if spread::is_contradicted(&mut work) {
        newer::fill(&mut work);
        spread::stray(&mut work);
    }
    spread::folded(&mut work);
    let claims: Vec<(usize, How)> = work.claims();
    let equal = claims.iter().filter(|(_, how)| how.is_equal()).count();
    Some(Placed { claims, equal, is_version: !spread::is_contradicted(&mut work) })
}

/// What bodies tell, and what is called there.
fn by_bodies(work: &mut Work<'_, '_>) {
    spread::bodies(work);
    spread::calls(work);
    spread::verify(work);
    spread::groups(work);
    spread::calls(work);
}

fn is_there(work: &Work<'_, '_>) -> bool {
    // Helpers of blocks and the like are alike in many libraries.
    let strong = work.placed().filter(|(function, place, how)| {
        let is_told = !work.is_weak(*function) && how.is_equal();
        is_told && (*how == How::Name || !spread::is_stray(work, *function, *place))
    });
    let (count, weight) = strong.fold((0usize, 0u64), |(count, weight), (function, ..)| {
        (count + 1, weight + u64::from(work.weight(function)))
    });
    count >= LEAST_FUNCTIONS && weight >= LEAST_WEIGHT
}
