//! Which block is used by how many places in a volume's backups, so that deleting one backup reads that backup
//! and not all. Derived data: whenever it does not match the backups that are listed, it is made anew.

mod format;
mod survey;

pub use format::References;
pub use survey::{Unsure, save, survey, survey_all};
