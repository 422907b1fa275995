use super::*;
use backtrail_core::{Family, ReadMemory as _};

const MAPS: &[u8] = b"1000-2000 r-xp 0 00:00 0 a.so\n";

fn read_regs(text: &str, arch: Option<Arch>) -> Result<Snapshot<'static>, Error> {
    let parts = Parts { registers: text.to_owned().leak().as_bytes(), maps: MAPS, memory: Vec::new(), arch };
    read(parts, &Limits::default())
}

#[test]
fn register_names_tell_the_architecture() {
    for (text, arch) in [
        ("rax: 1\nrip: 2\n", Arch::X86_64),
        ("eip: 2\nesp: 3\n", Arch::X86),
        ("r0: 1\nip: 7\npc: 2\nlr: 3\n", Arch::Arm),
        ("x0: 1\npc: 2\npst: 60000000\n", Arch::Arm64),
        ("pc: 60a9fdf550\nsp: 1\nlr: 2\nx29: 3\n", Arch::Arm64),
        ("pc: f1f6dc49\nsp: d8fe6930\n", Arch::Arm),
        ("pc: 7542cc0000\nsp: 1\n", Arch::Arm64),
    ] {
        let snapshot = read_regs(text, None).unwrap();
        assert_eq!((snapshot.arch, snapshot.notes.len()), (arch, 0), "{text} {:?}", snapshot.notes);
    }
    assert_eq!(read_regs("pc: 1000\nsp: 1\n", Some(Arch::Arm64)).unwrap().arch, Arch::Arm64);
}

#[test]
fn arm_ip_is_a_register_and_no_program_counter() {
    let snapshot = read_regs("r0: 1\nip: 7\npc: 2\n", None).unwrap();
    let registers = snapshot.threads[0].registers;
    assert_eq!(registers.get(Family::Arm.register("r12").unwrap()), Some(7));
    assert_eq!(registers.pc(), Some(Avma::new(2)));
    assert_eq!(registers.sp(), None);
}

#[test]
fn what_cannot_be_read_is_said() {
    let message = |text: &str| read_regs(text, None).unwrap_err().to_string();
    assert!(message("").contains("expected lines of `name: value`"));
    assert!(message("r0: 1\n").contains("program counter"));
    assert!(message("pc: 1\nra: 1\ns0: 4\n").contains("register ra"));
    let parts = Parts { registers: b"pc: 1\n", maps: b"what\n", ..Parts::default() };
    assert!(read(parts, &Limits::default()).unwrap_err().to_string().starts_with("maps.txt: expected"));
    let odd = read_regs("pc: 1\nsp: zz\nwhat\nfoo: 1\n", None).unwrap();
    assert_eq!(odd.notes.len(), 3, "{:?}", odd.notes);
}

#[test]
fn memory_begins_with_its_address() {
    let piece = |start: u64, bytes: &[u8]| [&start.to_le_bytes(), bytes].concat();
    let parts = Parts {
        registers: b"rip: 1\n",
        maps: MAPS,
        memory: vec![
            ("stack1.data".to_owned(), piece(0x5008, b"ijkl").into()),
            ("stack0.data".to_owned(), piece(0x5000, b"abcdefgh").into()),
            ("cut.data".to_owned(), Cow::Borrowed(b"abc")),
        ],
        arch: None,
    };
    let snapshot = read(parts, &Limits::default()).unwrap();
    assert_eq!(snapshot.memory.read_u32(Avma::new(0x5006)), Ok(u32::from_le_bytes(*b"ghij")));
    assert_eq!(snapshot.notes, ["cut.data: expected an address in 8 bytes, found 3 bytes"]);
}
