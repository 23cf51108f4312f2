//! Copies of tiles of tensors between memory and LDS that a unit of its own makes (gfx1250: `tensor_load_to_lds`,
//! `tensor_store_from_lds`), as a descriptor in scalar registers says: two groups of them, or four (CDNA5 ISA guide,
//! 10.11; its gaps from AMD's emulator, rocjitsu, and the ROCm headers). EXEC does not matter.
//!
//! The tile begins at an address, which is that of its first element; a tensor's lengths are counted from there. What
//! of the tile is beyond a length is 0 in LDS, and is not stored in memory. In LDS elements lie one after the other,
//! and every so many bytes a load leaves some out. A tile may also be rows whose numbers the descriptor has.
//! `tensorcnt` counts copies, which end in their order.
//!
//! Refused: tiles that are repeated, of which no source describes the tensor's edges, arrivals at barriers in LDS,
//! other workgroups of a cluster, and what the guide says must be 0.

use wavetap_amdgpu::{Opcode, Operand, RegFile, Role, scalar};

use super::vmem::{read_place, write_place};
use crate::address::place::LanePlace;
use crate::address::range::ANYWHERE;
use crate::fault::stop::{ExecResult, at_lane, undefined};
use crate::fault::{FaultKind, MemoryAccess};
use crate::op::semantics::Semantics;
use crate::shadow::in_flight::OperationKind;
use crate::shadow::races::access::LaneAccess;
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};
use crate::strict::store_order::order;

/// Dimensions of a tensor at most.
const DIMENSIONS: usize = 5;
/// Bytes that are copied at once at most: those of a [`LaneAccess`].
const PIECE: usize = 16;
/// Rows at most whose numbers a descriptor has, in 32 bits each or in 16.
const ROWS: [usize; 2] = [16, 8];

/// The words of a descriptor's groups, one after the other; of groups that the instruction leaves out they are 0.
struct Words([u32; 20]);

impl Words {
    /// A field: group, first bit in it, bits.
    fn field(&self, group: usize, first: usize, bits: usize) -> u64 {
        let start = [0, 128, 384, 512][group] + first;
        let bit = |n: usize| u64::from(self.0[(start + n) / 32] >> ((start + n) % 32) & 1) << n;
        (0..bits).map(bit).sum()
    }
}

