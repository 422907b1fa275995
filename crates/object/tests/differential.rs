//! What LLVM's tools say of the same files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use backtrail_object::{Format, Kind, Limits, Object, Symbol, SymbolTable, slices};
use backtrail_testkit::TempDir;
use common::{llvm, run};

/// Calls `check` for every object, with a path where a tool finds just that one.
fn for_each_object(mut check: impl FnMut(&str, &Path, &Object<'_>)) {
    let directory = TempDir::new("objects");
    let path = directory.path().join("object");
    let mut count = 0;
    for file in common::files() {
        let Ok(slices) = slices(&file.data, &Limits::default()) else { continue };
        for slice in slices.iter().take(40) {
            let name =
                format!("{} {} {}", file.path.display(), slice.arch, slice.member.as_deref().unwrap_or(""));
            let object = slice.parse(&Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
            std::fs::write(&path, slice.data).unwrap();
            check(&name, &path, &object);
            count += 1;
        }
    }
    assert!(count >= 5, "the sample alone has more objects than {count}");
}

fn lines(tool: &str, arguments: &[&str], path: &Path) -> Option<Vec<String>> {
    let output = run(llvm(tool).args(arguments).arg(path))?;
    Some(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
}

#[test]
fn identities_are_those_that_llvm_prints() {
    for_each_object(|name, path, object| {
        let theirs = if object.format() == Format::MachO {
            let Some(lines) = lines("llvm-dwarfdump", &["--uuid"], path) else { return };
            lines.iter().find_map(|line| line.strip_prefix("UUID: ")?.split(' ').next().map(str::to_owned))
        } else {
            let Some(lines) = lines("llvm-readobj", &["--notes"], path) else { return };
            lines.iter().find_map(|line| line.trim().strip_prefix("Build ID: ").map(str::to_owned))
        };
        let ours = object.id().filter(|id| id.kind() != "code hash").map(|id| id.to_string());
        if object.kind() != Kind::Core {
            assert_eq!(ours, theirs, "{name}");
        }
    });
}

#[test]
fn sections_lie_where_llvm_says() {
    for_each_object(|name, path, object| {
        if object.kind() == Kind::Core {
            return; // llvm-objdump makes sections up
        }
        let Some(lines) = lines("llvm-objdump", &["-h", "-w"], path) else { return };
        let rows = lines.iter().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
        for row in rows {
            let fields: Vec<_> = row.split_whitespace().collect();
            // Section 0 has no name.
            let [_, section, size, address, _, ..] = fields[..] else { continue };
            let hex = |text| u64::from_str_radix(text, 16).unwrap();
            let (size, address) = (hex(size), hex(address));
            let ours = object.sections().iter().any(|ours| {
                let stated = ours.address.size().max(ours.file.map_or(0, backtrail_core::AddrRange::size));
                // LLVM cuts sections that are not in the file at the size of the file.
                let is_size = stated == size || (ours.is_no_bits() && stated > size);
                ours.name == section && is_size && (!ours.is_loaded || ours.address.start().get() == address)
            });
            assert!(ours || size == 0, "{name}: {row}");
        }
    });
}

type Row = (u64, String);

fn rows<'a, 'd: 'a>(symbols: impl Iterator<Item = &'a Symbol<'d>>) -> BTreeSet<Row> {
    symbols.map(|symbol| (symbol.address.get(), symbol.name.to_string())).collect()
}

fn assert_same(name: &str, ours: &BTreeSet<Row>, theirs: &BTreeSet<Row>) {
    let more: Vec<_> = ours.difference(theirs).take(3).collect();
    let less: Vec<_> = theirs.difference(ours).take(3).collect();
    assert!(more.is_empty() && less.is_empty(), "{name}: only we have {more:x?}, only they have {less:x?}");
}

#[test]
fn mach_o_symbols_are_those_of_nm() {
    for_each_object(|name, path, object| {
        if object.format() != Format::MachO {
            return;
        }
        let Some(lines) = lines("llvm-nm", &["--defined-only", "--format=bsd"], path) else { return };
        let row = |line: &String| {
            let (value, rest) = line.split_once(' ')?;
            let (kind, name) = rest.split_once(' ')?;
            let is_address = !matches!(kind, "a" | "A" | "C" | "I" | "U" | "-");
            (is_address && !name.starts_with("radr://")).then_some(())?;
            Some((u64::from_str_radix(value, 16).ok()?, name.to_owned()))
        };
        let theirs = lines.iter().filter_map(row).collect();
        let symbols = object.symbols().unwrap();
        let ours = rows(symbols.iter().filter(|symbol| symbol.table == SymbolTable::Nlist));
        assert_same(name, &ours, &theirs);
    });
}

#[test]
fn exports_are_those_of_objdump() {
    for_each_object(|name, path, object| {
        if object.format() != Format::MachO {
            return;
        }
        let Some(lines) = lines("llvm-objdump", &["--macho", "--exports-trie"], path) else { return };
        let row = |line: &String| {
            let (address, name) = line.strip_prefix("0x")?.split_once("  ")?;
            let name = name.split(" [").next()?.trim();
            let thumb = u64::from(object.arch().family() == backtrail_core::Family::Arm);
            Some((u64::from_str_radix(address, 16).ok()? & !thumb, name.to_owned()))
        };
        let theirs: BTreeSet<_> =
            lines.iter().filter(|line| !line.contains("[absolute]")).filter_map(row).collect();
        let ours = rows(object.symbols().unwrap().iter());
        let missing: Vec<_> = theirs.difference(&ours).take(3).collect();
        assert!(missing.is_empty(), "{name}: {missing:x?}");
    });
}

#[test]
fn elf_symbols_are_those_of_readelf() {
    for_each_object(|name, path, object| {
        if object.format() != Format::Elf {
            return;
        }
        // There symbols name descriptors of functions, and we say where the functions themselves are.
        if object.arch() == backtrail_core::Arch::Ppc64 {
            return;
        }
        let Some(lines) = lines("llvm-readelf", &["--symbols", "--dyn-syms", "--wide"], path) else { return };
        let is_arm = object.arch().family() == backtrail_core::Family::Arm;
        let row = |line: &String| {
            let mut fields = line.split_whitespace();
            fields.next()?.strip_suffix(':')?.parse::<u32>().ok()?;
            let value = u64::from_str_radix(fields.next()?, 16).ok()?;
            let (_, kind, _, _, section) =
                (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            let name = fields.collect::<Vec<_>>().join(" ");
            let name = name.split('@').next().filter(|name| !name.is_empty())?.to_owned();
            let is_left_out = matches!(kind, "FILE" | "SECTION" | "TLS" | "COMMON");
            let is_nowhere = matches!(section, "UND" | "ABS" | "COM");
            let stem = name.trim_start_matches("__dl_").split('.').next().unwrap_or_default();
            let is_mark = matches!(stem, "$a" | "$t" | "$x" | "$d");
            let thumb = u64::from(is_arm && matches!(kind, "FUNC" | "IFUNC"));
            (!is_left_out && !is_nowhere && !is_mark).then_some((value & !thumb, name))
        };
        let theirs = lines.iter().filter_map(row).collect();
        let ours = rows(object.symbols().unwrap_or_else(|error| panic!("{name}: {error}")).iter());
        assert_same(name, &ours, &theirs);
    });
}

fn knows_function_starts(path: &Path) -> bool {
    let output = llvm("llvm-objdump").args(["--macho", "--function-starts=addrs"]).arg(path).output();
    output.is_ok_and(|output| !String::from_utf8_lossy(&output.stderr).contains("unknown argument"))
}

#[test]
fn function_starts_are_those_of_objdump() {
    for_each_object(|name, path, object| {
        let ours = object.function_starts().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(ours.is_sorted(), "{name}");
        if object.format() == Format::Elf {
            let in_code = |start: &&backtrail_core::Svma| {
                object.sections().iter().any(|section| section.is_code && section.address.contains(**start))
                    || object
                        .segments()
                        .iter()
                        .any(|segment| segment.executable && segment.address.contains(**start))
            };
            assert_eq!(ours.iter().filter(in_code).count(), ours.len(), "{name}");
            return;
        }
        // Addresses alone are printed since LLVM 15.
        if !knows_function_starts(path) {
            return;
        }
        let Some(lines) = lines("llvm-objdump", &["--macho", "--function-starts=addrs"], path) else {
            return;
        };
        let thumb = u64::from(object.arch().family() == backtrail_core::Family::Arm);
        let address = |line: &String| u64::from_str_radix(line, 16).ok().map(|address| address & !thumb);
        let theirs: Vec<_> = lines.iter().filter_map(address).collect();
        assert_eq!(ours.iter().map(|start| start.get()).collect::<Vec<_>>(), theirs, "{name}");
    });
}

#[test]
fn compressed_sections_give_what_objcopy_gives() {
    for_each_object(|name, path, object| {
        let compressed = object.sections().iter().filter(|section| section.is_compressed);
        for section in compressed {
            let ours = object.section_data(section).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(object.section_size(section).unwrap(), ours.len() as u64);
            let plain = path.with_extension("plain");
            let arguments = ["--decompress-debug-sections", path.to_str().unwrap(), plain.to_str().unwrap()];
            if run(llvm("llvm-objcopy").args(arguments)).is_none() {
                return;
            }
            let data = std::fs::read(&plain).unwrap();
            let theirs = Object::parse(&data).unwrap();
            let same = theirs.section(&section.name.replace(".zdebug", ".debug")).expect("the same section");
            assert!(
                !same.is_compressed && theirs.section_data(same).unwrap() == ours,
                "{name} {}",
                section.name
            );
        }
    });
}
