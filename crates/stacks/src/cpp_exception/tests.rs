use super::*;
use backtrail_core::Unreadable;

/// Memory of words; what was not written reads as zero in [`SPACE`], and cannot be read elsewhere.
#[derive(Default)]
struct Words(std::collections::BTreeMap<u64, u64>);

const SPACE: std::ops::Range<u64> = 0x10_000..0x40_000;
const THREAD_POINTER: u64 = 0x20_000;

impl Words {
    fn set(&mut self, at: u64, words: &[u64]) {
        self.0.extend((at..).step_by(8).zip(words.iter().copied()));
    }

    fn text(&mut self, at: u64, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(bytes.len() / 8 * 8 + 8, 0);
        let words: Vec<_> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        self.set(at, &words);
    }

    /// A type at `at`: its class of the ABI, its name, and what follows.
    fn type_info(&mut self, at: u64, class: &str, name: &str, more: &[u64]) {
        let (table, own, class_name, own_name) = (at + 0x200, at + 0x300, at + 0x400, at + 0x500);
        self.set(at, &[table, own_name]);
        self.set(at + 16, more);
        self.set(table - 8, &[own]);
        self.set(own + 8, &[class_name]);
        self.text(class_name, class);
        self.text(own_name, name);
    }

    /// A thread that handles an exception of this type, as `layout` describes it.
    fn handled(&mut self, layout: &Layout, type_info: u64, object: &[u64]) {
        let description: u64 = 0x30_000;
        self.set(THREAD_POINTER - 0x40, &[description]);
        self.set(description + layout.type_info, &[type_info]);
        self.set(description + layout.type_info + TO_UNWIND_HEADER, &[layout.class]);
        self.set(description + layout.type_info + TO_UNWIND_HEADER + UNWIND_HEADER, object);
    }

    fn current(&self) -> Option<(String, Option<String>)> {
        current(self, Avma::new(THREAD_POINTER)).map(|found| (found.type_name, found.what))
    }
}

impl ReadMemory for Words {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        for (offset, byte) in (0..).zip(buf) {
            let at = address.get().wrapping_add(offset);
            if !SPACE.contains(&at) {
                return Err(Unreadable { address });
            }
            let word = self.0.get(&(at & !7)).copied().unwrap_or_default();
            *byte = word.to_le_bytes()[usize::try_from(at & 7).unwrap()];
        }
        Ok(())
    }
}

const SINGLE: &str = "N10__cxxabiv120__si_class_type_infoE";
const MULTIPLE: &str = "N10__cxxabiv121__vmi_class_type_infoE";
const PLAIN: &str = "N10__cxxabiv117__class_type_infoE";

#[test]
fn both_runtimes_exceptions_are_found_with_their_words() {
    for layout in &LAYOUTS {
        let mut memory = Words::default();
        memory.type_info(0x12_000, PLAIN, "St13runtime_error", &[]);
        memory.type_info(0x14_000, SINGLE, "*N4shop4LostE", &[0x12_000]);
        memory.text(0x16_000, "order 4711");
        memory.handled(layout, 0x14_000, &[0x18_000, 0x16_000]);
        assert_eq!(memory.current(), Some(("N4shop4LostE".to_owned(), Some("order 4711".to_owned()))));
    }
}

#[test]
fn a_virtual_base_lies_where_the_objects_table_says() {
    let mut memory = Words::default();
    memory.type_info(0x12_000, PLAIN, "St11logic_error", &[]);
    // Flags and a count of one; the base, its offset in the table (-24), virtual.
    let offset = u64::from_le_bytes((-24_i64 << 8 | 1).to_le_bytes());
    memory.type_info(0x14_000, MULTIPLE, "3Own", &[1 << 32, 0x12_000, offset]);
    memory.text(0x16_000, "words");
    memory.set(0x18_000 - 24, &[16]);
    memory.handled(&LAYOUTS[0], 0x14_000, &[0x18_000, 0, 0x18_100, 0x16_000]);
    assert_eq!(memory.current(), Some(("3Own".to_owned(), Some("words".to_owned()))));
}

#[test]
fn types_that_lead_to_themselves_end() {
    let mut memory = Words::default();
    let own = 0x14_000;
    let bases: Vec<_> =
        std::iter::once(20 << 32).chain(std::iter::repeat_n([own, 0], 20).flatten()).collect();
    memory.type_info(own, MULTIPLE, "4Loop", &bases);
    memory.handled(&LAYOUTS[0], own, &[0x18_000]);
    assert_eq!(memory.current(), Some(("4Loop".to_owned(), None)));
    memory.type_info(own, SINGLE, "4Loop", &[own]);
    assert_eq!(memory.current(), Some(("4Loop".to_owned(), None)));
}

#[test]
fn what_is_no_exception_in_every_part_is_none() {
    let mut memory = Words::default();
    assert_eq!(memory.current(), None);
    memory.type_info(0x14_000, PLAIN, "3Own", &[]);
    memory.handled(&LAYOUTS[1], 0x14_000, &[]);
    assert!(memory.current().is_some());
    // The type's type is of another class.
    memory.text(0x14_400, "St13runtime_error");
    assert_eq!(memory.current(), None);
    assert_eq!(current(&Words::default(), Avma::new(u64::MAX)), None);
    assert_eq!(current(&Words::default(), Avma::new(8)), None);
}
