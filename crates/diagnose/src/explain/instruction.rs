//! The bytes at the program counter, where a report has them, and what instruction of x86 they begin.

use backtrail_core::base64;
use backtrail_model::Report;

/// What an instruction of x86 that was refused is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Instruction {
    /// `ud2`, or another one that compilers put where the program must not go on.
    Trap,
    /// One of AVX or AVX-512, by its VEX or EVEX prefix.
    Avx,
    Other,
}

/// What stands at the program counter.
pub(super) fn at_pc(report: &Report) -> Option<Instruction> {
    let bytes = from_section(report).or_else(|| from_member(report))?;
    Some(match bytes.as_slice() {
        [0x0f, 0x0b, ..] | [0x0f, 0xb9, ..] | [0x0f, 0xff, ..] => Instruction::Trap,
        // Only 64-bit code has no other use for these bytes.
        [0xc4 | 0xc5 | 0x62, _, ..] if is_64_bit(report) => Instruction::Avx,
        _ => Instruction::Other,
    })
}

fn is_64_bit(report: &Report) -> bool {
    report.process.arch.is_some_and(|arch| arch.family() == backtrail_core::Family::X86_64)
}

/// More is never of use: no instruction of x86 is longer.
const MAX_BYTES: usize = 15;

/// `Thread 0 instruction stream:` with rows of bytes; a bracket stands around the one at the program counter:
/// `c3 66 90 [0f]0b 66 2e 0f 1f  <==`.
fn from_section(report: &Report) -> Option<Vec<u8>> {
    let is_stream = |title: &str| title.starts_with("Thread ") && title.contains("instruction stream");
    let section = report.sections.iter().find(|section| is_stream(&section.title))?;
    let (_, rest) = section.text.split_once('[')?;
    let rest = rest.get(..rest.find("<==").unwrap_or(rest.len()))?;
    let words = rest.split([' ', ']', '-', '\t', '\n']).filter(|word| !word.is_empty());
    let bytes = words.map_while(|word| u8::from_str_radix(word, 16).ok().filter(|_| word.len() == 2));
    let bytes: Vec<u8> = bytes.take(MAX_BYTES).collect();
    (!bytes.is_empty()).then_some(bytes)
}

/// `"instructionByteStream": {"atPC": "Dwtm…"}`, in base64.
fn from_member(report: &Report) -> Option<Vec<u8>> {
    let key = "instructionByteStream.atPC";
    let field = report.fields.iter().find(|field| field.key == key);
    let section = || report.sections.iter().find(|section| section.title == key);
    let text = field.map(|field| field.value.as_str()).or_else(|| Some(section()?.text.as_str()))?;
    let bytes = base64(text.get(..text.len().min(4 * MAX_BYTES))?.bytes());
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::Arch;
    use backtrail_model::{Field, Section};

    fn report() -> Report {
        let mut report = Report::default();
        report.process.arch = Some(Arch::X86_64);
        report
    }

    fn stream(text: &str) -> Option<Instruction> {
        let section = Section { title: "Thread 0 instruction stream".to_owned(), text: text.to_owned() };
        at_pc(&Report { sections: vec![section], ..report() })
    }

    #[test]
    fn the_byte_in_brackets_is_the_program_counters() {
        assert_eq!(
            stream("  c3 66 90 0f-1f 40 00 55  .f...\n [0f]0b 66 2e 0f 1f 84 00-00  ..f.\t<=="),
            Some(Instruction::Trap)
        );
        assert_eq!(stream("  90 90\n [c5]f8 77 c3 <=="), Some(Instruction::Avx));
        assert_eq!(stream(" [48]8b 07 <=="), Some(Instruction::Other));
        assert_eq!(stream("nothing"), None);
        assert_eq!(stream("[zz]"), None);
    }

    #[test]
    fn the_member_of_newer_reports_is_base64() {
        let with = |value: &str| {
            let field = Field { key: "instructionByteStream.atPC".to_owned(), value: value.to_owned() };
            at_pc(&Report { fields: vec![field], ..report() })
        };
        assert_eq!(base64("Dwtm".bytes()), [0x0f, 0x0b, 0x66]);
        assert_eq!(with("DwtmLg=="), Some(Instruction::Trap));
        assert_eq!(with("xfh3ww=="), Some(Instruction::Avx));
        assert_eq!(with("!"), None);
    }
}
