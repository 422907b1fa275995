//! Go's table as what unwinding asks of it.

use backtrail_core::{Family, Register, Svma};
use backtrail_object::{GoFunction, GoTable};
use backtrail_unwind::{RuntimeFrame, RuntimeFunction, RuntimeTable};

/// `r12` of x86_64, as DWARF numbers it.
const R12: Register = Register(12);

/// Go's table of one image.
#[derive(Debug)]
pub(crate) struct GoFrames<'d> {
    table: GoTable<'d>,
    family: Family,
}

impl<'d> GoFrames<'d> {
    pub(crate) fn new(table: GoTable<'d>, family: Family) -> Self {
        Self { table, family }
    }

    /// What Go's own tracebacks treat in a way of their own. Names tell more than the numbers in the table (`funcID`), which
    /// mean other functions in each version.
    fn kind(&self, function: &GoFunction<'_>) -> RuntimeFunction {
        let name = function.name().unwrap_or_default();
        match name.strip_suffix(b".abi0").unwrap_or(name) {
            name if is_injected(name) => RuntimeFunction::Injected,
            b"runtime.goexit" => RuntimeFunction::Outermost,
            b"runtime.rt0_go" | b"runtime.mstart" => RuntimeFunction::Top,
            b"runtime.systemstack" | b"runtime.asmcgocall" => RuntimeFunction::Switch,
            b"runtime.mcall" | b"runtime.morestack" | b"runtime.gogo" => RuntimeFunction::Leave,
            // Where it switches, both stacks have its frame.
            b"runtime.cgocallback" | b"runtime.cgocallback_gofunc" => RuntimeFunction::Plain,
            b"runtime.walltime"
            | b"runtime.walltime1"
            | b"runtime.nanotime1"
            | b"time.now"
            | b"runtime.vgetrandom1"
                if self.family == Family::X86_64 =>
            {
                RuntimeFunction::Saved(R12)
            }
            _ if function.is_top_frame() => RuntimeFunction::Top,
            _ if function.writes_stack_pointer() => RuntimeFunction::Unknown,
            _ => RuntimeFunction::Plain,
        }
    }
}

/// Functions that a signal's handler makes an interrupted function look as if it had called them. Where a fault is at
/// hand, that is `sigpanic0` since Go 1.17, which goes on to `sigpanic`.
fn is_injected(name: &[u8]) -> bool {
    matches!(
        name,
        b"runtime.sigpanic"
            | b"runtime.sigpanic0"
            | b"runtime.asyncPreempt"
            | b"runtime.debugCallV1"
            | b"runtime.debugCallV2"
    )
}

impl RuntimeTable for GoFrames<'_> {
    fn frame_at(&self, at: Svma) -> Option<RuntimeFrame> {
        let function = self.table.function_at(at)?;
        let (covered, depth) = function.depth_at(at)?;
        let kind = self.kind(&function);
        Some(RuntimeFrame { covered, function: function.addresses().start(), depth, kind })
    }

    fn each(&self, give: &mut dyn FnMut(RuntimeFrame)) {
        for function in self.table.functions() {
            let (kind, start) = (self.kind(&function), function.addresses().start());
            for (covered, depth) in function.depths() {
                give(RuntimeFrame { covered, function: start, depth, kind });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_injected;

    #[test]
    fn what_a_fault_is_sent_to_was_not_called() {
        // Seen of Go 1.25: a thread at the first instruction of `sigpanic0`, which the handler has just put there.
        assert!(is_injected(b"runtime.sigpanic0") && is_injected(b"runtime.sigpanic"));
        assert!(!is_injected(b"runtime.panicmem") && !is_injected(b"runtime.asyncPreempt2"));
    }
}
