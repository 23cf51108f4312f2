//! Elements of lanes in bytes, one after the other: their dwords to rows and back.

use std::ops::Range;

use super::Register;

fn dword(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes)
}

/// Puts the elements of lanes into rows, one for each of their dwords.
pub(crate) fn scatter(bytes: &[u8], rows: &mut [Box<Register>], lanes: Range<usize>) {
    match rows {
        [row] => row[lanes].iter_mut().zip(bytes.as_chunks().0).for_each(|(cell, bytes)| *cell = dword(*bytes)),
        [a, b] => {
            let cells = a[lanes.clone()].iter_mut().zip(&mut b[lanes]);
            for ((a, b), [q, r, s, t, u, v, w, x]) in cells.zip(bytes.as_chunks().0) {
                (*a, *b) = (dword([*q, *r, *s, *t]), dword([*u, *v, *w, *x]));
            }
        }
        [a, b, c, d] => {
            let first = a[lanes.clone()].iter_mut().zip(&mut b[lanes.clone()]);
            let second = c[lanes.clone()].iter_mut().zip(&mut d[lanes]);
            for (((a, b), (c, d)), element) in first.zip(second).zip(bytes.as_chunks::<16>().0) {
                let [p, q, r, s] = element.as_chunks().0 else { return };
                (*a, *b, *c, *d) = (dword(*p), dword(*q), dword(*r), dword(*s));
            }
        }
        _ => {
            let count = rows.len();
            for (n, row) in rows.iter_mut().enumerate() {
                let dwords = bytes.as_chunks().0.iter().skip(n).step_by(count);
                row[lanes.clone()].iter_mut().zip(dwords).for_each(|(cell, bytes)| *cell = dword(*bytes));
            }
        }
    }
}

/// Puts the dwords of lanes, of which each row has one, into elements.
pub(crate) fn gather(rows: &[Box<Register>], lanes: Range<usize>, bytes: &mut [u8]) {
    match rows {
        [row] => {
            bytes.as_chunks_mut().0.iter_mut().zip(&row[lanes]).for_each(|(bytes, cell)| *bytes = cell.to_le_bytes())
        }
        [a, b, c, d] => {
            let first = a[lanes.clone()].iter().zip(&b[lanes.clone()]);
            let second = c[lanes.clone()].iter().zip(&d[lanes]);
            for (((a, b), (c, d)), element) in first.zip(second).zip(bytes.as_chunks_mut::<16>().0) {
                let [p, q, r, s] = element.as_chunks_mut().0 else { return };
                (*p, *q, *r, *s) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes(), d.to_le_bytes());
            }
        }
        _ => {
            for (n, row) in rows.iter().enumerate() {
                let dwords = bytes.as_chunks_mut().0.iter_mut().skip(n).step_by(rows.len());
                dwords.zip(&row[lanes.clone()]).for_each(|(bytes, cell)| *bytes = cell.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_become_rows_and_elements_again() {
        let bytes: Vec<u8> = (0..1024_u32).map(|n| (n * 7 % 251) as u8).collect();
        for count in 1..=4 {
            for lanes in [0..64, 3..20, 40..41] {
                let bytes = &bytes[..4 * count * lanes.len()];
                let mut rows: Vec<Box<Register>> = (0..count).map(|_| Box::default()).collect();
                scatter(bytes, &mut rows, lanes.clone());
                for (n, lane) in lanes.clone().enumerate() {
                    for (word, row) in rows.iter().enumerate() {
                        let at = 4 * (count * n + word);
                        assert_eq!(row[lane].to_le_bytes(), bytes[at..at + 4], "{count} {lane} {word}");
                    }
                }
                let outside = (0..64).filter(|lane| !lanes.contains(lane));
                assert!(outside.into_iter().all(|lane| rows.iter().all(|row| row[lane] == 0)));
                let mut back = vec![0; bytes.len()];
                gather(&rows, lanes, &mut back);
                assert_eq!(back, bytes);
            }
        }
    }
}
