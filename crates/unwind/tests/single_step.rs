//! Every instruction of a running program: the walk from it must name the calls that were really made, all of them
//! and nothing else, and give the caller's registers back.
//!
//! Needs a C compiler, Python and ptrace; without one of them the test says so and passes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's helpers may"
)]

mod common;

use backtrail_core::{AddrRange, Avma, Bias, Family, MemorySlice, Register, Registers};
use backtrail_unwind::{Module, ModuleMap, Options, PlacedModule, Walk, WalkEnd};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Recursion, many arguments, large frames, aligned frames, `alloca`, tail calls, function pointers, libc's assembly.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <alloca.h>
#include <setjmp.h>
static jmp_buf back;
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int large(int n) { volatile char room[5000]; room[n] = (char)n; return room[n] + fib(3); }
__attribute__((noinline)) int aligned(int n) {
    volatile __attribute__((aligned(64))) char room[128]; room[n] = 1; return room[n] + fib(2);
}
__attribute__((noinline)) int variable(int n) {
    char *room = alloca(n); memset(room, n, n); return room[n / 2] + fib(2);
}
__attribute__((noinline)) int tail(int n) { return n > 50 ? fib(n - 50) : fib(n); }
__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h) {
    int x = fib(a % 3), y = fib(b % 3), z = fib(c % 3);
    return x * y + z + d * e + f * g + h + fib(h % 2);
}
__attribute__((noinline)) void leap(int n) { if (n == 0) longjmp(back, 1); leap(n - 1); }
int main(void) {
    int numbers[40]; char text[200];
    for (int i = 0; i < 40; i++) numbers[i] = (i * 7919) % 101;
    qsort(numbers, 40, sizeof *numbers, order);
    int sum = large(17) + aligned(3) + variable(100) + tail(5) + many(1, 2, 3, 4, 5, 6, 7, 8);
    if (!setjmp(back)) leap(3);
    snprintf(text, sizeof text, "%d %s %f %p", sum, "text", sum / 3.0, (void *)numbers);
    char *copy = strdup(text); sum += (int)strlen(copy); free(copy);
    double d = strtod("12.5e3", NULL);
    printf("%d %g\n", sum, d);
    return 0;
}
"#;

const BUILDS: [&[&str]; 5] = [
    &["-O2"],
    &["-O0"],
    &["-Os", "-fno-omit-frame-pointer"],
    &["-O3", "-fcf-protection=full"],
    // No tables for the program's own functions; the C library keeps its own.
    &["-O1", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
];

#[test]
fn every_instruction_knows_its_callers() {
    let directory = backtrail_testkit::TempDir::new("single-step");
    let source = directory.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut faults = 0;
    for (number, flags) in BUILDS.iter().enumerate() {
        let program = directory.path().join(format!("program{number}"));
        let mut compiler = Command::new("cc");
        compiler.args(["-static", "-no-pie", "-w"]).args(*flags).arg("-o").args([&program, &source]);
        if !cfg!(target_arch = "x86_64") || !compiler.status().is_ok_and(|status| status.success()) {
            println!("no C compiler for static x86_64 programs: skipped");
            return;
        }
        let tally = follow(&program);
        println!("{flags:?}: {} instructions, {} frames", tally.instructions, tally.frames);
        if tally.instructions == 0 {
            println!("nothing could be traced: skipped");
            return;
        }
        let shown = tally.faults.iter().take(30).cloned().collect::<Vec<_>>().join("\n");
        faults += tally.faults.len();
        println!("{} wrong\n{shown}", tally.faults.len());
    }
    assert_eq!(faults, 0);
}

#[derive(Default)]
struct Tally {
    instructions: u64,
    frames: u64,
    faults: Vec<String>,
}

fn follow(program: &Path) -> Tally {
    let data = std::fs::read(program).unwrap();
    let module = Module::new(common::sections(&data));
    let rules = module.compile();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/single_step.py");
    let start = common::symbol(&data, "main").unwrap();
    let steps = std::env::var("BACKTRAIL_STEPS").unwrap_or_else(|_| "6000".to_owned());
    let mut child = Command::new("python3")
        .arg(script)
        .arg(program)
        .args([start.to_string().as_str(), &steps, "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut records = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut records).unwrap();
    child.wait().unwrap();
    let mut tally = Tally::default();
    let mut rest = records.as_slice();
    let range = AddrRange::new(Avma::new(0x40_0000), Avma::new(0x100_0000));
    let mut images =
        [PlacedModule { rules: Some(&rules), ..PlacedModule::new(range, Bias::default(), &module) }];
    let images = ModuleMap::new(&mut images);
    // The C library's table for the end of `longjmp` already tells of the frame that is leapt to.
    let leap = common::symbol(&data, "__longjmp").map_or(0..0, |start| start..start + 0x60);
    while !rest.is_empty() {
        check(&mut rest, images, &leap, &mut tally);
    }
    tally
}

fn number(rest: &mut &[u8]) -> u64 {
    let (first, behind) = rest.split_first_chunk().unwrap();
    *rest = behind;
    u64::from_le_bytes(*first)
}

fn check(rest: &mut &[u8], images: ModuleMap<'_>, leap: &std::ops::Range<u64>, tally: &mut Tally) {
    let mut registers = Registers::new(Family::X86_64);
    for register in 0..17 {
        registers.set(Register(register), number(rest));
    }
    let count = number(rest);
    let calls: Vec<[u64; 7]> = (0..count).map(|_| core::array::from_fn(|_| number(rest))).collect();
    let size = usize::try_from(number(rest)).unwrap();
    let (stack, behind) = rest.split_at(size);
    *rest = behind;
    let memory = MemorySlice::new(Avma::new(registers.sp().unwrap().get() - 128), stack);
    let mut walk = Walk::new(registers, &memory, images, Options::default());
    walk.step();
    let pc = registers.pc().unwrap();
    if leap.contains(&pc.get()) {
        return;
    }
    tally.instructions += 1;
    for (depth, [address, saved @ ..]) in calls.iter().enumerate() {
        let Some(frame) = walk.next() else {
            tally.faults.push(format!("{pc}: ends after {depth} of {count}: {:?}", walk.ended()));
            return;
        };
        tally.frames += 1;
        if frame.address.raw().get() != *address {
            tally.faults.push(format!("{pc}: caller {depth} is {address:#x}, not {frame:x?}"));
            return;
        }
        let known = [3, 6, 12, 13, 14, 15].map(|register| walk.registers().get(Register(register)));
        let wrong = known.iter().zip(saved).any(|(known, saved)| known.is_some_and(|known| known != *saved));
        if wrong {
            tally.faults.push(format!("{pc}: caller {depth} has {known:x?}, not {saved:x?}"));
            return;
        }
    }
    if let Some(frame) = walk.next() {
        tally.faults.push(format!("{pc}: a frame too many: {frame:x?}"));
    } else if !matches!(walk.ended(), Some(WalkEnd::EndOfStack(_))) {
        tally.faults.push(format!("{pc}: {:?}", walk.ended()));
    }
}
