//! Scaffold.
#![no_std]
