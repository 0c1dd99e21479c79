//! Users and jobs while engine and adapter are killed at random moments: a thousand writes of every kind,
//! and after each restart everybody's list is exactly what the answers add up to. A request without an
//! answer happened wholly or not at all.
//!
//! `TOUCHLINE_CRASH_SEED` repeats a run's choices, `TOUCHLINE_JOBS_WRITES=20000` makes it longer.

use super::*;
use crate::patience::AtEnd;
use crate::system::process::eventually;
use crate::system::random::Random;
use crate::system::venue::Part;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, thread};

/// Writes between two kills.
const WRITES_PER_KILL: usize = 100;

/// People who write at the same time.
const PEOPLE: usize = 4;

/// What a job is expected to say: company, position, status.
type Fields = (String, String, String);

#[derive(Clone, Debug)]
enum Operation {
    Register { email: String },
    Create { fields: Fields },
    Update { id: String, fields: Fields },
    Delete { id: String },
}

/// One user and what he was told.
struct User {
    email: String,
    token: Option<String>,
    jobs: Vec<(String, Fields)>,
}

/// Somebody who writes one thing after another, for users of his own.
struct Person {
    number: usize,
    client: Client,
    random: Random,
    users: Vec<User>,
    names: usize,
    unknown: Option<(usize, Operation)>,
    /// Requests without an answer that turned out to have happened, or not.
    resolved: [usize; 2],
}

/// How far a round is.
struct Round {
    wanted: usize,
    written: AtomicUsize,
    ending: AtomicBool,
    killed: AtomicBool,
}

impl Person {
    fn new(venue: &Venue, number: usize, seed: u64) -> Self {
        Self {
            number,
            client: Client::new(venue),
            random: Random::new(seed),
            users: Vec::new(),
            names: 0,
            unknown: None,
            resolved: [0; 2],
        }
    }

