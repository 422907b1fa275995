//! Mach-O images without dSYM: the debug info is still in the object files that the linker read.

use crate::dwarf::{DebugInfoAnswer, DwarfFile};
use crate::request::FileRequest;
use backtrail_core::Svma;
use backtrail_object::{DebugMapEntry, Object};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Which object file each function of an image came from.
pub(crate) struct DebugMap<'d> {
    /// Sorted by linked address.
    functions: Vec<Linked>,
    objects: Vec<MapObject<'d>>,
}

/// A function that was linked.
struct Linked {
    start: Svma,
    size: u64,
    /// Index into `objects`, and into that entry's functions.
    object: u32,
    function: u32,
}

struct MapObject<'d> {
    entry: DebugMapEntry<'d>,
    request: FileRequest,
    /// The inner `None` when the file is not to be had.
    file: OnceLock<Option<Box<ObjectFile<'d>>>>,
}

/// An object file and where its symbols lie in itself.
pub(crate) struct ObjectFile<'d> {
    pub(crate) dwarf: DwarfFile<'d>,
    symbols: HashMap<String, Svma>,
}

impl<'d> ObjectFile<'d> {
    pub(crate) fn new(object: &Object<'d>, dwarf: DwarfFile<'d>) -> Self {
        let symbols = object.symbols().unwrap_or_default().into_iter();
        let symbols = symbols.map(|symbol| (symbol.name.into_owned(), symbol.address)).collect();
        Self { dwarf, symbols }
    }
}

/// Where a function lies in its object file, where it was linked to, and how long it is.
pub(crate) type LinkedFunction = (Svma, Svma, u64);

impl<'d> DebugMap<'d> {
    pub(crate) fn new(entries: Vec<DebugMapEntry<'d>>) -> Self {
        let mut functions = Vec::new();
        for (object, entry) in (0u32..).zip(&entries) {
            functions.extend((0u32..).zip(&entry.functions).map(|(function, linked)| Linked {
                start: linked.address,
                size: linked.size,
                object,
                function,
            }));
        }
        functions.sort_by_key(|function| function.start);
        let objects = entries.into_iter().map(|entry| {
            let request = FileRequest::DebugMapObject {
                path: entry.path.to_string(),
                member: entry.member.as_ref().map(ToString::to_string),
                mtime: entry.modified,
            };
            MapObject { entry, request, file: OnceLock::new() }
        });
        Self { functions, objects: objects.collect() }
    }

    /// Looks a linked address up in the object file that its function came from.
    pub(crate) fn lookup(&self, address: Svma) -> Result<Option<DebugInfoAnswer<'_>>, FileRequest> {
        let Some((linked, object)) = self.function(address) else { return Ok(None) };
        let Some(file) = object.file.get() else { return Err(object.request.clone()) };
        let name = object.entry.functions.get(linked.function as usize).map(|function| &*function.name);
        let Some((file, start)) = file.as_deref().and_then(|file| Some((file, *file.symbols.get(name?)?)))
        else {
            return Ok(None);
        };
        let Some(inside) = address.offset_from(linked.start).and_then(|offset| start.checked_add(offset))
        else {
            return Ok(None);
        };
        let found = file.dwarf.lookup(inside.get())?;
        Ok(found.map(|found| DebugInfoAnswer { function_start: Some(linked.start.get()), ..found }))
    }

    /// Whether no object files are named.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The first object file that nobody has answered for.
    pub(crate) fn missing_file(&self) -> Option<FileRequest> {
        let object = self.objects.iter().find(|object| object.file.get().is_none())?;
        Some(object.request.clone())
    }

    /// The object files that are here, each with its functions that were linked.
    pub(crate) fn linked(&self) -> Vec<(&DwarfFile<'d>, Vec<LinkedFunction>)> {
        let mut functions: Vec<Vec<LinkedFunction>> = self.objects.iter().map(|_| Vec::new()).collect();
        for linked in &self.functions {
            if let Some(own) = functions.get_mut(linked.object as usize) {
                own.extend(self.linked_function(linked));
            }
        }
        let objects = self.objects.iter().zip(functions);
        let objects = objects.filter_map(|(object, own)| Some((&object.file.get()?.as_deref()?.dwarf, own)));
        objects.collect()
    }

    /// Where a linked function is in its object file; `None` where that is not to be had.
    fn linked_function(&self, linked: &Linked) -> Option<LinkedFunction> {
        let object = self.objects.get(linked.object as usize)?;
        let name = &object.entry.functions.get(linked.function as usize)?.name;
        let start = object.file.get()?.as_deref()?.symbols.get(&**name)?;
        Some((*start, linked.start, linked.size))
    }

    fn function(&self, address: Svma) -> Option<(&Linked, &MapObject<'d>)> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let linked = self.functions.get(behind.checked_sub(1)?)?;
        let is_inside = address.offset_from(linked.start).is_some_and(|offset| offset < linked.size);
        Some((linked, self.objects.get(linked.object as usize).filter(|_| is_inside)?))
    }

    /// Takes an object file for all entries that ask for it.
    pub(crate) fn provide(&self, request: &FileRequest, open: impl Fn() -> Option<ObjectFile<'d>>) {
        for object in self.objects.iter().filter(|object| object.request == *request) {
            object.file.get_or_init(|| open().map(Box::new));
        }
    }
}
