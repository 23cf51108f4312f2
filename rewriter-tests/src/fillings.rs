//! Random words for rows of the instruction tables, mostly legal ones: what the tests ask LLVM about.

use wavetap::isa::{self, Accepts, Coding, Modifier, Target, Variant};

/// Attempts at a legal filling before a row counts as unreachable.
pub const ATTEMPTS: usize = 4000;

/// A small generator (xorshift64*): the test needs variety, not secrets, and the same words on every run.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator with this seed, which must not be zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A number for an operand's field that is likely to mean something there.
fn likely_number(random: &mut Random, variant: &Variant, operand: usize) -> u64 {
    let spec = &variant.operands[operand];
    let width = spec.bits.width();
    let any = random.next() & (u64::MAX >> (64 - width));
    let kind = spec.kind;
    let step = if kind.mask { 2 } else { u64::from(kind.dwords).next_power_of_two().min(4) };
    match kind.coding {
        Coding::Source | Coding::SourceAcc | Coding::SourceAccum | Coding::SrcHalf | Coding::SrcLow128
            if width >= 7 =>
        {
            let scalar =
                [random.below(102 / step) * step, 106, 108 + random.below(12) / step * step, 124, 125, 126, 127]
                    [random.below(7) as usize];
            let constant = [
                128 + random.below(81),
                240 + random.below(9),
                255,
                251 + random.below(4),
                235 + random.below(5),
                230 + random.below(2),
            ][random.below(6) as usize];
            let vector = (256 + (random.below(256) & if kind.even { !1 } else { !0 })) | (any & 512);
            let accepts = |what: Accepts| kind.accepts.intersects(what);
            let choices: Vec<u64> = [
                (accepts(Accepts::SCALAR), scalar),
                (accepts(Accepts::INLINE), constant),
                (accepts(Accepts::VECTOR | Accepts::ACCUM), vector),
                // LLVM dies on some of the illegal ones, which takes a while each time.
                (random.below(16) == 0, any),
            ]
            .into_iter()
            .filter_map(|(chosen, number)| chosen.then_some(number))
            .collect();
            let chosen = random.below(choices.len().max(1) as u64) as usize;
            choices.get(chosen).copied().unwrap_or(any) & ((1 << width) - 1)
        }
        // Values that inline constants have, too.
        Coding::Literal if random.below(2) == 0 => {
            let (low, high) = (u64::from(literal(random)), u64::from(literal(random)));
            [low, high << 32, high << 32 | low][random.below(3) as usize] & (u64::MAX >> (64 - width))
        }
        Coding::Vector | Coding::Accum if kind.even => any & !1,
        Coding::VectorAcc => {
            any & (if kind.even { !1 } else { !0 }) & (if random.below(2) == 0 { 0xff } else { 0x2ff })
        }
        _ => any,
    }
}

/// The bytes of a random filling of a row of the instruction tables, which need not be legal: the row's fixed bits, its
/// fields, and random bits everywhere else; a literal follows.
#[must_use]
pub fn filling(random: &mut Random, variant: &Variant) -> Vec<u8> {
    let any = u128::from(random.next()) | u128::from(random.next()) << 64;
    let mut word = any & !variant.mask | variant.matches;
    if random.below(2) == 0 {
        // Selectors of SDWA and the like have few legal numbers: often leave the bits that are no operand's clear.
        word &= variant.matches | variant.operands.iter().fold(0, |mask, spec| mask | spec.bits.mask());
    }
    for (modifier, bits) in &variant.layout.modifiers {
        // Few numbers of these mean something, and LLVM dies on the others.
        let number = match modifier {
            Modifier::DstSel | Modifier::Src0Sel | Modifier::Src1Sel => random.below(7),
            Modifier::DstUnused => random.below(3),
            Modifier::Dpp8Fi => 1 + random.below(2),
            Modifier::DppCtrl => {
                [random.below(256), 0x101 + random.below(15), 0x111 + random.below(15), 0x140 + random.below(20)]
                    [random.below(4) as usize]
            }
            _ => continue,
        };
        if random.below(16) != 0 && bits.mask() & variant.mask == 0 {
            word = word & !bits.mask() | bits.put(number).unwrap_or(0);
        }
    }
    if random.below(8) != 0 {
        word = with_dimension(random, variant, word);
    }
    for operand in 0..variant.operands.len() {
        let bits = variant.operands[operand].bits;
        if variant.operands[operand].kind.coding == Coding::VectorBehind {
            continue;
        }
        if let Some(placed) = bits.put(likely_number(random, variant, operand) & !((1 << lowest(&bits)) - 1)) {
            word = word & !bits.mask() | placed & !variant.mask | variant.matches & bits.mask();
        }
    }
    let mut bytes = word.to_le_bytes()[..usize::from(variant.layout.bytes)].to_vec();
    if let Some(behind) = addresses_behind(random, variant, word) {
        bytes.extend(behind.to_le_bytes());
    }
    // Enough for a literal of 64 bits.
    bytes.extend(literal(random).to_le_bytes());
    bytes.extend(literal(random).to_le_bytes());
    bytes
}

