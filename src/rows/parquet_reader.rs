mod schema;
pub use schema::file_schema;
