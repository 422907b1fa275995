//! Every address range of every function that DWARF states, read by gimli alone, against the answers of lookups and of
//! the table. Where functions have several ranges, cold parts, or code that the linker merged, others miss some.

use crate::{Options, Result, lookup, table};
use backtrail_core::{AddrRange, Svma};
use backtrail_object::{Endian, Object};
use backtrail_symbolize::{Answer, FunctionRef, Symbolizer, table_lookup};
use backtrail_table::Table;
use gimli::{AttributeValue, DebuggingInformationEntry, EndianSlice, RunTimeEndian};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};

type Reader = EndianSlice<'static, RunTimeEndian>;
type Dwarf = gimli::Dwarf<Reader>;
type Unit = gimli::Unit<Reader>;
type Entry<'u> = DebuggingInformationEntry<Reader>;

/// The ranges of one function, and all that it is called.
struct Stated {
    range: AddrRange<Svma>,
    names: Vec<Vec<u8>>,
}

/// What the check came to.
#[derive(Default)]
pub(crate) struct Coverage {
    functions: usize,
    /// Functions with several ranges.
    scattered: usize,
    ranges: usize,
    /// Ranges outside of all code: what the linker left out.
    dead: usize,
    asked: usize,
    /// What is wrong, by kind, with examples.
    faults: BTreeMap<&'static str, Vec<String>>,
}

/// How a function refers to the one that it is a copy of; no honest chain is longer.
const MAX_CHAIN: usize = 8;

/// Functions that start before an address, and may reach it, that are tried.
const MAX_TRIED: usize = 4096;

pub(crate) fn check(
    object: &Object<'static>,
    symbolizer: &Symbolizer<'static>,
    options: &Options,
) -> Result<Coverage> {
    let mut coverage = Coverage::default();
    let code: Vec<_> =
        object.sections().iter().filter(|section| section.is_code && section.is_loaded).collect();
    let is_code = |range: &AddrRange<Svma>| {
        code.iter()
            .any(|section| section.address.contains(range.start()) && range.end() <= section.address.end())
    };
    let mut stated = read(object, &mut coverage)?;
    coverage.ranges = stated.len();
    stated.retain(|stated| is_code(&stated.range));
    coverage.dead = coverage.ranges - stated.len();
    stated.sort_by_key(|stated| (stated.range.start(), stated.range.end()));
    // Further files are asked for by the first lookups, one after the other.
    for stated in stated.iter().step_by((stated.len() / 1000).max(1)) {
        lookup(symbolizer, stated.range.start().get(), &options.file);
    }
    let bytes = table::bytes(symbolizer)?;
    let table = Table::open(&bytes)?;
    let check = |index: usize| {
        let addresses = addresses(stated.get(index).map(|stated| stated.range), options.every_byte);
        addresses
            .map(|address| (address, fault(&stated, index, address, symbolizer, &table, options)))
            .collect::<Vec<_>>()
    };
    let found: Vec<_> = (0..stated.len()).into_par_iter().flat_map_iter(check).collect();
    coverage.asked = found.len();
    for (address, fault) in found {
        if let Some((kind, text)) = fault {
            coverage.faults.entry(kind).or_default().push(format!("{address:#x}: {text}"));
        }
    }
    Ok(coverage)
}

/// The first, the last and the middle byte, or every one.
fn addresses(range: Option<AddrRange<Svma>>, every_byte: bool) -> Box<dyn Iterator<Item = u64>> {
    let Some(range) = range else { return Box::new(std::iter::empty()) };
    let (start, last) = (range.start().get(), range.end().get() - 1);
    match every_byte {
        true => Box::new(start..=last),
        false => Box::new([start, start.midpoint(last), last].into_iter()),
    }
}

fn fault(
    stated: &[Stated],
    index: usize,
    address: u64,
    symbolizer: &Symbolizer<'static>,
    table: &Table<'_>,
    options: &Options,
) -> Option<(&'static str, String)> {
    let own = stated.get(index)?;
    let shown = || own.names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(" = ");
    let direct = lookup(symbolizer, address, &options.file);
    let of_table = table_lookup(table, Svma::new(address));
    let functions: Vec<_> = direct.functions.iter().map(FunctionRef::to_owned).collect();
    if of_table.functions != functions {
        return Some((
            "the table answers otherwise",
            format!("{:?}, directly {functions:?}", of_table.functions),
        ));
    }
    let Some(outermost) = direct.functions.last() else {
        return Some(("no function", shown()));
    };
    let is_named = |names: &[Vec<u8>]| is_one_of(&direct, names);
    let is_other = || around(stated, index, address).any(|other| is_named(&other.names));
    // Functions without linkage names are named by their symbols, and one place may have several.
    let is_alias = || {
        let starts = |other: &Stated| direct.function_start == Some(other.range.start());
        starts(own) || around(stated, index, address).any(starts)
    };
    if is_named(&own.names) || is_other() || is_alias() {
        return None;
    }
    Some(("another function", format!("{} rather than {}", outermost.to_owned().name, shown())))
}

/// Whether the function around an address has one of these names. Names that are in another file (dwz) are not read here.
fn is_one_of(answer: &Answer<'_>, names: &[Vec<u8>]) -> bool {
    let Some(outermost) = answer.functions.last().map(FunctionRef::to_owned) else { return false };
    let own = [Some(outermost.name), outermost.linkage_name];
    // Where there is no linkage name, we put scopes in front and parameters behind; parts of functions have an ending.
    names.is_empty()
        || own
            .iter()
            .flatten()
            .any(|own| names.iter().any(|name| contains(own.as_bytes(), without_arguments(name))))
}

/// Compilers spell template arguments in their own way: `box<long int>`.
fn without_arguments(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|byte| *byte == b'<').filter(|_| !name.starts_with(b"operator"));
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

