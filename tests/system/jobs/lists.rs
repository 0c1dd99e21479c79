//! Lists of jobs: whose they are, their order, and that a long one is sent whole.

use super::*;

#[test]
fn a_list_is_of_its_owner_alone_and_in_the_order_of_making() {
    let venue = Venue::up(&PATIENT);
    let mut users: Vec<_> = ["ada", "bob", "eve"]
        .into_iter()
        .map(|name| Client::registered(&venue, name, &format!("{name}@example.org")))
        .collect();
    let mut expected = vec![Vec::new(); users.len()];
    for number in 0..60 {
        let user = number % 2;
        let id = users[user].create(&format!("c{number}"), "p");
        expected[user].push(id);
    }
    let gone = expected[0].remove(7);
    assert_eq!(users[0].call("DELETE", &format!("{JOBS}/{gone}"), "").status, 200);
    let changed = format!("{JOBS}/{}", expected[0][3]);
    assert_eq!(users[0].call("PATCH", &changed, &job("changed", "p")).status, 200);
    for (user, expected) in users.iter_mut().zip(&expected) {
        let ids: Vec<_> = user.list().iter().map(|job| job.text_at("_id").to_owned()).collect();
        assert_eq!(&ids, expected);
    }
    assert_eq!(users[0].list()[3].text_at("company"), "changed", "it keeps its place");
}

#[test]
fn a_long_list_is_sent_in_chunks_and_survives_a_restart() {
    let mut venue = Venue::up(&PATIENT);
    let mut ada = Client::registered(&venue, "Ada", "ada@example.org");
    let made: Vec<_> = (0..700).map(|number| ada.create(&format!("c{number}"), "p")).collect();
    let reply = ada.call("GET", JOBS, "");
    assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
    let ids = |client: &mut Client| -> Vec<_> {
        client.list().iter().map(|job| job.text_at("_id").to_owned()).collect()
    };
    assert_eq!(ids(&mut ada), made);
    let token = ada.token.take();
    assert!(venue.stop_up(rustix::process::Signal::TERM).success());
    venue.start_up();
    let mut ada = Client { http: venue.http(), token };
    assert_eq!(ids(&mut ada), made, "and the token is still good");
    assert_eq!(ada.call("POST", LOGIN, &login("ada@example.org", PASSWORD)).status, 200);
    assert_eq!(Client::new(&venue).call("GET", JOBS, "").status, 401);
}
