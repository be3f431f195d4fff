//! The `bergfs` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    bergfs::cli::main()
}
