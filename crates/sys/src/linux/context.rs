//! What a signal handler is told of the code that it interrupted.

use crate::FAMILY;
use backtrail_core::{Register, Registers};
use std::ffi::c_void;

/// Has the processor take misaligned accesses, as all compiled code expects. x86 refuses them where a program has set the flag AC, which the
/// kernel leaves as it is when it calls a handler. Where the handler returns, the flag is as before. Linux, `handle_signal`.
///
/// # Signal safety
///
/// Safe.
#[inline(always)]
pub(super) fn allow_misaligned() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: changes this one flag.
    unsafe {
        std::arch::asm!("pushfq", "and qword ptr [rsp], {without}", "popfq", without = const !0x4_0000_i32);
    }
}

/// The registers in a signal handler's third argument, `ucontext_t`.
///
/// # Safety
///
/// `context` points to a `ucontext_t` that the kernel or `getcontext` filled in.
///
/// # Signal safety
///
/// Safe: it only reads.
pub(super) unsafe fn registers_of(context: *const c_void) -> Registers {
    // SAFETY: the caller's promise.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let mut registers = Registers::new(FAMILY);
    fill(&mut registers, &context.uc_mcontext);
    registers
}

/// glibc numbers the words of `gregs` as the kernel's `sigcontext` has them, DWARF otherwise: the list is by DWARF
/// number.
#[cfg(target_arch = "x86_64")]
fn fill(registers: &mut Registers, machine: &libc::mcontext_t) {
    use libc::{REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    use libc::{REG_RAX, REG_RBP, REG_RBX, REG_RCX, REG_RDI, REG_RDX, REG_RIP, REG_RSI, REG_RSP};
    let order = [
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10,
        REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
    ];
    for (number, place) in (0..).zip(order) {
        if let Some(value) = usize::try_from(place).ok().and_then(|place| machine.gregs.get(place)) {
            registers.set(Register(number), value.cast_unsigned());
        }
    }
}

#[cfg(target_arch = "x86")]
fn fill(registers: &mut Registers, machine: &libc::mcontext_t) {
    use libc::{REG_EAX, REG_EBP, REG_EBX, REG_ECX, REG_EDI, REG_EDX, REG_EIP, REG_ESI, REG_ESP};
    let order = [REG_EAX, REG_ECX, REG_EDX, REG_EBX, REG_ESP, REG_EBP, REG_ESI, REG_EDI, REG_EIP];
    for (number, place) in (0..).zip(order) {
        if let Some(value) = usize::try_from(place).ok().and_then(|place| machine.gregs.get(place)) {
            registers.set(Register(number), value.cast_unsigned().into());
        }
    }
}

#[cfg(target_arch = "aarch64")]
fn fill(registers: &mut Registers, machine: &libc::mcontext_t) {
    for (number, value) in (0..).zip(machine.regs) {
        registers.set(Register(number), value);
    }
    registers.set(Register(31), machine.sp);
    registers.set(Register(32), machine.pc);
}

/// The status register's bit 5 tells Thumb code; unwinding has it as the lowest bit of the program counter. ARM ARM,
/// "Program status registers".
#[cfg(target_arch = "arm")]
fn fill(registers: &mut Registers, machine: &libc::mcontext_t) {
    let thumb = (machine.arm_cpsr >> 5) & 1;
    let values = [
        machine.arm_r0,
        machine.arm_r1,
        machine.arm_r2,
        machine.arm_r3,
        machine.arm_r4,
        machine.arm_r5,
        machine.arm_r6,
        machine.arm_r7,
        machine.arm_r8,
        machine.arm_r9,
        machine.arm_r10,
        machine.arm_fp,
        machine.arm_ip,
        machine.arm_sp,
        machine.arm_lr,
        machine.arm_pc | thumb,
    ];
    for (number, value) in (0..).zip(values) {
        registers.set(Register(number), value.into());
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", target_arch = "arm")))]
fn fill(_: &mut Registers, _: &libc::mcontext_t) {}
