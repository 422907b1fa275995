//! backtrail's walk.

use crate::images::Mapped;
use crate::{State, Walker};
use backtrail_core::{
    AddrRange, Arch, Avma, Bias, Family, ReadMemory, Register, Registers, Svma, Unreadable,
};
use backtrail_unwind::{
    Cache, FramePointers, Module, ModuleMap, Options, PlacedModule, Recover, Section, Sections, Walk,
};
use std::time::Instant;

/// This thread's stack, read where it lies.
struct OwnStack {
    start: u64,
    end: u64,
}

impl ReadMemory for OwnStack {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        let inside = address.get() >= self.start && address.get() <= self.end - buf.len() as u64;
        if !inside {
            return Err(Unreadable { address });
        }
        // SAFETY: the bounds are those of the stack.
        unsafe { std::ptr::copy_nonoverlapping(address.get() as *const u8, buf.as_mut_ptr(), buf.len()) };
        Ok(())
    }

    #[inline]
    fn read_u64(&self, address: Avma) -> Result<u64, Unreadable> {
        if address.get() < self.start || address.get() > self.end - 8 {
            return Err(Unreadable { address });
        }
        // SAFETY: the bounds are those of the stack.
        Ok(unsafe { (address.get() as *const u64).read_unaligned() })
    }
}

fn sections(mapped: &Mapped) -> Sections<'static> {
    let section = |name| mapped.section(name).map(|(at, data)| Section::new(Svma::new(at), data));
    Sections {
        arch: Some(Arch::X86_64),
        image_base: Svma::new(mapped.base_svma),
        eh_frame_hdr: section(".eh_frame_hdr"),
        eh_frame: section(".eh_frame"),
        text: mapped.text().into_iter().map(|(at, data)| Section::new(Svma::new(at), data)).collect(),
        ..Sections::default()
    }
}

pub struct Ours {
    name: &'static str,
    images: ModuleMap<'static>,
    cache: Cache,
    memory: OwnStack,
    has_cache: bool,
    recover: Recover,
}

impl Ours {
    pub fn new(mapped: &[Mapped], compiled: bool, recover: Recover, name: &'static str) -> Self {
        let images = mapped.iter().map(|mapped| {
            let module: &'static Module<'static> = Box::leak(Box::new(Module::new(sections(mapped))));
            let range = AddrRange::new(Avma::new(mapped.start), Avma::new(mapped.end));
            let bias = Bias::between(Avma::new(mapped.start), Svma::new(mapped.base_svma));
            if compiled {
                PlacedModule::compiled(range, bias, Box::leak(Box::new(module.compile())))
            } else {
                PlacedModule::new(range, bias, module)
            }
        });
        let images: Vec<PlacedModule<'static>> = images.collect();
        let (start, end) = stack();
        Self {
            name,
            images: ModuleMap::new(images.leak()),
            cache: Cache::new(),
            memory: OwnStack { start, end },
            has_cache: compiled,
            recover,
        }
    }
}

fn stack() -> (u64, u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let (start, end) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    (number(start), number(end))
}

fn registers(state: &State) -> Registers {
    let mut registers = Registers::new(Family::X86_64);
    for (number, value) in [
        (16, state.rip),
        (7, state.rsp),
        (6, state.rbp),
        (3, state.rbx),
        (12, state.r12),
        (13, state.r13),
        (14, state.r14),
        (15, state.r15),
    ] {
        registers.set(Register(number), value);
    }
    registers
}

/// The chain of frame pointers.
pub struct Chain(OwnStack);

impl Chain {
    pub fn new() -> Self {
        let (start, end) = stack();
        Self(OwnStack { start, end })
    }
}

impl Walker for Chain {
    fn name(&self) -> &'static str {
        "backtrail, FramePointers alone"
    }

    fn walk(&mut self, state: &State, _: bool) -> usize {
        let mut count = 0;
        for frame in FramePointers::new(&registers(state), &self.0, 1 << 20) {
            count += usize::from(std::hint::black_box(frame.stack_pointer).get() != 0);
        }
        count
    }

    fn remembers(&self) -> bool {
        false
    }
}

impl Walker for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn walk(&mut self, state: &State, forget: bool) -> usize {
        let options = Options { recover: self.recover, ..Options::default() };
        let mut walk = Walk::new(registers(state), &self.memory, self.images, options);
        if self.has_cache && !forget {
            walk = walk.with_cache(&mut self.cache);
        }
        let mut count = 0;
        walk.each(|frame| {
            count += usize::from(std::hint::black_box(frame.stack_pointer).get() != 0);
            true
        });
        count
    }

    fn remembers(&self) -> bool {
        self.has_cache
    }
}

/// What compiling costs, for the images here and for those named on the command line.
pub fn print_build(images: &[Mapped]) {
    println!("| image | eh_frame | open | compile | rows | rules | memory |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for mapped in images {
        let Some((_, bytes)) = mapped.section(".eh_frame") else { continue };
        let start = Instant::now();
        let module = Module::new(sections(mapped));
        let opened = start.elapsed();
        let start = Instant::now();
        let rules = module.compile();
        let compiled = start.elapsed();
        let size = rules.size();
        let name = mapped.path.rsplit('/').next().unwrap_or_default();
        println!(
            "| {name} | {} KB | {:.2} ms | {:.2} ms | {} | {} | {} KB |",
            bytes.len() / 1000,
            opened.as_secs_f64() * 1e3,
            compiled.as_secs_f64() * 1e3,
            size.rows,
            size.rules,
            size.bytes / 1000
        );
    }
}
