//! Converts the results of native methods (bytes, lines, lists of bytes) to Java values.

use crate::errors::Result;
use jni::objects::{JByteArray, JObjectArray, JString};
use jni::Env;

/// The bytes, or null.
pub fn bytes<'local>(env: &mut Env<'local>, bytes: Option<&[u8]>) -> Result<JByteArray<'local>> {
    bytes.map_or(Ok(JByteArray::default()), |bytes| Ok(env.byte_array_from_slice(bytes)?))
}

/// The lines as one text; null when there are none.
pub fn lines<'local>(env: &mut Env<'local>, lines: &[String]) -> Result<JString<'local>> {
    Ok(if lines.is_empty() { JString::default() } else { env.new_string(lines.join("\n"))? })
}

/// An array of byte arrays, of which only one is referenced from here at a time.
pub fn list<'local>(env: &mut Env<'local>, parts: &[&[u8]]) -> Result<JObjectArray<'local, JByteArray<'local>>> {
    let array = JObjectArray::<JByteArray>::new(env, parts.len(), JByteArray::default())?;
    for (index, part) in parts.iter().enumerate() {
        let part = env.byte_array_from_slice(part)?;
        array.set_element(env, index, &part)?;
        env.delete_local_ref(part);
    }
    Ok(array)
}
