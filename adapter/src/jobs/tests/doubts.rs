//! What a user is told while nobody knows what became of a write.

use super::*;

const JOBS: &str = "/api/v1/jobs";

fn unknown_job() -> String {
    format!("{JOBS}/{}", id_text(&[9; 12]))
}

fn send(site: &Site, method: Method, path: &str, body: &str) -> mpsc::Receiver<Reply> {
    site.send([127, 0, 0, 1], method, path, body)
}

/// An engine that dies with a write of Ada's in the live window, not on disk.
fn in_doubt(site: &Site) {
    site.appended.store(640, Ordering::SeqCst);
    site.expect(|_, _| Outcome::Unknown(Doubt::ConnectionLost));
    assert_eq!(site.ask(Method::Post, JOBS, NEW).status, 504);
}

fn is_waiting(reply: &mpsc::Receiver<Reply>) -> bool {
    matches!(reply.try_recv(), Err(mpsc::TryRecvError::Empty))
}

#[test]
fn what_is_in_doubt_is_answered_once_it_is_known() {
    let site = Site::new();
    in_doubt(&site);
    let list = send(&site, Method::Get, JOBS, "");
    let own = send(&site, Method::Get, &format!("{JOBS}/{}", id_text(&JOB_ID)), "");
    let missing = send(&site, Method::Get, &unknown_job(), "");
    assert!([&list, &own, &missing].into_iter().all(is_waiting));
    site.views.arrive(Position(640));
    let statuses = [list, own, missing].map(|reply| reply.try_recv().unwrap().status);
    assert_eq!(statuses, [200, 200, 404]);
    assert_eq!(site.ask(Method::Get, &unknown_job(), "").status, 404, "now that is certain");
}

#[test]
fn while_no_engine_comes_back_jobs_are_shown_as_far_as_they_are_known_and_none_is_denied() {
    // Whoever comes behind the time that the write had.
    let site = Site::with_deadline(Duration::ZERO);
    in_doubt(&site);
    assert_eq!(send(&site, Method::Get, JOBS, "").try_recv().unwrap().status, 200);
    let own = format!("{JOBS}/{}", id_text(&JOB_ID));
    assert_eq!(send(&site, Method::Get, &own, "").try_recv().unwrap().status, 200);
    for method in [Method::Get, Method::Patch, Method::Delete] {
        let missing = send(&site, method, &unknown_job(), NEW);
        assert!(is_waiting(&missing), "{method:?}");
        site.views.expire_now();
        let missing = missing.try_recv().unwrap();
        assert_eq!((missing.status, header(&missing, "Retry-After")), (503, Some("1")));
    }
}

/// Also of a write of which this adapter knows nothing: another one sent it, or this one was started again since.
#[test]
fn a_job_is_denied_only_where_all_that_was_appended_is_known() {
    let site = Site::new();
    site.appended.store(640, Ordering::SeqCst);
    let missing = send(&site, Method::Get, &unknown_job(), "");
    assert!(is_waiting(&missing));
    assert_eq!(site.ask(Method::Get, JOBS, "").status, 200);
    put(&site.views, (JOB, [9; 12], ADA), 1, &job("ACME", Status::Pending));
    site.views.arrive(Position(640));
    assert_eq!(missing.try_recv().unwrap().status, 200, "it was there");
}
