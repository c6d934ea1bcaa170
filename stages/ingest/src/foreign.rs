//! Files that are no tables, recognised by their first bytes, each with the command that makes a table of it.

use stages_core::StageError;

/// First bytes, what they stand for, and the remedy.
const KNOWN: &[(&[u8], &str, &str)] = &[
    (b"BZh", "a bzip2 file", "unpack it: `bunzip2 FILE`"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it: `unxz FILE`"),
    (b"\x04\x22\x4d\x18", "an LZ4 file", "unpack it: `lz4 -d FILE`"),
    (b"\x1f\x9d", "a file of `compress`", "unpack it: `gunzip FILE`"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: `7z x FILE`"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it: `unrar x FILE`"),
    (b"ARROW1", "a Feather (Arrow) file", PANDAS_FEATHER),
    (b"FEA1", "a Feather file of version 1", PANDAS_FEATHER),
    (
        b"SQLite format 3\0",
        "a SQLite database",
        "export a table: `sqlite3 -header -csv FILE 'select * from TABLE' > TABLE.csv`",
    ),
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file",
        "write it as CSV: `python -c \"import pandas; pandas.read_hdf('FILE').to_csv('FILE.csv')\"`",
    ),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an Excel workbook of the old format (.xls)",
        "save it as .xlsx or as CSV: `libreoffice --headless --convert-to xlsx FILE`",
    ),
    (
        b"\x93NUMPY",
        "a NumPy array",
        "write it with names: `python -c \"import numpy, pandas; \
            pandas.DataFrame(numpy.load('FILE')).to_csv('FILE.csv', index=False)\"`",
    ),
    (b"ORC", "an ORC file", PANDAS_ORC),
    (
        b"Obj\x01",
        "an Avro file",
        "write it as Parquet or CSV with the program that has made it",
    ),
    (b"%PDF", "a PDF document", "export the table as CSV"),
];

const PANDAS_ORC: &str =
    "write it as Parquet: `python -c \"import pandas; pandas.read_orc('FILE').to_parquet('FILE.parquet')\"`";
const PANDAS_FEATHER: &str = "write it as Parquet: `python -c \"import pandas; \
    pandas.read_feather('FILE').to_parquet('FILE.parquet')\"`";

/// The error about a file that is no table, by its first bytes.
pub(crate) fn refused(place: &str, bytes: &[u8]) -> Option<StageError> {
    let error = |what: &str, hint: &str| {
        StageError::new(format!("`{place}` is {what}, which is not read"))
            .hint(hint.replace("FILE", place.rsplit('/').next().unwrap_or(place)))
    };
    if let Some((_, what, hint)) = KNOWN.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        // Three letters begin texts, too: only a file that goes on like a binary one is of the kind.
        let is_binary = bytes
            .iter()
            .take(512)
            .any(|b| *b < 9 || (14..32).contains(b) || *b >= 0x80);
        if is_binary || bytes.starts_with(b"%PDF") {
            return Some(error(what, hint));
        }
    }
    // Its headers name the format behind the name of the first file.
    if bytes.get(257..262) == Some(b"ustar") {
        return Some(error("a tar archive", "unpack it: `tar -xf FILE`"));
    }
    // A pickle of protocol 2 or later: the mark, and a protocol.
    if let [0x80, 2..=5, ..] = bytes {
        return Some(error(
            "a Python pickle",
            "write it as Parquet: `python -c \"import pandas; \
                pandas.read_pickle('FILE').to_parquet('FILE.parquet')\"`",
        ));
    }
    let begin: Vec<u8> = bytes
        .iter()
        .skip_while(|b| b.is_ascii_whitespace() || **b >= 0x80)
        .take(16)
        .map(u8::to_ascii_lowercase)
        .collect();
    if begin.starts_with(b"<!doctype html") || begin.starts_with(b"<html") || begin.starts_with(b"<table") {
        return Some(error(
            "a page of HTML",
            "the download may have failed; a table in it is written as CSV by \
                `python -c \"import pandas; pandas.read_html('FILE')[0].to_csv('FILE.csv', index=False)\"`",
        ));
    }
    if begin.starts_with(b"<?xml") {
        return Some(error("an XML document", "export the table as CSV"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_tables_are_named() {
        for (bytes, what) in [
            (&b"BZh91AY&SY\x00\x01"[..], "bzip2"),
            (b"\xfd7zXZ\0\0", "xz file"),
            (b"7z\xbc\xaf\x27\x1c\0", "7z"),
            (b"ARROW1\0\0", "Feather"),
            (b"SQLite format 3\0", "SQLite"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel"),
            (b"\x80\x04\x95", "pickle"),
            (b"<!DOCTYPE html><html>", "HTML"),
        ] {
            let err = refused("data/x.bin", bytes).unwrap();
            assert!(err.message.contains(what), "{err}");
            assert!(err.hint.unwrap().len() > 20);
        }
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let err = refused("data/a.tar.gz", &tar).unwrap();
        assert_eq!(err.hint.as_deref(), Some("unpack it: `tar -xf a.tar.gz`"));
        for text in ["date,close\n", "ORCL,date\n2024-01-02,1\n", "BZh,close\n", "{\"a\": 1}"] {
            assert!(refused("x.csv", text.as_bytes()).is_none(), "{text}");
        }
    }
}
