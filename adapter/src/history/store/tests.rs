//! Tests of the store: what it refuses, what it finds to be damaged, and what older builds have left.

use super::*;

#[test]
fn a_store_of_format_4_is_gone_on_with_and_is_one_of_this_format_then() {
    let reached = Reached { position: 4096, end: 8192, ..Reached::default() };
    let identity = Identity::of([7; 16]);
    let batch = Batch { reached, ..Batch::default() };
    for (opened, kept) in [(identity, true), (Identity::of([8; 16]), false)] {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path(), identity).unwrap();
        store.commit(&batch).unwrap();
        store.make_format_4().unwrap();
        let of_4 = Identity { format: 4, ..identity };
        assert_eq!(store.identity().unwrap(), bytemuck::bytes_of(&of_4));
        drop(store);
        let found = Store::open(folder.path(), opened);
        assert_eq!(found.is_ok_and(|(_, found)| found == Some(reached)), kept);
        if !kept {
            folder::lock(folder.path()).unwrap().clear().unwrap();
        }
        let (_, found) = Store::open(folder.path(), opened).unwrap();
        assert_eq!(found, kept.then_some(reached));
        let older = Store::open(folder.path(), Identity { format: 4, ..opened });
        assert!(matches!(older, Err(HistoryError::Foreign { .. })));
        let before = Identity { format: 3, ..opened };
        assert_eq!(opened.goes_on_with(bytemuck::bytes_of(&before)), None);
    }
}

/// A start reads the state and the beginnings of the tables: not what is damaged here.
#[test]
fn damage_that_is_found_while_the_store_is_open_is_noted_for_the_next_start() {
    let row = SideRow { price: 0x0123_4567_89ab_cdef, ..SideRow::of(7, -1) };
    let key = |id| Key { group: 3, id };
    let rows_of = |ids: Range<u64>| {
        let mut rows = Rows::default();
        rows.sides.extend(ids.map(|id| (key(id), row)));
        Batch { rows, ..Batch::default() }
    };
    type Find = fn(&Store) -> Result<(), HistoryError>;
    let find: [Find; 3] = [
        |store| store.reader()?.get::<SideRow>(Key { group: 3, id: 500 }).map(|_| ()),
        |store| {
            let keys = Key { group: 3, id: 0 }..=Key { group: 3, id: 999 };
            let reader = store.reader()?;
            let mut rows = reader.range::<SideRow>(keys, Direction::Forward)?;
            rows.try_for_each(|row| row.map(|_| ()))
        },
        |store| {
            let mut rows = Rows::default();
            rows.sides.insert(Key { group: 3, id: 1000 }, SideRow::of(8, -1));
            store.commit(&Batch { rows, ..Batch::default() })
        },
    ];
    for (case, find) in find.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let is_damaged = || folder::lock(folder.path()).unwrap().is_of_damaged();
        assert!(!is_damaged());
        let open = || Store::open(folder.path(), Identity::of([7; 16])).unwrap().0;
        open().commit(&rows_of(0..1000)).unwrap();
        let data = folder.path().join("data.mdb");
        let mut bytes = std::fs::read(&data).unwrap();
        // What lies in front of that is of no use to a page, and may be of another.
        let rows_from = |page: &[u8]| usize::from(u16::from_le_bytes([page[14], page[15]]));
        let holds_rows = |page: &[u8]| {
            let rows = page.get(rows_from(page)..).unwrap_or_default();
            rows.windows(8).any(|eight| eight == row.price.to_le_bytes())
        };
        for page in bytes.chunks_mut(4096).filter(|page| holds_rows(page)) {
            page.fill(0);
        }
        std::fs::write(&data, bytes).unwrap();
        let store = open();
        assert!(!is_damaged(), "case {case}: a start does not see it");
        let found = find(&store).unwrap_err();
        assert!(found.is_of_content(), "case {case}: {found}");
        assert!(is_damaged(), "case {case}");
    }
}

#[test]
fn a_table_that_says_that_it_is_none_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path(), Identity::of([7; 16]));
    open().unwrap();
    let data = folder.path().join("data.mdb");
    let mut bytes = std::fs::read(&data).unwrap();
    // Flags, the length of the name, and the name.
    let said = b"\x02\0\x05\0sides";
    let places: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(said)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = 0;
    }
    std::fs::write(&data, bytes).unwrap();
    let refused = open().unwrap_err();
    assert!(refused.is_of_content(), "{refused}");
}

