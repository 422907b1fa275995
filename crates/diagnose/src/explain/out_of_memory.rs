//! Whom Linux's kernel, systemd-oomd or a container's platform killed for want of memory.
//!
//! Sources: Linux `mm/oom_kill.c` (`oom_badness`, `dump_tasks`) and `Documentation/admin-guide/cgroup-v2.rst`;
//! systemd-oomd.service(8); Kubernetes, "Assign Memory Resources to Containers and Pods".

use super::draft::Draft;
use super::facts::{Facts, field};
use super::words::listed;
use backtrail_model::{Report, Source};

/// A process of the table that the kernel prints.
struct Task<'r> {
    pid: u64,
    /// In pages.
    rss: u64,
    adj: i64,
    name: &'r str,
}

impl<'r> Task<'r> {
    fn read(row: &'r str) -> Option<Self> {
        let (numbers, name) = row.split_once(" name=")?;
        let of = |key: &str| {
            let value = numbers.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
            value.and_then(|value| value.parse::<i64>().ok())
        };
        let positive = |key: &str| of(key).and_then(|value| u64::try_from(value).ok());
        Some(Self { pid: positive("pid")?, rss: positive("rss")?, adj: of("adj")?, name })
    }
}

/// `1234kB`, or a number in kB.
fn kilobytes(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// A size in the unit that reads best.
fn size(kilobytes: u64) -> String {
    match kilobytes {
        0..10_240 => format!("{kilobytes} kB"),
        10_240..10_485_760 => format!("{} MB", kilobytes / 1024),
        _ => format!("{:.1} GB", kilobytes as f64 / 1_048_576.0),
    }
}

/// Somebody was killed for want of memory.
pub(super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    let exception = facts.exception();
    if report.source != Source::KernelLog || exception.kind.as_deref() != Some("out of memory") {
        return false;
    }
    let name = report.process.name.as_deref().filter(|name| !name.is_empty());
    let who = match (name, report.process.pid) {
        (Some(name), Some(pid)) => format!("{name} ({pid})"),
        (Some(name), None) => name.to_owned(),
        _ => "A process".to_owned(),
    };
    let short = name.map(|name| format!(": {name}")).unwrap_or_default();
    let scope = exception.subtype.as_deref().unwrap_or_default();
    let limits = field(&report.fields, "memory").and_then(|figures| figures.split_once("limit "));
    let limit = limits.and_then(|(_, rest)| kilobytes(rest.split(',').next()?));
    let of_limit = limit.map(|limit| format!(" of {}", size(limit))).unwrap_or_default();
    match scope {
        "cgroup" => draft.lead(
            format!("Killed at the memory limit{of_limit} of its cgroup{short}"),
            format!("{who} was killed by the kernel, since its cgroup (a container, a service) had reached its limit{of_limit}. The machine may have had memory left."),
        ),
        "machine" => draft.lead(
            format!("Killed since the machine was out of memory{short}"),
            format!("{who} was killed by the kernel, since the whole machine had no memory left."),
        ),
        "oomd" => draft.lead(
            format!("Killed by systemd-oomd for want of memory{short}"),
            format!("All processes of {who} were killed by systemd-oomd, before the kernel itself would have: its limits on memory pressure or swap were passed."),
        ),
        "container" => draft.lead(
            format!("Container killed at its memory limit (OOMKilled){short}"),
            "The container's first process was killed by the kernel's OOM killer. The platform does not say whether at the container's own limit or since the node was out of memory; the former is usual.",
        ),
        _ => draft.lead(
            format!("Killed for want of memory{short}"),
            format!("{who} was killed by the kernel's OOM killer. Whether the machine or a cgroup was out of memory is not told."),
        ),
    }
    draft.evidence(exception.message.as_deref().unwrap_or_default());
    let parts =
        ["anon-rss", "file-rss", "shmem-rss"].map(|key| field(&report.fields, key).and_then(kilobytes));
    let held: u64 = parts.iter().flatten().fold(0, |sum, part| sum.saturating_add(*part));
    if parts.iter().any(Option::is_some) {
        let share = limit.filter(|limit| *limit > 0 && scope == "cgroup");
        let share = share
            .map(|limit| format!(", {} % of the limit", held.saturating_mul(100) / limit))
            .unwrap_or_default();
        let anonymous =
            parts[0].map(|own| format!(" ({} of it its own data)", size(own))).unwrap_or_default();
        draft.say(format!("It held {} of memory{anonymous}{share}.", size(held)));
    }
    tell_choice(report, draft);
    tell_tasks(report, draft, held);
    tell_group(report, draft);
    if let Some(by) = field(&report.fields, "invoked by") {
        draft.say(format!(
            "{by} asked for the memory that was not there; that tells nothing of who used it up."
        ));
    }
    match scope {
        "cgroup" | "container" => {
            draft.causes(&[
                "A program that needs more than its limit: heap and buffers that nobody adjusted to the container, files in tmpfs, many workers.",
                "A leak.",
            ]);
            draft.next("Look at the process's memory over time: a steady growth is a leak, a peak at one request is a need. Then mend it, or raise the limit (--memory, resources.limits.memory, MemoryMax=).");
        }
        "oomd" => {
            draft.cause("A program of that unit that grew, or many at once (a build, a browser).");
            draft.next("See systemd-oomd.service(8): `ManagedOOMMemoryPressure=`, `ManagedOOMSwap=`, and `oomctl` for the limits.");
        }
        _ => {
            draft.causes(&[
                "The programs of the machine together need more than it has; the one that was killed need not be the one that grew.",
                "A leak.",
            ]);
            draft.next("Look at the largest processes; give a service a limit of its own (MemoryMax=), add memory or swap.");
        }
    }
    true
}

/// Why this one: the kernel takes the largest, after its score was adjusted.
fn tell_choice(report: &Report, draft: &mut Draft) {
    let adj = field(&report.fields, "oom_score_adj").and_then(|adj| adj.parse::<i64>().ok());
    match adj {
        Some(0) => draft.say("The kernel takes who uses most; this one's score was not adjusted (oom_score_adj 0)."),
        Some(adj) if adj > 0 => draft.say(format!(
            "The kernel takes who uses most, after adjustments: this one's raised its score by {} % of all memory (oom_score_adj {adj}).",
            adj / 10
        )),
        Some(adj) => draft.say(format!(
            "The kernel takes who uses most, after adjustments: this one was taken although its own protected it (oom_score_adj {adj})."
        )),
        None => {}
    }
    if let Some(score) = field(&report.fields, "score") {
        draft.say(format!(
            "Its score was {score} of 1000: about the thousandths of the memory that it used, adjusted."
        ));
    }
}

fn tell_tasks(report: &Report, draft: &mut Draft, held: u64) {
    let rows = report.fields.iter().filter(|field| field.key == "task");
    let mut tasks: Vec<Task<'_>> = rows.filter_map(|field| Task::read(&field.value)).collect();
    if tasks.is_empty() {
        return;
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(task.rss));
    let victim = tasks.iter().find(|task| Some(task.pid) == report.process.pid);
    // The table counts pages, whose size it does not state: the victim's own line has kilobytes.
    let page = victim.filter(|victim| victim.rss > 0 && held > 0).and_then(|victim| {
        [4, 16, 64].into_iter().find(|page| {
            let all = victim.rss.saturating_mul(*page);
            all.abs_diff(held) <= held / 4
        })
    });
    let amount = |rss: u64| match page {
        Some(page) => size(rss.saturating_mul(page)),
        None => format!("{rss} pages"),
    };
    let all = tasks.iter().fold(0_u64, |sum, task| sum.saturating_add(task.rss)).max(1);
    let largest: Vec<String> = tasks
        .iter()
        .take(3)
        .map(|task| format!("{} ({}) with {}", task.name, task.pid, amount(task.rss)))
        .collect();
    draft.say(format!("The largest of {} processes in the table: {}.", tasks.len(), listed(&largest)));
    if let Some(victim) = victim {
        draft.say(format!(
            "The one that was killed had {} % of what these held.",
            victim.rss.saturating_mul(100) / all
        ));
        if let Some(first) = tasks.first().filter(|first| first.pid != victim.pid) {
            draft.say(format!("{} was larger, and its adjustment was {}.", first.name, first.adj));
        }
    }
}

/// Which group's limit it was.
fn tell_group(report: &Report, draft: &mut Draft) {
    match (field(&report.fields, "oom_memcg"), field(&report.fields, "task_memcg")) {
        (Some(limited), Some(own)) if limited != own => {
            draft.say(format!("The limit is that of {limited}, above the process's own cgroup {own}."));
        }
        (Some(limited), _) => draft.say(format!("The limit is that of {limited}.")),
        _ => {}
    }
    match field(&report.fields, "constraint") {
        Some("CONSTRAINT_CPUSET") => {
            draft.say("Only the memory of the nodes that its cpuset allows was used up.");
        }
        Some("CONSTRAINT_MEMORY_POLICY") => {
            draft.say("Only the memory of the nodes that its NUMA policy allows was used up.");
        }
        _ => {}
    }
    for (key, words) in [("memory", "The cgroup's memory"), ("swap", "Its swap")] {
        field(&report.fields, key).iter().for_each(|figures| draft.evidence(format!("{words}: {figures}")));
    }
}
