//! Many addresses at a time are answered as one by one.

use backtrail::{Arch, Binary, Svma};
use backtrail_testkit::fixtures;

#[test]
fn in_any_order_and_more_than_one_part() {
    let path = fixtures().join("sample/symbols/Weather.app.dSYM");
    let open = || Binary::open(&path, Arch::from_name("arm64")).unwrap();
    // Shuffled by a step that shares no factor with the count; some are outside of the file.
    let addresses: Vec<Svma> =
        (0..1500).map(|number| Svma::new(0x1_0000_3f00 + (number * 1009 % 1500) * 4)).collect();
    let binary = open();
    let one_by_one: Vec<_> = addresses.iter().map(|address| binary.lookup(*address)).collect();
    assert!(one_by_one.iter().filter(|located| !located.functions.is_empty()).count() > 100);
    assert!(one_by_one.iter().any(backtrail::SymbolInfo::is_unknown));
    assert_eq!(open().lookup_all(&addresses), one_by_one);
    assert_eq!(open().lookup_all(&addresses[..3]), one_by_one[..3]);
    assert_eq!(open().lookup_all(&[]), []);
}
