//! How much a file may make us do.

/// Upper bounds on what one file may cost. The defaults let every file that was ever seen pass, and stop files that
/// were made to exhaust memory or time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Slices of a fat file, members of an archive, images of a shared cache.
    pub slices: usize,
    /// Segments of one slice, or program headers.
    pub segments: usize,
    /// Sections of one slice.
    pub sections: usize,
    /// Symbols that one slice may give, all its tables together; also function starts and debug map entries.
    pub symbols: usize,
    /// Bytes that all sections of one file together may decompress to, whatever its size.
    pub decompressed_bytes: u64,
    /// How many times its own size a file may decompress to, all sections together, besides
    /// [`decompressed_freely`](Self::decompressed_freely). Debug files come to 2 to 4 times their size, small ones to 13.
    pub decompressed_ratio: u64,
    /// Bytes that any file may decompress to, however small it is.
    pub decompressed_freely: u64,
    /// Bytes that [`identify`](crate::identify) reads of one slice, member or image at most.
    pub identify_bytes: u64,
    /// Nesting of an exports trie: characters of the longest name that is spelled one by one.
    pub trie_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            slices: 1 << 20,
            segments: 1 << 16,
            sections: 1 << 20,
            symbols: 1 << 25,
            decompressed_bytes: 8 << 30,
            decompressed_ratio: 32,
            decompressed_freely: 64 << 20,
            identify_bytes: 16 << 20,
            trie_depth: 4096,
        }
    }
}
