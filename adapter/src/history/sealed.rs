//! A row as it lies in the store: behind what it says stands a checksum of that, of its table and of its key. Used by
//! [`super::store`] alone.
//!
//! The database has none of its own. Without this a bit that the disk has turned over would be shown to a client as
//! its trade, and a start would go on from a balance that nobody has; a row of another place would do as well.

use super::rows::Key;
use super::store::HistoryError;

/// Bytes of the checksum, the lowest first.
pub(super) const BYTES: usize = size_of::<u32>();

/// Rows of the history are multiples of so many bytes without it, which tells those that have it from those that an
/// older build wrote.
pub(super) const UNIT: usize = 2 * BYTES;

/// Whether a row of the history has a checksum.
pub(super) const fn is_sealed(bytes: &[u8]) -> bool {
    bytes.len() % UNIT == BYTES
}

/// crc32c of all that the row is found by and says.
fn checksum(table: &str, key: &[u8], row: &[u8]) -> u32 {
    [key, row]
        .iter()
        .fold(crc32c::crc32c(table.as_bytes()), |sum, part| crc32c::crc32c_append(sum, part))
}

/// Seals one row after the other, in the same room.
#[derive(Debug, Default)]
pub(super) struct Sealer(Vec<u8>);

impl Sealer {
    /// The row with its checksum.
    pub(super) fn seal(&mut self, table: &str, key: &[u8], row: &[u8]) -> &[u8] {
        self.0.clear();
        self.0.extend_from_slice(row);
        self.0.extend_from_slice(&checksum(table, key, row).to_le_bytes());
        &self.0
    }
}

/// What a row says.
///
/// # Errors
/// [`HistoryError::Changed`] if it is not what was sealed for this table and key.
pub(super) fn unseal<'a>(
    table: &'static str,
    key: &[u8],
    bytes: &'a [u8],
) -> Result<&'a [u8], HistoryError> {
    match bytes.split_last_chunk::<BYTES>() {
        Some((row, sum)) if u32::from_le_bytes(*sum) == checksum(table, key, row) => Ok(row),
        _ => {
            let place = Key::read(key).map_or_else(
                || String::from_utf8_lossy(key).into_owned(),
                |key| format!("{}, {}", key.group, key.id),
            );
            Err(HistoryError::Changed { table, place })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_was_sealed_or_it_is_refused() {
        let key = Key { group: 7, id: 9 }.bytes();
        for row in [&b""[..], b"12345678", b"nine bytes"] {
            let mut sealer = Sealer::default();
            let sealed = sealer.seal("sides", &key, row).to_owned();
            let open = |table, key: &[u8], bytes: &[u8]| {
                let row = unseal(table, key, bytes).map(<[u8]>::to_owned);
                row.map_err(|error| error.to_string())
            };
            assert_eq!(open("sides", &key, &sealed).as_deref(), Ok(row));
            for bit in 0..sealed.len() * 8 {
                let mut turned = sealed.clone();
                turned[bit / 8] ^= 1 << (bit % 8);
                open("sides", &key, &turned).unwrap_err();
            }
            for length in 0..sealed.len() {
                open("sides", &key, &sealed[..length]).unwrap_err();
            }
            open("sides", &Key { group: 7, id: 8 }.bytes(), &sealed).unwrap_err();
            let refused = open("orders", &key, &sealed).unwrap_err();
            assert_eq!(
                refused,
                "the history store: what stands in table orders at 7, 9 is not what was written there"
            );
        }
    }

    /// Stores outlive builds. The sum is that of the bytes in a row, by another program.
    #[test]
    fn the_checksum_stays_as_it_is() {
        let key = Key { group: 1, id: 2 }.bytes();
        let mut expected = b"row".to_vec();
        expected.extend(0xb8be_2928_u32.to_le_bytes());
        assert_eq!(Sealer::default().seal("sides", &key, b"row"), expected);
    }
}
