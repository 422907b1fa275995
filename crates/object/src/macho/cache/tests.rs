use std::mem::offset_of;

use backtrail_core::{Arch, FileOffset, ImageId, Svma};
use backtrail_testkit::Assembler;
use object::LittleEndian;
use object::macho::DyldCacheHeader;

use crate::{ErrorKind, Kind, Limits, SharedCache, SymbolTable, identify, slices};

type Header = DyldCacheHeader<LittleEndian>;

const TEXT: u64 = 0x1_8000_0000;
const DATA: u64 = 0x1_9000_0000;
const LINKEDIT: u64 = 0x1_a000_0000;
/// Where each of the mappings lies in the file.
const TEXT_AT: u64 = 0x1000;
const DATA_AT: u64 = 0x3000;
const LINKEDIT_AT: u64 = 0x4000;
const LOCALS_AT: u64 = 0x5000;
const UUID: [u8; 16] = *b"the cache's uuid";

struct Builder {
    file: Vec<u8>,
    header_size: usize,
}

impl Builder {
    fn new(header_size: usize) -> Self {
        let mut file = vec![0; 0x6000];
        file[..15].copy_from_slice(b"dyld_v1   arm64");
        file[16..20].copy_from_slice(&u32::try_from(header_size).unwrap().to_le_bytes());
        let mut this = Self { file, header_size };
        this.field32(0x14, 3);
        this.put(offset_of!(Header, uuid), &UUID);
        let mut mappings = Assembler::new();
        for (address, size, offset, protection) in
            [(TEXT, 0x2000, TEXT_AT, 5), (DATA, 0x1000, DATA_AT, 3), (LINKEDIT, 0x1000, LINKEDIT_AT, 1)]
        {
            mappings.u64(address).u64(size).u64(offset).u32(protection).u32(protection);
        }
        this.put_always(header_size, &mappings.finish());
        this
    }

