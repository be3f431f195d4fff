//! A catalog that does not answer is left alone until it does.
//!
//! Each question to a catalog that is down costs a whole timeout, and whoever looks at a directory asks many. So after one
//! has failed, and the catalog does not answer the simplest question either, those that follow get the same answer at once,
//! and what was read before is served on. Meanwhile a thread asks the simplest question again and again. The log has one
//! line when a catalog stops answering, and one when it answers again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::{Catalog, CatalogError, Listing, TableIdent, TablePointer};

/// How often a catalog that is away is asked whether it is back.
const PAUSE: Duration = Duration::from_secs(2);

/// A catalog that may be away for a while.
pub(super) struct Patient(Arc<Inner>);

struct Inner {
    catalog: Box<dyn Catalog>,
    pause: Duration,
    absence: Mutex<Option<Absence>>,
}

/// What is answered as long as the catalog is away.
#[derive(Clone, Debug)]
struct Absence {
    catalog: String,
    reason: String,
}

impl Patient {
    pub(super) fn new(catalog: Box<dyn Catalog>) -> Self {
        Self::asking_every(PAUSE, catalog)
    }

    fn asking_every(pause: Duration, catalog: Box<dyn Catalog>) -> Self {
        Self(Arc::new(Inner {
            catalog,
            pause,
            absence: Mutex::default(),
        }))
    }

    /// Asks, unless the catalog is known to be away.
    fn ask<T>(
        &self,
        question: impl FnOnce(&dyn Catalog) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        let inner = &self.0;
        if let Some(Absence { catalog, reason }) = inner.absence().clone() {
            return Err(CatalogError::Unreachable { catalog, reason });
        }
        let answer = question(&*inner.catalog);
        if let Err(CatalogError::Unreachable { catalog, reason }) = &answer
            // Else it was this question alone that got no answer.
            && inner.is_away()
        {
            let mut absence = inner.absence();
            if absence.is_none() {
                tracing::warn!(%catalog, reason, "the catalog does not answer");
                *absence = Some(Absence {
                    catalog: catalog.clone(),
                    reason: reason.clone(),
                });
                drop(absence);
                self.wait_for_return();
            }
        }
        answer
    }

    fn wait_for_return(&self) {
        let (inner, pause) = (Arc::downgrade(&self.0), self.0.pause);
        let started = std::thread::Builder::new()
            .name("outage".to_owned())
            .spawn(move || wait(&inner, pause));
        if let Err(error) = started {
            // The next question asks it.
            tracing::warn!(%error, "nothing waits for the catalog to return");
            *self.0.absence() = None;
        }
    }
}

/// Asks until the catalog answers, or nobody has it any more.
fn wait(inner: &Weak<Inner>, pause: Duration) {
    loop {
        std::thread::sleep(pause);
        let Some(inner) = inner.upgrade() else {
            return;
        };
        if !inner.is_away() {
            if let Some(absence) = inner.absence().take() {
                tracing::warn!(catalog = absence.catalog, "the catalog answers again");
            }
            return;
        }
    }
}

impl Inner {
    fn is_away(&self) -> bool {
        matches!(
            self.catalog.answers(),
            Err(CatalogError::Unreachable { .. })
        )
    }

    fn absence(&self) -> MutexGuard<'_, Option<Absence>> {
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Catalog for Patient {
    fn single_table(&self) -> Option<TableIdent> {
        self.0.catalog.single_table()
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        self.ask(|catalog| catalog.list(namespace))
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        self.ask(|catalog| catalog.table(ident))
    }

    fn answers(&self) -> Result<(), CatalogError> {
        self.ask(|catalog| catalog.answers())
    }

    fn tables_lie_where_recorded(&self) -> bool {
        self.0.catalog.tables_lie_where_recorded()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Instant;

    /// A catalog that is down, or in which only one namespace is.
    #[derive(Default)]
    struct Down {
        down: AtomicBool,
        listed: AtomicU32,
    }

    struct Catalogue(Arc<Down>);

    fn unreachable() -> CatalogError {
        CatalogError::Unreachable {
            catalog: "c".to_owned(),
            reason: "connection refused".to_owned(),
        }
    }

    impl Catalog for Catalogue {
        fn single_table(&self) -> Option<TableIdent> {
            None
        }

        fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
            self.0.listed.fetch_add(1, Ordering::Relaxed);
            match namespace {
                [name] if name == "broken" => Err(unreachable()),
                _ if self.0.down.load(Ordering::Relaxed) => Err(unreachable()),
                _ => Ok(Listing::default()),
            }
        }

        fn table(&self, _: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
            Ok(None)
        }

        fn answers(&self) -> Result<(), CatalogError> {
            match self.0.down.load(Ordering::Relaxed) {
                true => Err(unreachable()),
                false => Ok(()),
            }
        }
    }

    fn patient(pause: Duration) -> (Patient, Arc<Down>) {
        let down = Arc::<Down>::default();
        let catalog = Box::new(Catalogue(Arc::clone(&down)));
        (Patient::asking_every(pause, catalog), down)
    }

    #[test]
    fn a_catalog_that_is_down_is_not_asked_again_by_those_who_want_something() {
        let (patient, down) = patient(Duration::from_secs(3600));
        down.down.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            let error = patient.list(&[]).unwrap_err().to_string();
            assert_eq!(error, "c: cannot be reached: connection refused");
        }
        assert_eq!(down.listed.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_catalog_that_answers_again_is_asked_again() {
        let (patient, down) = patient(Duration::from_millis(1));
        down.down.store(true, Ordering::Relaxed);
        assert!(patient.list(&[]).is_err());
        down.down.store(false, Ordering::Relaxed);
        let limit = Instant::now() + Duration::from_secs(20);
        while patient.list(&[]).is_err() {
            assert!(Instant::now() < limit);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_question_that_alone_is_not_answered_keeps_no_other_from_being_asked() {
        let (patient, _down) = patient(Duration::from_secs(3600));
        assert!(patient.list(&["broken".to_owned()]).is_err());
        assert!(patient.list(&[]).is_ok());
    }
}
