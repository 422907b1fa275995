//! Any bytes as the files of /proc that capturing reads.
#![no_main]

use backtrail_capture::procfs::{Stat, Status, parse_id, parse_kernel_stack, parse_schedstat, parse_syscall};
use backtrail_capture::remote::Maps;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(stat) = Stat::parse(data) {
        assert!(data.len() >= stat.name.len() / 3);
        let _ = (stat.user_time(), stat.system_time(), stat.state.to_string());
    }
    let status = Status::parse(data);
    assert!(status.users.len() + status.ids_in_namespaces.len() <= data.len());
    let _ = (status.inner_id(), parse_id(data), parse_schedstat(data), parse_syscall(data));
    assert!(parse_kernel_stack(data).iter().all(|name| !name.is_empty()));
    let maps = Maps::parse(data, 1000);
    assert!(maps.all().len() <= 1000);
    for mapping in maps.all() {
        assert!(!mapping.range.is_empty());
        if let Some(file) = maps.file(mapping.range.start()) {
            assert!(file.inode != 0);
        }
        let _ = maps.at(mapping.range.start());
    }
});
