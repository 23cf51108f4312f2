//! Where loads are measured.

use super::*;

#[test]
fn loads_are_drained_where_they_cannot_be_measured_at_their_waits() {
    let address = Value::Reg(Reg::vector(2, 2));
    let load: (&str, &[Value]) = ("global_load_dword", &[Value::Reg(Reg::vector(1, 1)), address, Value::Off]);
    let wait: (&str, &[Value]) = ("s_waitcnt", &[Value::Imm(0x0f70)]);
    let wait_but_one: (&str, &[Value]) = ("s_waitcnt", &[Value::Imm(0x0f71)]);
    let kinds = |probe, code: &[(&str, &[Value])]| -> String {
        let (bytes, kernel) = kernel(target("gfx90a"), code);
        let planned = plan_probe(probe, target("gfx90a"), &bytes, &kernel, CounterMode::Global).expect("planned");
        planned.sites.iter().map(|site| site.kind.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    let at_waits = |code: &[(&str, &[Value])]| kinds(probe::MEMORY_LATENCY, code);
    assert_eq!(at_waits(&[load, load, wait_but_one, wait, load]), "empty at_its_wait at_its_wait drained");
    assert_eq!(at_waits(&[load, load, wait_but_one]), "empty drained drained", "the second one has no wait");
    assert_eq!(kinds(probe::DRAINED_LATENCY, &[load, wait]), "empty drained");
}
