//! One long sparse file out of several, since ext4 ends a file at 16 TiB. Only layers of volumes beyond a segment's
//! size are made of more than one; the rest pay nothing for it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use crate::disk::File;
use crate::geometry::MAX_VOLUME;

pub(super) const SEGMENT: u64 = 8 << 40;

/// How many files hold a layer of that size.
pub(super) const fn count(size: u64) -> u64 {
    if size <= SEGMENT { 1 } else { size.div_ceil(SEGMENT) }
}

pub(super) fn name(files: Uuid, segment: u64) -> String {
    if segment == 0 { format!("layer-{files}.img") } else { format!("layer-{files}.{segment}.img") }
}

/// The names of the files of a layer of that size.
pub(super) fn names(files: Uuid, size: u64) -> impl Iterator<Item = String> {
    (0..count(size)).map(move |segment| name(files, segment))
}

/// Every name that a layer of any size could have, last first.
pub(super) fn all_names(files: Uuid) -> impl Iterator<Item = String> {
    (0..count(MAX_VOLUME)).rev().map(move |segment| name(files, segment))
}

/// How long one segment of a layer of that size is.
pub(super) fn segment_len(size: u64, segment: u64) -> u64 {
    size.saturating_sub(segment * SEGMENT).min(SEGMENT)
}

pub(super) fn join(mut parts: Vec<Arc<dyn File>>) -> Arc<dyn File> {
    if parts.len() == 1 { parts.swap_remove(0) } else { Arc::new(Segmented(parts)) }
}

struct Segmented(Vec<Arc<dyn File>>);

impl Segmented {
    /// Calls back with each file that a range touches, where in it, and which part of the range that is.
    fn each(
        &self,
        range: Range<u64>,
        mut work: impl FnMut(&dyn File, Range<u64>, Range<usize>) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let mut at = range.start;
        while at < range.end {
            let segment = at / SEGMENT;
            let end = range.end.min((segment + 1) * SEGMENT);
            let file = self.0.get(segment as usize).ok_or(io::ErrorKind::UnexpectedEof)?;
            let within = at - segment * SEGMENT..end - segment * SEGMENT;
            if !work(&**file, within, (at - range.start) as usize..(end - range.start) as usize)? {
                return Ok(false);
            }
            at = end;
        }
        Ok(true)
    }

    fn sum(&self, what: impl Fn(&dyn File) -> io::Result<u64>) -> io::Result<u64> {
        self.0.iter().map(|file| what(&**file)).sum()
    }
}

fn span(offset: u64, len: usize) -> Range<u64> {
    offset..offset + len as u64
}

impl File for Segmented {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.each(span(offset, into.len()), |file, within, part| {
            file.read_at(within.start, &mut into[part]).map(|()| true)
        })
        .map(|_| ())
    }

    fn read_cached(&self, offset: u64, into: &mut [u8]) -> io::Result<bool> {
        self.each(span(offset, into.len()), |file, within, part| {
            file.read_cached(within.start, &mut into[part])
        })
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.each(span(offset, data.len()), |file, within, part| {
            file.write_at(within.start, &data[part]).map(|()| true)
        })
        .map(|_| ())
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        self.each(range, |file, within, _| file.punch(within).map(|()| true)).map(|_| ())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|file| file.sync())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        (0..).zip(&self.0).try_for_each(|(segment, file)| file.set_len(segment_len(len, segment)))
    }

    fn size(&self) -> io::Result<u64> {
        self.sum(File::size)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let first = offset / SEGMENT;
        for (segment, file) in (0..).zip(&self.0).skip(first as usize) {
            let base = segment * SEGMENT;
            if let Some(run) = file.next_data(offset.saturating_sub(base))? {
                return Ok(Some(base + run.start..base + run.end));
            }
        }
        Ok(None)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.sum(File::allocated)
    }

    fn links(&self) -> io::Result<u64> {
        self.0.iter().try_fold(0, |most, file| Ok(most.max(file.links()?)))
    }

    fn forget(&self, range: Range<u64>) {
        // Hints cannot fail, and the range was just read, so it is there.
        self.each(range, |file, within, _| {
            file.forget(within);
            Ok(true)
        })
        .ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::simulated::Simulated;

    #[test]
    fn reads_writes_and_holes_cross_the_border_between_two_files() {
        let disk = Simulated::new();
        let files = Uuid::nil();
        let size = 2 * SEGMENT + 8192;
        let parts: Vec<_> = names(files, size).map(|name| disk.create(&name).unwrap()).collect();
        assert_eq!(parts.len(), 3);
        let file = join(parts);
        file.set_len(size).unwrap();
        assert_eq!(file.size().unwrap(), size);
        let data: Vec<u8> = [[1; 4096], [2; 4096]].concat();
        file.write_at(SEGMENT - 4096, &data).unwrap();
        let mut found = vec![0; 16384];
        file.read_at(SEGMENT - 8192, &mut found).unwrap();
        assert_eq!(found, [vec![0; 4096], data, vec![0; 4096]].concat());
        assert_eq!(file.next_data(0).unwrap(), Some(SEGMENT - 4096..SEGMENT));
        assert_eq!(file.next_data(SEGMENT).unwrap(), Some(SEGMENT..SEGMENT + 4096));
        assert_eq!(file.next_data(SEGMENT + 4096).unwrap(), None);
        file.punch(SEGMENT - 4096..SEGMENT + 4096).unwrap();
        assert_eq!((file.next_data(0).unwrap(), file.allocated().unwrap()), (None, 0));
    }
}
