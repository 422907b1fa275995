//! Unpacking DEFLATE: all of a member, or here and there for its headers.

use std::cell::RefCell;
use std::ops::Range;

use backtrail_core::FileOffset;
use backtrail_object::ReadAt;
use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::Limits;
use crate::error::{ErrorKind, Fault};
use crate::limits::Budget;
use crate::source::{Source, unreadable};
use crate::zip::member::Member;

/// DEFLATE data on its way out.
pub(super) struct Stream<'s> {
    source: &'s Source,
    /// Packed bytes not yet read.
    rest: Range<u64>,
    input: Vec<u8>,
    /// Bytes of `input` already consumed.
    used: usize,
    decompress: Decompress,
    at_end: bool,
}

/// Bytes taken in at a time: few at first, since most members are no object files, which their first bytes tell.
fn portion(so_far: u64) -> usize {
    match so_far {
        0..1024 => 1024,
        1024..65536 => 16 * 1024,
        _ => 64 * 1024,
    }
}

impl<'s> Stream<'s> {
    pub(super) fn new(source: &'s Source, data: Range<u64>) -> Self {
        let decompress = Decompress::new(false);
        Self { source, rest: data, input: Vec::new(), used: 0, decompress, at_end: false }
    }

    /// Appends to `out` what fits in its capacity; `false` when nothing more will come.
    pub(super) fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, Fault> {
        if self.at_end || out.len() == out.capacity() {
            return Ok(false);
        }
        if self.used == self.input.len() && self.rest.start < self.rest.end {
            let max = portion(self.decompress.total_in());
            let left = usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX);
            self.input = self.source.read_vec(self.rest.start, max.min(left))?;
            self.rest.start += self.input.len() as u64;
            self.used = 0;
        }
        let before = (self.decompress.total_in(), self.decompress.total_out());
        let input = self.input.get(self.used..).unwrap_or_default();
        let status = self.decompress.decompress_vec(input, out, FlushDecompress::None).map_err(|error| {
            let why = error.message().unwrap_or("broken");
            self.fault(&format!("expected DEFLATE data: {why}"))
        })?;
        let consumed = self.decompress.total_in() - before.0;
        self.used = self.used.saturating_add(usize::try_from(consumed).unwrap_or(usize::MAX));
        self.at_end = status == Status::StreamEnd;
        let is_stuck = consumed == 0 && self.decompress.total_out() == before.1;
        if is_stuck && !self.at_end {
            return Err(self.fault("expected more DEFLATE data, its last block is missing"));
        }
        Ok(!self.at_end)
    }

    /// After the last read: whether what came out is what was stated.
    pub(super) fn check_end(&mut self, got: u64, stated: u64) -> Result<(), Fault> {
        // The last block's end mark may be still unread when the output was full.
        let mut more = Vec::with_capacity(1);
        while !self.at_end && more.is_empty() {
            self.read(&mut more)?;
        }
        if got == stated && more.is_empty() {
            return Ok(());
        }
        let relation = if more.is_empty() { "gives" } else { "gives more than" };
        let what = format!("states {stated} bytes, its data {relation} {got}");
        Err(Fault::new(ErrorKind::Compression, what))
    }

    fn fault(&self, what: &str) -> Fault {
        let unused = self.input.len().saturating_sub(self.used) as u64;
        let at = self.rest.start.saturating_sub(unused);
        Fault::new(ErrorKind::Compression, format!("{what}, at {at:#x} of the zip"))
    }
}

/// Reads a deflated member here and there while holding little of it.
///
/// Headers lie at the beginning (Mach-O), at the beginning of each slice (fat files) or at the end (ELF's section
/// headers), and are read mostly in that order: so its first and its latest bytes are kept, and going back further
/// starts anew, which is bounded.
pub(crate) struct Inflater<'s> {
    source: &'s Source,
    data: Range<u64>,
    size: u64,
    state: RefCell<State<'s>>,
}

struct State<'s> {
    stream: Stream<'s>,
    /// The member's first bytes.
    head: Vec<u8>,
    /// Its latest bytes, from `recent_start` on.
    recent: Vec<u8>,
    recent_start: u64,
    /// How much of the latest is kept at least.
    keep: usize,
    restarts: u32,
    budget: &'s Budget,
    fault: Option<Fault>,
}

const HEAD: usize = 64 * 1024;
const RECENT: usize = 512 * 1024;
/// A single read beyond this is no header.
const MAX_READ: usize = 16 << 20;
const MAX_RESTARTS: u32 = 4;

impl<'s> Inflater<'s> {
    pub(crate) fn new(source: &'s Source, member: &Member, budget: &'s Budget) -> Result<Self, Fault> {
        let data = member.data(source)?;
        let state = State {
            stream: Stream::new(source, data.clone()),
            head: Vec::new(),
            recent: Vec::new(),
            recent_start: 0,
            keep: RECENT,
            restarts: 0,
            budget,
            fault: None,
        };
        Ok(Self { source, data, size: member.size(), state: RefCell::new(state) })
    }

