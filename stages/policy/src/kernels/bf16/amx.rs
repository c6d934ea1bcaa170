//! [`super::product16`] on the tiles of AMX, in inline assembly, since the intrinsics are not stable.
#![expect(
    unsafe_code,
    reason = "instructions without stable intrinsics; measured at several times the speed of vectors"
)]

use super::operands::{GROUP, Left16, PAIRS, ROWS, Right16};
use crate::kernels::operands::Start;
use crate::kernels::panel_layout::WIDTH;
use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

/// A proof that the CPU and the operating system let this process use tiles.
#[derive(Clone, Copy, Debug)]
pub struct Amx(());

impl Amx {
    /// The proof, if tiles can be used. The first call requests them from the operating system.
    pub(super) fn try_new() -> Option<Self> {
        static AVAILABLE: OnceLock<bool> = OnceLock::new();
        let available = *AVAILABLE.get_or_init(|| {
            // Intel's manual, CPUID leaf 7: AMX-BF16 and AMX-TILE in EDX.
            let leaf = __cpuid_count(7, 0).edx;
            leaf & (1 << 22) != 0 && leaf & (1 << 24) != 0 && permitted()
        });
        available.then_some(Self(()))
    }
}

/// Requests the tile state from Linux (arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
fn permitted() -> bool {
    let mut result: i64 = 158;
    // SAFETY: a system call that takes two numbers and touches no memory of this process; the kernel
    // overwrites rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inout("rax") result,
            in("rdi") 0x1023_u64,
            in("rsi") 18_u64,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

/// All eight tiles at their full size: 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIG: Config = Config {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// A block of the result: 32 columns by 32 or 16 rows.
struct Block {
    a: *const u32,
    /// The distance from one row of `a` to the next, in bytes, as are all distances here.
    a_stride: usize,
    a_jump: usize,
    b: *const u32,
    groups: usize,
    init: *const f32,
    init_stride: usize,
    c: *mut f32,
}

/// The bytes of a row of a panel, of f32 or of pairs.
const ROW_BYTES: usize = 4 * WIDTH;

/// Computes [`super::product16`], which has checked the shapes.
pub(super) fn product(_: Amx, a: Left16, b: Right16, start: Start, c: &mut [f32], panel: usize) {
    static ZEROS: [f32; WIDTH] = [0.0; WIDTH];
    // SAFETY: the token proves that tiles can be used. Blocks lie within the bounds that the caller checked.
    // Tiles are configured before use, and released afterwards, so that no other code sees them.
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, readonly));
        for p in 0..b.panels {
            let mut row = 0;
            while row < a.rows {
                let height = (a.rows - row).min(2 * ROWS);
                let out = c.as_mut_ptr().add(p * panel + row * WIDTH);
                let (init, init_stride) = match start {
                    Start::Zero => (ZEROS.as_ptr(), 0),
                    Start::Row(values) => (values.as_ptr().add(p * WIDTH), 0),
                    Start::Current => (out.cast_const(), ROW_BYTES),
                };
                let block = Block {
                    a: a.data.as_ptr().add(row * a.stride),
                    a_stride: 4 * a.stride,
                    a_jump: 4 * a.jump,
                    b: b.data.as_ptr().add(p * b.panel),
                    groups: b.k / GROUP,
                    init,
                    init_stride,
                    c: out,
                };
                if height == 2 * ROWS {
                    two(block);
                } else {
                    one(block);
                }
                row += height;
            }
        }
        asm!("tilerelease", options(nostack, nomem));
    }
}

/// Computes 32 rows, with four tiles of sums and two of each operand.
unsafe fn two(block: Block) {
    // SAFETY: the caller vouches for the block's operands and result.
    unsafe {
        asm!(
            "tileloadd tmm0, [{init} + {init_stride}]",
            "tileloadd tmm1, [{init} + {init_stride} + 64]",
            "tileloadd tmm2, [{init_low} + {init_stride}]",
            "tileloadd tmm3, [{init_low} + {init_stride} + 64]",
            "2:",
            "tileloadd tmm6, [{b} + {row}]",
            "tileloadd tmm4, [{a} + {a_stride}]",
            "tileloadd tmm7, [{b} + {row} + 64]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm5, [{a_low} + {a_stride}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, {a_jump}",
            "add {a_low}, {a_jump}",
            "add {b}, {b_jump}",
            "dec {groups}",
            "jnz 2b",
            "tilestored [{c} + {row}], tmm0",
            "tilestored [{c} + {row} + 64], tmm1",
            "tilestored [{c_low} + {row}], tmm2",
            "tilestored [{c_low} + {row} + 64], tmm3",
            init = in(reg) block.init,
            init_low = in(reg) block.init.wrapping_byte_add(ROWS * block.init_stride),
            init_stride = in(reg) block.init_stride,
            a = inout(reg) block.a => _,
            a_low = inout(reg) block.a.wrapping_byte_add(ROWS * block.a_stride) => _,
            a_stride = in(reg) block.a_stride,
            a_jump = in(reg) block.a_jump,
            b = inout(reg) block.b => _,
            b_jump = const PAIRS * ROW_BYTES,
            row = in(reg) ROW_BYTES,
            groups = inout(reg) block.groups => _,
            c = in(reg) block.c,
            c_low = in(reg) block.c.wrapping_byte_add(ROWS * ROW_BYTES),
            options(nostack),
        );
    }
}

/// Computes 16 rows.
unsafe fn one(block: Block) {
    // SAFETY: the caller vouches for the block's operands and result.
    unsafe {
        asm!(
            "tileloadd tmm0, [{init} + {init_stride}]",
            "tileloadd tmm1, [{init} + {init_stride} + 64]",
            "2:",
            "tileloadd tmm4, [{a} + {a_stride}]",
            "tileloadd tmm6, [{b} + {row}]",
            "tileloadd tmm7, [{b} + {row} + 64]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "add {a}, {a_jump}",
            "add {b}, {b_jump}",
            "dec {groups}",
            "jnz 2b",
            "tilestored [{c} + {row}], tmm0",
            "tilestored [{c} + {row} + 64], tmm1",
            init = in(reg) block.init,
            init_stride = in(reg) block.init_stride,
            a = inout(reg) block.a => _,
            a_stride = in(reg) block.a_stride,
            a_jump = in(reg) block.a_jump,
            b = inout(reg) block.b => _,
            b_jump = const PAIRS * ROW_BYTES,
            row = in(reg) ROW_BYTES,
            groups = inout(reg) block.groups => _,
            c = in(reg) block.c,
            options(nostack),
        );
    }
}
