//! Addresses of servers and sites, which appear in results and errors and so must hold no password and no key.

use reqwest::Url;

/// Why a text is no address that can be used.
pub(crate) struct BadAddress {
    /// The text without user, password and query.
    pub(crate) url: String,
    /// The reason.
    pub(crate) reason: String,
}

/// Reads an HTTP address. `example` is named to who writes another one.
///
/// # Errors
/// If it is not an HTTP address, or names a user or a password.
pub(crate) fn parse_http(address: &str, example: &str) -> Result<Url, BadAddress> {
    let refuse = |reason: String| BadAddress { url: without_secrets(address), reason };
    let url = Url::parse(address).map_err(|error| refuse(format!("{error}; an example is `{example}`")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("the address must begin with `http://` or `https://`".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "the address must not contain a password: addresses appear in errors and results";
        return Err(refuse(reason.to_owned()));
    }
    Ok(url)
}

/// The address with `…` in the place of everything between the scheme and the last `@`, and of the query.
fn without_secrets(address: &str) -> String {
    let address = match address.split_once('?') {
        Some((before, _)) => format!("{before}?…"),
        None => address.to_owned(),
    };
    match address.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://…@{rest}"),
        None => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_repeated() {
        for (address, shown) in [
            ("http://me:secret@host/v1", "http://…@host/v1"),
            ("http://me@host", "http://…@host"),
            ("http://me:secret@host:99999/v1", "http://…@host:99999/v1"),
            ("http://me:sec/ret@host", "http://…@host"),
            ("ftp://me:secret@host", "ftp://…@host"),
            ("ftp://host/v1?api_key=secret", "ftp://host/v1?…"),
            ("http://me:secret@host/v1?key=secret", "http://…@host/v1?…"),
        ] {
            let refused =
                parse_http(address, "http://localhost").err().unwrap_or_else(|| panic!("{address}"));
            assert_eq!(refused.url, shown);
            assert!(!refused.reason.contains("secret"), "{}", refused.reason);
        }
        assert_eq!(parse_http("http://host/a@b", "").ok().unwrap().as_str(), "http://host/a@b");
    }
}
