//! Recorded exchange data, without any engine: reading it ([`rows`]), an independent price-time
//! book ([`book`]), the commands that it becomes ([`flow`]), and the comparison of a replayed book
//! with the recorded one ([`alignment`], [`explanation`]). Called by [`crate::replay`].

pub mod alignment;
pub mod book;
pub mod explanation;
pub mod flow;
pub mod rows;

#[cfg(test)]
pub(crate) mod sample;
