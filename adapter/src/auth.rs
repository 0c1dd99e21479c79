//! Who somebody is, to a service with users: [passwords](password) and the [threads](pool) that hash
//! them, [tokens](token) and the [keys] that sign those. Used by the jobs service; knows none of
//! its users.

mod hs256;
pub mod keys;
pub mod password;
pub mod pool;
pub mod token;
