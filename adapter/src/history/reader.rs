//! Reads the history as one: what is in memory, newest first, laid over what is in the store. Used by
//! the handlers and by [`super::statistics`].
//!
//! A reader is made while the views are held and used when they are let go: the store may have to wait
//! for the disk, and nobody shall wait with it.

use std::cell::Cell;
use std::iter;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use super::HistoryError;
use super::rows::{Key, Row, Rows};
use super::store::{Batch, StoreReader};
use crate::halving;

/// Which way a range is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Lowest number first.
    Forward,
    /// Highest number first.
    Backward,
}

/// The whole history as of one moment, whatever comes behind it.
pub(crate) struct Reader {
    /// What grows.
    pub(super) rows: Rows,
    /// What is being written to the store, if anything is.
    pub(super) frozen: Option<Arc<Batch>>,
    pub(super) store: Option<StoreReader>,
    /// Names that were given.
    pub(super) names: u64,
    /// Rows that were taken out of the layers and the store, which is what an answer costs.
    pub(super) rows_read: Cell<u64>,
}

/// A part of a table, in order.
pub(super) type Layer<'a, R> = Box<dyn Iterator<Item = Result<(u64, R), HistoryError>> + 'a>;

impl Reader {
    /// What is in memory, newest first: a row of a layer stands before rows of the same key in the layers
    /// behind it.
    fn layers(&self) -> impl Iterator<Item = &Rows> {
        iter::once(&self.rows).chain(self.frozen.as_ref().map(|batch| &batch.rows))
    }

    /// Rows that were read so far.
    #[cfg(test)]
    pub(crate) const fn rows_read(&self) -> u64 {
        self.rows_read.get()
    }

    /// Shows the rows of a group whose numbers are in `ids` until it is told to stop.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn scan<R: Row>(
        &self,
        group: u64,
        ids: RangeInclusive<u64>,
        direction: Direction,
        mut visit: impl FnMut(u64, R) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut layers = self.ranges::<R>(group, &ids, direction)?;
        let mut heads = Vec::with_capacity(layers.len());
        for layer in &mut layers {
            heads.push(self.next_of(layer)?);
        }
        loop {
            let next = heads.iter().flatten().map(|(id, _)| *id);
            let next = match direction {
                Direction::Forward => next.min(),
                Direction::Backward => next.max(),
            };
            let Some(next) = next else { return Ok(()) };
            let mut newest = None;
            for (head, layer) in heads.iter_mut().zip(&mut layers) {
                if head.as_ref().is_some_and(|(id, _)| *id == next) {
                    let (_, row) =
                        std::mem::replace(head, self.next_of(layer)?).expect("it was looked at");
                    newest.get_or_insert(row);
                }
            }
            if newest.is_some_and(|row| visit(next, row).is_break()) {
                return Ok(());
            }
        }
    }

    fn next_of<R>(&self, layer: &mut Layer<'_, R>) -> Result<Option<(u64, R)>, HistoryError> {
        let next = layer.next().transpose()?;
        self.rows_read.set(self.rows_read.get() + u64::from(next.is_some()));
        Ok(next)
    }

    /// Each layer's part of a range, in the order of the layers.
    fn ranges<R: Row>(
        &self,
        group: u64,
        ids: &RangeInclusive<u64>,
        direction: Direction,
    ) -> Result<Vec<Layer<'_, R>>, HistoryError> {
        let keys = Key { group, id: *ids.start() }..=Key { group, id: *ids.end() };
        let mut ranges: Vec<Layer<'_, R>> = Vec::with_capacity(3);
        for rows in self.layers() {
            let found = R::of(rows).range(keys.clone()).map(|(key, row)| Ok((key.id, *row)));
            ranges.push(match direction {
                Direction::Forward => Box::new(found),
                Direction::Backward => Box::new(found.rev()),
            });
        }
        if let Some(store) = &self.store {
            ranges.push(store.range::<R>(keys, direction)?);
        }
        Ok(ranges)
    }

    /// The first `limit` rows of a range in its direction, lowest number first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn page<R: Row>(
        &self,
        group: u64,
        ids: RangeInclusive<u64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(u64, R)>, HistoryError> {
        let mut page = Vec::with_capacity(limit.min(1024));
        self.scan(group, ids, direction, |id, row| {
            page.push((id, row));
            if page.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if direction == Direction::Backward {
            page.reverse();
        }
        Ok(page)
    }

    /// One row.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn get<R: Row>(&self, group: u64, id: u64) -> Result<Option<R>, HistoryError> {
        let key = Key { group, id };
        self.rows_read.set(self.rows_read.get() + 1);
        if let Some(row) = self.layers().find_map(|rows| R::of(rows).get(&key)) {
            return Ok(Some(*row));
        }
        self.store.as_ref().map_or(Ok(None), |store| store.get(key))
    }

    /// The first row of a range in its direction.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn edge<R: Row>(
        &self,
        group: u64,
        ids: RangeInclusive<u64>,
        direction: Direction,
    ) -> Result<Option<(u64, R)>, HistoryError> {
        let mut found = None;
        self.scan(group, ids, direction, |id, row| {
            found = Some((id, row));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The last group that the store has a row of; what is in memory does not count.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) fn last_group<R: Row>(&self) -> Result<Option<u64>, HistoryError> {
        self.store.as_ref().map_or(Ok(None), StoreReader::last_group::<R>)
    }

    /// The number of the first row of a group that `is_before` does not hold for, if it holds for none
    /// behind that one: as many looks as the numbers have bits.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn first_not<R: Row>(
        &self,
        group: u64,
        is_before: impl Fn(&R) -> bool,
    ) -> Result<Option<u64>, HistoryError> {
        let whole = 0..=u64::MAX;
        let Some((last, row)) = self.edge::<R>(group, whole.clone(), Direction::Backward)? else {
            return Ok(None);
        };
        if is_before(&row) {
            return Ok(None);
        }
        let Some((low, _)) = self.edge::<R>(group, whole, Direction::Forward)? else {
            return Ok(None);
        };
        halving::first_not(low, last, |ids| {
            let first = self.edge::<R>(group, ids, Direction::Forward)?;
            Ok(first.map(|(id, row)| (id, is_before(&row))))
        })
        .map(Some)
    }
}
