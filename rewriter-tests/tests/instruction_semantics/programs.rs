//! Operations that only more code shows: those that end a wave or stop it, that change how later instructions run, that
//! wait, and that tell the time. For each a program with what it must leave in memory.

use wavetap::isa::{self, Reg, Target, Value, scalar};

use super::machine::{Machine, RECORD_WORDS, number, s, v};
use super::random::Random;

type Code = Vec<u8>;
type Verdict = Result<(), String>;

/// What a program has for itself.
const FREE: u16 = 20;

fn same(what: &str, found: u32, expected: u32) -> Verdict {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:#x}, expected {expected:#x}")) }
}

/// A number stored at once.
fn store(machine: &mut Machine, code: &mut Code, value: u32, at: i32) {
    machine.emit(code, &["v_mov_b32_e32"], &[v(FREE), number(value)]);
    machine.store_record(code, FREE, at);
    machine.settle(code);
}

fn store_scalar(machine: &mut Machine, code: &mut Code, register: u16, at: i32) {
    machine.nothing(code);
    machine.emit(code, &["v_mov_b32_e32"], &[v(FREE), s(register, 1)]);
    machine.store_record(code, FREE, at);
    machine.settle(code);
}

/// What comes before the end is done, and what comes after it is not.
fn ends(machine: &mut Machine, name: &'static str) -> Verdict {
    let found = machine.whole(1, &|machine, code| {
        store(machine, code, 1, 0);
        if !machine.try_emit(code, &[name], &[]) {
            machine.emit(code, &[name], &[Value::Imm(0)]);
        }
        store(machine, code, 2, 4);
    })?;
    for record in found {
        same("before the end", record[0], 1)?;
        same("behind the end", record[1], 0)?;
    }
    Ok(())
}

/// That of `llvm.trap` ends the wave, that of `llvm.debugtrap` does nothing without a debugger (AMDGPUUsage).
fn traps(machine: &mut Machine) -> Verdict {
    let ended = machine.whole(1, &|machine, code| machine.emit(code, &["s_trap"], &[Value::Imm(2)]));
    match ended {
        Err(fault) if fault.contains("s_trap 2") => {}
        other => return Err(format!("a trap ended so: {other:?}")),
    }
    let found = machine.whole(1, &|machine, code| {
        machine.emit(code, &["s_trap"], &[Value::Imm(3)]);
        store(machine, code, 1, 0);
    })?;
    found.iter().try_for_each(|record| same("after the debugger's trap", record[0], 1))
}

/// Times only grow.
fn tells_time(machine: &mut Machine, name: &'static str) -> Verdict {
    let wide = !name.ends_with("b32");
    let read = |machine: &mut Machine, code: &mut Code, to: u16| {
        let to = s(to, if wide { 2 } else { 1 });
        // MSG_RTN_GET_REALTIME
        let values = if name.starts_with("s_sendmsg") { vec![to, Value::Imm(131)] } else { vec![to] };
        machine.emit(code, &[name], &values);
        machine.settle(code);
    };
    let found = machine.whole(1, &|machine, code| {
        for register in [24, 26] {
            machine.emit(code, &["s_mov_b32"], &[s(register + 1, 1), number(0)]);
            read(machine, code, register);
            for _ in 0..8 {
                machine.nothing(code);
            }
        }
        for (n, register) in (24..28).enumerate() {
            store_scalar(machine, code, register, 4 * n as i32);
        }
    })?;
    for record in found {
        let time = |n: usize| u64::from(record[n]) | u64::from(record[n + 1]) << 32;
        if time(2) <= time(0) {
            return Err(format!("{} comes before {}", time(0), time(2)));
        }
    }
    Ok(())
}

