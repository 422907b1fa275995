//! Address spaces as types.

use core::fmt;

/// What the four address types have in common: they wrap a `u64` and never mix.
pub trait Address: Copy + Ord + fmt::Debug {
    /// Wraps a number that the caller knows to be of this address space.
    fn new(value: u64) -> Self;
    /// The bare number, for printing and for arithmetic on file fields.
    fn get(self) -> u64;
}

macro_rules! address {
    ($(#[$doc:meta])* $name:ident, $tag:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number that the caller knows to be of this address space.
            #[inline]
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            /// The bare number, for printing and for arithmetic on file fields.
            #[inline]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The address `bytes` further up; `None` past the end of the address space.
            #[inline]
            pub const fn checked_add(self, bytes: u64) -> Option<Self> {
                match self.0.checked_add(bytes) {
                    Some(value) => Some(Self(value)),
                    None => None,
                }
            }

            /// The address `bytes` further down; `None` below zero.
            #[inline]
            pub const fn checked_sub(self, bytes: u64) -> Option<Self> {
                match self.0.checked_sub(bytes) {
                    Some(value) => Some(Self(value)),
                    None => None,
                }
            }

            /// How many bytes this address lies above `base`; `None` where it lies below.
            #[inline]
            pub const fn offset_from(self, base: Self) -> Option<u64> {
                self.0.checked_sub(base.0)
            }
        }

        impl Address for $name {
            #[inline]
            fn new(value: u64) -> Self {
                Self(value)
            }

            #[inline]
            fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($tag, " {:#x}"), self.0)
            }
        }

        /// `0x…` in lower case, without leading zeros.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address!(
    /// Actual virtual memory address: where something is in a running process.
    Avma,
    "avma"
);
address!(
    /// Stated virtual memory address: where the object file says something is. Symbols and DWARF speak this.
    Svma,
    "svma"
);
address!(
    /// Relative address: bytes from the image base (`__TEXT`'s `vmaddr`, ELF's first `LOAD` segment).
    Rva,
    "rva"
);
address!(
    /// Position in the file. Often equal to an [`Svma`] by accident, never by meaning.
    FileOffset,
    "file"
);

/// `Avma - Svma` of one image, modulo 2^64: what Apple calls the slide.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bias(u64);

impl Bias {
    /// The bias of an image whose byte stated at `svma` is found at `avma`.
    #[inline]
    pub const fn between(avma: Avma, svma: Svma) -> Self {
        Self(avma.0.wrapping_sub(svma.0))
    }

    /// The bias as a two's complement number; images may lie below their stated address.
    #[inline]
    pub const fn get(self) -> i64 {
        self.0.cast_signed()
    }

    /// From process to file. `None` where the result would leave the address space.
    #[inline]
    pub fn to_svma(self, avma: Avma) -> Option<Svma> {
        if self.may_wrap() {
            Some(Svma(avma.0.wrapping_sub(self.0)))
        } else {
            avma.0.checked_sub(self.0).map(Svma)
        }
    }

    /// From file to process. `None` where the result would leave the address space.
    #[inline]
    pub fn to_avma(self, svma: Svma) -> Option<Avma> {
        if self.may_wrap() {
            Some(Avma(svma.0.wrapping_add(self.0)))
        } else {
            svma.0.checked_add(self.0).map(Avma)
        }
    }

    /// Whether this is the bias of an image below its stated address, or of one stated at 0 that lies in the upper half of
    /// the address space, as kernel extensions do. Modulo 2^64 the two are the same number, and the image's
    /// addresses meet its stated ones either way; no address outside of it does.
    const fn may_wrap(self) -> bool {
        self.get() < 0
    }
}

impl fmt::Debug for Bias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bias {self}")
    }
}

impl fmt::Display for Bias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.get();
        let sign = if value < 0 { "-" } else { "" };
        write!(f, "{sign}{:#x}", value.unsigned_abs())
    }
}

/// A half-open range of addresses of one space: `start` is in, `end` is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddrRange<A> {
    start: A,
    end: A,
}

impl<A: Address> AddrRange<A> {
    /// From `start` up to, without, `end`; empty (at `start`) where `end` lies below `start`.
    #[inline]
    pub fn new(start: A, end: A) -> Self {
        Self { start, end: end.max(start) }
    }

    /// `size` bytes from `start` on, cut at the end of the address space.
    #[inline]
    pub fn from_size(start: A, size: u64) -> Self {
        Self { start, end: A::new(start.get().saturating_add(size)) }
    }

    /// The first address in the range.
    #[inline]
    pub fn start(self) -> A {
        self.start
    }

    /// The first address behind the range.
    #[inline]
    pub fn end(self) -> A {
        self.end
    }

    /// Bytes in the range.
    #[inline]
    pub fn size(self) -> u64 {
        self.end.get() - self.start.get()
    }

    /// Whether no address is in the range.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether `address` is in the range.
    #[inline]
    pub fn contains(self, address: A) -> bool {
        self.start <= address && address < self.end
    }
}

impl<A: Address> fmt::Debug for AddrRange<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}..{:#x}", self.start, self.end.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn bias_goes_both_ways_also_below_zero() {
        let up = Bias::between(Avma::new(0x1_0400_0000), Svma::new(0x1_0000_0000));
        assert_eq!(up.to_svma(Avma::new(0x1_0400_1234)), Some(Svma::new(0x1_0000_1234)));
        assert_eq!(up.to_avma(Svma::new(0x1_0000_1234)), Some(Avma::new(0x1_0400_1234)));
        let down = Bias::between(Avma::new(0x4000), Svma::new(0x1_0000_0000));
        assert_eq!(down.to_svma(Avma::new(0x5000)), Some(Svma::new(0x1_0000_1000)));
        assert_eq!(format!("{down}"), "-0xffffc000");
    }

    /// Apple's kernel extensions on x86_64 are stated at 0; Linux' modules are, too.
    #[test]
    fn bias_goes_both_ways_from_the_lowest_to_the_highest_addresses() {
        let kernel = Bias::between(Avma::new(0xffff_ff7f_80d5_c000), Svma::new(0));
        assert_eq!(kernel.to_svma(Avma::new(0xffff_ff7f_80d5_c328)), Some(Svma::new(0x328)));
        assert_eq!(kernel.to_avma(Svma::new(0x328)), Some(Avma::new(0xffff_ff7f_80d5_c328)));
        assert_ne!(kernel.to_svma(Avma::new(0x1000)), Some(Svma::new(0x1000)));
    }

    #[test]
    fn bias_refuses_what_leaves_the_address_space() {
        let up = Bias::between(Avma::new(0x4000), Svma::new(0));
        assert_eq!(up.to_svma(Avma::new(0x3fff)), None);
        assert_eq!(up.to_avma(Svma::new(u64::MAX)), None);
    }

    #[test]
    fn ranges_never_wrap() {
        let range = AddrRange::from_size(Svma::new(u64::MAX - 1), 10);
        assert_eq!(range.size(), 1);
        assert!(range.contains(Svma::new(u64::MAX - 1)));
        assert!(AddrRange::new(Svma::new(8), Svma::new(4)).is_empty());
    }

    #[test]
    fn debug_names_the_space() {
        assert_eq!(format!("{:?}", Rva::new(16)), "rva 0x10");
        assert_eq!(format!("{:?}", AddrRange::from_size(Avma::new(16), 4)), "avma 0x10..0x14");
    }
}
