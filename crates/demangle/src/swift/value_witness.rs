//! The functions by which values are copied, moved and destroyed.

/// `VALUE-WITNESS-KIND`: the two letters, the first one in the upper byte.
pub(super) fn name(letters: u32) -> Option<&'static str> {
    let [_, _, letters @ ..] = letters.to_be_bytes();
    Some(match &letters {
        b"al" => "allocateBuffer",
        b"ca" => "assignWithCopy",
        b"ta" => "assignWithTake",
        b"de" => "deallocateBuffer",
        b"xx" => "destroy",
        b"XX" => "destroyBuffer",
        b"Xx" => "destroyArray",
        b"CP" => "initializeBufferWithCopyOfBuffer",
        b"Cp" => "initializeBufferWithCopy",
        b"cp" => "initializeWithCopy",
        b"Tk" => "initializeBufferWithTake",
        b"tk" => "initializeWithTake",
        b"pr" => "projectBuffer",
        b"TK" => "initializeBufferWithTakeOfBuffer",
        b"Cc" => "initializeArrayWithCopy",
        b"Tt" => "initializeArrayWithTakeFrontToBack",
        b"tT" => "initializeArrayWithTakeBackToFront",
        b"xs" => "storeExtraInhabitant",
        b"xg" => "getExtraInhabitantIndex",
        b"ug" => "getEnumTag",
        b"up" => "destructiveProjectEnumData",
        b"ui" => "destructiveInjectEnumTag",
        b"et" => "getEnumTagSinglePayload",
        b"st" => "storeEnumTagSinglePayload",
        _ => return None,
    })
}
