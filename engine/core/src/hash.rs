//! The two mixing functions: [`StateHash`] says whether two venues are the same, [`Seed`] spreads
//! keys over the look-up tables. Neither is cryptographic.

use touchline_protocol::text::{ClientOrderId, Text};
use touchline_protocol::units::{AccountId, SymbolId};

/// Multiplier of the state hash: 2⁶⁴ divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash of the venue's state: words in, one `u64` out.
///
/// A step is `state = (rotate_left(state, 27) ^ word) × 0x9e3779b97f4a7c15; state ^= state >> 29`. For
/// a fixed state it is a bijection of the word, and for a fixed word a bijection of the state: two
/// venues that differ in exactly one word have different hashes for certain. Changing it makes the
/// hashes of older snapshots incomparable.
#[derive(Debug)]
pub(crate) struct StateHash(u64);

impl StateHash {
    /// Nothing hashed so far.
    pub(crate) const fn new() -> Self {
        Self(0)
    }

    /// Takes a word in.
    pub(crate) const fn word(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(27) ^ word).wrapping_mul(STEP);
        self.0 = mixed ^ (mixed >> 29);
    }

    /// Takes a signed quantity in.
    pub(crate) const fn signed(&mut self, value: i64) {
        self.word(value.cast_unsigned());
    }

    /// Takes two halves of a word in.
    pub(crate) const fn pair(&mut self, high: u32, low: u32) {
        self.word((high as u64) << 32 | low as u64);
    }

    /// Takes a text in: its bytes, zero padding included.
    pub(crate) fn text<const N: usize, const P: usize>(&mut self, text: &Text<N, P>) {
        for word in words(text) {
            self.word(word);
        }
    }

    /// The hash of what was taken in.
    pub(crate) const fn finish(&self) -> u64 {
        self.0
    }
}

/// A text's bytes as little-endian words (texts are multiples of eight bytes long).
fn words<const N: usize, const P: usize>(text: &Text<N, P>) -> impl Iterator<Item = u64> {
    bytemuck::bytes_of(text).as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Spreads keys over tables. Where an entry lies in a table changes nothing that can be seen, so two
/// cores with different seeds behave alike; a seed that clients do not know keeps them from choosing
/// names that all fall into one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed {
    key: u64,
    /// What the pairs of words of a text are mixed with: a key for each word, none of which tells of another. With two
    /// that belong together there are names whose products have the same low bits, whatever the seed.
    pairs: [[u64; 2]; PAIRS],
}

/// Pairs of words of the longest text, a scope included.
const PAIRS: usize = 3;

impl Seed {
    /// A seed from any number.
    pub(crate) const fn new(seed: u64) -> Self {
        let key = seed ^ STEP;
        let mut pairs = [[0; 2]; PAIRS];
        let mut at = 0;
        while at < PAIRS {
            let number = 2 * at as u64;
            pairs[at] = [spread(key, number + 1), spread(key, number + 2)];
            at += 1;
        }
        Self { key, pairs }
    }

    /// Of an order's number within a symbol. Sixteen neighbouring numbers lie side by side in the table, which in a
    /// large one is a cache line: the next order's was just written, and most cancels name a young order. Which lies
    /// where differs from sixteen to sixteen, so that nobody can leave orders open that all have the same place there.
    pub(crate) const fn order(&self, symbol: u32, order_id: u64) -> u32 {
        let block = fold(self.key ^ (symbol as u64) << 40 ^ order_id >> 4, STEP);
        (block as u32) << 4 | (order_id ^ block >> 32) as u32 & 15
    }

    /// Of an account and a symbol.
    pub(crate) const fn pair(&self, account: u32, symbol: u32) -> u32 {
        fold(self.key ^ ((account as u64) << 32 | symbol as u64), STEP) as u32
    }

    /// Of a client order id, which is unique among the open orders, or lists, of an account on a symbol.
    #[inline(always)]
    pub(crate) fn client_order_id(
        &self,
        account: AccountId,
        symbol: SymbolId,
        name: &ClientOrderId,
    ) -> u32 {
        self.text(u64::from(account.0) << 32 | u64::from(symbol.0), name)
    }

    /// Of a record's id.
    pub(crate) fn record_id(&self, id: &[u8; 12]) -> u32 {
        let [low, middle, high] =
            bytemuck::cast::<_, [u32; 3]>(*id).map(u32::from_le).map(u64::from);
        self.words(high, [middle << 32 | low].into_iter())
    }

    /// Of a unique key, of which there is one per kind of record.
    pub(crate) fn unique_key(&self, kind: u32, key: &[u8; 32]) -> u32 {
        let words = key.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
        self.words(kind.into(), words)
    }