/// All functions around an address; several claim what the linker merged.
fn around(stated: &[Stated], index: usize, address: u64) -> impl Iterator<Item = &Stated> {
    let behind = stated.partition_point(|stated| stated.range.start().get() <= address);
    let first = behind.saturating_sub(MAX_TRIED).min(index);
    let started = stated.get(first..behind).unwrap_or_default().iter();
    started.filter(move |stated| stated.range.contains(Svma::new(address)))
}

fn read(object: &Object<'static>, coverage: &mut Coverage) -> Result<Vec<Stated>> {
    let endian = if object.endian() == Endian::Big { RunTimeEndian::Big } else { RunTimeEndian::Little };
    let section = |id: gimli::SectionId| -> Result<Reader> {
        let data = match object.section(id.name()) {
            Some(section) => object.relocated_section_data(section)?,
            None => Default::default(),
        };
        // Files stay read for the whole run.
        Ok(EndianSlice::new(data.into_owned().leak(), endian))
    };
    let dwarf = Dwarf::load(section)?;
    let mut stated = Vec::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let Ok(unit) = dwarf.unit(header) else { continue };
        // One unit that cannot be read is not all of them.
        let _ = read_unit(&dwarf, &unit, coverage, &mut stated);
    }
    Ok(stated)
}

fn read_unit(
    dwarf: &Dwarf,
    unit: &Unit,
    coverage: &mut Coverage,
    stated: &mut Vec<Stated>,
) -> gimli::Result<()> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() != gimli::DW_TAG_subprogram {
            continue;
        }
        let mut ranges = dwarf.die_ranges(unit, entry)?;
        let mut names = None;
        let mut count = 0;
        while let Some(range) = ranges.next()? {
            if range.begin >= range.end {
                continue;
            }
            count += 1;
            let names = names.get_or_insert_with(|| names_of(dwarf, unit, entry));
            let range = AddrRange::new(Svma::new(range.begin), Svma::new(range.end));
            stated.push(Stated { range, names: names.clone() });
        }
        coverage.functions += usize::from(count > 0);
        coverage.scattered += usize::from(count > 1);
    }
    Ok(())
}

/// What a function and those that it refers to are called.
fn names_of(dwarf: &Dwarf, unit: &Unit, entry: &Entry<'_>) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    let mut next = add_names(dwarf, unit, entry, &mut names);
    for _ in 0..MAX_CHAIN {
        next = match next {
            Some(AttributeValue::UnitRef(offset)) => {
                let Ok(entry) = unit.entry(offset) else { break };
                add_names(dwarf, unit, &entry, &mut names)
            }
            Some(AttributeValue::DebugInfoRef(offset)) => match unit_around(dwarf, offset) {
                Some(unit) => {
                    let Some(offset) = offset.to_unit_offset(&unit.header) else { break };
                    let Ok(entry) = unit.entry(offset) else { break };
                    let next = add_names(dwarf, &unit, &entry, &mut names);
                    // What is in that unit is told from there on.
                    return match next {
                        Some(AttributeValue::UnitRef(offset)) => {
                            let _ =
                                unit.entry(offset).map(|entry| add_names(dwarf, &unit, &entry, &mut names));
                            names
                        }
                        _ => names,
                    };
                }
                None => break,
            },
            _ => break,
        };
    }
    names
}

thread_local! {
    /// Units that others refer to, by where they start.
    static UNITS: std::cell::RefCell<HashMap<usize, std::rc::Rc<Unit>>> = std::cell::RefCell::default();
}

fn unit_around(dwarf: &Dwarf, offset: gimli::DebugInfoOffset) -> Option<std::rc::Rc<Unit>> {
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let start = header.offset().to_debug_info_offset(&header)?;
        if offset.0 >= start.0 && offset.0 < start.0 + header.length_including_self() {
            return UNITS.with_borrow_mut(|known| {
                if let Some(unit) = known.get(&start.0) {
                    return Some(unit.clone());
                }
                let unit = std::rc::Rc::new(dwarf.unit(header).ok()?);
                known.insert(start.0, unit.clone());
                Some(unit)
            });
        }
    }
    None
}

/// Adds the names that an entry has, and tells which one it refers to.
fn add_names(
    dwarf: &Dwarf,
    unit: &Unit,
    entry: &Entry<'_>,
    names: &mut Vec<Vec<u8>>,
) -> Option<AttributeValue<Reader>> {
    for name in [gimli::DW_AT_linkage_name, gimli::DW_AT_MIPS_linkage_name, gimli::DW_AT_name] {
        let text = entry.attr_value(name).and_then(|value| dwarf.attr_string(unit, value).ok());
        names.extend(text.map(|text| text.slice().to_vec()));
    }
    entry.attr_value(gimli::DW_AT_abstract_origin).or_else(|| entry.attr_value(gimli::DW_AT_specification))
}

impl Coverage {
    pub(crate) fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }

    pub(crate) fn print(&self, show: usize) {
        println!(
            "{} functions, {} of them in several ranges; {} ranges, {} of them of code that is not there; {} addresses asked",
            self.functions, self.scattered, self.ranges, self.dead, self.asked
        );
        for (kind, faults) in &self.faults {
            println!("{kind}: {}", faults.len());
            faults.iter().take(show).for_each(|fault| println!("  {fault}"));
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let faults: BTreeMap<_, _> = self.faults.iter().map(|(kind, faults)| (*kind, faults.len())).collect();
        serde_json::json!({
            "functions": self.functions,
            "scattered": self.scattered,
            "ranges": self.ranges,
            "dead": self.dead,
            "asked": self.asked,
            "faults": faults,
        })
        .to_string()
    }
}