#[test]
fn a_store_that_says_that_it_is_larger_than_any_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path(), Identity::of([7; 16]));
    open().unwrap();
    let data = folder.path().join("data.mdb");
    let good = std::fs::read(&data).unwrap();
    for last in [u64::MAX, 1 << 60, 1 << 40] {
        let mut bytes = good.clone();
        for page in [0, 4096] {
            bytes[page + 136..][..8].copy_from_slice(&last.to_le_bytes());
        }
        std::fs::write(&data, bytes).unwrap();
        let refused = open().unwrap_err();
        assert!(matches!(refused, HistoryError::Layout { .. }) && refused.is_of_content());
    }
}

#[test]
fn rows_of_the_state_are_written_by_table_and_key_however_they_came() {
    let key = |group, id| Key { group, id };
    let mut rows = StateRows::default();
    rows.put(StateTable::Books, key(0, 1), b"book");
    rows.delete(StateTable::OpenOrders, key(2, 1));
    rows.put(StateTable::OpenOrders, key(1, 256), b"order");
    rows.put(StateTable::OpenOrders, key(1, 3), b"");
    rows.put(StateTable::Definitions, key(0, 9), b"definition");
    let expected: [(_, _, Option<&[u8]>); 5] = [
        (StateTable::Definitions, key(0, 9), Some(b"definition")),
        (StateTable::OpenOrders, key(1, 3), Some(b"")),
        (StateTable::OpenOrders, key(1, 256), Some(b"order")),
        (StateTable::OpenOrders, key(2, 1), None),
        (StateTable::Books, key(0, 1), Some(b"book")),
    ];
    assert_eq!(rows.in_order(), expected);
}

#[test]
fn a_store_without_address_space_says_how_it_gets_more_and_goes_on_with_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Identity::of([7; 16])).unwrap();
    store.bound(1 << 20);
    let key = |id| Key { group: 3, id };
    let batch = |ids: Range<u64>| {
        let mut rows = Rows::default();
        rows.sides.extend(ids.map(|id| (key(id), SideRow::of(7, -1))));
        Batch { rows, ..Batch::default() }
    };
    let mut refused = None;
    let mut begin = 0;
    for at in (0..100_000).step_by(4_000) {
        begin = at;
        refused = store.commit(&batch(at..at + 4_000)).err();
        if refused.is_some() {
            break;
        }
    }
    let error = refused.expect("so much has no room in a MiB");
    assert_eq!(
        error.to_string(),
        "the history store is full: it has 1 MiB of address space, by the limit on that when it was opened; end the \
         venue, raise the limit (ulimit -v unlimited), and start the venue again"
    );
    assert!(error.is_to_be_tried_again() && !error.is_of_content());
    assert_eq!(store.room(&error), "", "the disk has room");
    let has = |id| store.reader().unwrap().get::<SideRow>(key(id)).unwrap().is_some();
    assert_eq!([0, begin - 1, begin].map(has), [true, true, false]);
    store.commit(&batch(begin..begin + 1)).unwrap();
    assert!(has(begin));
    store.bound(4 << 20);
    store.commit(&batch(begin..begin + 4_000)).unwrap();
    assert!(has(begin + 3_999), "what was refused is taken whole");
}

/// Of each table of the history a row, shown by its own type.
fn one_of_each() -> Rows {
    let mut rows = Rows::default();
    let key = Key { group: 3, id: 5 };
    let trade = TradeRow { price: 1, quantity: 1, quote: 1, ..TradeRow::default() };
    rows.trades.insert(key, trade);
    rows.sides.insert(key, SideRow::of(7, -1).traded(&trade, true));
    rows.order_trades.insert(key, OrderTradeRow);
    rows.orders.insert(key, OrderRow::default());
    rows.lists.insert(key, ListRow::default());
    rows.names.insert(key, NameRow { id: 7 });
    rows.candles.insert(key, Candle::of(7, &trade));
    rows.breaks.insert(key, Zeroable::zeroed());
    rows
}

