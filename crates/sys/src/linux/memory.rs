//! Reading other processes' memory. process_vm_readv(2).

use super::OsError;
use backtrail_core::{AddrRange, Avma};
use std::ffi::c_void;

/// Ranges that one call takes (`UIO_MAXIOV`).
const MAX_RANGES: usize = 1024;

/// Copies `ranges` of a process, one behind the other, into `to`. The answer is how many bytes were copied: fewer than
/// asked for where one cannot be read, `to` is too small, or there are more than 1024 ranges; what comes after that is not
/// looked at.
///
/// # Errors
/// Where nothing could be copied: `EFAULT` for memory that is not mapped or not readable, `ESRCH`, `EPERM`, and `ENOSYS`
/// where a sandbox or emulator lacks the call.
pub fn read(process: u32, ranges: &[AddrRange<Avma>], to: &mut [u8]) -> Result<usize, OsError> {
    const CALL: &str = "process_vm_readv";
    let process = libc::pid_t::try_from(process).map_err(|_| OsError { call: CALL, number: libc::ESRCH })?;
    let too_large = OsError { call: CALL, number: libc::EFAULT };
    let mut places = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_RANGES];
    let mut count = 0;
    for (place, range) in places.iter_mut().zip(ranges) {
        let start = usize::try_from(range.start().get()).map_err(|_| too_large)?;
        place.iov_base = std::ptr::without_provenance_mut(start);
        place.iov_len = usize::try_from(range.size()).map_err(|_| too_large)?;
        count += 1;
    }
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast::<c_void>(), iov_len: to.len() };
    // SAFETY: `local` describes `to`, which the kernel writes to. `places` are addresses of the other process, which the
    // kernel checks. All of them live until the call is over.
    let copied = unsafe { libc::process_vm_readv(process, &raw const local, 1, places.as_ptr(), count, 0) };
    usize::try_from(copied).map_err(|_| OsError::last(CALL))
}

/// Has the kernel give all pages of `bytes` at once, as writing to each of them would one by one; says whether it did.
/// madvise(2), `MADV_POPULATE_WRITE`; Linux 5.14.
pub fn populate(bytes: &mut [u8]) -> bool {
    const SMALLEST_PAGE: usize = 4096;
    if bytes.is_empty() {
        return true;
    }
    // What is not a whole page is somebody else's too: the kernel wants whole ones, and gives those that hold a part.
    let before = bytes.as_ptr().addr() % SMALLEST_PAGE;
    let size = bytes.len().saturating_add(before);
    // SAFETY: the contents stay as they are, and what lies before in the first page is only touched.
    unsafe {
        let start = bytes.as_mut_ptr().wrapping_sub(before);
        libc::madvise(start.cast::<c_void>(), size, libc::MADV_POPULATE_WRITE) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(bytes: &[u8]) -> AddrRange<Avma> {
        AddrRange::from_size(Avma::new(bytes.as_ptr() as u64), bytes.len() as u64)
    }

    #[test]
    fn pieces_come_one_behind_the_other_up_to_what_cannot_be_read() {
        let (one, two) = (*b"abc", *b"defgh");
        let nothing = AddrRange::from_size(Avma::new(16), 4);
        let mut to = [0; 10];
        assert_eq!(read(std::process::id(), &[range(&one), range(&two)], &mut to), Ok(8));
        assert_eq!(&to, b"abcdefgh\0\0");
        assert_eq!(read(std::process::id(), &[range(&two), nothing, range(&one)], &mut to), Ok(5));
        assert_eq!(read(std::process::id(), &[range(&two)], &mut to[..2]), Ok(2));
        let error = read(std::process::id(), &[nothing], &mut to).unwrap_err();
        assert_eq!(error.number, libc::EFAULT);
        assert_eq!(read(u32::MAX, &[range(&one)], &mut to).unwrap_err().number, libc::ESRCH);
    }

    #[test]
    fn bytes_are_there_and_stay_as_they_are() {
        let mut bytes = vec![0; 1 << 20];
        bytes[70_000] = 7;
        if populate(&mut bytes[3..900_000]) {
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if at == 70_000 { 7 } else { 0 }));
        }
        assert!(populate(&mut []));
    }
}
