//! Hand-built bodies for tests: instructions that are described, not decoded, so that tests of the analyses do not rest
//! on the tables.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::body::{Body, BodyKind};
use super::constants::PreservedRegs;
use super::image::Image;
use wavetap_amdgpu::{
    Access, Branch, Condition, Counters, Dpp, Encoding, Flags, Half, Implicit, Inst, Latency, Memory, Modifiers,
    Opcode, OpcodeFlags, Operand, Reg, RegFile, Role, Target, Value, ValueType, Variant,
};
use wavetap_base::error::{Error, Result};

/// One described instruction.
pub struct Op {
    variant: Variant,
    operands: SmallVec<[Operand; 5]>,
    modifiers: Modifiers,
    target: Option<&'static str>,
    size: u8,
}

/// An instruction that does nothing, of this name.
pub fn op(name: &'static str) -> Op {
    let flags = if name.starts_with("v_") {
        Flags::VALU
    } else if name.starts_with("s_") {
        Flags::SALU
    } else {
        Flags::empty()
    };
    let implicit_reads = if flags.contains(Flags::VALU) { Implicit::EXEC } else { Implicit::empty() };
    Op {
        variant: Variant {
            name,
            mnemonic: name,
            encoding: Encoding::Sopp,
            opcode: Opcode::from_name(name).unwrap_or(Opcode::INVALID),
            operands: &[],
            implicit_reads,
            implicit_writes: Implicit::empty(),
            branch: Branch::None,
            memory: Memory::None,
            counters: Counters::empty(),
            latency: Latency::Salu,
            flags,
            memory_bytes: 0,
            opcode_flags: Opcode::from_name(name).map_or(OpcodeFlags::empty(), Opcode::flags),
            ..Variant::BLANK
        },
        operands: SmallVec::new(),
        modifiers: Modifiers::default(),
        target: None,
        size: 4,
    }
}

impl Op {
    fn operand(mut self, role: Role, value: Value, access: Access, dwords: u8) -> Op {
        self.operands.push(Operand { role, value, access, ty: ValueType::B32, dwords, half: Half::Whole });
        self
    }

    /// Writes a register.
    pub fn writes(self, reg: Reg) -> Op {
        let role = if reg.file == RegFile::Scalar { Role::Sdst } else { Role::Vdst };
        self.operand(role, Value::Reg(reg), Access::Write, reg.dwords)
    }

    /// Reads a register, as the next source.
    pub fn reads(self, reg: Reg) -> Op {
        let role = self.next_source();
        self.operand(role, Value::Reg(reg), Access::Read, reg.dwords)
    }

    /// Reads a register in a given part.
    pub fn reads_as(self, role: Role, reg: Reg) -> Op {
        self.operand(role, Value::Reg(reg), Access::Read, reg.dwords)
    }

    /// Has a literal as the next source.
    pub fn literal(mut self, value: u32) -> Op {
        let role = self.next_source();
        self.size = 8;
        self.operand(role, Value::Literal(value), Access::Read, 1)
    }

    /// Has an inline integer as the next source.
    pub fn int(self, value: i8) -> Op {
        let role = self.next_source();
        self.operand(role, Value::InlineInt(value), Access::Read, 1)
    }

    /// The counter fields of a wait; a count that is absent is its maximum.
    pub fn wait(self, vm: Option<u8>, lgkm: Option<u8>, exp: Option<u8>) -> Op {
        let vm = u32::from(vm.unwrap_or(63));
        let bits = (vm & 15) | (vm >> 4) << 14 | u32::from(exp.unwrap_or(7)) << 4 | u32::from(lgkm.unwrap_or(15)) << 8;
        let mut op = self.operand(Role::WaitCount, Value::Imm(i64::from(bits)), Access::None, 0);
        op.variant.flags |= Flags::WAIT;
        op
    }

    /// Has a 16-bit immediate.
    pub fn imm(self, value: i64) -> Op {
        self.operand(Role::Simm16, Value::Imm(value), Access::None, 0)
    }

    /// Is a DPP instruction.
    pub fn encoding(mut self, encoding: Encoding) -> Op {
        self.variant.encoding = encoding;
        self
    }

    /// With DPP.
    pub fn dpp(mut self, dpp: Dpp) -> Op {
        self.modifiers.dpp = Some(dpp);
        self
    }

    /// Implicit reads and writes.
    pub fn implicit(mut self, reads: Implicit, writes: Implicit) -> Op {
        self.variant.implicit_reads |= reads;
        self.variant.implicit_writes |= writes;
        self
    }

    /// Accesses memory and increments counters.
    pub fn memory(mut self, memory: Memory, counters: Counters, flags: Flags) -> Op {
        self.variant.memory = memory;
        self.variant.counters = counters;
        self.variant.flags |= flags;
        self.variant.latency = match memory {
            Memory::Lds | Memory::Gds => Latency::Lds,
            Memory::Scalar => Latency::Smem,
            Memory::Message => Latency::Message,
            Memory::None => self.variant.latency,
            Memory::Global | Memory::Flat | Memory::Scratch | Memory::Buffer | Memory::Image => Latency::Vmem,
        };
        self
    }

