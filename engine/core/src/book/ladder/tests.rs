//! Ladders beside ordered maps: one alone, and several that share nodes and the table of pages.

use super::*;
use alloc::collections::BTreeMap;
use alloc::vec;
use core::ops::Bound::{Excluded, Unbounded};
use proptest::prelude::*;
use touchline_protocol::units::Price;

fn prices() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -20..20i64,
        2 => (0..64u32).prop_map(|bit| 1i64.wrapping_shl(bit)),
        1 => any::<i64>(),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
        2 => (0..50i64).prop_map(|tick| 5_000_000_000_000 + tick * 1_000_000),
    ]
}

fn key(price: i64) -> u64 {
    price.cast_unsigned() ^ 1 << 63
}

fn find(ladder: &Ladder, nodes: &Nodes, levels: &Pool<Level>, key: u64) -> Option<u32> {
    let found = ladder.find_from_root(nodes, levels, key);
    match ladder.look_up(nodes, levels, key) {
        Lookup::Level(level) => assert_eq!(found, Some(level)),
        Lookup::Vacant(_) => assert_eq!(found, None),
        Lookup::Unknown => {}
    }
    found
}

fn insert(
    ladder: &mut Ladder,
    nodes: &mut Nodes,
    levels: &Pool<Level>,
    level: u32,
) -> Option<Neighbour> {
    let key = levels[level].key();
    match ladder.look_up(nodes, levels, key) {
        Lookup::Vacant(vacancy) => Some(nodes.fill(vacancy, level)),
        _ => ladder.insert_from_root(nodes, levels, (key, level)),
    }
}

proptest! {
    #[test]
    fn behaves_like_an_ordered_map(
        tick in prop::sample::select(vec![0, 1, 3, 64, 1_000_000, i64::MAX]),
        operations in prop::collection::vec((prices(), any::<bool>()), 0..300),
    ) {
        let mut levels = Pool::<Level>::new();
        let mut nodes = Nodes::new();
        levels.try_grow(300).unwrap();
        nodes.try_grow(300).unwrap();
        let mut ladder = Ladder::aligned_to(tick);
        let mut model = BTreeMap::new();
        for (price, add) in operations {
            let known = model.get(&price).copied();
            prop_assert_eq!(find(&ladder, &nodes, &levels, key(price)), known);
            if add && known.is_none() {
                let level = levels.take().unwrap();
                levels[level].price = Price(price);
                levels[level].is_bid = false;
                let neighbour = insert(&mut ladder, &mut nodes, &levels, level);
                let above = model.range((Excluded(price), Unbounded)).next();
                let below = model.range(..price).next_back();
                match neighbour {
                    None => prop_assert!(model.is_empty()),
                    Some(Neighbour::Above(found)) => prop_assert_eq!(above.map(|it| *it.1), Some(found)),
                    Some(Neighbour::Below(found)) => prop_assert_eq!(below.map(|it| *it.1), Some(found)),
                }
                model.insert(price, level);
            } else if !add && let Some(level) = known {
                ladder.remove(&mut nodes, key(price));
                levels.release(level);
                model.remove(&price);
            }
            prop_assert_eq!(nodes.live() == 0, model.len() <= 1);
            prop_assert!(nodes.live() as usize <= model.len().saturating_sub(1));
            prop_assert!(nodes.is_consistent());
            for (&price, &level) in &model {
                prop_assert_eq!(find(&ladder, &nodes, &levels, key(price)), Some(level));
            }
        }
    }
}

/// Prices of few pages, which are made, emptied and made again, at places of the table that they share.
fn crowded() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0..6i64, 0..5i64).prop_map(|(page, place)| page << 12 | place << 3),
        1 => (0..4i64, 0..8i64).prop_map(|(page, price)| page << 30 | price),
    ]
}

proptest! {
    #[test]
    fn ladders_that_share_nodes_do_not_mix(
        ticks in prop::collection::vec(prop::sample::select(vec![0, 1, 8, 9, 512]), 2..9),
        operations in prop::collection::vec((any::<prop::sample::Index>(), crowded()), 0..400),
        grown_at in 0..400usize,
    ) {
        let mut levels = Pool::<Level>::new();
        let mut nodes = Nodes::new();
        levels.try_grow(400).unwrap();
        nodes.try_grow(400).unwrap();
        let mut venues: Vec<_> =
            ticks.iter().map(|&tick| (Ladder::aligned_to(tick), BTreeMap::new())).collect();
        for (step, (which, price)) in operations.into_iter().enumerate() {
            if step == grown_at {
                nodes.try_grow(500).unwrap();
            }
            // Numbers that agree in what the table looks at: pages of one number want one place.
            nodes.ladders = nodes.ladders.next_multiple_of(512);
            let at = which.index(venues.len());
            let (ladder, model) = &mut venues[at];
            if let Some(level) = model.remove(&price) {
                prop_assert_eq!(find(ladder, &nodes, &levels, key(price)), Some(level));
                ladder.remove(&mut nodes, key(price));
                levels.release(level);
            } else {
                let level = levels.take().unwrap();
                levels[level].price = Price(price);
                levels[level].is_bid = false;
                let neighbour = insert(ladder, &mut nodes, &levels, level);
                let above = model.range((Excluded(price), Unbounded)).next();
                let below = model.range(..price).next_back();
                let is_it = match neighbour {
                    None => model.is_empty(),
                    Some(Neighbour::Above(found)) => above.map(|it| *it.1) == Some(found),
                    Some(Neighbour::Below(found)) => below.map(|it| *it.1) == Some(found),
                };
                prop_assert!(is_it, "{:?} beside {} of ladder {}", neighbour, price, at);
                model.insert(price, level);
            }
            prop_assert_eq!(find(ladder, &nodes, &levels, key(price)), model.get(&price).copied());
            let most: usize = venues.iter().map(|(_, model)| model.len().saturating_sub(1)).sum();
            prop_assert!(nodes.live() as usize <= most);
            prop_assert!(nodes.is_consistent());
        }
        for (ladder, model) in &mut venues {
            for (price, level) in core::mem::take(model) {
                prop_assert_eq!(find(ladder, &nodes, &levels, key(price)), Some(level));
                ladder.remove(&mut nodes, key(price));
                prop_assert_eq!(find(ladder, &nodes, &levels, key(price)), None);
            }
        }
        prop_assert_eq!(nodes.live(), 0);
    }
}
