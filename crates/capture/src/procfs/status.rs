//! `/proc/PID/status`: lines of a key, a colon and values.

use super::number;

/// What `status` says of a process or thread, as far as capturing asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The process that it is a thread of.
    pub process: Option<u32>,
    /// Who traces it; 0 for nobody.
    pub tracer: u32,
    /// Its ids, from the reader's namespace to the innermost that it is in.
    pub ids_in_namespaces: Vec<u32>,
    /// Its real, effective, saved and file system user ids.
    pub users: Vec<u32>,
    /// Its effective capabilities.
    pub capabilities: u64,
    /// Whether it is the kernel's own; `None` where the kernel is too old to say.
    pub is_kernel_thread: Option<bool>,
}

impl Status {
    /// `CAP_SYS_PTRACE`; Linux `include/uapi/linux/capability.h`.
    pub const PTRACE_CAPABILITY: u64 = 1 << 19;

    /// Reads what is there.
    pub fn parse(text: &[u8]) -> Self {
        let mut status = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (key, values) = line.split_at(colon);
            status.set(key, values.get(1..).unwrap_or_default());
        }
        status
    }

    fn set(&mut self, key: &[u8], values: &[u8]) {
        let numbers = || {
            let words = values.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.map_while(number)
        };
        match key {
            b"Tgid" => self.process = numbers().next(),
            b"TracerPid" => self.tracer = numbers().next().unwrap_or_default(),
            b"NSpid" => self.ids_in_namespaces = numbers().collect(),
            b"Uid" => self.users = numbers().collect(),
            b"Kthread" => self.is_kernel_thread = numbers().next().map(|is: u32| is != 0),
            b"CapEff" => {
                let digits = std::str::from_utf8(values).unwrap_or_default().trim();
                self.capabilities = u64::from_str_radix(digits, 16).unwrap_or_default();
            }
            _ => {}
        }
    }

    /// Its id in the innermost namespace of processes that it is in, where that is another than the reader's.
    pub fn inner_id(&self) -> Option<u32> {
        match self.ids_in_namespaces[..] {
            [_, .., inner] => Some(inner),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_count_are_found_among_others() {
        let text = b"Name:\tTgid: 9\nUmask:\t0022\nTgid:\t4550\nPid:\t4551\nTracerPid:\t17\nUid:\t1000\t1001\t1000\t1000\n\
            NSpid:\t4551\t12\t3\nKthread:\t0\nCapEff:\t000001fffeffffff\nCpus_allowed_list:\t0-1\n";
        let status = Status::parse(text);
        assert_eq!((status.process, status.tracer, status.inner_id()), (Some(4550), 17, Some(3)));
        assert_eq!(
            (status.users.as_slice(), status.is_kernel_thread),
            (&[1000, 1001, 1000, 1000][..], Some(false))
        );
        assert_eq!(status.capabilities, 0x1ff_feff_ffff);
        assert_ne!(status.capabilities & Status::PTRACE_CAPABILITY, 0);
    }

    #[test]
    fn what_is_missing_stays_unknown() {
        let status = Status::parse(b"NSpid:\t7\nCapEff:\tno number\nTgid:\t-1\n\xff:\n");
        assert_eq!((status.process, status.inner_id(), status.capabilities), (None, None, 0));
        assert_eq!(Status::parse(b""), Status::default());
    }
}
