//! The fixed texts that a readable name is made of, besides the identifiers in the mangled one.

/// A fixed text. Each has a node of its own at the start of every [`Table`](super::table::Table).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u8);

macro_rules! words {
    ($($name:ident = $text:literal,)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($name),* }

        impl Word {
            $(pub(super) const $name: Word = Word(Index::$name as u8);)*
        }

        /// All words, in the order of their numbers.
        pub(super) const WORDS: &[&str] = &[$($text),*];
    };
}

words! {
    EMPTY = "",
    // Builtin types; the letters are in `Word::builtin`.
    SIGNED_CHAR = "signed char",
    BOOL = "bool",
    CHAR = "char",
    DOUBLE = "double",
    LONG_DOUBLE = "long double",
    FLOAT = "float",
    FLOAT128 = "__float128",
    UNSIGNED_CHAR = "unsigned char",
    INT = "int",
    UNSIGNED_INT = "unsigned int",
    LONG = "long",
    UNSIGNED_LONG = "unsigned long",
    INT128 = "__int128",
    UNSIGNED_INT128 = "unsigned __int128",
    SHORT = "short",
    UNSIGNED_SHORT = "unsigned short",
    VOID = "void",
    WCHAR = "wchar_t",
    LONG_LONG = "long long",
    UNSIGNED_LONG_LONG = "unsigned long long",
    VARIADIC = "...",
    DECIMAL64 = "decimal64",
    DECIMAL128 = "decimal128",
    DECIMAL32 = "decimal32",
    HALF = "half",
    CHAR32 = "char32_t",
    CHAR16 = "char16_t",
    CHAR8 = "char8_t",
    AUTO = "auto",
    DECLTYPE_AUTO = "decltype(auto)",
    NULLPTR_T = "std::nullptr_t",
    BFLOAT16 = "std::bfloat16_t",
    // Names.
    STD = "std",
    ANONYMOUS = "(anonymous namespace)",
    STRING_LITERAL = "string literal",
    BLOCK_LITERAL = "'block-literal'",
    // Behind a type.
    COMPLEX = " complex",
    IMAGINARY = " imaginary",
    BEHIND_AUTO = " auto",
    BEHIND_DECLTYPE_AUTO = " decltype(auto)",
    // In front of a type.
    STRUCT = "struct",
    UNION = "union",
    ENUM = "enum",
    NOEXCEPT = "noexcept",
    // Behind an integer literal.
    U = "u",
    L = "l",
    UL = "ul",
    LL = "ll",
    ULL = "ull",
    // Expressions.
    THIS = "this",
    THROW = "throw",
    NULLPTR = "nullptr",
    TRUE = "true",
    FALSE = "false",
    DECLTYPE = "decltype",
    NOEXCEPT_OF = "noexcept ",
    SIZEOF_PACK = "sizeof... ",
    // What the name stands for.
    VTABLE = "vtable for ",
    VTT = "VTT for ",
    TYPEINFO = "typeinfo for ",
    TYPEINFO_NAME = "typeinfo name for ",
    TEMPLATE_OBJECT = "template parameter object for ",
    COVARIANT_THUNK = "covariant return thunk to ",
    VIRTUAL_THUNK = "virtual thunk to ",
    NON_VIRTUAL_THUNK = "non-virtual thunk to ",
    TLS_WRAPPER = "thread-local wrapper routine for ",
    TLS_INIT = "thread-local initialization routine for ",
    GUARD = "guard variable for ",
    REFERENCE_TEMPORARY = "reference temporary for ",
    MODULE_INITIALIZER = "initializer for module ",
    HIDDEN_ALIAS = "hidden alias for ",
    TRANSACTION_CLONE = "transaction clone for ",
    NON_TRANSACTION_CLONE = "non-transaction clone for ",
    BLOCK_INVOCATION = "invocation function for block in ",
}

impl Word {
    pub(super) fn numbered(number: u8) -> Word {
        Word(number)
    }

    pub(super) fn text(self) -> &'static str {
        WORDS.get(usize::from(self.0)).copied().unwrap_or_default()
    }

    pub(super) fn number(self) -> u8 {
        self.0
    }

    /// The builtin type that a single letter stands for.
    #[inline]
    pub(super) fn builtin(letter: u8) -> Option<Word> {
        const BY_LETTER: [Word; 26] = [
            Word::SIGNED_CHAR,        // a
            Word::BOOL,               // b
            Word::CHAR,               // c
            Word::DOUBLE,             // d
            Word::LONG_DOUBLE,        // e
            Word::FLOAT,              // f
            Word::FLOAT128,           // g
            Word::UNSIGNED_CHAR,      // h
            Word::INT,                // i
            Word::UNSIGNED_INT,       // j
            Word::EMPTY,              // k
            Word::LONG,               // l
            Word::UNSIGNED_LONG,      // m
            Word::INT128,             // n
            Word::UNSIGNED_INT128,    // o
            Word::EMPTY,              // p
            Word::EMPTY,              // q
            Word::EMPTY,              // r: restrict
            Word::SHORT,              // s
            Word::UNSIGNED_SHORT,     // t
            Word::EMPTY,              // u: a vendor's type
            Word::VOID,               // v
            Word::WCHAR,              // w
            Word::LONG_LONG,          // x
            Word::UNSIGNED_LONG_LONG, // y
            Word::VARIADIC,           // z
        ];
        let word = *BY_LETTER.get(usize::from(letter.wrapping_sub(b'a')))?;
        (word != Word::EMPTY).then_some(word)
    }

    /// The builtin type that a letter behind a `D` stands for.
    pub(super) fn builtin_d(letter: u8) -> Option<Word> {
        Some(match letter {
            b'a' => Word::AUTO,
            b'c' => Word::DECLTYPE_AUTO,
            b'd' => Word::DECIMAL64,
            b'e' => Word::DECIMAL128,
            b'f' => Word::DECIMAL32,
            b'h' => Word::HALF,
            b'i' => Word::CHAR32,
            b'n' => Word::NULLPTR_T,
            b's' => Word::CHAR16,
            b'u' => Word::CHAR8,
            _ => return None,
        })
    }

    /// How a literal of a builtin type shows its type: behind the number (`u`), or in front in parentheses (`char`).
    pub(super) fn literal_type(letter: u8) -> Option<Word> {
        Some(match letter {
            b'i' => Word::EMPTY,
            b'j' => Word::U,
            b'l' => Word::L,
            b'm' => Word::UL,
            b'x' => Word::LL,
            b'y' => Word::ULL,
            b'w' | b'c' | b'a' | b'h' | b's' | b't' | b'n' | b'o' => return Word::builtin(letter),
            _ => return None,
        })
    }
}
