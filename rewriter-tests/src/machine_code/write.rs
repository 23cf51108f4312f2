//! The instructions of a kernel.
//!
//! | registers | what is in them |
//! |---|---|
//! | `s[4:5]`, `v1`, `v[2:3]` | address of memory, each lane's offset, both together |
//! | `s20` | a number that the waves' ways depend on, another one in each |
//! | `s40..s55`, `v8..v31` | data: what is loaded and computed |
//! | `s56..s79`, `s80..s91` | saved masks; counters of loops: by function and depth |
//! | `s[30:31]`, `s[92:97]`, `s[98:99]` | return address, those saved, where a call goes |

use wavetap::isa::{self, Counter, Inst, Reg, Target, Value, WaitCount, scalar};

use super::Wish;
use crate::Failure;
use crate::random::Random;

/// How deep statements lie in one another.
const DEEPEST: usize = 3;
/// Functions beside the kernel.
const FUNCTIONS: usize = 3;
/// Most statements of a function.
const OF_FUNCTION: usize = 8;
const BASE: u16 = 4;
const NUMBER: u16 = 20;
const LINK: u16 = 30;
const CALLED: u16 = 98;

/// A piece of the code.
enum Piece {
    Bytes(Vec<u8>),
    /// A branch to a label, one dword.
    Branch(&'static str, usize),
    Label(usize),
    /// The low half of the distance to a label from behind a `s_getpc_b64`, which is so many bytes back.
    Distance(usize, usize),
}

impl Piece {
    fn size(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Branch(..) => 4,
            Piece::Label(_) => 0,
            Piece::Distance(..) => 8,
        }
    }
}

pub(super) struct Writer {
    target: Target,
    random: Random,
    wish: Wish,
    pieces: Vec<Piece>,
    labels: usize,
    /// The label of each function.
    functions: Vec<usize>,
    /// Which function is being written; the kernel is the first.
    function: usize,
    /// Statements that may still be written.
    left: usize,
    /// Labels after the loops around a statement.
    exits: Vec<usize>,
    failure: Option<Failure>,
}

fn s(first: u16, dwords: u8) -> Value {
    Value::Reg(Reg::scalar(first, dwords))
}

fn v(first: u16, dwords: u8) -> Value {
    Value::Reg(Reg::vector(first, dwords))
}

/// An operand for a number: inline if it is small.
fn number(value: u32) -> Value {
    if value <= 64 { Value::InlineInt(value as i8) } else { Value::Literal(value) }
}

impl Writer {
    pub(super) fn new(target: Target, mut random: Random, wish: Wish) -> Writer {
        let count = if wish.calls { random.below(FUNCTIONS + 1) } else { 0 };
        let (functions, left) = ((0..count).collect(), wish.statements / 2 + random.below(wish.statements / 2 + 1));
        Writer {
            target,
            random,
            wish,
            pieces: Vec::new(),
            labels: count,
            functions,
            function: 0,
            left,
            exits: Vec::new(),
            failure: None,
        }
    }

    pub(super) fn kernel(mut self) -> Result<Vec<u8>, Failure> {
        self.start();
        while self.left > 0 {
            self.statement(0);
        }
        self.op(&["s_endpgm"], &[Value::Imm(0)]);
        for n in 0..self.functions.len() {
            self.function = n + 1;
            self.left = 1 + self.random.below(OF_FUNCTION);
            self.pieces.push(Piece::Label(self.functions[n]));
            let saved = 92 + 2 * n as u16;
            self.op(&["s_mov_b64"], &[s(saved, 2), s(LINK, 2)]);
            while self.left > 0 {
                self.statement(1);
            }
            self.op(&["s_mov_b64"], &[s(LINK, 2), s(saved, 2)]);
            self.op(&["s_setpc_b64"], &[s(LINK, 2)]);
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.placed(),
        }
    }

