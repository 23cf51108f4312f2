//! Instructions as text, much as the manufacturer's assembler writes them.

use std::fmt;

use super::decode::{Inst, PredicateMode};
use super::opcode::Format;
use super::operand::{GRF_BYTES, Modifiers, Operand, Region};
use super::types::Type;

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(predicate) = self.predicate {
            let inverted = if predicate.inverted { "~" } else { "" };
            let mode = match predicate.mode {
                PredicateMode::PerLane => "",
                PredicateMode::Any => ".any",
                PredicateMode::All => ".all",
            };
            let mask = if self.no_mask { "W&" } else { "" };
            write!(f, "({mask}{inverted}f{}.{}{mode}) ", predicate.bits.register, predicate.bits.half)?;
        } else if self.no_mask {
            f.write_str("(W) ")?;
        }
        f.write_str(&self.name)?;
        if !matches!(self.opcode.format, Format::Sync | Format::Bare | Format::Jump) {
            write!(f, " ({}|M{})", self.lanes, self.first_lane)?;
        }
        if let Some(condition) = self.condition {
            write!(f, " ({})f{}.{}", condition.name, condition.bits.register, condition.bits.half)?;
        }
        if self.has_result() {
            write!(f, " {}", Shown { operand: &self.result, is_result: true })?;
        }
        for source in &self.sources {
            write!(f, " {}", Shown { operand: source, is_result: false })?;
        }
        for target in self.branch.iter().flat_map(|branch| [branch.jump, branch.update]).flatten() {
            write!(f, " L{target}")?;
        }
        if let Some(message) = self.message {
            match message.extended_in {
                Some(byte) => write!(f, " a0.{}", byte / 4)?,
                None => write!(f, " {:#x}", message.extended)?,
            }
            write!(f, " {:#010x}", message.descriptor)?;
        }
        let scoreboard = self.swsb.to_string();
        let end = if self.ends_thread { "EOT" } else { "" };
        match (end, &*scoreboard) {
            ("", "") => {}
            ("", one) | (one, "") => write!(f, " {{{one}}}")?,
            (end, scoreboard) => write!(f, " {{{end},{scoreboard}}}")?,
        }
        if let Some(name) = self.message.and_then(|message| message.operation_name()) {
            write!(f, " // {name}")?;
        }
        Ok(())
    }
}

impl Inst {
    fn has_result(&self) -> bool {
        use Format::{Bare, BranchBoth, BranchOne, Jump, Return, Sync};
        !matches!(self.opcode.format, Sync | Bare | BranchBoth | BranchOne | Jump | Return)
    }
}

struct Shown<'a> {
    operand: &'a Operand,
    is_result: bool,
}

fn modified(f: &mut fmt::Formatter<'_>, modifiers: Modifiers) -> fmt::Result {
    f.write_str(if modifiers.negative { "-" } else { "" })?;
    f.write_str(if modifiers.absolute { "(abs)" } else { "" })
}

fn region(f: &mut fmt::Formatter<'_>, region: Region, is_result: bool, per_row: bool) -> fmt::Result {
    let Region { vertical, width, horizontal } = region;
    match () {
        () if is_result || width == u32::MAX => write!(f, "<{horizontal}>"),
        () if per_row => write!(f, "<{width},{horizontal}>"),
        () => write!(f, "<{vertical};{width},{horizontal}>"),
    }
}

/// An immediate as its type is read best.
fn immediate(f: &mut fmt::Formatter<'_>, bits: u64, ty: Type) -> fmt::Result {
    match ty.name {
        "f" => write!(f, "{}:f", f32::from_bits(bits as u32)),
        "df" => write!(f, "{}:df", f64::from_bits(bits)),
        "w" => write!(f, "{}:w", (bits as u16).cast_signed()),
        "d" => write!(f, "{}:d", (bits as u32).cast_signed()),
        "q" => write!(f, "{}:q", bits.cast_signed()),
        name => write!(f, "{bits:#x}:{name}"),
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.operand {
            Operand::Null => f.write_str("null"),
            Operand::Register { register, region: layout, ty, modifiers, extension } => {
                modified(f, modifiers)?;
                if let Some(number) = extension {
                    return write!(f, "{register}.mme{number}:{}", ty.name);
                }
                write!(f, "{register}.{}", register.byte / ty.bytes)?;
                region(f, layout, self.is_result, false)?;
                write!(f, ":{}", ty.name)
            }
            Operand::Indirect { address, offset, region: layout, per_row, ty, modifiers } => {
                modified(f, modifiers)?;
                match offset {
                    0 => write!(f, "r[a0.{address}]")?,
                    offset => write!(f, "r[a0.{address},{offset}]")?,
                }
                region(f, layout, self.is_result, per_row)?;
                write!(f, ":{}", ty.name)
            }
            Operand::Immediate { bits, ty } => immediate(f, bits, ty),
            Operand::Block { register, bytes, ty } => {
                write!(f, "{register}")?;
                match ty {
                    Some(ty) => write!(f, ":{}", ty.name),
                    None => write!(f, ":{}", bytes.div_ceil(GRF_BYTES)),
                }
            }
        }
    }
}
