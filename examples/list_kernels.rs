//! Lists the kernels of an executable, library or code object, with what they need of each processor.
//!
//!     cargo run --example list_kernels -- hip-samples/bin/two_kernels

use wavetap::Program;

fn main() -> wavetap::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: list_kernels FILE");
        std::process::exit(2);
    };
    for kernel in Program::open(path)?.kernels()? {
        println!("{}", kernel.demangled);
        for version in &kernel.versions {
            let facts = &version.facts;
            println!(
                "  {:<8} {:>5} bytes of code, {:>3} VGPRs, {:>5} bytes of LDS",
                version.target,
                version.code_bytes,
                facts.vgprs.unwrap_or_default(),
                facts.lds_bytes
            );
        }
    }
    Ok(())
}
