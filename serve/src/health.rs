//! Whether a server at an address is healthy, for supervisors that can run a command and not send a request.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// What a healthy server's response to `/health` begins with.
const HEALTHY: &[u8] = b"HTTP/1.1 200 ";

/// Asks the server at `address`, a host with a port, for its health; `timeout` is the longest wait for a connection to
/// each address of the host, and for the response, and above 0.
///
/// # Errors
/// If nothing listens there, or what does is not healthy within that time.
pub fn check_health(address: &str, timeout: Duration) -> io::Result<()> {
    let mut connected = Err(io::Error::other("the host has no address"));
    for address in address.to_socket_addrs()? {
        connected = TcpStream::connect_timeout(&address, timeout);
        if connected.is_ok() {
            break;
        }
    }
    let mut stream = connected?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut begin = [0; HEALTHY.len()];
    stream.read_exact(&mut begin)?;
    match begin == HEALTHY {
        true => Ok(()),
        false => Err(io::Error::other(format!("it responds with `{}`", begin.escape_ascii()))),
    }
}
