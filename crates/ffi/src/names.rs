//! Names for addresses.

use crate::pass::{self, Sized32};
use crate::status::{BACKTRAIL_GONE, BACKTRAIL_INVALID, BACKTRAIL_UNREADABLE, Failure, guard, quiet};
use crate::text;
use backtrail::{AddressKind, Arch, Avma, Binary, Frame, FrameAddress, Function, Reason, Symbol, SymbolInfo};
use std::ffi::{CString, c_char};
use std::path::Path;

/// Rows of names: one a function, innermost first, and at least one a frame.
#[derive(Debug)]
pub struct BacktrailNames(Vec<Row>);

/// One row, with its texts as C wants them.
#[derive(Debug, Default)]
struct Row {
    frame: u32,
    address: u64,
    image: Option<CString>,
    name: Option<CString>,
    linkage_name: Option<CString>,
    file: Option<CString>,
    reason: Option<CString>,
    line: u32,
    column: u32,
    inlined: bool,
    offset: u64,
}

/// One row as C sees it; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailName {
    /// Bytes of the structure.
    pub size: u32,
    /// The frame's position in its stack.
    pub frame: u32,
    /// Its address.
    pub address: u64,
    /// The image's file name, or null.
    pub image: *const c_char,
    /// The readable name, or null.
    pub name: *const c_char,
    /// The linker's name, or null.
    pub linkage_name: *const c_char,
    /// The source file, or null.
    pub file: *const c_char,
    /// Why there is no name, or null.
    pub reason: *const c_char,
    /// The line, or 0.
    pub line: u32,
    /// The column, or 0.
    pub column: u32,
    /// Bytes from the start of the function or symbol; `UINT64_MAX` where it is not known.
    pub offset: u64,
    /// Whether the function is inlined into the next row's.
    pub inlined: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: C layout, the size first, integers and pointers only.
unsafe impl Sized32 for BacktrailName {
    const EMPTY: Self = Self {
        size: 0,
        frame: 0,
        address: 0,
        image: std::ptr::null(),
        name: std::ptr::null(),
        linkage_name: std::ptr::null(),
        file: std::ptr::null(),
        reason: std::ptr::null(),
        line: 0,
        column: 0,
        offset: u64::MAX,
        inlined: 0,
        reserved: 0,
    };
}

impl BacktrailNames {
    /// The rows of a stack.
    pub(crate) fn of_frames(frames: &[Frame]) -> Self {
        let mut names = Self(Vec::new());
        for (frame, position) in frames.iter().zip(0..) {
            let row = Row {
                frame: position,
                address: frame.address.map_or(0, |address| address.raw().get()),
                image: frame.image_name.as_deref().map(text::text),
                ..Row::default()
            };
            names.add(&row, &frame.functions, frame.symbol.as_ref(), frame.reason, frame.function_offset);
        }
        names
    }

    fn of_located(address: u64, located: &SymbolInfo) -> Self {
        let mut names = Self(Vec::new());
        let row = Row { address, ..Row::default() };
        let (symbol, offset) = (located.symbol.as_ref(), located.function_offset);
        names.add(&row, &located.functions, symbol, located.reason, offset);
        names
    }

    fn add(
        &mut self,
        head: &Row,
        functions: &[Function],
        symbol: Option<&Symbol>,
        reason: Option<Reason>,
        offset: Option<u64>,
    ) {
        let row = || Row {
            frame: head.frame,
            address: head.address,
            image: head.image.clone(),
            offset: u64::MAX,
            ..Row::default()
        };
        for function in functions {
            self.0.push(Row {
                name: Some(text::text(&function.name)),
                linkage_name: function.linkage_name.as_deref().map(text::text),
                file: function.file.as_deref().map(text::text),
                line: function.line.unwrap_or(0),
                column: function.column.unwrap_or(0),
                inlined: function.inlined,
                offset: offset.filter(|_| !function.inlined).unwrap_or(u64::MAX),
                ..row()
            });
        }
        match symbol {
            _ if !functions.is_empty() => {}
            Some(symbol) => self.0.push(Row {
                name: Some(text::text(&symbol.name)),
                linkage_name: symbol.linkage_name.as_deref().map(text::text),
                offset: symbol.offset,
                ..row()
            }),
            None => {
                let reason = reason.unwrap_or(Reason::NoSymbol);
                self.0.push(Row { reason: Some(text::text(reason.as_str())), ..row() });
            }
        }
    }
}

