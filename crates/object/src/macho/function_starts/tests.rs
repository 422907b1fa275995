use backtrail_testkit::{Assembler, MachO, MachSegment};

use crate::Object;

fn starts(is_arm: bool, table: Vec<u8>) -> crate::error::Result<Vec<u64>> {
    let segment =
        MachSegment { name: "__TEXT", address: 0x4000, size: 0x9000, protection: 5, sections: vec![] };
    let cpu = if is_arm { 12 } else { 7 };
    let file =
        MachO { is_64: false, cpu, segments: vec![segment], function_starts: table, ..MachO::default() };
    let data = file.build();
    Ok(Object::parse(&data)?.function_starts()?.into_iter().map(backtrail_core::Svma::get).collect())
}

#[test]
fn distances_add_up_from_the_base_until_zero() {
    let table = Assembler::new().uleb128(0x1000).uleb128(0x200).uleb128(1).uleb128(0).uleb128(8).finish();
    assert_eq!(starts(false, table.clone()).unwrap(), [0x5000, 0x5200, 0x5201]);
    assert_eq!(starts(true, table).unwrap(), [0x5000, 0x5200], "the Thumb bit is no address");
    assert_eq!(starts(false, vec![]).unwrap(), [0; 0]);
}

#[test]
fn what_does_not_fit_ends_the_table() {
    let table = Assembler::new().uleb128(0x10).uleb128(u64::MAX - 8).uleb128(0x10).finish();
    assert_eq!(starts(false, table).unwrap(), [0x4010]);
    assert_eq!(starts(false, vec![0x10, 0x80]).unwrap(), [0x4010]);
}