/// Registers 20 and 30 plus an index, as M0 has it while relative numbers are on.
fn relative(machine: &mut Machine, last: &str, random: &mut Random) -> Verdict {
    let content = |n: u32| 3 * n * n + 100;
    let (first, second) = (random.below(7) as u32, random.below(7) as u32);
    let (mode, other) = (random.below(16) as u32, random.below(16) as u32);
    let found = machine.whole(1, &|machine, code| {
        for n in 20..48_u16 {
            machine.emit(code, &["v_mov_b32_e32"], &[v(n), number(content(n.into()))]);
        }
        machine.emit(code, &["s_mov_b32"], &[s(24, 1), number(first)]);
        machine.emit(code, &["s_mov_b32"], &[s(25, 1), number(second)]);
        machine.emit(code, &["s_mov_b32"], &[Value::Reg(Reg::M0), Value::Literal(0x5a_0abc)]);
        machine.nothing(code);
        machine.emit(code, &["s_set_gpr_idx_on"], &[s(24, 1), Value::Imm(mode.into())]);
        machine.nothing(code);
        match last {
            "s_set_gpr_idx_idx" => machine.emit(code, &["s_set_gpr_idx_idx"], &[s(25, 1)]),
            "s_set_gpr_idx_mode" => machine.emit(code, &["s_set_gpr_idx_mode"], &[Value::Imm(other.into())]),
            "s_set_gpr_idx_off" => machine.emit(code, &["s_set_gpr_idx_off"], &[]),
            _ => {}
        }
        machine.nothing(code);
        machine.emit(code, &["v_sub_u16_e32"], &[v(20), v(30), v(40)]);
        machine.nothing(code);
        if last != "s_set_gpr_idx_off" {
            machine.emit(code, &["s_set_gpr_idx_off"], &[]);
        }
        machine.nothing(code);
        machine.emit(code, &["s_mov_b32"], &[s(26, 1), Value::Reg(Reg::M0)]);
        machine.emit(code, &["v_mov_b32_e32"], &[v(27), s(26, 1)]);
        machine.nothing(code);
        for n in 0..8 {
            machine.store_record(code, 20 + n, 4 * i32::from(n));
        }
    })?;
    let index = if last == "s_set_gpr_idx_idx" { second } else { first };
    let bits = if last == "s_set_gpr_idx_mode" { other } else { mode };
    let off = last == "s_set_gpr_idx_off";
    let by = |bit: u32| if !off && bits >> bit & 1 != 0 { index } else { 0 };
    let difference = content(30 + by(0)).wrapping_sub(content(40 + by(1))) & 0xffff;
    for record in found {
        for n in 0..7 {
            let expected = if n == by(3) { difference } else { content(20 + n) };
            same(&format!("v{} with index {index} and mode {bits:#x}", 20 + n), record[n as usize], expected)?;
        }
        same("M0", record[7], 0x5a_0abc & !0xf0ff | index | bits << 12)?;
    }
    Ok(())
}

/// The high bits of register numbers: two for each of three sources and the destination, from the lowest on. A literal
/// that is written to any part of MODE sets them as well, from bit 12 on and the destination's first.
fn high_registers(machine: &mut Machine, random: &mut Random) -> Verdict {
    let value = |n: u32| 0x1000 + n;
    // MODE, its first four bits: as they are in the machine of this test anyway.
    let hwreg = Value::Imm(1 | 3 << 11);
    let first = random.below(4) as u32;
    let found = machine.whole(1, &|machine, code| {
        for high in 0..4_u32 {
            machine.emit(code, &["s_set_vgpr_msb"], &[Value::Imm(i64::from(high) << 6)]);
            machine.emit(code, &["v_mov_b32_e32"], &[v(30), number(value(high))]);
        }
        for high in 0..4_u32 {
            // Half of the time by way of the literal.
            let from = (first + high) % 4;
            if high < 2 {
                machine.emit(code, &["s_set_vgpr_msb"], &[Value::Imm(from.into())]);
            } else {
                machine.emit(code, &["s_setreg_imm32_b32"], &[hwreg, Value::Literal(from << 14)]);
            }
            machine.emit(code, &["v_add_nc_u32_e32"], &[v(20 + high as u16), v(30), v(30)]);
        }
        machine.emit(code, &["s_set_vgpr_msb"], &[Value::Imm(0)]);
        machine.nothing(code);
        for n in 0..4 {
            machine.store_record(code, 20 + n, 4 * i32::from(n));
        }
    })?;
    for record in found {
        for (n, &sum) in (0..4).zip(&record) {
            let from = (first + n) % 4;
            same(&format!("v30 and v{} added", 30 + 256 * from), sum, value(0) + value(from))?;
        }
    }
    high_registers_behind_mode(machine)
}