impl Row {
    fn for_c(&self) -> BacktrailName {
        BacktrailName {
            frame: self.frame,
            address: self.address,
            image: text::pointer(self.image.as_ref()),
            name: text::pointer(self.name.as_ref()),
            linkage_name: text::pointer(self.linkage_name.as_ref()),
            file: text::pointer(self.file.as_ref()),
            reason: text::pointer(self.reason.as_ref()),
            line: self.line,
            column: self.column,
            offset: self.offset,
            inlined: u32::from(self.inlined),
            ..BacktrailName::EMPTY
        }
    }
}

/// How many rows there are.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_names_count(names: *const BacktrailNames) -> usize {
    // SAFETY: the header's demand.
    unsafe { names.as_ref() }.map_or(0, |names| names.0.len())
}

/// One row.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_names_get(
    names: *const BacktrailNames,
    index: usize,
    out: *mut BacktrailName,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let names = unsafe { pass::handle(names, "names") }?;
        let row = names.0.get(index).ok_or_else(|| Failure::new(BACKTRAIL_GONE, "there is no such row"))?;
        // SAFETY: the header's demand.
        unsafe { pass::fill(out, row.for_c()) }
    })
}

/// Frees the rows.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_names_free(names: *mut BacktrailNames) {
    // SAFETY: the header's demand.
    unsafe { pass::free(names) }
}

/// A binary, opened.
#[derive(Debug)]
pub struct BacktrailBinary(Binary);

/// The addresses are those that the file states.
pub const BACKTRAIL_STATED: u32 = 0;
/// The addresses are those of a process that has the file's first byte at the base.
pub const BACKTRAIL_LOADED_AT: u32 = 1;
/// The addresses are those of a process that has the file the base's number of bytes higher than it states.
pub const BACKTRAIL_SLID: u32 = 2;

/// Opens a binary or a symbol file.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_binary_open(
    path: *const c_char,
    arch: *const c_char,
    out: *mut *mut BacktrailBinary,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let (path, arch) = unsafe { (pass::needed_text(path, "path")?, pass::optional_text(arch, "arch")?) };
        let arch = arch.map(|name| {
            let unknown = || Failure::new(BACKTRAIL_INVALID, format!("{name} is no known architecture"));
            Arch::from_name(name).ok_or_else(unknown)
        });
        let binary = Binary::open(Path::new(path), arch.transpose()?)
            .map_err(|error| Failure::new(BACKTRAIL_UNREADABLE, error.to_string()))?;
        // SAFETY: the header's demand.
        unsafe { pass::give(out, BacktrailBinary(binary)) }
    })
}

/// What lies at an address.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_binary_lookup(
    binary: *const BacktrailBinary,
    address: u64,
    placement: u32,
    base: u64,
    out: *mut *mut BacktrailNames,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let binary = unsafe { pass::handle(binary, "binary") }?;
        let placement = match placement {
            BACKTRAIL_STATED => AddressKind::AsStated,
            BACKTRAIL_LOADED_AT => AddressKind::LoadedAt(Avma::new(base)),
            BACKTRAIL_SLID => AddressKind::WithSlide(base),
            other => return Err(Failure::new(BACKTRAIL_INVALID, format!("{other} is no placement"))),
        };
        let located = match binary.0.stated_address(FrameAddress::Exact(Avma::new(address)), placement) {
            Some(stated) => binary.0.lookup(stated),
            None => SymbolInfo::unknown(Reason::OutsideSections),
        };
        // SAFETY: the header's demand.
        unsafe { pass::give(out, BacktrailNames::of_located(address, &located)) }
    })
}

/// Closes a binary.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_binary_free(binary: *mut BacktrailBinary) {
    // SAFETY: the header's demand.
    unsafe { pass::free(binary) }
}

/// Frees a text that a function gave out.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the header's demand: it was given out by `CString::into_raw`.
        let text = unsafe { CString::from_raw(text) };
        quiet((), move || drop(text));
    }
}
