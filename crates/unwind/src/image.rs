//! Where images lie in the target.

use crate::runtime::RuntimeFrame;
use crate::{Module, Rules};
use backtrail_core::{AddrRange, Avma, Bias, Svma};
use list::Notes;

mod list;

pub use list::ModuleList;

/// One image, or one executable mapping that belongs to none.
#[derive(Clone, Copy, Debug)]
pub struct PlacedModule<'a> {
    /// The addresses that it occupies in the target.
    pub range: AddrRange<Avma>,
    /// From the target's addresses to the file's.
    pub bias: Bias,
    /// Its tables and its code.
    pub module: Option<&'a Module<'a>>,
    /// Its compiled rules: asked before the module, except for exact addresses, which may need the code.
    pub rules: Option<&'a Rules>,
}

impl<'a> PlacedModule<'a> {
    /// An image with its tables.
    pub fn new(range: AddrRange<Avma>, bias: Bias, module: &'a Module<'a>) -> Self {
        Self { range, bias, module: Some(module), rules: None }
    }

    /// An image of which only the compiled rules are at hand.
    pub fn compiled(range: AddrRange<Avma>, bias: Bias, rules: &'a Rules) -> Self {
        Self { range, bias, module: None, rules: Some(rules) }
    }

    /// What a language runtime's table says of an address. Of compiled images only what is special about functions is
    /// known; the others are rows like any.
    pub(crate) fn runtime_frame(&self, at: Svma) -> Option<RuntimeFrame> {
        match (self.module, self.rules) {
            (Some(module), _) => module.runtime_frame(at),
            (None, Some(rules)) => rules.special(at),
            (None, None) => None,
        }
    }

    /// Executable memory without tables: code made at run time, or an image whose file was not found.
    pub fn unknown(range: AddrRange<Avma>) -> Self {
        Self { range, bias: Bias::default(), module: None, rules: None }
    }
}

/// The callee-saved registers that the rules of any of the images count from, as slots of packed rules.
pub(crate) fn bases(images: &[PlacedModule<'_>]) -> u16 {
    // What a module's tables count from shows when they are read.
    let bases = images.iter().map(|image| match (image.rules, image.module) {
        (Some(rules), None) => rules.bases(),
        (None, None) => 0,
        _ => u16::MAX,
    });
    bases.fold(0, |all, some| all | some)
}

/// A target's images, found by address. No lookup allocates.
#[derive(Clone, Copy, Debug)]
pub struct ModuleMap<'a> {
    sorted: &'a [PlacedModule<'a>],
    /// The callee-saved registers that the images' rules count from, as slots of packed rules.
    bases: u16,
    notes: Notes<'a>,
}

impl<'a> ModuleMap<'a> {
    /// `images`, which this sorts by address. They should not overlap: of two that do, the one that starts last is
    /// found.
    pub fn new(images: &'a mut [PlacedModule<'a>]) -> Self {
        images.sort_unstable_by_key(|image| image.range.start());
        Self::from_sorted(images)
    }

    /// `images` that are sorted by address.
    ///
    /// # Signal safety
    ///
    /// Safe: looks at each once.
    pub fn from_sorted(images: &'a [PlacedModule<'a>]) -> Self {
        Self::with_notes(images, bases(images), Notes::NOWHERE)
    }

    #[inline]
    pub(crate) fn with_notes(sorted: &'a [PlacedModule<'a>], bases: u16, notes: Notes<'a>) -> Self {
        Self { sorted, bases, notes }
    }

    #[inline]
    pub(crate) fn notes(&self) -> Notes<'a> {
        self.notes
    }

    pub(crate) fn bases(&self) -> u16 {
        self.bases
    }

    /// The image at the address.
    #[inline]
    pub fn at(&self, address: Avma) -> Option<&'a PlacedModule<'a>> {
        let after = self.sorted.partition_point(|image| image.range.start() <= address);
        self.sorted.get(..after)?.last().filter(|image| image.range.contains(address))
    }

    /// All of them, by address.
    pub fn all(&self) -> &'a [PlacedModule<'a>] {
        self.sorted
    }
}
