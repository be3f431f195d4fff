//! Keys that run out, taken anew in time.
//!
//! ```text
//!  taken            margin begins      they run out
//!    ├── handed out ────┼── one request renews ──┼── all wait for new ones
//!                       │   the others go on     │
//! ```
//!
//! A request is never signed with keys that have run out. While they last, whoever gives them may be away: they are used on
//! and asked for again in a while. Keys that a store refuses before their time are [forgotten](Renewable::forget).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;

use super::failed;
use crate::storage::StorageError;
use crate::storage::store::renewable::{BETWEEN_REFUSALS, Renewable};

/// How long before they run out keys are renewed, if they last for long: AWS has new ones by then.
const AHEAD: Duration = Duration::from_secs(300);

/// The pause after a renewal that failed, while the old keys last.
const RETRY: Duration = Duration::from_secs(10);

/// Keys, and when they run out.
pub(super) type Taken = (AwsCredential, Option<SystemTime>);

/// Where keys are asked for.
#[async_trait]
pub(super) trait Source: fmt::Debug + Send + Sync + 'static {
    async fn take(&self) -> Result<Taken, StorageError>;
}

/// Keys by which requests are signed.
pub(super) trait Keys: CredentialProvider<Credential = AwsCredential> + Renewable {}

impl<T: CredentialProvider<Credential = AwsCredential> + Renewable> Keys for T {}

/// The keys of a source, kept while they last.
#[derive(Debug)]
pub(super) struct Fresh<S> {
    source: S,
    state: Mutex<State>,
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    keys: Option<Kept>,
    generation: u64,
    /// Of the last attempt, if it failed, with the reason.
    failed: Option<(Instant, String)>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Kept {
    keys: Arc<AwsCredential>,
    taken: Instant,
    expires: Option<SystemTime>,
    renew: Option<SystemTime>,
}

impl Kept {
    fn new((keys, expires): Taken) -> Self {
        let now = SystemTime::now();
        let renew = expires.map(|expires| {
            let lasts = expires.duration_since(now).unwrap_or_default();
            expires - AHEAD.min(lasts / 4)
        });
        Self {
            keys: Arc::new(keys),
            taken: Instant::now(),
            expires,
            renew,
        }
    }

    fn last(&self) -> bool {
        self.expires
            .is_none_or(|expires| expires > SystemTime::now())
    }

    fn is_due(&self) -> bool {
        self.renew.is_some_and(|renew| renew <= SystemTime::now())
    }
}

impl<S: Source> Fresh<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            state: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys, if there are any that last, and whether somebody should renew them.
    fn kept(&self) -> Option<(Arc<AwsCredential>, bool)> {
        let state = self.state();
        let kept = state.keys.as_ref().filter(|kept| kept.last())?;
        let failed = state.failed.as_ref();
        let rests = failed.is_some_and(|(when, _)| when.elapsed() < RETRY);
        Some((Arc::clone(&kept.keys), kept.is_due() && !rests))
    }

    async fn get(&self) -> Result<Arc<AwsCredential>, StorageError> {
        let asked = Instant::now();
        let _renewing = match self.kept() {
            Some((keys, false)) => return Ok(keys),
            Some((keys, true)) => match self.renewing.try_lock() {
                Ok(renewing) => renewing,
                Err(_) => return Ok(keys),
            },
            None => {
                let renewing = self.renewing.lock().await;
                // Somebody may have been there meanwhile, with or without success.
                if let Some((keys, _)) = self.kept() {
                    return Ok(keys);
                }
                if let Some((when, reason)) = &self.state().failed
                    && *when > asked
                {
                    return Err(StorageError::Property {
                        name: "credentials".to_owned(),
                        reason: reason.clone(),
                    });
                }
                renewing
            }
        };
        let taken = self.source.take().await;
        let error = match taken {
            Ok(taken) => {
                let kept = Kept::new(taken);
                let keys = Arc::clone(&kept.keys);
                let lasts = kept.last();
                let mut state = self.state();
                state.generation += 1;
                state.failed = None;
                state.keys = Some(kept);
                if lasts {
                    return Ok(keys);
                }
                StorageError::Property {
                    name: "credentials".to_owned(),
                    reason: format!("{:?} gave keys that have run out", self.source),
                }
            }
            Err(error) => error,
        };
        self.state().failed = Some((Instant::now(), error.to_string()));
        match self.kept() {
            Some((keys, _)) => {
                tracing::warn!(%error, "keys could not be renewed yet, and are used on");
                Ok(keys)
            }
            None => Err(error),
        }
    }
}

