//! Accesses to memory that failed: the rules that lead, and what they share.

mod details;
mod fetch;
mod null;
mod pointer;
mod protection;
mod unmapped;
mod untold;

pub(super) use details::{account, as_text, fill, holders};
pub(super) use fetch::code_fetch;
pub(super) use null::{below_null, null};
pub(super) use pointer::{memory_tagging, pointer_authentication};
pub(super) use protection::{codesign, memory_error, misaligned, protection};
pub(super) use unmapped::{beyond_address_space, unmapped};
pub(super) use untold::untold;

use super::esr::{self, Access, Syndrome};
use super::facts::Facts;
use super::fault::Fault;
use super::words::hex;
use backtrail_core::Avma;
use backtrail_model::Image;

/// No object, struct or table is reached at a larger offset from null by ordinary code; the first page of a 16 KB
/// system is never mapped.
const NULL_PAGE: u64 = 0x4000;

const ADDRESS_SANITIZER: &str =
    "Run with Address Sanitizer: it stops where the memory was freed or overwritten, not later.";

const DANGLING: &str = "A pointer to memory that was freed and given back.";

const GARBAGE: &str = "A pointer that was never set, or was overwritten.";

/// What the rules of this file share.
struct Accessing<'f, 'r> {
    facts: &'f Facts<'r>,
    fault: &'f Fault,
    syndrome: Option<Syndrome>,
}

impl<'f, 'r> Accessing<'f, 'r> {
    fn of(facts: &'f Facts<'r>) -> Option<Self> {
        let fault = facts.fault.as_ref()?;
        Some(Self { facts, fault, syndrome: esr::read(facts.report, &facts.registers) })
    }

    fn access(&self) -> Option<Access> {
        self.syndrome.as_ref().and_then(|syndrome| syndrome.access)
    }

    /// `: read at 0x8`, or ` at 0x8` where the report does not tell what for.
    fn act(&self, address: Avma) -> String {
        let noun = self.access().map(|access| format!(": {}", access.noun())).unwrap_or_default();
        format!("{noun} at {}", hex(address))
    }

    /// `read`, `wrote to`, `accessed`.
    fn verb(&self) -> &'static str {
        match self.access() {
            Some(Access::Read) => "read",
            Some(Access::Write) => "wrote to",
            Some(Access::Execute) => "jumped to",
            None => "accessed",
        }
    }
}

fn holds(image: &Image, address: Avma) -> bool {
    image.load_address <= address && image.end_address.is_some_and(|end| address < end)
}