    /// Accesses so many bytes of memory in each lane.
    pub fn transfers(mut self, bytes: u8) -> Op {
        self.variant.memory_bytes = bytes;
        self
    }

    /// Has a constant in its address.
    pub fn offset(mut self, offset: i32) -> Op {
        self.modifiers.offset = offset;
        self
    }

    /// Changes the flow of control.
    pub fn branch(mut self, branch: Branch) -> Op {
        self.variant.branch = branch;
        self
    }

    /// Goes to a label.
    pub fn to(mut self, label: &'static str) -> Op {
        self.target = Some(label);
        self
    }

    fn next_source(&self) -> Role {
        let taken = |role| self.operands.iter().any(|operand| operand.role == role);
        [Role::Src0, Role::Src1, Role::Src2].into_iter().find(|role| !taken(*role)).unwrap_or(Role::Other)
    }
}

/// `s_branch label`
pub fn jump(label: &'static str) -> Op {
    op("s_branch").branch(Branch::Jump).to(label)
}

/// `s_cbranch_scc1 label`
pub fn branch_scc1(label: &'static str) -> Op {
    let branch = Branch::Conditional(Condition::Scc1);
    op("s_cbranch_scc1").branch(branch).implicit(Implicit::SCC, Implicit::empty()).to(label)
}

/// `s_endpgm`
pub fn end() -> Op {
    op("s_endpgm").branch(Branch::End)
}

/// `s_swappc_b64 link, target`
pub fn swappc(link: u16, target: u16) -> Op {
    op("s_swappc_b64").branch(Branch::IndirectCall).writes(Reg::scalar(link, 2)).reads(Reg::scalar(target, 2))
}

/// `s_setpc_b64 target`
pub fn setpc(target: u16) -> Op {
    op("s_setpc_b64").branch(Branch::IndirectJump).reads(Reg::scalar(target, 2))
}

/// A listing: labels and instructions from an address on.
pub struct Listing {
    insts: Vec<(u64, Op)>,
    labels: FxHashMap<&'static str, u64>,
    end: u64,
}

impl Listing {
    /// An empty listing whose first instruction is at `address`.
    pub fn at(address: u64) -> Listing {
        Listing { insts: Vec::new(), labels: FxHashMap::default(), end: address }
    }

    /// Names the place of the next instruction.
    pub fn label(mut self, name: &'static str) -> Listing {
        self.labels.insert(name, self.end);
        self
    }

    /// Adds an instruction.
    pub fn push(mut self, op: Op) -> Listing {
        let size = u64::from(op.size);
        self.insts.push((self.end, op));
        self.end += size;
        self
    }

    /// The instructions by address, branch displacements filled in.
    pub fn assemble(self) -> FxHashMap<u64, Inst> {
        let labels = self.labels;
        self.insts
            .into_iter()
            .map(|(address, op)| {
                let mut operands = op.operands;
                if let Some(label) = op.target {
                    let displacement = (labels[label] as i64 - (address + u64::from(op.size)) as i64) / 4;
                    let value = Value::Imm(displacement);
                    operands.push(Operand {
                        role: Role::SimmTarget,
                        value,
                        access: Access::None,
                        ty: ValueType::B16,
                        dwords: 0,
                        half: Half::Whole,
                    });
                }
                let variant: &'static Variant = Box::leak(Box::new(op.variant));
                (address, Inst { variant, size: op.size, operands, modifiers: op.modifiers, ignored: 0, wave_size: 64 })
            })
            .collect()
    }

    /// The body that starts at `entry`.
    pub fn try_body(self, image: &Image<'_>, kind: BodyKind, entry: u64) -> Result<Body> {
        self.try_body_with(image, kind, entry, &PreservedRegs::default())
    }

    /// [`Listing::try_body`], given what functions leave alone.
    pub fn try_body_with(
        self,
        image: &Image<'_>,
        kind: BodyKind,
        entry: u64,
        preserved: &PreservedRegs,
    ) -> Result<Body> {
        self.decoded(Target::by_name("gfx90a").expect("a target"), image, kind, entry, preserved)
    }

    /// [`Listing::try_body`] for a given processor.
    pub fn try_body_for(self, target: Target, image: &Image<'_>, kind: BodyKind, entry: u64) -> Result<Body> {
        self.decoded(target, image, kind, entry, &PreservedRegs::default())
    }

    fn decoded(
        self,
        target: Target,
        image: &Image<'_>,
        kind: BodyKind,
        entry: u64,
        preserved: &PreservedRegs,
    ) -> Result<Body> {
        let insts = self.assemble();
        Body::from_decoder(target, image, "test", kind, (entry, entry), preserved, |inst, address| {
            *inst = insts.get(&address).cloned().ok_or_else(|| Error::malformed("no instruction").at(address))?;
            Ok(())
        })
    }

    /// The kernel that starts at the first instruction.
    pub fn kernel(self) -> Body {
        let entry = self.insts[0].0;
        self.try_body(&Image::new(), BodyKind::Kernel, entry).expect("a kernel")
    }
}
