//! Calls of `x86_64`, read backwards from the return address.

/// See [`crate::arch::follows_call`].
pub(crate) fn follows_call(before: &[u8]) -> bool {
    direct(before) || indirect(before)
}

/// `call rel32`
pub(crate) fn direct(before: &[u8]) -> bool {
    matches!(before, [.., 0xe8, _, _, _, _])
}

/// `call r/m`: opcode `ff /2`, and on 32 bits `ff /3`, the far call. The bytes behind the opcode must be exactly those
/// that its ModRM byte (Intel SDM volume 2, tables 2-1 to 2-3) asks for.
pub(crate) fn indirect(before: &[u8]) -> bool {
    (2..=7).any(|length| {
        let start = before.len().checked_sub(length);
        let call = start.and_then(|start| before.get(start..)).unwrap_or_default();
        let [0xff, modrm, rest @ ..] = call else { return false };
        modrm & 0x38 == 0x10 && operand_size(*modrm, rest) == Some(rest.len())
    })
}

/// How many bytes follow a ModRM byte.
pub(crate) fn operand_size(modrm: u8, rest: &[u8]) -> Option<usize> {
    let (mode, register) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return Some(0);
    }
    let has_sib = register == 4;
    let base = if has_sib { *rest.first()? & 7 } else { register };
    let displacement = match mode {
        1 => 1,
        2 => 4,
        // `[disp32]`, `[rip + disp32]`, and a SIB byte without a base.
        _ if base == 5 => 4,
        _ => 0,
    };
    Some(usize::from(has_sib) + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_what_looks_like_them() {
        let calls: [&[u8]; 9] = [
            &[0x90, 0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],                   // call rax
            &[0x41, 0xff, 0xd3],             // call r11
            &[0xff, 0x10],                   // call [rax]
            &[0xff, 0x50, 0x18],             // call [rax + 0x18]
            &[0xff, 0x14, 0xc5, 0, 0, 0, 0], // call [rax * 8 + disp32]
            &[0xff, 0x15, 1, 2, 3, 4],       // call [rip + disp32]
            &[0xff, 0x90, 0, 1, 0, 0],       // call [rax + 0x100]
            &[0x42, 0xff, 0x54, 0xe0, 0x10], // call [rax + r12 * 8 + 0x10]
        ];
        for call in calls {
            assert!(follows_call(call), "{call:02x?}");
        }
        let others: [&[u8]; 7] = [
            &[],
            &[0xe8],
            &[0x48, 0x89, 0xe5],
            &[0xff, 0xe0],             // jmp rax
            &[0xff, 0x10, 0x90],       // one byte too many
            &[0xff, 0x15, 1, 2, 3],    // one too few
            &[0xff, 0x74, 0x24, 0x08], // push [rsp + 8]
        ];
        for other in others {
            assert!(!follows_call(other), "{other:02x?}");
        }
    }
}
