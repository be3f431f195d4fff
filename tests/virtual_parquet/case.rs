//! One table, and everything that has to hold of the file that shows it.

use bergfs::parquet::Splitting;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterVersion};
use parquet::schema::types::ColumnPath;
use serde_json::{Value, json};

use crate::builder::open::{Opened, Options, Served};
use crate::builder::schema::{Field, fields};
use crate::builder::{Commit, Data, Entry, TableBuilder};
use crate::columns::{Column, Dice, Draw, Leaf, leaves, notation, value};
use crate::statistics;

/// Which rows are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    None,
    First,
    Last,
    EverySecond,
    /// So many of a hundred.
    Random(u64),
    /// All of one row group.
    RowGroup(usize),
    All,
}

impl Pattern {
    fn positions(self, rows: usize, group: usize, dice: &mut Dice) -> Vec<u64> {
        let deleted = |row: usize, dice: &mut Dice| match self {
            Pattern::None => false,
            Pattern::First => row == 0,
            Pattern::Last => row + 1 == rows,
            Pattern::EverySecond => row % 2 == 1,
            Pattern::Random(percent) => dice.below(100) < percent,
            Pattern::RowGroup(at) => row / group == at,
            Pattern::All => true,
        };
        (0..rows)
            .filter(|row| deleted(*row, dice))
            .map(|row| row as u64)
            .collect()
    }
}

/// How the deletes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    Positions,
    Vector,
    /// By a column of row numbers that stands before the others.
    Equality,
}

/// A table of one or more data files.
#[derive(Clone, Debug)]
pub struct Case {
    pub columns: Vec<Column>,
    /// The types that the table has given the columns since.
    pub promoted: Option<Vec<Column>>,
    pub files: usize,
    /// Of each file.
    pub rows: usize,
    pub row_group: usize,
    pub page_rows: usize,
    pub compression: Compression,
    pub version: WriterVersion,
    /// Bytes of a dictionary, above which a chunk goes on without it.
    pub dictionary_limit: usize,
    pub page_index: bool,
    pub bloom_filters: bool,
    pub draw: Draw,
    pub pattern: Pattern,
    pub means: Means,
    /// Rows of the pieces that row groups are shown in.
    pub piece: u64,
    pub seed: u64,
}

impl Case {
    /// A case to start from.
    pub fn of(columns: &[Column]) -> Case {
        Case {
            columns: columns.to_vec(),
            promoted: None,
            files: 1,
            rows: 50,
            row_group: 20,
            page_rows: 7,
            compression: Compression::UNCOMPRESSED,
            version: WriterVersion::PARQUET_1_0,
            dictionary_limit: 1 << 20,
            page_index: true,
            bloom_filters: false,
            draw: Draw {
                distinct: 12,
                nulls: 20,
            },
            pattern: Pattern::EverySecond,
            means: Means::Positions,
            piece: u64::MAX,
            seed: 1,
        }
    }

    /// The columns as they are written: the row number before them.
    fn schema(columns: &[Column]) -> String {
        format!("99 row: required long, {}", notation(columns))
    }

    /// A row as the table's schema shows it: a date that has become a timestamp is its midnight.
    fn shown(&self, mut row: Value) -> Value {
        for (i, to) in self.promoted.iter().flatten().enumerate() {
            let (day, value) = (&self.columns[i].0.ends_with("date"), &mut row[i + 1]);
            if let (true, "timestamp", Some(days)) = (day, to.0, value.as_i64()) {
                *value = json!(days * 86_400_000_000);
            }
        }
        row
    }

    fn data(&self, schema: &[Field], columns: &[Column], rows: Value) -> Data {
        let leaves: Vec<(Leaf, Option<Encoding>)> = schema[1..]
            .iter()
            .zip(columns)
            .flat_map(|(field, (_, encoding))| {
                leaves(field, &[]).into_iter().map(|leaf| (leaf, *encoding))
            })
            .collect();
        let case = self.clone();
        Data::rows(rows)
            .row_groups_of(self.row_group)
            .writer(move |mut writer| {
                let index = if case.page_index {
                    EnabledStatistics::Page
                } else {
                    EnabledStatistics::Chunk
                };
                writer = writer
                    .set_compression(case.compression)
                    .set_writer_version(case.version)
                    .set_data_page_row_count_limit(case.page_rows)
                    .set_write_batch_size(case.page_rows.min(3))
                    .set_dictionary_page_size_limit(case.dictionary_limit)
                    .set_statistics_enabled(index)
                    .set_bloom_filter_enabled(case.bloom_filters)
                    .set_bloom_filter_max_ndv(50);
                for (leaf, encoding) in &leaves {
                    let path = ColumnPath::new(leaf.path.clone());
                    writer = writer.set_column_dictionary_enabled(path.clone(), encoding.is_none());
                    if let Some(encoding) = encoding {
                        writer = writer.set_column_encoding(path, leaf.encoding(*encoding));
                    }
                }
                writer
            })
    }

