//! The address of a web site.

use reqwest::Url;

use crate::address::{BadAddress, parse_http};
use crate::error::RemoteError;

/// The address of a WebShop web site. Its sessions are `fixed_0`, `fixed_1` and so on, whose numbers the
/// original takes for those of goals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    root: Url,
}

impl Site {
    /// The site at `address`, such as `http://localhost:3000`.
    ///
    /// # Errors
    /// If that is not an HTTP address, or names a user or a password.
    pub fn parse(address: &str) -> Result<Site, RemoteError> {
        let mut root = parse_http(address, "http://localhost:3000")
            .map_err(|BadAddress { url, reason }| RemoteError::Site { url, reason })?;
        root.set_query(None);
        root.set_fragment(None);
        Ok(Site { root })
    }

    /// The address without query and fragment.
    pub fn url(&self) -> &str {
        self.root.as_str()
    }

    /// The first page of a session.
    pub(super) fn session(&self, number: usize) -> Url {
        let mut url = self.root.clone();
        let mut path = url.path_segments_mut().expect("HTTP addresses have paths");
        path.pop_if_empty().push(&format!("fixed_{number}"));
        drop(path);
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_session(address: &str) -> String {
        Site::parse(address).unwrap().session(0).to_string()
    }

    #[test]
    fn sessions_are_below_the_address() {
        assert_eq!(first_session("http://localhost:3000"), "http://localhost:3000/fixed_0");
        assert_eq!(first_session("https://example.org/shop/?a=b#c"), "https://example.org/shop/fixed_0");
    }

    #[test]
    fn other_addresses_are_errors() {
        for address in [
            "",
            "localhost",
            "localhost:3000",
            "http://",
            "ftp://example.org",
            "file:///etc",
            "http://me@shop",
        ] {
            assert!(Site::parse(address).is_err(), "{address}");
        }
    }
}
