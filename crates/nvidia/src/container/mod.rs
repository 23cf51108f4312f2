//! Where GPU code is found: in a cubin, in a fat binary, or in the fat binaries of a host file.
//!
//! [`open`] reads all cubins of a file; [`images`] lists what a file has for each model, and [`Cubin::parse`] reads
//! one.

mod attributes;
mod cubin;
mod fatbin;
mod lines;
mod lz4;

pub use cubin::{Cubin, Function};
pub use fatbin::{Image, ImageKind, images, is_nvidia};
pub use lines::{FunctionLines, LineTable};

use wavetap_base::error::{Error, Result, ResultExt as _};

/// All cubins of a file, in its order: a cubin by itself, or those of the fat binaries of a host file. `origin` is the
/// file's name, for messages. Empty if it is a host file without device code.
///
/// # Errors
/// Malformed if the file or a container in it breaks its format. If it has device code and none of it can be read, the
/// error of the first entry, such as unsupported for a model that is not handled, or for PTX. Where some of it can be
/// read, [`Opened::refused`] and [`Opened::ptx`] have the rest.
pub fn open(bytes: &[u8], origin: &str) -> Result<Opened> {
    let images = images(bytes).within(|| origin.to_owned())?;
    let is_file = matches!(&images[..], [image] if image.offset == 0);
    let mut opened = Opened { cubins: Vec::new(), refused: Vec::new(), ptx: Vec::new() };
    for image in images {
        let origin = if is_file {
            origin.to_owned()
        } else {
            format!("{origin}, entry of sm_{} at {:#x}", image.model, image.offset)
        };
        if image.kind == ImageKind::Ptx {
            opened.ptx.push(image.model);
            continue;
        }
        let cubin = image.contents().map_err(|error| error.within(origin.clone()));
        match cubin.and_then(|contents| Cubin::parse(contents.into_owned(), &origin)) {
            Ok(cubin) => opened.cubins.push(cubin),
            Err(error) => opened.refused.push(error),
        }
    }
    if opened.cubins.is_empty() && !opened.refused.is_empty() {
        return Err(opened.refused.swap_remove(0));
    }
    if opened.cubins.is_empty() && !opened.ptx.is_empty() {
        let text = "it has PTX alone, which the driver compiles: only machine code is read";
        return Err(Error::unsupported(text).within(origin.to_owned()));
    }
    Ok(opened)
}

/// What [`open`] read.
#[derive(Debug)]
pub struct Opened {
    /// The cubins.
    pub cubins: Vec<Cubin>,
    /// Why other machine code of the file was not read: one for each entry.
    pub refused: Vec<Error>,
    /// The models of PTX, which the driver compiles where no machine code fits.
    pub ptx: Vec<u32>,
}
