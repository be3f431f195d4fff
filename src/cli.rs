//! The command line: `bergfs mount`, `bergfs umount` and `bergfs cache`.
//!
//! `mount` goes to the background by running itself again ([`background`]); the daemon reports over a pipe when the
//! mount answers, so the command's exit status tells whether there is one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::storage::{Address, PathMapping};
use crate::text::CsvNull;
use crate::tree::Lineage;

mod background;
mod cache;
mod memory;
mod mount;
mod source;
mod umount;

/// Mounts Apache Iceberg tables as read-only Parquet files.
///
/// Each snapshot, branch and tag of a table is a directory of ordinary Parquet files in which row-level deletes are
/// applied and schema evolution is resolved. Any program that opens files reads the table right.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
// There is one of it.
#[allow(clippy::large_enum_variant)]
enum Command {
    Mount(Box<MountArgs>),
    Umount(UmountArgs),
    Cache(CacheArgs),
}

/// Mount a table, or a directory of tables.
///
/// Returns once the mount answers; the daemon goes on in the background until `bergfs umount MOUNTPOINT`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct MountArgs {
    /// A table's directory, a metadata file (`*.metadata.json`), or a directory that holds tables at any depth, here or
    /// in a store (`s3://`, `gs://`, `abfss://`, `https://`); or a catalog (`rest+https://`, `pyiceberg:NAME`,
    /// `sqlite:///`, `postgresql://`, `glue:`, `thrift://`)
    source: PathBuf,

    /// An existing directory
    mountpoint: PathBuf,

    /// Stay in the foreground, and log to stderr
    #[arg(short, long)]
    foreground: bool,

    /// How long a table's state is taken for current before it is looked at again: `5`, `500ms`, `2s`, `1m`
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    refresh: Duration,

    /// Whether views show `_row_id` and `_last_updated_sequence_number`
    #[arg(long, value_enum, default_value = "auto")]
    lineage: Lineage,

    /// Show the columns `_file`, `_pos`, `_spec_id` and `_partition` too
    #[arg(long)]
    metadata_columns: bool,

    /// What a null is in CSV [default: nothing, where an empty string is `""`]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    csv_null: CsvNull,

    /// Do not list CSV and JSON lines that are estimated longer than this before somebody has asked for their size
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    text_limit: usize,

    /// Show no CSV and no JSON lines
    #[arg(long)]
    no_text: bool,

    /// Read nothing of a table before somebody asks for it
    #[arg(long)]
    no_ahead: bool,

    /// Read files that the table records under OLD from NEW, a directory or a URL (may be repeated)
    #[arg(long, value_name = "OLD=NEW")]
    map_path: Vec<PathMapping>,

    /// Allow files of the table to lie in this directory or under this URL, outside the table's own (may be repeated)
    #[arg(long, value_name = "DIR|URL")]
    allow_path: Vec<Address>,

    /// Let other users look in [always so for root; others need `user_allow_other` in /etc/fuse.conf]
    #[arg(long)]
    allow_other: bool,

    /// Memory for parsed manifests, footers and decoded data: `64M`, `1G` [default: 192M, or less in a small cgroup]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    cache_memory: Option<usize>,

    /// Keep what has been read and made in this directory, for later mounts and for others at the same time
    #[arg(long, value_name = "DIR", env = CACHE_DIR)]
    cache_dir: Option<PathBuf>,

    /// Disk space that `--cache-dir` may take; some of the file system is always left free
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = size, requires = "cache_dir")]
    cache_size: usize,

    /// Write the daemon's log here (without it, see `.bergfs/errors` in the mount)
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,

    /// Log more: what is read (`-v`), and what else is done (`-vv`)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,

    /// A property of the catalog or its stores, by the name Iceberg has for it: `s3.endpoint=http://localhost:9000`
    /// (may be repeated; other users can see a command's arguments: secrets are better off in a file)
    #[arg(short = 'p', long = "property", value_name = "NAME=VALUE", value_parser = source::property)]
    properties: Vec<(String, String)>,

    /// A file of such properties, a `NAME=VALUE` a line (may be repeated)
    #[arg(long = "properties", value_name = "FILE")]
    properties_files: Vec<PathBuf>,

    /// This process is the daemon, started by `mount`.
    #[arg(long, hide = true)]
    daemon: bool,
}

