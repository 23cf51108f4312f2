//! Runs one instruction on the emulator: loads a state, executes the instruction, stores the state.
//!
//! The code around the instruction is made with the project's encoder and the code object around it by hand, so that no
//! compiler is needed.

use std::collections::HashMap;

use wavetap::emulator::{Device, Dispatch, Options};
use wavetap::isa::{self, Reg, Target, Value, scalar};

use super::control::{LADDER, STEP};
use super::lane::fact;
use super::state::{MEMORY, REGISTERS, State};

/// Vector and scalar registers below these are used by the code around the instruction.
pub const FIRST_VECTOR: u16 = 12;
pub const FIRST_SCALAR: u16 = 16;
/// A lane's part of a buffer of vector registers, as a shift.
const RECORD_SHIFT: u32 = 9;
const RECORDS: u64 = 64 << RECORD_SHIFT;
/// Scalar loads start this far after their bases: an offset of zero has several encodings.
const SKIPPED: u32 = 16;
/// Where the code is in its segment, after the kernel descriptor.
const ENTRY: usize = 256;
/// Words that a work-item of a whole program leaves.
pub const RECORD_WORDS: usize = 8;
/// Words of a buffer of scalars: VCC, M0, SCC, EXEC, then those that the instruction uses.
const SCALARS: usize = 64;

/// The registers that an instruction may read or write, which are loaded before and compared after it.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    pub vector: Vec<u16>,
    pub accum: Vec<u16>,
    pub scalar: Vec<u16>,
}

/// A device for one target and what it needs.
pub struct Machine {
    pub target: Target,
    device: Device,
    known: HashMap<(&'static str, Vec<Value>), Vec<u8>>,
    buffers: [u64; 5],
    pub data: u64,
    /// What is copied to LDS and to private memory before, and back.
    local: u64,
    private: u64,
}

/// The code that executes an instruction with what is around it.
pub struct Program {
    image: Vec<u8>,
    registers: Registers,
    uses: Uses,
    /// Where the instruction after is, from the entry.
    next: u64,
    /// Device address and identity of the loaded code.
    object: Option<wavetap::emulator::LoadedObject>,
}

/// What an instruction touches beside registers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uses {
    pub memory: bool,
    pub lds: bool,
    /// Each lane's private memory.
    pub scratch: bool,
    /// Instructions follow that each set a register.
    pub ladder: bool,
}

/// A vector register as an operand.
pub fn v(first: u16) -> Value {
    Value::Reg(Reg::vector(first, 1))
}

/// Scalar registers as an operand.
pub fn s(first: u16, dwords: u8) -> Value {
    Value::Reg(Reg::scalar(first, dwords))
}

/// A constant: inline where it can be.
pub fn number(value: u32) -> Value {
    if value <= 64 { Value::InlineInt(value as i8) } else { Value::Literal(value) }
}

impl Machine {
    pub fn new(target: Target, strict: bool, seed: u64) -> Machine {
        // The size of waves is the kernel's affair.
        let device_target = Target::by_name(target.name()).expect("it has a name");
        let mut device =
            Device::new(device_target, Options { strict, seed, fuel: 100_000, trace: false, ..Options::default() });
        let buffers = [512, RECORDS, 512, RECORDS, 256].map(|size| device.malloc(size, RECORDS).expect("memory"));
        let [data, local, private] = [(); 3].map(|()| device.malloc(MEMORY as u64, RECORDS).expect("memory"));
        Machine { target, device, known: HashMap::new(), buffers, data, local, private }
    }

    /// Whether it emulates in strict mode.
    pub fn is_strict(&mut self) -> bool {
        self.device.options_mut().strict
    }

