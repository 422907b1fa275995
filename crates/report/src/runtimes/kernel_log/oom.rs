//! Whom the kernel, systemd or a container's platform killed for want of memory.
//!
//! Sources: Linux `mm/oom_kill.c` (`dump_header`, `dump_tasks`, `__oom_kill_process`) and `mm/memcontrol.c`
//! (`mem_cgroup_print_oom_meminfo`); systemd `src/oom/oomd-manager.c` and `src/core/service.c`; Kubernetes' `OOMKilled`.

use backtrail_model::{Exception, Field, Report};

/// What the lines of one such event say.
#[derive(Default)]
pub(super) struct Oom {
    /// Whose memory it was: `cgroup`, `machine`.
    scope: Option<&'static str>,
    /// The line that says who was killed; else one that says that somebody was.
    message: Option<String>,
    name: Option<String>,
    pid: Option<u64>,
    /// Names of columns between the id and the name.
    columns: Vec<String>,
    fields: Vec<Field>,
}

/// Words of systemd for such an end, behind the unit's name.
const OF_UNITS: [&str; 2] =
    [": A process of this unit has been killed by the OOM killer.", ": Failed with result 'oom-kill'."];

/// Whether a line tells of such an event.
pub(super) fn is_event(line: &str) -> bool {
    invoked(line).is_some()
        || line.starts_with("oom-kill:constraint=")
        || Killed::read(line).is_some()
        || said(line).is_some()
}

/// Whether a line begins an event; `is_open` is whether one was announced whose victim has not come yet, `has_begun` whether there
/// was any.
pub(super) fn begins(line: &str, is_open: bool, has_begun: bool) -> bool {
    if invoked(line).is_some() {
        return true;
    }
    // The service manager tells of the same event what the kernel told before.
    if let Some(said) = said(line) {
        return !(is_open || said.is_again && has_begun);
    }
    !is_open && (line.starts_with("oom-kill:constraint=") || Killed::read(line).is_some())
}

/// Whether a line has the victim of an event.
pub(super) fn ends(line: &str) -> bool {
    Killed::read(line).is_some_and(|killed| killed.is_done) || said(line).is_some()
}

/// `java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0`.
fn invoked(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(" invoked oom-killer: ")?;
    (rest.starts_with("gfp_mask=") && name.len() <= 64).then_some(name)
}

/// The line of the victim.
struct Killed<'t> {
    scope: Option<&'static str>,
    pid: u64,
    name: &'t str,
    /// `score 974`, of kernels up to 5.2.
    score: Option<u64>,
    /// `total-vm:1234kB`, `anon-rss:100kB`, `UID:0`, `oom_score_adj:0`.
    values: Vec<(&'t str, &'t str)>,
    /// Whether it was killed; kernels up to 5.2 announce it in a line of its own before.
    is_done: bool,
}

impl<'t> Killed<'t> {
    fn read(line: &'t str) -> Option<Self> {
        const SCOPES: [(&str, &str); 3] = [
            ("Memory cgroup out of memory: ", "cgroup"),
            ("Out of memory: ", "machine"),
            ("Out of memory (oom_kill_allocating_task): ", "machine"),
        ];
        let scope = SCOPES.iter().find_map(|(begin, scope)| Some((line.strip_prefix(begin)?, *scope)));
        let (rest, scope) = scope.map_or((line, None), |(rest, scope)| (rest, Some(scope)));
        let is_announced = rest.strip_prefix("Kill process ");
        let rest = rest.strip_prefix("Killed process ").or(is_announced)?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (pid, rest) = rest.split_at_checked(digits)?;
        let pid = pid.parse().ok()?;
        // `, UID 48, (httpd) ` of old RHEL's.
        let (between, rest) = rest.split_once('(')?;
        if between.len() > 24 {
            return None;
        }
        let is_done = is_announced.is_none();
        if !is_done {
            let (name, rest) = rest.split_once(") score ")?;
            let score = rest.split(' ').next()?.parse().ok()?;
            return Some(Self { scope, pid, name, score: Some(score), values: Vec::new(), is_done });
        }
        let (name, rest) = rest.rsplit_once(") total-vm:").or_else(|| rest.rsplit_once("), total-vm:"))?;
        let total = rest.split([',', ' ']).next()?;
        let mut values = vec![("total-vm", total)];
        let pairs = rest.split([',', ' ']).filter_map(|pair| pair.split_once(':'));
        values.extend(pairs.take(16));
        Some(Self { scope, pid, name, score: None, values, is_done })
    }
}

/// What systemd or a platform says of it.
struct Said<'t> {
    name: Option<&'t str>,
    scope: Option<&'static str>,
    /// Whether it repeats what the kernel says.
    is_again: bool,
}

