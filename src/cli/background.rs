//! Going to the background: this program runs itself again as the daemon and waits for its word.
//!
//! The daemon reads its arguments from standard input, separated by NUL, since all users can see a process's own: those
//! hold what may be shown. Its standard output is a pipe to the command that started it. It writes [`READY`] there once the mount
//! answers, and its errors to standard error, another pipe; if the first ends without that word, what stands in the
//! second is why. Both are left behind with the command, so nothing that waits for the command's output waits for the
//! daemon.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// What the daemon says when the mount answers.
const READY: &str = "ready";

/// Starts the daemon with this command's own arguments; returns once its mount answers. Other users see `shown` and the
/// mountpoint.
pub(super) fn start(shown: &str, mountpoint: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(&program);
    super::memory::settle(&mut command);
    let mut daemon = command
        .args(["mount", "--daemon", "--", shown])
        .arg(mountpoint)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if let Some(mut input) = daemon.stdin.take() {
        let arguments: Vec<_> = std::env::args_os().collect();
        // A daemon that has ended already says why.
        let _ = input.write_all(arguments.join(OsStr::new("\0")).as_bytes());
    }
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

/// In the daemon: the arguments of the command that started it, the program's name included.
pub(super) fn arguments() -> anyhow::Result<Vec<OsString>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let arguments = bytes.split(|byte| *byte == 0);
    Ok(arguments
        .map(|argument| OsString::from_vec(argument.to_vec()))
        .collect())
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
