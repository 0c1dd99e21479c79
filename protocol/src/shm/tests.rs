//! Regions, their seals and their bounds.

use std::{
    fs::OpenOptions,
    io::{Seek, SeekFrom, Write},
    os::fd::AsRawFd,
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    mm::{MprotectFlags, mprotect},
};

use super::*;

const LENGTH: usize = 3 * PAGE_BYTES;

/// The same memory by a new descriptor, opened as if by somebody who wants to write.
fn reopened(descriptor: &OwnedFd) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    OpenOptions::new().read(true).write(true).open(path)
}

fn errno(result: Result<Region, ShmError>) -> Option<Errno> {
    match result.err()? {
        ShmError::System { source, .. } => Errno::from_io_error(&source),
        _ => None,
    }
}

#[test]
fn what_is_stored_in_one_mapping_is_loaded_from_the_other() {
    for peer in [PeerAccess::ReadOnly, PeerAccess::ReadWrite] {
        let (region, descriptor) = Region::create("test", LENGTH, peer).unwrap();
        let view = ReadOnlyRegion::from_descriptor(descriptor.as_fd(), LENGTH).unwrap();
        assert_eq!((region.len(), view.len()), (LENGTH, LENGTH));

        region.u64_at(LENGTH - 8).unwrap().store(0x0123_4567_89ab_cdef, Ordering::Relaxed);
        region.u32_at(4).unwrap().store(7, Ordering::Relaxed);
        region.words(64, 2).unwrap()[1].store(9, Ordering::Relaxed);

        let last = view.u64_at(LENGTH - 8).unwrap();
        assert_eq!(last.view().load_relaxed(), 0x0123_4567_89ab_cdef);
        assert_eq!(view.u32_at(4).unwrap().view().load_acquire(), 7);
        let mut copy = [0; 2];
        view.words(64, 2).unwrap().view().copy_to(0, &mut copy);
        assert_eq!(copy, [0, 9]);
    }
}

#[test]
fn a_peer_with_write_access_writes_into_our_mapping() {
    let (ours, descriptor) = Region::create("test", LENGTH, PeerAccess::ReadWrite).unwrap();
    let theirs = Region::from_descriptor(descriptor.as_fd(), LENGTH).unwrap();
    theirs.u64_at(8).unwrap().store(5, Ordering::Relaxed);
    assert_eq!(ours.u64_at(8).unwrap().load(Ordering::Relaxed), 5);
}

#[test]
fn a_read_only_peer_finds_no_way_to_write() {
    let (region, descriptor) = Region::create("test", LENGTH, PeerAccess::ReadOnly).unwrap();
    let word = region.u64_at(0).unwrap();
    word.store(1, Ordering::Relaxed);

    let mapped = Region::from_descriptor(descriptor.as_fd(), LENGTH);
    assert_eq!(errno(mapped), Some(Errno::PERM));
    let mut again = reopened(&descriptor).unwrap();
    let mapped = Region::from_descriptor(again.as_fd(), LENGTH);
    assert_eq!(errno(mapped), Some(Errno::PERM));
    let written = again.write(&[0xff; 8]).unwrap_err();
    assert_eq!(Errno::from_io_error(&written), Some(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&again, hole, 0, PAGE_BYTES as u64), Err(Errno::PERM));

    let view = ReadOnlyRegion::from_descriptor(descriptor.as_fd(), LENGTH).unwrap();
    // SAFETY: the range is one whole mapping that `view` owns; more rights on it take nothing from
    // anybody's references.
    let raised = unsafe {
        let rights = MprotectFlags::READ | MprotectFlags::WRITE;
        mprotect(view.map.as_mut_ptr().cast(), LENGTH, rights)
    };
    assert_eq!(raised, Err(Errno::ACCESS));
    assert_eq!(word.load(Ordering::Relaxed), 1);
}

#[test]
fn nobody_can_change_the_size_or_the_seals() {
    for peer in [PeerAccess::ReadOnly, PeerAccess::ReadWrite] {
        let (_region, descriptor) = Region::create("test", LENGTH, peer).unwrap();
        for length in [0, LENGTH as u64 - 1, LENGTH as u64 + 1] {
            assert_eq!(ftruncate(&descriptor, length), Err(Errno::PERM));
        }
        assert_eq!(fcntl_add_seals(&descriptor, SealFlags::WRITE), Err(Errno::PERM));
    }
}

#[test]
fn received_memory_is_refused_if_it_could_shrink_or_has_another_size() {
    let unsealed = new_memfd("test").unwrap();
    ftruncate(&unsealed, LENGTH as u64).unwrap();
    let grown_only = new_memfd("test").unwrap();
    ftruncate(&grown_only, LENGTH as u64).unwrap();
    fcntl_add_seals(&grown_only, SealFlags::GROW).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(LENGTH as u64).unwrap();

    for descriptor in [unsealed.as_fd(), grown_only.as_fd(), file.as_fd()] {
        let writable = Region::from_descriptor(descriptor, LENGTH);
        assert!(matches!(writable, Err(ShmError::NotSealed { .. })));
        let read_only = ReadOnlyRegion::from_descriptor(descriptor, LENGTH);
        assert!(matches!(read_only, Err(ShmError::NotSealed { .. })));
    }

    let (_region, sealed) = Region::create("test", LENGTH, PeerAccess::ReadWrite).unwrap();
    for expected in [0, LENGTH - PAGE_BYTES, LENGTH + PAGE_BYTES, usize::MAX] {
        let writable = Region::from_descriptor(sealed.as_fd(), expected);
        assert!(matches!(writable, Err(ShmError::Size { found, .. }) if found == LENGTH as i64));
        let read_only = ReadOnlyRegion::from_descriptor(sealed.as_fd(), expected);
        assert!(matches!(read_only, Err(ShmError::Size { found, .. }) if found == LENGTH as i64));
    }
}

