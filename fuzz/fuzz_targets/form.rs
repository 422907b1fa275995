//! Forms of crash reporters, whole or damaged, and such as stand inside of a field: fields are no more than was said, and no larger
//! than the input.
#![no_main]

use backtrail_server::form::{fields, nested};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let read = fields("multipart/form-data; boundary=XX", data.to_vec(), 16).ok();
    for fields in read.into_iter().chain(nested(data, 16)) {
        assert!(fields.len() <= 16);
        assert!(fields.iter().map(|field| field.bytes.len()).sum::<usize>() <= data.len());
    }
});
