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

/// Pages with one child below `at`, counted one by one.
fn lonely_pages(ladder: &Ladder, nodes: &Nodes, at: Ref) -> u32 {
    if at == Ref::NOTHING || at.as_leaf().is_some() {
        return 0;
    }
    let (node, shift) = at.as_node();
    let occupied = nodes.heads[node as usize].occupied;
    let children = (0..CHILDREN).filter(|&place| occupied >> place & 1 != 0);
    let below = children.map(|place| lonely_pages(ladder, nodes, nodes.children[node].0[place]));
    let is_lonely = is_one(occupied);
    assert!(
        !is_lonely || shift == u32::from(ladder.page_shift),
        "a node above or below pages is alone"
    );
    u32::from(is_lonely) + below.sum::<u32>()
}

proptest! {
    #[test]
    fn behaves_like_an_ordered_map(
        tick in prop::sample::select(vec![0, 1, 3, 64, 1_000_000, i64::MAX]),
        operations in prop::collection::vec((prices(), any::<bool>()), 0..300),
        spare in 0..8u32,
    ) {
        let mut levels = Pool::<Level>::new();
        let mut nodes = Nodes::new();
        levels.try_grow(300).unwrap();
        nodes.try_grow(300).unwrap();
        nodes.spare = spare;
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
            let lonely = lonely_pages(&ladder, &nodes, ladder.root);
            prop_assert!(lonely == nodes.lonely && lonely <= spare, "{lonely} of {}", nodes.lonely);
            prop_assert!((nodes.live() - lonely) as usize <= model.len().saturating_sub(1));
            prop_assert!(!model.is_empty() || nodes.live() == 0);
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
        spare in prop::sample::select(vec![0, 1, 5, 20, 400]),
    ) {
        let mut levels = Pool::<Level>::new();
        let mut nodes = Nodes::new();
        levels.try_grow(400).unwrap();
        nodes.try_grow(400).unwrap();
        nodes.spare = spare;
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
            let lonely = venues.iter().map(|(ladder, _)| lonely_pages(ladder, &nodes, ladder.root));
            let lonely: u32 = lonely.sum();
            prop_assert!(lonely == nodes.lonely && lonely <= nodes.spare, "{lonely} of {}", nodes.lonely);
            prop_assert!((nodes.live() - lonely) as usize <= most);
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

#[test]
fn a_level_far_from_all_others_keeps_its_page_while_one_can_be_spared() {
    let mut levels = Pool::<Level>::new();
    let mut nodes = Nodes::new();
    levels.try_grow(8).unwrap();
    nodes.try_grow(8).unwrap();
    nodes.spare = 2;
    let mut ladder = Ladder::aligned_to(1);
    let mut put = |ladder: &mut Ladder, nodes: &mut Nodes, price: i64| {
        let level = levels.take().unwrap();
        levels[level].price = Price(price);
        let _neighbour = insert(ladder, nodes, &levels, level);
    };
    for price in [0, 1 << 10, 1 << 20] {
        put(&mut ladder, &mut nodes, price);
    }
    // Two pages for one level each, two nodes above, and the third level without a page.
    assert_eq!((nodes.lonely, nodes.live()), (2, 4));
    assert!(nodes.page(&ladder, key(1)).is_some() && nodes.page(&ladder, key(1 << 20)).is_none());
    put(&mut ladder, &mut nodes, 1);
    put(&mut ladder, &mut nodes, 1 << 20 | 1);
    assert_eq!((nodes.lonely, nodes.live()), (1, 5));
    ladder.remove(&mut nodes, key(0));
    assert_eq!((nodes.lonely, nodes.live()), (2, 5));
    // No more can be spared: the level that is left takes its page's place.
    ladder.remove(&mut nodes, key(1 << 20));
    assert_eq!((nodes.lonely, nodes.live()), (2, 4));
    for price in [1, 1 << 10, 1 << 20 | 1] {
        ladder.remove(&mut nodes, key(price));
    }
    assert_eq!((nodes.lonely, nodes.live()), (0, 0));
}
