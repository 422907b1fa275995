//! x86, by way of `iced-x86`.

use backtrail_core::Svma;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use super::{Form, Resolved, displaced};

fn each(bitness: u32, start: Svma, code: &[u8], step: &mut dyn FnMut(usize, &Instruction, Fields)) {
    let mut decoder = Decoder::with_ip(bitness, code, start.get(), DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        let at = decoder.position();
        decoder.decode_out(&mut instruction);
        let offsets = decoder.get_constant_offsets(&instruction);
        let field = |is_there: bool, offset: usize, size: usize| is_there.then_some((offset, size));
        let fields = Fields {
            displacement: field(
                offsets.has_displacement(),
                offsets.displacement_offset(),
                offsets.displacement_size(),
            ),
            immediate: field(offsets.has_immediate(), offsets.immediate_offset(), offsets.immediate_size()),
        };
        step(at, &instruction, fields);
    }
}

/// Where in an instruction its numbers stand: offset and size.
#[derive(Clone, Copy)]
struct Fields {
    displacement: Option<(usize, usize)>,
    immediate: Option<(usize, usize)>,
}

fn is_padding(instruction: &Instruction, bytes: &[u8]) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) || bytes.iter().all(|byte| *byte == 0)
}

pub(super) fn canonical(bitness: u32, code: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(code);
    let mut len = 0;
    let mut restored = 0;
    each(bitness, Svma::new(0), code, &mut |at, instruction, fields| {
        let size = instruction.len();
        let bytes = code.get(at..at + size).unwrap_or_default();
        if !is_padding(instruction, bytes) {
            len = at + size;
        }
        for (offset, size) in [fields.displacement, fields.immediate].into_iter().flatten() {
            // What has fewer bytes is no address.
            if size >= 4
                && let Some(field) = out.get_mut(at + offset..at + offset + size)
            {
                field.fill(0);
            }
        }
        if at < restored {
            return;
        }
        if bitness == 64
            && let Some(size) = restore(code, at, out)
        {
            restored = at + size;
            return;
        }
        // A load from a slot that became the address itself.
        if matches!(instruction.code(), Code::Lea_r64_m | Code::Lea_r32_m)
            && let Some((offset, 4)) = fields.displacement
            && let Some(opcode) = (at + offset).checked_sub(2).and_then(|at| out.get_mut(at))
        {
            *opcode = 0x8b;
        }
    });
    len
}

/// What linkers put in the place of an access to a thread's variable, written again as compilers have it, with fields of zero; how many bytes
/// it has. Some are told by bytes that ordinary code has, too, which then is written so on both sides. System V ABI for
/// `x86_64`, section 11.
fn restore(code: &[u8], at: usize, out: &mut [u8]) -> Option<usize> {
    /// `mov %fs:0, %rax`
    const THREAD: [u8; 9] = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
    /// `lea x@tlsgd(%rip), %rdi; call __tls_get_addr@plt`, as an outline has it.
    const GENERAL: [u8; 16] = [0x66, 0x48, 0x8b, 0x3d, 0, 0, 0, 0, 0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0];
    /// `lea x@tlsld(%rip), %rdi; call __tls_get_addr@plt`
    const LOCAL: [u8; 12] = [0x48, 0x8b, 0x3d, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0];
    let here = code.get(at..).unwrap_or_default();
    // `lea x@tpoff(%rax), %rax`, or an addition of a slot where another image has the variable.
    let is_general =
        |rest: &[u8]| rest.starts_with(&[0x48, 0x8d, 0x80]) || rest.starts_with(&[0x48, 0x03, 0x05]);
    let slot;
    let restored: &[u8] = if here.strip_prefix(&THREAD).is_some_and(is_general) {
        &GENERAL
    } else if here.strip_prefix(&[0x66; 3]).is_some_and(|rest| rest.starts_with(&THREAD)) {
        &LOCAL
    } else {
        // `mov x@gottpoff(%rip), %reg` that became one of the number itself, and the addition that became a `lea`.
        let (prefix, opcode, to) = match *here {
            [prefix @ (0x48 | 0x49), 0xc7, to @ 0xc0..=0xc7, ..] => (0x48 | (prefix & 1) << 2, 0x8b, to & 7),
            [prefix @ (0x48 | 0x4d), 0x8d, to @ 0x80..=0xbf, ..] if to & 7 == to >> 3 & 7 => {
                (prefix & 0x4c, 0x03, to & 7)
            }
            _ => return None,
        };
        slot = [prefix, opcode, to << 3 | 5, 0, 0, 0, 0];
        &slot
    };
    out.get_mut(at..at + restored.len())?.copy_from_slice(restored);
    Some(restored.len())
}

pub(super) fn resolve(form: Form, (start, code): (Svma, &[u8]), at: usize, bias: i64) -> Option<Resolved> {
    let field = i32::from_le_bytes(*code.get(at..)?.first_chunk()?);
    let place = displaced(start, at as i64);
    let address = displaced(place, i64::from(field).wrapping_sub(bias));
    match form {
        // A load that became the address itself has another instruction before its field.
        Form::SlotRelative => {
            let opcode = *code.get(at.checked_sub(2)?)?;
            Some(if opcode == 0x8d { Resolved::Address(address) } else { Resolved::Slot(address) })
        }
        Form::Branch | Form::Relative => Some(Resolved::Address(address)),
        _ => None,
    }
}

