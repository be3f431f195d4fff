//! Requests signed as AWS's services ask for (Signature Version 4).

use bytes::Bytes;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use reqwest::Request;

/// Adds the signature, and all that belongs to it, to a request to `service` in `region`.
///
/// # Errors
/// Why it cannot be signed: keys that no header can hold, or a URL that is none. Without any of the keys.
pub fn sign_for_aws(
    request: &mut Request,
    keys: &AwsCredential,
    service: &str,
    region: &str,
) -> Result<(), String> {
    // The signer takes for granted that they make headers.
    let texts = [Some(&keys.key_id), keys.token.as_ref()];
    let is_text = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
    if !texts.into_iter().flatten().all(is_text) {
        return Err("a key has characters that no header has".to_owned());
    }
    let body = request.body().and_then(|body| body.as_bytes());
    let body = Bytes::copy_from_slice(body.unwrap_or_default());
    let mut signed = HttpRequest::new(HttpRequestBody::from(body));
    *signed.method_mut() = request.method().clone();
    let url = request.url().as_str().parse();
    *signed.uri_mut() = url.map_err(|_| "the URL is none".to_owned())?;
    *signed.headers_mut() = request.headers().clone();
    AwsAuthorizer::new(keys, service, region)
        .try_authorize(&mut signed, None)
        .map_err(|error| error.to_string())?;
    *request.headers_mut() = signed.headers().clone();
    Ok(())
}
