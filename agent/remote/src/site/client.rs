//! Fetching pages.
//!
//! A [`Client`] follows links and redirects. [`Fetched`] is a page with its address, to which its links are
//! relative. Requests never leave the host of the first one: pages are not trusted to send requests
//! elsewhere. There are no cookies, caches or proxies: the original keeps the state of a session in its
//! addresses. Each request has its own connection, because the site may close an idle one at any time.

use std::time::Duration;

use reqwest::{RequestBuilder, Response, Url, redirect};
use webshop_env::{ForeignPage, Link, Method, read_html};

use crate::connection::{is_refused, root_cause};
use crate::error::RemoteError;

/// The maximum redirects of a request. The original redirects once, after a search.
const MAX_REDIRECTS: usize = 10;

/// The maximum size of a document in bytes. The original's pages have tens of kilobytes.
const MAX_BYTES: usize = 4 << 20;

/// The maximum duration of connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A page and its address.
pub(super) struct Fetched {
    /// The address after redirects.
    pub(super) url: Url,
    /// The page.
    pub(super) page: ForeignPage,
}

/// An HTTP client for pages.
pub(super) struct Client {
    http: reqwest::Client,
    timeout: Duration,
}

impl Client {
    /// A client with this timeout per request.
    pub(super) fn new(timeout: Duration) -> Result<Client, String> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("webshop/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::custom(follow_redirect))
            .timeout(timeout)
            .connect_timeout(CONNECT_LIMIT)
            .pool_max_idle_per_host(0)
            .no_proxy()
            .build()
            .map_err(|error| root_cause(&error))?;
        Ok(Client { http, timeout })
    }

    /// Fetches the page at `url`.
    pub(super) async fn open(&self, url: &Url) -> Result<Fetched, RemoteError> {
        self.fetch(url, self.http.get(url.clone())).await
    }

    /// Follows a link of the page `from`.
    pub(super) async fn follow(&self, from: &Fetched, link: &Link) -> Result<Fetched, RemoteError> {
        let mut url = match from.url.join(&link.address) {
            Ok(url) if is_same_host(&url, &from.url) => url,
            _ => {
                return Err(fault(&from.url, format!("its link `{}` leads to another host", link.address)));
            }
        };
        let request = match link.method {
            Method::Get => self.http.get(url.clone()),
            Method::GetForm => {
                url.query_pairs_mut().clear().extend_pairs(&link.fields);
                self.http.get(url.clone())
            }
            Method::PostForm => self.http.post(url.clone()).form(&link.fields),
        };
        self.fetch(&url, request).await
    }

    async fn fetch(&self, url: &Url, request: RequestBuilder) -> Result<Fetched, RemoteError> {
        let response = request.send().await.map_err(|error| self.failure(url, &error))?;
        let (found_at, status) = (response.url().clone(), response.status());
        if !status.is_success() {
            return Err(fault(&found_at, format!("HTTP status {status}")));
        }
        let page = read_html(&self.document(response).await?);
        if page.instruction().is_none() && page.score().is_none() {
            return Err(fault(
                &found_at,
                "the page has neither an instruction nor a score, so it is not a page of WebShop".into(),
            ));
        }
        Ok(Fetched { url: found_at, page })
    }

    async fn document(&self, mut response: Response) -> Result<String, RemoteError> {
        let url = response.url().clone();
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failure(&url, &error))? {
            document.extend_from_slice(&chunk);
            if document.len() > MAX_BYTES {
                return Err(fault(&url, format!("a document of more than {MAX_BYTES} bytes")));
            }
        }
        Ok(String::from_utf8_lossy(&document).into_owned())
    }

    /// The error of a request without a complete reply.
    fn failure(&self, url: &Url, error: &reqwest::Error) -> RemoteError {
        if error.is_redirect() {
            return fault(url, root_cause(error));
        }
        let reason = match (error.is_connect(), error.is_timeout()) {
            (true, true) => format!("no connection within {} s", CONNECT_LIMIT.as_secs_f64()),
            _ if is_refused(error) => format!("{}; check that the site is running", root_cause(error)),
            (false, true) => format!("no reply within {} s", self.timeout.as_secs_f64()),
            _ => root_cause(error),
        };
        RemoteError::Unreachable { url: url.to_string(), reason }
    }
}

fn follow_redirect(attempt: redirect::Attempt) -> redirect::Action {
    let first = &attempt.previous()[0];
    if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error(format!("redirected more than {MAX_REDIRECTS} times"))
    } else if !is_same_host(attempt.url(), first) {
        let message = format!("redirected to another host, `{}`", attempt.url());
        attempt.error(message)
    } else {
        attempt.follow()
    }
}

fn is_same_host(one: &Url, other: &Url) -> bool {
    one.has_host() && one.host() == other.host()
}

fn fault(url: &Url, reason: String) -> RemoteError {
    RemoteError::Site { url: url.to_string(), reason }
}
