//! `bergfs umount`.

use std::io;

use anyhow::{Context, bail};

use crate::fs::{self, MountTable};

use super::UmountArgs;

pub(super) fn run(args: &UmountArgs) -> anyhow::Result<()> {
    let name = args.mountpoint.display();
    let mountpoint = fs::resolve(&args.mountpoint).with_context(|| name.to_string())?;
    match MountTable::read()?.top(&mountpoint) {
        None => bail!("{name}: nothing is mounted here"),
        Some(mount) if !mount.is_bergfs() => {
            bail!("{name}: mounted by something else ({})", mount.file_system)
        }
        Some(_) => {}
    }
    fs::unmount(&mountpoint, args.lazy).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => anyhow::anyhow!(
            "{name}: busy: a program has a file open or works in it (`fuser -vm {name}` tells which; --lazy detaches \
             it all the same)"
        ),
        _ => anyhow::Error::new(error).context(format!("{name}: cannot unmount")),
    })
}