    /// Builds the table; gives it with the rows its current view has to show, row ids and all.
    pub fn build(&self) -> (TableBuilder, Vec<Value>) {
        let mut dice = Dice::new(self.seed);
        let version = if self.means == Means::Vector || self.promoted.is_some() {
            3
        } else {
            2
        };
        let notation = Case::schema(&self.columns);
        let promoted = self.promoted.as_ref().unwrap_or(&self.columns);
        let mut t = TableBuilder::new(version, &notation);
        let (mut data, mut deletes, mut expected): (Vec<Entry>, Vec<Entry>, Vec<Value>) =
            (vec![], vec![], vec![]);
        let mut removed = vec![];
        for file in 0..self.files {
            // Of the files, every second was written after the promotion.
            let newer = file % 2 == 1;
            let columns = if newer { promoted } else { &self.columns };
            let notation = Case::schema(columns);
            let schema = fields(&notation);
            let first = file * self.rows;
            let rows: Vec<Value> = (0..self.rows)
                .map(|row| {
                    let mut values = vec![json!(first + row)];
                    values.extend(schema[1..].iter().map(|f| value(f, &mut dice, self.draw)));
                    Value::Array(values)
                })
                .collect();
            let file = self.data(&schema, columns, Value::Array(rows.clone()));
            let entry = t.write(file.schema(&notation));
            let positions = self.pattern.positions(self.rows, self.row_group, &mut dice);
            for (position, row) in rows.into_iter().enumerate() {
                if positions.binary_search(&(position as u64)).is_ok() {
                    removed.push(json!([first + position]));
                    continue;
                }
                let mut row = if newer { row } else { self.shown(row) };
                if version >= 3 {
                    row.as_array_mut()
                        .unwrap()
                        .extend([json!(first + position), json!(1)]);
                }
                expected.push(row);
            }
            match self.means {
                _ if positions.is_empty() => {}
                Means::Vector => deletes.push(t.vector(&entry, &positions)),
                Means::Positions => {
                    let pairs: Vec<(&str, i64)> = positions
                        .iter()
                        .map(|p| (entry.path.as_str(), *p as i64))
                        .collect();
                    deletes.push(t.position_deletes(&pairs));
                }
                Means::Equality => {}
            }
            data.push(entry);
        }
        t.commit(Commit::of(data));
        if self.means == Means::Equality && !removed.is_empty() {
            deletes.push(t.equality_deletes(&[99], "99 row: long", Value::Array(removed)));
        }
        if !deletes.is_empty() {
            t.commit(Commit::of(deletes));
        }
        if let Some(promoted) = &self.promoted {
            t.evolve(&Case::schema(promoted));
        }
        t.save();
        (t, expected)
    }

    pub fn options(&self) -> Options {
        Options {
            splitting: Splitting {
                rows: self.piece,
                page_rows: 1,
                growth: u64::MAX,
            },
            ..Options::default()
        }
    }

    /// Builds, opens, reads, and checks everything.
    #[track_caller]
    pub fn check(&self) {
        let (t, expected) = self.build();
        const WHOLE: &str = "current/t.parquet";
        let opened = Opened::tree_with(&t.root(), &self.options());
        let size = opened
            .size(WHOLE)
            .unwrap_or_else(|errno| panic!("errno {errno}: {}\n{self:?}", opened.errors()));
        let before = opened.stats();
        for counter in [
            "pages_decoded",
            "chunks_transcoded",
            "equality_deletes_read",
        ] {
            assert_eq!(before[counter], 0, "{counter} by stat\n{self:?}");
        }
        let bytes = opened
            .read(WHOLE)
            .unwrap_or_else(|errno| panic!("errno {errno}: {}\n{self:?}", opened.errors()));
        assert_eq!(bytes.len() as u64, size, "{self:?}");
        let served = Served::of(bytes.clone());
        assert_eq!(served.rows.len(), expected.len(), "rows\n{self:?}");
        for (at, (row, right)) in served.rows.iter().zip(&expected).enumerate() {
            assert_eq!(row.to_string(), right.to_string(), "row {at}\n{self:?}");
        }
        statistics::check(&bytes, self);
        self.ranges_agree(&t, &bytes);
    }

    /// Reads in random pieces, by a tree that has read nothing yet and keeps next to nothing, agree with the whole; and
    /// the whole is the same.
    fn ranges_agree(&self, t: &TableBuilder, bytes: &[u8]) {
        let forgetful = Options {
            cache: 1 << 10,
            ..self.options()
        };
        let again = Opened::tree_with(&t.root(), &forgetful);
        let mut dice = Dice::new(self.seed + 1);
        for _ in 0..8 {
            let start = dice.below(bytes.len() as u64 + 10);
            let most = dice.below(bytes.len() as u64 + 10);
            let len = 1 + dice.below(1 + most);
            let right = &bytes[(start as usize).min(bytes.len())
                ..(start as usize + len as usize).min(bytes.len())];
            let read = again
                .read_range("current/t.parquet", start, len as usize)
                .unwrap();
            assert!(
                read == right,
                "{len} bytes at {start} of {}\n{self:?}",
                bytes.len()
            );
        }
        assert!(
            again.read("current/t.parquet").unwrap() == bytes,
            "two openings differ\n{self:?}"
        );
        // From the front in short steps, so that chunks grow.
        let stepping = Opened::tree_with(&t.root(), &self.options());
        let piece = 1 + dice.below(500) as usize;
        let read = stepping.read_in_pieces("current/t.parquet", 0, bytes.len(), piece);
        assert!(read.unwrap() == bytes, "in pieces of {piece}\n{self:?}");
    }
}
