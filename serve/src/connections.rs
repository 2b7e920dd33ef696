//! Connections: each is accepted, served by HTTP/1.1, and ends with its client, for silence, or with the server.
//!
//! axum's own loop gives connections no time limits. Here a connection ends if the head of a request does not come
//! within a time from the beginning of the connection, or from the last response. Bodies have a limit of their own,
//! and a connection that becomes a WebSocket has pings.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// The wait after a connection could not be accepted: others may end meanwhile.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);

/// Waits until the server stops.
pub(crate) async fn stops(stopping: &mut watch::Receiver<bool>) {
    // An error would mean that the server is gone already.
    let _ = stopping.wait_for(|stops| *stops).await;
}

/// Accepts connections and serves them until the server stops, and then waits until the last request has its response.
/// The head of a request must come within `header_timeout`.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    header_timeout: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(header_timeout);
    // A copy is kept by every connection.
    let (open, mut all_ended) = mpsc::channel::<Infallible>(1);
    loop {
        let stream = tokio::select! {
            stream = accept(&listener) => stream,
            () = stops(&mut stopping) => break,
        };
        let (http, router) = (http.clone(), router.clone());
        let (stopping, open) = (stopping.clone(), open.clone());
        tokio::spawn(async move {
            let _open = open;
            if let Err(error) = serve_connection(&http, stream, router, stopping).await {
                tracing::debug!("a connection failed: {error}");
            }
        });
    }
    drop((listener, open));
    all_ended.recv().await;
}

/// Serves one connection. When the server stops, the request under way is the last one.
async fn serve_connection(
    http: &http1::Builder,
    stream: TcpStream,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) -> hyper::Result<()> {
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stops(&mut stopping) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// The next connection.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Replies are small and awaited. A connection that refuses the option is only slower.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) if is_of_one_client(&error) => {}
            Err(error) => {
                tracing::error!("no connection is accepted: {error}; `ulimit -n` limits how many there are");
                sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Whether a client ended its connection before it was accepted.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}
