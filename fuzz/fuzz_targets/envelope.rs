//! Sentry's envelopes, whole or damaged: items lie inside of the input, in its order, and are no more than was said.
#![no_main]

use backtrail_server::envelope::Envelope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(envelope) = Envelope::parse(data, 16) else { return };
    assert!(envelope.items.len() <= 16);
    let total: usize = envelope.items.iter().map(|item| item.bytes.len()).sum();
    assert!(total <= data.len());
    if let Some(problem) = envelope.problem {
        assert!(problem.offset <= data.len());
    }
});
