//! Profiles of `~/.aws/config` and `~/.aws/credentials`, read again when those files have changed.
//!
//! A profile has keys, or a program that gives them (`credential_process`), or a role that is taken with the keys of
//! another profile, of the environment, the container or the machine, or with a token in a file. What else it may have
//! (single sign-on, a second factor) is refused by name: such a login cannot be done, and other credentials are not
//! what was asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde::Deserialize;

use super::fresh::{Fixed, Fresh, Keys, Source, Taken};
use super::metadata::{Container, Machine};
use super::sts::{Role, RoleName, WebIdentity, time};
use super::{environment, failed, variable};
use crate::storage::store::renewable::Renewable;
use crate::storage::store::transport::innermost;
use crate::storage::{StorageError, web};

/// For how long a program may think.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a program's answer, and of a file, that are looked at.
const MAX_TEXT: u64 = 1 << 20;

/// Profiles that take their keys from one another. More is a circle.
const MAX_CHAIN: usize = 5;

/// A profile's settings, or those of all.
pub(super) type Settings = BTreeMap<String, String>;

/// Settings that mean a login which cannot be done here.
const REFUSED: [&str; 5] = [
    "sso_session",
    "sso_start_url",
    "sso_account_id",
    "login_session",
    "mfa_serial",
];

/// One profile.
pub(super) struct Profile {
    name: String,
    files: [PathBuf; 2],
    kept: Mutex<Kept>,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("name", &self.name).finish()
    }
}

/// What a state of the files says.
#[derive(Default)]
struct Kept {
    stamps: [Option<(SystemTime, u64)>; 2],
    keys: Option<Arc<dyn Keys>>,
    /// Counts the states.
    states: u64,
}

impl Profile {
    /// The profile that is asked for by name, or by `AWS_PROFILE`, or `default`, where there is one.
    ///
    /// # Errors
    /// A profile that was asked for is in neither file.
    pub(super) fn find(named: Option<&str>) -> Result<Option<Profile>, StorageError> {
        let asked = named
            .map(str::to_owned)
            .or_else(|| variable("AWS_PROFILE"))
            .or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let home = std::env::home_dir().unwrap_or_default().join(".aws");
        let file = |name: &str, default: &str| {
            variable(name).map_or_else(|| home.join(default), PathBuf::from)
        };
        let profile = Profile {
            name: asked.clone().unwrap_or_else(|| "default".to_owned()),
            files: [
                file("AWS_CONFIG_FILE", "config"),
                file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            ],
            kept: Mutex::default(),
        };
        match profile.read_all()?.contains_key(&profile.name) {
            true => Ok(Some(profile)),
            false if asked.is_none() => Ok(None),
            false => Err(profile.wrong("there is no such profile")),
        }
    }

    /// The settings of this profile.
    pub(super) fn settings(&self) -> Result<Settings, StorageError> {
        Ok(self.read_all()?.remove(&self.name).unwrap_or_default())
    }

    /// Whether it says who is asking, rather than settings alone.
    pub(super) fn has_credentials(&self) -> bool {
        let telling = ["aws_access_key_id", "credential_process", "role_arn"];
        self.settings().is_ok_and(|settings| {
            let mut names = telling.iter().chain(&REFUSED);
            names.any(|name| settings.contains_key(*name))
        })
    }

    /// Where its keys come from, as the files have it now.
    fn keys(&self) -> Result<Arc<dyn Keys>, StorageError> {
        let stamps = [stamp(&self.files[0]), stamp(&self.files[1])];
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.stamps == stamps
            && let Some(keys) = &kept.keys
        {
            return Ok(Arc::clone(keys));
        }
        let keys = self.keys_of(&self.read_all()?, &self.name, 0)?;
        *kept = Kept {
            stamps,
            keys: Some(Arc::clone(&keys)),
            states: kept.states + 1,
        };
        Ok(keys)
    }

    /// Where the keys of a profile come from. Asks nobody.
    fn keys_of(
        &self,
        all: &BTreeMap<String, Settings>,
        name: &str,
        depth: usize,
    ) -> Result<Arc<dyn Keys>, StorageError> {
        let settings = all
            .get(name)
            .ok_or_else(|| self.wrong("there is no such profile"))?;
        for refused in REFUSED {
            if settings.contains_key(refused) {
                return Err(self.wrong(&format!("{refused} is not supported")));
            }
        }
        let get = |name: &str| settings.get(name).cloned();
        let Some(arn) = get("role_arn") else {
            return self.own_keys(settings);
        };
        let role = RoleName {
            arn,
            session: get("role_session_name"),
            region: get("region").unwrap_or_else(|| super::ANY_REGION.to_owned()),
        };
        if let Some(file) = get("web_identity_token_file") {
            let token_file = file.into();
            return Ok(Arc::new(Fresh::new(WebIdentity {
                name: role,
                token_file,
            })));
        }
        let base = match (get("source_profile"), get("credential_source")) {
            (Some(_), _) if depth >= MAX_CHAIN => {
                return Err(self.wrong("source_profile goes in a circle"));
            }
            (Some(source), _) if source == name => self.own_keys(settings)?,
            (Some(source), _) => self.keys_of(all, &source, depth + 1)?,
            (None, Some(source)) => self.outside(&source)?,
            (None, None) => {
                let reason =
                    "role_arn without source_profile, credential_source or web_identity_token_file";
                return Err(self.wrong(reason));
            }
        };
        Ok(Arc::new(Fresh::new(Role {
            base,
            name: role,
            external_id: get("external_id"),
        })))
    }

