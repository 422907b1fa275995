//! Tables of processes and their memory.

use backtrail_model::Report;
use std::cmp::Reverse;

/// Takes the process that a memory event is about out of the others: of those that were killed, else of all, the largest.
pub(crate) fn choose_main(report: &mut Report) {
    let order = |position: &usize| {
        report.processes.get(*position).map(|process| {
            (process.kill_reason.is_some(), process.memory.unwrap_or_default(), Reverse(*position))
        })
    };
    let Some(position) = (0..report.processes.len()).max_by_key(order) else { return };
    let main = report.processes.remove(position);
    report.process = main;
}
