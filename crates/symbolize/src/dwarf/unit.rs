//! A unit: its header, and what is read of it when an address falls into it.

use super::abbrev::AbbrevTable;
use super::functions::FunctionTable;
use super::header::Header;
use super::lines::LineTable;
use super::reader::Reader;
use super::split::SplitUnit;
use super::value::Value;
use crate::malformed::Malformed;
use gimli::constants as dw;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// A unit of `.debug_info`. Everything behind the header is read once, when first needed.
pub(crate) struct Unit<'d> {
    pub(crate) header: Header,
    pub(crate) body: OnceLock<Option<Box<Body>>>,
    pub(crate) functions: OnceLock<Box<FunctionTable>>,
    pub(crate) all_functions: OnceLock<Box<FunctionTable>>,
    pub(crate) lines: OnceLock<Option<Box<LineTable>>>,
    pub(crate) scopes: OnceLock<Box<ScopeCache>>,
    /// The split unit that a skeleton stands for; the inner `None` when it is not to be had.
    pub(crate) split: OnceLock<Option<Box<SplitUnit<'d>>>>,
}

impl Unit<'_> {
    pub(crate) fn new(header: Header) -> Self {
        Self {
            header,
            body: OnceLock::new(),
            functions: OnceLock::new(),
            all_functions: OnceLock::new(),
            lines: OnceLock::new(),
            scopes: OnceLock::new(),
            split: OnceLock::new(),
        }
    }
}

/// Names with their scopes, by DIE (counted from the unit's start): finding the scopes means walking the unit up to there.
#[derive(Default)]
pub(crate) struct ScopeCache(pub(crate) Mutex<HashMap<u32, String>>);

/// A unit's abbreviations and root DIE.
pub(crate) struct Body {
    pub(crate) abbrevs: Arc<AbbrevTable>,
    pub(crate) root: Root,
}

/// What a unit's root DIE states.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Root {
    pub(crate) tag: u16,
    pub(crate) language: u16,
    pub(crate) name: Option<Value>,
    pub(crate) comp_dir: Option<Value>,
    pub(crate) low_pc: Option<Value>,
    pub(crate) high_pc: Option<Value>,
    pub(crate) ranges: Option<Value>,
    /// Offset of the line program in `.debug_line`.
    pub(crate) stmt_list: Option<u64>,
    pub(crate) str_offsets_base: Option<u64>,
    pub(crate) addr_base: Option<u64>,
    pub(crate) rnglists_base: Option<u64>,
    /// GNU's split DWARF 4: what range list offsets in the split unit count from.
    pub(crate) gnu_ranges_base: Option<u64>,
    /// The split unit's file, and its id where the header has none (before DWARF 5).
    pub(crate) dwo_name: Option<Value>,
    pub(crate) dwo_id: Option<u64>,
}

impl Root {
    /// Reads the root DIE at the reader's position. `None` for a unit without any DIE.
    pub(crate) fn read(reader: &mut Reader<'_>, abbrevs: &AbbrevTable) -> Result<Option<Self>, Malformed> {
        const SECTION: &str = ".debug_info";
        if reader.is_empty() {
            return Ok(None);
        }
        let start = *reader;
        let code =
            reader.uleb().ok_or_else(|| start.malformed(SECTION, "the abbreviation code of a root DIE"))?;
        if code == 0 {
            return Ok(None);
        }
        let abbrev = abbrevs
            .get(code)
            .ok_or_else(|| start.malformed(SECTION, "a root DIE with a known abbreviation"))?;
        let mut root = Self { tag: abbrev.tag, ..Self::default() };
        for spec in abbrevs.specs(abbrev) {
            let at = *reader;
            let value = abbrevs.value(*spec, reader);
            let value =
                value.ok_or_else(|| at.malformed(SECTION, "an attribute of a root DIE in a known form"))?;
            root.set(gimli::DwAt(spec.name), value);
        }
        Ok(Some(root))
    }

    /// Whether the names of functions are not what the linker sees: all languages but those that are C in this.
    pub(crate) fn has_mangled_names(&self) -> bool {
        !matches!(
            gimli::DwLang(self.language),
            gimli::DwLang(0)
                | dw::DW_LANG_C
                | dw::DW_LANG_C89
                | dw::DW_LANG_C99
                | dw::DW_LANG_C11
                | dw::DW_LANG_C17
                | dw::DW_LANG_ObjC
                | dw::DW_LANG_Mips_Assembler
        )
    }

    fn set(&mut self, name: gimli::DwAt, value: Value) {
        match name {
            dw::DW_AT_name => self.name = Some(value),
            dw::DW_AT_comp_dir => self.comp_dir = Some(value),
            dw::DW_AT_language => {
                self.language = value.unsigned().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
            }
            dw::DW_AT_low_pc => self.low_pc = Some(value),
            dw::DW_AT_high_pc => self.high_pc = Some(value),
            dw::DW_AT_ranges => self.ranges = Some(value),
            dw::DW_AT_stmt_list => self.stmt_list = value.section_offset(),
            dw::DW_AT_str_offsets_base => self.str_offsets_base = value.section_offset(),
            dw::DW_AT_addr_base | dw::DW_AT_GNU_addr_base => self.addr_base = value.section_offset(),
            dw::DW_AT_rnglists_base => self.rnglists_base = value.section_offset(),
            dw::DW_AT_GNU_ranges_base => self.gnu_ranges_base = value.section_offset(),
            dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name => self.dwo_name = Some(value),
            dw::DW_AT_GNU_dwo_id => {
                self.dwo_id = match value {
                    Value::Signed(id) => Some(id.cast_unsigned()),
                    value => value.unsigned(),
                }
            }
            _ => {}
        }
    }
}
