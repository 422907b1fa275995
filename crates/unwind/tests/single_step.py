"""Runs a static x86_64 program instruction by instruction and tells at each what only the processor knows: to where
every call that was made has yet to return. Usage: single_step.py PROGRAM START STEPS SKIP > records

From the first time that the program counter is START, each instruction but for SKIP between gives one record, as
little-endian 64-bit numbers: 17 registers in DWARF's order; the count of calls; for each call, innermost first, its
return address and six registers at its entry (rbx, rbp, r12 to r15); the count of stack bytes; the bytes.
"""

import ctypes
import os
import struct
import sys

TRACEME, CONT, SINGLESTEP, GETREGS = 0, 7, 9, 12
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long

NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
         "ds es fs gs").split()
DWARF = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
SAVED = "rbx rbp r12 r13 r14 r15".split()


def main():
    program, start, steps, skip = sys.argv[1], int(sys.argv[2], 0), int(sys.argv[3]), int(sys.argv[4])
    child = os.fork()
    if child == 0:
        libc.ptrace(TRACEME, 0, None, None)
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 1)
        os.execv(program, [program])
    os.waitpid(child, 0)
    memory = os.open(f"/proc/{child}/mem", os.O_RDONLY)
    top = stack_end(child)
    buffer = (ctypes.c_ulonglong * 27)()
    calls = []
    last_ip = last_sp = 0
    started = False
    count = 0
    while steps:
        libc.ptrace(GETREGS, child, None, ctypes.addressof(buffer))
        registers = dict(zip(NAMES, buffer))
        ip, sp = registers["rip"], registers["rsp"]
        while calls and calls[-1][0] < sp:
            calls.pop()
        if sp == last_sp - 8 and last_ip:
            (word,) = struct.unpack("<Q", os.pread(memory, 8, sp))
            # A call pushes the address behind itself; a push of that very address would be odd.
            if 2 <= word - last_ip <= 7 and is_call(os.pread(memory, word - last_ip, last_ip)):
                calls.append((sp, word, [registers[name] for name in SAVED]))
        started = started or ip == start
        if started:
            count += 1
            if count % (skip + 1) == 0:
                record(memory, registers, calls, min(top, sp + 65536))
                steps -= 1
        last_ip, last_sp = ip, sp
        libc.ptrace(SINGLESTEP, child, None, None)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return
    os.kill(child, 9)


def is_call(code):
    code = code.lstrip(b"\x40\x41\x42\x43\x48\x49\x3e\x2e\xf2\x67")
    return code[:1] == b"\xe8" or (code[:1] == b"\xff" and code[1] & 0x38 == 0x10)


def stack_end(child):
    with open(f"/proc/{child}/maps") as maps:
        for line in maps:
            if "[stack]" in line:
                return int(line.split()[0].split("-")[1], 16)
    raise SystemExit("no stack")


def record(memory, registers, calls, end):
    numbers = [registers[name] for name in DWARF] + [len(calls)]
    for _, address, saved in reversed(calls):
        numbers += [address, *saved]
    # The red zone lies below the stack pointer.
    bottom = registers["rsp"] - 128
    stack = os.pread(memory, end - bottom, bottom)
    numbers.append(len(stack))
    sys.stdout.buffer.write(struct.pack(f"<{len(numbers)}Q", *numbers) + stack)


main()
