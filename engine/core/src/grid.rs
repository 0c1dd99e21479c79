//! A dense table of rows and columns that only grows: balances by account and asset. One indexed load
//! per look-up, whatever is in it.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// The table.
#[derive(Debug)]
pub(crate) struct Grid<T> {
    cells: Vec<T>,
    columns: usize,
}

impl<T: Copy + Default> Grid<T> {
    pub(crate) const fn new() -> Self {
        Self { cells: Vec::new(), columns: 0 }
    }

    /// Makes room for `rows` × `columns` and keeps what is there. Never shrinks.
    ///
    /// # Errors
    /// When there is no memory; the table is as it was.
    pub(crate) fn try_grow(&mut self, rows: u32, columns: u32) -> Result<(), TryReserveError> {
        let old_rows = self.cells.len().checked_div(self.columns).unwrap_or(0);
        let (rows, columns) = ((rows as usize).max(old_rows), (columns as usize).max(self.columns));
        if (rows, columns) == (old_rows, self.columns) || rows * columns == 0 {
            return Ok(());
        }
        let mut cells = Vec::new();
        cells.try_reserve_exact(rows * columns)?;
        cells.resize(rows * columns, T::default());
        if self.columns > 0 {
            let old = self.cells.chunks_exact(self.columns);
            for (new, old) in cells.chunks_exact_mut(columns).zip(old) {
                new[..old.len()].copy_from_slice(old);
            }
        }
        self.cells = cells;
        self.columns = columns;
        Ok(())
    }

    /// The cell of a row and column below what the table was grown to.
    #[inline(always)]
    pub(crate) fn at(&self, row: u32, column: u32) -> &T {
        debug_assert!((column as usize) < self.columns);
        &self.cells[row as usize * self.columns + column as usize]
    }

    /// All cells of a row below what the table was grown to.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, row: u32) -> &mut [T] {
        &mut self.cells[row as usize * self.columns..][..self.columns]
    }

    /// As [`at`](Self::at), to change.
    #[inline(always)]
    pub(crate) fn at_mut(&mut self, row: u32, column: u32) -> &mut T {
        debug_assert!((column as usize) < self.columns);
        &mut self.cells[row as usize * self.columns + column as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_in_either_direction_keeps_every_cell() {
        let mut grid = Grid::<u32>::new();
        for (rows, columns) in [(1, 1), (3, 1), (3, 4), (2, 2), (5, 6)] {
            grid.try_grow(rows, columns).unwrap();
            *grid.at_mut(rows - 1, columns - 1) += rows * 10 + columns;
        }
        assert_eq!(*grid.at(0, 0), 11);
        assert_eq!(*grid.at(2, 0), 31);
        assert_eq!(*grid.at(2, 3), 34);
        assert_eq!(*grid.at(1, 1), 22);
        assert_eq!(*grid.at(4, 5), 56);
        assert_eq!(*grid.at(4, 0), 0);
    }
}