#[test]
fn a_socket_is_no_memory() {
    let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
    let refused = Region::from_descriptor(socket.as_fd(), LENGTH);
    assert!(matches!(refused, Err(ShmError::NotSealed { seals: 0 })));
}

#[test]
fn files_are_mapped_as_far_as_they_reach() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[0; LENGTH]).unwrap();
    let region = Region::map_file(&file, LENGTH).unwrap();
    let view = ReadOnlyRegion::map_file(&file, PAGE_BYTES).unwrap();
    region.u64_at(16).unwrap().store(3, Ordering::Relaxed);
    assert_eq!(view.u64_at(16).unwrap().view().load_relaxed(), 3);

    let writable = Region::map_file(&file, LENGTH + 1);
    assert!(matches!(writable, Err(ShmError::Size { found, .. }) if found == LENGTH as i64));
    let read_only = ReadOnlyRegion::map_file(&file, LENGTH + 1);
    assert!(matches!(read_only, Err(ShmError::Size { found, .. }) if found == LENGTH as i64));
    let nothing = Region::map_file(&file, 0).unwrap();
    assert!(nothing.is_empty() && nothing.words(0, 0).is_ok() && nothing.words(0, 1).is_err());
}

#[test]
fn handles_lie_within_the_mapping_and_aligned() {
    let (region, descriptor) = Region::create("test", LENGTH, PeerAccess::ReadOnly).unwrap();
    let view = ReadOnlyRegion::from_descriptor(descriptor.as_fd(), LENGTH).unwrap();
    let words = [
        (0, LENGTH / 8, true),
        (LENGTH, 0, true),
        (8, LENGTH / 8, false),
        (LENGTH - 8, 2, false),
        (LENGTH + 8, 0, false),
        (4, 1, false),
        (0, usize::MAX, false),
        (usize::MAX - 7, 1, false),
        (usize::MAX - 7, usize::MAX, false),
    ];
    for (offset, count, right) in words {
        let case = format!("{count} words at {offset}");
        assert_eq!(region.words(offset, count).is_ok(), right, "{case}");
        assert_eq!(view.words(offset, count).is_ok(), right, "{case}");
    }
    for (offset, right) in [(0, true), (4, true), (LENGTH - 4, true), (2, false), (LENGTH, false)] {
        assert_eq!(region.u32_at(offset).is_ok(), right, "u32 at {offset}");
        assert_eq!(view.u32_at(offset).is_ok(), right, "u32 at {offset}");
    }
    for (offset, right) in [(LENGTH - 8, true), (LENGTH - 4, false), (LENGTH, false)] {
        assert_eq!(region.u64_at(offset).is_ok(), right, "u64 at {offset}");
        assert_eq!(view.u64_at(offset).is_ok(), right, "u64 at {offset}");
    }
}

#[test]
fn a_handle_outlives_its_region_and_its_descriptor() {
    let (region, descriptor) = Region::create("test", LENGTH, PeerAccess::ReadWrite).unwrap();
    let word = region.u64_at(8).unwrap();
    let copy = word.clone();
    drop((region, descriptor, word));
    copy.store(4, Ordering::Relaxed);
    let seen = std::thread::spawn(move || copy.load(Ordering::Relaxed)).join().unwrap();
    assert_eq!(seen, 4);
}

#[test]
fn every_page_is_present_before_first_use() {
    let (_region, descriptor) =
        Region::create("test", 64 * PAGE_BYTES, PeerAccess::ReadOnly).unwrap();
    let stat = fstat(&descriptor).unwrap();
    assert!(stat.st_blocks * 512 >= 64 * PAGE_BYTES as i64, "{} blocks", stat.st_blocks);
}

#[test]
fn touching_makes_pages_present_and_changes_nothing() {
    let mut file = File::from(new_memfd("test").unwrap());
    file.set_len(LENGTH as u64).unwrap();
    file.seek(SeekFrom::Start(PAGE_BYTES as u64)).unwrap();
    file.write_all(&42_u64.to_le_bytes()).unwrap();
    let map = || Arc::new(MmapOptions::new().len(LENGTH).map_raw(&file).unwrap());
    let region = Region { map: map() };
    region.touch().unwrap();
    assert!(fstat(&file).unwrap().st_blocks * 512 >= LENGTH as i64);
    let words = region.words(0, LENGTH / 8).unwrap();
    for (index, word) in words.iter().enumerate() {
        let expected = if index * 8 == PAGE_BYTES { 42_u64.to_le() } else { 0 };
        assert_eq!(word.load(Ordering::Relaxed), expected);
    }
    ReadOnlyRegion { map: map() }.touch().unwrap();
}