    /// Why the first read failed that did: an object parser would lose what kind of fault it was.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.state.borrow_mut().fault.take()
    }

    pub(crate) fn fill(&self, offset: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let is_within = offset.checked_add(buf.len() as u64).is_some_and(|end| end <= self.size);
        if !is_within {
            let what = format!("expected {} bytes, the member has {} in all", buf.len(), self.size);
            return Err(Fault::new(ErrorKind::Object, what).offset(offset));
        }
        if buf.len() > MAX_READ {
            let what = format!("headers of {} bytes; the limit is {MAX_READ}", buf.len());
            return Err(Fault::new(ErrorKind::Limit, what).offset(offset));
        }
        let mut state = self.state.borrow_mut();
        state.keep = buf.len().max(RECENT);
        while !state.copy(offset, buf) {
            if state.recent_start > offset {
                state.restart(self.source, &self.data, offset)?;
            }
            state.step()?;
        }
        Ok(())
    }
}

impl<'s> State<'s> {
    fn produced(&self) -> u64 {
        self.recent_start + self.recent.len() as u64
    }

    fn copy(&self, offset: u64, buf: &mut [u8]) -> bool {
        let in_recent =
            offset.checked_sub(self.recent_start).and_then(|at| slice(&self.recent, at, buf.len()));
        match in_recent.or_else(|| slice(&self.head, offset, buf.len())) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    /// Inflates a little more.
    fn step(&mut self) -> Result<(), Fault> {
        let amount = portion(self.produced());
        if !self.budget.take(amount as u64) {
            return Err(Fault::new(ErrorKind::Limit, "left unread: the scan has inflated all it may"));
        }
        let mut out = Vec::with_capacity(amount);
        while self.stream.read(&mut out)? {}
        if out.is_empty() {
            let what = "expected more bytes, the member's data gives no more";
            return Err(Fault::new(ErrorKind::Compression, what).offset(self.produced()));
        }
        if self.head.len() as u64 == self.produced() && self.head.len() < HEAD {
            self.head.extend_from_slice(&out);
        }
        // In large strokes, since moving the rest down costs.
        if self.recent.len() > 2 * self.keep {
            let gone = self.recent.len() - self.keep;
            self.recent.drain(..gone);
            self.recent_start += gone as u64;
        }
        self.recent.extend_from_slice(&out);
        Ok(())
    }

    fn restart(&mut self, source: &'s Source, data: &Range<u64>, offset: u64) -> Result<(), Fault> {
        self.restarts += 1;
        if self.restarts > MAX_RESTARTS {
            let what = "headers too far apart to be read without unpacking all";
            return Err(Fault::new(ErrorKind::Limit, what).offset(offset));
        }
        self.stream = Stream::new(source, data.clone());
        self.recent.clear();
        self.recent_start = 0;
        Ok(())
    }
}

fn slice(bytes: &[u8], at: u64, len: usize) -> Option<&[u8]> {
    bytes.get(usize::try_from(at).ok()?..)?.get(..len)
}

impl ReadAt for Inflater<'_> {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: FileOffset, buf: &mut [u8]) -> Result<(), backtrail_object::Error> {
        let len = buf.len() as u64;
        if offset.checked_add(len).is_none_or(|end| end.get() > self.size) {
            return Err(backtrail_object::Error::past_end(offset, len));
        }
        self.fill(offset.get(), buf).map_err(|fault| {
            let error = unreadable(&fault);
            self.state.borrow_mut().fault.get_or_insert(fault);
            error
        })
    }
}

/// A member's bytes, unpacked and checked against the stated size and CRC.
pub(crate) fn inflate_all(source: &Source, member: &Member, limits: &Limits) -> Result<Vec<u8>, Fault> {
    let bytes = inflate_any(source, member, limits);
    // Else the zeros in place of its bytes would be called broken data.
    source.check()?;
    bytes
}

fn inflate_any(source: &Source, member: &Member, limits: &Limits) -> Result<Vec<u8>, Fault> {
    member.check_size(limits.member_bytes, limits)?;
    let data = member.data(source)?;
    // DEFLATE makes at most 1032 bytes of one, so that a lie about the size costs no more memory than the zip has.
    let possible = (data.end - data.start).saturating_mul(1032);
    let size = member.size();
    if size > possible {
        let what = format!("states {size} bytes, its data cannot give more than {possible}");
        return Err(Fault::new(ErrorKind::Compression, what));
    }
    let mut bytes = Vec::new();
    let capacity = usize::try_from(size).unwrap_or(usize::MAX);
    if bytes.try_reserve_exact(capacity).is_err() {
        return Err(Fault::new(ErrorKind::Limit, format!("no memory for its {size} bytes")));
    }
    let mut stream = Stream::new(source, data);
    while stream.read(&mut bytes)? {}
    stream.check_end(bytes.len() as u64, size)?;
    let mut crc = Crc::new();
    crc.update(&bytes);
    if crc.sum() != member.crc() {
        let what = format!("expected CRC {:08x}, its bytes have {:08x}", member.crc(), crc.sum());
        return Err(Fault::new(ErrorKind::Compression, what));
    }
    Ok(bytes)
}
