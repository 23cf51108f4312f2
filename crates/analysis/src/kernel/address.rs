//! What the addresses of a memory instruction are made of.

use wavetap_amdgpu::{Inst, Memory, OpcodeFlags, Reg, RegFile, Role, Value, scalar};

/// How the registers make an address, beside the offset in the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressForm {
    /// Global or flat memory: a pair of vector registers.
    Lanes,
    /// Global or flat memory: a pair of scalar registers, and an offset of each lane.
    BaseAndLanes,
    /// A descriptor of four scalar registers, an offset of all lanes, and of each lane, if the instruction says so, an
    /// index, and then an offset.
    Buffer,
    /// LDS: an address of each lane.
    Lds,
}

/// What the addresses of an instruction are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressOperands {
    /// How.
    pub form: AddressForm,
    /// Single scalar registers or constants, at most six.
    pub scalars: Vec<Value>,
    /// Single vector registers, at most two.
    pub vectors: Vec<Reg>,
}

impl AddressOperands {
    /// Those of an instruction that accesses global memory, LDS, or memory that a descriptor describes, by addresses of
    /// its lanes. None of all others: scratch memory, images, tensors, global data share, exchanges between lanes.
    #[must_use]
    pub fn of(inst: &Inst) -> Option<AddressOperands> {
        let without =
            OpcodeFlags::CROSSBAR | OpcodeFlags::GWS | OpcodeFlags::LDS_SRC2 | OpcodeFlags::ADDTID | OpcodeFlags::BLOCK;
        if inst.is_any(without) || inst.modifiers.gds {
            return None;
        }
        let operand = |role| inst.operands.iter().find(|operand| operand.role == role).map(|operand| operand.value);
        let registers = |value: Option<Value>| match value {
            Some(Value::Reg(reg)) => {
                (0..u16::from(reg.dwords)).map(|dword| Reg { first: reg.first + dword, dwords: 1, ..reg }).collect()
            }
            _ => Vec::new(),
        };
        let values = |value| registers(value).into_iter().map(Value::Reg);
        let (form, scalars, vectors): (_, Vec<Value>, Vec<Reg>) = match inst.variant.memory {
            Memory::Global | Memory::Flat => {
                let base = registers(operand(Role::Saddr));
                let vectors = registers(operand(Role::Vaddr));
                match base.first() {
                    Some(first) if first.first != scalar::NULL => {
                        (AddressForm::BaseAndLanes, base.into_iter().map(Value::Reg).collect(), vectors)
                    }
                    _ => (AddressForm::Lanes, Vec::new(), vectors),
                }
            }
            Memory::Buffer => {
                let offset = operand(Role::Soffset).filter(|value| !matches!(value, Value::Off));
                let scalars = values(operand(Role::Srsrc)).chain(offset).collect();
                let used = usize::from(inst.modifiers.idxen) + usize::from(inst.modifiers.offen);
                let mut vectors = registers(operand(Role::Vaddr));
                vectors.truncate(used);
                (AddressForm::Buffer, scalars, vectors)
            }
            Memory::Lds => (AddressForm::Lds, Vec::new(), registers(operand(Role::Addr))),
            _ => return None,
        };
        let expected = match form {
            AddressForm::Lanes => (0..=0, 2..=2),
            AddressForm::BaseAndLanes => (2..=2, 1..=1),
            AddressForm::Buffer => (4..=5, 0..=2),
            AddressForm::Lds => (0..=0, 1..=1),
        };
        let is_vector = |reg: &Reg| reg.file == RegFile::Vector;
        let is_complete =
            expected.0.contains(&scalars.len()) && expected.1.contains(&vectors.len()) && vectors.iter().all(is_vector);
        is_complete.then_some(AddressOperands { form, scalars, vectors })
    }

    /// The registers.
    pub fn registers(&self) -> impl Iterator<Item = Reg> + '_ {
        let scalars =
            self.scalars.iter().filter_map(|value| if let Value::Reg(reg) = value { Some(*reg) } else { None });
        scalars.chain(self.vectors.iter().copied())
    }
}
