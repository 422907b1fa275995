//! What has been run already: a line each, so that a chore that was ended goes on where it stood.

use crate::Result;
use crate::gdb::Beside;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// Runs of one cell.
#[derive(Clone, Default, Debug)]
pub(crate) struct Cell {
    pub(crate) good: usize,
    /// What was wrong with the others.
    pub(crate) faults: Vec<String>,
    /// Why there is none, where something is missing here.
    pub(crate) missing: Option<String>,
    /// How its report compares with gdb.
    pub(crate) beside: Option<Beside>,
}

impl Cell {
    pub(crate) fn runs(&self) -> usize {
        self.good + self.faults.len()
    }
}

#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    cells: BTreeMap<(String, String), Cell>,
}

impl Journal {
    /// Goes on with a journal, or begins one. It is of one commit: figures of several say nothing of any.
    pub(crate) fn open(path: &Path, commit: &str) -> Result<Self> {
        let shown = |error: std::io::Error| format!("{}: {error}", path.display());
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(shown)?,
        };
        let head = format!("# commit {commit}");
        let is_new = text.is_empty();
        if !is_new && text.lines().next() != Some(head.as_str()) {
            let found = text.lines().next().unwrap_or_default();
            return Err(format!("{}: {found:?}, expected {head:?}; remove it to begin anew", path.display()));
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(shown)?;
        if is_new {
            writeln!(file, "{head}").map_err(shown)?;
        }
        let mut journal = Self { file, cells: BTreeMap::new() };
        // A line that was cut off is a run that was not finished.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines().skip(1) {
            let mut fields = line.split('\t');
            let mut field = || fields.next().unwrap_or_default().to_owned();
            let (host, kind, outcome, detail) = (field(), field(), field(), field());
            journal.count(&host, &kind, &outcome, detail);
        }
        Ok(journal)
    }

    fn count(&mut self, host: &str, kind: &str, outcome: &str, detail: String) {
        let cell = self.cells.entry((host.to_owned(), kind.to_owned())).or_default();
        match outcome {
            "good" => cell.good += 1,
            "gdb-same" => cell.beside = Some(Beside::Same(detail)),
            "gdb-differs" => cell.beside = Some(Beside::Different(detail)),
            "gdb-not-asked" => cell.beside = Some(Beside::NotCompared(detail)),
            "missing" => cell.missing = Some(detail),
            _ => cell.faults.push(detail),
        }
    }

    pub(crate) fn add(&mut self, host: &str, kind: &str, outcome: &str, detail: &str) -> Result<()> {
        let detail = detail.replace(['\n', '\t'], " ");
        writeln!(self.file, "{host}\t{kind}\t{outcome}\t{detail}").map_err(|error| error.to_string())?;
        self.count(host, kind, outcome, detail);
        Ok(())
    }

    pub(crate) fn add_beside(&mut self, host: &str, kind: &str, beside: &Beside) -> Result<()> {
        match beside {
            Beside::Same(how) => self.add(host, kind, "gdb-same", how),
            Beside::Different(how) => self.add(host, kind, "gdb-differs", how),
            Beside::NotCompared(why) => self.add(host, kind, "gdb-not-asked", why),
        }
    }

    pub(crate) fn cell(&self, host: &str, kind: &str) -> Cell {
        self.cells.get(&(host.to_owned(), kind.to_owned())).cloned().unwrap_or_default()
    }

    /// A row each kind, a column each host, then what is wrong; and whether everything is right.
    pub(crate) fn table(&self, hosts: &[&str], kinds: &[String]) -> (String, bool) {
        let mut text = format!("{:<26}", "");
        hosts.iter().for_each(|host| _ = write!(text, "{host:>10}"));
        let (mut faults, mut missing) = (String::new(), BTreeMap::<String, usize>::new());
        let (mut good, mut runs, mut same, mut different) = (0, 0, 0, 0);
        for kind in kinds {
            let _ = write!(text, "\n{kind:<26}");
            for host in hosts {
                let cell = self.cell(host, kind);
                good += cell.good;
                runs += cell.runs();
                match &cell.beside {
                    Some(Beside::Same(_)) => same += 1,
                    Some(Beside::NotCompared(why)) => {
                        *missing.entry(format!("beside gdb: {why}")).or_default() += 1;
                    }
                    Some(Beside::Different(how)) => {
                        different += 1;
                        let _ = writeln!(faults, "{host} {kind}: beside gdb: {how}");
                    }
                    None => {}
                }
                let shown = match &cell.missing {
                    Some(why) => {
                        *missing.entry(why.clone()).or_default() += 1;
                        "-".to_owned()
                    }
                    None => format!("{}/{}", cell.good, cell.runs()),
                };
                let _ = write!(text, "{shown:>10}");
                if let Some(first) = cell.faults.first() {
                    let _ =
                        writeln!(faults, "{host} {kind}: {} of {}: {first}", cell.faults.len(), cell.runs());
                }
            }
        }
        let _ = writeln!(text, "\n{good} of {runs} runs as they have to be");
        if same + different > 0 {
            let _ = writeln!(text, "{same} of {} cells with the frames of gdb", same + different);
        }
        missing.iter().for_each(|(why, cells)| _ = writeln!(text, "{cells} cells not run: {why}"));
        text.push_str(&faults);
        (text, faults.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    #[test]
    fn a_chore_goes_on_where_it_stood() {
        let directory = TempDir::new("journal");
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, "1").unwrap();
        journal.add("c", "null", "good", "").unwrap();
        journal.add("c", "null", "bad", "two\nlines").unwrap();
        journal.add("go", "null", "missing", "no go here").unwrap();
        drop(journal);
        let cut = std::fs::read_to_string(&path).unwrap() + "c\tnull\tgo";
        std::fs::write(&path, cut).unwrap();
        let journal = Journal::open(&path, "1").unwrap();
        assert_eq!((journal.cell("c", "null").runs(), journal.cell("c", "null").good), (2, 1));
        let (text, is_good) = journal.table(&["c", "go"], &["null".to_owned()]);
        assert!(!is_good && text.contains("1/2") && text.contains("c null: 1 of 2: two lines"), "{text}");
        assert!(text.contains("1 cells not run: no go here"), "{text}");
        assert!(Journal::open(&path, "2").is_err_and(|error| error.contains("expected \"# commit 2\"")));
    }
}
