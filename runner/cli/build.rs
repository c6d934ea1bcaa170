//! Settings of the linker, and which tests can run here.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Tests of remote stores need a real S3 server, and are ignored without one.
    println!("cargo:rerun-if-env-changed=RUNNER_TEST_S3_SERVER");
    println!("cargo:rustc-check-cfg=cfg(s3_server)");
    if std::env::var_os("RUNNER_TEST_S3_SERVER").is_some_and(|program| !program.is_empty()) {
        println!("cargo:rustc-cfg=s3_server");
    }
    // Tests of containers need podman, and a program without libraries for an image.
    println!("cargo:rerun-if-env-changed=PATH");
    println!("cargo:rustc-check-cfg=cfg(podman)");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if found("podman") && found("busybox") {
        println!("cargo:rustc-cfg=podman");
    }
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    // A program at a fixed place need not be moved to another one at every start, which is 60,000 addresses
    // in 600 pages here and takes most of a millisecond.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
