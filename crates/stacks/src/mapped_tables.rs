//! The tables of an image of Apple's systems as it is mapped in a process: most of those have no file.

use backtrail_capture::mach::{MappedImage, MappedSection};
use backtrail_core::{Arch, Family, ReadMemory, Svma};
use backtrail_store::{UnwindSection, UnwindTables};
use backtrail_unwind::Sections;

/// Larger sections are not copied: the largest libraries of iOS have some 50 MB of code.
const MOST: u64 = 512 << 20;

/// Copies what the image's `__TEXT` has of tables; its code only where tables leave stack sizes to an instruction
/// (`UNWIND_X86_64_MODE_STACK_IND` of Apple's `compact_unwind_encoding.h`).
pub(crate) fn read<M: ReadMemory + ?Sized>(
    memory: &M,
    image: &MappedImage,
    arch: Arch,
) -> UnwindTables<'static> {
    let head =
        Sections { arch: Some(arch), is_mach_o: true, image_base: image.text.start(), ..Sections::default() };
    let (mut tables, mut problems) = (Vec::new(), Vec::new());
    for section in &image.sections {
        let Some(table) = table(section, arch) else { continue };
        match copied(memory, image, section) {
            Some((start, bytes)) => tables.push((table, start, bytes)),
            None => problems.push(format!("{} cannot be read from memory", section.name)),
        }
    }
    UnwindTables::of_copies(head, tables, problems)
}

fn table(section: &MappedSection, arch: Arch) -> Option<UnwindSection> {
    let is_code = section.name == "__text" && arch.family() == Family::X86_64;
    UnwindSection::by_name(&section.name).or_else(|| is_code.then_some(UnwindSection::Text))
}

fn copied<M: ReadMemory + ?Sized>(
    memory: &M,
    image: &MappedImage,
    section: &MappedSection,
) -> Option<(Svma, Vec<u8>)> {
    let size = usize::try_from(section.range.size()).ok().filter(|size| *size as u64 <= MOST)?;
    let at = image.bias.to_avma(section.range.start())?;
    let mut bytes = vec![0; size];
    memory.read(at, &mut bytes).ok()?;
    Some((section.range.start(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind_image::UnwindImage;
    use backtrail_capture::mach::read_image;
    use backtrail_core::{Avma, MemorySlice};
    use backtrail_object::{Limits, Object};
    use backtrail_store::{FileData, OpenFile};

    /// A library as dyld would map it: its `__TEXT`, at another address than the file states.
    fn check(name: &str) {
        let path = backtrail_testkit::fixtures().join("unwind").join(name);
        let file = FileData::map(&path).unwrap();
        let object = Object::parse_with(&file, &Limits::default()).unwrap();
        let text = object.segments().iter().find(|segment| segment.name == "__TEXT").unwrap();
        let mapped = object.bytes_at(text.address.start(), text.address.size()).unwrap();
        let loaded = Avma::new(0x1_7654_0000);
        let memory = MemorySlice::new(loaded, mapped);
        let image = read_image(&memory, loaded).unwrap();
        assert_eq!(image.id, object.id());

        let tables = read(&memory, &image, object.arch());
        assert_eq!(tables.problems(), [""; 0]);
        let of_memory = UnwindImage::from_tables(tables).unwrap().module().compile();
        let of_file =
            UnwindImage::open([&OpenFile::new(name, &path, file.clone())]).unwrap().module().compile();
        let all =
            |rules: &backtrail_unwind::Rules| rules.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>();
        assert!(!all(&of_file).is_empty());
        assert_eq!(all(&of_memory), all(&of_file));

        // Memory that ends within a table costs that table and no other.
        let of_table = image.sections.iter().find(|section| section.name == "__unwind_info").unwrap().range;
        let end = of_table.start().offset_from(image.text.start()).unwrap() + 4;
        let cut = MemorySlice::new(loaded, &mapped[..usize::try_from(end).unwrap()]);
        let problems = read(&cut, &image, object.arch()).problems().join(" ");
        assert!(
            problems.contains("__unwind_info cannot be read") && !problems.contains("__text"),
            "{problems}"
        );
    }

    #[test]
    fn mapped_images_have_the_rules_of_their_files() {
        check("frames-arm64.dylib");
        check("frames-x86_64.dylib");
    }
}
