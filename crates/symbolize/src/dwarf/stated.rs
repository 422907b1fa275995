//! What one DIE says about names, and where its references lead.

use super::skip::skip_form;
use super::value::Value;
use super::view::View;
use gimli::constants as dw;

/// What one DIE says about names.
#[derive(Default)]
pub(crate) struct Stated {
    pub(crate) linkage: Option<Value>,
    pub(crate) plain: Option<Value>,
    pub(crate) origin: Option<Value>,
    pub(crate) specification: Option<Value>,
}

/// The unit and section offset of the DIE that a reference points at: in this unit, another one, or another file.
pub(crate) fn follow<'a, 'd>(view: View<'a, 'd>, reference: Value) -> Option<(View<'a, 'd>, u64)> {
    match reference {
        Value::UnitRef(offset) => Some((view, view.unit.header.offset.checked_add(offset)?)),
        Value::InfoRef(offset) => {
            let header = &view.unit.header;
            if (header.offset..header.end).contains(&offset) {
                return Some((view, offset));
            }
            Some((view.file.view_around(offset)?, offset))
        }
        Value::SupRef(offset) => Some((view.file.supplementary()?.view_around(offset)?, offset)),
        _ => None,
    }
}

pub(crate) fn read_stated(view: View<'_, '_>, die: u64) -> Option<Stated> {
    let abbrevs = &*view.body.abbrevs;
    let mut reader = view.reader(die);
    let abbrev = abbrevs.next_die(&mut reader).ok()??;
    let mut stated = Stated::default();
    for spec in abbrevs.specs(abbrev) {
        let field = match gimli::DwAt(spec.name) {
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => &mut stated.linkage,
            dw::DW_AT_name => &mut stated.plain,
            dw::DW_AT_abstract_origin => &mut stated.origin,
            dw::DW_AT_specification => &mut stated.specification,
            _ => {
                skip_form(spec.form, abbrevs.encoding(), &mut reader)?;
                continue;
            }
        };
        *field = Some(abbrevs.value(*spec, &mut reader)?);
    }
    Some(stated)
}
