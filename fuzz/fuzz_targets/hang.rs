//! The file that a hang leaves when its process is killed.
#![no_main]

use backtrail::hang::Hang;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(hang) = Hang::read(data) else { return };
    for (position, node) in hang.nodes().iter().enumerate() {
        assert!(node.parent.is_none_or(|parent| parent < position));
        assert!(node.samples >= node.own_samples && node.weight >= node.own_weight);
        assert!(node.frame.image.is_none_or(|image| image < hang.process.images.len()));
    }
    let own: u64 = hang.nodes().iter().map(|node| node.own_samples).sum();
    assert_eq!(own, hang.samples);
    if let Some(heaviest) = hang.heaviest() {
        assert!(hang.stack(heaviest).count() <= hang.nodes().len());
    }
    // Every form can be printed.
    let mut out = Vec::new();
    let _ = hang.write_text(&mut out);
    let _ = backtrail::json::write_hang(&mut out, &hang);
    let _ = hang.write_collapsed(&mut out);
});
