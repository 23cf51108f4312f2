//! Which memory a dispatch reaches.
//!
//! The roots are the bytes of its arguments and of the variables of its code object. An aligned word of 8 bytes that is
//! an address inside of an allocation, or the first after its end, is taken for a pointer to it, whatever it is: a
//! number that looks like an address adds an allocation, and nothing else. Arguments are looked at in steps of 4 bytes,
//! as structures by value may be packed. All words of an allocation that is reached are looked at in the same way.
//!
//! A pointer that a kernel computes from anything else is not found: from two halves, from an address of another
//! allocation, or relative to a base. What it points to is then not in the capture.

use std::ops::Range;

use wavetap_base::error::{Error, Result};

/// Bytes of a pointer.
const POINTER: usize = 8;

/// An allocation and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// First address.
    pub address: u64,
    /// All its bytes.
    pub bytes: Vec<u8>,
}

/// Allocations of memory that a pointer may be into.
pub struct Allocations {
    /// First addresses and sizes, by rising address; they do not overlap.
    ranges: Vec<(u64, u64)>,
}

impl Allocations {
    /// Takes first addresses and sizes in any order. Empty ones, and ones that overlap an earlier one, are left out.
    #[must_use]
    pub fn new(mut ranges: Vec<(u64, u64)>) -> Allocations {
        ranges.sort_unstable();
        let mut end = 0;
        ranges.retain(|(address, size)| {
            let fits = *size > 0 && *address >= end && address.checked_add(*size).is_some();
            if fits {
                end = address + size;
            }
            fits
        });
        Allocations { ranges }
    }

    /// The number of the allocation that an address is in or at the end of.
    fn number(&self, address: u64) -> Option<usize> {
        let after = self.ranges.partition_point(|(start, _)| *start <= address);
        let number = after.checked_sub(1)?;
        let (start, size) = self.ranges[number];
        (address - start <= size).then_some(number)
    }

    /// Addresses from the first byte to the last one's end of all allocations.
    fn bounds(&self) -> Range<u64> {
        let first = self.ranges.first().map_or(0, |(address, _)| *address);
        let last = self.ranges.last().map_or(0, |(address, size)| address + size);
        first..last + 1
    }
}

/// Words of memory that are addresses in a range, as of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CodeAddresses(pub u64);

/// Finds and reads what the roots reach. `code` is where the code object lies, which is not read; how many words point
/// into it is the second result.
///
/// # Errors
/// Limit if more than `most` bytes are reached; what `read` gives.
pub fn reached(
    allocations: &Allocations,
    (arguments, variables): (&[u8], &[u8]),
    code: Range<u64>,
    most: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<(Vec<Reached>, CodeAddresses)> {
    let bounds = allocations.bounds();
    let mut is_reached = vec![false; allocations.ranges.len()];
    let mut found: Vec<usize> = Vec::new();
    let mut into_code = 0;
    let mut look = |bytes: &[u8], step: usize, found: &mut Vec<usize>| {
        for start in (0..bytes.len().saturating_sub(POINTER - 1)).step_by(step) {
            let Some(word) = bytes[start..].first_chunk::<POINTER>() else { break };
            let address = u64::from_le_bytes(*word);
            if code.contains(&address) {
                into_code += 1;
            }
            if bounds.contains(&address)
                && let Some(number) = allocations.number(address)
                && !std::mem::replace(&mut is_reached[number], true)
            {
                found.push(number);
            }
        }
    };
    look(arguments, POINTER / 2, &mut found);
    look(variables, POINTER, &mut found);
    let mut result: Vec<Reached> = Vec::new();
    let mut total = 0;
    while let Some(number) = found.pop() {
        let (address, size) = allocations.ranges[number];
        total += size;
        if total > most {
            return Err(Error::limit(format!("the arguments reach more than {most} bytes of memory")));
        }
        let length = usize::try_from(size).map_err(|_| Error::limit(format!("an allocation of {size} bytes")))?;
        let mut bytes = vec![0; length];
        read(address, &mut bytes)?;
        look(&bytes, POINTER, &mut found);
        result.push(Reached { address, bytes });
    }
    result.sort_unstable_by_key(|reached| reached.address);
    Ok((result, CodeAddresses(into_code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three allocations of 64 bytes, each filled with its own number; the first holds a pointer into the middle of
    /// the second.
    fn memory() -> Vec<(u64, Vec<u8>)> {
        let mut first = vec![1; 64];
        first[16..24].copy_from_slice(&0x2020_u64.to_le_bytes());
        vec![(0x1000, first), (0x2000, vec![2; 64]), (0x3000, vec![3; 64])]
    }

    fn of(arguments: &[u8], variables: &[u8], most: u64) -> Result<(Vec<u64>, u64)> {
        let memory = memory();
        let allocations =
            Allocations::new(memory.iter().map(|(address, bytes)| (*address, bytes.len() as u64)).collect());
        let read = |address: u64, into: &mut [u8]| {
            let (_, bytes) = memory.iter().find(|(start, _)| *start == address).expect("one of them");
            into.copy_from_slice(bytes);
            Ok(())
        };
        let (found, code) = reached(&allocations, (arguments, variables), 0x9000..0x9100, most, read)?;
        for Reached { address, bytes } in &found {
            assert_eq!(Some(bytes), memory.iter().find(|(start, _)| start == address).map(|(_, bytes)| bytes));
        }
        Ok((found.iter().map(|reached| reached.address).collect(), code.0))
    }

    #[test]
    fn pointers_are_followed_through_memory() {
        let to = |address: u64| address.to_le_bytes();
        assert_eq!(of(&to(0x1000), &[], 1000), Ok((vec![0x1000, 0x2000], 0)));
        assert_eq!(of(&to(0x2000), &[], 1000), Ok((vec![0x2000], 0)));
        assert_eq!(of(&to(0x3040), &[], 1000), Ok((vec![0x3000], 0)), "the end of an array");
        assert_eq!(of(&to(0x3041), &[], 1000), Ok((vec![], 0)));
        assert_eq!(of(&to(0xfff), &[], 1000), Ok((vec![], 0)));
        assert_eq!(of(&[], &to(0x3000), 1000), Ok((vec![0x3000], 0)), "a variable");
        assert_eq!(of(&to(0x9010), &to(0x90ff), 1000), Ok((vec![], 2)));
    }

    #[test]
    fn arguments_may_be_packed_and_variables_are_not() {
        let packed = [&[7; 4][..], &0x3000_u64.to_le_bytes(), &[7; 4]].concat();
        assert_eq!(of(&packed, &[], 1000), Ok((vec![0x3000], 0)));
        assert_eq!(of(&[], &packed, 1000), Ok((vec![], 0)));
    }

    #[test]
    fn more_than_the_limit_is_refused() {
        let error = of(&0x1000_u64.to_le_bytes(), &[], 127).expect_err("128 bytes are reached");
        assert_eq!(error.to_string(), "the arguments reach more than 127 bytes of memory");
        assert!(of(&0x1000_u64.to_le_bytes(), &[], 128).is_ok());
    }

    #[test]
    fn allocations_that_overlap_count_once() {
        let allocations = Allocations::new(vec![(0x20, 0x10), (0x10, 0x20), (0x40, 0), (u64::MAX, 1), (0x30, 8)]);
        assert_eq!(allocations.ranges, [(0x10, 0x20), (0x30, 8)]);
    }
}
