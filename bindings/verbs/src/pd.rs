//! Protection domains, parent domains and thread domains.

use crate::abi;
use crate::context::ContextObject;
use crate::errno;
use bellwire_rdma::{Domain, Refusal};
use std::ffi::c_int;

/// A protection domain; or a parent domain or an imported one, which share one.
#[repr(C)]
pub struct Pd {
    abi: abi::Pd,
    pub domain: Domain,
    is_share: bool,
}

impl Pd {
    pub fn new(context: &abi::Context) -> Result<Pd, Refusal> {
        let domain = ContextObject::of(context).lock().create_domain()?;
        Ok(Pd::of(context, domain, false))
    }

    /// A domain that shares the one with that number, and keeps it alive.
    pub fn share(context: &abi::Context, number: u32) -> Result<Pd, Refusal> {
        let domain = ContextObject::of(context).lock().share_domain(number)?;
        Ok(Pd::of(context, domain, true))
    }

    fn of(context: &abi::Context, domain: Domain, is_share: bool) -> Pd {
        Pd { abi: abi::Pd { context, handle: domain.number() }, domain, is_share }
    }

    /// Ends it: [`Refusal::Busy`] while something uses a domain that is no share.
    pub fn end(&self) -> Result<(), Refusal> {
        let mut adapter = self.context().lock();
        match self.is_share {
            true => {
                adapter.release_domain(self.domain);
                Ok(())
            }
            false => adapter.destroy_domain(self.domain),
        }
    }

    pub fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.context)
    }

    /// What C calls the context.
    pub fn abi_context(&self) -> *const abi::Context {
        self.abi.context
    }
}

/// A thread domain. Locks are cheap here, so it changes nothing.
#[repr(C)]
pub struct Td {
    context: *const abi::Context,
}

pub extern "C" fn alloc_td(context: &abi::Context, comp_mask: &u32) -> *mut Td {
    let known = Refusal::Unsupported("ibv_td_init_attr has no such field");
    let made = if *comp_mask == 0 { Ok(Td { context }) } else { Err(known) };
    errno::object("ibv_alloc_td", made)
}

pub extern "C" fn dealloc_td(td: *mut Td) -> c_int {
    if td.is_null() {
        return errno::set(libc::EINVAL);
    }
    // SAFETY: it was made by `Box::into_raw`, and C gives it back.
    drop(unsafe { Box::from_raw(td) });
    0
}

/// A parent domain: the protection domain under another name. Its allocators are not asked, because
/// no queue of this library lies in memory of its own.
pub extern "C" fn alloc_parent_domain(
    context: &abi::Context,
    attr: &abi::ParentDomainInitAttr,
) -> *mut Pd {
    /// `IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS`, `IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT`
    const KNOWN: u32 = 1 | 2;
    let made = match attr.pd {
        Some(pd) if attr.comp_mask & !KNOWN == 0 => Pd::share(context, pd.domain.number()),
        Some(_) => Err(Refusal::Unsupported("ibv_parent_domain_init_attr has no such field")),
        None => Err(Refusal::Invalid("a parent domain has a protection domain")),
    };
    errno::object("ibv_alloc_parent_domain", made)
}