    /// Of a text that is unique within `scope`.
    #[inline(always)]
    pub(crate) fn text<const N: usize, const P: usize>(
        &self,
        scope: u64,
        text: &Text<N, P>,
    ) -> u32 {
        // Pairs of words are mixed each for itself, so that no multiplication waits for another.
        let (whole, rest) = bytemuck::bytes_of(text).as_chunks::<16>();
        const { assert!(size_of::<Text<N, P>>() / 16 < PAIRS) };
        let mut mixed = 0;
        for (pair, [first, second]) in whole.iter().zip(self.pairs) {
            let [low, high] = halves(*pair);
            mixed ^= fold(low ^ first, high ^ second);
        }
        let rest = rest.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let [first, second] = self.pairs[whole.len()];
        mixed ^= fold(rest ^ first, scope ^ second);
        fold(mixed ^ self.key, STEP) as u32
    }

    fn words(&self, scope: u64, words: impl Iterator<Item = u64>) -> u32 {
        let mixed = words.fold(fold(self.key ^ scope, STEP), |state, word| {
            fold(state ^ word, self.key | 1) ^ state.rotate_left(32)
        });
        fold(mixed, STEP) as u32
    }
}

fn halves(pair: [u8; 16]) -> [u64; 2] {
    let pair = u128::from_le_bytes(pair);
    [pair as u64, (pair >> 64) as u64]
}

/// A number by its place behind a key: SplitMix64's.
const fn spread(key: u64, place: u64) -> u64 {
    let mut mixed = key.wrapping_add(STEP.wrapping_mul(place));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Both halves of the 128-bit product, folded into one.
const fn fold(left: u64, right: u64) -> u64 {
    let product = left as u128 * right as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use touchline_protocol::text::ClientOrderId;

    #[test]
    fn one_word_or_its_place_changes_the_hash() {
        let of = |words: &[u64]| {
            let mut hash = StateHash::new();
            words.iter().for_each(|&word| hash.word(word));
            hash.finish()
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[1, 2]), of(&[1, 3]));
        assert_ne!(of(&[0]), of(&[0, 0, 1]));
    }

    #[test]
    fn the_state_hash_is_pinned() {
        let mut hash = StateHash::new();
        hash.word(1);
        hash.signed(-1);
        hash.pair(2, 3);
        hash.text(&ClientOrderId::new("touchline").unwrap());
        assert_eq!(hash.finish(), 0xce43_5e57_0d91_79b0, "the mixing function changed");
    }

    #[test]
    fn neighbouring_orders_share_a_line() {
        let seed = Seed::new(7);
        let of_sixteen = |symbol, first: u64| {
            (first..first + 16).map(|id| seed.order(symbol, id)).collect::<BTreeSet<_>>()
        };
        let line = of_sixteen(3, 64);
        let base = line.first().unwrap() >> 4;
        assert_eq!(line, (base << 4..=base << 4 | 15).collect());
        assert!(line.is_disjoint(&of_sixteen(3, 80)) && line.is_disjoint(&of_sixteen(4, 64)));
        let firsts = (0..64).map(|line| seed.order(3, line * 16) & 15).collect::<BTreeSet<_>>();
        assert!(firsts.len() > 8, "the first of each sixteen lies in {firsts:?}");
    }

    /// Most names that share one of 4,096 places, of as many names, whatever the seed.
    fn longest(names: &[ClientOrderId]) -> usize {
        let of_seed = |seed: u64| {
            let seed = Seed::new(spread(seed, 0));
            let mut places = alloc::vec![0; 4096];
            for name in names {
                let hash = seed.client_order_id(AccountId(1), SymbolId(1), name);
                places[hash as usize % 4096] += 1;
            }
            places.into_iter().max().unwrap_or(0)
        };
        (0..32).map(of_seed).max().unwrap_or(0)
    }

    fn name(bytes: &[u8]) -> ClientOrderId {
        ClientOrderId::new(core::str::from_utf8(bytes).unwrap()).unwrap()
    }

    #[test]
    fn nobody_chooses_names_that_lie_in_few_places() {
        // Words that differ by one byte each, so that products of keys that belong together agree.
        let pairs: [[usize; 2]; 3] = [[19, 23], [15, 27], [3, 7]];
        let mut hostile = alloc::vec::Vec::new();
        for number in 0..4096_u32 {
            let mut bytes = [b'0'; 28];
            for (at, [low, high]) in pairs.into_iter().enumerate() {
                let byte = 0x20 + (number >> (4 * at) & 15) as u8;
                (bytes[low], bytes[high]) = (byte, byte ^ 0x7f);
            }
            hostile.push(name(&bytes));
        }
        // As many thrown at random share a place eight times at the most.
        assert!(longest(&hostile) <= 12, "{}", longest(&hostile));
        let in_order: alloc::vec::Vec<_> =
            (0..4096).map(|number| name(alloc::format!("order-{number:06}").as_bytes())).collect();
        assert!(longest(&in_order) <= 12, "{}", longest(&in_order));
        let backwards: alloc::vec::Vec<_> = (0..4096)
            .map(|number| {
                let mut digits = alloc::format!("{number:08}").into_bytes();
                digits.reverse();
                name(&digits)
            })
            .collect();
        assert!(longest(&backwards) <= 12, "{}", longest(&backwards));
    }
}
