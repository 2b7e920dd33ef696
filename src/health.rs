//! `webshop health`: checks whether a running server is healthy.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use webshop_serve::check_health;

use crate::args::server::positive_seconds;
use crate::output::outln;

/// Printed below the flags.
const EXAMPLES: &str = "Examples:
  webshop health
  webshop health 127.0.0.1:3000 --timeout 1

For supervisors, such as a container's. No token is needed. Exit codes: 0 healthy, 1 not, 2 error.";

/// Flags of `webshop health`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HealthArgs {
    /// Host and port of the server
    #[arg(default_value = "127.0.0.1:8000", value_name = "HOST:PORT")]
    address: String,
    /// Seconds to wait for the connection, and for the response
    #[arg(long, default_value = "5", value_parser = positive_seconds, value_name = "S")]
    timeout: Duration,
}

/// Prints whether the server is healthy.
pub(crate) fn run(args: HealthArgs) -> anyhow::Result<ExitCode> {
    let is_address = args
        .address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok());
    ensure!(is_address, "`{}` is not HOST:PORT, such as `127.0.0.1:8000`", args.address);
    match check_health(&args.address, args.timeout) {
        Ok(()) => {
            outln!("`{}` is healthy", args.address)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            outln!("`{}` is not healthy: {error}", args.address)?;
            Ok(ExitCode::FAILURE)
        }
    }
}