    /// Appends the first of the mnemonics that the target has with these operands.
    pub fn emit(&mut self, code: &mut Vec<u8>, mnemonics: &[&'static str], values: &[Value]) {
        assert!(
            self.try_emit(code, mnemonics, values),
            "{}: none of {mnemonics:?} with {values:?}",
            self.target.name()
        );
    }

    pub fn try_emit(&mut self, code: &mut Vec<u8>, mnemonics: &[&'static str], values: &[Value]) -> bool {
        for mnemonic in mnemonics {
            let target = self.target;
            let bytes = self.known.entry((mnemonic, values.to_vec())).or_insert_with(|| {
                let inst = isa::build(target, mnemonic, values);
                inst.and_then(|inst| isa::encode(target, &inst)).unwrap_or_default()
            });
            if !bytes.is_empty() {
                code.extend_from_slice(bytes);
                return true;
            }
        }
        false
    }

    /// Waits for everything and for more wait states than any hazard needs.
    pub fn settle(&mut self, code: &mut Vec<u8>) {
        for counter in [
            "s_waitcnt",
            "s_wait_loadcnt",
            "s_wait_samplecnt",
            "s_wait_storecnt",
            "s_wait_dscnt",
            "s_wait_kmcnt",
            "s_wait_expcnt",
            "s_wait_asynccnt",
        ] {
            self.try_emit(code, &[counter], &[Value::Imm(0)]);
        }
        self.try_emit(code, &["s_waitcnt_vscnt"], &[s(scalar::NULL, 1), Value::Imm(0)]);
        self.nothing(code);
    }

    pub fn nothing(&mut self, code: &mut Vec<u8>) {
        self.emit(code, &["s_nop"], &[Value::Imm(15)]);
        self.emit(code, &["s_nop"], &[Value::Imm(15)]);
        // gfx10 and later: all that instructions have yet to read or to write.
        self.try_emit(code, &["s_waitcnt_depctr"], &[Value::Imm(0)]);
    }

    fn set_mode(&mut self, code: &mut Vec<u8>, mode: u32) {
        // hwreg(HW_REG_MODE, 0, size)
        let bits = if self.target.has_float_mode_bits() { 10 } else { 8 };
        self.emit(
            code,
            &["s_setreg_imm32_b32"],
            &[Value::Imm(1 | (bits - 1) << 11), Value::Literal(mode & ((1 << bits) - 1))],
        );
    }

    /// Moves a lane mask.
    fn move_mask(&mut self, code: &mut Vec<u8>, to: u16, from: u16) {
        let dwords = (self.target.wave_size() / 32) as u8;
        let from = if from == u16::MAX { Value::InlineInt(-1) } else { s(from, dwords) };
        self.emit(code, &[if dwords == 2 { "s_mov_b64" } else { "s_mov_b32" }], &[s(to, dwords), from]);
        // The other half of EXEC is a register like others in a wave of 32 lanes.
        match from {
            Value::Reg(Reg { first, .. }) if dwords == 1 && (to == scalar::EXEC || first == scalar::EXEC) => {
                self.emit(code, &["s_mov_b32"], &[s(to + 1, 1), s(first + 1, 1)]);
            }
            _ => {}
        }
    }

    /// The code object around an instruction, which `tail` follows at once.
    pub fn program(&mut self, instruction: &[u8], registers: Registers, mode: u32, uses: Uses) -> Program {
        let mut code = Vec::new();
        let c = &mut code;
        if uses.scratch {
            self.set_flat_scratch(c);
        }
        let (vector_load, vector_store) = (["load_dword", "load_b32"], ["store_dword", "store_b32"]);
        // The four buffers: scalars and vectors in, scalars and vectors out.
        self.scalar_load(c, &["s_load_dwordx8", "s_load_b256"], s(4, 8), 0, 0);
        self.emit(c, &["v_lshlrev_b32_e32"], &[v(1), number(RECORD_SHIFT), v(0)]);
        self.settle(c);
        self.scalar_load(c, &["s_load_dwordx4", "s_load_b128"], s(12, 4), 4, 0);
        self.scalar_load(c, &["s_load_dwordx2", "s_load_b64"], s(2, 2), 4, 16);
        for (n, &register) in registers.scalar.iter().enumerate() {
            self.scalar_load(c, &["s_load_dword", "s_load_b32"], s(register, 1), 4, 24 + 4 * n as i64);
        }
        let vectors = registers.vector.len();
        for (n, &register) in registers.vector.iter().chain(&registers.accum).enumerate() {
            let to = if n < vectors { register } else { 4 };
            self.load(c, &vector_load, to, 6, 4 * n as i32);
            if n >= vectors {
                self.settle(c);
                self.emit(
                    c,
                    &["v_accvgpr_write_b32", "v_accvgpr_write_b32_e64"],
                    &[Value::Reg(Reg::accum(register, 1)), v(4)],
                );
                self.nothing(c);
            }
        }
        self.settle(c);
        if uses.lds {
            self.own_memory(c, true, 32, &["ds_write_b128", "ds_store_b128"], false);
        }
        if uses.scratch {
            self.own_memory(c, true, 40, &["scratch_store_dwordx4", "scratch_store_b128"], true);
        }
        self.move_mask(c, scalar::VCC, 12);
        self.emit(c, &["s_mov_b32"], &[Value::Reg(Reg::M0), s(14, 1)]);
        self.set_mode(c, mode);
        self.emit(c, &["s_cmp_lg_u32"], &[s(15, 1), Value::InlineInt(0)]);
        self.move_mask(c, scalar::EXEC, 2);
        self.nothing(c);
        c.extend_from_slice(instruction);
        let next = c.len() as u64;
        if uses.ladder {
            for (n, register) in LADDER.into_iter().enumerate() {
                self.emit(c, &["s_movk_i32"], &[s(register, 1), Value::Imm(i64::from(STEP) + n as i64)]);
            }
        }
        self.settle(c);
        // hwreg(HW_REG_MODE, 0, size)
        let bits = if self.target.has_float_mode_bits() { 10 } else { 8 };
        self.emit(c, &["s_getreg_b32"], &[s(4, 1), Value::Imm(1 | (bits - 1) << 11)]);
        self.emit(c, &["s_cselect_b32"], &[s(15, 1), Value::InlineInt(1), Value::InlineInt(0)]);
        self.move_mask(c, 2, scalar::EXEC);
        self.move_mask(c, 12, scalar::VCC);
        self.emit(c, &["s_mov_b32"], &[s(14, 1), Value::Reg(Reg::M0)]);
        self.move_mask(c, scalar::EXEC, u16::MAX);
        self.nothing(c);
        for (n, &register) in registers.vector.iter().chain(&registers.accum).enumerate() {
            let from = if n < vectors { register } else { 4 };
            if n >= vectors {
                self.settle(c);
                self.emit(
                    c,
                    &["v_accvgpr_read_b32", "v_accvgpr_read_b32_e64"],
                    &[v(4), Value::Reg(Reg::accum(register, 1))],
                );
                self.nothing(c);
            }
            self.store(c, &vector_store, from, 10, 4 * n as i32);
        }
        if uses.lds {
            self.own_memory(c, false, 32, &["ds_read_b128", "ds_load_b128"], false);
        }
        if uses.scratch {
            self.own_memory(c, false, 40, &["scratch_load_dwordx4", "scratch_load_b128"], true);
        }
        // One lane is enough for the scalars.
        let dwords = (self.target.wave_size() / 32) as u8;
        self.settle(c);
        self.emit(
            c,
            &[if dwords == 2 { "s_mov_b64" } else { "s_mov_b32" }],
            &[s(scalar::EXEC, dwords), Value::InlineInt(1)],
        );
        self.nothing(c);
        for (n, register) in [12, 13, 14, 15, 2, 3, 4].into_iter().chain(registers.scalar.iter().copied()).enumerate() {
            // Two registers by turns: a store may read its data late.
            let by = 4 + (n % 4) as u16;
            if n % 4 == 0 {
                self.settle(c);
            }
            self.emit(c, &["v_mov_b32_e32"], &[v(by), s(register, 1)]);
            self.nothing(c);
            self.store(c, &vector_store, by, 8, 4 * n as i32);
        }
        self.settle(c);
        self.emit(c, &["s_endpgm"], &[Value::Imm(0)]);
        // What an instruction fetch may read ahead.
        for _ in 0..16 {
            self.emit(c, &["s_nop"], &[Value::Imm(0)]);
        }
        Program {
            image: self.image(&code, uses.scratch, REGISTERS as u32),
            registers,
            uses,
            next: ENTRY as u64 + next,
            object: None,
        }
    }

    /// A whole program of one workgroup of so many waves, with room in LDS: gives what its work-items leave in their
    /// records. The body may use all registers from 20 on.
    pub fn whole(
        &mut self,
        waves: usize,
        body: &dyn Fn(&mut Machine, &mut Vec<u8>),
    ) -> Result<Vec<[u32; RECORD_WORDS]>, String> {
        let error = |error: wavetap::error::Error| error.to_string();
        let mut code = Vec::new();
        let c = &mut code;
        self.emit(c, &["v_lshlrev_b32_e32"], &[v(1), number((4 * RECORD_WORDS as u32).ilog2()), v(0)]);
        self.scalar_load(c, &["s_load_dwordx2", "s_load_b64"], s(8, 2), 0, 0);
        self.settle(c);
        body(self, c);
        self.settle(c);
        self.emit(c, &["s_endpgm"], &[Value::Imm(0)]);
        for _ in 0..16 {
            self.emit(c, &["s_nop"], &[Value::Imm(0)]);
        }
        // Where there are more than instructions name, all of them.
        let image = self.image(&code, false, if self.target.has_vgpr_msb() { 1024 } else { REGISTERS as u32 });
        let object = self.device.load(&image).map_err(error)?;
        let arguments = self.buffers[4];
        self.device.write(arguments + u64::from(SKIPPED), &self.data.to_le_bytes()).map_err(error)?;
        self.device.write(self.data, &[0; MEMORY]).map_err(error)?;
        let items = waves * self.target.wave_size() as usize;
        let dispatch = Dispatch {
            kernel_object: object.base,
            grid: [items as u32, 1, 1],
            workgroup: [items as u16, 1, 1],
            private_segment_size: 0,
            group_segment_size: MEMORY as u32,
            kernarg_address: arguments,
            dispatch_id: 1,
        };
        let ended = self.device.dispatch(&dispatch).map_err(|fault| fault.to_string());
        self.device.unload(&object).map_err(error)?;
        ended?;
        let mut memory = vec![0; 4 * RECORD_WORDS * items];
        self.device.read(self.data, &mut memory).map_err(error)?;
        let record = |bytes: &[u8]| std::array::from_fn(|n| words(bytes)[n]);
        Ok(memory.chunks_exact(4 * RECORD_WORDS).map(record).collect())
    }

    /// A register to or from a work-item's record.
    pub fn store_record(&mut self, code: &mut Vec<u8>, from: u16, at: i32) {
        self.reach(code, &["store_dword", "store_b32"], v(from), 1, 8, at, false);
    }

    pub fn load_record(&mut self, code: &mut Vec<u8>, to: u16, at: i32) {
        self.reach(code, &["load_dword", "load_b32"], v(to), 1, 8, at, true);
    }

    /// A scalar load.
    fn scalar_load(&mut self, code: &mut Vec<u8>, mnemonics: &[&'static str], to: Value, base: u16, offset: i64) {
        self.emit(code, mnemonics, &[to, s(base, 2), Value::Imm(i64::from(SKIPPED) + offset)]);
    }

    /// Whether the hardware sets FLAT_SCRATCH.
    fn has_flat_scratch(&self) -> bool {
        self.target.facts().any(|fact| fact.0 == "architected_flat_scratch" && fact.1 == "true")
    }

    /// The wave's part of scratch memory, where code has to say it (AMDGPUUsage, "Flat scratch").
    fn set_flat_scratch(&mut self, c: &mut Vec<u8>) {
        if self.has_flat_scratch() {
            return;
        }
        let hidden = fact(self.target, "generation") >= 10;
        let (low, high) = if hidden { (2, 3) } else { (scalar::FLAT_SCRATCH, scalar::FLAT_SCRATCH + 1) };
        self.emit(c, &["s_add_u32"], &[s(low, 1), s(2, 1), s(4, 1)]);
        self.emit(c, &["s_addc_u32"], &[s(high, 1), s(3, 1), Value::InlineInt(0)]);
        if hidden {
            // hwreg(HW_REG_FLAT_SCR_LO) and its other half.
            for (register, number) in [(2, 20), (3, 21)] {
                self.emit(c, &["s_setreg_b32"], &[Value::Imm(number | 31 << 11), s(register, 1)]);
            }
        }
    }

    /// Copies memory, whose address is an argument, to LDS or private memory, each lane its part, or back.
    fn own_memory(&mut self, c: &mut Vec<u8>, fill: bool, argument: i64, access: &[&str], private: bool) {
        let part = MEMORY as u32 / self.target.wave_size();
        let data = Value::Reg(Reg::vector(4, 4));
        if fill {
            self.emit(c, &["v_mul_u32_u24_e32"], &[v(2), number(part), v(0)]);
            self.emit(c, &["v_mov_b32_e32"], &[v(3), number(0)]);
        }
        // s[0:1] have the arguments, s[100:101] are nobody's.
        self.scalar_load(c, &["s_load_dwordx2", "s_load_b64"], s(100, 2), 0, argument);
        self.settle(c);
        self.emit(c, &["s_mov_b32"], &[Value::Reg(Reg::M0), Value::InlineInt(-1)]);
        let rest: &[Value] = if private { &[Value::Off] } else { &[] };
        let values = |first: Value, second: Value| [&[first, second], rest].concat();
        let own = v(if private { 3 } else { 2 });
        for offset in (0..part as i32).step_by(16) {
            if fill {
                self.reach(c, &["load_dwordx4", "load_b128"], data, 2, 100, offset, true);
                self.settle(c);
                assert!(self.with_offset(c, access, &values(own, data), offset), "{access:?}");
                self.settle(c);
            } else {
                assert!(self.with_offset(c, access, &values(data, own), offset), "{access:?}");
                self.settle(c);
                self.reach(c, &["store_dwordx4", "store_b128"], data, 2, 100, offset, false);
                self.settle(c);
            }
        }
    }

    pub fn with_offset(&mut self, code: &mut Vec<u8>, mnemonics: &[&str], values: &[Value], offset: i32) -> bool {
        for mnemonic in mnemonics {
            let Ok(mut inst) = isa::build(self.target, mnemonic, values) else { continue };
            inst.modifiers.offset = offset;
            code.extend(isa::encode(self.target, &inst).expect("a small offset"));
            return true;
        }
        false
    }

    /// Loads or stores at a scalar base, a vector offset and a constant one.
    #[allow(clippy::too_many_arguments)] // The parts of an address.
    fn reach(
        &mut self,
        code: &mut Vec<u8>,
        access: &[&str; 2],
        data: Value,
        offsets: u16,
        base: u16,
        offset: i32,
        load: bool,
    ) {
        let order = |address: Value, rest: &[Value]| -> Vec<Value> {
            let mut values = if load { vec![data, address] } else { vec![address, data] };
            values.extend_from_slice(rest);
            values
        };
        let global = access.map(|name| format!("global_{name}"));
        if self.with_offset(code, &[&global[0], &global[1]], &order(v(offsets), &[s(base, 2)]), offset) {
            return;
        }
        // gfx8 has no scalar bases and no offsets. The buffers are aligned to more than they are long.
        self.emit(code, &["v_add_u32_e32"], &[v(8), Value::Literal(offset as u32), v(offsets)]);
        self.emit(code, &["v_or_b32_e32"], &[v(8), s(base, 1), v(8)]);
        self.emit(code, &["v_mov_b32_e32"], &[v(9), s(base + 1, 1)]);
        let flat = access.map(|name| format!("flat_{name}"));
        let address = Value::Reg(Reg::vector(8, 2));
        assert!(
            self.with_offset(code, &[&flat[0], &flat[1]], &order(address, &[]), 0),
            "{}: {access:?}",
            self.target.name()
        );
    }

    fn load(&mut self, code: &mut Vec<u8>, mnemonics: &[&'static str; 2], to: u16, base: u16, offset: i32) {
        self.reach(code, mnemonics, v(to), 1, base, offset, true);
    }

    fn store(&mut self, code: &mut Vec<u8>, mnemonics: &[&'static str; 2], from: u16, base: u16, offset: i32) {
        self.reach(code, mnemonics, v(from), 1, base, offset, false);
    }

    /// A code object with one segment: the kernel descriptor, and the code at 256 (AMDGPUUsage, "Kernel descriptor").
    fn image(&self, code: &[u8], scratch: bool, vgprs: u32) -> Vec<u8> {
        const HEADERS: usize = 0x1000;
        let target = self.target;
        let mut kd = vec![0; 64];
        let mut put = |at: usize, bytes: &[u8]| kd[at..at + bytes.len()].copy_from_slice(bytes);
        put(16, &(ENTRY as u64).to_le_bytes());
        let vgprs = vgprs * if target.unified_accum() { 2 } else { 1 };
        let accum_offset = if target.unified_accum() { REGISTERS as u32 / 4 - 1 } else { 0 };
        let sgprs = if target.fixed_sgprs().is_some() { 0 } else { 12 };
        let float_bits = if target.has_float_mode_bits() { 1 << 21 | 1 << 23 } else { 0 };
        let rsrc1 = (vgprs.div_ceil(target.vgpr_encoded_granule()) - 1) | sgprs << 6 | 0xf << 16 | float_bits;
        // Two user registers: the kernel arguments; two more where code sets FLAT_SCRATCH itself. Scratch.
        let flat = scratch && !self.has_flat_scratch();
        let rsrc2: u32 = if flat { 4 } else { 2 } << 1 | 1;
        put(44, &accum_offset.to_le_bytes());
        put(48, &rsrc1.to_le_bytes());
        put(52, &rsrc2.to_le_bytes());
        let properties: u16 = 8 | if flat { 1 << 5 } else { 0 } | if target.wave_size() == 32 { 1 << 10 } else { 0 };
        put(56, &properties.to_le_bytes());
        let mut segment = kd;
        segment.resize(ENTRY, 0);
        segment.extend_from_slice(code);
        let mut image = vec![0; HEADERS];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01\x01\x40\x04");
        put(0x10, &3_u16.to_le_bytes());
        put(0x12, &224_u16.to_le_bytes());
        put(0x14, &1_u32.to_le_bytes());
        put(0x20, &64_u64.to_le_bytes());
        put(0x30, &target.mach().to_le_bytes());
        put(0x34, &[64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
        // PT_LOAD, readable and executable.
        put(0x40, &1_u32.to_le_bytes());
        put(0x44, &5_u32.to_le_bytes());
        put(0x48, &(HEADERS as u64).to_le_bytes());
        put(0x60, &(segment.len() as u64).to_le_bytes());
        put(0x68, &(segment.len() as u64).to_le_bytes());
        put(0x70, &4096_u64.to_le_bytes());
        image.extend(segment);
        image
    }

    /// Loads a program: gives the device address of what follows the instruction.
    pub fn load_program(&mut self, program: &mut Program) -> Result<u64, String> {
        let object = self.device.load(&program.image).map_err(|error| error.to_string())?;
        let next = object.base + program.next;
        program.object = Some(object);
        Ok(next)
    }

    /// Executes a loaded program in each state and unloads it; gives the states after it.
    pub fn run(&mut self, program: &Program, states: &[State]) -> Result<Vec<State>, String> {
        let object = program.object.as_ref().ok_or("the program is not loaded")?;
        let result = states.iter().map(|state| self.run_in(object.base, program, state)).collect();
        self.device.unload(object).map_err(|error| error.to_string())?;
        result
    }

    fn run_in(&mut self, kernel: u64, program: &Program, state: &State) -> Result<State, String> {
        let [scalars_in, vectors_in, scalars_out, vectors_out, arguments] = self.buffers;
        let registers = &program.registers;
        let rows = registers.vector.len() + registers.accum.len();
        assert!(4 * rows <= 1 << RECORD_SHIFT && 7 + registers.scalar.len() <= SCALARS, "too many registers");
        let error = |error: wavetap::error::Error| error.to_string();
        let mut scalars = vec![
            state.sgpr[106],
            state.sgpr[107],
            state.sgpr[124],
            u32::from(state.scc),
            state.sgpr[126],
            state.sgpr[127],
        ];
        scalars.extend(registers.scalar.iter().map(|&register| state.sgpr[usize::from(register)]));
        self.device.write(scalars_in, &bytes(&scalars)).map_err(error)?;
        let mut vectors = vec![0; state.lanes << RECORD_SHIFT];
        for lane in 0..state.lanes {
            let record = &mut vectors[lane << RECORD_SHIFT..];
            let rows = registers
                .vector
                .iter()
                .map(|&n| &state.vgpr[usize::from(n)])
                .chain(registers.accum.iter().map(|&n| &state.agpr[usize::from(n)]));
            for (word, row) in record.chunks_exact_mut(4).zip(rows) {
                word.copy_from_slice(&row[lane].to_le_bytes());
            }
        }
        self.device.write(vectors_in, &vectors).map_err(error)?;
        let pointers: Vec<u8> =
            [scalars_in - u64::from(SKIPPED), vectors_in, scalars_out, vectors_out, self.local, self.private]
                .iter()
                .flat_map(|pointer| pointer.to_le_bytes())
                .collect();
        self.device.write(arguments + u64::from(SKIPPED), &pointers).map_err(error)?;
        if program.uses.memory {
            self.device.write(self.data, &state.memory).map_err(error)?;
        }
        if program.uses.lds {
            self.device.write(self.local, &state.lds).map_err(error)?;
        }
        if program.uses.scratch {
            self.device.write(self.private, &state.scratch).map_err(error)?;
        }
        let dispatch = Dispatch {
            kernel_object: kernel,
            grid: [state.lanes as u32, 1, 1],
            workgroup: [state.lanes as u16, 1, 1],
            private_segment_size: if program.uses.scratch { (MEMORY / state.lanes) as u32 } else { 0 },
            group_segment_size: if program.uses.lds { MEMORY as u32 } else { 0 },
            kernarg_address: arguments,
            dispatch_id: 1,
        };
        self.device.dispatch(&dispatch).map_err(|fault| fault.to_string())?;
        let mut after = state.clone();
        let mut out = vec![0; 4 * SCALARS];
        self.device.read(scalars_out, &mut out).map_err(error)?;
        let out = words(&out);
        after.set_mask(106, u64::from(out[0]) | u64::from(out[1]) << 32);
        after.sgpr[124] = out[2];
        after.scc = out[3] != 0;
        after.set_mask(126, u64::from(out[4]) | u64::from(out[5]) << 32);
        let known = if self.target.has_float_mode_bits() { 0x3ff } else { 0xff };
        after.mode = after.mode & !known | out[6];
        for (&register, &word) in registers.scalar.iter().zip(&out[7..]) {
            after.sgpr[usize::from(register)] = word;
        }
        self.device.read(vectors_out, &mut vectors).map_err(error)?;
        for lane in 0..state.lanes {
            let record = words(&vectors[lane << RECORD_SHIFT..][..4 * rows]);
            for (n, word) in record.into_iter().enumerate() {
                match registers.vector.get(n) {
                    Some(&register) => after.vgpr[usize::from(register)][lane] = word,
                    None => after.agpr[usize::from(registers.accum[n - registers.vector.len()])][lane] = word,
                }
            }
        }
        if program.uses.memory {
            self.device.read(self.data, &mut after.memory).map_err(error)?;
        }
        if program.uses.lds {
            self.device.read(self.local, &mut after.lds).map_err(error)?;
        }
        if program.uses.scratch {
            self.device.read(self.private, &mut after.scratch).map_err(error)?;
        }
        Ok(after)
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}
