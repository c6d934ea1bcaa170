//! Masking of the values of `secrets:` in logs: occurrences in a program's output are replaced by `***`
//! before they reach a file.

const MASK: &[u8] = b"***";

/// Replaces secrets in a stream of bytes.
pub(super) struct Masker {
    /// The values to mask, longest first.
    secrets: Vec<Vec<u8>>,
    /// The end of the input so far, if it may be the beginning of a secret.
    pending: Vec<u8>,
}

impl Masker {
    /// Masks these values, and each line of multi-line values. `None` if there are none.
    pub(super) fn new<'v>(values: impl Iterator<Item = &'v str>) -> Option<Self> {
        let mut secrets: Vec<Vec<u8>> = values
            .flat_map(|value| std::iter::once(value.trim()).chain(value.lines().map(str::trim)))
            .filter(|text| !text.is_empty())
            .map(|text| text.as_bytes().to_vec())
            .collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        (!secrets.is_empty()).then_some(Self {
            secrets,
            pending: Vec::new(),
        })
    }

    /// Appends the next bytes and writes those that cannot be part of a secret; writes all at the `end`.
    pub(super) fn push(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while at < self.pending.len() {
            let rest = &self.pending[at..];
            let begins = |secret: &&Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if !end && self.secrets.iter().any(|secret| begins(&secret)) {
                break;
            }
            match self.secrets.iter().find(|secret| rest.starts_with(secret)) {
                Some(secret) => {
                    out.extend_from_slice(MASK);
                    at += secret.len();
                }
                None => {
                    out.push(rest[0]);
                    at += 1;
                }
            }
        }
        self.pending.drain(..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(secrets: &[&str], chunks: &[&[u8]]) -> String {
        let mut masker = Masker::new(secrets.iter().copied()).unwrap();
        let mut out = Vec::new();
        for chunk in chunks {
            masker.push(chunk, false, &mut out);
        }
        masker.push(b"", true, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn secrets_are_masked_whole_or_in_parts() {
        assert_eq!(
            masked(&["hunter2\n"], &[b"the key is hun", b"ter2, hunter"]),
            "the key is ***, hunter"
        );
        assert_eq!(masked(&["abc", "abcdef"], &[b"abc", b"de", b"f abcd"]), "*** ***d");
        assert_eq!(
            masked(&["first line\nsecond"], &[b"> second\n> first line"]),
            "> ***\n> ***"
        );
        assert!(Masker::new(["", " \n"].into_iter()).is_none());
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(text in "[ab ]{0,60}", secret in "[ab]{1,4}",
            at in prop::collection::vec(0usize..60, 0..5)) {
            let mut cuts: Vec<usize> = at.into_iter().map(|at| at.min(text.len())).collect();
            cuts.push(0);
            cuts.push(text.len());
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            let whole = masked(&[&secret], &[text.as_bytes()]);
            prop_assert_eq!(&whole, &masked(&[&secret], &chunks));
            prop_assert_eq!(whole, text.replace(&secret, "***"));
        }
    }
}
