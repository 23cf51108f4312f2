//! Addresses of a site table as distances.

use super::AddressPair;
use wavetap_base::error::{Error, Result};

/// Bytes of a distance in [`pack_addresses`].
const DISTANCE: usize = size_of::<i32>();

/// Appends a kernel's addresses, as [`ObjectMap::pack`](super::ObjectMap::pack) says.
pub(super) fn pack_addresses(pairs: &[AddressPair], to: &mut Vec<u8>) -> Result<()> {
    let far = |_| Error::internal("site table: code is more than 2 GiB apart");
    to.extend(u32::try_from(pairs.len()).map_err(far)?.to_le_bytes());
    let Some(first) = pairs.first() else { return Ok(()) };
    to.extend(first.original.to_le_bytes());
    to.extend(first.rewritten.to_le_bytes());
    let distance = |from: u64, address: u64| {
        i32::try_from(address.wrapping_sub(from) as i64).map(|distance| u64::from(distance as u32)).map_err(far)
    };
    to.reserve(2 * DISTANCE * pairs.len());
    for (before, pair) in pairs.iter().zip(&pairs[1..]) {
        let (original, rewritten) =
            (distance(before.original, pair.original)?, distance(before.rewritten, pair.rewritten)?);
        to.extend_from_slice(&(original | rewritten << (8 * DISTANCE)).to_le_bytes());
    }
    Ok(())
}

/// Reads what [`pack_addresses`] wrote from the front of `bytes`.
pub(super) fn unpack_addresses(bytes: &mut &[u8]) -> Result<Vec<AddressPair>> {
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
        let (front, rest) =
            bytes.split_at_checked(count).ok_or_else(|| Error::malformed("site table: it ends within addresses"))?;
        *bytes = rest;
        Ok(front)
    }
    fn number<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
        take(bytes, N).map(|bytes| std::array::from_fn(|index| bytes[index]))
    }
    let count = u32::from_le_bytes(number(bytes)?) as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut last =
        AddressPair { original: u64::from_le_bytes(number(bytes)?), rewritten: u64::from_le_bytes(number(bytes)?) };
    // Before there is room for so many they are known to be there.
    let distances = take(bytes, (count - 1).saturating_mul(2 * DISTANCE))?;
    let mut pairs = Vec::with_capacity(count);
    pairs.push(last);
    for pair in distances.chunks_exact(2 * DISTANCE) {
        let distance = |at: usize| i64::from(i32::from_le_bytes(std::array::from_fn(|index| pair[at + index])));
        last = AddressPair {
            original: last.original.wrapping_add_signed(distance(0)),
            rewritten: last.rewritten.wrapping_add_signed(distance(DISTANCE)),
        };
        pairs.push(last);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_and_damaged_ones_do_not() {
        let pair = |original, rewritten| AddressPair { original, rewritten };
        let cases = [
            vec![],
            vec![pair(0x1000, 0x9000)],
            vec![pair(0x1000, 0x9000), pair(0x1004, 0x9040), pair(0x100c, 0x8f00), pair(0x7fff_0000, 0)],
        ];
        for pairs in cases {
            let mut bytes = Vec::new();
            pack_addresses(&pairs, &mut bytes).expect("near each other");
            let mut rest = bytes.as_slice();
            assert_eq!(unpack_addresses(&mut rest).expect("all there"), pairs);
            assert!(rest.is_empty());
            for length in 0..bytes.len() {
                assert!(unpack_addresses(&mut &bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
            }
        }
        assert!(pack_addresses(&[pair(0, 0), pair(1 << 32, 0)], &mut Vec::new()).is_err());
        assert!(unpack_addresses(&mut [0xff; 64].as_slice()).is_err(), "more than memory");
    }
}