    fn run(&mut self, round: &Round) {
        while !round.killed.load(Ordering::SeqCst) {
            let (user, operation) = self.choose();
            match self.send(user, &operation) {
                Ok(reply) if reply.status == 200 => {
                    self.acknowledge(user, operation, &reply);
                    round.written.fetch_add(1, Ordering::SeqCst);
                }
                // Nothing happened: the answer promises that.
                Ok(reply) if reply.status == 503 => {
                    assert!(round.ending.load(Ordering::SeqCst), "{}", reply.body);
                }
                outcome => {
                    let known = matches!(&outcome, Ok(reply) if reply.status < 500);
                    let expected = round.ending.load(Ordering::SeqCst) && !known;
                    assert!(expected, "{operation:?} got {outcome:?}");
                    self.unknown = Some((user, operation));
                    return;
                }
            }
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("{}-{}", self.number, self.names)
    }

    fn fields(&mut self) -> Fields {
        let status = ["interview", "declined", "pending"][self.random.below(3) as usize];
        (self.name(), "p".repeat(1 + self.random.below(100) as usize), status.to_owned())
    }

    fn choose(&mut self) -> (usize, Operation) {
        let user = self.random.below(self.users.len().max(1) as u64) as usize;
        let choice = self.random.below(20);
        if self.users.is_empty() || choice == 0 {
            let email = format!("{}@example.org", self.name());
            return (self.users.len(), Operation::Register { email });
        }
        let fields = self.fields();
        let jobs = &self.users[user].jobs;
        if jobs.is_empty() || choice < 10 {
            return (user, Operation::Create { fields });
        }
        let id = jobs[self.random.below(jobs.len() as u64) as usize].0.clone();
        match choice {
            10..16 => (user, Operation::Update { id, fields }),
            _ => (user, Operation::Delete { id }),
        }
    }

    fn send(&mut self, user: usize, operation: &Operation) -> io::Result<Response> {
        self.client.token = self.users.get(user).and_then(|user| user.token.clone());
        let body = |(company, position, status): &Fields| {
            format!(r#"{{"company":"{company}","position":"{position}","status":"{status}"}}"#)
        };
        match operation {
            Operation::Register { email } => {
                self.client.send("POST", REGISTER, &registration("Somebody", email, PASSWORD))
            }
            Operation::Create { fields } => self.client.send("POST", JOBS, &body(fields)),
            Operation::Update { id, fields } => {
                self.client.send("PATCH", &format!("{JOBS}/{id}"), &body(fields))
            }
            Operation::Delete { id } => self.client.send("DELETE", &format!("{JOBS}/{id}"), ""),
        }
    }

    fn acknowledge(&mut self, user: usize, operation: Operation, reply: &Response) {
        match operation {
            Operation::Register { email } => {
                let token = Some(reply.ok().text_at("token").to_owned());
                self.users.push(User { email, token, jobs: Vec::new() });
            }
            Operation::Create { fields } => {
                let made = reply.ok().at("job").clone();
                assert_eq!(shown(&made), fields);
                self.users[user].jobs.push((made.text_at("_id").to_owned(), fields));
            }
            Operation::Update { id, fields } => {
                assert_eq!(shown(reply.ok().at("job")), fields);
                self.apply(user, &id, Some(fields));
            }
            Operation::Delete { id } => self.apply(user, &id, None),
        }
    }

    fn apply(&mut self, user: usize, id: &str, fields: Option<Fields>) {
        let jobs = &mut self.users[user].jobs;
        let at = jobs.iter().position(|(known, _)| known == id).expect("it was acknowledged");
        match fields {
            Some(fields) => jobs[at].1 = fields,
            None => drop(jobs.remove(at)),
        }
    }

    /// Finds out whether the request without an answer happened, and applies it if it did.
    fn resolve(&mut self) {
        let Some((user, operation)) = self.unknown.take() else { return };
        let happened = match &operation {
            Operation::Register { email } => {
                let reply = self.client.call("POST", LOGIN, &login(email, PASSWORD));
                assert!([200, 401].contains(&reply.status), "{}", reply.body);
                if reply.status == 200 {
                    self.acknowledge(user, operation.clone(), &reply);
                }
                reply.status == 200
            }
            Operation::Create { fields } => {
                let found =
                    self.found(user).into_iter().find(|(_, (company, ..))| *company == fields.0);
                if let Some(made) = found.clone() {
                    self.users[user].jobs.push(made);
                }
                found.is_some()
            }
            Operation::Update { id, fields } => {
                let happened =
                    self.found(user).iter().any(|(found, now)| found == id && now == fields);
                if happened {
                    self.apply(user, id, Some(fields.clone()));
                }
                happened
            }
            Operation::Delete { id } => {
                let happened = self.found(user).iter().all(|(found, _)| found != id);
                if happened {
                    self.apply(user, id, None);
                }
                happened
            }
        };
        self.resolved[usize::from(!happened)] += 1;
    }

    /// A user's jobs as the service has them.
    fn found(&mut self, user: usize) -> Vec<(String, Fields)> {
        self.client.token.clone_from(&self.users[user].token);
        let jobs = self.client.list();
        jobs.iter().map(|job| (job.text_at("_id").to_owned(), shown(job))).collect()
    }

    fn verify(&mut self) {
        for user in 0..self.users.len() {
            let found = self.found(user);
            assert_eq!(found, self.users[user].jobs, "jobs of {}", self.users[user].email);
        }
    }
}

/// Somebody who is registered from the beginning.
const PROBE: &str = "probe@example.org";

/// Waits until the adapter has found the engine again: only that one refuses a second registration.
fn wait_until_writes_are_taken(venue: &Venue) {
    let mut client = Client::new(venue);
    let body = registration("Probe", PROBE, PASSWORD);
    let mut last = 0;
    let is_refused = eventually(|| {
        last = client.send("POST", REGISTER, &body).map_or(0, |reply| reply.status);
        last == 400
    });
    assert!(is_refused, "writes are not taken again; last status {last}");
}

fn shown(job: &Json) -> Fields {
    let text = |key: &str| job.text_at(key).to_owned();
    (text("company"), text("position"), text("status"))
}

fn number(name: &str, default: impl FnOnce() -> u64) -> u64 {
    env::var(name).map_or_else(|_| default(), |text| text.parse().expect("it is a number"))
}

/// Writes until enough is written, and kills one process or both with requests under way.
fn write_and_kill(venue: &mut Venue, people: &mut [Person], random: &mut Random) -> bool {
    let kills_both = random.below(2) == 0;
    let pause = Duration::from_micros(random.below(3_000));
    let round = Round {
        wanted: WRITES_PER_KILL,
        written: AtomicUsize::new(0),
        ending: AtomicBool::new(false),
        killed: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        // Also where the kill fails: or people would write on, and whoever waits for them.
        let _end = AtEnd(|| {
            round.ending.store(true, Ordering::SeqCst);
            round.killed.store(true, Ordering::SeqCst);
        });
        let writers: Vec<_> =
            people.iter_mut().map(|person| scope.spawn(|| person.run(&round))).collect();
        while round.written.load(Ordering::SeqCst) < round.wanted
            && !writers.iter().any(thread::ScopedJoinHandle::is_finished)
        {
            thread::sleep(Duration::from_micros(200));
        }
        round.ending.store(true, Ordering::SeqCst);
        thread::sleep(pause);
        venue.kill9(Part::Engine);
        if kills_both {
            venue.kill9(Part::Adapter);
        }
    });
    kills_both
}

#[test]
fn a_thousand_writes_survive_kills_of_engine_and_adapter() {
    let seed = number("TOUCHLINE_CRASH_SEED", Random::fresh_seed);
    println!("seed {seed}: repeat with TOUCHLINE_CRASH_SEED={seed}");
    let writes = number("TOUCHLINE_JOBS_WRITES", || 1000) as usize;
    let mut random = Random::new(seed);
    let mut venue = Venue::separate(&PATIENT);
    Client::registered(&venue, "Probe", PROBE);
    let mut people: Vec<_> =
        (0..PEOPLE).map(|number| Person::new(&venue, number, random.bits())).collect();
    for _ in 0..writes.div_ceil(WRITES_PER_KILL) {
        let killed_both = write_and_kill(&mut venue, &mut people, &mut random);
        venue.start_engine();
        if killed_both {
            venue.start_adapter();
        }
        wait_until_writes_are_taken(&venue);
        for person in &mut people {
            person.client = Client::new(&venue);
            person.resolve();
        }
        people.iter_mut().for_each(Person::verify);
    }
    // Every address that was taken stays taken, and by its own user.
    let mut ids = BTreeMap::new();
    for person in &mut people {
        for user in &person.users {
            let body = registration("Ghost", &user.email, PASSWORD);
            assert_eq!(person.client.call("POST", REGISTER, &body).status, 400, "{}", user.email);
            for (id, _) in &user.jobs {
                assert!(ids.insert(id.clone(), ()).is_none(), "two jobs with one id");
            }
        }
    }
    let users: usize = people.iter().map(|person| person.users.len()).sum();
    let sum = |which: usize| people.iter().map(|person| person.resolved[which]).sum::<usize>();
    println!(
        "{users} users, {} jobs; without an answer: {} had happened, {} had not",
        ids.len(),
        sum(0),
        sum(1)
    );
    // Those that had not happened may have been sent behind the kill.
    assert!(sum(0) > 0, "no request was under way at any kill: nothing was tested");
}
