//! All units, on all threads.

use super::Progress;
use super::symbols::Symbols;
use super::target::{Linked, Target};
use super::unit::Ranks;
use super::unit::Worker;
use crate::dwarf::{Abbrevs, Claim, Claims, DwarfFile, Unit, View};
use backtrail_table::{Builder, DropReason};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// One unit that has code, and where that goes.
pub(super) struct Job<'f, 'd> {
    file: &'f DwarfFile<'d>,
    unit: &'f Unit<'d>,
    kept: UnitRanges<'f>,
    ranks: Ranks,
}

enum UnitRanges<'f> {
    Claimed(&'f Claim, &'f [(u64, u64)]),
    Linked(&'f [Linked]),
}

impl<'f, 'd> Job<'f, 'd> {
    fn bytes(&self) -> u64 {
        self.unit.header.end - self.unit.header.offset
    }

    /// The units of a file that lookups would ask. `position` is the file's place among those of the image.
    pub(super) fn of_file(file: &'f DwarfFile<'d>, claims: &'f Claims, position: u64) -> Vec<Self> {
        let units = file.all_units().iter().zip(&claims.of_units).zip(0u64..);
        let jobs = units.filter(|((_, claim), _)| **claim != Claim::None).map(|((unit, claim), number)| {
            // Units that state no addresses are asked last.
            let is_last = *claim == Claim::Functions;
            let ranks = ranks(position, is_last, number);
            Job { file, unit, kept: UnitRanges::Claimed(claim, &claims.contested), ranks }
        });
        jobs.collect()
    }

    /// The units of an object file of which some code was linked.
    pub(super) fn of_linked(file: &'f DwarfFile<'d>, linked: &'f [Linked], position: u64) -> Vec<Self> {
        let units = file.all_units().iter().zip(0u64..);
        let units = units.filter(|(unit, _)| unit.header.may_hold_code());
        let jobs = units.map(|(unit, number)| Job {
            file,
            unit,
            kept: UnitRanges::Linked(linked),
            ranks: ranks(position, false, number),
        });
        jobs.collect()
    }
}

/// Files come in their order; in each, functions that lookups find first.
fn ranks(file: u64, is_last: bool, unit: u64) -> Ranks {
    let base = file << 40 | unit;
    let class = |class: u64| base | class << 36;
    let last = u64::from(is_last);
    Ranks { functions: class(last), hidden: class(2 + last), named_lines: 1 << 62 | base }
}

/// Does all jobs on the threads of the pool that this is called in.
pub(super) fn run(jobs: &[Job<'_, '_>], builder: &Builder, symbols: &Symbols<'_>, progress: &dyn Progress) {
    let is_started = AtomicBool::new(false);
    let new = || {
        // One reads the symbols while the others begin with units, few of which ask for them.
        if !is_started.swap(true, Ordering::Relaxed) {
            symbols.pieces();
        }
        Worker::new(builder, symbols)
    };
    each(jobs, progress, new, |worker, job, unit| match unit {
        Opened::Unit { view, dies, target } => {
            if std::ptr::eq(view.unit, dies.unit) && view.is_skeleton() {
                builder.dropped(DropReason::MissingFile, 1);
            }
            worker.unit(view, dies, &target, job.ranks);
        }
        Opened::Broken => builder.dropped(DropReason::BrokenUnit, 1),
    });
}

/// What became of opening a job's unit.
pub(super) enum Opened<'a, 'd> {
    /// `view` has the lines, `dies` the functions.
    Unit {
        view: View<'a, 'd>,
        dies: View<'a, 'd>,
        target: Target<'a>,
    },
    Broken,
}

/// Opens the units of all jobs and gives each to one of the workers, which `new` makes.
pub(super) fn each<'d, W>(
    jobs: &[Job<'_, 'd>],
    progress: &dyn Progress,
    new: impl Fn() -> W + Sync,
    act: impl for<'a> Fn(&mut W, &Job<'_, 'd>, Opened<'a, 'd>) + Sync,
) -> Vec<W>
where
    W: Send,
{
    let total = jobs.iter().map(Job::bytes).sum();
    let order = order(jobs, total);
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    rayon::broadcast(|_| {
        let mut worker = new();
        let mut abbrevs = Abbrevs::default();
        while let Some(job) =
            order.get(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| jobs.get(*index))
        {
            open(job, &mut abbrevs, |unit| act(&mut worker, job, unit));
            progress.finished_with(job.file.unit_bytes(job.unit));
            let done = done.fetch_add(job.bytes(), Ordering::Relaxed) + job.bytes();
            progress.advanced(done, total);
        }
        worker
    })
}

/// Units that would keep one thread busy while the others have nothing left to do come first, the rest in the order of
/// the file.
fn order(jobs: &[Job<'_, '_>], total: u64) -> Vec<usize> {
    let large = total / (8 * rayon::current_num_threads() as u64).max(1);
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let size = |index: &usize| jobs.get(*index).map_or(0, Job::bytes);
    order.sort_by_key(|index| std::cmp::Reverse(Some(size(index)).filter(|size| *size > large)));
    order
}

fn open<'d>(job: &Job<'_, 'd>, abbrevs: &mut Abbrevs, act: impl for<'a> FnOnce(Opened<'a, 'd>)) {
    let file = job.file;
    let header = &job.unit.header;
    let body = match file.read_body_with(header, abbrevs) {
        Ok(Some(body)) => body,
        Ok(None) => return,
        Err(error) => {
            file.problems.unit(header.offset, error);
            return act(Opened::Broken);
        }
    };
    let view: View<'_, 'd> = View { file, main: file, unit: job.unit, body: &body };
    let dies = file.split(view).ok().flatten().unwrap_or(view);
    let target = match &job.kept {
        UnitRanges::Claimed(claim, contested) => Target::Claimed(claim, contested),
        UnitRanges::Linked(linked) => Target::Linked(linked),
    };
    act(Opened::Unit { view, dies, target });
}
