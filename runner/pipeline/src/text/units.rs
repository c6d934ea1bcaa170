//! Parsing of durations, sizes and names.

use std::time::Duration;

/// Parses a duration: `90s`, `10m`, `2h`, `5d` or a sequence of these (`1h30m`); it must be greater than
/// zero.
pub fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (digits, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let unit = match tail.chars().next()? {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        total = total.checked_add(digits.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = &tail[1..];
    }
    // More than a hundred years is an error, and would overflow some clocks.
    (1..3_200_000_000).contains(&total).then(|| Duration::from_secs(total))
}

/// Parses a size such as `4GiB`, `512 MiB` or `1.5GB` to bytes; it must be greater than zero.
pub(crate) fn size(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at(at);
    let scale: u64 = match unit.trim() {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    let bytes = match digits.parse::<u64>() {
        Ok(count) => count.checked_mul(scale)?,
        Err(_) => {
            let bytes = digits.parse::<f64>().ok()? * scale as f64;
            // Above this, an f64 cannot represent fractions, and no machine has that much memory.
            (bytes < 9e15).then_some(bytes as u64)?
        }
    };
    (bytes > 0).then_some(bytes)
}

/// True if a name is valid for a stage, a parameter, an axis, a port or an output.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// True if a name is valid for an environment variable.
pub(crate) fn is_variable(name: &str) -> bool {
    is_name(name) && !name.contains('-')
}

/// Normalises a relative file name that stays in its directory: the result has `/` between its parts and no
/// `.` part.
pub(crate) fn relative(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with('/') || name.contains(['\0', '\n', '\\']) {
        return None;
    }
    let parts: Vec<&str> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let seconds = |text| duration(text).map(|duration| duration.as_secs());
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("1h30m"), Some(5400));
        assert_eq!(seconds("5d"), Some(432_000));
        for bad in [
            "",
            "90",
            "s",
            "-1s",
            "0s",
            "1.5h",
            "2 h",
            "2hours",
            "99999999999999999999d",
            "9999999999s",
            "1ü",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4GiB"), Some(4 << 30));
        assert_eq!(size("1.5 GB"), Some(1_500_000_000));
        assert_eq!(size("512B"), Some(512));
        for bad in [
            "",
            "4",
            "GiB",
            "0GiB",
            "-1GiB",
            "4gib",
            "1.2.3GiB",
            "99999999999TiB",
            "9999999.5TiB",
        ] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_files() {
        assert_eq!(relative("a/./b//c.png").as_deref(), Some("a/b/c.png"));
        for bad in ["", ".", "/a", "../a", "a/../b", "a\\b", "a\nb"] {
            assert_eq!(relative(bad), None, "{bad}");
        }
    }
}
