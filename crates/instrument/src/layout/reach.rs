//! Branches that do not reach: a branch has 16 bits for its distance, ±128 KiB. A longer one goes through islands, runs
//! of `s_branch` that are placed between original instructions and jumped over by whatever comes from above. They need
//! no register and change none.

use std::collections::BTreeMap;

use super::piece::{Piece, Place};
use wavetap_analysis::kernel::{Reason, Refusal};

/// A branch is sent through islands when it is longer than this: less than the reach of 128 KiB, because islands add to
/// distances.
const NEAR: u64 = 96 << 10;
/// Islands are at least so far apart; three lie within [`NEAR`].
const SPACING: u64 = 30 << 10;

/// What a branch at `from` to `to` has as its displacement: dwords from the next instruction, 16 bits signed.
pub(super) fn displacement(from: u64, to: u64) -> Option<i16> {
    let bytes = to as i64 - (from as i64 + 4);
    i16::try_from(bytes / 4).ok()
}

/// What islands are made of.
#[derive(Debug, Clone)]
pub(super) struct Words {
    /// `s_branch`, to be given a displacement.
    pub(super) s_branch: u32,
    /// What comes before a jump over an island, which puts a branch between original instructions.
    pub(super) before_jump: Vec<u8>,
}

/// Pieces in order, with places that branches go to.
#[derive(Debug, Clone)]
pub(super) struct Sequence {
    pub(super) pieces: Vec<Piece>,
    /// For each place, the piece it is before.
    pub(super) places: Vec<usize>,
    /// Original address and piece of each original instruction.
    pub(super) moved: Vec<(u64, usize)>,
    /// Pieces before which an island may lie.
    seams: Vec<usize>,
}

impl Sequence {
    /// An empty sequence; the first `places` places are to be bound later.
    pub(super) fn new(places: usize) -> Sequence {
        Sequence { pieces: Vec::new(), places: vec![usize::MAX; places], moved: Vec::new(), seams: Vec::new() }
    }

    pub(super) fn new_place(&mut self) -> Place {
        self.places.push(usize::MAX);
        Place(self.places.len() - 1)
    }

    /// Puts a place before the next piece.
    pub(super) fn bind(&mut self, place: Place) {
        self.places[place.0] = self.pieces.len();
    }

    /// Allows an island before the next piece.
    pub(super) fn seam(&mut self) {
        self.seams.push(self.pieces.len());
    }

    /// The offset of each piece, and of the end.
    pub(super) fn offsets(&self) -> Vec<u64> {
        let mut offsets = Vec::with_capacity(self.pieces.len() + 1);
        let mut end = 0;
        offsets.push(0);
        for piece in &self.pieces {
            end += piece.size();
            offsets.push(end);
        }
        offsets
    }

    /// The first branch that does not reach: its original address and the distance.
    fn unreached(&self) -> Option<(Option<u64>, i64)> {
        let offsets = self.offsets();
        self.pieces.iter().zip(&offsets).find_map(|(piece, &from)| {
            let Piece::Branch { to, origin, .. } = piece else { return None };
            let to = offsets[self.places[to.0]];
            displacement(from, to).is_none().then_some((*origin, to as i64 - from as i64))
        })
    }

    /// Makes every branch reach, with islands where it takes them.
    pub(super) fn connect(self, words: &Words) -> Result<Sequence, Refusal> {
        if self.unreached().is_none() {
            return Ok(self);
        }
        let connected = self.with_islands(words);
        match connected.unreached() {
            None => Ok(connected),
            Some((origin, distance)) => {
                let detail = format!("a branch would have to reach {distance} bytes");
                Err(Refusal { reason: Reason::BranchOutOfReach, detail, address: origin })
            }
        }
    }

