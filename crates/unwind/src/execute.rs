//! Applying a row to a frame's registers: what makes them the caller's.

use crate::expression::{Context, evaluate};
use crate::failure::Failure;
use crate::row::{Cfa, Expression, Row, Rule};
use backtrail_core::{Avma, Bias, Family, ReadMemory, Register, Registers};

/// The caller's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// All registers that are known, the stack pointer among them; the program counter is still the callee's.
    pub(crate) registers: Registers,
    /// The program counter as found, with every bit it had. `None` where the row says that there is none.
    pub(crate) return_address: Option<Avma>,
    /// See [`Frame::bytecode`](crate::Frame::bytecode).
    pub(crate) bytecode: Option<Avma>,
}

/// Where aarch64's resolver of procedure linkage tables finds its return address.
pub(crate) const ABOVE_CFA: Rule = Rule::Offset(8);

/// How Android's runtime marks the rule that gives an interpreter's bytecode address: `DW_OP_const4u "DEX1"`,
/// `DW_OP_drop`, then the expression itself.
const BYTECODE_MARK: [u8; 6] = [0x0c, b'D', b'E', b'X', b'1', 0x13];

/// Applies `row`. The CFA and the return address must be found; a register whose place cannot be read is forgotten,
/// since most frames further out need it no more.
pub(crate) fn apply<'d, M: ReadMemory + ?Sized>(
    row: &Row,
    registers: &Registers,
    memory: &M,
    bias: Bias,
    bytes_of: impl Fn(Expression) -> Option<&'d [u8]>,
) -> Result<Caller, Failure> {
    let frame = Frame { registers, memory, bias, bytes_of };
    let cfa = frame.cfa(row.cfa)?;
    let family = registers.family();
    let mut caller = Caller { registers: *registers, return_address: None, bytecode: None };
    caller.registers.set(family.sp(), cfa);
    for (register, rule) in row.rules() {
        if register == family.pc() {
            continue;
        }
        if let Rule::ValueExpression(expression) = rule {
            let bytes = (frame.bytes_of)(expression).unwrap_or_default();
            if bytes.starts_with(&BYTECODE_MARK) {
                caller.bytecode = frame.value(rule, register, cfa).ok().flatten().map(Avma::new);
            }
        }
        match frame.value(rule, register, cfa) {
            Ok(Some(value)) => caller.registers.set(register, value),
            Ok(None) | Err(_) => caller.registers.clear(register),
        }
    }
    let found = frame.value(row.return_address, family.pc(), cfa)?;
    caller.return_address = found.map(Avma::new);
    if frame.was_thumb(row, cfa) {
        caller.return_address = found.map(|address| Avma::new(address | 1));
    }
    if let Some(sp) = frame.above_return_address(row, cfa) {
        caller.registers.set(family.sp(), sp);
    }
    Ok(caller)
}

struct Frame<'a, M: ?Sized, B> {
    registers: &'a Registers,
    memory: &'a M,
    bias: Bias,
    bytes_of: B,
}

impl<'d, M: ReadMemory + ?Sized, B: Fn(Expression) -> Option<&'d [u8]>> Frame<'_, M, B> {
    fn known(&self, register: Register) -> Result<u64, Failure> {
        self.registers.get(register).ok_or(Failure::MissingRegister(register, self.registers.family()))
    }

    fn cfa(&self, cfa: Cfa) -> Result<u64, Failure> {
        let value = match cfa {
            Cfa::RegisterOffset(register, offset) => self.known(register)?.wrapping_add_signed(offset.into()),
            Cfa::Expression(expression) => self.evaluate(expression, None)?,
        };
        Ok(self.wrap(value))
    }

    /// Whether a signal interrupted Thumb code: in `sigcontext` the status register follows the program counter
    /// (`arch/arm/include/uapi/asm/sigcontext.h`), and its bit 5 says so.
    fn was_thumb(&self, row: &Row, cfa: u64) -> bool {
        const THUMB: u64 = 1 << 5;
        let Rule::Offset(at) = row.return_address else { return false };
        let is_arm = self.registers.family() == Family::Arm && row.is_signal_frame;
        let status = cfa.wrapping_add_signed(i64::from(at) + 4);
        is_arm && matches!(self.load(status), Ok(Some(status)) if status & THUMB != 0)
    }

    /// The first entry of a procedure linkage table for aarch64 begins with `stp x16, x30, [sp, #-16]!` and jumps to
    /// the resolver, whose table counts from behind that: it states the return address 8 bytes above its CFA (glibc's
    /// `_dl_runtime_resolve`). The caller's stack pointer lies above the pair. Nothing of a function's own lies above its
    /// CFA, so that no other code says so.
    fn above_return_address(&self, row: &Row, cfa: u64) -> Option<u64> {
        let family = self.registers.family();
        let is_behind_stub = family == Family::Aarch64
            && row.return_address == ABOVE_CFA
            && row.rule(family.sp()) == Rule::Same
            && !row.is_signal_frame;
        if is_behind_stub { cfa.checked_add(16) } else { None }
    }

    fn wrap(&self, address: u64) -> u64 {
        if self.registers.family().word_size() == 4 { address & 0xffff_ffff } else { address }
    }

    fn evaluate(&self, expression: Expression, cfa: Option<u64>) -> Result<u64, Failure> {
        let context = Context { registers: self.registers, memory: self.memory, bias: self.bias, cfa };
        let bytes = (self.bytes_of)(expression).unwrap_or_default();
        evaluate(bytes, &context).map_err(Failure::Expression)
    }

    fn load(&self, address: u64) -> Result<Option<u64>, Failure> {
        let size = self.registers.family().word_size();
        let value = self.memory.read_pointer(Avma::new(self.wrap(address)), size);
        value.map(Some).map_err(Failure::Unreadable)
    }

    /// The register's value in the caller; `None` where it is lost.
    fn value(&self, rule: Rule, register: Register, cfa: u64) -> Result<Option<u64>, Failure> {
        match rule {
            Rule::Same => self.known(register).map(Some),
            Rule::Undefined => Ok(None),
            Rule::Offset(offset) => self.load(cfa.wrapping_add_signed(offset.into())),
            Rule::ValueOffset(offset) => Ok(Some(self.wrap(cfa.wrapping_add_signed(offset.into())))),
            Rule::Register(from) => self.known(from).map(Some),
            Rule::Expression(expression) => self.load(self.evaluate(expression, Some(cfa))?),
            Rule::ValueExpression(expression) => self.evaluate(expression, Some(cfa)).map(Some),
        }
    }
}
