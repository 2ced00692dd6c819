//! Protection domains.

use crate::abi;
use crate::context::ContextObject;
use bellwire_rdma::{Domain, Refusal};

/// A protection domain.
#[repr(C)]
pub struct Pd {
    abi: abi::Pd,
    pub domain: Domain,
}

impl Pd {
    pub fn new(context: &abi::Context) -> Result<Pd, Refusal> {
        let domain = ContextObject::of(context).lock().create_domain()?;
        Ok(Pd { abi: abi::Pd { context, handle: 0 }, domain })
    }

    pub fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.context)
    }

    /// What C calls the context.
    pub fn abi_context(&self) -> *const abi::Context {
        self.abi.context
    }
}