#[async_trait]
impl<S: Source> CredentialProvider for Fresh<S> {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        self.get().await.map_err(failed)
    }
}

impl<S: Source> Renewable for Fresh<S> {
    fn generation(&self) -> u64 {
        self.state().generation
    }

    fn forget(&self, generation: u64) -> bool {
        let mut state = self.state();
        if state.generation != generation {
            return true;
        }
        let just_taken = |kept: &Kept| kept.taken.elapsed() < BETWEEN_REFUSALS;
        if state.keys.as_ref().is_none_or(just_taken) {
            return false;
        }
        state.keys = None;
        true
    }
}

/// Keys that never change.
#[derive(Debug)]
pub(super) struct Fixed(Arc<AwsCredential>);

impl Fixed {
    pub(super) fn new(keys: AwsCredential) -> Self {
        Self(Arc::new(keys))
    }
}

#[async_trait]
impl CredentialProvider for Fixed {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(Arc::clone(&self.0))
    }
}

impl Renewable for Fixed {
    fn generation(&self) -> u64 {
        0
    }

    fn forget(&self, _: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;
    use crate::storage::web;

    /// Gives keys that last an hour, each with its number for its id, unless it is away.
    #[derive(Debug, Default)]
    struct Giver {
        away: AtomicBool,
        asked: AtomicU32,
    }

    #[async_trait]
    impl Source for Giver {
        async fn take(&self) -> Result<Taken, StorageError> {
            let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            if self.away.load(Ordering::Relaxed) {
                return Err(StorageError::Property {
                    name: "keys".to_owned(),
                    reason: "away".to_owned(),
                });
            }
            let keys = AwsCredential {
                key_id: number.to_string(),
                secret_key: "secret".to_owned(),
                token: None,
            };
            Ok((keys, Some(SystemTime::now() + Duration::from_secs(3600))))
        }
    }

    fn id(fresh: &Fresh<Giver>) -> Result<String, String> {
        let keys = web::block_on(fresh.get()).unwrap();
        keys.map(|keys| keys.key_id.clone())
            .map_err(|error| error.to_string())
    }

    fn age(fresh: &Fresh<Giver>, change: impl FnOnce(&mut Kept)) {
        change(fresh.state().keys.as_mut().unwrap());
    }

    #[test]
    fn keys_are_taken_once_and_again_before_they_run_out() {
        let fresh = Fresh::new(Giver::default());
        assert_eq!(id(&fresh).unwrap(), "1");
        assert_eq!(id(&fresh).unwrap(), "1");
        age(&fresh, |kept| kept.renew = Some(SystemTime::UNIX_EPOCH));
        assert_eq!(id(&fresh).unwrap(), "2");
        assert_eq!(id(&fresh).unwrap(), "2");
    }

    #[test]
    fn keys_that_cannot_be_renewed_are_used_while_they_last_and_no_longer() {
        let fresh = Fresh::new(Giver::default());
        assert_eq!(id(&fresh).unwrap(), "1");
        fresh.source.away.store(true, Ordering::Relaxed);
        age(&fresh, |kept| kept.renew = Some(SystemTime::UNIX_EPOCH));
        for _ in 0..3 {
            assert_eq!(id(&fresh).unwrap(), "1");
        }
        // Not for each request.
        assert_eq!(fresh.source.asked.load(Ordering::Relaxed), 2);
        age(&fresh, |kept| kept.expires = Some(SystemTime::UNIX_EPOCH));
        assert!(id(&fresh).unwrap_err().contains("away"));
        fresh.source.away.store(false, Ordering::Relaxed);
        assert_eq!(id(&fresh).unwrap(), "4");
    }

    #[test]
    fn keys_that_are_refused_are_forgotten_once() {
        let fresh = Fresh::new(Giver::default());
        assert_eq!(id(&fresh).unwrap(), "1");
        assert!(!fresh.forget(1), "just taken");
        let earlier = Instant::now().checked_sub(BETWEEN_REFUSALS).unwrap();
        age(&fresh, |kept| kept.taken = earlier);
        assert!(fresh.forget(1));
        assert_eq!(id(&fresh).unwrap(), "2");
        assert!(fresh.forget(1), "there are others already");
        assert_eq!(id(&fresh).unwrap(), "2");
    }
}
