//! What this build can hold at most, and the numbers by which rejects name a limit. Called by
//! `SetLimits` and by every check of a capacity.

use crate::book;
use touchline_protocol::message::command::Limits;
use touchline_protocol::units::KeyId;

/// A limit's number in the `detail` of a reject: its place in [`Limits`], from 0.
pub mod number {
    /// [`Limits::assets`](super::Limits::assets).
    pub const ASSETS: u32 = 0;
    /// [`Limits::symbols`](super::Limits::symbols).
    pub const SYMBOLS: u32 = 1;
    /// [`Limits::accounts`](super::Limits::accounts).
    pub const ACCOUNTS: u32 = 2;
    /// [`Limits::keys`](super::Limits::keys).
    pub const KEYS: u32 = 3;
    /// [`Limits::sessions`](super::Limits::sessions), or [`SESSIONS_PER_KEY_MAX`](super::SESSIONS_PER_KEY_MAX).
    pub const SESSIONS: u32 = 4;
    /// [`Limits::open_orders`](super::Limits::open_orders).
    pub const OPEN_ORDERS: u32 = 5;
    /// [`Limits::price_levels`](super::Limits::price_levels).
    pub const PRICE_LEVELS: u32 = 6;
    /// [`Limits::pending_work`](super::Limits::pending_work).
    pub const PENDING_WORK: u32 = 7;
    /// [`Limits::max_steps`](super::Limits::max_steps), or [`LEVELS_JUDGED_MAX`](super::LEVELS_JUDGED_MAX).
    pub const MAX_STEPS: u32 = 8;
    /// [`RecordLimits::records`](crate::RecordLimits::records); these two are numbered behind all of `Limits`.
    pub const RECORDS: u32 = 14;
    /// [`RecordLimits::blocks`](crate::RecordLimits::blocks).
    pub const RECORD_BLOCKS: u32 = 15;
}

/// The largest limit of steps of one transaction, of which a maker that is met takes one.
pub const STEPS_MAX: u32 = 512;

/// The largest limit of records.
pub const RECORDS_MAX: u32 = 1 << 24;

/// The largest limit of their blocks, of 64 bytes each: 4 GiB.
pub const RECORD_BLOCKS_MAX: u32 = 1 << 26;

/// Cells of the table by account and asset, of 16 bytes each: 1 GiB. Of the limits as they are set: the
/// table has as many rows and columns as the largest limits so far, so that it has more cells when one
/// limit was lowered and the other raised; and while it grows, the old one is there as well.
pub const CELLS_MAX: u64 = 1 << 26;

/// Sessions that one key ever opens: bounds the transaction that revokes it.
pub const SESSIONS_PER_KEY_MAX: u32 = 32;

/// Durable sessions that only the local user's roles may open, or a quarter of
/// [`Limits::sessions`](super::Limits::sessions) if that is less: where it is three or more, no key can lock out admin
/// or adapter.
pub const LOCAL_SESSIONS: u32 = 8;

/// Of `sessions` in all, those that who logs on by a key leaves for the local user's roles, who have none (0).
#[must_use]
pub const fn sessions_kept_back(sessions: u32, key_id: KeyId) -> u32 {
    let quarter = sessions / 4;
    match key_id.0 {
        0 => 0,
        _ if quarter < LOCAL_SESSIONS => quarter,
        _ => LOCAL_SESSIONS,
    }
}

/// Price levels that are looked at to decide about one order before it takes: whether FOK is filled,
/// what a MARKET buy costs, what a quote quantity comes to. By rules 5 also resting orders, where FOK may not trade
/// with all of them.
pub const LEVELS_JUDGED_MAX: u32 = 1 << 12;

/// Sweeps of killed accounts and revoked keys that ever wait at once.
pub const URGENT_SWEEPS_MAX: u32 = 1 << 12;

/// How many sweeps of killed accounts and revoked keys may wait besides [`Limits::pending_work`]: one
/// for each account and one for each key with a session, or [`URGENT_SWEEPS_MAX`] if that is less.
#[must_use]
pub fn urgent_sweeps(limits: &Limits) -> u32 {
    let of_keys = limits.keys.min(limits.sessions);
    limits.accounts.saturating_add(of_keys).min(URGENT_SWEEPS_MAX)
}

