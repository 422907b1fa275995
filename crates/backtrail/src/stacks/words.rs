//! Why a walk ended, in words.

use backtrail_unwind::{End, Failure};

pub(super) fn end(end: End) -> String {
    let words = match end {
        End::Undefined => "the unwind tables mark the frame as outermost",
        End::CannotUnwind => "the unwind tables say that nothing called this function",
        End::EntryPoint => "the program's entry point",
        End::ThreadStart => "the first function of a thread",
        End::ZeroFramePointer => "the frame pointer is zero, as in the first frame of a thread",
        End::ZeroReturnAddress => "the return address is zero",
        _ => "the end of the stack",
    };
    words.to_owned()
}

pub(super) fn failure(failure: Failure) -> String {
    match failure {
        Failure::MissingRegister(register) => {
            format!("register number {} is needed and not known", register.0)
        }
        Failure::NotInImage(address) => format!("{address} is in no image, and nothing else leads on"),
        Failure::NoRules(address) => format!("no unwind table covers {address}, and nothing else leads on"),
        Failure::Malformed(malformed) => format!("the unwind table is broken at {malformed}"),
        Failure::Expression(error) => format!("an expression of the unwind table has no value: {error:?}"),
        Failure::Unreadable(unreadable) => unreadable.to_string(),
        Failure::NotCode(address) => format!("the return address {address} is not in code"),
        Failure::NotAdvancing(address) => {
            format!("the stack pointer {address} does not move towards the stack's end")
        }
        other => format!("{other:?}"),
    }
}
