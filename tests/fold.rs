//! The adapter's views and the public feed against the core: random commands go to a real core, its
//! transactions to the adapter's fold, and after each of them both must hold the same balances, open
//! orders, depth and definitions; and what a reader of the public feed builds must be the core's books,
//! order by order. Now and then the views are killed and start again with what they have saved. Adapter
//! and core may not depend on each other, so this stands here.

#[path = "system/random.rs"]
mod random;

mod fold {
    mod administration;
    mod commands;
    mod compare;
    mod feed;
    mod orders;
    mod past;
    mod venue;
}
