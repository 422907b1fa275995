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
            b"runtime.goexit" => RuntimeFunction::Outermost,
            b"runtime.rt0_go" | b"runtime.mstart" => RuntimeFunction::Top,
            b"runtime.sigpanic"
            | b"runtime.asyncPreempt"
            | b"runtime.debugCallV1"
            | b"runtime.debugCallV2" => RuntimeFunction::Injected,
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
