//! Keys that a store may refuse before their time, and that are then taken anew.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::CredentialProvider;

/// Keys that are refused for good are not taken again and again.
pub(super) const BETWEEN_REFUSALS: Duration = Duration::from_secs(1);

/// What signs requests, and may be told that its keys are refused.
pub(super) trait Renewable: fmt::Debug + Send + Sync {
    /// Counts the keys there have been.
    fn generation(&self) -> u64;
    /// Lets go of the keys of a generation. Whether others may come.
    fn forget(&self, generation: u64) -> bool;
}

type Provider<C> = Arc<dyn CredentialProvider<Credential = C>>;
type Make<C> = Box<dyn Fn() -> object_store::Result<Provider<C>> + Send + Sync>;

/// What `object_store` finds keys with. It keeps them until they run out, and cannot be told that they are refused: it is
/// made anew then, and has none yet.
pub(super) struct Remade<C> {
    make: Make<C>,
    state: Mutex<State<C>>,
}

struct State<C> {
    provider: Provider<C>,
    generation: u64,
    /// When it first gave keys.
    gave: Option<Instant>,
}

impl<C> fmt::Debug for Remade<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remade")
    }
}

impl<C> Remade<C> {
    pub(super) fn new(
        make: impl Fn() -> object_store::Result<Provider<C>> + Send + Sync + 'static,
    ) -> object_store::Result<Self> {
        let state = State {
            provider: make()?,
            generation: 0,
            gave: None,
        };
        Ok(Self {
            make: Box::new(make),
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<C: fmt::Debug + Send + Sync + 'static> CredentialProvider for Remade<C> {
    type Credential = C;

    async fn get_credential(&self) -> object_store::Result<Arc<C>> {
        let (provider, generation) = {
            let state = self.state();
            (Arc::clone(&state.provider), state.generation)
        };
        let keys = provider.get_credential().await?;
        let mut state = self.state();
        if state.generation == generation {
            state.gave.get_or_insert_with(Instant::now);
        }
        Ok(keys)
    }
}

impl<C: 'static> Renewable for Remade<C> {
    fn generation(&self) -> u64 {
        self.state().generation
    }

    fn forget(&self, generation: u64) -> bool {
        let mut state = self.state();
        if state.generation != generation {
            return true;
        }
        let just_given = |gave: Instant| gave.elapsed() < BETWEEN_REFUSALS;
        if state.gave.is_none_or(just_given) {
            return false;
        }
        match (self.make)() {
            Ok(provider) => {
                state.provider = provider;
                state.generation += 1;
                state.gave = None;
                true
            }
            Err(error) => {
                tracing::warn!(%error, "refused credentials could not be looked for anew");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicU32, Ordering};

    use object_store::StaticCredentialProvider;

    use super::*;
    use crate::storage::web;

    /// Each that is made gives its number.
    fn numbered() -> Remade<u32> {
        let made = AtomicU32::new(0);
        Remade::new(move || {
            let number = made.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(Arc::new(StaticCredentialProvider::new(number)))
        })
        .unwrap()
    }

    fn given(keys: &Remade<u32>) -> u32 {
        *web::block_on(keys.get_credential()).unwrap().unwrap()
    }

    #[test]
    fn keys_that_are_refused_are_forgotten_once() {
        let keys = numbered();
        assert!(!keys.forget(0), "none were given yet");
        assert_eq!(given(&keys), 1);
        assert!(!keys.forget(0), "just given");
        let earlier = Instant::now().checked_sub(BETWEEN_REFUSALS).unwrap();
        keys.state().gave = Some(earlier);
        assert!(keys.forget(0));
        assert_eq!(given(&keys), 2);
        assert!(keys.forget(0), "there are others already");
        assert_eq!(given(&keys), 2);
        assert_eq!(keys.generation(), 1);
    }
}
