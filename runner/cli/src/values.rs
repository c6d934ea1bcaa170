//! Values of arguments that are not plain text or numbers.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use runner_pipeline::Isolation;

/// An isolation by its name.
pub(crate) fn isolation() -> impl TypedValueParser<Value = Isolation> {
    PossibleValuesParser::new(Isolation::ALL.map(Isolation::name)).map(|name| {
        let mut all = Isolation::ALL.into_iter();
        all.find(|isolation| isolation.name() == name).unwrap_or_default()
    })
}

/// A share from 0 to 1, written `10%`.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(number) if number > 0.0 && number <= 100.0 => Ok(number / 100.0),
        _ => Err("expected a percentage above 0 and at most 100, such as `10%`".to_owned()),
    }
}

/// A number between 0 and 1.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number < 1.0 => Ok(number),
        _ => Err("expected a number between 0 and 1, such as `0.05`".to_owned()),
    }
}

/// A time, which may be none at all: `90s`, `2h`, `0s`.
pub(crate) fn age(text: &str) -> Result<std::time::Duration, String> {
    if text.trim_end_matches(['s', 'm', 'h', 'd']) == "0" {
        return Ok(std::time::Duration::ZERO);
    }
    runner_pipeline::duration(text)
        .ok_or_else(|| "expected a duration, such as `90s`, `15m`, `2h` or `5d`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_may_be_nothing() {
        assert_eq!(age("0s"), Ok(std::time::Duration::ZERO));
        assert_eq!(age("90s"), Ok(std::time::Duration::from_secs(90)));
        assert!(age("").is_err() && age("s").is_err() && age("-1s").is_err());
    }
}