    /// Lets no branch have this displacement, by a `filler` after those that would. Such a branch goes forward, so
    /// that it then has a larger one. Tells whether there were any.
    pub(super) fn avoid_displacement(&mut self, avoided: i16, filler: &[u8]) -> bool {
        let before = self.pieces.len();
        loop {
            let offsets = self.offsets();
            let hit = self.pieces.iter().enumerate().find_map(|(index, piece)| {
                let Piece::Branch { to, .. } = piece else { return None };
                (displacement(offsets[index], offsets[self.places[to.0]]) == Some(avoided)).then_some(index)
            });
            let Some(hit) = hit else { return self.pieces.len() > before };
            self.pieces.insert(hit + 1, Piece::Bytes(filler.into()));
            let moved = self.moved.iter_mut().map(|(_, piece)| piece);
            for place in self.places.iter_mut().chain(moved).chain(&mut self.seams) {
                *place += usize::from(*place > hit);
            }
        }
    }

    fn with_islands(mut self, words: &Words) -> Sequence {
        let offsets = self.offsets();
        let sites = self.sites(&offsets);
        // For each island, its entries by final target: the place of the entry.
        let mut islands: BTreeMap<usize, BTreeMap<usize, Place>> = BTreeMap::new();
        let mut entries: Vec<(usize, Place, Place)> = Vec::new(); // Island, place of the entry, where it goes.
        for piece in 0..self.pieces.len() {
            let Piece::Branch { to, .. } = self.pieces[piece] else { continue };
            let mut next = to;
            for site in route(offsets[piece], offsets[self.places[to.0]], &sites, &offsets).into_iter().rev() {
                let known = islands.entry(site).or_default().get(&to.0).copied();
                next = known.unwrap_or_else(|| {
                    let entry = self.new_place();
                    islands.entry(site).or_default().insert(to.0, entry);
                    entries.push((site, entry, next));
                    entry
                });
            }
            if let Piece::Branch { to, .. } = &mut self.pieces[piece] {
                *to = next;
            }
        }
        self.insert(&entries, words)
    }

    /// Seams that are at least [`SPACING`] apart.
    fn sites(&self, offsets: &[u64]) -> Vec<usize> {
        let mut sites: Vec<usize> = Vec::new();
        for &seam in &self.seams {
            if sites.last().is_none_or(|&last| offsets[seam] - offsets[last] >= SPACING) {
                sites.push(seam);
            }
        }
        sites
    }

    /// Inserts islands: entries (before which piece, the entry's place, where it goes).
    fn insert(mut self, entries: &[(usize, Place, Place)], words: &Words) -> Sequence {
        let mut by_site: BTreeMap<usize, Vec<(Place, Place)>> = BTreeMap::new();
        for &(site, entry, to) in entries {
            by_site.entry(site).or_default().push((entry, to));
        }
        let old_places = self.places.clone();
        let old_pieces = std::mem::take(&mut self.pieces);
        let count = old_pieces.len();
        let mut moved_to = Vec::with_capacity(count + 1);
        for (index, piece) in old_pieces.into_iter().enumerate() {
            if let Some(entries) = by_site.get(&index) {
                let behind = self.new_place();
                if !words.before_jump.is_empty() {
                    self.pieces.push(Piece::Bytes(words.before_jump.as_slice().into()));
                }
                self.pieces.push(Piece::Branch { word: words.s_branch, to: behind, origin: None });
                for &(entry, to) in entries {
                    self.bind(entry);
                    self.pieces.push(Piece::Branch { word: words.s_branch, to, origin: None });
                }
                self.bind(behind);
            }
            moved_to.push(self.pieces.len());
            self.pieces.push(piece);
        }
        moved_to.push(self.pieces.len());
        for (place, old) in self.places.iter_mut().zip(old_places).filter(|(_, old)| *old != usize::MAX) {
            *place = moved_to[old];
        }
        for (_, piece) in &mut self.moved {
            *piece = moved_to[*piece];
        }
        self.seams.clear();
        self
    }
}

/// The islands from one offset to another, in order; none if it is near, or if there is no way.
fn route(from: u64, to: u64, sites: &[usize], offsets: &[u64]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut at = from;
    while at.abs_diff(to) > NEAR {
        // The farthest island on the way.
        let next = if to > at {
            sites.iter().rev().find(|&&site| offsets[site] > at && offsets[site] <= at + NEAR && offsets[site] <= to)
        } else {
            sites.iter().find(|&&site| offsets[site] < at && offsets[site] + NEAR >= at && offsets[site] >= to)
        };
        let Some(&site) = next else { return Vec::new() };
        path.push(site);
        at = offsets[site];
    }
    path
}
