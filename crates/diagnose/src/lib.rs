//! What a report means: what happened and why, whose code it was, and which others are of the same bug.
//!
//! [`explain()`] says what happened, [`blamed()`] where, [`attribute()`] whose code it was, [`group()`] which
//! reports are of the same bug; all work on the report alone, and better with the
//! names that symbolizing filled in. [`add_register_frames`] adds what a report's registers tell of its stacks, before
//! names are looked up; [`settle_register_frames`] decides afterwards. [`add_how_to_get`] says of images whose frames have no
//! names how to come by them. [`add_owners`] says of every frame whose
//! code it is, [`Rules`] are what users say of that.
#![forbid(unsafe_code)]

mod attribute;
mod explain;
mod group;
mod how_to_get;
mod names;
mod owners;
mod register_frames;
mod rules;
mod suspect;

pub use attribute::{Attribution, Layer, attribute};
pub use explain::blamed::{Blamed, blamed};
pub use explain::{Explanation, explain};
pub use group::{
    Added, Beginning, Begins, Group, GroupRef, Groups, Joined, Shown, ShownSort, group, group_and_begins,
    is_crash, keep_fault, telling_stack,
};
pub use how_to_get::{Circumstances, Packages, add_how_to_get};
pub use owners::{add_owners, owner_of_object_file};
pub use register_frames::{add_register_frames, settle_register_frames};
pub use rules::{OwnerRule, Rules, RulesError, RulesErrorKind};
pub use suspect::{is_system, is_system_image};