/// The word with a dimension for which an image's form has addresses, of which some forms have few.
fn with_dimension(random: &mut Random, variant: &Variant, word: u128) -> u128 {
    let Some(address) = variant.image.and_then(|image| image.address) else { return word };
    let fits = |dimension, a16| address.dwords(dimension, a16).is_some_and(|dwords| address.sizes >> dwords & 1 != 0);
    let choices: Vec<(u8, bool)> = (0..8)
        .flat_map(|dimension| [(dimension, false), (dimension, true)])
        .filter(|&(dimension, a16)| fits(dimension, a16))
        .collect();
    let Some(&(dimension, a16)) = choices.get(random.below(choices.len().max(1) as u64) as usize) else { return word };
    variant.layout.modifiers.iter().fold(word, |word, (modifier, bits)| {
        let number = match modifier {
            Modifier::Dim => dimension.into(),
            Modifier::A16 => a16.into(),
            _ => return word,
        };
        word & !bits.mask() | bits.put(number).unwrap_or(0)
    })
}

/// The dword of image addresses that are after the first 128 bits: mostly as many as the word's dimension has, and any
/// number of them.
fn addresses_behind(random: &mut Random, variant: &Variant, word: u128) -> Option<u32> {
    let fields = variant.operands.iter().filter(|spec| spec.kind.coding == Coding::VectorBehind).count() as u64;
    let modifier = |wanted| {
        variant.layout.modifiers.iter().find(|(known, _)| *known == wanted).map_or(0, |(_, bits)| bits.get(word))
    };
    let address = variant.image.and_then(|image| image.address);
    let needed =
        address.and_then(|address| address.dwords(modifier(Modifier::Dim) as u8, modifier(Modifier::A16) != 0));
    // The other addresses are in the word; there are four in a dword.
    let in_word = variant.operands.iter().filter(|spec| spec.role.is_address()).count() as u64 - fields;
    let used = match needed {
        Some(needed) if random.below(8) != 0 => u64::from(needed).saturating_sub(in_word).min(fields),
        _ => random.below(fields + 1),
    };
    (fields > 0).then(|| random.next() as u32 & ((1u64 << (8 * used)) - 1) as u32)
}

/// What LLVM has to be asked for to disassemble code of a target: a processor that has its instructions, and features.
#[must_use]
pub fn llvm_processor(target: Target, processor: &str) -> String {
    let wave = match target.with_wave_size(96 - target.wave_size()) {
        None => String::new(),
        Some(other) => format!(",-wavefrontsize{},+wavefrontsize{}", other.wave_size(), target.wave_size()),
    };
    let halves = if isa::variants(target)
        .any(|variant| variant.operands.iter().any(|spec| spec.kind.coding == Coding::VectorHalf))
    {
        ",+real-true16"
    } else {
        ""
    };
    format!("{processor}{wave}{halves}")
}

/// Every instruction set once with each of its wave sizes.
#[must_use]
pub fn instruction_sets() -> Vec<Target> {
    let mut found: Vec<Target> = Vec::new();
    let both = |target: Target| [64, 32].into_iter().filter_map(move |lanes| target.with_wave_size(lanes));
    for target in Target::all().filter(|target| target.has_instructions()).flat_map(both) {
        let known = |other: &Target| {
            other.instruction_set() == target.instruction_set() && other.wave_size() == target.wave_size()
        };
        if !found.iter().any(known) {
            found.push(target);
        }
    }
    found
}

/// A literal: any, or one that has the value of an inline constant of some type, which is printed in its own way.
fn literal(random: &mut Random) -> u32 {
    const SPECIAL: [u32; 8] = [0x3f80_0000, 0x3c00, 0x3e22_f983, 0x3ff0_0000, 0x3fc4_5f30, 0xbf80, 0xc000_0000, 0x4400];
    match random.below(6) {
        0 => random.below(70) as u32,
        1 => (random.below(20) as u32).wrapping_neg(),
        2 => SPECIAL[random.below(8) as usize],
        3 => random.next() as u32 & 0xffff,
        _ => random.next() as u32,
    }
}

/// The lowest value bit that a field has.
fn lowest(bits: &isa::Bits) -> u8 {
    bits.runs().iter().map(|run| run.shift).min().unwrap_or(0)
}
