//! An instruction as text, in the syntax of LLVM's assembler.

use std::fmt::Write;

use super::digits::{push_decimal, push_hexadecimal, push_signed};
use super::image;
use super::inst::{Half, Inst, Operand, Reg, RegFile, Value, scalar};
use super::layout::Kind;
use super::opcode::{Opcode, OpcodeFlags};
use super::pair::BETWEEN;
use super::print_names as names;
use super::table::{Variant, Written};
use super::target::Target;
use super::vocabulary::{Coding, Counter, Encoding, Flags, Form, Modifier, NumberFormat, Role};
use super::wait::wait_count;

/// The instruction as text.
pub(super) fn print(target: Target, inst: &Inst) -> String {
    let mut out = String::with_capacity(64);
    let mnemonic = inst.variant.mnemonic;
    // Of a pair of operations the second one's comes later.
    let pair = inst.variant.halves.and_then(|_| mnemonic.split_once(BETWEEN));
    out.push_str(pair.map_or(mnemonic, |(first, _)| first));
    Printer { target, inst, out: &mut out }.operands_and_modifiers();
    out
}

struct Printer<'a> {
    target: Target,
    inst: &'a Inst,
    out: &'a mut String,
}

impl Printer<'_> {
    /// Appends both.
    fn words(&mut self, first: &str, second: &str) {
        self.out.push_str(first);
        self.out.push_str(second);
    }

    /// Appends `name` and a number.
    fn named(&mut self, name: &str, value: impl Into<u64>) {
        self.out.push_str(name);
        push_decimal(self.out, value.into());
    }

    /// Appends `name` and a number in hexadecimal.
    fn named_hexadecimal(&mut self, name: &str, value: impl Into<u64>) {
        self.out.push_str(name);
        push_hexadecimal(self.out, value.into());
    }

    fn word(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
    }

    fn operands_and_modifiers(&mut self) {
        if self.inst.variant.encoding == Encoding::Exp {
            self.export_operands();
        } else {
            self.operands();
        }
        for modifier in self.inst.variant.printed {
            self.modifier(*modifier);
        }
    }

    fn operands(&mut self) {
        let mut next = 0;
        let mut separator = " ";
        for written in self.inst.variant.written {
            if *written != Written::Operand {
                self.out.push_str(separator);
                separator = ", ";
                match written {
                    Written::Vcc => {
                        self.register(Reg::scalar(scalar::VCC, self.inst.wave_size / 32), self.inst.wave_size / 32)
                    }
                    Written::M0 => self.out.push_str("m0"),
                    Written::LiteralX => {
                        if let Some(Value::Literal(value)) = self.inst.operand(Role::Imm).map(|operand| operand.value) {
                            self.word(format_args!("{value:#x}"));
                        }
                    }
                    Written::Second => {
                        self.out.truncate(self.out.len() - ", ".len());
                        let second = self.inst.variant.mnemonic.split_once(BETWEEN).map_or("", |(_, second)| second);
                        self.word(format_args!(" :: {second}"));
                        separator = " ";
                    }
                    Written::Offset => self.scalar_offset(),
                    Written::Off | Written::Operand => self.out.push_str("off"),
                }
                continue;
            }
            let (Some(operand), Some(spec)) = (self.inst.operands.get(next), self.inst.variant.operands.get(next))
            else {
                return;
            };
            next += 1;
            match operand.role {
                // Printed among the modifiers, after the last register.
                Role::Dmask | Role::Format => continue,
                Role::AttributeChannel => {
                    if let Value::Imm(channel) = operand.value {
                        self.word(format_args!(".{}", ['x', 'y', 'z', 'w'][channel as usize & 3]));
                    }
                    continue;
                }
                Role::Simm16 if spec.kind.form == Form::Endpgm && operand.value == Value::Imm(0) => continue,
                _ => {}
            }
            if operand.value == Value::Off && operand.role.is_address() {
                continue;
            }
            self.out.push_str(separator);
            separator = ", ";
            let (before, after) = self.brackets(next - 1);
            self.out.push_str(before);
            self.operand(operand, spec.kind);
            self.out.push_str(after);
        }
        let offset_is_operand = self.inst.variant.encoding == Encoding::Smem
            && self.inst.variant.printed.contains(&Modifier::Offset)
            && self.inst.operand(Role::Soffset).is_none();
        if offset_is_operand {
            self.out.push_str(separator);
            self.scalar_offset();
        }
        if let Some(Value::Imm(format)) = self.inst.operand(Role::Format).map(|operand| operand.value) {
            self.out.push_str(&names::buffer_format(self.target, format as u8));
        }
        if let Some(Value::Imm(mask)) = self.inst.operand(Role::Dmask).map(|operand| operand.value)
            && mask != 0
        {
            self.word(format_args!(" dmask:{mask:#x}"));
        }
    }

    /// What is written around an operand: brackets around the addresses of an image, if there are several.
    fn brackets(&self, place: usize) -> (&'static str, &'static str) {
        let operand = |place: usize| self.inst.operands.get(place);
        let is_address =
            |place| operand(place).is_some_and(|operand| operand.role.is_address() && operand.value != Value::Off);
        let separate = self.inst.variant.image.is_some_and(|image| image.separate);
        if !separate || !is_address(place) {
            return ("", "");
        }
        match (place.checked_sub(1).is_some_and(is_address), is_address(place + 1)) {
            (false, true) => ("[", ""),
            (true, false) => ("", "]"),
            _ => ("", ""),
        }
    }

    fn export_operands(&mut self) {
        if let Some(Value::Imm(target)) = self.inst.operand(Role::ExportTarget).map(|operand| operand.value) {
            self.word(format_args!(" {}", names::export_target(target as u32, self.target.set().generation)));
        }
        let modifiers = &self.inst.modifiers;
        for channel in 0..4 {
            let source = if modifiers.export_compressed { channel / 2 } else { channel };
            self.out.push_str(if channel == 0 { " " } else { ", " });
            match self.inst.operands.get(1 + source).map(|operand| operand.value) {
                Some(Value::Reg(reg)) if modifiers.export_enable >> channel & 1 != 0 => self.register(reg, reg.dwords),
                _ => self.out.push_str("off"),
            }
        }
    }

    fn operand(&mut self, operand: &Operand, kind: &Kind) {
        // VOPD has the second operation's signs in the upper bits.
        let source = match operand.role {
            Role::Src0 => Some(0),
            Role::Src1 => Some(1),
            Role::Src2 => Some(2),
            Role::Src0Y => Some(4),
            Role::Src1Y => Some(5),
            Role::Src2Y => Some(6),
            _ => None,
        };
        let (mut negative, mut absolute, mut extended) = (false, false, false);
        if let Some(source) = source {
            let modifiers = &self.inst.modifiers;
            absolute = kind.signs && modifiers.abs >> source & 1 != 0;
            negative = kind.signs && modifiers.neg >> source & 1 != 0;
            extended =
                modifiers.sdwa.is_some_and(|sdwa| source == 0 && sdwa.src0_sext || source == 1 && sdwa.src1_sext);
        }
        // `-1` is another value than the negated 1.
        let constant = matches!(
            operand.value,
            Value::InlineInt(_) | Value::InlineFloat(_) | Value::Literal(_) | Value::Literal64(_)
        );
        let (before, after) = match (negative, absolute) {
            (false, false) => ("", ""),
            (false, true) => ("|", "|"),
            (true, true) => ("-|", "|"),
            (true, false) if constant && !names::is_marked_literal(operand) => ("neg(", ")"),
            (true, false) => ("-", ""),
        };
        self.out.push_str(before);
        if extended {
            self.out.push_str("sext(");
        }
        self.value(operand, kind);
        self.out.push_str(match operand.half {
            Half::Whole => "",
            Half::Low => ".l",
            Half::High => ".h",
        });
        if extended {
            self.out.push(')');
        }
        self.out.push_str(after);
    }

    fn value(&mut self, operand: &Operand, kind: &Kind) {
        match operand.value {
            Value::Reg(reg) => self.register(reg, self.shown_dwords(operand, reg, kind)),
            Value::InlineInt(value) => push_signed(self.out, value.into()),
            Value::InlineFloat(code) => self.out.push_str(names::inline_float(code, operand.ty)),
            Value::Literal(value) if kind.coding == Coding::Literal => match (operand.role, operand.ty) {
                (Role::Imm, _) if self.inst.variant.encoding == Encoding::Sopk => self.constant(i64::from(value)),
                _ => self.named_hexadecimal("", value),
            },
            Value::Literal(value) => names::push_literal(self.out, value, operand.ty),
            Value::Literal64(value) if kind.coding == Coding::Literal => {
                self.out.push_str(&names::literal64_inside(value, operand.ty))
            }
            Value::Literal64(value) => self.out.push_str(&names::literal64(value, operand.ty)),
            Value::Imm(value) => self.immediate(operand.role, value, kind),
            Value::Off => self.out.push_str("off"),
        }
    }

    /// How many registers are printed: image instructions use more than their encoding tells.
    fn shown_dwords(&self, operand: &Operand, reg: Reg, kind: &Kind) -> u8 {
        if operand.role == Role::Vdata && self.inst.variant.image.is_some() {
            return image::data_dwords(self.target, self.inst).map_or(reg.dwords, |dwords| dwords as u8);
        }
        if kind.shown < kind.dwords { kind.shown } else { reg.dwords }
    }

    fn immediate(&mut self, role: Role, value: i64, kind: &Kind) {
        match (role, kind.form) {
            (Role::Hwreg, _) => {
                let (number, offset, size) = (value & 63, value >> 6 & 31, (value >> 11 & 31) + 1);
                match self.target.hardware_register(number as u8) {
                    Some(name) => self.word(format_args!("hwreg({name}")),
                    None => self.word(format_args!("hwreg({number}")),
                }
                // The whole register is not written out.
                if (offset, size) != (0, 32) {
                    self.word(format_args!(", {offset}, {size}"));
                }
                self.out.push(')');
            }
            (Role::Message, _) => self.out.push_str(&names::message(self.target, value as u16)),
            (Role::WaitCount, _) => {
                let counts = wait_count(self.target, self.inst).unwrap_or_default();
                let mut separator = "";
                for counter in [Counter::Vm, Counter::Exp, Counter::Lgkm] {
                    if counts.get(counter).is_some() || counts.is_empty() {
                        let count = counts.get(counter).or(self.target.largest_wait(counter)).unwrap_or_default();
                        self.out.push_str(separator);
                        self.out.push_str(counter.name());
                        self.named("(", count);
                        self.out.push(')');
                        separator = " ";
                    }
                }
            }
            (Role::DepCtr, _) => self.dependencies(value as u16),
            (Role::Delay, _) => names::push_delay(self.out, value as u16),
            (Role::SimmTarget, _) => self.named("", value as u16),
            (Role::Attribute, _) => self.word(format_args!("attr{value}")),
            (Role::Version, _) => self.out.push_str(&names::program_version(self.target, value as u16)),
            (_, Form::Hex) => self.named_hexadecimal("", value as u16),
            (_, Form::Inline) => self.constant(value),
            (_, Form::IndexMode) => self.out.push_str(&names::index_mode(value as u32)),
            (_, Form::Slot) => match value {
                0 => self.out.push_str("p10"),
                1 => self.out.push_str("p20"),
                2 => self.out.push_str("p0"),
                _ => self.word(format_args!("invalid_param_{value}")),
            },
            (_, Form::Decimal | Form::Endpgm) => push_signed(self.out, value),
        }
    }

    /// A number as a 32-bit source constant is written.
    fn constant(&mut self, value: i64) {
        names::push_constant32(self.out, value as u32);
    }

    fn register(&mut self, reg: Reg, dwords: u8) {
        let (prefix, first) = match reg.file {
            RegFile::Vector => ("v", reg.first),
            RegFile::Accum => ("a", reg.first),
            RegFile::Scalar if reg.first < self.target.set().sgprs => ("s", reg.first),
            RegFile::Scalar if (self.target.set().ttmp_code..scalar::M0).contains(&reg.first) => {
                ("ttmp", reg.first - self.target.set().ttmp_code)
            }
            RegFile::Scalar => {
                let name = names::special_register(reg.first, dwords);
                return self.out.push_str(name);
            }
        };
        self.out.push_str(prefix);
        if dwords == 1 {
            self.named("", first);
        } else {
            self.named("[", first);
            self.named(":", u32::from(first) + u32::from(dwords) - 1);
            self.out.push(']');
        }
    }

    /// What `s_waitcnt_depctr` and `s_wait_alu` wait for: the fields that wait, all if none does; a number if bits
    /// outside of them are set.
    fn dependencies(&mut self, word: u16) {
        let named = self.target.dependency_fields().fold(0, |mask, field| mask | field.most() << field.bit);
        if word & !named != 0 {
            return self.word(format_args!("{word:#x}"));
        }
        let mut separator = "";
        for field in self.target.dependency_fields().filter(|field| word == named || field.of(word) != field.most()) {
            self.word(format_args!("{separator}{}({})", field.name, field.of(word)));
            separator = " ";
        }
    }

    fn scalar_offset(&mut self) {
        let offset = self.inst.modifiers.offset;
        self.named_hexadecimal(if offset < 0 { "-" } else { "" }, offset.unsigned_abs());
    }

    fn modifier(&mut self, modifier: Modifier) {
        let modifiers = &self.inst.modifiers;
        let flag = |on: bool, name: &'static str| if on { Some(name) } else { None };
        let word = match modifier {
            Modifier::Clamp => flag(modifiers.clamp, " clamp"),
            Modifier::Omod => ["", " mul:2", " mul:4", " div:2"].get(usize::from(modifiers.omod)).copied(),
            Modifier::Tfe => flag(modifiers.tfe, " tfe"),
            Modifier::Lwe => flag(modifiers.lwe, " lwe"),
            Modifier::Lds => flag(modifiers.lds, " lds"),
            Modifier::Gds => flag(modifiers.gds, " gds"),
            Modifier::Idxen => flag(modifiers.idxen, " idxen"),
            Modifier::Offen => flag(modifiers.offen, " offen"),
            Modifier::Unorm => flag(modifiers.unorm, " unorm"),
            Modifier::Da => flag(modifiers.da, " da"),
            // On gfx9 the bit means 16-bit addresses.
            Modifier::R128 => flag(modifiers.r128, if self.target.set().generation == 9 { " a16" } else { " r128" }),
            Modifier::D16 => flag(modifiers.d16, " d16"),
            Modifier::High => flag(modifiers.high, " high"),
            Modifier::Done => flag(modifiers.done, " done"),
            Modifier::ExportCompressed => flag(modifiers.export_compressed, " compr"),
            Modifier::ExportValidMask => flag(modifiers.export_valid_mask, " vm"),
            Modifier::A16 => flag(modifiers.a16, " a16"),
            Modifier::Nv => flag(modifiers.nv, " nv"),
            Modifier::RowEn => flag(modifiers.row_en, " row_en"),
            Modifier::ScaleOffset => flag(modifiers.scale_offset, " scale_offset"),
            Modifier::MatrixAReuse => flag(modifiers.matrix.a_reuse != 0, " matrix_a_reuse"),
            Modifier::MatrixBReuse => flag(modifiers.matrix.b_reuse != 0, " matrix_b_reuse"),
            Modifier::Dpp8Fi => flag(modifiers.dpp8_fi == 2, " fi:1"),
            Modifier::Fi => flag(modifiers.dpp.is_some_and(|dpp| dpp.fetch_inactive), " fi:1"),
            Modifier::BoundCtrl => flag(modifiers.dpp.is_some_and(|dpp| dpp.bound_ctrl), " bound_ctrl:1"),
            _ => return self.valued_modifier(modifier),
        };
        self.out.push_str(word.unwrap_or(""));
    }

    fn valued_modifier(&mut self, modifier: Modifier) {
        let modifiers = &self.inst.modifiers;
        let dpp = modifiers.dpp.unwrap_or_default();
        let sdwa = modifiers.sdwa.unwrap_or_default();
        match modifier {
            Modifier::Offset => self.offset(),
            Modifier::Offset1 if modifiers.offset1 != 0 => self.named(" offset1:", modifiers.offset1),
            Modifier::Cache => self.cache(),
            Modifier::Dim => {
                let text = names::image_dimension(self.target, modifiers.dim);
                self.out.push_str(&text);
            }
            Modifier::Cbsz if modifiers.cbsz != 0 => self.word(format_args!(" cbsz:{}", modifiers.cbsz)),
            Modifier::Abid if modifiers.abid != 0 => self.word(format_args!(" abid:{}", modifiers.abid)),
            Modifier::Blgp if modifiers.blgp != 0 => {
                let bits = modifiers.blgp;
                // The double precision operations have signs in the place of the permutation.
                if self.target.sc_cache_bits()
                    && self.inst.opcode().matrix().is_some_and(|matrix| matrix.a == NumberFormat::F64)
                {
                    self.word(format_args!(" neg:[{},{},{}]", bits & 1, bits >> 1 & 1, bits >> 2 & 1));
                } else {
                    self.word(format_args!(" blgp:{bits}"));
                }
            }
            Modifier::DppCtrl => {
                let text = names::dpp_control(dpp.ctrl, self.target.set().generation);
                self.out.push_str(&text);
            }
            Modifier::Dpp8 => {
                let lanes = modifiers.dpp8.unwrap_or(0);
                for lane in 0..8 {
                    self.word(format_args!("{}{}", if lane == 0 { " dpp8:[" } else { "," }, lanes >> (3 * lane) & 7));
                }
                self.out.push(']');
            }
            Modifier::WaitExp => self.word(format_args!(" wait_exp:{}", modifiers.wait_exp)),
            Modifier::WaitVdst if self.target.set().generation == 11 => {
                self.word(format_args!(" wait_vdst:{}", modifiers.wait_vdst))
            }
            Modifier::WaitVdst => self.word(format_args!(" wait_va_vdst:{}", modifiers.wait_vdst)),
            Modifier::WaitVsrc => self.word(format_args!(" wait_vm_vsrc:{}", modifiers.wait_vsrc)),
            Modifier::Bitop3 if modifiers.bitop3 <= 10 && modifiers.bitop3 != 0 => {
                self.word(format_args!(" bitop3:{}", modifiers.bitop3))
            }
            Modifier::Bitop3 if modifiers.bitop3 != 0 => self.word(format_args!(" bitop3:{:#x}", modifiers.bitop3)),
            Modifier::ByteSel if modifiers.byte_sel != 0 => self.word(format_args!(" byte_sel:{}", modifiers.byte_sel)),
            Modifier::ScaleSel if modifiers.scale_sel != 0 => {
                self.word(format_args!(" scale_sel:{}", modifiers.scale_sel))
            }
            Modifier::IndexKey if modifiers.index_key != 0 => {
                self.word(format_args!(" index_key:{}", modifiers.index_key))
            }
            Modifier::MatrixAFmt => self.matrix_name("matrix_a_fmt", modifiers.matrix.a_fmt, &names::MATRIX_FORMATS),
            Modifier::MatrixBFmt => self.matrix_name("matrix_b_fmt", modifiers.matrix.b_fmt, &names::MATRIX_FORMATS),
            Modifier::MatrixAScale => {
                self.matrix_name("matrix_a_scale", modifiers.matrix.a_scale, &names::MATRIX_SCALES)
            }
            Modifier::MatrixBScale => {
                self.matrix_name("matrix_b_scale", modifiers.matrix.b_scale, &names::MATRIX_SCALES)
            }
            Modifier::MatrixAScaleFmt => {
                self.matrix_name("matrix_a_scale_fmt", modifiers.matrix.a_scale_fmt, &names::MATRIX_SCALE_FORMATS)
            }
            Modifier::MatrixBScaleFmt => {
                self.matrix_name("matrix_b_scale_fmt", modifiers.matrix.b_scale_fmt, &names::MATRIX_SCALE_FORMATS)
            }
            Modifier::RowMask => self.named_hexadecimal(" row_mask:", dpp.row_mask),
            Modifier::BankMask => self.named_hexadecimal(" bank_mask:", dpp.bank_mask),
            Modifier::DstSel => self.words(" dst_sel:", names::sdwa_selector(sdwa.dst_sel)),
            Modifier::DstUnused => self.words(" dst_unused:", names::sdwa_unused(sdwa.dst_unused)),
            Modifier::Src0Sel => self.words(" src0_sel:", names::sdwa_selector(sdwa.src0_sel)),
            Modifier::Src1Sel => self.words(" src1_sel:", names::sdwa_selector(sdwa.src1_sel)),
            Modifier::OpSel => self.source_bits("op_sel", modifier, modifiers.op_sel, false),
            Modifier::OpSelHi => {
                let packed = self.inst.variant.flags.contains(Flags::PACKED);
                self.source_bits("op_sel_hi", modifier, modifiers.op_sel_hi, packed);
            }
            Modifier::Neg => self.source_bits("neg_lo", modifier, modifiers.neg, false),
            Modifier::NegHi => self.source_bits("neg_hi", modifier, modifiers.neg_hi, false),
            _ => {}
        }
    }

    fn offset(&mut self) {
        let (variant, modifiers) = (self.inst.variant, &self.inst.modifiers);
        let offset = modifiers.offset;
        match variant.encoding {
            Encoding::Smem if self.inst.operand(Role::Soffset).is_some() => {
                self.out.push_str(" offset:");
                self.scalar_offset();
            }
            // Printed as an operand.
            Encoding::Smem => {}
            _ if variant.opcode == Opcode::DS_SWIZZLE_B32 => {
                self.out.push_str(&names::swizzle(offset as u16, self.target.set().generation))
            }
            _ if offset == 0 => {}
            _ => {
                self.out.push_str(if has_two_offsets(variant) { " offset0:" } else { " offset:" });
                push_signed(self.out, offset.into());
            }
        }
    }

    /// A named code of a matrix operation; the first one is not written.
    fn matrix_name(&mut self, field: &str, code: u8, names: &[&str]) {
        if code == 0 {
            return;
        }
        match names.get(usize::from(code)) {
            Some(name) => self.word(format_args!(" {field}:{name}")),
            None => self.word(format_args!(" {field}:{code}")),
        }
    }

    fn cache(&mut self) {
        let modifiers = &self.inst.modifiers;
        if self.target.set().generation >= 12 {
            let text = names::cache_policy(self.inst);
            return self.out.push_str(&text);
        }
        let sc = self.target.sc_cache_bits();
        let scalar = self.inst.variant.encoding == Encoding::Smem;
        let words = [
            (modifiers.glc, if sc && !scalar { " sc0" } else { " glc" }),
            (modifiers.slc, if sc { " nt" } else { " slc" }),
            (modifiers.dlc, " dlc"),
            (modifiers.scc && self.target.unified_accum(), if sc { " sc1" } else { " scc" }),
        ];
        for (on, word) in words {
            if on {
                self.out.push_str(word);
            }
        }
    }

    /// Bits of the sources, and for `op_sel` of VOP3 of the destination, unless they are what they are when not
    /// written.
    fn source_bits(&mut self, name: &str, modifier: Modifier, bits: u8, usual: bool) {
        if bits == 0 && !usual {
            return;
        }
        let variant = self.inst.variant;
        let field = variant
            .layout
            .modifiers
            .iter()
            .find(|(known, _)| *known == modifier)
            .map_or(0, |(_, field)| field.get(u128::MAX) as u8);
        // `v_fmac`'s third source is its destination.
        let tied = u32::from(variant.opcode == Opcode::V_FMAC_F16);
        let listed = tied
            + variant.operands.iter().filter(|spec| matches!(spec.role, Role::Src0 | Role::Src1 | Role::Src2)).count()
                as u32;
        // What permutations have there are two flags, not halves.
        let flags = variant.opcode_flags.contains(OpcodeFlags::PERMLANE);
        let sources = if flags { 2 } else { listed.max(u8::BITS - (field & 7).leading_zeros()) };
        let mask = (1u8 << sources) - 1;
        let vop3 =
            matches!(variant.encoding, Encoding::Vop3 | Encoding::Vop3Dpp | Encoding::Vop3Dpp8 | Encoding::Vinterp);
        // Compares have it in VOP3, not with DPP, unless they write EXEC, which is not named.
        let has = |role: Role| variant.operands.iter().any(|spec| spec.role == role);
        let vector = has(Role::Vdst) || variant.encoding == Encoding::Vop3 && has(Role::Sdst);
        let destination = modifier == Modifier::OpSel && vop3 && vector && !flags;
        let usual = if usual { mask } else { 0 };
        if bits & mask == usual && (!destination || bits & 8 == 0) {
            return;
        }
        self.words(" ", name);
        let mut separator = ":[";
        for source in (0..sources).chain(destination.then_some(3)) {
            self.named(separator, bits >> source & 1);
            separator = ",";
        }
        self.out.push(']');
    }
}

/// Whether an LDS instruction has two 8-bit offsets instead of one of 16 bits.
fn has_two_offsets(variant: &Variant) -> bool {
    variant.layout.modifiers.iter().any(|(modifier, _)| *modifier == Modifier::Offset1)
}