/// Unmount what `bergfs mount` mounted.
#[derive(Args, Debug)]
struct UmountArgs {
    /// The directory it is mounted at
    mountpoint: PathBuf,

    /// Detach it now even if files are open; those go on until they are closed
    #[arg(short, long)]
    lazy: bool,
}

/// Where mounts keep things on disk, and where these are looked for, unless an option says so.
const CACHE_DIR: &str = "BERGFS_CACHE_DIR";

/// Show or clear what mounts keep on disk (`mount --cache-dir`).
#[derive(Args, Debug)]
struct CacheArgs {
    /// The directory that mounts were given
    #[arg(long, value_name = "DIR", env = CACHE_DIR)]
    cache_dir: PathBuf,

    #[command(subcommand)]
    action: CacheAction,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum CacheAction {
    /// How much is kept of what, and how often it was of use
    Show,
    /// Delete it all; mounts that use it go on
    Clear,
}

const EXAMPLES: &str = "\
Examples:
  bergfs mount /warehouse/db/events /mnt/events
  ls /mnt/events/snapshots
  duckdb -c \"from '/mnt/events/current/events.parquet'\"      the table now
  duckdb -c \"from '/mnt/events/tags/eoy/events.parquet'\"     at a tag
  duckdb -c \"from '/mnt/events/at/2024-05-01/events.parquet'\"  at the end of a day (UTC)
  diff /mnt/events/tags/eoy/events.csv /mnt/events/current/events.csv
  readlink -f /mnt/events/current                            which snapshot that is
  cat /mnt/events/.bergfs/errors                             what could not be read, and why
  bergfs umount /mnt/events

A table copied from elsewhere is read where it lies now. Where its data lies apart from it:
  bergfs mount --map-path s3://bucket/data=/local/data TABLE MOUNTPOINT";

/// Runs the command that the arguments ask for: exit status 0 on success, 1 with a message on failure, 2 for wrong
/// usage.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Mount(args) if args.daemon => {
            background::arguments().and_then(|arguments| match Cli::parse_from(arguments).command {
                Command::Mount(args) => mount::run(&MountArgs {
                    daemon: true,
                    ..*args
                }),
                Command::Umount(_) | Command::Cache(_) => {
                    anyhow::bail!("--daemon is not for use by hand")
                }
            })
        }
        Command::Mount(args) => mount::run(&args),
        Command::Umount(args) => umount::run(&args),
        Command::Cache(args) => cache::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("bergfs: {error:#}\n"),
            );
            ExitCode::FAILURE
        }
    }
}

/// A time with its unit (seconds, where it has none).
fn duration(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text
        .strip_suffix(unit)
        .and_then(|number| number.parse().ok())
        .ok_or("a number, then ms, s, m or h")?;
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("the unit is one of ms, s, m and h".to_owned()),
    };
    Ok(Duration::from_millis(number.saturating_mul(milliseconds)))
}

/// A number of bytes, with the unit K, M or G (powers of 1024).
fn size(text: &str) -> Result<usize, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: usize = text
        .strip_suffix(unit)
        .and_then(|number| number.parse().ok())
        .ok_or("a number, then K, M or G")?;
    let bytes = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return Err("the unit is one of K, M and G".to_owned()),
    };
    number
        .checked_mul(bytes)
        .ok_or_else(|| "more than this machine can address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_declared_soundly() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("s").is_err() && duration("5x").is_err() && duration("-5").is_err());
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert!(size("99999999999999999999G").is_err() && size("").is_err());
    }
}
