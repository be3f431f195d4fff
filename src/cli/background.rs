//! Going to the background: this program runs itself again as the daemon and waits for its word.
//!
//! The daemon's standard output is a pipe to the command that started it. It writes [`READY`] there once the mount
//! answers, and its errors to standard error, another pipe; if the first ends without that word, what stands in the
//! second is why. Both are left behind with the command, so nothing that waits for the command's output waits for the
//! daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// What the daemon says when the mount answers.
const READY: &str = "ready";

/// Starts the daemon with this command's own arguments; returns once its mount answers.
pub(super) fn start() -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(&program);
    super::memory::settle(&mut command);
    let mut daemon = command
        .args(std::env::args_os().skip(1))
        .arg("--daemon")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut line = String::new();
    if let Some(output) = daemon.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line.trim_end() == READY {
        return Ok(());
    }
    let mut reason = String::new();
    if let Some(mut errors) = daemon.stderr.take() {
        errors.read_to_string(&mut reason)?;
    }
    let status = daemon.wait()?;
    match reason.trim().trim_start_matches("bergfs: ") {
        "" => bail!("the daemon ended without a word ({status})"),
        reason => bail!("{reason}"),
    }
}

/// In the daemon: leaves the terminal's session and the working directory, which it must not keep busy.
pub(super) fn detach() -> anyhow::Result<()> {
    rustix::process::setsid().context("cannot begin a session of its own")?;
    std::env::set_current_dir("/").context("cannot leave the working directory")
}

/// In the daemon: says that the mount answers.
pub(super) fn report_ready() {
    // Whoever started it may be gone; the mount is there all the same.
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{READY}").and_then(|()| output.flush());
}
