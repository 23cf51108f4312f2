//! The fast path of vector ALU instructions: whole registers of 32 or 64 bits a lane, no DPP, SDWA or output modifiers,
//! the usual MODE.
//!
//! Other instructions, and every instruction while MODE is unusual or registers are indexed, take the slow path of
//! [`super`]. Results are computed into a spare register that takes the place of the old one, so that nothing is copied
//! while all lanes are active.

use wavetap_amdgpu::{Half, Inst, OpcodeFlags, Reg, RegFile, scalar};

use super::lane_access::div_fmas;
use super::{run_lane, run_lane_bit, run_test};
use crate::exec::vector;
use crate::fault::stop::ExecResult;
use crate::float::Env;
use crate::lanes::simplified::{of_lane, of_wide_lane};
use crate::lanes::{self, ActiveLanes, LANES, LanePart, Operation, Register, Row, Rows, Sign, active};
use crate::launch::Launch;
use crate::op::fast_path::{FastPath, RESULT, WHOLE};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::fp_mode::FpMode;
use crate::state::op::{Handler, Op};
use crate::state::wave::Wave;
use crate::state::work::{Broadcast, WorkRows, put};

static ZERO: Row = [0; LANES];

/// What MODE has the fast path do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Plain,
    /// Denormals of single precision are zeros.
    Flush,
}

impl FastPath {
    /// None if a source or the destination is of no usual kind.
    fn new(inst: &Inst, sources: [(Source, u16); 3], dst: Option<Reg>, dwords: u16) -> Option<FastPath> {
        let first = dst.filter(|reg| reg.file == RegFile::Vector).map(|reg| reg.first);
        if dst.is_some() && first.is_none() {
            return None;
        }
        let dst = (first.unwrap_or(0), if first.is_some() { dwords } else { 0 });
        let wavetap_amdgpu::Modifiers { abs, neg, .. } = inst.modifiers;
        let mut fast = FastPath {
            sources,
            constants: Default::default(),
            dst,
            abs,
            neg,
            parts: [None; 2],
            changed: abs | neg != 0,
            masked: false,
            flags: false,
            scalars: 0,
            float: inst.is_any(OpcodeFlags::FLOAT),
            singles: 0,
            vector: dst.0 + dst.1,
            accum: 0,
            scalar: 0,
        };
        for (at, (source, dwords)) in sources.into_iter().enumerate() {
            match source {
                Source::None => {}
                Source::Vector(first) => fast.vector = fast.vector.max(first + dwords),
                Source::Accum(first) => fast.accum = fast.accum.max(first + dwords),
                Source::Scalar(code) if code + dwords > 128 || (code..code + dwords).contains(&scalar::NULL) => {
                    return None;
                }
                Source::Scalar(code) => {
                    fast.scalars |= 1 << at;
                    // VCC and what follows are there whatever is allocated.
                    if code < scalar::FLAT_SCRATCH {
                        fast.scalar = fast.scalar.max(code + dwords);
                    }
                }
                Source::Const(bits) => {
                    for (n, row) in fast.constants[at].iter_mut().enumerate().take(usize::from(dwords)) {
                        *row = Some(Box::new(Register([(bits >> (32 * n)) as u32; LANES])));
                    }
                }
                Source::LdsDirect => return None,
            }
        }
        Some(fast)
    }

    /// Whether the fast path applies, and what MODE adds to it; makes the checks of strict mode.
    #[inline(always)]
    fn open(&self, core: &mut Core, op: &Op) -> ExecResult<Option<Open>> {
        let wave = &core.wave;
        let there = usize::from(self.vector) <= wave.vgpr.len()
            && usize::from(self.accum) <= wave.agpr.len()
            && self.scalar <= wave.sgpr_count;
        let open = match wave.fp_mode {
            FpMode::Usual => Open::Plain,
            FpMode::Flushing if self.singles == 0 => Open::Plain,
            FpMode::Flushing => Open::Flush,
            FpMode::Bits if !self.float => Open::Plain,
            FpMode::Bits | FpMode::Closed => return Ok(None),
        };
        if !there {
            return Ok(None);
        }
        if core.launch.strict {
            self.check(core, op)?;
        }
        Ok(Some(open))
    }

    /// [`FastPath::open`] of an instruction that has no fast path where denormals are flushed.
    #[inline(always)]
    fn open_plain(&self, core: &mut Core, op: &Op) -> ExecResult<bool> {
        if self.singles != 0 && core.wave.fp_mode == FpMode::Flushing {
            return Ok(false);
        }
        Ok(self.open(core, op)?.is_some())
    }