/// Directly after a literal for MODE, `s_set_vgpr_msb` does nothing. The strict mode says so.
fn high_registers_behind_mode(machine: &mut Machine) -> Verdict {
    let hwreg = Value::Imm(1 | 3 << 11);
    for apart in [false, true] {
        let found = machine.whole(1, &|machine, code| {
            for high in 0..3_u32 {
                machine.emit(code, &["s_set_vgpr_msb"], &[Value::Imm(i64::from(high) << 6)]);
                machine.emit(code, &["v_mov_b32_e32"], &[v(30), number(0x1000 + high)]);
            }
            machine.emit(code, &["s_setreg_imm32_b32"], &[hwreg, Value::Literal(1 << 14)]);
            if apart {
                machine.nothing(code);
            }
            machine.emit(code, &["s_set_vgpr_msb"], &[Value::Imm(2)]);
            machine.emit(code, &["v_mov_b32_e32"], &[v(20), v(30)]);
            machine.emit(code, &["s_set_vgpr_msb"], &[Value::Imm(0)]);
            machine.nothing(code);
            machine.store_record(code, 20, 0);
        });
        match found {
            Err(fault) if machine.is_strict() && !apart && fault.contains("is dropped") => {}
            Ok(_) if machine.is_strict() && !apart => {
                return Err("s_set_vgpr_msb is dropped, and nobody says so".to_owned());
            }
            found => found?
                .iter()
                .try_for_each(|record| same("v30 by source 0", record[0], if apart { 0x1002 } else { 0x1001 }))?,
        }
    }
    Ok(())
}

/// Global wave sync with this number. M0 and the offset choose the resource: any will do.
fn global_sync(machine: &mut Machine, code: &mut Code, name: &str, others: u32) {
    machine.emit(code, &["s_mov_b32"], &[Value::Reg(Reg::M0), number(9 << 16)]);
    machine.emit(code, &["v_mov_b32_e32"], &[v(28), number(others)]);
    machine.settle(code);
    let mut inst = isa::build(machine.target, name, &[v(28)]).expect("it has the operation");
    inst.modifiers.gds = true;
    inst.modifiers.offset = 3;
    code.extend(isa::encode(machine.target, &inst).expect("encodes"));
    machine.settle(code);
}

/// Two waves tell each other their numbers through memory.
fn meets_by_global_sync(machine: &mut Machine, name: &str) -> Verdict {
    let lanes = machine.target.wave_size();
    let found = machine.whole(2, &|machine, code| {
        let other = number(lanes * 4 * RECORD_WORDS as u32);
        machine.store_record(code, 0, 0);
        machine.settle(code);
        if name == "ds_gws_init" {
            // What it sets holds, whatever comes to the barrier.
            global_sync(machine, code, name, 1);
            machine.emit(code, &["s_barrier"], &[]);
        }
        global_sync(machine, code, "ds_gws_barrier", if name == "ds_gws_init" { 7 } else { 1 });
        machine.emit(code, &["v_xor_b32_e32"], &[v(1), other, v(1)]);
        machine.load_record(code, 26, 0);
        machine.settle(code);
        machine.emit(code, &["v_xor_b32_e32"], &[v(1), other, v(1)]);
        machine.store_record(code, 26, 4);
    })?;
    found.iter().enumerate().try_for_each(|(n, record)| same(&format!("work-item {n}"), record[1], n as u32 ^ lanes))
}

