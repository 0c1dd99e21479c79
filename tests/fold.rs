//! The adapter's views against the core: random commands go to a real core, its transactions to the
//! adapter's fold, and after each of them both must hold the same balances, open orders, depth and
//! definitions. Now and then the views are killed and start again with what they have saved. Neither package may depend on the other, so this stands here.

#[path = "system/random.rs"]
mod random;

mod fold {
    mod administration;
    mod commands;
    mod compare;
    mod orders;
    mod past;
    mod venue;
}