/// What is wrong in the store, found by each way in which it is read: two for a table of the history, one for one of
/// the state.
fn faults(store: &Store) -> Vec<HistoryError> {
    fn of<R: Row>(reader: &StoreReader, faults: &mut Vec<HistoryError>) {
        faults.extend(reader.get::<R>(Key { group: 3, id: 5 }).err());
        let whole = Key { group: 0, id: 0 }..=Key { group: u64::MAX, id: u64::MAX };
        let rows = reader.range::<R>(whole, Direction::Backward).unwrap();
        faults.extend(rows.filter_map(Result::err));
    }
    let reader = store.reader().unwrap();
    let mut found = Vec::new();
    of::<TradeRow>(&reader, &mut found);
    of::<SideRow>(&reader, &mut found);
    of::<OrderTradeRow>(&reader, &mut found);
    of::<OrderRow>(&reader, &mut found);
    of::<ListRow>(&reader, &mut found);
    of::<NameRow>(&reader, &mut found);
    of::<Candle>(&reader, &mut found);
    of::<BreakRow>(&reader, &mut found);
    found.extend(StateTable::ALL.iter().filter_map(|&table| {
        let nothing = |_, _: &[u8]| Ok::<_, HistoryError>(());
        store.each(table, nothing).err()
    }));
    found
}

/// As a disk does it that turns a bit over: the database sees nothing of it.
#[test]
fn what_has_changed_in_a_row_of_any_table_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Identity::of([7; 16])).unwrap();
    let mut state = StateRows::default();
    for table in StateTable::ALL {
        state.put(table, Key { group: 3, id: 5 }, b"what the views hold");
    }
    store.commit(&Batch { rows: one_of_each(), state, reached: Reached::default() }).unwrap();
    assert_eq!(faults(&store).len(), 0);
    let put = |table: Table, id, row: Option<&[u8]>| {
        let key = Key { group: 3, id }.bytes();
        let mut writing = store.env.write_txn().unwrap();
        match row {
            Some(row) => table.put(&mut writing, &key, row).unwrap(),
            None => assert!(table.delete(&mut writing, &key).unwrap()),
        }
        writing.commit().unwrap();
    };
    let history = store.history.iter().map(|&(name, table)| (name, table, 2));
    for (name, table, ways) in history.chain(store.state.map(|table| ("", table, 1))) {
        let row = {
            let reading = store.env.read_txn().unwrap();
            table.get(&reading, &Key { group: 3, id: 5 }.bytes()).unwrap().unwrap().to_owned()
        };
        for byte in 0..row.len() {
            let mut changed = row.clone();
            changed[byte] ^= 1 << (byte % 8);
            put(table, 5, Some(&changed));
            let found = faults(&store);
            assert_eq!(found.len(), ways, "byte {byte}: {found:?}");
            for fault in found {
                assert!(matches!(fault, HistoryError::Changed { .. }) && fault.is_of_content());
            }
        }
        put(table, 5, None);
        put(table, 6, Some(&row));
        assert_eq!(faults(&store).len(), 1, "a row in the place of another");
        let last = store.reader().unwrap().last_group::<NameRow>();
        assert_eq!(last.is_err(), name == NameRow::TABLE);
        put(table, 6, None);
        put(table, 5, Some(&row));
        assert_eq!(faults(&store).len(), 0);
    }
}

/// By which what is sound would be taken for what an older build has left.
#[test]
fn a_bit_that_has_changed_in_the_format_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::of([7; 16]);
    let open = || Store::open(folder.path(), identity).unwrap();
    let reached = Reached { position: 4096, end: 8192, ..Reached::default() };
    let mut state = StateRows::default();
    state.put(StateTable::Books, Key { group: 3, id: 5 }, b"what the views hold");
    open().0.commit(&Batch { state, reached, ..Batch::default() }).unwrap();
    for format in [5, 6] {
        let (store, found) = open();
        assert_eq!(found, Some(reached));
        assert_eq!(faults(&store).len(), 0);
        let mut writing = store.env.write_txn().unwrap();
        let older = Identity { format, ..identity };
        store.meta.put(&mut writing, IDENTITY, bytemuck::bytes_of(&older)).unwrap();
        writing.commit().unwrap();
    }
    assert_eq!(open().0.identity().unwrap(), bytemuck::bytes_of(&identity));
}

#[test]
fn how_far_a_store_goes_is_told_by_what_was_written_alone() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path(), Identity::of([7; 16]));
    let reached = Reached { position: 4096, end: 8192, ..Reached::default() };
    let (store, _) = open().unwrap();
    store.commit(&Batch { reached, ..Batch::default() }).unwrap();
    let mut writing = store.env.write_txn().unwrap();
    let more = |key: &[u8], row: &[u8]| {
        let mut row = row.to_owned();
        row[0] ^= u8::from(key == REACHED);
        row
    };
    rewrite(&mut writing, store.meta, more).unwrap();
    writing.commit().unwrap();
    drop(store);
    let refused = open().unwrap_err();
    let expected =
        "the history store: what stands in table meta at reached is not what was written there";
    assert_eq!(refused.to_string(), expected);
    assert!(refused.is_of_content());
}
