//! Registration and login. The password is hashed on the pool's threads; how long a login takes tells
//! nobody whether an account exists.

use std::sync::Arc;

use touchline_protocol::message::command::PutRecord;
use touchline_protocol::message::enums::RejectReason;
use touchline_protocol::message::with_bytes::RecordWrite;

use super::exchange::Exchange;
use super::fields::{Login, Registration};
use super::record::{USER, User, fresh_id, id_text, key_of_email};
use super::refusal::Refusal;
use super::responses::{self, LoggedIn, UserName};
use crate::link::RecordCommand;
use crate::notice::alert;
use crate::views::doubts::Owner;
use crate::views::records::RecordId;

/// POST /auth/register.
pub(super) fn register(exchange: Exchange) {
    let registration = match admitted_registration(&exchange) {
        Ok(registration) => registration,
        Err(refusal) => return exchange.refuse(&refusal),
    };
    let shared = Arc::clone(&exchange.shared);
    let Some(turn) = shared.pool.reserve(exchange.address) else {
        return exchange.refuse(&Refusal::Busy);
    };
    turn.run(move |hasher| {
        let Some(exchange) = exchange.in_time() else { return };
        match hasher.hash(&registration.password) {
            Ok(hash) => {
                let Registration { name, email, password: _ } = registration;
                make(exchange, name, &email, &hash);
            }
            Err(error) => {
                alert!("adapter: a password cannot be hashed: {error}");
                exchange.refuse(&Refusal::Internal);
            }
        }
    });
}

fn admitted_registration(exchange: &Exchange) -> Result<Registration, Refusal> {
    let (quotas, now_ms) = (&exchange.shared.quotas, exchange.request.arrived_ms());
    quotas.attempt_from(exchange.address, now_ms)?;
    let registration = Registration::read(&exchange.request.body)?;
    quotas.attempt_at(key_of_email(&registration.email), exchange.address, now_ms)?;
    Ok(registration)
}

/// Makes the user, unless the e-mail address is somebody's.
fn make(exchange: Exchange, name: String, email: &str, hash: &str) {
    let Ok(id) = fresh_id(exchange.now_s()) else { return exchange.refuse(&Refusal::Internal) };
    let put = PutRecord { kind: USER, id, unique_key: key_of_email(email), ..PutRecord::default() };
    let content = User { name: &name, email, hash }.encode();
    let Some(write) = RecordWrite::new(put, &content) else {
        return exchange.refuse(&Refusal::Internal);
    };
    exchange.write(RecordCommand::Put(Box::new(write)), move |exchange, decided| {
        match decided.outcome {
            Ok(()) => welcome(exchange, &id, &name),
            Err(rejected) => {
                let is_taken =
                    RejectReason::from_wire(rejected.reason) == Some(RejectReason::UniqueKeyTaken);
                let duplicate =
                    "Duplicate value entered for email field, please choose another value";
                exchange.refuse(&match is_taken {
                    true => Refusal::Invalid(duplicate.to_owned()),
                    false => Refusal::of_reject(&rejected),
                });
            }
        }
    });
}

/// POST /auth/login.
pub(super) fn log_in(exchange: Exchange) {
    let login = match admitted_login(&exchange) {
        Ok(login) => login,
        Err(refusal) => return exchange.refuse(&refusal),
    };
    // Whoever has just registered, wherever that was, is known.
    exchange.when_current(move |exchange| compare(exchange, login));
}

fn admitted_login(exchange: &Exchange) -> Result<Login, Refusal> {
    let (quotas, now_ms) = (&exchange.shared.quotas, exchange.request.arrived_ms());
    quotas.attempt_from(exchange.address, now_ms)?;
    let login = Login::read(&exchange.request.body)?;
    let account = key_of_email(&login.email);
    quotas.attempt_at(account, exchange.address, now_ms)?;
    quotas.login_to(account, now_ms)?;
    Ok(login)
}

/// A user as a login needs it.
struct Known {
    id: RecordId,
    name: String,
    hash: String,
}

fn known(exchange: &Exchange, email: &str) -> Option<Known> {
    exchange.shared.views.read(|state| {
        let found = state.records.keyed(USER, &key_of_email(email))?;
        let user = User::decode(&found.content).filter(|user| user.email == email)?;
        Some(Known { id: found.id, name: user.name.to_owned(), hash: user.hash.to_owned() })
    })
}

/// Compares the password on a thread of the pool; without an account the work is the same.
fn compare(exchange: Exchange, login: Login) {
    let shared = Arc::clone(&exchange.shared);
    let Some(turn) = shared.pool.reserve(exchange.address) else {
        return exchange.refuse(&Refusal::Busy);
    };
    let known = known(&exchange, &login.email);
    turn.run(move |hasher| {
        let Some(exchange) = exchange.in_time() else { return };
        let hash = known.as_ref().map(|known| &*known.hash);
        match (hasher.verify(&login.password, hash), known) {
            (Ok(true), Some(known)) => welcome(exchange, &known.id, &known.name),
            (Ok(_), known) => failed(exchange, login, known.map(|known| known.id)),
            (Err(error), _) => {
                alert!("adapter: a password cannot be compared: {error}");
                exchange.refuse(&Refusal::Internal);
            }
        }
    });
}

/// Denies the login. It counts at once, whatever the answer is: the right password would have been welcome by now, so a
/// 503 tells as much of one as a refusal. A password that is not that of a known user is denied as late as one of
/// nobody: how long it takes tells nobody which of them it is.
fn failed(exchange: Exchange, login: Login, compared: Option<RecordId>) {
    let now_ms = exchange.request.arrived_ms();
    let account = key_of_email(&login.email);
    exchange.shared.quotas.login_failed(account, now_ms);
    exchange.deny_to(Owner::Holder(account), &Refusal::Credentials, move |exchange| {
        compare_again(exchange, login, compared);
    });
}

/// Compares the password with that of another user than `compared`, if there is one by now; else it is not that.
fn compare_again(exchange: Exchange, login: Login, compared: Option<RecordId>) {
    match known(&exchange, &login.email) {
        Some(other) if Some(other.id) != compared => compare(exchange, login),
        _ => exchange.refuse(&Refusal::Credentials),
    }
}

/// Answers with a token.
fn welcome(exchange: Exchange, id: &RecordId, name: &str) {
    match exchange.shared.tokens.issue(&id_text(id), name, exchange.now_s()) {
        Ok(token) => {
            let body = LoggedIn { user: UserName { name }, token: &token };
            exchange.answer(responses::json(200, &body));
        }
        Err(error) => {
            alert!("adapter: {error}");
            exchange.refuse(&Refusal::Internal);
        }
    }
}
