//! Settings of the linker.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A program at a fixed place need not be moved there: 60,000 addresses in 600 pages at every start.
    println!("cargo:rustc-link-arg-bins=-no-pie");
}
