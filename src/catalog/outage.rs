//! A catalog that does not answer is left alone for a moment.
//!
//! Each question to a catalog that is down costs a whole timeout, and a directory listing asks many. So after one has
//! failed, those that follow within [`PAUSE`] get the same answer at once. The log has one line when a catalog stops
//! answering, and one when it answers again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Catalog, CatalogError, Listing, TableIdent, TablePointer};

/// How long a catalog that did not answer is not asked again: shorter than anybody waits for its return, longer than a
/// program needs to look at the tables of a namespace.
const PAUSE: Duration = Duration::from_secs(2);

/// A catalog that may be away for a while.
pub(super) struct Patient {
    catalog: Box<dyn Catalog>,
    pause: Duration,
    absence: Mutex<Option<Absence>>,
}

#[derive(Debug)]
struct Absence {
    noticed: Instant,
    catalog: String,
    reason: String,
}

impl Patient {
    pub(super) fn new(catalog: Box<dyn Catalog>) -> Self {
        Self {
            catalog,
            pause: PAUSE,
            absence: Mutex::default(),
        }
    }

    /// Asks, unless the catalog failed to answer a moment ago.
    fn ask<T>(
        &self,
        question: impl FnOnce(&dyn Catalog) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        if let Some(absence) = self.lock().as_ref()
            && absence.noticed.elapsed() < self.pause
        {
            return Err(CatalogError::Unreachable {
                catalog: absence.catalog.clone(),
                reason: absence.reason.clone(),
            });
        }
        let answer = question(&*self.catalog);
        let mut known = self.lock();
        if let Err(CatalogError::Unreachable { catalog, reason }) = &answer {
            if known.is_none() {
                tracing::warn!(%catalog, reason, "the catalog does not answer");
            }
            *known = Some(Absence {
                noticed: Instant::now(),
                catalog: catalog.clone(),
                reason: reason.clone(),
            });
        } else if let Some(absence) = known.take() {
            tracing::warn!(catalog = absence.catalog, "the catalog answers again");
        }
        drop(known);
        answer
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Absence>> {
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Catalog for Patient {
    fn single_table(&self) -> Option<TableIdent> {
        self.catalog.single_table()
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        self.ask(|catalog| catalog.list(namespace))
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        self.ask(|catalog| catalog.table(ident))
    }

    fn tables_lie_where_recorded(&self) -> bool {
        self.catalog.tables_lie_where_recorded()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Down for its first questions.
    struct Down {
        asked: Arc<AtomicU32>,
        questions: u32,
    }

    impl Catalog for Down {
        fn single_table(&self) -> Option<TableIdent> {
            None
        }

        fn list(&self, _: &[String]) -> Result<Listing, CatalogError> {
            if self.asked.fetch_add(1, Ordering::Relaxed) < self.questions {
                return Err(CatalogError::Unreachable {
                    catalog: "c".to_owned(),
                    reason: "connection refused".to_owned(),
                });
            }
            Ok(Listing::default())
        }

        fn table(&self, _: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
            Ok(None)
        }
    }

    fn down(questions: u32, pause: Duration) -> (Patient, Arc<AtomicU32>) {
        let asked = Arc::default();
        let catalog = Box::new(Down {
            asked: Arc::clone(&asked),
            questions,
        });
        let patient = Patient {
            pause,
            ..Patient::new(catalog)
        };
        (patient, asked)
    }

    #[test]
    fn a_catalog_that_is_down_is_not_asked_again_at_once() {
        let (patient, asked) = down(9, Duration::from_secs(3600));
        for _ in 0..3 {
            let error = patient.list(&[]).unwrap_err().to_string();
            assert_eq!(error, "c: cannot be reached: connection refused");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_catalog_that_answers_again_is_asked_each_time() {
        let (patient, asked) = down(1, Duration::ZERO);
        assert!(patient.list(&[]).is_err());
        assert!(patient.list(&[]).is_ok());
        assert!(patient.list(&[]).is_ok());
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }
}