/// The fields of a tensor descriptor.
struct Tile {
    /// In memory.
    address: u64,
    /// In LDS.
    local: u64,
    /// Bytes of an element.
    size: u64,
    /// Elements of the tile and of the tensor along each dimension, and the distance of two elements.
    dimensions: Vec<Dimension>,
    /// The numbers of rows, instead of all from 0 on.
    rows: Option<Vec<u32>>,
    /// After how many bytes in LDS how many are left out.
    padding: Option<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct Dimension {
    tile: u64,
    tensor: u64,
    stride: u64,
}

impl Tile {
    /// None where nothing is to be copied.
    fn parse(words: &Words) -> ExecResult<Option<Tile>> {
        let is_set = |group: usize, bit: usize| words.field(group, bit, 1) != 0;
        match words.field(0, 0, 2) {
            0 => return Ok(None),
            1 => {}
            _ => return undefined("a tensor copy of several descriptors"),
        }
        let gathers = is_set(0, 31);
        let refused = [
            (words.field(0, 2, 3) != 0 || is_set(0, 10) || words.field(0, 11, 19) != 0, "bits that must be 0 set"),
            (words.field(0, 121, 5) != 0 || words.field(0, 126, 2) != 2, "another type of descriptor"),
            (words.field(1, 0, 16) != 0, "other workgroups of a cluster"),
            (is_set(1, 18), "an arrival at a barrier"),
            (is_set(1, 19), "a tile that is repeated"),
            (is_set(0, 30) && !gathers, "a size of row numbers and no rows"),
        ];
        if let Some((_, what)) = refused.iter().find(|(refused, _)| *refused) {
            return undefined(format!("a tensor copy with {what}"));
        }
        let size = 1 << words.field(1, 16, 2);
        let padding = is_set(1, 20).then(|| (8 << words.field(1, 22, 3), 4 * (words.field(1, 25, 7) + 1)));
        let tiles: [u64; DIMENSIONS] = [
            words.field(1, 112, 16),
            words.field(1, 128, 16),
            words.field(1, 144, 16),
            words.field(2, 112, 16),
            words.field(3, 80, 16),
        ];
        let tensors = [
            words.field(1, 48, 32),
            words.field(1, 80, 32),
            words.field(2, 0, 32),
            words.field(2, 32, 32),
            words.field(3, 48, 32),
        ];
        let strides =
            [1, words.field(1, 160, 48), words.field(1, 208, 48), words.field(2, 64, 48), words.field(3, 0, 48)];
        // Of rows with numbers there are two dimensions; otherwise dimensions without extent at the end are none.
        let rank = if gathers { 2 } else { tiles.iter().rposition(|tile| *tile != 0).map_or(0, |last| last + 1) };
        let dimensions: Vec<Dimension> =
            (0..rank).map(|n| Dimension { tile: tiles[n], tensor: tensors[n], stride: strides[n] }).collect();
        if rank == 0 || dimensions.iter().any(|dimension| dimension.tile == 0) {
            return undefined("a tensor copy of a tile without extent");
        }
        if dimensions.iter().any(|dimension| dimension.stride >> 47 != 0) {
            return undefined("a tensor copy with a negative stride");
        }
        if padding.is_some() && !(tiles[0] * size).is_multiple_of(4) {
            return undefined("a tensor copy with padding of rows that are no whole dwords");
        }
        let rows = if gathers { Some(Self::rows(words, tiles[1] as usize, tensors[1])?) } else { None };
        let (address, local) = (words.field(0, 64, 57), words.field(0, 32, 32));
        Ok(Some(Tile { address, local, size, dimensions, rows, padding }))
    }

    fn rows(words: &Words, count: usize, tensor: u64) -> ExecResult<Vec<u32>> {
        let wide = words.field(0, 30, 1) as usize;
        if count > ROWS[wide] {
            return undefined("a tensor copy of more rows than there are numbers of");
        }
        let row = |n: usize| match wide {
            0 => words.field(2 + n / 8, n % 8 * 16, 16) as u32,
            _ => words.field(2 + n / 4, n % 4 * 32, 32) as u32,
        };
        let rows: Vec<u32> = (0..count).map(row).collect();
        // The guide: "correct handling of out-of-bounds accesses only occurs when each index is greater than or equal
        // to the previous index".
        if rows.iter().any(|row| u64::from(*row) >= tensor) && !rows.is_sorted() {
            return undefined("a tensor copy of rows out of bounds that do not ascend");
        }
        Ok(rows)
    }

    /// The lines of the tile along its first dimension, in the order of LDS: the address of the first element, and how
    /// many are in bounds.
    fn lines(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let count: u64 = self.dimensions[1..].iter().map(|dimension| dimension.tile).product();
        (0..count).map(move |line| {
            let (mut rest, mut element, mut inside) = (line, 0_u64, true);
            for (n, dimension) in self.dimensions.iter().enumerate().skip(1) {
                let at = rest % dimension.tile;
                rest /= dimension.tile;
                let at = self.rows.as_ref().filter(|_| n == 1).map_or(at, |rows| rows[at as usize].into());
                inside &= at < dimension.tensor;
                element = element.wrapping_add(at.wrapping_mul(dimension.stride));
            }
            let first = self.dimensions[0];
            let address = self.address.wrapping_add(element.wrapping_mul(self.size)) & ((1 << 57) - 1);
            (address, if inside { first.tile.min(first.tensor) } else { 0 })
        })
    }

    /// Where a byte of the tile is in LDS.
    fn place(&self, byte: u64, padded: bool) -> u64 {
        let padding = self.padding.filter(|_| padded).map_or(0, |(interval, amount)| byte / interval * amount);
        self.local + byte + padding
    }