    /// An operation on sources that are not taken as they are, or with flags.
    #[inline(never)]
    fn changed_words(
        &self,
        wave: &Wave,
        f: &dyn Operation,
        (broadcast, signed, flushed, out): (&Broadcast, &mut [Register; 3], &mut [Register; 3], &mut Row),
        lanes: ActiveLanes,
        open: Open,
    ) {
        let rows = self.rows(wave, broadcast, signed);
        let [a, b, c] = if open == Open::Flush { self.flushed(rows, flushed) } else { rows };
        if self.flags {
            let flags = wave.mask(scalar::VCC) & lanes.mask;
            f.words(a, b, c, out, ActiveLanes { mask: lanes.mask & !flags, ..lanes });
            for lane in active(flags) {
                let [a, b, c, _] = of_lane([a, b, c], lane);
                out[lane] = f.lane(&Env::USUAL, &[a, b, c, 1]) as u32;
            }
        } else {
            f.words(a, b, c, out, lanes);
        }
        if open == Open::Flush && self.singles & RESULT != 0 {
            let results = *out;
            lanes::flush(&results, out);
        }
    }

    /// The slow path of [`Semantics::Lane`].
    #[cold]
    fn run_slow(&self, core: &mut Core, op: &Op) -> ExecResult {
        if self.flags { div_fmas(core, op) } else { run_lane(core, op) }
    }

    #[inline(never)]
    fn check(&self, core: &mut Core, op: &Op) -> ExecResult {
        if self.flags {
            core.passed(core.wave.hazards.check_div_fmas())?;
        }
        for (source, dwords) in self.sources {
            match source {
                Source::Vector(first) => core.reading(op, RegFile::Vector, first, dwords)?,
                Source::Accum(first) => core.reading(op, RegFile::Accum, first, dwords)?,
                Source::Scalar(code) => core.reading(op, RegFile::Scalar, code, dwords)?,
                Source::Const(_) | Source::None | Source::LdsDirect => {}
            }
        }
        if self.flags {
            core.mask(op, scalar::VCC)?;
        }
        if self.dst.1 > 0 { core.writing(op, RegFile::Vector, self.dst.0, self.dst.1) } else { Ok(()) }
    }

    /// One dword of a source in all lanes: `n` is 0 or 1.
    #[inline(always)]
    fn row<'a>(&'a self, wave: &'a Wave, broadcast: &'a Broadcast, at: usize, n: u16) -> &'a Row {
        match self.sources[at].0 {
            Source::Vector(first) => &wave.vgpr[usize::from(first + n)],
            Source::None => &ZERO,
            Source::Scalar(code) => &broadcast.0[usize::from(code + n)],
            Source::Accum(first) => &wave.agpr[usize::from(first + n)],
            Source::Const(_) | Source::LdsDirect => {
                self.constants[at][usize::from(n)].as_deref().map_or(&ZERO, |register| register)
            }
        }
    }

    /// Makes scalar sources what they are now.
    #[inline(always)]
    fn update(&self, wave: &Wave, broadcast: &mut Broadcast) {
        if self.scalars != 0 {
            for (at, (source, dwords)) in self.sources.into_iter().enumerate() {
                if let (Source::Scalar(code), true) = (source, self.scalars >> at & 1 != 0) {
                    broadcast.update(wave, code, dwords);
                }
            }
        }
    }

    /// The first dwords of the sources, with their signs.
    #[inline(always)]
    fn rows<'a>(&'a self, wave: &'a Wave, broadcast: &'a Broadcast, signed: &'a mut [Register; 3]) -> Rows<'a> {
        let row = |at| self.row(wave, broadcast, at, 0);
        let rows = [row(0), row(1), row(2)];
        if self.changed { self.changed_rows(wave, rows, signed) } else { rows }
    }

    #[inline(never)]
    fn changed_rows<'a>(&'a self, wave: &'a Wave, mut rows: Rows<'a>, signed: &'a mut [Register; 3]) -> Rows<'a> {
        for ((at, row), buffer) in rows.iter_mut().enumerate().zip(signed) {
            *row = match self.parts.get(at) {
                _ if at == 2 && self.masked => {
                    lanes::expand(self.mask(wave, at), buffer);
                    buffer
                }
                // The part is a number as wide as the operation's: the sign is that of the number.
                Some(Some(part)) => {
                    lanes::take_part(row, *part, buffer);
                    lanes::change_sign(buffer, self.sign(at));
                    buffer
                }
                _ => with_sign(row, self.sign(at), buffer),
            };
        }
        rows
    }

    /// The sources with denormals of those of single precision made zeros.
    #[inline(never)]
    fn flushed<'a>(&self, mut rows: Rows<'a>, flushed: &'a mut [Register; 3]) -> Rows<'a> {
        for ((at, row), buffer) in rows.iter_mut().enumerate().zip(flushed) {
            if self.singles >> at & 1 != 0 {
                lanes::flush(row, buffer);
                *row = buffer;
            }
        }
        rows
    }

    /// Both dwords of the sources, with their signs; the high dword of what has one is zero.
    #[inline(always)]
    fn pairs<'a>(
        &'a self,
        wave: &'a Wave,
        types: &[Ty; 4],
        broadcast: &'a Broadcast,
        signed: &'a mut [Register; 3],
    ) -> [[&'a Row; 2]; 3] {
        let mut sources = [[&ZERO; 2]; 3];
        for ((at, source), buffer) in sources.iter_mut().enumerate().zip(signed) {
            source[0] = self.row(wave, broadcast, at, 0);
            // The sign is in the last dword.
            let wide = types[at].dwords() == 2;
            if wide {
                source[1] = self.row(wave, broadcast, at, 1);
            }
            if self.changed {
                let last = &mut source[usize::from(wide)];
                *last = with_sign(last, self.sign(at), buffer);
            }
        }
        sources
    }

    /// Absolute value and negation of a source.
    fn sign(&self, at: usize) -> Sign {
        Sign { absolute: self.abs >> at & 1 != 0, negate: self.neg >> at & 1 != 0 }
    }

    fn mask(&self, wave: &Wave, at: usize) -> u64 {
        match self.sources[at].0 {
            Source::Scalar(code) => wave.mask(code),
            Source::Const(bits) => bits,
            _ => 0,
        }
    }

    /// Makes the results those of the destination, in the active lanes.
    #[inline(always)]
    fn put(&self, wave: &mut Wave, out: &mut [Box<Register>]) {
        let (mask, lanes) = (wave.exec(), wave.lanes);
        put(&mut wave.vgpr[usize::from(self.dst.0)..][..usize::from(self.dst.1)], out, mask, lanes);
    }
}