    /// The bytes, with distances filled in.
    fn placed(&self) -> Result<Vec<u8>, Failure> {
        let mut at = 0;
        let mut places = vec![0; self.labels];
        for piece in &self.pieces {
            if let Piece::Label(label) = piece {
                places[*label] = at;
            }
            at += piece.size();
        }
        let mut code = Vec::with_capacity(at);
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => code.extend_from_slice(bytes),
                Piece::Label(_) => {}
                Piece::Branch(name, label) => {
                    let dwords = (places[*label] as i64 - (code.len() as i64 + 4)) / 4;
                    code.extend(self.encoded(&[name], &[Value::Imm(dwords)], |_| ())?);
                }
                Piece::Distance(label, back) => {
                    let distance = places[*label] as i64 - (code.len() - back) as i64;
                    let values = [s(CALLED, 1), s(CALLED, 1), Value::Literal(distance as u32)];
                    code.extend(self.encoded(&["s_add_u32", "s_add_co_u32"], &values, |_| ())?);
                }
            }
        }
        Ok(code)
    }

    fn encoded(&self, names: &[&str], values: &[Value], change: impl Fn(&mut Inst)) -> Result<Vec<u8>, Failure> {
        let mut why = None;
        // Vector instructions are named with their encoding.
        for name in names.iter().flat_map(|name| ["", "_e32", "_e64"].map(|end| format!("{name}{end}"))) {
            match isa::build(self.target, &name, values) {
                Ok(mut inst) => {
                    change(&mut inst);
                    return isa::encode(self.target, &inst).map_err(|e| e.to_string());
                }
                Err(error) if error.to_string().contains("has no instruction") => {
                    why.get_or_insert(error.to_string());
                }
                Err(error) => why = Some(error.to_string()),
            }
        }
        Err(why.unwrap_or_default())
    }

    /// An instruction by the first of its names that the target has.
    fn op(&mut self, names: &[&str], values: &[Value]) {
        self.op_with(names, values, |_| ());
    }

    fn op_with(&mut self, names: &[&str], values: &[Value], change: impl Fn(&mut Inst)) {
        match self.encoded(names, values, change) {
            Ok(bytes) => self.pieces.push(Piece::Bytes(bytes)),
            Err(failure) => {
                self.failure.get_or_insert(failure);
            }
        }
    }

    /// The name of an operation on a mask.
    fn mask_op(&mut self, stem: &str, values: &[(u16, bool)]) {
        let dwords = (self.target.wave_size() / 32) as u8;
        let name = format!("{stem}_b{}", 32 * dwords);
        let values: Vec<Value> = values.iter().map(|&(code, _)| s(code, dwords)).collect();
        self.op(&[&name], &values);
    }

    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels - 1
    }

    fn start(&mut self) {
        self.op(&["s_mov_b64"], &[s(BASE, 2), s(0, 2)]);
        self.op(&["v_readfirstlane_b32"], &[s(NUMBER, 1), v(0, 1)]);
        let (factor, term) = (self.random.bits() as u32 | 1 << 30 | 1, self.random.bits() as u32 | 1 << 30);
        self.op(&["s_mul_i32"], &[s(NUMBER, 1), s(NUMBER, 1), Value::Literal(factor)]);
        self.op(&["s_xor_b32"], &[s(NUMBER, 1), s(NUMBER, 1), Value::Literal(term)]);
        // The work-item's number in x, times four.
        self.op(&["v_and_b32"], &[v(1, 1), Value::Literal(0x3ff), v(0, 1)]);
        self.op(&["v_lshlrev_b32"], &[v(1, 1), Value::InlineInt(2), v(1, 1)]);
        self.op(&["v_or_b32"], &[v(2, 1), s(BASE, 1), v(1, 1)]);
        self.op(&["v_mov_b32"], &[v(3, 1), s(BASE + 1, 1)]);
        self.op(&["s_mov_b32"], &[s(scalar::M0, 1), Value::InlineInt(-1)]);
    }

    fn data(&mut self) -> Value {
        v(8 + self.random.below(24) as u16, 1)
    }

    fn scalar_data(&mut self) -> Value {
        s(40 + self.random.below(16) as u16, 1)
    }

    fn statement(&mut self, depth: usize) {
        self.left = self.left.saturating_sub(1);
        let control = self.wish.control && depth < DEEPEST;
        match self.random.below(20) {
            0 if control => self.branch(depth),
            1 if control => self.lanes(depth),
            2 if control => self.repeat(depth),
            3 if !self.exits.is_empty() => self.exit(),
            4 if self.function < self.functions.len() => self.call(),
            5..=11 => self.memory(),
            12..=15 => self.wait(),
            16 | 17 => self.vector(),
            _ => self.scalar(),
        }
    }

    fn block(&mut self, depth: usize) {
        for _ in 0..=self.random.below(5) {
            self.statement(depth + 1);
        }
    }

    /// SCC becomes one bit of the number, which changes.
    fn decide(&mut self) {
        let (factor, term) = (1_664_525, 1_013_904_223);
        self.op(&["s_mul_i32"], &[s(NUMBER, 1), s(NUMBER, 1), Value::Literal(factor)]);
        self.op(&["s_add_u32", "s_add_co_u32"], &[s(NUMBER, 1), s(NUMBER, 1), Value::Literal(term)]);
        let bit = number(16 + self.random.below(16) as u32);
        self.op(&["s_bitcmp1_b32"], &[s(NUMBER, 1), bit]);
    }

    fn branch(&mut self, depth: usize) {
        let (other, end) = (self.label(), self.label());
        self.decide();
        // Two bits in a row make one way rarer than the other.
        if self.random.chance(40) {
            let name = self.random.of(&["s_cbranch_scc0", "s_cbranch_scc1"]);
            self.pieces.push(Piece::Branch(name, other));
            self.decide();
        }
        self.pieces.push(Piece::Branch("s_cbranch_scc0", other));
        self.block(depth);
        if self.random.chance(60) {
            self.pieces.push(Piece::Branch("s_branch", end));
            self.pieces.push(Piece::Label(other));
            self.block(depth);
        } else {
            self.pieces.push(Piece::Label(other));
        }
        self.pieces.push(Piece::Label(end));
    }

    /// Only some lanes execute what is inside.
    fn lanes(&mut self, depth: usize) {
        let saved = 56 + 2 * (self.function * DEEPEST + depth) as u16;
        let (a, b) = (self.data(), self.data());
        let end = self.label();
        let name = self.random.of(&["v_cmp_lt_u32", "v_cmp_ne_u32", "v_cmp_gt_i32"]);
        let vcc = s(scalar::VCC, (self.target.wave_size() / 32) as u8);
        self.op(&[name], &[vcc, a, b]);
        self.mask_op("s_and_saveexec", &[(saved, true), (scalar::VCC, false)]);
        if self.random.chance(50) {
            self.pieces.push(Piece::Branch("s_cbranch_execz", end));
        }
        self.block(depth);
        self.pieces.push(Piece::Label(end));
        self.mask_op("s_or", &[(scalar::EXEC, true), (scalar::EXEC, false), (saved, false)]);
    }

    fn repeat(&mut self, depth: usize) {
        let counter = s(80 + (self.function * DEEPEST + depth) as u16, 1);
        let (again, end) = (self.label(), self.label());
        let most = self.random.of(&[1, 3, 3, 7]);
        self.op(&["s_and_b32"], &[counter, s(NUMBER, 1), number(most)]);
        self.pieces.push(Piece::Label(again));
        self.exits.push(end);
        self.block(depth);
        self.exits.pop();
        self.op(&["s_sub_u32", "s_sub_co_u32"], &[counter, counter, number(1)]);
        self.op(&["s_cmp_gt_i32"], &[counter, number(0)]);
        self.pieces.push(Piece::Branch("s_cbranch_scc1", again));
        self.pieces.push(Piece::Label(end));
    }

    fn exit(&mut self) {
        let end = self.exits[self.random.below(self.exits.len())];
        self.decide();
        self.pieces.push(Piece::Branch("s_cbranch_scc1", end));
    }

    /// A function calls those after it.
    fn call(&mut self) {
        let which = self.function + self.random.below(self.functions.len() - self.function);
        let label = self.functions[which];
        self.op(&["s_getpc_b64"], &[s(CALLED, 2)]);
        self.pieces.push(Piece::Distance(label, 0));
        self.op(&["s_addc_u32", "s_add_co_ci_u32"], &[s(CALLED + 1, 1), s(CALLED + 1, 1), Value::InlineInt(0)]);
        self.op(&["s_swappc_b64"], &[s(LINK, 2), s(CALLED, 2)]);
    }

    fn memory(&mut self) {
        let (data, other) = (self.data(), self.data());
        let offset = 4 * self.random.below(64) as i32;
        let place = move |inst: &mut Inst| inst.modifiers.offset = offset;
        let kinds = if self.wish.mixed { 12 } else { 5 };
        match self.random.below(kinds) {
            // gfx8 has FLAT instructions for all of memory.
            0..=2 if self.target.generation() < 9 => self.op(&["flat_load_dword"], &[data, v(2, 2)]),
            3 if self.target.generation() < 9 => self.op(&["flat_store_dword"], &[v(2, 2), data]),
            0..=2 => self.op_with(&["global_load_dword", "global_load_b32"], &[data, v(1, 1), s(BASE, 2)], place),
            3 => self.op_with(&["global_store_dword", "global_store_b32"], &[v(1, 1), data, s(BASE, 2)], place),
            4 if self.random.chance(30) => {
                // No target has more than two of them.
                let invalidates = ["buffer_wbinvl1", "buffer_inv", "buffer_gl0_inv", "global_inv"];
                self.op(&invalidates, &[]);
            }
            4 => self.op(&["flat_load_dword", "flat_load_b32"], &[data, v(2, 2)]),
            5 => self.op(&["flat_store_dword", "flat_store_b32"], &[v(2, 2), data]),
            6 => self.op_with(&["ds_write_b32", "ds_store_b32"], &[v(1, 1), data], place),
            7 => self.op_with(&["ds_add_rtn_u32"], &[data, v(1, 1), other], place),
            8 | 9 => self.op_with(&["ds_read_b32", "ds_load_b32"], &[data, v(1, 1)], place),
            _ => {
                let (first, imm) =
                    (40 + 2 * self.random.below(8) as u16, Value::Imm(8 + 8 * self.random.below(63) as i64));
                self.op(&["s_load_dwordx2", "s_load_b64"], &[s(first, 2), s(BASE, 2), imm]);
            }
        }
    }

    /// A wait for any number of operations of some counters.
    fn wait(&mut self) {
        let counters: Vec<Counter> =
            [Counter::Vm, Counter::Lgkm, Counter::Vs, Counter::Load, Counter::Store, Counter::Ds, Counter::Km]
                .into_iter()
                .filter(|counter| self.target.largest_wait(*counter).is_some())
                .collect();
        let mut counts = WaitCount::default();
        for _ in 0..=self.random.below(2) {
            let counter = self.random.of(&counters);
            let most = if self.random.chance(40) { 0 } else { self.random.below(6) as u8 };
            counts = counts.with(counter, if self.wish.careful && self.random.chance(70) { 0 } else { most });
        }
        let Some(all) = isa::waits_for(self.target, counts) else {
            self.failure.get_or_insert(format!("{} cannot wait for {counts:?}", self.target.name()));
            return;
        };
        for (name, bits) in all {
            let null = Value::Reg(Reg::scalar(scalar::NULL, 1));
            let imm = Value::Imm(i64::from(bits));
            match isa::build(self.target, name, &[imm]) {
                Ok(_) => self.op(&[name], &[imm]),
                Err(_) => self.op(&[name], &[null, imm]),
            }
        }
    }

    fn vector(&mut self) {
        let (dst, a, b) = (self.data(), self.data(), self.data());
        let vcc = s(scalar::VCC, (self.target.wave_size() / 32) as u8);
        match self.random.below(7) {
            0 | 1 => self.op(&["v_xor_b32"], &[dst, a, b]),
            2 => self.op(&["v_mov_b32"], &[dst, a]),
            3 => self.op(&["v_cmp_lt_u32"], &[vcc, a, b]),
            4 => self.op(&["v_cndmask_b32"], &[dst, a, b, vcc]),
            5 => {
                let (from, lane) = (self.scalar_data(), number(self.random.below(32) as u32));
                self.op(&["v_writelane_b32"], &[dst, from, lane]);
            }
            _ => {
                let (to, lane) = (self.scalar_data(), number(self.random.below(32) as u32));
                self.op(&["v_readlane_b32"], &[to, a, lane]);
            }
        }
    }

    fn scalar(&mut self) {
        let (dst, a, b) = (self.scalar_data(), self.scalar_data(), self.scalar_data());
        match self.random.below(5) {
            0 => self.op(&["s_xor_b32"], &[dst, a, b]),
            1 => self.op(&["s_add_u32", "s_add_co_u32"], &[dst, a, b]),
            2 => self.op(&["s_cselect_b32"], &[dst, a, b]),
            3 => self.op(&["s_cmp_lt_u32"], &[a, b]),
            _ => self.op(&["s_cmov_b32"], &[dst, a]),
        }
    }
}