    /// How many of the bytes from one on are one after the other in LDS.
    fn together(&self, byte: u64, padded: bool) -> u64 {
        self.padding.filter(|_| padded).map_or(u64::MAX, |(interval, _)| interval - byte % interval)
    }
}

fn descriptor(core: &mut Core, op: &Op) -> ExecResult<Words> {
    let mut words = [0; 20];
    let groups = [(Role::Vaddr, 0, 4), (Role::Vaddr1, 4, 8), (Role::Vaddr2, 12, 4), (Role::Vaddr3, 16, 4)];
    for (role, first, count) in groups {
        match op.inst.operand(role).map(Operand::reg) {
            Some(Some(reg)) if reg.file == RegFile::Scalar && reg.first == scalar::NULL => {}
            Some(Some(reg)) if reg.file == RegFile::Scalar => {
                for (n, word) in words[first..first + count].iter_mut().enumerate() {
                    *word = core.scalar(op, reg.first + n as u16)?;
                }
            }
            None => {}
            Some(_) => return undefined("a tensor descriptor in no scalar registers"),
        }
    }
    Ok(Words(words))
}

/// Copies a tile, piece by piece.
fn copy(core: &mut Core, op: &Op, to_lds: bool) -> ExecResult {
    let words = descriptor(core, op)?;
    if let Some(tile) = Tile::parse(&words)? {
        order(core, op, true, ANYWHERE)?;
        let width = tile.dimensions[0].tile * tile.size;
        for (line, (address, inside)) in tile.lines().enumerate() {
            let inside = inside * tile.size;
            let mut at = 0;
            while at < width {
                let byte = line as u64 * width + at;
                // Not across an element: what is in bounds is whole ones.
                let end = if at < inside { inside } else { width };
                let bytes = (end - at).min(tile.together(byte, to_lds)).min(PIECE as u64) as usize;
                let source = (at < inside).then(|| address.wrapping_add(at));
                piece(core, source, tile.place(byte, to_lds), bytes, to_lds)?;
                at += bytes as u64;
            }
        }
    }
    if core.launch.strict {
        core.wave.in_flight.issue(op, OperationKind::AsyncLoad, &[]);
    }
    Ok(())
}

/// Copies bytes; those that are at no address are 0, or stay in LDS.
fn piece(core: &mut Core, address: Option<u64>, local: u64, bytes: usize, to_lds: bool) -> ExecResult {
    const LANE: usize = 0;
    let mut buffer = [0; PIECE];
    let buffer = &mut buffer[..bytes];
    let place = address.map_or(LanePlace::Nowhere, LanePlace::Global);
    if !to_lds && address.is_none() {
        return Ok(());
    }
    let local = at_lane(core.lds_place(local, bytes), LANE)?;
    core.stats.lds_bytes += bytes as u64;
    if address.is_some() {
        core.stats.global_bytes += bytes as u64;
    }
    let done: Result<(), FaultKind> = if to_lds {
        let read = read_place(core, LANE, place, buffer, MemoryAccess::Load);
        core.note(LaneAccess::write(LANE, local, buffer, 0));
        core.lds[local..local + bytes].copy_from_slice(buffer);
        read
    } else {
        buffer.copy_from_slice(&core.lds[local..local + bytes]);
        core.note(LaneAccess::read(LANE, local, bytes, 0));
        write_place(core, LANE, place, buffer, MemoryAccess::Store)
    };
    at_lane(done, LANE)
}

/// The meaning of such a copy.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    match opcode {
        // A load, so that LDS is not read or written before it has been waited for.
        Opcode::TENSOR_LOAD_TO_LDS => {
            Some((|core, op| copy(core, op, true), Semantics::Load { bytes: PIECE as u8, signed: false, d16: None }))
        }
        Opcode::TENSOR_STORE_FROM_LDS => Some(((|core, op| copy(core, op, false)) as Handler, Semantics::Own)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cross_words() {
        let mut words = [0; 20];
        // Group 1, bits 112 to 127 and 128 to 143: words 7 and 8.
        (words[7], words[8]) = (0xabcd_0000, 0x1234);
        let words = Words(words);
        assert_eq!(words.field(1, 112, 16), 0xabcd);
        assert_eq!(words.field(1, 112, 32), 0x1234_abcd);
    }
}
