//! `/proc/PID/task/TID/stack`: the functions of the kernel that a thread waits in.

/// Reads lines as `[<0>] futex_do_wait+0x38/0x70` or `[<0>] ext4_sync+0x1/0x2 [ext4]`, innermost first: the function's name, and the
/// module that it is of. Linux `fs/proc/base.c`, `proc_pid_stack`. A last line that was cut off is left out.
pub fn parse_kernel_stack(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.split_inclusive('\n').filter_map(|line| function(line.strip_suffix('\n')?)).collect()
}

fn function(line: &str) -> Option<String> {
    let (_, place) = line.strip_prefix('[')?.split_once("] ")?;
    let (name, rest) = place.split_once('+').unwrap_or((place, ""));
    // What has no name is an address.
    if name.is_empty() || name.starts_with("0x") {
        return None;
    }
    let module = rest.split_once(' ').map(|(_, module)| format!(" {module}")).unwrap_or_default();
    Some(format!("{name}{module}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_functions_with_their_modules() {
        let text =
            b"[<0>] futex_do_wait+0x38/0x70\n[<0>] ext4_sync+0x1/0x2 [ext4]\n[<0>] 0xffffffff81000000\n\
            [<ffffffff810f5a3f>] do_wait+0x1b/0x2c\nodd\n[<0>] entry_SYSCALL_64_after_hwframe+0x7";
        assert_eq!(parse_kernel_stack(text), ["futex_do_wait", "ext4_sync [ext4]", "do_wait"]);
        assert!(parse_kernel_stack(b"").is_empty() && parse_kernel_stack(b"[<0>] +1\n\xff\n").is_empty());
    }
}