/// Entries of pending work that there may be at once: what the limit allows, urgent sweeps, and for each symbol
/// the turn of stops that were reached in a halt. These need no room of the limit, but count in it while they wait:
/// an operator's command that lets a symbol trade again is not refused for what clients have pending.
pub(crate) fn pending_entries(limits: &Limits) -> u32 {
    limits.pending_work + urgent_sweeps(limits) + limits.symbols
}

/// The least value of each limit.
pub const MINIMA: Limits = Limits {
    assets: 0,
    symbols: 0,
    accounts: 1,
    keys: 0,
    sessions: 0,
    open_orders: 0,
    price_levels: 0,
    pending_work: 0,
    max_steps: 1,
    orders_per_interval_0: 0,
    orders_per_interval_1: 0,
    interval_0_seconds: 1,
    interval_1_seconds: 1,
    reserved: 0,
};

/// The largest value of each limit. Besides, accounts × assets is at most [`CELLS_MAX`].
pub const MAXIMA: Limits = Limits {
    assets: 1 << 14,
    symbols: 1 << 14,
    accounts: 1 << 24,
    keys: 1 << 24,
    sessions: 1 << 20,
    open_orders: 1 << 24,
    price_levels: 1 << 24,
    pending_work: 1 << 14,
    max_steps: STEPS_MAX,
    orders_per_interval_0: u32::MAX,
    orders_per_interval_1: u32::MAX,
    interval_0_seconds: 86_400,
    interval_1_seconds: 86_400,
    reserved: 0,
};

const _: () = assert!(MAXIMA.price_levels <= book::LEVELS_MAX);
const _: () = assert!(MAXIMA.open_orders <= book::ORDERS_MAX);

/// The limits by their numbers.
pub(crate) fn by_number(limits: &Limits) -> [u32; 14] {
    bytemuck::cast(*limits)
}

/// Checks that each limit is within what this build can hold and not below `floor`, what the venue
/// needs at least; else gives the number of the first that is not.
pub(crate) fn first_out_of_range(limits: &Limits, floor: &Limits) -> Option<u32> {
    let [least, most, used] = [&MINIMA, &MAXIMA, floor].map(by_number);
    let out = by_number(limits)
        .into_iter()
        .zip(least.into_iter().zip(most).zip(used))
        .position(|(limit, ((least, most), used))| limit < least.max(used) || limit > most);
    let cells = u64::from(limits.accounts) * u64::from(limits.assets);
    match out {
        Some(number) => Some(number as u32),
        None => (cells > CELLS_MAX).then_some(number::ACCOUNTS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_judged_by_its_own_bounds() {
        let uses = Limits { symbols: 3, ..Limits::default() };
        let sound = Limits { symbols: 3, ..MINIMA };
        assert_eq!(first_out_of_range(&sound, &uses), None);
        assert_eq!(first_out_of_range(&MINIMA, &uses), Some(number::SYMBOLS));
        for number in 0..14 {
            let mut values = by_number(&sound);
            let Some(above) = by_number(&MAXIMA)[number].checked_add(1) else { continue };
            values[number] = above;
            let found = first_out_of_range(&bytemuck::cast(values), &uses);
            assert_eq!(found, Some(number as u32));
        }
    }

    #[test]
    fn the_tables_by_account_are_bounded() {
        let limits = Limits { accounts: 1 << 20, assets: 65, ..MINIMA };
        assert_eq!(first_out_of_range(&limits, &Limits::default()), Some(number::ACCOUNTS));
        let limits = Limits { assets: 64, symbols: 4096, ..limits };
        assert_eq!(first_out_of_range(&limits, &Limits::default()), None);
    }

    #[test]
    fn kills_and_revocations_have_room_for_all_there_can_be_up_to_a_bound() {
        let limits = Limits { accounts: 3, keys: 50, sessions: 4, ..MINIMA };
        assert_eq!(urgent_sweeps(&limits), 7);
        assert_eq!(urgent_sweeps(&Limits { sessions: 90, ..limits }), 53);
        assert_eq!(urgent_sweeps(&MAXIMA), URGENT_SWEEPS_MAX);
        assert_eq!(
            urgent_sweeps(&MINIMA),
            1,
            "a kill always finds room in a venue with an account"
        );
    }
}
