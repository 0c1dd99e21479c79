//! Bodies and what is told about them, rule by rule.

use super::*;

fn new_job(body: &str) -> Result<Wanted, String> {
    Wanted::read_new(body.as_bytes()).map_err(told)
}

fn registration(body: &str) -> Result<[String; 3], String> {
    let read = Registration::read(body.as_bytes());
    read.map(|read| [read.name, read.email, read.password]).map_err(told)
}

fn told(refusal: Refusal) -> String {
    match refusal {
        Refusal::Invalid(what) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_in_order_is_read() {
    let wanted = new_job(r#"{"company":" ","position":"clerk","createdBy":"5","x":[1]}"#).unwrap();
    assert_eq!((&*wanted.company, &*wanted.position, wanted.status), (" ", "clerk", None));
    let wanted = new_job(r#"{"company":"a","company":"b","position":5,"status":"declined"}"#);
    let wanted = wanted.unwrap();
    assert_eq!((&*wanted.company, &*wanted.position), ("b", "5"));
    assert_eq!(wanted.status, Some(Status::Declined));
    let [name, email, password] =
        registration(r#"{"name":"Ada","email":"a@b.co","password":123456}"#).unwrap();
    assert_eq!([&*name, &*email, &*password], ["Ada", "a@b.co", "123456"]);
}

#[test]
fn faults_are_told_in_the_known_order() {
    let long = "x".repeat(101);
    for (body, expected) in [
        ("", "Please provide position,Please provide company name"),
        ("{}", "Please provide position,Please provide company name"),
        ("[]", "Please provide position,Please provide company name"),
        (r#"{"company":"","position":""}"#, "Please provide company name,Please provide position"),
        (r#"{"company":null,"position":"p"}"#, "Please provide company name"),
        (r#"{"company":"c"}"#, "Please provide position"),
        (
            r#"{"company":{},"position":"p"}"#,
            "Cast to string failed for value of type Object at path \"company\"",
        ),
        (
            r#"{"company":["c"],"status":"open"}"#,
            "Cast to string failed for value of type Array at path \"company\",\
             Please provide position,`open` is not a valid enum value for path `status`.",
        ),
        (
            r#"{"company":"c","position":"p","status":null}"#,
            "`null` is not a valid enum value for path `status`.",
        ),
        ("5", "expected a JSON object"),
        ("\"text\"", "expected a JSON object"),
    ] {
        assert_eq!(new_job(body).unwrap_err(), expected, "{body}");
    }
    let both = format!(r#"{{"company":"{}","position":"{long}"}}"#, &long[..51]);
    assert_eq!(
        new_job(&both).unwrap_err(),
        format!(
            "Path `company` (`{}`) is longer than the maximum allowed length (50).,\
             Path `position` (`{long}`) is longer than the maximum allowed length (100).",
            &long[..51]
        )
    );
    for (body, expected) in [
        ("{}", "Please provide password,Please provide email,Please provide name"),
        (
            r#"{"name":"ab","email":"ab","password":"12345"}"#,
            "Path `name` (`ab`) is shorter than the minimum allowed length (3).,\
             Please provide a valid email,\
             Path `password` is shorter than the minimum allowed length (6).",
        ),
        (r#"{"email":"","name":"Ada"}"#, "Please provide password,Please provide email"),
    ] {
        assert_eq!(registration(body).unwrap_err(), expected, "{body}");
    }
}

#[test]
fn lengths_count_utf_16_units_and_both_ends_belong() {
    let job = |company: &str| new_job(&format!(r#"{{"company":"{company}","position":"p"}}"#));
    for (text, fits) in [
        ("ä".repeat(50), true),
        ("ä".repeat(51), false),
        ("\u{1f600}".repeat(25), true),
        ("\u{1f600}".repeat(26), false),
    ] {
        assert_eq!(job(&text).is_ok(), fits, "{text}");
    }
    let user = |name: &str, password: &str| {
        registration(&format!(r#"{{"name":"{name}","email":"a@b.co","password":"{password}"}}"#))
    };
    assert!(user("Ada", "123456").is_ok() && user(&"n".repeat(50), &"p".repeat(90_000)).is_ok());
    assert!(user("Al", "123456").is_err() && user("Ada", "12345").is_err());
    assert!(user(&"n".repeat(51), "123456").is_err());
    let mail = |length: usize| {
        let email = format!("{}@b.co", "a".repeat(length - 5));
        registration(&format!(r#"{{"name":"Ada","email":"{email}","password":"123456"}}"#))
    };
    assert!(mail(254).is_ok() && mail(255).is_err());
}

#[test]
fn a_message_about_a_body_never_holds_its_password() {
    for body in [
        r#"{"name":"Ada","email":"a@b.co","password":"hush!"}"#,
        r#"{"name":"Ada","email":"a@b.co","password":["hush!"]}"#,
        r#"{"name":"Ada","email":"a@b.co","password":{"hush!":"hush!"}}"#,
        r#"{"name":"Ada","email":"a@b.co","password":"hush!"#,
        r#"{"name":"Ada","email":"a@b.co","password":hush!}"#,
        r#"{"name":"Ada","email":"a@b.co","password":"hush!\x"}"#,
        r#"{"name":"Ada","email":"a@b.co","password":"hush!\ud800"}"#,
    ] {
        let what = registration(body).unwrap_err();
        assert!(!what.contains("hush"), "{what}");
    }
}

#[test]
fn a_change_tells_empty_fields_first_and_keeps_the_other_rules() {
    let change = |body: &str| {
        let change = Wanted::read_change(body.as_bytes()).map_err(told)?;
        change.wanted().map_err(told)
    };
    let empty = "Company or Position fields cannot be empty";
    assert_eq!(change(r#"{"company":"","status":5}"#).unwrap_err(), empty);
    assert_eq!(change(r#"{"position":""}"#).unwrap_err(), empty);
    assert_eq!(change("{}").unwrap_err(), "Please provide position,Please provide company name");
    assert_eq!(
        change(r#"{"company":null,"position":"p"}"#).unwrap_err(),
        "Please provide company name"
    );
    assert!(change(r#"{"company":"c","position":"p","status":"interview"}"#).is_ok());
}

#[test]
fn a_login_needs_both_texts() {
    let read = |body: &str| Login::read(body.as_bytes()).map_err(told);
    assert!(read(r#"{"email":"a","password":5}"#).is_ok());
    for body in [
        "{}",
        r#"{"email":"a@b.co"}"#,
        r#"{"password":"123456"}"#,
        r#"{"email":"","password":"123456"}"#,
        r#"{"email":{"$gt":""},"password":"123456"}"#,
        r#"{"email":"a@b.co","password":null}"#,
    ] {
        let what = read(body).err();
        assert_eq!(what.as_deref(), Some("Please provide email and password"), "{body}");
    }
}

#[test]
fn numbers_become_the_texts_that_a_script_would_make_of_them() {
    for (json, text) in [
        ("5", "5"),
        ("-5", "-5"),
        ("5.0", "5"),
        ("0.1", "0.1"),
        ("-0.0", "0"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1.5e300", "1.5e+300"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("9007199254740993", "9007199254740992"),
    ] {
        let number = serde_json::from_str(json).unwrap();
        assert_eq!(number_text(&number), text, "{json}");
    }
}
