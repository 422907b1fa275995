//! What iOS up to 6 wrote of a memory event, as text: a header, then a table of processes.
//!
//! `name <identity> resident pages [recent maximum] [reason] (state)`. The columns changed with the systems, so of each row
//! only what is sure goes into the model; the table stays a section as a whole.

use crate::Limits;
use crate::apple_text::{Blamed, KeyValue, set_header};
use crate::notes::Notes;
use backtrail_model::{Field, Process, Report, Section, Source};

/// The line by which it is known.
pub(crate) const JETSAM: &str = "Largest process:";

/// Bytes of a page; the devices of that time had no other.
const PAGE: u64 = 4096;

pub(crate) fn read(text: &str, limits: &Limits) -> Report {
    let mut report = Report {
        source: Source::AppleJetsam,
        event: Some("jetsam (memory) event".to_owned()),
        ..Report::default()
    };
    let mut notes = Notes::new(limits.max_notes);
    let mut table = String::new();
    let mut in_table = false;
    for line in text.lines() {
        let trimmed = line.trim();
        in_table |= trimmed == "Processes" || trimmed.starts_with("Processes ");
        let key_value =
            KeyValue::read(trimmed).filter(|_| !in_table && report.fields.len() < limits.max_items);
        if let Some(line) = key_value {
            set_header(&mut report, &mut Blamed::default(), line);
        } else if !trimmed.is_empty() {
            table.push_str(line.trim_end());
            table.push('\n');
        }
        if in_table && let Some(process) = row(trimmed) {
            if report.processes.len() < limits.max_threads {
                report.processes.push(process);
            } else {
                notes.add(|| "more processes than the limit allows; the rest is kept as text".to_owned());
            }
        }
    }
    if !table.is_empty() {
        report.sections.push(Section { title: "Processes".to_owned(), text: table });
    }
    report.notes = notes.finish();
    crate::memory::choose_main(&mut report);
    report
}

/// One row of the table.
fn row(line: &str) -> Option<Process> {
    let (name, rest) = line.split_once('<')?;
    let (id, rest) = rest.split_once('>')?;
    if !id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return None;
    }
    let mut process = Process { name: Some(name.trim().to_owned()), ..Process::default() };
    process.fields.push(Field { key: "uuid".to_owned(), value: id.to_owned() });
    let mut numbers = rest.split_whitespace().map_while(|word| word.parse::<u64>().ok());
    process.memory = numbers.next().and_then(|pages| pages.checked_mul(PAGE));
    if let Some(recent) = numbers.next() {
        process.fields.push(Field { key: "recent_max".to_owned(), value: recent.to_string() });
    }
    let reason =
        rest.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(reason, _)| reason.trim());
    process.kill_reason = reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
    let states: Vec<&str> =
        rest.split('(').skip(1).filter_map(|part| Some(part.split_once(')')?.0)).map(str::trim).collect();
    if states.contains(&"jettisoned") && process.kill_reason.is_none() {
        process.kill_reason = Some("jettisoned".to_owned());
    }
    process.role = (!states.is_empty()).then(|| states.join(", "));
    Some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_two_ages() {
        let text = "Incident Identifier: 0AE8E44A\nHardware Model:      iPhone3,1\nOS Version:          iPhone OS 5.1 (9B176)\n\
            Free pages:        937\nLargest process:   Shop\n\nProcesses\n     Name                    <UUID>      rpages       recent_max       [reason]          (state)\n\n\
            \x20 Shop <8ec2> 40000 41000 [per-process-limit] (frontmost) (resume)\n  geod <9ec2> 200 300 [vm] (daemon) (idle)\n\
            \x20 Old <7ec2> 5 (jettisoned) (active)\n";
        let report = read(text, &Limits::default());
        assert_eq!(report.device.as_deref(), Some("iPhone3,1"));
        let main = &report.process;
        assert_eq!((main.name.as_deref(), main.memory), (Some("Shop"), Some(40_000 * 4096)));
        assert_eq!(main.kill_reason.as_deref(), Some("per-process-limit"));
        assert_eq!(main.role.as_deref(), Some("frontmost, resume"));
        let others: Vec<_> =
            report.processes.iter().map(|p| (p.name.as_deref(), p.kill_reason.as_deref())).collect();
        assert_eq!(others, [(Some("geod"), Some("vm")), (Some("Old"), Some("jettisoned"))]);
    }
}
