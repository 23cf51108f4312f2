//! Waits for translations of addresses (gfx1250) that are taken out of compiled kernels: strict mode must say what is
//! overwritten too early, or that nothing is.

use rewriter_tests::Failure;
use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::launch;
use wavetap::code_object::CodeObject;
use wavetap::emulator::Options;
use wavetap::isa::{self, Target, Value};

const SOURCE: &str = "integer";
const TARGETS: [&str; 2] = ["gfx1250", "gfx1251"];
/// A compiler waits where it cannot tell that it need not, too, and before LLVM 24 did not know that branches and
/// barriers wait by themselves; but so many of the waits of these kernels must be needed.
const LEAST: usize = 8;

/// Takes out each wait by itself, on each target that there is a compiler for; gives how many waits were missed and how
/// many there are.
pub fn check() -> Result<(usize, usize), Failure> {
    let known = build::known_processors()?;
    let (mut missed, mut all) = (0, 0);
    for name in TARGETS.into_iter().filter(|name| known.contains(*name)) {
        let target = Target::by_name(name).ok_or("no such target")?;
        let of_target = waits_of(target)?;
        if of_target.0 < LEAST {
            return Err(format!("{name}: {} of {} waits were missed", of_target.0, of_target.1));
        }
        (missed, all) = (missed + of_target.0, all + of_target.1);
    }
    Ok((missed, all))
}

fn waits_of(target: Target) -> Result<(usize, usize), Failure> {
    let text = |error: wavetap::error::Error| error.to_string();
    let word = |mnemonic| isa::encode(target, &isa::build(target, mnemonic, &[Value::Imm(0)])?);
    let nop = word("s_nop").map_err(text)?;
    let object = build::object(SOURCE, Variant { target, level: "O2", version: 6 })?;
    let reference = build::reference(target.wave_size())?;
    let (mut missed, mut all) = (0, 0);
    for test in
        reference.tests.iter().filter(|test| test.file == format!("{SOURCE}.cpp") && test.runs_on(target.name()))
    {
        let code = CodeObject::parse(&object).map_err(text)?;
        let kernel = code.kernel(&test.name).ok_or_else(|| format!("the object has no kernel {}", test.name))?;
        let start = code.file_offset(kernel.entry, 4).ok_or("the kernel is not in the file")? as usize;
        let end = start + (kernel.code.end - kernel.entry) as usize;
        let (buffers, rule) = (reference.buffers(test)?, Rule::parse(&test.compare)?);
        let mut at = start;
        while at < end {
            let inst = isa::decode(target, &object[at..end]).map_err(text)?;
            let here = at;
            at += usize::from(inst.size);
            if inst.name() != "s_wait_xcnt" {
                continue;
            }
            all += 1;
            let mut without = object.clone();
            without[here..here + nop.len()].copy_from_slice(&nop);
            let options = Options { fuel: 3_000_000, ..Options::default() };
            match launch::run(&without, target, test, &buffers, &options) {
                Ok((found, _)) => rule.check(&found, &buffers.expected)?,
                Err(found) if found.contains("xcnt") => missed += 1,
                Err(found) => return Err(format!("{} without the wait at {:#x}: {found}", test.name, here - start)),
            }
        }
    }
    Ok((missed, all))
}
