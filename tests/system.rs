//! Tests of the whole system: the built executable, its two processes and its files, seen only from
//! outside (REST, the binary protocol, signals, exit codes), against the service contract.

#[path = "support/no_io_uring.rs"]
mod no_io_uring;
#[path = "support/patience.rs"]
mod patience;
#[path = "support/skipped.rs"]
mod skipped;

mod system {
    mod admin;
    mod audit;
    mod bad_input;
    mod binary;
    mod book_model;
    mod bounded_work;
    mod cancels;
    mod contract;
    mod copies;
    mod crash;
    mod crowds;
    mod definition;
    mod doctor;
    mod documents;
    mod doubts;
    mod error_codes;
    mod examples;
    mod failed_disk;
    mod feed;
    mod feed_history;
    mod feed_position;
    mod feed_snapshots;
    mod feed_streams;
    mod fronts;
    mod gaps;
    mod history;
    mod hostile;
    mod http;
    mod http_abuse;
    mod idle;
    mod jobs;
    mod json;
    mod lifecycle;
    mod limits;
    mod log_dump;
    mod log_pruned;
    mod log_state;
    mod log_tools;
    mod lost_log;
    mod malformed_http;
    mod no_io_uring;
    mod off_the_shelf;
    mod openapi;
    mod operator;
    mod order_kinds;
    mod order_lists;
    mod orders;
    mod process;
    mod prune;
    mod public_data;
    mod quarantine;
    mod random;
    mod random_calls;
    mod raw_session;
    mod readers;
    mod reconnects;
    mod records;
    mod rules;
    mod session_rules;
    mod snapshots;
    mod start_flags;
    mod status;
    mod stream_client;
    mod stream_ends;
    mod streams;
    mod streams_hostile;
    mod streams_patience;
    mod structure;
    mod stuck_output;
    mod trader;
    mod units;
    mod venue;
    mod watched_rings;
}
