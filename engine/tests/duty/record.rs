//! The log as the tests compare it with what clients were told: every transaction, whose command it
//! carries out, and its events.

use std::collections::BTreeMap;
use std::path::Path;
use touchline_protocol::log::reader::{Follow, LogReader};
use touchline_protocol::message::decode::{self, Command, Event};
use touchline_protocol::message::event::Trade;
use touchline_protocol::units::{AccountId, SessionId};

/// One transaction.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    /// Position of its frame.
    pub(crate) start: u64,
    /// Position behind it: what its replies carry.
    pub(crate) end: u64,
    pub(crate) time_ns: u64,
    /// Name of its command.
    pub(crate) command: &'static str,
    /// The command as it stands in the log.
    pub(crate) message: Vec<u8>,
    /// Session and sequence of the command that it carries out: of a `RunPending`, those of the
    /// aggressor that it continues.
    pub(crate) owner: (SessionId, u64),
    /// Its events as they stand in the log.
    pub(crate) events: Vec<Vec<u8>>,
    /// The command is not done with it.
    pub(crate) continues: bool,
}

/// What may come between the parts of an order: what operators send, here deposits only.
const fn overtakes(command: &Command<'_>) -> bool {
    matches!(command, Command::Deposit(_))
}

/// Every transaction of the log in `data`, in order.
pub(crate) fn transactions(data: &Path) -> Vec<Transaction> {
    let mut reader = LogReader::open(data, Follow::Appended).unwrap();
    let mut all = Vec::new();
    let mut waiting = None;
    while let Some(read) = reader.next().unwrap() {
        let command = read.command().unwrap();
        let events: Vec<Vec<u8>> =
            read.events().map(|event| event.unwrap().bytes().to_vec()).collect();
        let continues = matches!(read.events().last(), Some(Ok(Event::OrderContinues(_))));
        let header = command.header();
        let owner = match (command, waiting) {
            (Command::RunPending(_), Some(owner)) => owner,
            (Command::RunPending(_), None) => panic!("nothing is pending at {}", read.position()),
            (command, Some(_)) if header.session != SessionId::ENGINE => {
                assert!(overtakes(&command), "{} comes between the parts", command.name());
                (header.session, header.sequence.0)
            }
            _ => (header.session, header.sequence.0),
        };
        match command {
            // Connections come and go at any time; they do not touch the book.
            Command::Logon(_) | Command::ConnectionEnded(_) => {}
            command if overtakes(&command) => {}
            _ => waiting = continues.then_some(owner),
        }
        all.push(Transaction {
            start: read.position().0,
            end: read.end().0,
            time_ns: read.time_ns(),
            command: command.name(),
            message: command.bytes().to_vec(),
            owner,
            events,
            continues,
        });
    }
    all
}

/// The parts of each command of a session, by sequence.
pub(crate) fn of_session(data: &Path, session: SessionId) -> BTreeMap<u64, Vec<Transaction>> {
    let mut commands: BTreeMap<u64, Vec<Transaction>> = BTreeMap::new();
    for transaction in transactions(data) {
        if transaction.owner.0 == session {
            commands.entry(transaction.owner.1).or_default().push(transaction);
        }
    }
    commands
}

/// What a session of `account` is told of an event in the log: its own side of it.
pub(crate) fn own_side(event: &[u8], account: AccountId) -> Option<Vec<u8>> {
    let owner = match decode::event(event).unwrap() {
        Event::Trade(&trade) => {
            let mut told = trade;
            if trade.taker_account != account {
                told = Trade { taker_account: AccountId(u32::MAX), taker_commission: 0, ..told };
            }
            if trade.maker_account != account {
                let maker_account = AccountId(u32::MAX);
                told = Trade { maker_account, maker_commission: 0, maker_released: 0, ..told };
                told.maker_remaining = -1;
            }
            assert_ne!(told.maker_account, told.taker_account, "none of its own");
            return Some(bytemuck::bytes_of(&told).to_vec());
        }
        Event::OrderAccepted(event) => event.account,
        Event::OrderResult(event) => event.account,
        Event::OrderCanceled(event) => event.account,
        Event::OrderReduced(event) => event.account,
        Event::OrderReplaced(event) => event.account,
        Event::OrderTriggered(event) => event.account,
        Event::OrderListChanged(event) => event.account,
        Event::SelfTradePrevented(event) => event.account,
        _ => account,
    };
    (owner == account).then(|| event.to_vec())
}