/// Two waves tell each other their numbers through LDS.
fn meets(machine: &mut Machine, name: &str) -> Verdict {
    let lanes = machine.target.wave_size();
    let found = machine.whole(2, &|machine, code| {
        machine.emit(code, &["s_mov_b32"], &[Value::Reg(Reg::M0), Value::InlineInt(-1)]);
        machine.emit(code, &["v_lshlrev_b32_e32"], &[v(24), number(2), v(0)]);
        machine.emit(code, &["v_xor_b32_e32"], &[v(25), number(4 * lanes), v(24)]);
        machine.emit(code, &["ds_write_b32", "ds_store_b32"], &[v(24), v(0)]);
        machine.settle(code);
        let all = Value::InlineInt(-1);
        machine.emit(code, &["s_mov_b32"], &[s(24, 1), number(0)]);
        match name {
            "s_barrier" => machine.emit(code, &["s_barrier"], &[]),
            _ => {
                if name == "s_get_barrier_state" {
                    machine.emit(code, &["s_get_barrier_state"], &[s(24, 1), all]);
                    machine.settle(code);
                }
                let signal = if name == "s_barrier_signal_isfirst" { name_of(name) } else { "s_barrier_signal" };
                machine.emit(code, &["s_cmp_lg_u32"], &[number(0), number(0)]);
                machine.emit(code, &[signal], &[all]);
                if name == "s_barrier_signal_isfirst" {
                    machine.emit(code, &["s_cselect_b32"], &[s(24, 1), number(1), number(0)]);
                }
                if !machine.try_emit(code, &["s_barrier_wait"], &[Value::Imm(-1)]) {
                    machine.emit(code, &["s_barrier_wait"], &[Value::Imm(0xffff)]);
                }
            }
        }
        machine.emit(code, &["ds_read_b32", "ds_load_b32"], &[v(26), v(25)]);
        machine.settle(code);
        machine.store_record(code, 26, 0);
        store_scalar(machine, code, 24, 4);
    })?;
    for (n, record) in found.iter().enumerate() {
        same(&format!("work-item {n}"), record[0], n as u32 ^ lanes)?;
        if name == "s_get_barrier_state" {
            // Valid; members; the count of signals may be any.
            same("the barrier", record[1] & 0xffff, 1 | 2 << 4)?;
        }
    }
    if name == "s_barrier_signal_isfirst" {
        let first = [&found[0], &found[lanes as usize]].iter().map(|record| record[1]).sum();
        same("waves that are the first", first, 1)?;
    }
    Ok(())
}

fn name_of(name: &str) -> &'static str {
    if name == "s_barrier_signal_isfirst" { "s_barrier_signal_isfirst" } else { "s_barrier_signal" }
}

/// A load is used after the wait; in strict mode without it, that is an error.
fn waits(machine: &mut Machine, strict: bool, name: &'static str) -> Verdict {
    let vector = matches!(name, "s_waitcnt_vmcnt" | "s_wait_loadcnt");
    let to_lds = name == "s_wait_asynccnt";
    let run = |machine: &mut Machine, waits: bool| {
        machine.whole(1, &|machine, code| {
            // An offset of zero has several encodings.
            store(machine, code, 0x1234, 16);
            if vector {
                machine.load_record(code, 24, 16);
            } else if to_lds {
                // The offset of 16 is for both places; that in LDS wraps around: -12 + 16.
                machine.emit(code, &["v_mov_b32_e32"], &[v(26), Value::InlineInt(-12)]);
                machine.emit(code, &["v_mov_b32_e32"], &[v(27), Value::InlineInt(0)]);
                assert!(machine.with_offset(code, &["global_load_async_to_lds_b32"], &[v(26), v(27), s(8, 2)], 16));
                machine.emit(code, &["v_mov_b32_e32"], &[v(26), Value::InlineInt(4)]);
            } else {
                machine.emit(code, &["s_load_dword", "s_load_b32"], &[s(24, 1), s(8, 2), Value::Imm(16)]);
            }
            if waits && !machine.try_emit(code, &[name], &[s(scalar::NULL, 1), Value::Imm(0)]) {
                machine.emit(code, &[name], &[Value::Imm(0)]);
            }
            if to_lds {
                machine.emit(code, &["ds_load_b32"], &[v(24), v(26)]);
                machine.emit(code, &["s_wait_dscnt"], &[Value::Imm(0)]);
            }
            machine.emit(code, &["v_mov_b32_e32"], &[v(25), if vector || to_lds { v(24) } else { s(24, 1) }]);
            machine.store_record(code, 25, 4);
            machine.settle(code);
        })
    };
    for record in run(machine, true)? {
        same("what was loaded", record[1], 0x1234)?;
    }
    match run(machine, false) {
        Ok(_) if strict => Err("a missing wait was not seen".to_owned()),
        Err(fault) if !strict => Err(fault),
        _ => Ok(()),
    }
}

