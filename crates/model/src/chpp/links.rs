//! The links between controllers (C-02; cHPP section 2.3): PCIe links in any topology, and the
//! routes over them.
//!
//! Ports: [`Links::step`] gives a packet's next hop; [`Links::transmit`] puts it on the wires. A
//! link takes a packet only if the channel at its far end has room; a credit returns after the
//! link's latency. Routes are those of `network::routing`: dimension order with datelines, or
//! up*/down*. Both avoid cyclic waits of channels at any load. Packets from one node to another
//! take one route and stay in order.

use super::config::{LinksConfig, PcieConfig};
use super::pcie::{Link, Passage};
use crate::network::{DatelineClass, Leads, Routes, Topology, TopologyError, Way};
use crate::units::{Span, Time};

/// Framing, sequence number and LCRC around a packet: a request's 24 B without its header of 16.
const FRAMING_BYTES: u64 = 8;

/// All links of a machine.
pub struct Links {
    topology: Topology,
    routes: Routes,
    /// By controller, then port of the topology; port 0 of each is that of the controller's own
    /// nodes.
    wires: Vec<Vec<Link>>,
    /// Latency of the wires, and of returning credits.
    pub latency: Span,
}

impl Links {
    /// Idle links.
    ///
    /// # Errors
    /// A topology that cannot be built.
    pub fn new(config: &LinksConfig, pcie: &PcieConfig) -> Result<Links, TopologyError> {
        let topology = config.topology.build()?;
        let routes = Routes::new(&topology);
        let wires = (0..topology.routers())
            .map(|controller| {
                let ports = topology.ports(controller);
                ports.iter().map(|_| Link::with_latency(pcie, config.latency)).collect()
            })
            .collect();
        Ok(Links { topology, routes, wires, latency: config.latency })
    }

    /// The topology of the controllers.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Groups of channels that the routes need: two with rings, else one.
    pub fn dateline_classes(&self) -> usize {
        Routes::dateline_classes(&self.topology)
    }

    /// The next hop of a packet at `controller` that arrived by port `came_by`: port, and class of
    /// the channels at the far end (in rings, 0 before and 1 after the dateline). `pair` identifies
    /// the two nodes: of two routes of equal length, half of the pairs take each.
    pub fn step(
        &self,
        controller: usize,
        came_by: u8,
        (source, target): (usize, usize),
        pair: u32,
    ) -> (u8, usize) {
        let step = self.routes.step(Way {
            router: controller as u32,
            came_by,
            source_router: source as u32,
            router_to: target as u32,
            port_to: 0,
            bits: pair.wrapping_add(1).wrapping_mul(0x9e37_79b9),
        });
        (step.port, usize::from(step.dateline_class == DatelineClass::After))
    }

    /// The controller and port at the other end of a link.
    pub fn far_end(&self, controller: usize, port: u8) -> Option<(usize, u8)> {
        match self.topology.ports(controller)[usize::from(port)] {
            Leads::Router(far, port) => Some((far as usize, port)),
            _ => None,
        }
    }

    /// Puts a packet of `bytes`, including its header, on the wires. Its last byte is not before
    /// `tail`, its first not before `head`.
    pub fn transmit(
        &mut self,
        (controller, port): (usize, u8),
        bytes: u64,
        (head, tail): (Time, Time),
    ) -> Passage {
        let wires = &mut self.wires[controller][usize::from(port)];
        let bytes = bytes + FRAMING_BYTES;
        let whole = tail.saturating_sub(wires.time(bytes));
        wires.transmit(head.max(whole), bytes)
    }

    /// The wires that leave a controller by a port.
    pub fn wires(&self, controller: usize, port: u8) -> &Link {
        &self.wires[controller][usize::from(port)]
    }
}
