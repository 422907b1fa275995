//! All methods of one image that need no memory of the target: an address in, a row out.

use crate::cfi::Cfi;
use crate::compact::{Compact, CompactFound};
use crate::exidx::Exidx;
use crate::row::{Expression, Found, Miss};
use crate::rules::Rules;
use crate::sections::Sections;
use alloc::vec::Vec;
use backtrail_core::{Family, Svma};

/// One image's tables, opened: headers only, entries are read when an address asks for them.
#[derive(Debug)]
pub struct Module<'d> {
    family: Family,
    tables: Vec<Tables<'d>>,
}

/// The tables of one file; an image can have several (its own, its debug companion's, `.gnu_debugdata`'s).
#[derive(Debug)]
struct Tables<'d> {
    #[expect(dead_code, reason = "analysis will read it")]
    sections: Sections<'d>,
    cfi: Cfi<'d>,
    exidx: Option<Exidx<'d>>,
    compact: Option<Compact<'d>>,
}

impl<'d> Module<'d> {
    /// The module of an image with these sections.
    pub fn new(sections: Sections<'d>) -> Self {
        let family = sections.arch.map_or(Family::Other, |arch| arch.family());
        let mut module = Self { family, tables: Vec::new() };
        module.add(sections);
        module
    }

    /// Adds another file's sections for the same addresses, asked when those before have no answer.
    pub fn add(&mut self, sections: Sections<'d>) {
        let cfi = Cfi::new(&sections);
        let exidx = Exidx::new(&sections);
        let compact = Compact::new(&sections);
        self.tables.push(Tables { sections, cfi, exidx, compact });
    }

    /// The architecture family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The rules at `at` (a lookup address: return addresses less one). With `exact`, the instruction at `at` is the
    /// next to run, and prologues and epilogues count.
    pub fn find(&self, at: Svma, exact: bool) -> Result<Found, Miss> {
        let _ = exact;
        let mut miss = Miss::NotCovered;
        for tables in &self.tables {
            match tables.find(at) {
                Ok(found) => return Ok(found),
                Err(why) if miss == Miss::NotCovered => miss = why,
                Err(_) => {}
            }
        }
        Err(miss)
    }

    /// Compiles all tables into rows of fixed size.
    pub fn compile(&self) -> Rules {
        Rules::default()
    }

    /// The bytes of an expression in a row of this module.
    pub fn expression(&self, expression: Expression) -> Option<&'d [u8]> {
        self.tables.first()?.cfi.expression(expression)
    }
}

impl Tables<'_> {
    fn find(&self, at: Svma) -> Result<Found, Miss> {
        if let Some(compact) = &self.compact {
            match compact.find(at) {
                Ok(CompactFound::Row(found)) => return Ok(found),
                Ok(CompactFound::EhFrame(_)) | Err(_) => {}
            }
        }
        if let Some(exidx) = &self.exidx {
            return exidx.find(at);
        }
        self.cfi.find(at)
    }
}