fn is_word(ty: Ty) -> bool {
    matches!(ty, Ty::B32 | Ty::F32)
}

fn is_whole(ty: Ty) -> bool {
    is_word(ty) || matches!(ty, Ty::B64 | Ty::F64)
}

/// The handler of an instruction: a short one where it is of that kind, else the one given.
pub(crate) fn faster(
    run: Handler,
    semantics: &Semantics,
    inst: &Inst,
    src: [Source; 4],
    dst: Option<Reg>,
) -> (Handler, Option<Box<FastPath>>) {
    let m = inst.modifiers;
    let plain = m.op_sel | m.bitop3 | m.byte_sel == 0 && m.omod == 0 && !m.clamp && m.dpp.is_none() && m.dpp8.is_none();
    // The slow path takes halves of registers that operands name.
    let whole = inst.operands.iter().all(|operand| operand.half == Half::Whole);
    if !plain || !whole {
        return (run, None);
    }
    let is = |handler: Handler| std::ptr::fn_addr_eq(run, handler);
    let whole_mask = u16::from(inst.wave_size == 64) + 1;
    let dwords = |ty: Ty| if ty == Ty::Mask { whole_mask } else { u16::from(ty.dwords()) };
    let fast = |types: [Ty; 3], dst: Option<Reg>, wide: Ty| {
        let used = |at: usize| if types[at] == Ty::None { (Source::None, 0) } else { (src[at], dwords(types[at])) };
        let parts = match m.sdwa {
            // Where the result takes a part of its register, or operands are of two dwords, the slow path runs it.
            Some(sdwa)
                if (sdwa.dst_sel != WHOLE && dst.is_some())
                    || wide.dwords() == 2
                    || types.iter().any(|ty| ty.dwords() == 2 && *ty != Ty::Mask) =>
            {
                return None;
            }
            Some(sdwa) => [LanePart::of(sdwa.src0_sel, sdwa.src0_sext), LanePart::of(sdwa.src1_sel, sdwa.src1_sext)],
            None => [None; 2],
        };
        let fast = FastPath::new(inst, [used(0), used(1), used(2)], dst, dwords(wide))?;
        let masked = types[2] == Ty::Mask;
        let single = |ty: Ty, bit: u8| if ty == Ty::F32 { bit } else { 0 };
        let singles = single(types[0], 1) | single(types[1], 2) | single(types[2], 4) | single(wide, RESULT);
        let scalars = if masked { fast.scalars & 3 } else { fast.scalars };
        Some(Box::new(FastPath {
            masked,
            singles,
            scalars,
            parts,
            changed: fast.changed || masked || parts != [None; 2],
            ..fast
        }))
    };
    let words_or_none = |types: &[Ty]| types.iter().all(|ty| is_word(*ty) || *ty == Ty::None);
    let (short, fast): (Handler, _) = match *semantics {
        Semantics::Lane { dst: ty, src: [a, b, c, Ty::None], .. } if is(run_lane) && dst.is_some() => {
            if is_word(ty) && words_or_none(&[a, b]) && (words_or_none(&[c]) || c == Ty::Mask) {
                (run_words, fast([a, b, c], dst, ty))
            } else if is_whole(ty) && [a, b, c].iter().all(|ty| is_whole(*ty) || *ty == Ty::None) {
                (run_doubles, fast([a, b, c], dst, ty))
            } else {
                (run, None)
            }
        }
        Semantics::Lane { dst: ty, src: [a, b, c, Ty::Mask], .. }
            if is(div_fmas) && dst.is_some() && src[3] == Source::Scalar(scalar::VCC) =>
        {
            let types = [a, b, c];
            let flagged = |fast: Box<FastPath>| Box::new(FastPath { flags: true, ..*fast });
            if is_word(ty) && types.iter().all(|ty| is_word(*ty)) {
                (run_words, fast(types, dst, ty).map(flagged))
            } else if is_whole(ty) && types.iter().all(|ty| is_whole(*ty)) {
                (run_doubles, fast(types, dst, ty).map(flagged))
            } else {
                (run, None)
            }
        }
        Semantics::Test { src: [a, b], .. } if is(run_test) && is_word(a) && is_word(b) => {
            (run_word_test, fast([a, b, Ty::None], None, Ty::None))
        }
        Semantics::LaneBit { dst: ty, src: [a, b, c, Ty::None], .. } if is(run_lane_bit) && dst.is_some() => {
            let words = is_word(ty) && is_word(a) && is_word(b) && matches!(c, Ty::None | Ty::Mask);
            // The slow path has what a sign means to the flag of a division's scaling.
            let words = words && m.neg | m.abs == 0;
            let wide =
                is_whole(ty) && [a, b, c].iter().all(|ty| is_whole(*ty) || *ty == Ty::None) && m.neg | m.abs == 0;
            match (words, wide) {
                (true, _) => (run_word_bit, fast([a, b, c], dst, ty)),
                (false, true) => (run_double_bit, fast([a, b, c], dst, ty)),
                (false, false) => (run, None),
            }
        }
        _ => (run, None),
    };
    if fast.is_some() { (short, fast) } else { (run, None) }
}

