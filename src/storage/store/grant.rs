//! The properties that hold for one store now: the table's, and over them those that the catalog granted for the
//! longest prefix, renewed before they run out and after the store has refused them. Where nothing is granted the store's
//! own keys may be renewed after a refusal.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Mutex;

use super::renewable::Renewable;
use crate::storage::{PrefixedProperties, Properties, StorageError, StoreAccess, web};

/// How long before it runs out a grant is renewed. Catalogs grant some minutes at least.
const AHEAD: Duration = Duration::from_secs(60);

/// A store that refuses for good does not make the catalog grant again and again.
const BETWEEN_RENEWALS: Duration = Duration::from_secs(1);

/// Names of properties that say when a grant runs out, in milliseconds since 1970; an account may follow.
const EXPIRY: [&str; 3] = [
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "adls.sas-token-expires-at-ms",
];

/// The properties of one store, kept current.
#[derive(Debug)]
pub(super) struct Grant {
    access: Arc<StoreAccess>,
    /// Of the store, as catalogs spell it; prefixes are matched with it.
    urls: Vec<String>,
    state: Mutex<State>,
    /// The keys that the store is asked with; they may be made with what is granted.
    own: OnceLock<Weak<dyn Renewable>>,
}

#[derive(Debug)]
struct State {
    properties: Properties,
    expires: Option<SystemTime>,
    /// Counts renewals.
    generation: u64,
    renewed: Option<Instant>,
}

/// Which of the grants and keys that there have been.
#[derive(Clone, Copy, Debug)]
pub(super) struct Generation {
    granted: u64,
    own: u64,
}

impl Grant {
    /// `urls`: the table's place in the store, in the spellings that catalogs have for it.
    pub(super) fn new(access: &Arc<StoreAccess>, urls: Vec<String>) -> Self {
        let properties = effective(&access.properties, &access.credentials, &urls);
        Self {
            access: Arc::clone(access),
            urls,
            state: Mutex::new(State {
                expires: expiry(&properties),
                properties,
                generation: 0,
                renewed: None,
            }),
            own: OnceLock::new(),
        }
    }

    /// Tells the keys that the store is asked with.
    pub(super) fn set_own(&self, own: &Arc<dyn Renewable>) {
        // A store has one kind of keys.
        let _ = self.own.set(Arc::downgrade(own));
    }

    /// Whether the catalog grants anew.
    pub(super) fn is_renewable(&self) -> bool {
        self.access.renewal.is_some()
    }

    /// Those that hold now; renewed where they are about to run out.
    pub(super) async fn current(&self) -> Result<Properties, StorageError> {
        let mut state = self.state.lock().await;
        let due = state
            .expires
            .is_some_and(|expires| expires < SystemTime::now() + AHEAD);
        if due && self.is_renewable() && !state.renewed_just_now() {
            let renewed = self.renew(&mut state).await;
            let over = state
                .expires
                .is_some_and(|expires| expires < SystemTime::now());
            if let Err(error) = renewed {
                if over {
                    return Err(error);
                }
                tracing::warn!(%error, "credentials could not be renewed yet");
            }
        }
        Ok(state.properties.clone())
    }

    fn own(&self) -> Option<Arc<dyn Renewable>> {
        self.own.get()?.upgrade()
    }

    /// Tells the state of the grant, and of the store's own keys, that a request was made under.
    pub(super) async fn generation(&self) -> Generation {
        let own = self.own().map_or(0, |own| own.generation());
        let granted = self.state.lock().await.generation;
        Generation { granted, own }
    }

    /// After the store has refused what was asked under `generation`: whether another attempt is worth it.
    pub(super) async fn refused(&self, generation: Generation) -> bool {
        let mut state = self.state.lock().await;
        if state.generation != generation.granted {
            return true;
        }
        if let Some(own) = self.own()
            && own.forget(generation.own)
        {
            return true;
        }
        if !self.is_renewable() || state.renewed_just_now() {
            return false;
        }
        match self.renew(&mut state).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "refused credentials could not be renewed");
                false
            }
        }
    }

    async fn renew(&self, state: &mut State) -> Result<(), StorageError> {
        let Some(renewal) = self.access.renewal.clone() else {
            return Ok(());
        };
        state.renewed = Some(Instant::now());
        let granted = web::blocking(move || renewal.renew()).await;
        let granted = granted.map_err(|source| StorageError::Io {
            path: "the catalog's credentials".to_owned(),
            source,
        })??;
        state.properties = effective(&self.access.properties, &granted, &self.urls);
        state.expires = expiry(&state.properties);
        state.generation += 1;
        tracing::debug!(generation = state.generation, "credentials renewed");
        Ok(())
    }
}

impl State {
    fn renewed_just_now(&self) -> bool {
        self.renewed
            .is_some_and(|renewed| renewed.elapsed() < BETWEEN_RENEWALS)
    }
}

/// The table's properties under those of the longest prefix that fits.
pub(super) fn effective(
    base: &Properties,
    granted: &[PrefixedProperties],
    urls: &[String],
) -> Properties {
    let fitting = granted.iter().filter(|grant| {
        urls.iter()
            .any(|url| url.starts_with(grant.prefix.as_str()))
    });
    let mut properties = base.clone();
    if let Some(longest) = fitting.max_by_key(|grant| grant.prefix.len()) {
        let own = longest.properties.0.iter();
        properties
            .0
            .extend(own.map(|(name, value)| (name.clone(), value.clone())));
    }
    properties
}

fn expiry(properties: &Properties) -> Option<SystemTime> {
    let milliseconds = properties.0.iter().filter_map(|(name, value)| {
        let named = EXPIRY.iter().any(|expiry| name.starts_with(expiry));
        value.trim().parse::<u64>().ok().filter(|_| named)
    });
    let first = milliseconds.min()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(pairs: &[(&str, &str)]) -> Properties {
        Properties(
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn the_longest_prefix_counts_and_stands_before_the_tables_own() {
        let base = properties(&[("s3.endpoint", "e"), ("s3.access-key-id", "base")]);
        let grant = |prefix: &str, key: &str| PrefixedProperties {
            prefix: prefix.to_owned(),
            properties: properties(&[("s3.access-key-id", key)]),
        };
        let granted = [
            grant("s3://b/t", "table"),
            grant("s3", "all"),
            grant("s3://other", "other"),
        ];
        let of = |url: &str| effective(&base, &granted, &[url.to_owned()]);
        assert_eq!(of("s3://b/t/").get("s3.access-key-id"), Some("table"));
        assert_eq!(of("s3://b/u/").get("s3.access-key-id"), Some("all"));
        assert_eq!(of("gs://b/").get("s3.access-key-id"), Some("base"));
        assert_eq!(of("s3://b/t/").get("s3.endpoint"), Some("e"));
    }

    #[test]
    fn the_first_expiry_counts() {
        let times = properties(&[
            ("s3.session-token-expires-at-ms", "2000"),
            ("adls.sas-token-expires-at-ms.account", "1000"),
            ("s3.session-token", "3"),
        ]);
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        assert_eq!(expiry(&times), Some(expected));
        assert_eq!(expiry(&properties(&[])), None);
    }
}
