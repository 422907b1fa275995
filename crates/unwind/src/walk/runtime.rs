//! Functions that a language's runtime treats in a way of its own: its tables say which they are.
//!
//! Go runs some functions on a thread's own stack and returns to the goroutine's, leaves a goroutine's stack for good, and
//! makes interrupted code look as if it had made a call.

use super::tables::Expressions;
use super::{End, Failure, Here, Next, Site, Walk};
use crate::execute;
use crate::image::PlacedModule;
use crate::row::{Cfa, CoveredRow, Rule};
use crate::runtime::{RuntimeFrame, RuntimeFunction};
use backtrail_core::{Avma, Family, FrameAddress, ReadMemory, Register, Registers, Trust};

type Stepped = Result<Result<Next, End>, Failure>;

/// How many words below a goroutine's frame pointer the return address of a call that switched stacks is looked for:
/// the largest frame that is.
const MAX_FRAME_WORDS: u64 = 4096;

/// `r12` keeps the stack pointer over calls of the kernel's library; before Go 1.14, `rbp` did.
const OLD_STACK_POINTER: Register = Register(6);

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// Whether an address can be a caller's of a function that a runtime's table knows: behind a call, where a function
    /// starts, or where a goroutine's first function is entered in its midst. Others are left over from something else: of
    /// a stack that was read while its thread ran.
    pub(super) fn is_runtimes_caller(&self, address: FrameAddress) -> bool {
        let FrameAddress::Return(raw) = address else { return true };
        let is_first =
            || self.runtime_frame_of(raw).is_some_and(|frame| frame.kind == RuntimeFunction::Outermost);
        self.is_return_address(raw)
            || is_first()
            || self.is_signal_return(raw, self.registers.sp().unwrap_or_default())
    }

    /// The step from a function that a runtime's table knows, where the row of its depth alone does not do.
    pub(super) fn by_runtime(&self, here: &Here, site: &Site<'a>) -> Option<Stepped> {
        let (image, at) = site.image.zip(site.svma)?;
        let frame = image.runtime_frame(at)?;
        let left = || Ok(Err(End::StackSwitch));
        match frame.kind {
            RuntimeFunction::Plain if !site.is_exact => None,
            RuntimeFunction::Plain => Some(self.by_depth(here, image, &frame)),
            RuntimeFunction::Outermost => Some(Ok(Err(End::ThreadStart))),
            RuntimeFunction::Top => Some(Ok(self.by_foreign_caller(here, image, &frame))),
            RuntimeFunction::Injected => Some(self.by_injected_call(here, image, &frame)),
            // Whether the stack pointer was changed before the instruction, or is back, is told by what lies there.
            _ if site.is_exact => {
                Some(self.by_call_to(here, image, &frame).map_or_else(left, |next| Ok(Ok(next))))
            }
            RuntimeFunction::Switch => {
                let next = self.by_frame_pointer_of_switch(image, &frame);
                let next = next.or_else(|| self.by_saved_goroutine(here, image, &frame));
                Some(next.map_or_else(left, |next| Ok(Ok(next))))
            }
            RuntimeFunction::Saved(register) => {
                let registers = [register, OLD_STACK_POINTER].into_iter();
                let mut next = registers.filter_map(|base| self.by_saved_pointer(here, image, &frame, base));
                Some(next.next().map_or_else(left, |next| Ok(Ok(next))))
            }
            RuntimeFunction::Leave | RuntimeFunction::Unknown => Some(left()),
        }
    }

    /// By the depth. Within a function's first instructions the frame pointer is not saved yet: where it is, the register
    /// holds that place.
    fn by_depth(&self, here: &Here, image: &PlacedModule<'a>, frame: &RuntimeFrame) -> Stepped {
        let family = self.registers.family();
        let found = frame.found(family).ok_or(Failure::NoRules(here.address.raw()))?;
        self.by_row(here, image, &self.without_unsaved_frame_pointer(&found), Expressions::None)
    }

    /// The address that the signal's handler has pushed is where the caller was interrupted, wherever that is in code.
    fn by_injected_call(&self, here: &Here, image: &PlacedModule<'a>, frame: &RuntimeFrame) -> Stepped {
        let found = frame.found(self.registers.family()).ok_or(Failure::NoRules(here.address.raw()))?;
        let found = CoveredRow { trust: Trust::Cfi, ..self.without_unsaved_frame_pointer(&found) };
        let stepped = self.by_row(here, image, &found, Expressions::None)?;
        let trust = Trust::RuntimeTable;
        Ok(stepped.map(|next| {
            let registers = self.without_injected_link(next.registers);
            Next { address: FrameAddress::Exact(next.address.raw()), registers, trust, ..next }
        }))
    }

    /// With a link register, the handler has pushed that of the interrupted function before it faked the call: a word, and
    /// on arm64 another one for the stack's alignment (`sighandler`'s `preparePanic` in `src/runtime/signal_arm64.go`).
    fn without_injected_link(&self, mut registers: Registers) -> Registers {
        let family = registers.family();
        let (Some(lr), Some(sp)) = (family.lr(), registers.sp()) else { return registers };
        let words = if family == Family::Aarch64 { 2 } else { 1 };
        match self.memory.read_pointer(sp, family.word_size()) {
            Ok(link) => registers.set(lr, link),
            Err(_) => registers.clear(lr),
        }
        registers.set(family.sp(), sp.get().wrapping_add(words * u64::from(family.word_size())));
        registers
    }

    fn without_unsaved_frame_pointer(&self, found: &CoveredRow) -> CoveredRow {
        let family = self.registers.family();
        let mut found = *found;
        let Cfa::RegisterOffset(base, offset) = found.row.cfa else { return found };
        let cfa = self.registers.get(base).map(|base| base.wrapping_add_signed(offset.into()));
        if let (Rule::Offset(saved), Some(cfa), Some(fp)) =
            (found.row.rule(family.fp()), cfa, self.registers.fp())
            && fp.get() != cfa.wrapping_add_signed(saved.into())
        {
            found.row.set(family.fp(), Rule::Same);
        }
        found
    }

    /// The same where the caller must have called this very function.
    fn by_call_to(&self, here: &Here, image: &PlacedModule<'a>, frame: &RuntimeFrame) -> Option<Next> {
        let next = self.by_depth(here, image, frame).ok()?.ok()?;
        self.is_return_address(next.address.raw()).then_some(next)
    }

    /// C's threads and the kernel call the first functions of stacks, of which the table says that nothing does.
    fn by_foreign_caller(
        &self,
        here: &Here,
        image: &PlacedModule<'a>,
        frame: &RuntimeFrame,
    ) -> Result<Next, End> {
        let next = self.by_depth(here, image, frame).ok().and_then(Result::ok).ok_or(End::ThreadStart)?;
        let address = next.address.raw();
        let above = next.registers.sp().unwrap_or_default();
        let is_own = self.runtime_frame_of(address).is_some();
        let is_called = self.is_signal_return(address, above) || !is_own && self.is_return_address(address);
        if is_called { Ok(next) } else { Err(End::ThreadStart) }
    }

    /// What a runtime's table says of the call before an address.
    fn runtime_frame_of(&self, address: Avma) -> Option<RuntimeFrame> {
        let call = address.checked_sub(1)?;
        let image = self.images.at(call)?;
        image.runtime_frame(image.bias.to_svma(call)?)
    }

    /// Back over a switch by the goroutine's frame pointer, which everything on the thread's stack gives back. It belongs to
    /// the function itself, if that makes a frame, or else to its caller: then the return address is as far below as the
    /// caller's depth says.
    fn by_frame_pointer_of_switch(&self, image: &PlacedModule<'a>, frame: &RuntimeFrame) -> Option<Next> {
        const WORD: u64 = 8;
        if self.registers.family() != Family::X86_64 {
            return None;
        }
        let fp = self.registers.fp()?;
        let function = image.bias.to_avma(frame.function)?;
        let word = |at: u64| self.memory.read_u64(Avma::new(at)).ok();
        let behind = word(fp.get().checked_add(WORD)?)?;
        if self.is_call_of(Avma::new(behind), function) {
            return self.behind_switch(fp.get().checked_add(2 * WORD)?, Avma::new(word(fp.get())?), behind);
        }
        let places =
            (0..MAX_FRAME_WORDS).map_while(|index| Some((index * WORD, fp.get().checked_sub(index * WORD)?)));
        for (depth, place) in places {
            let address = word(place)?;
            let is_in_image =
                address.checked_sub(1).is_some_and(|call| image.range.contains(Avma::new(call)));
            if is_in_image
                && self.is_call_of(Avma::new(address), function)
                && self.runtime_frame_of(Avma::new(address))?.depth.try_into() == Ok(depth)
            {
                return self.behind_switch(place.checked_add(WORD)?, fp, address);
            }
        }
        None
    }

    /// Back by what `runtime.asmcgocall` keeps at the lower end of its frame: the goroutine, and how far below that
    /// goroutine's upper end its stack pointer was. The places differ between versions.
    fn by_saved_goroutine(
        &self,
        here: &Here,
        image: &PlacedModule<'a>,
        frame: &RuntimeFrame,
    ) -> Option<Next> {
        const WORD: u64 = 8;
        if self.registers.family() != Family::X86_64 {
            return None;
        }
        let function = image.bias.to_avma(frame.function)?;
        let word = |at: u64| self.memory.read_u64(Avma::new(at)).ok();
        let depth = u64::try_from(frame.depth).ok()?;
        (0..8).find_map(|index| {
            let place = here.stack_pointer.get().checked_add(index * WORD)?;
            // `stack.lo` and `stack.hi` are the first words of `g`.
            let (below, goroutine) = (word(place)?, word(place.checked_add(WORD)?)?);
            let (low, high) = (word(goroutine)?, word(goroutine.checked_add(WORD)?)?);
            let stack = high.checked_sub(below).filter(|stack| (low..high).contains(stack))?;
            let address = word(stack.checked_add(depth)?)?;
            let is_caller = self.is_call_of(Avma::new(address), function);
            let fp = self.registers.fp().unwrap_or_default();
            is_caller.then(|| self.behind_switch(stack.checked_add(depth + WORD)?, fp, address)).flatten()
        })
    }

    fn behind_switch(&self, stack_pointer: u64, frame_pointer: Avma, address: u64) -> Option<Next> {
        let family = self.registers.family();
        let mut registers = self.forget_all_but_pointers(&self.registers);
        registers.set(family.sp(), stack_pointer);
        registers.set(family.fp(), frame_pointer.get());
        let address = FrameAddress::Return(Avma::new(address));
        let trust = Trust::RuntimeTable;
        Some(Next { registers, address, trust, is_after_signal: false, bytecode: None, is_odd: true })
    }

    /// Whether a direct call of `function` lies before an address.
    fn is_call_of(&self, address: Avma, function: Avma) -> bool {
        self.is_return_address(address) && self.direct_target(address) == Some(function)
    }

    /// By the register that keeps the stack pointer while another stack is used.
    fn by_saved_pointer(
        &self,
        here: &Here,
        image: &PlacedModule<'a>,
        frame: &RuntimeFrame,
        base: Register,
    ) -> Option<Next> {
        let found = frame.found(self.registers.family())?;
        let Cfa::RegisterOffset(_, offset) = found.row.cfa else { return None };
        let mut row = found.row;
        row.cfa = Cfa::RegisterOffset(base, offset);
        let caller = execute::apply(&row, &self.registers, self.memory, image.bias, |_| None).ok()?;
        let address = self.strip(caller.return_address?);
        let is_caller = self.is_return_address(address) && address != here.address.raw();
        let next = Next {
            registers: caller.registers,
            address: FrameAddress::Return(address),
            trust: Trust::RuntimeTable,
            is_after_signal: false,
            bytecode: None,
            is_odd: true,
        };
        is_caller.then_some(next)
    }
}
