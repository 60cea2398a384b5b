//! The logs of processes: written by the processes themselves, kept from growing without end, and read line by line.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Longer lines are told in pieces.
const LONGEST_LINE: u64 = 64 << 10;
/// How much of a log's end is looked at for its last words.
const LAST_WORDS: u64 = 4096;

pub fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// What was written before the last rotation.
fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Keeps one older part. The process goes on writing to the same file, which it has open: a line written between
/// the copy and the cut is lost.
pub fn rotate(path: &Path, limit: u64) -> io::Result<bool> {
    match path.metadata() {
        Ok(metadata) if metadata.len() > limit => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    std::fs::copy(path, older(path))?;
    OpenOptions::new().write(true).open(path)?.set_len(0)?;
    Ok(true)
}

/// Looks, as often as it is asked, for the line in which a process says that it serves.
#[derive(Debug)]
pub struct Announcement {
    path: PathBuf,
    from: u64,
}

impl Announcement {
    pub fn new(path: PathBuf, from: u64) -> Self {
        Self { path, from }
    }

    pub fn look(&mut self) -> io::Result<Option<String>> {
        let mut file = File::open(&self.path)?;
        if file.metadata()?.len() < self.from {
            self.from = 0;
        }
        file.seek(SeekFrom::Start(self.from))?;
        let mut reader = BufReader::new(file);
        loop {
            let mut line = Vec::new();
            let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? as u64;
            if read == 0 || (!line.ends_with(b"\n") && read < LONGEST_LINE) {
                return Ok(None);
            }
            self.from += read;
            if line.starts_with(b"ready ") {
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
        }
    }
}

/// The last thing a process said since `from`; empty if it said nothing.
pub fn last_words(path: &Path, from: u64) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(end.saturating_sub(LAST_WORDS)).min(end)))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().unwrap_or_default();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

/// All lines there are, oldest first, given to `tell` until it wants no more.
pub fn read(path: &Path, mut tell: impl FnMut(String) -> bool) -> io::Result<()> {
    for part in [older(path), path.to_owned()] {
        let file = match File::open(&part) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let mut reader = BufReader::new(file);
        loop {
            let mut line = Vec::new();
            if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if !tell(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        read(path, |line| {
            lines.push(line);
            true
        })
        .unwrap();
        lines
    }

    #[test]
    fn a_log_is_bounded_and_its_writer_does_not_notice() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("logs/p.log");
        let mut log = open(&path).unwrap();
        for number in 0..100 {
            writeln!(log, "line {number}").unwrap();
            rotate(&path, 200).unwrap();
        }
        let kept = lines(&path);
        assert_eq!(kept.last().unwrap(), "line 99");
        assert!((20..80).contains(&kept.len()), "{kept:?}");
        assert!(path.metadata().unwrap().len() <= 210 && older(&path).metadata().unwrap().len() <= 210);
        assert_eq!(last_words(&path, 0), "line 99");
        assert!(!rotate(&home.path().join("none"), 1).unwrap());
    }

    #[test]
    fn an_announcement_is_seen_when_it_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("p.log");
        let mut log = open(&path).unwrap();
        writeln!(log, "ready to go in an earlier life").unwrap();
        let mut announcement = Announcement::new(path.clone(), path.metadata().unwrap().len());
        write!(log, "{{\"level\":\"ready \"}}\nrea").unwrap();
        assert_eq!(announcement.look().unwrap(), None);
        write!(log, "dy volume=v").unwrap();
        assert_eq!(announcement.look().unwrap(), None);
        writeln!(log, " size=1").unwrap();
        assert_eq!(announcement.look().unwrap().as_deref(), Some("ready volume=v size=1"));
    }
}
