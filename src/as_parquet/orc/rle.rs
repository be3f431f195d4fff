//! Run lengths: of bytes, of booleans, of integers in both versions (ORC specification v1, "Run Length Encoding").

use super::stream::Stream;
use crate::as_parquet::Failure;

/// Bytes: runs of one, and literals.
#[derive(Debug)]
pub struct BytesReader {
    stream: Stream,
    /// Values left of the run, and its value where it is of one.
    left: usize,
    repeated: Option<u8>,
}

impl BytesReader {
    pub fn new(stream: Stream) -> BytesReader {
        BytesReader {
            stream,
            left: 0,
            repeated: None,
        }
    }

    pub fn next(&mut self) -> Result<u8, Failure> {
        if self.left == 0 {
            let control = self.stream.byte()?;
            if control < 0x80 {
                self.left = usize::from(control) + 3;
                self.repeated = Some(self.stream.byte()?);
            } else {
                self.left = 0x100 - usize::from(control);
                self.repeated = None;
            }
        }
        self.left -= 1;
        match self.repeated {
            Some(value) => Ok(value),
            None => self.stream.byte(),
        }
    }
}

/// Booleans: bits in run-length encoded bytes, the most significant first.
#[derive(Debug)]
pub struct BooleansReader {
    bytes: BytesReader,
    byte: u8,
    /// Bits of the byte that are left.
    left: u8,
}

impl BooleansReader {
    pub fn new(stream: Stream) -> BooleansReader {
        BooleansReader {
            bytes: BytesReader::new(stream),
            byte: 0,
            left: 0,
        }
    }

    pub fn next(&mut self) -> Result<bool, Failure> {
        if self.left == 0 {
            self.byte = self.bytes.next()?;
            self.left = 8;
        }
        self.left -= 1;
        Ok(self.byte >> self.left & 1 == 1)
    }
}

/// Integers.
#[derive(Debug)]
pub struct IntegersReader {
    stream: Stream,
    version: Version,
    signed: bool,
    /// The values of the current run, at most 512, and the next of them.
    run: Vec<i64>,
    at: usize,
}

/// Of the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

impl IntegersReader {
    pub fn new(stream: Stream, version: Version, signed: bool) -> IntegersReader {
        IntegersReader {
            stream,
            version,
            signed,
            run: Vec::new(),
            at: 0,
        }
    }

    pub fn next(&mut self) -> Result<i64, Failure> {
        loop {
            if let Some(value) = self.run.get(self.at) {
                self.at += 1;
                return Ok(*value);
            }
            self.run.clear();
            self.at = 0;
            match self.version {
                Version::V1 => self.run_v1()?,
                Version::V2 => self.run_v2()?,
            }
        }
    }

    fn value(&self, bits: u64) -> i64 {
        if self.signed {
            unzigzag(bits)
        } else {
            bits.cast_signed()
        }
    }

    fn run_v1(&mut self) -> Result<(), Failure> {
        let control = self.stream.byte()?;
        if control < 0x80 {
            let delta = i64::from(self.stream.byte()?.cast_signed());
            let base = self.stream.varint()?;
            let base = self.value(base);
            let values =
                (0..i64::from(control) + 3).map(|i| base.wrapping_add(i.wrapping_mul(delta)));
            self.run.extend(values);
        } else {
            for _ in 0..0x100 - u16::from(control) {
                let value = self.stream.varint()?;
                self.run.push(self.value(value));
            }
        }
        Ok(())
    }

    fn run_v2(&mut self) -> Result<(), Failure> {
        let first = self.stream.byte()?;
        let width_code = first >> 1 & 0x1F;
        match first >> 6 {
            0 => {
                let bits = self.big_endian((first >> 3 & 7) + 1)?;
                let value = self.value(bits);
                self.run.resize(usize::from(first & 7) + 3, value);
            }
            1 => {
                let count = self.count(first)?;
                let bits = self.packed(count, width(width_code))?;
                let values = bits.into_iter().map(|bits| self.value(bits));
                self.run = values.collect();
            }
            2 => self.patched_base(first)?,
            _ => {
                let count = self.count(first)?;
                let base = self.stream.varint()?;
                let mut last = self.value(base);
                self.run.push(last);
                let first_delta = unzigzag(self.stream.varint()?);
                let fixed = width_code == 0;
                let deltas = if fixed || count < 2 {
                    Vec::new()
                } else {
                    self.packed(count - 2, width(width_code))?
                };
                for i in 1..count {
                    let step = match i.checked_sub(2).and_then(|i| deltas.get(i)) {
                        Some(delta) if first_delta < 0 => delta.cast_signed().wrapping_neg(),
                        Some(delta) => delta.cast_signed(),
                        None => first_delta,
                    };
                    last = last.wrapping_add(step);
                    self.run.push(last);
                }
            }
        }
        Ok(())
    }

    /// Values less a base, packed for most of them; what a few have beyond that comes after.
    fn patched_base(&mut self, first: u8) -> Result<(), Failure> {
        let value_width = width(first >> 1 & 0x1F);
        let count = self.count(first)?;
        let (third, fourth) = (self.stream.byte()?, self.stream.byte()?);
        let base_bytes = (third >> 5) + 1;
        let patch_width = width(third & 0x1F);
        let gap_width = u32::from(fourth >> 5) + 1;
        let patches = usize::from(fourth & 0x1F);

        let bits = self.big_endian(base_bytes)?;
        // Its highest bit is the sign, the others the magnitude.
        let sign = 1u64 << (u32::from(base_bytes) * 8 - 1);
        let magnitude = (bits & (sign - 1)).cast_signed();
        let base = if bits & sign == 0 {
            magnitude
        } else {
            -magnitude
        };

        let mut values = self.packed(count, value_width)?;
        let entry_width = closest_width(gap_width + patch_width)
            .ok_or_else(|| corrupt("a patch wider than 64 bits"))?;
        let mut at = 0u64;
        for entry in self.packed(patches, entry_width)? {
            let patch = entry & low_bits(patch_width);
            at += entry.checked_shr(patch_width).unwrap_or(0);
            let value = usize::try_from(at).ok().and_then(|at| values.get_mut(at));
            let value = value.ok_or_else(|| corrupt("a patch of no value"))?;
            *value |= patch.checked_shl(value_width).unwrap_or(0);
        }
        let values = values
            .into_iter()
            .map(|value| base.wrapping_add(value.cast_signed()));
        self.run = values.collect();
        Ok(())
    }

