//! Profiles of `~/.aws/config` and `~/.aws/credentials`, read again when those files have changed.
//!
//! A profile has keys, or a program that gives them (`credential_process`), or a role that is taken with the keys of
//! another profile. What else it may have (single sign-on, a second factor) is refused by name: such a login cannot be
//! done, and other credentials are not what was asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::role::{Role, time};
use super::{Keys, variable};
use crate::storage::{StorageError, web};

/// How long before they run out keys are asked for anew.
const AHEAD: Duration = Duration::from_secs(300);

/// For how long a program may think.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a program's answer, and of a file, that are looked at.
const MAX_TEXT: u64 = 1 << 20;

/// Profiles that take their keys from one another. More is a circle.
const MAX_CHAIN: usize = 5;

/// A profile's settings, or those of all.
pub(super) type Settings = BTreeMap<String, String>;

/// Settings that mean a login which cannot be done here.
const REFUSED: [&str; 6] = [
    "sso_session",
    "sso_start_url",
    "sso_account_id",
    "login_session",
    "mfa_serial",
    "credential_source",
];

/// One profile.
pub(super) struct Profile {
    name: String,
    files: [PathBuf; 2],
    kept: Mutex<Option<Kept>>,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("name", &self.name).finish()
    }
}

struct Kept {
    stamps: [Option<(SystemTime, u64)>; 2],
    keys: Arc<AwsCredential>,
    expires: Option<SystemTime>,
    /// A role's keys are kept by the role.
    role: Option<Role>,
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
            kept: Mutex::new(None),
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

    /// Its keys now.
    pub(super) async fn credential(&self) -> Result<Arc<AwsCredential>, StorageError> {
        let mut kept = self.kept.lock().await;
        let stamps = [stamp(&self.files[0]), stamp(&self.files[1])];
        if let Some(kept) = &*kept
            && kept.stamps == stamps
        {
            if let Some(role) = &kept.role {
                let keys = role.get_credential().await;
                return keys.map_err(|error| self.wrong(&error.to_string()));
            }
            let lasts = |expires: SystemTime| expires > SystemTime::now() + AHEAD;
            if kept.expires.is_none_or(lasts) {
                return Ok(Arc::clone(&kept.keys));
            }
        }
        let all = self.read_all()?;
        let (role, keys, expires) = match self.role(&all, &self.name, 0).await? {
            Ok(role) => {
                let keys = role.get_credential().await;
                let keys = keys.map_err(|error| self.wrong(&error.to_string()))?;
                (Some(role), keys, None)
            }
            Err((keys, expires)) => (None, Arc::new(keys), expires),
        };
        *kept = Some(Kept {
            stamps,
            keys: Arc::clone(&keys),
            expires,
            role,
        });
        Ok(keys)
    }

    /// A profile's role, or its own keys with the time when they run out.
    async fn role(
        &self,
        all: &BTreeMap<String, Settings>,
        name: &str,
        depth: usize,
    ) -> Result<Result<Role, (AwsCredential, Option<SystemTime>)>, StorageError> {
        let settings = all
            .get(name)
            .ok_or_else(|| self.wrong("there is no such profile"))?;
        for refused in REFUSED {
            if settings.contains_key(refused) {
                return Err(self.wrong(&format!("{refused} is not supported")));
            }
        }
        let Some(arn) = settings.get("role_arn") else {
            return Ok(Err(self.own_keys(settings).await?));
        };
        let Some(source) = settings.get("source_profile") else {
            let reason = "role_arn without source_profile is not supported";
            return Err(self.wrong(reason));
        };
        if depth >= MAX_CHAIN {
            return Err(self.wrong("source_profile goes in a circle"));
        }
        let base: Arc<dyn CredentialProvider<Credential = AwsCredential>> = if source == name {
            Arc::new(Keys::Fixed(Arc::new(self.own_keys(settings).await?.0)))
        } else {
            match Box::pin(self.role(all, source, depth + 1)).await? {
                Ok(role) => Arc::new(role),
                // Read anew each time it is needed: its keys may run out sooner than the role's.
                Err(_) => Arc::new(Keys::Profile(Arc::new(Profile {
                    name: source.clone(),
                    files: self.files.clone(),
                    kept: Mutex::new(None),
                }))),
            }
        };
        let get = |name: &str| settings.get(name).map(String::as_str);
        Ok(Ok(Role::new(
            base,
            arn,
            get("role_session_name"),
            get("external_id"),
            get("region").unwrap_or(super::ANY_REGION),
        )))
    }

    async fn own_keys(
        &self,
        settings: &Settings,
    ) -> Result<(AwsCredential, Option<SystemTime>), StorageError> {
        let get = |name: &str| settings.get(name).cloned();
        if let (Some(key_id), Some(secret_key)) =
            (get("aws_access_key_id"), get("aws_secret_access_key"))
        {
            let token = get("aws_session_token");
            let keys = AwsCredential {
                key_id,
                secret_key,
                token,
            };
            return Ok((keys, None));
        }
        let Some(program) = get("credential_process") else {
            return Err(self.wrong("it has no credentials"));
        };
        let answer = web::blocking(move || run(&program));
        let answer = tokio::time::timeout(PROGRAM_PATIENCE, answer).await;
        let answer = answer
            .map_err(|_| self.wrong("credential_process does not end"))?
            .and_then(|answer| answer)
            .map_err(|error| self.wrong(&format!("credential_process: {error}")))?;
        /// What the program prints.
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Printed {
            access_key_id: String,
            secret_access_key: String,
            session_token: Option<String>,
            expiration: Option<String>,
        }
        let printed: Printed = serde_json::from_slice(&answer)
            .map_err(|_| self.wrong("credential_process printed no credentials"))?;
        let keys = AwsCredential {
            key_id: printed.access_key_id,
            secret_key: printed.secret_access_key,
            token: printed.session_token,
        };
        Ok((keys, printed.expiration.as_deref().and_then(time)))
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
        StorageError::Property {
            name: format!("AWS profile {}", self.name),
            reason: reason.to_owned(),
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
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
            kept: Mutex::new(None),
        };
        (profile, directory)
    }

    fn keys(profile: &Profile) -> Result<Arc<AwsCredential>, StorageError> {
        web::block_on(profile.credential()).unwrap()
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
        keys(&over).unwrap();
        keys(&over).unwrap();
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