/// Vector instructions of three kinds that are skipped or not, by one bit of a register, and one that is not any more.
fn skips(machine: &mut Machine, random: &mut Random) -> Verdict {
    let (bits, index, old, new) =
        (random.next() as u32, random.below(64) as u32, random.next() as u32, random.next() as u32);
    let found = machine.whole(1, &|machine, code| {
        machine.emit(code, &["s_mov_b32"], &[s(24, 1), number(bits)]);
        machine.emit(code, &["s_mov_b32"], &[s(25, 1), number(index)]);
        machine.emit(code, &["v_mov_b32_e32"], &[v(20), number(old)]);
        machine.emit(code, &["v_mov_b32_e32"], &[v(21), number(old)]);
        machine.emit(code, &["v_mov_b32_e32"], &[v(22), number(new)]);
        machine.nothing(code);
        machine.emit(code, &["s_setvskip"], &[s(24, 1), s(25, 1)]);
        machine.nothing(code);
        machine.emit(code, &["v_mov_b32_e32"], &[v(20), number(new)]);
        machine.store_record(code, 22, 8);
        machine.emit(code, &["s_mov_b32"], &[s(26, 1), number(new)]);
        machine.nothing(code);
        machine.emit(code, &["s_setvskip"], &[Value::InlineInt(0), Value::InlineInt(0)]);
        machine.nothing(code);
        machine.emit(code, &["v_mov_b32_e32"], &[v(21), s(26, 1)]);
        machine.nothing(code);
        machine.store_record(code, 20, 0);
        machine.store_record(code, 21, 4);
    })?;
    let skipped = bits >> (index & 31) & 1 != 0;
    for record in found {
        same("what may be skipped", record[0], if skipped { old } else { new })?;
        same("behind it", record[1], new)?;
        if (record[2] == new) == skipped {
            return Err(format!("a store is skipped: {}, it should be {skipped}", record[2] != new));
        }
    }
    Ok(())
}

/// Runs the program of an operation, if it has one.
pub fn test(target: Target, name: &'static str, machines: [(&mut Machine, bool); 2]) -> Option<Verdict> {
    let mut random = Random::new(name.len() as u64 ^ target.index() as u64);
    let mut one = |machine: &mut Machine, strict: bool| -> Option<Verdict> {
        Some(match name {
            "s_endpgm" | "s_endpgm_saved" | "s_endpgm_ordered_ps_done" => ends(machine, name),
            "s_trap" => traps(machine),
            "s_memtime" | "s_memrealtime" | "s_sendmsg_rtn_b32" | "s_sendmsg_rtn_b64" | "s_get_shader_cycles_u64" => {
                tells_time(machine, name)
            }
            "s_set_gpr_idx_on" | "s_set_gpr_idx_off" | "s_set_gpr_idx_idx" | "s_set_gpr_idx_mode" => {
                (0..8).try_for_each(|_| relative(machine, name, &mut random))
            }
            "s_setvskip" => (0..8).try_for_each(|_| skips(machine, &mut random)),
            "s_set_vgpr_msb" => (0..4).try_for_each(|_| high_registers(machine, &mut random)),
            "ds_gws_barrier" | "ds_gws_init" => (0..4).try_for_each(|_| meets_by_global_sync(machine, name)),
            "s_barrier"
            | "s_barrier_signal"
            | "s_barrier_wait"
            | "s_barrier_signal_isfirst"
            | "s_get_barrier_state" => (0..4).try_for_each(|_| meets(machine, name)),
            "s_waitcnt_vmcnt" | "s_waitcnt_lgkmcnt" | "s_wait_loadcnt" | "s_wait_kmcnt" | "s_wait_asynccnt" => {
                waits(machine, strict, name)
            }
            _ => return None,
        })
    };
    let mut verdict = Ok(());
    for (machine, strict) in machines {
        verdict = verdict.and(one(machine, strict)?);
    }
    Some(verdict.map_err(|what| format!("{} wave{}: {name}: {what}", target.name(), target.wave_size())))
}
