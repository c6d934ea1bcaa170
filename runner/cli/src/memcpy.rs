//! `memcpy` and `memmove` for the static program on x86-64: musl's own take `rep movsq` for every length,
//! which costs 10 ns where a few bytes are copied in one, and a ninth of the main job.
//!
//! Up to 128 bytes, all are read before any is written. Longer ones go 64 bytes at a time, to aligned places,
//! from the end at which no byte is overwritten before it is read; the first and the last bytes are read
//! before and written after.

#![allow(unsafe_code, reason = "the functions of the C library have no other form")]

core::arch::global_asm!(
    ".section .text.runner_memmove,\"ax\",@progbits",
    ".p2align 5",
    ".globl runner_memmove",
    ".type runner_memmove, @function",
    "runner_memmove:",
    "mov rax, rdi",
    "cmp rdx, 16",
    "jb 20f",
    "cmp rdx, 32",
    "ja 10f",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + rdx - 16]",
    "movups [rdi], xmm0",
    "movups [rdi + rdx - 16], xmm1",
    "ret",
    // 33 to 64.
    "10:",
    "cmp rdx, 64",
    "ja 11f",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + 16]",
    "movups xmm2, [rsi + rdx - 32]",
    "movups xmm3, [rsi + rdx - 16]",
    "movups [rdi], xmm0",
    "movups [rdi + 16], xmm1",
    "movups [rdi + rdx - 32], xmm2",
    "movups [rdi + rdx - 16], xmm3",
    "ret",
    // 65 and more: the first 64 bytes and the last.
    "11:",
    "movups xmm4, [rsi + rdx - 64]",
    "movups xmm5, [rsi + rdx - 48]",
    "movups xmm6, [rsi + rdx - 32]",
    "movups xmm7, [rsi + rdx - 16]",
    "cmp rdx, 128",
    "ja 13f",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + 16]",
    "movups xmm2, [rsi + 32]",
    "movups xmm3, [rsi + 48]",
    "movups [rdi], xmm0",
    "movups [rdi + 16], xmm1",
    "movups [rdi + 32], xmm2",
    "movups [rdi + 48], xmm3",
    "12:",
    "movups [rdi + rdx - 64], xmm4",
    "movups [rdi + rdx - 48], xmm5",
    "movups [rdi + rdx - 32], xmm6",
    "movups [rdi + rdx - 16], xmm7",
    "ret",
    "13:",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "jb 16f",
    // Forwards: the target begins before the source, or after its end.
    "movups xmm8, [rsi]",
    "lea r8, [rdi + rdx - 64]",
    "mov rcx, rdi",
    "and rcx, -16",
    "add rcx, 16",
    "sub rsi, rdi",
    "cmp rdx, 4096",
    "jae 15f",
    "14:",
    "movups xmm0, [rcx + rsi]",
    "movups xmm1, [rcx + rsi + 16]",
    "movups xmm2, [rcx + rsi + 32]",
    "movups xmm3, [rcx + rsi + 48]",
    "movaps [rcx], xmm0",
    "movaps [rcx + 16], xmm1",
    "movaps [rcx + 32], xmm2",
    "movaps [rcx + 48], xmm3",
    "add rcx, 64",
    "cmp rcx, r8",
    "jb 14b",
    "movups [rdi], xmm8",
    "jmp 12b",
    // From a page on, the processor's own loop is as fast or faster.
    "15:",
    "add rsi, rcx",
    "mov r9, rdi",
    "mov rdi, rcx",
    "lea rcx, [r9 + rdx]",
    "sub rcx, rdi",
    "shr rcx, 3",
    "rep movsq",
    "mov rdi, r9",
    "movups [rdi], xmm8",
    "jmp 12b",
    // Backwards: the target begins within the source.
    "16:",
    "movups xmm9, [rsi]",
    "movups xmm10, [rsi + 16]",
    "movups xmm11, [rsi + 32]",
    "movups xmm12, [rsi + 48]",
    "lea r8, [rdi + 64]",
    "lea rcx, [rdi + rdx]",
    "and rcx, -16",
    "sub rsi, rdi",
    "17:",
    "movups xmm0, [rcx + rsi - 16]",
    "movups xmm1, [rcx + rsi - 32]",
    "movups xmm2, [rcx + rsi - 48]",
    "movups xmm3, [rcx + rsi - 64]",
    "movaps [rcx - 16], xmm0",
    "movaps [rcx - 32], xmm1",
    "movaps [rcx - 48], xmm2",
    "movaps [rcx - 64], xmm3",
    "sub rcx, 64",
    "cmp rcx, r8",
    "ja 17b",
    "movups [rdi], xmm9",
    "movups [rdi + 16], xmm10",
    "movups [rdi + 32], xmm11",
    "movups [rdi + 48], xmm12",
    "jmp 12b",
    // Less than 16.
    "20:",
    "cmp edx, 8",
    "jb 21f",
    "mov rcx, [rsi]",
    "mov r8, [rsi + rdx - 8]",
    "mov [rdi], rcx",
    "mov [rdi + rdx - 8], r8",
    "ret",
    "21:",
    "cmp edx, 4",
    "jb 22f",
    "mov ecx, [rsi]",
    "mov r8d, [rsi + rdx - 4]",
    "mov [rdi], ecx",
    "mov [rdi + rdx - 4], r8d",
    "ret",
    "22:",
    "test edx, edx",
    "je 24f",
    "movzx ecx, byte ptr [rsi]",
    "cmp edx, 1",
    "je 23f",
    "movzx r8d, word ptr [rsi + rdx - 2]",
    "mov [rdi + rdx - 2], r8w",
    "23:",
    "mov [rdi], cl",
    "24:",
    "ret",
    ".size runner_memmove, . - runner_memmove",
    ".text",
);

#[cfg(target_env = "musl")]
core::arch::global_asm!(
    ".globl memcpy",
    ".set memcpy, runner_memmove",
    ".globl memmove",
    ".set memmove, runner_memmove",
);

#[cfg(test)]
mod tests {
    unsafe extern "C" {
        fn runner_memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8;
    }

    /// Copies within `bytes`, and compares with glibc's copy from other memory.
    fn check(bytes: &[u8], from: usize, to: usize, length: usize) {
        let (mut copied, mut expected) = (bytes.to_vec(), bytes.to_vec());
        expected[to..to + length].copy_from_slice(&bytes[from..from + length]);
        assert!(from.max(to) + length <= copied.len());
        let start = copied.as_mut_ptr();
        // SAFETY: both ranges are within `copied`, and may overlap.
        let end = unsafe { runner_memmove(start.add(to), start.add(from), length) };
        assert_eq!(end.addr(), start.addr() + to, "the target is returned");
        assert!(copied == expected, "{length} bytes from {from} to {to}");
    }

    #[test]
    fn all_lengths_alignments_and_overlaps_are_copied_as_glibc_copies() {
        let bytes: Vec<u8> = (0..40_000).map(|i| (i * 131 % 251) as u8).collect();
        for length in (0..=420).chain([1000]) {
            for from in [450, 451, 455, 457, 463, 464] {
                for to in (from - 150..from + 150).step_by(1 + length / 64).chain([0, 999]) {
                    check(&bytes[..2048], from, to, length);
                }
            }
        }
        for length in [4095, 4096, 4097, 5000, 8191, 16_384] {
            for from in [10_000, 10_001, 10_007, 10_015] {
                for to in (from - 70..from + 70).chain([0, from - 4096, from + 4096, from + 9000]) {
                    check(&bytes, from, to, length);
                }
            }
        }
    }
}
