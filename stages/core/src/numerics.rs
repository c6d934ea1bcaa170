//! The numerics class: within one, training gives the same bytes for any number of threads.

/// The instruction set that kernels use here, and the version of the kernels.
pub fn class() -> String {
    format!("{}-v2", instruction_set())
}

/// The widest instruction set that kernels use on this machine.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
        {
            return "x86_64-avx512";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "x86_64-avx2";
        }
    }
    std::env::consts::ARCH
}
