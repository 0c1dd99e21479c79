//! The public feed: how the engine's feed thread broadcasts it over shared memory, and what a reader in
//! another process needs to follow it there or over a stream. Messages are in [`crate::message::feed`].
//!
//! One writer, any number of readers, and nobody waits for anybody: the writer overwrites the oldest
//! message whatever readers do, and a reader that was overtaken is told so and starts anew from a
//! snapshot. [`layout`] is the picture of the memory, [`broadcast`] its two ends, [`books`] what a reader
//! builds of the messages, and [`FeedReader`] all of it behind one connection, whatever carries it.

#[cfg(not(loom))]
pub mod books;
pub mod broadcast;
#[cfg(not(loom))]
mod connect;
pub mod layout;
#[cfg(not(loom))]
mod line;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod reader;

#[cfg(not(loom))]
pub use connect::FeedConnectError;
#[cfg(not(loom))]
pub use memory::{FeedInput, FeedMemoryError, FeedOutput};
#[cfg(not(loom))]
pub use options::{FeedOptions, FeedOptionsError};
#[cfg(not(loom))]
pub use reader::{FeedError, FeedReader};