#[inline(always)]
fn active_lanes(wave: &Wave, launch: &Launch) -> ActiveLanes {
    ActiveLanes { halves: launch.halves(), mask: wave.exec() }
}

#[inline]
fn with_sign<'a>(row: &'a Row, sign: Sign, buffer: &'a mut Register) -> &'a Row {
    if !sign.absolute && !sign.negate {
        return row;
    }
    lanes::with_sign(row, sign, buffer);
    buffer
}

fn run_words(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::Lane { f, .. }, Some(fast)) = (&op.semantics, &op.fast_path) else { return run_lane(core, op) };
    let Some(open) = fast.open(core, op)? else { return fast.run_slow(core, op) };
    let Core { wave, work: WorkRows { broadcast, signed, flushed, out, .. }, launch, .. } = core;
    fast.update(wave, broadcast);
    let lanes = active_lanes(wave, launch);
    if !fast.changed && !fast.flags && open == Open::Plain {
        let row = |at| fast.row(wave, broadcast, at, 0);
        f.words(row(0), row(1), row(2), &mut out[0], lanes);
    } else {
        fast.changed_words(wave, *f, (broadcast, signed, flushed, &mut out[0]), lanes, open);
    }
    fast.put(wave, out);
    Ok(())
}

fn run_doubles(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::Lane { f, src, .. }, Some(fast)) = (&op.semantics, &op.fast_path) else {
        return run_lane(core, op);
    };
    if !fast.open_plain(core, op)? {
        return fast.run_slow(core, op);
    }
    let Core { wave, work: WorkRows { broadcast, signed, out, .. }, launch, .. } = core;
    let [low, high] = out;
    fast.update(wave, broadcast);
    let (pairs, lanes) = (fast.pairs(wave, src, broadcast, signed), active_lanes(wave, launch));
    if fast.flags {
        let flags = wave.mask(scalar::VCC) & lanes.mask;
        f.doubles(pairs, [&mut *low, &mut *high], ActiveLanes { mask: lanes.mask & !flags, ..lanes });
        for lane in active(flags) {
            let [a, b, c, _] = of_wide_lane(pairs, lane);
            let value = f.lane(&Env::USUAL, &[a, b, c, 1]);
            (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
        }
    } else {
        f.doubles(pairs, [low, high], lanes);
    }
    fast.put(wave, out);
    Ok(())
}

