//! Errors and panics of the kernel as `crown.spark.CrownException`.

use crown_kernel::error::{advice, KernelError};
use jni::errors::{Error, ErrorPolicy};
use jni::objects::{JThrowable, JValue};
use jni::{jni_sig, jni_str, Env, EnvUnowned};
use std::any::Any;

pub enum Failure {
    Kernel(KernelError),
    /// Java's own: an exception that is pending already, or a call that JNI refused.
    Java(Error),
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        Failure::Kernel(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Java(error)
    }
}

pub type Result<T> = std::result::Result<T, Failure>;

/// What is wrong with bytes that should be Arrow.
pub fn arrow(error: impl std::fmt::Display) -> KernelError {
    KernelError::invalid("CROWN-CHANGE-ARROW", format!("the changes can't be read: {error}"))
}

/// Runs a native method; what goes wrong becomes an exception, and a panic never crosses into the
/// JVM.
pub fn guarded<'local, T: Default>(mut env: EnvUnowned<'local>, work: impl FnOnce(&mut Env<'local>) -> Result<T>) -> T {
    env.with_env(work).resolve::<Throw>()
}

struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'local: 'method, 'method> = ();

    fn on_error<'local: 'method, 'method>(
        env: &mut Env<'local>,
        _captured: &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        match failure {
            Failure::Java(Error::JavaException) => Ok(T::default()),
            Failure::Java(error) => throw(env, "CROWN-INTERNAL", &format!("the native call failed: {error}")),
            Failure::Kernel(error) => {
                let (reason, hint) = advice(error.code);
                let mut text = error.message;
                reason.into_iter().for_each(|reason| text += &format!("\nwhy: {reason}"));
                hint.into_iter().for_each(|hint| text += &format!("\ndo:  {hint}"));
                throw(env, error.code, &text)
            }
        }
    }

    fn on_panic<'local: 'method, 'method>(
        env: &mut Env<'local>,
        _captured: &mut (),
        panic: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        throw(env, "CROWN-INTERNAL", &format!("the kernel failed: {}", text.unwrap_or("unknown")))
    }
}

fn throw<T: Default>(env: &mut Env<'_>, code: &str, text: &str) -> jni::errors::Result<T> {
    let (code, text) = (env.new_string(code)?, env.new_string(text)?);
    let arguments = [JValue::Object(&code), JValue::Object(&text)];
    let signature = jni_sig!("(Ljava/lang/String;Ljava/lang/String;)V");
    let exception = env.new_object(jni_str!("crown/spark/CrownException"), signature, &arguments)?;
    let exception = env.cast_local::<JThrowable>(exception)?;
    match env.throw(exception) {
        Err(Error::JavaException) | Ok(()) => Ok(T::default()),
        Err(error) => Err(error),
    }
}