pub(super) fn references(bitness: u32, (start, code): (Svma, &[u8]), found: &mut dyn FnMut(Svma)) {
    each(bitness, start, code, &mut |_, instruction, _| {
        if matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32) {
            found(Svma::new(instruction.near_branch_target()));
        } else if instruction.is_ip_rel_memory_operand() {
            found(Svma::new(instruction.ip_rel_memory_address()));
        }
    });
}

pub(super) fn calls(bitness: u32, (start, code): (Svma, &[u8]), found: &mut dyn FnMut(usize, Option<Svma>)) {
    each(bitness, start, code, &mut |at, instruction, _| {
        if instruction.mnemonic() == Mnemonic::Call {
            let is_near = matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32);
            found(at + instruction.len(), is_near.then(|| Svma::new(instruction.near_branch_target())));
        }
    });
}

/// `jmp *slot(%rip)`, maybe behind `endbr64` or `bnd`.
pub(super) fn stub_slot((start, code): (Svma, &[u8])) -> Option<Svma> {
    let mut slot = None;
    each(64, start, code.get(..code.len().min(16))?, &mut |_, instruction, _| {
        let is_jump = instruction.mnemonic() == Mnemonic::Jmp && instruction.is_ip_rel_memory_operand();
        if slot.is_none() && is_jump {
            slot = Some(Svma::new(instruction.ip_rel_memory_address()));
        }
    });
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_left_out_and_padding_ends() {
        // push rbp; call rel32; lea rdi, [rip+d]; ret; nop dword ptr [rax]; int3.
        let code = |call: u8, lea: u8| {
            let mut code = vec![0x55, 0xe8, call, 0, 0, 0, 0x48, 0x8d, 0x3d, lea, 0, 0, 0, 0xc3];
            code.extend([0x0f, 0x1f, 0x00, 0xcc]);
            code
        };
        let outline = |code: &[u8]| {
            let mut out = Vec::new();
            let len = canonical(64, code, &mut out);
            (len, out.get(..len).map(<[u8]>::to_vec))
        };
        assert_eq!(outline(&code(1, 2)), outline(&code(7, 9)));
        assert_eq!(outline(&code(1, 2)).0, 14);
        let mut load = code(1, 2);
        load[7] = 0x8b;
        assert_eq!(outline(&load).1, outline(&code(1, 2)).1);
    }

    /// As `x86_64-linux-gnu-as` and GNU ld write them.
    #[test]
    fn accesses_to_a_threads_variables_compare_as_compilers_write_them() {
        let outline = |code: &[u8]| {
            let mut code = code.to_vec();
            code.extend([0xc3, 0xcc, 0xcc]);
            let mut out = Vec::new();
            let len = canonical(64, &code, &mut out);
            out.truncate(len);
            out
        };
        let thread = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
        let padded = [&[0x66; 3][..], &thread].concat();
        let with = |more: &[u8]| [&thread[..], more].concat();
        let general = [0x66, 0x48, 0x8d, 0x3d, 1, 0, 0, 0, 0x66, 0x66, 0x48, 0xe8, 2, 0, 0, 0];
        let local = [0x48, 0x8d, 0x3d, 1, 0, 0, 0, 0xe8, 2, 0, 0, 0];
        let to_rcx = [0x48, 0x8b, 0x0d, 3, 0, 0, 0];
        let to_r9 = [0x4c, 0x8b, 0x0d, 3, 0, 0, 0];
        let added = [0x48, 0x03, 0x05, 3, 0, 0, 0];
        let added_to_r9 = [0x4c, 0x03, 0x0d, 3, 0, 0, 0];
        for (compiled, linked) in [
            (&general[..], with(&[0x48, 0x8d, 0x80, 0xf8, 0xff, 0xff, 0xff])),
            (&general, with(&[0x48, 0x03, 0x05, 7, 1, 0, 0])),
            (&local, padded),
            (&to_rcx, vec![0x48, 0xc7, 0xc1, 0xf8, 0xff, 0xff, 0xff]),
            (&to_r9, vec![0x49, 0xc7, 0xc1, 0xf8, 0xff, 0xff, 0xff]),
            (&added, vec![0x48, 0x8d, 0x80, 0xf8, 0xff, 0xff, 0xff]),
            (&added_to_r9, vec![0x4d, 0x8d, 0x89, 0xf8, 0xff, 0xff, 0xff]),
        ] {
            assert_eq!(outline(compiled), outline(&linked), "{compiled:x?}");
        }
        // Another register is another instruction.
        assert_ne!(outline(&to_rcx), outline(&[0x48, 0xc7, 0xc2, 0xf8, 0xff, 0xff, 0xff]));
    }
}
