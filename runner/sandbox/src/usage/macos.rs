//! The figures of macOS, from `libproc.h` and `sysctl(3)`.

use libc::{c_int, c_void};
use std::ffi::CStr;
use std::sync::LazyLock;

/// The peak memory of a process in bytes, as Activity Monitor counts it: compressed pages included, files
/// that it maps excluded.
pub(super) fn peak_memory(pid: u32) -> Option<u64> {
    Some(usage(pid)?.ri_lifetime_max_phys_footprint)
}

/// The resident memory of a process in bytes.
pub(super) fn memory(pid: u32) -> Option<u64> {
    Some(usage(pid)?.ri_resident_size)
}

/// The children of a process.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let mut found: [c_int; 1000] = [0; 1000];
    let Ok(size) = c_int::try_from(size_of_val(&found)) else {
        return Vec::new();
    };
    #[expect(unsafe_code, reason = "no safe function lists processes")]
    // SAFETY: the buffer has the stated size.
    unsafe {
        libc::proc_listchildpids(pid.cast_signed(), found.as_mut_ptr().cast::<c_void>(), size);
    }
    // The rest of the buffer stays zero.
    found
        .iter()
        .filter_map(|pid| u32::try_from(*pid).ok().filter(|pid| *pid > 0))
        .collect()
}

/// The CPU time of a process, including that of its reaped children, in seconds.
pub(super) fn cpu_seconds(pid: u32) -> Option<f64> {
    /// The ticks of the clock in a second: 24 million on Apple silicon, a billion on Intel's processors.
    static TICKS: LazyLock<Option<u64>> = LazyLock::new(|| number(c"hw.tbfrequency"));
    let usage = usage(pid)?;
    let own = usage.ri_user_time + usage.ri_system_time;
    let children = usage.ri_child_user_time + usage.ri_child_system_time;
    Some((own + children) as f64 / (*TICKS)? as f64)
}

fn usage(pid: u32) -> Option<libc::rusage_info_v4> {
    #[expect(unsafe_code, reason = "a structure of numbers")]
    // SAFETY: all of its fields are numbers, for which zero is valid.
    let mut usage: libc::rusage_info_v4 = unsafe { std::mem::zeroed() };
    #[expect(unsafe_code, reason = "no safe function reads the usage of a process")]
    // SAFETY: the structure is the one of this flavour, and outlives the call.
    let result =
        unsafe { libc::proc_pid_rusage(pid.cast_signed(), libc::RUSAGE_INFO_V4, (&raw mut usage).cast()) };
    (result == 0).then_some(usage)
}

/// The memory of the machine in bytes.
pub fn machine_memory() -> Option<u64> {
    number(c"hw.memsize")
}

/// The number of performance cores; `None` on a processor whose cores are all alike.
pub(super) fn performance_cores() -> Option<usize> {
    usize::try_from(number(c"hw.perflevel0.physicalcpu")?).ok()
}

/// A value of `sysctl(3)`, a number of 4 or 8 bytes.
fn number(name: &CStr) -> Option<u64> {
    let mut value = 0_u64;
    let mut size = size_of::<u64>();
    #[expect(unsafe_code, reason = "no safe function reads a value of `sysctl(3)`")]
    // SAFETY: the value has the stated size, and the name is terminated.
    let result = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            (&raw mut value).cast::<c_void>(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    // Both architectures are little-endian: the upper bytes of a number of 4 stay zero.
    (result == 0).then_some(value)
}
