//! Two people at the same time: one address registers once, and no change overwrites another unseen.

use super::*;
use crate::patience::StartLine;
use std::thread;

#[test]
fn registrations_at_one_moment_give_one_user() {
    let venue = Venue::up(&PATIENT);
    const RIVALS: usize = 6;
    for round in 0..4 {
        let email = format!("ada{round}@example.org");
        let start = StartLine::of(RIVALS);
        let replies: Vec<_> = thread::scope(|scope| {
            let rivals: Vec<_> = (0..RIVALS)
                .map(|rival| {
                    let mut client = Client::new(&venue);
                    let body = registration(&format!("rival {rival}"), &email, PASSWORD);
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        client.call("POST", REGISTER, &body)
                    })
                })
                .collect();
            rivals.into_iter().map(|rival| rival.join().expect("it was answered")).collect()
        });
        let winners: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(winners.len(), 1, "{replies:?}");
        let name = winners[0].ok().at("user").text_at("name").to_owned();
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            assert!(error(reply).1.starts_with("Duplicate value entered for email"));
        }
        let known = Client::new(&venue).call("POST", LOGIN, &login(&email, PASSWORD)).ok();
        assert_eq!(known.at("user").text_at("name"), name);
    }
}

#[test]
fn a_change_keeps_what_it_does_not_name_whoever_changes_it_meanwhile() {
    let venue = Venue::up(&PATIENT);
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let path = format!("{JOBS}/{}", ada.create("ACME", "clerk"));
    let rival = || Client { http: venue.http(), token: ada.token.clone() };
    thread::scope(|scope| {
        for number in 0..2 {
            let (mut rival, path) = (rival(), &path);
            scope.spawn(move || {
                for round in 0..60 {
                    let body = job(&format!("c{number}-{round}"), "p");
                    assert_eq!(rival.call("PATCH", path, &body).status, 200);
                }
            });
        }
        // Nobody else names the status: what was set last stands.
        let mut setter = rival();
        let statuses = ["interview", "declined", "pending"];
        for status in statuses.into_iter().cycle().take(60) {
            let body = format!(r#"{{"company":"s","position":"p","status":"{status}"}}"#);
            assert_eq!(setter.call("PATCH", &path, &body).status, 200);
            let found = setter.call("GET", &path, "").ok();
            assert_eq!(found.at("job").text_at("status"), status, "a change was overwritten");
        }
    });
}

#[test]
fn of_two_who_delete_one_job_one_has_done_it() {
    let venue = Venue::up(&PATIENT);
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    for _ in 0..20 {
        let path = format!("{JOBS}/{}", ada.create("ACME", "clerk"));
        let start = StartLine::of(2);
        let mut statuses: Vec<_> = thread::scope(|scope| {
            let rivals: Vec<_> = (0..2)
                .map(|_| {
                    let mut rival = Client { http: venue.http(), token: ada.token.clone() };
                    let (start, path) = (&start, &path);
                    scope.spawn(move || {
                        start.wait();
                        rival.call("DELETE", path, "").status
                    })
                })
                .collect();
            rivals.into_iter().map(|rival| rival.join().expect("it was answered")).collect()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 404]);
    }
    assert_eq!(ada.list(), []);
}
