//! Which setting or capability is in the way of reading a process. ptrace(2), "Ptrace access mode checking"; Linux
//! `security/yama/yama_lsm.c`.

use crate::procfs::Status;

/// What decides.
#[derive(Clone, Debug, Default)]
pub(super) struct Situation {
    pub(super) caller: Status,
    pub(super) target: Status,
    /// `kernel.yama.ptrace_scope`, where that module is there.
    pub(super) yama: Option<u32>,
    /// Whether the target's files below `/proc` belong to another user than it runs as: it may not be dumped.
    pub(super) is_undumpable: bool,
    /// A seccomp filter is set on the caller, as containers have.
    pub(super) is_filtered: bool,
}

impl Situation {
    /// One sentence for a person: what is in the way, and what would help.
    pub(super) fn explain(&self) -> String {
        const HELP: &str = "run as root, or give this program the capability CAP_SYS_PTRACE";
        if self.yama == Some(3) {
            return "kernel.yama.ptrace_scope is 3, which forbids it to everybody until the next boot"
                .to_owned();
        }
        let users = self.target.users.iter().filter(|user| Some(*user) != self.caller.users.get(1));
        if self.caller.capabilities & Status::PTRACE_CAPABILITY != 0 {
            let filter =
                if self.is_filtered { "this program's seccomp filter (a container's), " } else { "" };
            return format!(
                "this program has CAP_SYS_PTRACE, so what forbids it is {filter}a user namespace that it is not in, or a \
                 security module (SELinux, AppArmor)"
            );
        }
        if self.yama == Some(2) {
            return format!("kernel.yama.ptrace_scope is 2, which allows it to administrators only: {HELP}");
        }
        if let (Some(user), Some(own)) = (users.into_iter().next(), self.caller.users.get(1)) {
            return format!(
                "it runs as user {user} and this program as user {own}: run as that user, {HELP}"
            );
        }
        if self.is_undumpable {
            return format!(
                "it has made itself unreadable (PR_SET_DUMPABLE is 0), as programs with a set-user-id bit or file \
                 capabilities are: {HELP}"
            );
        }
        if self.target.capabilities & !self.caller.capabilities != 0 {
            return format!("it has capabilities that this program lacks: {HELP}");
        }
        if self.yama == Some(1) {
            return format!(
                "kernel.yama.ptrace_scope is 1, which allows a program to read its own children only: set it to 0 \
                 (sysctl kernel.yama.ptrace_scope=0), {HELP}"
            );
        }
        let filter = if self.is_filtered { "a seccomp filter (a container's) or " } else { "" };
        format!("{filter}a security module (SELinux, AppArmor) forbids it: {HELP}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(user: u32, capabilities: u64) -> Status {
        Status { users: vec![user; 4], capabilities, ..Status::default() }
    }

    #[test]
    fn each_obstacle_is_named_with_what_would_help() {
        let plain = Situation { caller: status(1000, 0), target: status(1000, 0), ..Situation::default() };
        let root = status(0, Status::PTRACE_CAPABILITY);
        for (situation, words) in [
            (Situation { yama: Some(3), caller: root.clone(), ..plain.clone() }, "ptrace_scope is 3"),
            (Situation { yama: Some(2), ..plain.clone() }, "ptrace_scope is 2"),
            (Situation { yama: Some(1), ..plain.clone() }, "sysctl kernel.yama.ptrace_scope=0"),
            (
                Situation { yama: Some(1), target: status(0, 1), ..plain.clone() },
                "as user 0 and this program as user 1000",
            ),
            (Situation { is_undumpable: true, ..plain.clone() }, "PR_SET_DUMPABLE"),
            (
                Situation { target: status(1000, 2), ..plain.clone() },
                "has capabilities that this program lacks",
            ),
            (Situation { caller: root, is_filtered: true, ..plain.clone() }, "seccomp filter"),
            (plain, "a security module"),
        ] {
            let told = situation.explain();
            assert!(told.contains(words), "{words}: {told}");
        }
    }
}
