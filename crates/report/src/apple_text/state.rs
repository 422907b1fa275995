//! Rows of a thread's state: `rax: 0x…  rbx: 0x…`, up to four a row.

use super::words::hex_value;
use backtrail_model::Register;

/// Reads a row. `None` where it is none: it does not begin with a name and a value. What follows a value and is no
/// further name (`esr: 0x92000046 (Data Abort) byte write`) becomes that register's note.
pub(crate) fn read(text: &str) -> Option<Vec<Register>> {
    let mut registers: Vec<Register> = Vec::new();
    let mut note = String::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let value = words.peek().copied();
        match register(word, value) {
            Some(register) => {
                close_note(&mut registers, &mut note);
                registers.push(register);
                words.next();
            }
            None if registers.is_empty() => return None,
            None => {
                let blank = if note.is_empty() { "" } else { " " };
                note.push_str(blank);
                note.push_str(word);
            }
        }
    }
    close_note(&mut registers, &mut note);
    (!registers.is_empty()).then_some(registers)
}

fn close_note(registers: &mut [Register], note: &mut String) {
    if let Some(register) = registers.last_mut().filter(|_| !note.is_empty()) {
        register.note = Some(std::mem::take(note));
    }
}

fn register(word: &str, value: Option<&str>) -> Option<Register> {
    let name = word.strip_suffix(':')?;
    let is_name = (1..=8).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let value = hex_value(value.filter(|_| is_name)?)?;
    Some(Register { name: name.to_owned(), value, note: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_and_values(text: &str) -> Vec<(String, u64)> {
        read(text).unwrap_or_default().into_iter().map(|r| (r.name, r.value)).collect()
    }

    #[test]
    fn rows_of_all_architectures() {
        let row = "   r11: 0x00000000ffffffff    rip: 0x00000001090a0132 rflags: 0x0000000000010206 ";
        let expected = [
            ("r11".to_owned(), 0xffff_ffff),
            ("rip".to_owned(), 0x1_090a_0132),
            ("rflags".to_owned(), 0x10206),
        ];
        assert_eq!(names_and_values(row), expected);
        assert_eq!(names_and_values("  cpsr: 0x20000030"), [("cpsr".to_owned(), 0x2000_0030)]);
    }

    #[test]
    fn words_behind_a_value_are_its_note() {
        let registers = read("   far: 0x0000000102e1c050  esr: 0x56000080  Address size fault").unwrap();
        assert_eq!(registers[1].note.as_deref(), Some("Address size fault"));
        assert_eq!(registers[0].note, None);
        let registers = read("  rip: 0x10 <unavailable>  rfl: 0x2").unwrap();
        assert_eq!(registers[0].note.as_deref(), Some("<unavailable>"));
        assert_eq!(registers.len(), 2);
    }

    #[test]
    fn what_is_no_row() {
        for text in [
            "",
            "Logical CPU: 2",
            "Error Code:      0x00000004",
            "rip: <unavailable>",
            "x0: 0x11112222333344445",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