fn run_double_bit(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::LaneBit { f, src, .. }, Some(fast)) = (&op.semantics, &op.fast_path) else {
        return run_lane_bit(core, op);
    };
    if !fast.open_plain(core, op)? {
        return run_lane_bit(core, op);
    }
    let Core { wave, work: WorkRows { broadcast, signed, out, .. }, launch, .. } = core;
    let [low, high] = out;
    fast.update(wave, broadcast);
    let bits = f.doubles(fast.pairs(wave, src, broadcast, signed), [low, high], active_lanes(wave, launch));
    let mask = wave.exec();
    fast.put(wave, out);
    core.set_mask(op, op.sdst, bits & mask)
}

fn run_word_test(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::Test { f, exec, .. }, Some(fast)) = (&op.semantics, &op.fast_path) else {
        return run_test(core, op);
    };
    let Some(open) = fast.open(core, op)? else { return run_test(core, op) };
    let Core { wave, work: WorkRows { broadcast, signed, flushed, .. }, launch, .. } = core;
    fast.update(wave, broadcast);
    let rows = fast.rows(wave, broadcast, signed);
    let [a, b, _] = if open == Open::Flush { fast.flushed(rows, flushed) } else { rows };
    let bits = f.words(a, b, active_lanes(wave, launch));
    vector::set_test(core, op, bits & core.wave.exec(), *exec)
}

fn run_word_bit(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::LaneBit { f, .. }, Some(fast)) = (&op.semantics, &op.fast_path) else {
        return run_lane_bit(core, op);
    };
    if !fast.open_plain(core, op)? {
        return run_lane_bit(core, op);
    }
    let Core { wave, work: WorkRows { broadcast, signed, out, .. }, launch, .. } = core;
    fast.update(wave, broadcast);
    let [a, b, c] = fast.rows(wave, broadcast, signed);
    let bits = f.words(a, b, c, &mut out[0], active_lanes(wave, launch));
    let mask = wave.exec();
    fast.put(wave, out);
    core.set_mask(op, op.sdst, bits & mask)
}

/// The sources of packed operations on pairs of 32-bit numbers: pairs, and constants that are the same in both halves.
pub(crate) fn packed32_sources(inst: &Inst, scalars: &[[Source; 2]; 3], dst: Option<Reg>) -> Option<Box<FastPath>> {
    let pair = |[source, _]: [Source; 2]| match source {
        Source::Const(bits) => (Source::Const(bits << 32 | bits), 2),
        other => (other, 2),
    };
    let fast = FastPath::new(inst, scalars.map(pair), dst, 2)?;
    Some(Box::new(FastPath { singles: RESULT | 7, ..fast }))
}

/// Packed operations on pairs of 32-bit numbers: a row for each half. False where the slow path must be taken.
pub(crate) fn run_packed32(core: &mut Core, op: &Op, f: &dyn Operation) -> ExecResult<bool> {
    let modifiers = op.inst.modifiers;
    let Some(fast) = op.fast_path.as_ref().filter(|_| !modifiers.clamp) else { return Ok(false) };
    if !fast.open_plain(core, op)? {
        return Ok(false);
    }
    let Core { wave, work: WorkRows { broadcast, signed, out, .. }, launch, .. } = core;
    fast.update(wave, broadcast);
    for (half, out) in out.iter_mut().enumerate() {
        let (select, negate) =
            if half == 0 { (modifiers.op_sel, modifiers.neg) } else { (modifiers.op_sel_hi, modifiers.neg_hi) };
        let mut rows = [&ZERO; 3];
        for ((at, row), buffer) in rows.iter_mut().enumerate().zip(signed.iter_mut()) {
            let source = fast.row(wave, broadcast, at, u16::from(select >> at & 1));
            *row = with_sign(source, Sign { absolute: false, negate: negate >> at & 1 != 0 }, buffer);
        }
        let [a, b, c] = rows;
        f.words(a, b, c, out, active_lanes(wave, launch));
    }
    fast.put(wave, out);
    Ok(true)
}
