//! Fetching pages.
//!
//! A [`Client`] asks for what a [`Link`] stands for and goes where it is redirected; [`Fetched`] is the page and the
//! address it was found at, to which its own links are relative. Neither terminates the host that was asked first: what
//! stands in a page is the site's word, and no reason to send requests elsewhere.
//!
//! No cookies, no cache, no proxies: the original keeps all it knows of an episode in its addresses. Every request has a
//! connection of its own, as one that is kept may be closed by the site when it is about to be used.

use crate::error::RemoteError;
use std::time::Duration;

use reqwest::{RequestBuilder, Response, Url, redirect};
use webshop_env::{ForeignPage, Link, Method, read_html};

use crate::connection::{cause, is_refused};

/// How often a request may be redirected. The original does so once, after a search.
const MAX_REDIRECTS: usize = 10;

/// The most bytes of a document. The original's pages hold some tens of thousands.
const MAX_BYTES: usize = 4 << 20;

/// How long a connection may take, of which little is a server's own time.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// A page of a shop.
pub(super) struct Fetched {
    /// Where it was found.
    pub url: Url,
    /// What it shows.
    pub page: ForeignPage,
}

/// Who asks for pages.
pub(super) struct Client {
    http: reqwest::Client,
    patience: Duration,
}

impl Client {
    /// A client that waits so long for a page.
    pub fn new(patience: Duration) -> Result<Client, String> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("webshop/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::custom(follow_redirect))
            .timeout(patience)
            .connect_timeout(CONNECT_PATIENCE)
            .pool_max_idle_per_host(0)
            .no_proxy()
            .build()
            .map_err(|error| cause(&error))?;
        Ok(Client { http, patience })
    }

    /// Fetches the page at `url`.
    pub async fn open(&self, url: &Url) -> Result<Fetched, RemoteError> {
        self.fetch(url, self.http.get(url.clone())).await
    }

    /// Follows a link that stands on the page `from`.
    pub async fn follow(&self, from: &Fetched, link: &Link) -> Result<Fetched, RemoteError> {
        let mut url = match from.url.join(&link.address) {
            Ok(url) if is_same_host(&url, &from.url) => url,
            _ => {
                return Err(fault(
                    &from.url,
                    format!("its link `{}` leads away from the site", link.address),
                ));
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
                "no page of a WebShop, as it shows neither instruction nor score".into(),
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

    /// Why there is no answer.
    fn failure(&self, url: &Url, error: &reqwest::Error) -> RemoteError {
        if error.is_redirect() {
            return fault(url, cause(error));
        }
        let reason = match (error.is_connect(), error.is_timeout()) {
            (true, true) => format!("no connection within {} s", CONNECT_PATIENCE.as_secs_f64()),
            _ if is_refused(error) => format!("{}; is the site running", cause(error)),
            (false, true) => format!("no answer within {} s", self.patience.as_secs_f64()),
            _ => cause(error),
        };
        RemoteError::Unreachable { url: url.to_string(), reason }
    }
}

fn follow_redirect(attempt: redirect::Attempt) -> redirect::Action {
    let asked = &attempt.previous()[0];
    if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error(format!("redirected more than {MAX_REDIRECTS} times"))
    } else if !is_same_host(attempt.url(), asked) {
        let told = format!("redirected away from the site, to `{}`", attempt.url());
        attempt.error(told)
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
