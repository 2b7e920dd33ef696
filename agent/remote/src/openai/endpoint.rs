//! The address of a model server.

use reqwest::Url;

use crate::address::{BadAddress, parse_http};
use crate::error::RemoteError;

/// The address of a model server, and its API key.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) url: Url,
    pub(super) key: Option<String>,
}

impl Endpoint {
    /// The server with the base address `base`, such as `http://localhost:8000/v1`.
    ///
    /// # Errors
    /// If `base` is not an HTTP address or contains a password or a query, or the key is empty or not visible ASCII.
    pub fn parse(base: &str, key: Option<String>) -> Result<Endpoint, RemoteError> {
        let mut url = parse_http(base, "http://localhost:8000/v1")
            .map_err(|BadAddress { url, reason }| RemoteError::Endpoint { url, reason })?;
        if url.query().is_some() {
            url.set_query(None);
            let reason =
                "the address must not contain a query, which may hold a key; `--api-key-env` names a key"
                    .to_owned();
            return Err(RemoteError::Endpoint { url: url.into(), reason });
        }
        if key.as_ref().is_some_and(|key| key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            let reason = "the API key is empty or has other than visible ASCII characters".to_owned();
            return Err(RemoteError::Endpoint { url: base.to_owned(), reason });
        }
        url.path_segments_mut()
            .expect("HTTP addresses have paths")
            .pop_if_empty()
            .extend(["chat", "completions"]);
        Ok(Endpoint { url, key })
    }

    /// The address of requests.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }
}

impl std::fmt::Debug for Endpoint {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_to_a_path_below_the_address() {
        let url = |base: &str| Endpoint::parse(base, None).unwrap().url().to_owned();
        assert_eq!(url("http://localhost:8000/v1"), "http://localhost:8000/v1/chat/completions");
        assert_eq!(url("https://example.org/v1/"), "https://example.org/v1/chat/completions");
        assert_eq!(url("http://localhost:1"), "http://localhost:1/chat/completions");
    }

    #[test]
    fn errors_contain_no_secrets() {
        for base in ["", "localhost:8000/v1", "ftp://example.org", "http://"] {
            assert!(Endpoint::parse(base, None).is_err(), "{base}");
        }
        for key in ["", "two words", "line\nbreak", "schlüssel"] {
            let error = Endpoint::parse("http://localhost", Some(key.into())).unwrap_err().to_string();
            assert!(key.is_empty() || !error.contains(key), "{error}");
        }
        let error = Endpoint::parse("http://me:secret@example.org/v1", None).unwrap_err().to_string();
        assert!(error.contains("example.org") && !error.contains("secret"), "{error}");
        let error = Endpoint::parse("http://example.org/v1?key=secret", None).unwrap_err().to_string();
        assert!(error.contains("example.org/v1") && !error.contains("secret"), "{error}");
        let endpoint = Endpoint::parse("http://localhost", Some("secret".into())).unwrap();
        assert!(!format!("{endpoint:?}").contains("secret"));
    }
}
