//! Accesses in JSON: numbers of a variable number of bytes, packed with zlib, in hexadecimal digits.
//!
//! For each access: site, EXEC, the number of scalars and these, and the values of lanes as runs of equal distances to
//! the lane before.

use std::fmt::Write as _;
use std::io::{Read, Write};

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use super::{MOST_SCALARS, RecordedAccess};
use wavetap_base::error::{Error, Result};
use wavetap_base::leb128;

/// How hard it is compressed.
const LEVEL: u32 = 3;
/// A wave's accesses are never larger than this when unpacked: a damaged file must not exhaust memory.
const MAX_UNPACKED: u64 = 256 << 20;

pub(super) fn serialize<S: Serializer>(accesses: &[RecordedAccess], serializer: S) -> Result<S::Ok, S::Error> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
    let packed = encoder.write_all(&pack(accesses)).and_then(|()| encoder.finish()).map_err(S::Error::custom)?;
    let mut text = String::with_capacity(2 * packed.len());
    for byte in packed {
        write!(text, "{byte:02x}").map_err(S::Error::custom)?;
    }
    serializer.serialize_str(&text)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RecordedAccess>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digit = |at: usize| text.as_bytes().get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let byte = |at: usize| Some((digit(2 * at)? << 4 | digit(2 * at + 1)?) as u8);
    let packed = if text.len() % 2 == 0 { (0..text.len() / 2).map(byte).collect::<Option<Vec<u8>>>() } else { None };
    let packed = packed.ok_or_else(|| D::Error::custom("recorded accesses: expected pairs of hexadecimal digits"))?;
    let mut numbers = Vec::new();
    let unpacked = flate2::read::ZlibDecoder::new(&*packed).take(MAX_UNPACKED + 1).read_to_end(&mut numbers);
    unpacked.map_err(|error| D::Error::custom(format!("recorded accesses: {error}")))?;
    if numbers.len() as u64 > MAX_UNPACKED {
        return Err(D::Error::custom(format!("recorded accesses: more than {MAX_UNPACKED} bytes of a wave")));
    }
    unpack(&numbers).map_err(D::Error::custom)
}

fn pack(accesses: &[RecordedAccess]) -> Vec<u8> {
    let mut out = Vec::new();
    for access in accesses {
        leb128::put(&mut out, access.site.into());
        leb128::put(&mut out, access.lanes);
        leb128::put(&mut out, access.scalars.len() as u64);
        access.scalars.iter().for_each(|scalar| leb128::put(&mut out, (*scalar).into()));
        let mut before = 0;
        let distances: Vec<u64> = access
            .values
            .iter()
            .map(|value| {
                let distance = value.wrapping_sub(before);
                before = *value;
                distance
            })
            .collect();
        for run in distances.chunk_by(|a, b| a == b) {
            leb128::put(&mut out, run.len() as u64);
            // The sign in the lowest bit: small numbers either way are short.
            leb128::put(&mut out, run[0] << 1 ^ (run[0].cast_signed() >> (u64::BITS - 1)).cast_unsigned());
        }
    }
    out
}

fn unpack(mut numbers: &[u8]) -> Result<Vec<RecordedAccess>> {
    let mut accesses = Vec::new();
    while !numbers.is_empty() {
        let mut next = || leb128::take(&mut numbers).map_err(|error| error.within("recorded accesses"));
        let site = u32::try_from(next()?).map_err(|_| malformed("a site"))?;
        let lanes = next()?;
        let count = usize::try_from(next()?).ok().filter(|count| *count <= MOST_SCALARS);
        let count = count.ok_or_else(|| malformed("a number of scalars"))?;
        let scalar = |number: Result<u64>| u32::try_from(number?).map_err(|_| malformed("a scalar"));
        let scalars = (0..count).map(|_| scalar(next())).collect::<Result<_>>()?;
        let (mut values, mut before): (Vec<u64>, u64) = (Vec::new(), 0);
        let all = lanes.count_ones() as usize;
        while values.len() < all {
            let (run, distance) = (next()?, next()?);
            if run == 0 || run > (all - values.len()) as u64 {
                return Err(malformed("a run of lanes"));
            }
            let distance = distance >> 1 ^ (distance & 1).wrapping_neg();
            for _ in 0..run {
                before = before.wrapping_add(distance);
                values.push(before);
            }
        }
        accesses.push(RecordedAccess { site, lanes, scalars, values });
    }
    Ok(accesses)
}

fn malformed(what: &str) -> Error {
    Error::malformed(format!("recorded accesses: {what} is not as it should be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_it_was() {
        let access =
            RecordedAccess { site: 40, lanes: 0b11_1001, scalars: vec![u32::MAX, 0], values: vec![7 << 44, 3, 3, 1] };
        // Site, EXEC and scalars; then runs: their lengths and twice the distance, odd where that is negative: 7 << 44,
        // 3 - (7 << 44), 0 and -2.
        let expected: &[&[u8]] = &[
            &[40, 0b11_1001, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0],
            &[1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 7 << 3],
            &[1, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, (7 << 3) - 1],
            &[1, 0, 1, 3],
        ];
        assert_eq!(pack(&[access]), expected.concat());
    }

    #[test]
    fn packed_and_back() {
        let access = |lanes: u64, value: fn(u64) -> u64| RecordedAccess {
            site: 40,
            lanes,
            scalars: vec![u32::MAX, 0],
            values: (0..lanes.count_ones().into()).map(value).collect(),
        };
        let all = vec![
            access(u64::MAX, |lane| 0x7000_0000_0000 + 4 * lane),
            access(0b1011, |lane| u64::MAX - lane * lane * 999),
            access(1, |_| 0),
        ];
        assert_eq!(unpack(&pack(&all)).unwrap(), all);
        let bytes = pack(&all);
        assert!(unpack(&bytes[..bytes.len() - 1]).is_err());
        assert!(unpack(&[0x80; 11]).is_err());
        // A site of 65 bits, the highest of which must not be dropped.
        assert!(unpack(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0, 0]).is_err());
        // A strided access takes few bytes: its lanes are one run.
        assert!(pack(&all[..1]).len() < 40);
    }
}
