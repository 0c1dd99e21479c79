//! Which texts are e-mail addresses (facts §13): no more than what the service has always taken.

/// The same as an expression, for who reads of it: as JSON Schema has them, without a flag.
pub(super) const EXPRESSION: &str = concat!(
    r#"^([^<>()\[\]\\.,;:\s@"]+(\.[^<>()\[\]\\.,;:\s@"]+)*|".+")@"#,
    r"(\[[0-9]{1,3}(\.[0-9]{1,3}){3}\]|([a-zA-Z0-9-]+\.)+[a-zA-Z]{2,})$"
);

/// Whether `text` is an address: a local part, `@`, and a name with a dot or four numbers in brackets.
pub(super) fn is_address(text: &str) -> bool {
    // No domain holds an `@`, so the last one divides.
    text.rsplit_once('@').is_some_and(|(local, domain)| is_local(local) && is_domain(domain))
}

/// Runs of plain characters between dots, or anything in quotes.
fn is_local(local: &str) -> bool {
    let quoted = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if let Some(quoted) = quoted {
        let breaks_line = |c| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
        return !quoted.is_empty() && !quoted.contains(breaks_line);
    }
    let is_plain =
        |c: char| !c.is_whitespace() && c != '\u{feff}' && !"<>()[]\\.,;:@\"".contains(c);
    local.split('.').all(|run| !run.is_empty() && run.chars().all(is_plain))
}

fn is_domain(domain: &str) -> bool {
    let bracketed = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(numbers) = bracketed {
        let is_number = |text: &str| {
            (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        return numbers.split('.').count() == 4 && numbers.split('.').all(is_number);
    }
    let Some((labels, last)) = domain.rsplit_once('.') else { return false };
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    labels.split('.').all(is_label)
        && last.len() >= 2
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::{EXPRESSION, is_address};

    /// Whether it is one, by the rule and by its expression.
    fn both(text: &str) -> [bool; 2] {
        let expression = regex::Regex::new(EXPRESSION).unwrap();
        [is_address(text), expression.is_match(text)]
    }

    #[test]
    fn addresses_are_known_from_what_is_none() {
        for address in [
            "a@b.co",
            "ada.lovelace@example.org",
            "a+tag@sub.domain-with-dash.example",
            "\"any thing @ all\"@example.org",
            "ada@[127.0.0.1]",
            "ada@[999.0.0.1]",
            "ä@example.org",
            "-@-.aa",
        ] {
            assert_eq!(both(address), [true; 2], "{address:?}");
        }
        for text in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@example",
            "ada@example.o",
            "ada@.org",
            "ada@example..org",
            "ada@exa_mple.org",
            "ada@example.org.",
            "ada@example.0rg",
            ".ada@example.org",
            "ada.@example.org",
            "a..b@example.org",
            "a b@example.org",
            "a,b@example.org",
            "a@b@example.org",
            "\"\"@example.org",
            "\"a\nb\"@example.org",
            "\"a@example.org",
            "ada@[1.2.3]",
            "ada@[1.2.3.4.5]",
            "ada@[1.2.3.1234]",
            "ada@[1.2.3.]",
            "ada@example.org\n",
            " ada@example.org",
            "ada@exämple.org",
        ] {
            assert_eq!(both(text), [false; 2], "{text:?}");
        }
    }
}
