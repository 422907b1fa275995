//! Which processors a thread runs on.

use super::OsError;
use std::marker::PhantomData;

/// One bit for each processor, as the kernel has it.
type Mask = [usize; MASK_BITS / usize::BITS as usize];

/// What `cpu_set_t` has room for. On machines of more processors nothing is kept off.
const MASK_BITS: usize = 1024;

/// Processors that the calling thread keeps off as long as this lives, and so do threads that it starts meanwhile, to their
/// end. Then it runs again where it was allowed to before.
#[derive(Debug)]
pub struct KeptOff {
    before: Mask,
    /// The mask is that of the thread that made this.
    not_send: PhantomData<*mut ()>,
}

impl KeptOff {
    /// Keeps off `processors`; `None` where no other would be left, or the kernel does not allow it.
    pub fn new(processors: &[u32]) -> Option<Self> {
        let before = allowed().ok()?;
        let mut left = before;
        for processor in processors {
            let processor = usize::try_from(*processor).ok()?;
            if let Some(word) = left.get_mut(processor / usize::BITS as usize) {
                *word &= !(1 << (processor % usize::BITS as usize));
            }
        }
        if left.iter().all(|word| *word == 0) {
            return None;
        }
        allow(&left).ok()?;
        Some(Self { before, not_send: PhantomData })
    }
}

impl Drop for KeptOff {
    fn drop(&mut self) {
        let _ = allow(&self.before);
    }
}

fn allowed() -> Result<Mask, OsError> {
    let mut mask = Mask::default();
    // SAFETY: the pointer and the size are those of `mask`. 0 is the calling thread.
    let done = unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), (&raw mut mask).cast()) };
    if done == 0 { Ok(mask) } else { Err(OsError::last("sched_getaffinity")) }
}

fn allow(mask: &Mask) -> Result<(), OsError> {
    // SAFETY: the pointer and the size are those of `mask`. 0 is the calling thread.
    let done = unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), (&raw const *mask).cast()) };
    if done == 0 { Ok(()) } else { Err(OsError::last("sched_setaffinity")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(mask: &Mask) -> Vec<u32> {
        let is_in = |bit: &u32| mask[*bit as usize / usize::BITS as usize] >> (*bit % usize::BITS) & 1 == 1;
        (0..MASK_BITS as u32).filter(is_in).collect()
    }

    #[test]
    fn all_but_one_are_left_for_as_long_as_was_asked_for() {
        let before = numbers(&allowed().unwrap());
        let (first, rest) = before.split_first().unwrap();
        let kept = KeptOff::new(&[*first]);
        assert_eq!(kept.is_some(), !rest.is_empty());
        if kept.is_some() {
            assert_eq!(numbers(&allowed().unwrap()), rest);
            let inherited = std::thread::spawn(|| numbers(&allowed().unwrap())).join().unwrap();
            assert_eq!(inherited, rest);
        }
        drop(kept);
        assert_eq!(numbers(&allowed().unwrap()), before);
    }

    #[test]
    fn the_last_one_is_not_given_up() {
        let before = numbers(&allowed().unwrap());
        assert!(KeptOff::new(&before).is_none());
        assert_eq!(numbers(&allowed().unwrap()), before);
    }
}