    /// What `credential_source` names.
    fn outside(&self, source: &str) -> Result<Arc<dyn Keys>, StorageError> {
        let none = || self.wrong(&format!("credential_source {source} has no keys"));
        let keys: Arc<dyn Keys> = match source {
            "Environment" => Arc::new(Fixed::new(environment().ok_or_else(none)?)),
            "EcsContainer" => Arc::new(Fresh::new(Container::find()?.ok_or_else(none)?)),
            "Ec2InstanceMetadata" => Arc::new(Fresh::new(Machine::find().ok_or_else(none)?)),
            _ => return Err(self.wrong(&format!("there is no credential_source {source}"))),
        };
        Ok(keys)
    }

    fn own_keys(&self, settings: &Settings) -> Result<Arc<dyn Keys>, StorageError> {
        let get = |name: &str| settings.get(name).cloned();
        if let (Some(key_id), Some(secret_key)) =
            (get("aws_access_key_id"), get("aws_secret_access_key"))
        {
            return Ok(Arc::new(Fixed::new(AwsCredential {
                key_id,
                secret_key,
                token: get("aws_session_token"),
            })));
        }
        let Some(command) = get("credential_process") else {
            return Err(self.wrong("it has no credentials"));
        };
        let profile = self.name.clone();
        Ok(Arc::new(Fresh::new(Program { command, profile })))
    }

    /// The settings of all profiles; those of the second file stand before those of the first.
    fn read_all(&self) -> Result<BTreeMap<String, Settings>, StorageError> {
        let mut all: BTreeMap<String, Settings> = BTreeMap::new();
        for file in &self.files {
            let text = match read(file) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => {
                    return Err(StorageError::Io {
                        path: file.display().to_string(),
                        source,
                    });
                }
            };
            for (name, settings) in sections(&text) {
                all.entry(name).or_default().extend(settings);
            }
        }
        Ok(all)
    }

    fn wrong(&self, reason: &str) -> StorageError {
        wrong(&self.name, reason)
    }
}

fn wrong(profile: &str, reason: &str) -> StorageError {
    StorageError::Property {
        name: format!("AWS profile {profile}"),
        reason: reason.to_owned(),
    }
}

#[async_trait]
impl CredentialProvider for Profile {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let keys = self.keys().map_err(failed)?.get_credential().await;
        keys.map_err(|error| failed(self.wrong(&innermost(&error))))
    }
}

impl Renewable for Profile {
    fn generation(&self) -> u64 {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let own = kept.keys.as_ref().map_or(0, |keys| keys.generation());
        kept.states << 32 | own
    }

    fn forget(&self, generation: u64) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let own = generation & u64::from(u32::MAX);
        kept.states != generation >> 32 || kept.keys.as_ref().is_some_and(|keys| keys.forget(own))
    }
}

/// A program that prints keys, of a profile.
#[derive(Debug)]
struct Program {
    command: String,
    profile: String,
}

#[async_trait]
impl Source for Program {
    async fn take(&self) -> Result<Taken, StorageError> {
        let failed = |reason: &str| wrong(&self.profile, &format!("credential_process{reason}"));
        let command = self.command.clone();
        let answer = web::blocking(move || run(&command));
        let answer = tokio::time::timeout(PROGRAM_PATIENCE, answer).await;
        let answer = answer
            .map_err(|_| failed(" does not end"))?
            .and_then(|answer| answer)
            .map_err(|error| failed(&format!(": {error}")))?;
        /// What the program prints.
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Printed {
            access_key_id: String,
            secret_access_key: String,
            session_token: Option<String>,
            expiration: Option<String>,
        }
        let printed: Printed =
            serde_json::from_slice(&answer).map_err(|_| failed(" printed no credentials"))?;
        let keys = AwsCredential {
            key_id: printed.access_key_id,
            secret_key: printed.secret_access_key,
            token: printed.session_token,
        };
        Ok((keys, printed.expiration.as_deref().and_then(time)))
    }
}

