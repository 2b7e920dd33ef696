//! The hosts and origins that requests to `/mcp` may have, against web pages that reach for a server on this machine.

use std::str::FromStr;

use axum::http::uri::Authority;

/// Hosts of this machine. An entry without a port stands for all ports.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Origins of pages of this machine.
const LOCAL_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// Hosts and origins that are allowed beside those of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// What the header `Host` may be.
    pub hosts: Vec<AllowedHost>,
    /// What the header `Origin` may be.
    pub origins: Vec<AllowedOrigin>,
}

/// A host, with a port or for all ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost(String);

/// An origin: scheme, host, and a port, which may be `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin(String);

/// A text that is no host or no origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowedError {
    /// No host.
    #[error("not a host, such as `shop.example` or `shop.example:8000`")]
    Host,
    /// No origin.
    #[error(
        "not an origin, such as `https://app.example`, `http://app.example:8080` or `http://app.example:*`"
    )]
    Origin,
}

impl Allowed {
    /// All hosts, as rmcp takes them.
    pub(super) fn all_hosts(&self) -> Vec<&str> {
        LOCAL_HOSTS.into_iter().chain(self.hosts.iter().map(|host| host.0.as_str())).collect()
    }

    /// All origins, as rmcp takes them.
    pub(super) fn all_origins(&self) -> Vec<&str> {
        LOCAL_ORIGINS.into_iter().chain(self.origins.iter().map(|origin| origin.0.as_str())).collect()
    }
}

/// The host and perhaps the port of an address.
fn authority(text: &str) -> Option<Authority> {
    text.parse().ok().filter(|authority: &Authority| !authority.host().is_empty() && !text.contains('@'))
}

impl FromStr for AllowedHost {
    type Err = AllowedError;

    fn from_str(text: &str) -> Result<AllowedHost, AllowedError> {
        authority(text).map(|_| AllowedHost(text.to_owned())).ok_or(AllowedError::Host)
    }
}

impl FromStr for AllowedOrigin {
    type Err = AllowedError;

    fn from_str(text: &str) -> Result<AllowedOrigin, AllowedError> {
        let (scheme, rest) = text.split_once("://").ok_or(AllowedError::Origin)?;
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(AllowedError::Origin),
        };
        let host = rest.strip_suffix(":*").unwrap_or(rest);
        let authority = authority(host).ok_or(AllowedError::Origin)?;
        match (host == rest, authority.port()) {
            // A browser leaves out the scheme's own port.
            (true, None) => Ok(AllowedOrigin(format!("{text}:{default_port}"))),
            (false, Some(_)) => Err(AllowedError::Origin),
            _ => Ok(AllowedOrigin(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_scheme_and_a_port() {
        let origin = |text: &str| text.parse().map(|AllowedOrigin(text)| text);
        assert_eq!(origin("https://app.example"), Ok("https://app.example:443".into()));
        assert_eq!(origin("http://[::1]"), Ok("http://[::1]:80".into()));
        for same in ["http://app.example:8080", "http://app.example:*", "http://[::1]:*"] {
            assert_eq!(origin(same), Ok(same.into()));
        }
        for wrong in
            ["app.example", "ftp://app.example", "http://", "http://a/b", "http://a:1:*", "http://u@a"]
        {
            assert_eq!(origin(wrong), Err(AllowedError::Origin), "{wrong}");
        }
    }

    #[test]
    fn a_host_may_have_a_port() {
        for host in ["shop.example", "shop.example:8000", "10.0.0.1", "[::1]:80"] {
            assert_eq!(host.parse(), Ok(AllowedHost(host.into())));
        }
        for wrong in ["", "http://shop.example", "shop.example/x", "a b", "u@shop.example"] {
            assert_eq!(wrong.parse::<AllowedHost>(), Err(AllowedError::Host), "{wrong}");
        }
    }
}
