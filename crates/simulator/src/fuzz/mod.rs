//! The bodies of the fuzz targets; tests replay the corpus through them (`fuzz/` at the root of the
//! project).

mod formats;
mod frames;
mod operations;

pub use formats::parse_formats;
pub use frames::parse_frames;
pub use operations::operate;