    /// The length of a run, of 9 bits.
    fn count(&mut self, first: u8) -> Result<usize, Failure> {
        let low = usize::from(self.stream.byte()?);
        Ok((usize::from(first & 1) << 8 | low) + 1)
    }

    fn big_endian(&mut self, bytes: u8) -> Result<u64, Failure> {
        let mut value = 0;
        for _ in 0..bytes {
            value = value << 8 | u64::from(self.stream.byte()?);
        }
        Ok(value)
    }

    /// Numbers of `width` bits, the most significant first, up to the end of a byte.
    fn packed(&mut self, count: usize, width: u32) -> Result<Vec<u64>, Failure> {
        let mut out = Vec::with_capacity(count);
        let (mut byte, mut left) = (0u8, 0u32);
        for _ in 0..count {
            let (mut value, mut missing) = (0u64, width);
            while missing > 0 {
                if left == 0 {
                    byte = self.stream.byte()?;
                    left = 8;
                }
                let take = missing.min(left);
                let bits = u64::from(byte) >> (left - take) & low_bits(take);
                value = value << take | bits;
                left -= take;
                missing -= take;
            }
            out.push(value);
        }
        Ok(out)
    }
}

fn unzigzag(bits: u64) -> i64 {
    (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed()
}

fn low_bits(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width.min(64)).unwrap_or(0)
}

/// The width in bits that a code of 5 bits stands for.
fn width(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The least of those widths that is enough.
fn closest_width(bits: u32) -> Option<u32> {
    (0..32).map(width).find(|width| *width >= bits)
}

fn corrupt(reason: &str) -> Failure {
    Failure::Corrupt(reason.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::as_parquet::orc::stream::Compression;

    fn stream(bytes: &[u8]) -> Stream {
        Stream::new(bytes.to_vec().into(), Compression::of(0, 0).unwrap())
    }

    fn integers(bytes: &[u8], version: Version, signed: bool, count: usize) -> Vec<i64> {
        let mut reader = IntegersReader::new(stream(bytes), version, signed);
        let values = (0..count).map(|_| reader.next().unwrap()).collect();
        assert!(reader.next().is_err());
        values
    }

    // The examples of the specification.

    #[test]
    fn bytes_and_booleans() {
        let mut bytes = BytesReader::new(stream(&[0x61, 0x00, 0xfe, 0x44, 0x45]));
        let values: Vec<u8> = (0..102).map(|_| bytes.next().unwrap()).collect();
        assert_eq!(values, [[0; 100].as_slice(), &[0x44, 0x45]].concat());
        let mut booleans = BooleansReader::new(stream(&[0xff, 0x80]));
        let values: Vec<bool> = (0..8).map(|_| booleans.next().unwrap()).collect();
        assert_eq!(
            values,
            [true, false, false, false, false, false, false, false]
        );
    }

    #[test]
    fn integers_of_version_1() {
        assert_eq!(
            integers(&[0x61, 0x00, 0x07], Version::V1, false, 100),
            [7; 100]
        );
        let down: Vec<i64> = (1..=100).rev().collect();
        assert_eq!(integers(&[0x61, 0xff, 0x64], Version::V1, false, 100), down);
        let literals = integers(&[0xfb, 0x02, 0x03, 0x06, 0x07, 0x0b], Version::V1, false, 5);
        assert_eq!(literals, [2, 3, 6, 7, 11]);
    }

    #[test]
    fn integers_of_version_2() {
        assert_eq!(
            integers(&[0x0a, 0x27, 0x10], Version::V2, false, 5),
            [10_000; 5]
        );
        let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
        assert_eq!(
            integers(&direct, Version::V2, false, 4),
            [23713, 43806, 57005, 48879]
        );
        let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
        assert_eq!(
            integers(&delta, Version::V2, false, 10),
            [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
        );
        let patched = [
            0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46,
            0x50, 0x5a, 0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
        ];
        let values = [
            2030, 2000, 2020, 1_000_000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120,
            2130, 2140, 2150, 2160, 2170, 2180, 2190,
        ];
        assert_eq!(integers(&patched, Version::V2, false, 20), values);
        // Signed: a short repeat of -1 (zigzag 1), and deltas that go down.
        assert_eq!(integers(&[0x00, 0x01], Version::V2, true, 3), [-1; 3]);
        assert_eq!(
            integers(&[0xc0, 0x02, 0x14, 0x03], Version::V2, true, 3),
            [10, 8, 6]
        );
    }

    #[test]
    fn whatever_the_bytes_there_is_no_panic() {
        let mut seed = 1u64;
        for len in 0..2000 {
            let bytes: Vec<u8> = (0..len % 40)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 56) as u8
                })
                .collect();
            for version in [Version::V1, Version::V2] {
                let mut reader = IntegersReader::new(stream(&bytes), version, len % 2 == 0);
                for _ in 0..10_000 {
                    if reader.next().is_err() {
                        break;
                    }
                }
            }
        }
    }
}