/// The beginning of a file.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?
        .take(MAX_TEXT)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let status = fs::metadata(path).ok()?;
    Some((status.modified().ok()?, status.len()))
}

fn run(program: &str) -> io::Result<Vec<u8>> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", program])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut answer = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(MAX_TEXT).read_to_end(&mut answer)?;
    }
    let status = child.wait()?;
    match status.success() {
        true => Ok(answer),
        false => Err(io::Error::other(format!("ended with {status}"))),
    }
}

/// `[default]`, `[profile NAME]` or `[NAME]`, and the settings below each. What is indented belongs to the setting
/// above it and is passed over.
fn sections(text: &str) -> Vec<(String, Settings)> {
    let mut found: Vec<(String, Settings)> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = trimmed
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            let name = header.trim();
            let name = name.strip_prefix("profile ").unwrap_or(name).trim();
            // `sso-session NAME` and `services NAME` keep their first word and are no profile.
            found.push((name.to_owned(), Settings::new()));
            continue;
        }
        if line.starts_with([' ', '\t']) {
            continue;
        }
        if let (Some((_, settings)), Some((name, value))) =
            (found.last_mut(), trimmed.split_once('='))
        {
            settings.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn profile(name: &str, config: &str, credentials: &str) -> (Profile, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            directory.path().join("config"),
            directory.path().join("credentials"),
        ];
        fs::write(&files[0], config).unwrap();
        fs::write(&files[1], credentials).unwrap();
        let profile = Profile {
            name: name.to_owned(),
            files,
            kept: Mutex::default(),
        };
        (profile, directory)
    }

    fn keys(profile: &Profile) -> object_store::Result<Arc<AwsCredential>> {
        web::block_on(profile.get_credential()).unwrap()
    }

    #[test]
    fn a_profile_is_read_from_both_files() {
        let config = "# c\n[default]\nregion = eu-west-1\n[profile dev]\nregion=us-west-2\ns3 =\n  endpoint_url = no\n";
        let credentials = "[dev]\naws_access_key_id = id=1\naws_secret_access_key = secret\n";
        let (dev, _directory) = profile("dev", config, credentials);
        let settings = dev.settings().unwrap();
        assert_eq!(settings.get("region").unwrap(), "us-west-2");
        assert!(!settings.contains_key("endpoint_url"));
        assert_eq!(keys(&dev).unwrap().key_id, "id=1");
        assert_eq!(keys(&dev).unwrap().secret_key, "secret");
    }

    #[test]
    fn keys_that_were_changed_in_the_file_are_the_new_ones() {
        let (dev, _directory) = profile(
            "dev",
            "",
            "[dev]\naws_access_key_id=a\naws_secret_access_key=s\n",
        );
        assert_eq!(keys(&dev).unwrap().key_id, "a");
        let changed = "[dev]\naws_access_key_id=newer\naws_secret_access_key=s\n";
        fs::write(&dev.files[1], changed).unwrap();
        assert_eq!(keys(&dev).unwrap().key_id, "newer");
    }

    #[test]
    fn a_program_gives_keys_until_they_run_out() {
        let directory = tempfile::tempdir().unwrap();
        let count = directory.path().join("count");
        let script = |expiration: &str| {
            format!(
                "[default]\ncredential_process = echo x >> {}; echo '{{\"Version\":1,\"AccessKeyId\":\"id\",\
                 \"SecretAccessKey\":\"s\",\"SessionToken\":\"t\",\"Expiration\":\"{expiration}\"}}'\n",
                count.display()
            )
        };
        let runs = || fs::read_to_string(&count).unwrap().lines().count();
        let (lasting, _kept) = profile("default", &script("2999-01-01T00:00:00Z"), "");
        for _ in 0..2 {
            assert_eq!(keys(&lasting).unwrap().token.as_deref(), Some("t"));
        }
        assert_eq!(runs(), 1);
        let (over, _kept) = profile("default", &script("2001-01-01T00:00:00Z"), "");
        for _ in 0..2 {
            let error = keys(&over).unwrap_err().to_string();
            assert!(error.contains("have run out"), "{error}");
        }
        assert_eq!(runs(), 3);
        let (failing, _kept) = profile("default", "[default]\ncredential_process = false\n", "");
        assert!(keys(&failing).is_err());
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let (sso, _directory) = profile("p", "[profile p]\nsso_start_url = https://x\n", "");
        let error = keys(&sso).unwrap_err().to_string();
        assert!(
            error.contains("sso_start_url") && error.contains("profile p"),
            "{error}"
        );
        assert!(sso.has_credentials());
        let circle = "[profile a]\nrole_arn=r\nsource_profile=b\n[profile b]\nrole_arn=r\nsource_profile=a\n";
        let (circle, _directory) = profile("a", circle, "");
        assert!(keys(&circle).unwrap_err().to_string().contains("circle"));
    }
}