    /// A field, unless the header of this cache ends before it.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        if at + bytes.len() <= self.header_size {
            self.put_always(at, bytes);
        }
    }

    fn put_always(&mut self, at: usize, bytes: &[u8]) {
        self.file[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn field32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn field64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    /// One library: header in the text mapping, data and tables in the others.
    fn image(mut self) -> Self {
        self.put_always(at(TEXT_AT + 0x800), b"/usr/lib/libone.dylib\0/usr/lib/libelsewhere.dylib\0");
        let mut header = Assembler::new();
        let mut commands = Assembler::new();
        let segments = [
            ("__TEXT", TEXT + 0x100, 0x1000, 5, Some(("__text", TEXT + 0x400, 0x10, 0x8000_0400))),
            ("__DATA", DATA + 0x20, 0x100, 3, Some(("__data", DATA + 0x30, 8, 0))),
            ("__LINKEDIT", LINKEDIT, 0x1000, 1, None),
        ];
        for (name, address, size, protection, section) in segments {
            let count = u32::from(section.is_some());
            commands.u32(0x19).u32(72 + 80 * count).text(name, 16).u64(address).u64(size);
            // What the segment says of its offset is not to be believed, only where its address is mapped from.
            commands.u64(0x7777).u64(size).u32(protection).u32(protection).u32(count).u32(0);
            if let Some((section, address, size, flags)) = section {
                commands.text(section, 16).text(name, 16).u64(address).u64(size).u32(0x7777);
                commands.u32(0).u32(0).u32(0).u32(flags).u32(0).u32(0).u32(0);
            }
        }
        commands.u32(0x1b).u32(24).bytes(b"uuid of the lib.");
        let symbols = u32::try_from(LINKEDIT_AT).unwrap();
        commands.u32(2).u32(24).u32(symbols).u32(1).u32(symbols + 0x100).u32(0x20);
        let size = u32::try_from(commands.len()).unwrap();
        header.u32(0xfeed_facf).u32(0x0100_000c).u32(0).u32(6).u32(5).u32(size).u32(0).u32(0);
        header.bytes(&commands.finish());
        self.put_always(at(TEXT_AT + 0x100), &header.finish());
        self.put_always(at(TEXT_AT + 0x400), &[0xaa; 0x10]);
        self.put_always(at(DATA_AT + 0x30), &[0xbb; 8]);
        let symbol = Assembler::new().u32(1).u8(0xf).u8(1).u16(0).u64(TEXT + 0x404).finish();
        self.put_always(at(LINKEDIT_AT), &symbol);
        self.put_always(at(LINKEDIT_AT + 0x100), b"\0_one\0");
        self
    }

    fn text_infos(mut self) -> Self {
        let mut infos = Assembler::new();
        let path = u32::try_from(TEXT_AT + 0x800).unwrap();
        infos.bytes(b"uuid of the lib.").u64(TEXT + 0x100).u32(0x1000).u32(path);
        infos.bytes(b"uuid of other...").u64(0x1_f000_0000).u32(0x1000).u32(path + 22);
        self.field64(offset_of!(Header, images_text_offset), 0x800);
        self.field64(offset_of!(Header, images_text_count), 2);
        self.put_always(0x800, &infos.finish());
        self
    }

    fn old_images(mut self) -> Self {
        let path = u32::try_from(TEXT_AT + 0x800).unwrap();
        let info = Assembler::new().u64(TEXT + 0x100).u64(0).u64(0).u32(path).u32(0).finish();
        self.field32(offset_of!(Header, images_offset_old), 0x900);
        self.field32(offset_of!(Header, images_count_old), 1);
        self.put_always(0x900, &info);
        self
    }

    /// One local symbol of the library, kept apart from it.
    fn locals(mut self) -> Self {
        self.field64(offset_of!(Header, local_symbols_offset), LOCALS_AT);
        self.field64(offset_of!(Header, local_symbols_size), 0x200);
        let is_wide = self.header_size >= offset_of!(Header, symbol_file_uuid);
        let mut locals = Assembler::new();
        locals.u32(0x40).u32(2).u32(0x80).u32(0x20).u32(0x20).u32(1).pad_to(0x20);
        if is_wide {
            locals.u64(0x100).u32(1).u32(1);
        } else {
            locals.u32(u32::try_from(TEXT_AT + 0x100).unwrap()).u32(1).u32(1);
        }
        locals.pad_to(0x40).zeros(16).u32(3).u8(0xe).u8(1).u16(0).u64(TEXT + 0x408);
        locals.pad_to(0x80).bytes(b"\0x\0_local\0");
        self.put_always(at(LOCALS_AT), &locals.finish());
        self
    }
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

/// Headers as of iOS 7, iOS 13, iOS 15 and today.
fn header_sizes() -> [usize; 4] {
    let end = offset_of!(Header, uuid) + 16;
    [
        end,
        offset_of!(Header, mapping_with_slide_offset),
        offset_of!(Header, cache_sub_type),
        size_of::<Header>(),
    ]
}

#[test]
fn the_directory_is_read_whatever_its_age() {
    for header_size in header_sizes() {
        let data = Builder::new(header_size).image().text_infos().old_images().file;
        let cache = SharedCache::parse(&data, &Limits::default()).unwrap();
        assert_eq!((cache.arch, cache.id), (Arch::Arm64, Some(ImageId::Uuid(UUID))));
        assert_eq!(cache.mappings.len(), 3);
        assert!(cache.mappings[0].executable && !cache.mappings[0].writable && cache.mappings[1].writable);
        assert_eq!(cache.file_offset(Svma::new(DATA + 0x30)), Some(FileOffset::new(DATA_AT + 0x30)));
        assert_eq!(cache.file_offset(Svma::new(TEXT + 0x2000)), None);
        let image = &cache.images[0];
        assert_eq!((&*image.path, image.address.get()), ("/usr/lib/libone.dylib", TEXT + 0x100));
        assert_eq!(image.id.is_some(), header_size != header_sizes()[0], "{header_size:#x}");
    }
}

#[test]
fn images_are_put_together_from_their_mappings() {
    for header_size in header_sizes() {
        let data = Builder::new(header_size).image().text_infos().old_images().locals().file;
        let slices = slices(&data, &Limits::default()).unwrap();
        assert_eq!(slices[0].member.as_deref(), Some("/usr/lib/libone.dylib"));
        assert_eq!(slices[0].range.start().get(), TEXT_AT + 0x100);
        let object = slices[0].parse(&Limits::default()).unwrap();
        assert_eq!(object.problems(), []);
        assert_eq!((object.kind(), object.image_base().get()), (Kind::Library, TEXT + 0x100));
        assert_eq!(object.id(), Some(ImageId::Uuid(*b"uuid of the lib.")));
        let bytes = |name| object.section_data(object.section(name).unwrap()).unwrap().into_owned();
        assert_eq!((bytes("__text"), bytes("__data")), (vec![0xaa; 0x10], vec![0xbb; 8]));
        assert_eq!(object.bytes_at(Svma::new(DATA + 0x30), 2), Some(&[0xbb; 2][..]));
        let symbols = object.symbols().unwrap();
        let rows: Vec<_> =
            symbols.iter().map(|symbol| (&*symbol.name, symbol.address.get() - TEXT, symbol.table)).collect();
        let expected = [("_one", 0x404, SymbolTable::Nlist), ("_local", 0x408, SymbolTable::CacheLocals)];
        assert_eq!(rows, expected, "{header_size:#x}");
    }
}

#[test]
fn a_scan_knows_the_cache_and_its_images() {
    let data = Builder::new(size_of::<Header>()).image().text_infos().file;
    let identities = identify(&data, &Limits::default()).unwrap();
    assert_eq!(identities[0].kind, Kind::SharedCache);
    assert_eq!(identities[0].id, Some(ImageId::Uuid(UUID)));
    assert_eq!(identities[1].id, Some(ImageId::Uuid(*b"uuid of the lib.")));
    assert_eq!(identities.len(), 2, "the third lies in another file");
    let old = Builder::new(header_sizes()[0]).image().old_images().file;
    let identities = identify(&old, &Limits::default()).unwrap();
    assert_eq!(identities[1].id, Some(ImageId::Uuid(*b"uuid of the lib.")), "from the image itself");
}

#[test]
fn parts_in_other_files_are_said_to_be_there() {
    let data = Builder::new(size_of::<Header>()).image().text_infos().file;
    let slices = slices(&data, &Limits::default()).unwrap();
    let problem = slices[1].parse(&Limits::default()).unwrap_err();
    assert_eq!(problem.kind(), ErrorKind::Unsupported);
    assert!(problem.to_string().contains("libelsewhere.dylib lies in another file"), "{problem}");

    // Without the mapping of __LINKEDIT the offsets of the symbol table mean another file.
    let mut builder = Builder::new(size_of::<Header>()).image().text_infos();
    builder.field32(0x14, 2);
    let slices = super::super::super::slices(&builder.file, &Limits::default()).unwrap();
    let object = slices[0].parse(&Limits::default()).unwrap();
    assert!(object.problems()[0].to_string().contains("another file"));
    assert!(!object.has_symbols() && object.symbols().unwrap().is_empty());
}

#[test]
fn sub_caches_are_listed() {
    let mut builder = Builder::new(size_of::<Header>());
    builder.field32(offset_of!(Header, sub_cache_array_offset), 0xa00);
    builder.field32(offset_of!(Header, sub_cache_array_count), 1);
    builder.put(offset_of!(Header, symbol_file_uuid), &[9; 16]);
    let entry = Assembler::new().bytes(&[8; 16]).u64(0x4000).text(".25.data", 32).finish();
    builder.put_always(0xa00, &entry);
    let cache = SharedCache::parse(&builder.file, &Limits::default()).unwrap();
    assert_eq!((&*cache.sub_caches[0].suffix, cache.sub_caches[0].id), (".25.data", ImageId::Uuid([8; 16])));
    assert_eq!(cache.symbols_file, Some(ImageId::Uuid([9; 16])));

    let mut builder = Builder::new(offset_of!(Header, cache_sub_type));
    builder.field32(offset_of!(Header, sub_cache_array_offset), 0xa00);
    builder.field32(offset_of!(Header, sub_cache_array_count), 2);
    builder.put_always(0xa00, &Assembler::new().bytes(&[7; 16]).u64(0).bytes(&[6; 16]).u64(0).finish());
    let cache = SharedCache::parse(&builder.file, &Limits::default()).unwrap();
    assert_eq!(cache.sub_caches.iter().map(|sub| &*sub.suffix).collect::<Vec<_>>(), [".1", ".2"]);
}

#[test]
fn cut_directories_are_errors() {
    let data = Builder::new(size_of::<Header>()).image().text_infos().file;
    for cut in 0..0x840 {
        assert!(slices(&data[..cut], &Limits::default()).is_err(), "cut at {cut:#x}");
    }
    let mut none = data.clone();
    none[16..20].copy_from_slice(&0u32.to_le_bytes());
    assert!(slices(&none, &Limits::default()).is_err());
    let mut many = data;
    many[offset_of!(Header, images_text_count) + 7] = 1;
    assert_eq!(slices(&many, &Limits::default()).unwrap_err().kind(), ErrorKind::LimitExceeded);
}
