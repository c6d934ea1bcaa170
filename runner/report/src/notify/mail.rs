//! E-mails of messages.

use super::Sending;
use crate::web::Trouble;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message as Mail};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls as Encryption, TlsParameters};
use lettre::{SmtpTransport, Transport};
use runner_pipeline::{Email, MailAddress, Tls, Variable};

/// Sends an e-mail.
pub(super) fn send(email: &Email, (title, text): (&str, &str), sending: &Sending) -> Result<(), Trouble> {
    let mailbox = |MailAddress(address): &MailAddress| {
        let parsed = address.parse();
        let parsed = parsed.map_err(|err| Trouble::Final(format!("`{address}`: {err}")))?;
        Ok(Mailbox::new(None, parsed))
    };
    let mut mail = Mail::builder().from(mailbox(&email.from)?).subject(title);
    for to in &email.to {
        mail = mail.to(mailbox(to)?);
    }
    let mail = mail
        .header(ContentType::TEXT_PLAIN)
        .body(format!("{text}\n"))
        .map_err(|err| Trouble::Final(err.to_string()))?;
    let host = &email.server.host;
    let parameters = || TlsParameters::new(host.clone()).map_err(|err| Trouble::Final(err.to_string()));
    let encryption = match email.tls() {
        Tls::Always => Encryption::Wrapper(parameters()?),
        Tls::StartTls => Encryption::Required(parameters()?),
        Tls::Never => Encryption::None,
    };
    let mut transport = SmtpTransport::builder_dangerous(host)
        .port(email.port())
        .tls(encryption)
        .timeout(Some(sending.timeout));
    if let (Some(user), Some(Variable(variable))) = (&email.user, &email.password) {
        transport = transport.credentials(Credentials::new(user.clone(), sending.secret(variable)?));
    }
    match transport.build().send(&mail) {
        Ok(_) => Ok(()),
        Err(err) if err.is_permanent() => Err(Trouble::Final(err.to_string())),
        Err(err) => Err(Trouble::Passing(err.to_string())),
    }
}