fn said(line: &str) -> Option<Said<'_>> {
    let again = |name| Some(Said { name: Some(name), scope: None, is_again: true });
    for words in OF_UNITS {
        if let Some(unit) = line.strip_suffix(words) {
            let unit = unit.rsplit(": ").next().unwrap_or(unit);
            return (!unit.contains(' ')).then(|| again(unit)).flatten();
        }
    }
    if let Some((unit, rest)) = line.split_once(": systemd-oomd killed ") {
        return (!unit.contains(' ') && rest.contains(" process(es) in this unit"))
            .then(|| again(unit))
            .flatten();
    }
    // systemd-oomd's own: `Killed /user.slice/… due to memory pressure for /user.slice/… being 62.71% > 50.00% for > 20s with
    // reclaim activity`, `… due to memory used (…) / total (…) and swap used (…) / total (…) being more than 90.00%`.
    if let Some((path, rest)) = line.strip_prefix("Killed /").and_then(|rest| rest.split_once(" due to ")) {
        let is_known = rest.starts_with("memory pressure for ")
            || rest.starts_with("memory used (")
            || rest.starts_with("swap used (");
        let name = path.rsplit('/').next();
        return (is_known && !path.contains(' ')).then_some(Said {
            name,
            scope: Some("oomd"),
            is_again: false,
        });
    }
    let (key, value) = line.split_once(':')?;
    let key = key.trim().trim_matches('"');
    let value = value.trim().trim_end_matches(',').trim_matches('"');
    let is_reason = key.eq_ignore_ascii_case("reason") && value == "OOMKilled";
    let is_docker = key == "OOMKilled" && value == "true";
    (is_reason || is_docker).then_some(Said { name: None, scope: Some("container"), is_again: false })
}

impl Oom {
    /// Reads a line.
    pub(super) fn line(&mut self, line: &str, max_fields: usize) {
        let mut add = |key: &str, value: &str| {
            if self.fields.len() < max_fields {
                self.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
            }
        };
        if let Some(name) = invoked(line) {
            add("invoked by", name);
            return;
        }
        if let Some(killed) = Killed::read(line) {
            self.scope = killed.scope.or(self.scope);
            killed.score.iter().for_each(|score| add("score", &score.to_string()));
            killed.values.iter().for_each(|(key, value)| add(key, value));
            if killed.is_done || self.message.is_none() {
                self.message = Some(line.to_owned());
                (self.name, self.pid) = (Some(killed.name.to_owned()), Some(killed.pid));
            }
            return;
        }
        if let Some(rest) = line.strip_prefix("oom-kill:") {
            for (key, value) in
                rest.split(',').take(32).map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            {
                match key {
                    "constraint" | "oom_memcg" | "task_memcg" | "cpuset" => add(key, value),
                    "task" => self.name = self.name.take().or_else(|| Some(value.to_owned())),
                    "pid" => self.pid = self.pid.or_else(|| value.trim().parse().ok()),
                    "global_oom" => self.scope = Some("machine"),
                    _ => {}
                }
            }
            if rest.contains("oom_memcg=") {
                self.scope = Some("cgroup");
            }
            self.message = self.message.take().or_else(|| Some(line.to_owned()));
            return;
        }
        if let Some(said) = said(line) {
            add("said", line.trim());
            self.scope = self.scope.or(said.scope);
            self.message = self.message.take().or_else(|| Some(line.trim().to_owned()));
            self.name = self.name.take().or_else(|| said.name.map(str::to_owned));
            return;
        }
        for key in ["memory", "memory+swap", "swap", "kmem"] {
            let figures = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(": usage "));
            figures.iter().for_each(|figures| add(key, &format!("usage {figures}")));
        }
        if let Some(pages) = line.strip_suffix(" pages RAM").filter(|pages| pages.parse::<u64>().is_ok()) {
            add("pages of RAM", pages);
        }
        if let Some((key @ ("Total swap" | "Free swap"), value)) =
            line.split_once('=').map(|(key, value)| (key.trim(), value))
        {
            add(key, value.trim());
        }
        if let Some((_, columns)) =
            line.split_once("] ").filter(|(id, _)| id.trim_matches(['[', ' ']) == "pid")
        {
            let columns: Vec<String> = columns.split_whitespace().map(str::to_owned).collect();
            if columns.iter().any(|column| column == "rss")
                && columns.last().is_some_and(|last| last == "name")
            {
                self.columns = columns;
            }
            return;
        }
        if let Some(task) = self.task(line).filter(|_| self.fields.len() < max_fields) {
            self.fields.push(Field { key: "task".to_owned(), value: task });
        }
    }

    /// A row of the table of processes: `[  4321]  1000  4321   226026    29603  1314816        0           999 java`, as
    /// `pid=4321 rss=29603 swap=0 adj=999 name=java`, in pages.
    fn task(&self, line: &str) -> Option<String> {
        let (_, numbers) = self.columns.split_last()?;
        let rest =
            line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(line, |(_, rest)| rest);
        let mut rest = rest.trim_start();
        let mut values = Vec::with_capacity(numbers.len());
        for _ in numbers {
            let (word, behind) = rest.split_once(' ')?;
            values.push(word.parse::<i64>().ok()?);
            rest = behind.trim_start();
        }
        let of = |names: &[&str]| {
            let at = self.columns.iter().position(|column| names.contains(&column.as_str()))?;
            values.get(at).copied()
        };
        let (pid, rss) = (of(&["tgid"])?, of(&["rss"])?);
        let swap = of(&["swapents"]).unwrap_or_default();
        let adj = of(&["oom_score_adj", "oom_adj"]).unwrap_or_default();
        Some(format!("pid={pid} rss={rss} swap={swap} adj={adj} name={}", rest.trim()))
    }

    /// Puts the event into the report; `None` where there is none.
    pub(super) fn describe(self, report: &mut Report) -> Option<()> {
        let invoked = self.fields.iter().any(|field| field.key == "invoked by");
        let message = self.message.or_else(|| invoked.then(|| "the OOM killer was invoked".to_owned()))?;
        (report.process.name, report.process.pid) = (self.name, self.pid);
        report.exception = Some(Exception {
            kind: Some("out of memory".to_owned()),
            signal: Some("SIGKILL".to_owned()),
            subtype: self.scope.map(str::to_owned),
            message: Some(message),
            ..Exception::default()
        });
        report.fields.extend(self.fields);
        Some(())
    }
}
