//! All controllers of a machine: a crossbar each, and the links between them (C-02, C-04, C-27,
//! C-42; cHPP sections 2.3 and 5.4).
//!
//! Ports: interfaces ask for room, inject packets for other nodes, and free places of their receive
//! buffers. Node numbers run through all controllers: controller c has nodes `c * ports .. (c + 1)
//! * ports`.
//!
//! Channels of each input of each crossbar, n being `crossbar.channels`:
//!
//! ```text
//!   0 .. n    NAP and PUT, by destination modulo n    (with rings: n more after the dateline)
//!   next      GET, if it has a channel of its own     (with rings: one more)
//! ```
//!
//! A packet keeps its group (destination modulo n) from link to link. So each of the n groups is a
//! network of its own without cyclic waits, and GETs never wait for PUTs on their route.

use super::carried::{CarriedLinks, LinkDelivery};
use super::config::Config;
use super::crossbar::{Bound, Crossbar, DATA, GET, Grant};
use super::links::Links;
use super::{NicEvent, PacketHandle};
use crate::engine::{Random, Schedule, Waits};
use crate::network::TopologyError;
use crate::stats::Imbalance;
use crate::units::{Span, Time};

/// Crossbars and links.
pub struct Controllers {
    /// Nodes of each controller.
    nodes: usize,
    data_channels: usize,
    /// By node, its number modulo the channels.
    groups: Vec<usize>,
    dateline_classes: usize,
    get_channel: bool,
    /// One for each controller.
    pub crossbars: Vec<Crossbar>,
    links: Option<Links>,
    /// The SMP paper's links, in place of the wires.
    carried: Option<CarriedLinks>,
    /// Room in each channel at the far end of a link.
    link_packets: usize,
    /// Credits in flight back over links.
    returning: u64,
    /// (channel, destination) of every packet that an interface injected, if recorded (C-42).
    pub seen: Option<Vec<(usize, usize)>>,
}

impl Controllers {
    /// Idle controllers.
    ///
    /// # Errors
    /// A topology that cannot be built.
    pub fn new(config: &Config, random: &mut Random) -> Result<Controllers, TopologyError> {
        let links = match &config.links {
            Some(links) => Some(Links::new(links, &config.pcie)?),
            None => None,
        };
        let nodes = config.crossbar.ports;
        let dateline_classes = links.as_ref().map_or(1, Links::dateline_classes);
        let channels = dateline_classes
            * (config.crossbar.channels + usize::from(config.crossbar.get_channel));
        let link_packets = config.links.as_ref().map_or(0, |links| links.channel_packets);
        let count = links.as_ref().map_or(1, |links| links.topology().routers());
        let crossbars = (0..count)
            .map(|controller| {
                // The first port of a controller in the topology stands for all of its nodes.
                let ports = links
                    .as_ref()
                    .map_or(nodes, |links| nodes + links.topology().ports(controller).len() - 1);
                let credits = |output: usize, class: usize| match output < nodes {
                    true if class < 2 => config.crossbar.receive_packets,
                    true => 0,
                    false => link_packets,
                };
                Crossbar::new(config, (controller, ports, channels), credits, random)
            })
            .collect();
        Ok(Controllers {
            nodes,
            data_channels: config.crossbar.channels,
            groups: (0..256).map(|to| to % config.crossbar.channels).collect(),
            dateline_classes,
            get_channel: config.crossbar.get_channel,
            crossbars,
            links,
            carried: None,
            link_packets,
            returning: 0,
            seen: None,
        })
    }

    /// Replaces the wires by the SMP paper's links.
    pub fn lay_smp_links(&mut self, schedule: &mut Schedule<NicEvent>) {
        self.carried = self.links.as_ref().map(|links| CarriedLinks::new(links, schedule));
    }

    /// The SMP paper's links, if they replace the wires.
    pub fn carried(&self) -> Option<&CarriedLinks> {
        self.carried.as_ref()
    }

    /// Handles an event on a link of the SMP paper. Returns a packet that arrived by it; the packet
    /// is now in the channel reserved for it.
    pub fn on_link(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        config: &Config,
        link: usize,
        event: crate::smp::LinkEvent,
    ) -> Option<LinkDelivery> {
        let delivery = self.carried.as_mut()?.handle(schedule, link, event)?;
        let head = config.nic.edge(schedule.now());
        self.arrives(schedule, delivery.bound, delivery.far, head);
        Some(delivery)
    }

    /// Puts a packet that came by a link into the channel that is reserved for it.
    fn arrives(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        bound: Bound,
        (far, port): (usize, u8),
        head: Time,
    ) {
        let (input, channel) = (self.crossbar_port(port), bound.credit_class.into());
        let bound = self.route(bound, (far, input));
        self.crossbars[far].inject(schedule, (input, channel), bound, head);
    }

    /// Nodes of all controllers.
    pub fn nodes(&self) -> usize {
        self.nodes * self.crossbars.len()
    }

    /// The first channel of a node's packets to `to`: `to` modulo the channels (Dest-Mod, C-42), or
    /// that of GETs (C-27).
    pub fn channel_for(&self, to: usize, is_get: bool) -> usize {
        self.channel(to, is_get && self.get_channel, 0)
    }

    fn channel(&self, to: usize, among_gets: bool, dateline_class: usize) -> usize {
        match among_gets {
            true => self.dateline_classes * self.data_channels + dateline_class,
            false => dateline_class * self.data_channels + self.groups[to],
        }
    }

    /// The controller of a node, and the node's number among those of the controller.
    #[inline]
    fn place(&self, node: usize) -> (usize, usize) {
        match self.crossbars.len() {
            1 => (0, node),
            _ => (node / self.nodes, node % self.nodes),
        }
    }

    /// Whether a channel of a node's input has room for a packet.
    pub fn has_room(&self, node: usize, channel: usize) -> bool {
        let (controller, input) = self.place(node);
        self.crossbars[controller].has_room(input, channel)
    }

    /// Puts a packet of `beats` beats for node `to` into a channel of `node` with room; its first
    /// beat arrives at `head`.
    pub fn inject(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        (node, channel): (usize, usize),
        (packet, to, beats): (PacketHandle, usize, u64),
        head: Time,
    ) {
        if let Some(seen) = &mut self.seen {
            seen.push((channel, to));
        }
        let at = self.place(node);
        let (from, to, credit_class) = (node as u8, to as u8, channel as u8);
        let bound = self.route(Bound { packet, beats, from, to, output: 0, credit_class }, at);
        self.crossbars[at.0].inject(schedule, (at.1, channel), bound, head);
    }

    /// Whether a channel is for GETs only.
    fn is_for_gets(&self, channel: u8) -> bool {
        usize::from(channel) >= self.dateline_classes * self.data_channels
    }

    /// The route of a packet through `controller`, where it is in a channel of `input`: that of its
    /// credit so far.
    fn route(&self, bound: Bound, (controller, input): (usize, usize)) -> Bound {
        let Bound { from, to, credit_class, .. } = bound;
        let among_gets = self.is_for_gets(credit_class);
        let (target, node) = self.place(to.into());
        let (output, credit_class) = match &self.links {
            Some(links) if controller != target => {
                let source = usize::from(from) / self.nodes;
                let came_by = self.link_port(input).unwrap_or(0);
                let pair = u32::from(from) << 8 | u32::from(to);
                let (port, class) = links.step(controller, came_by, (source, target), pair);
                (self.crossbar_port(port), self.channel(to.into(), among_gets, class))
            }
            _ => (node, if among_gets { GET } else { DATA }),
        };
        Bound { output: output as u8, credit_class: credit_class as u8, ..bound }
    }

    /// The port of a crossbar with the topology's number of a link's port.
    fn crossbar_port(&self, port: u8) -> usize {
        self.nodes + usize::from(port) - 1
    }

    /// The topology's number of a port, if it belongs to a link.
    fn link_port(&self, port: usize) -> Option<u8> {
        (port >= self.nodes).then(|| (port - self.nodes + 1) as u8)
    }

    /// The destination node of a granted packet, or none if it leaves by a link.
    pub fn node_behind(&self, controller: usize, grant: &Grant) -> Option<usize> {
        let output = usize::from(grant.bound.output);
        (output < self.nodes).then_some(controller * self.nodes + output)
    }

    /// Sends a granted packet over its link. Returns the next controller, and when the packet is
    /// complete there, in the channel reserved for it. Returns nothing if the link reports the
    /// arrival itself ([`Controllers::on_link`]). On the wires the packet is `longer` bytes longer.
    pub fn depart(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        config: &Config,
        controller: usize,
        (grant, bytes, longer): (&Grant, &[u8], usize),
    ) -> Option<(usize, Time)> {
        let Grant { bound, tail, .. } = *grant;
        let output = bound.output.into();
        let (port, is_get) = (self.link_port(output)?, self.is_for_gets(bound.credit_class));
        let links = self.links.as_mut()?;
        let far = links.far_end(controller, port)?;
        if let Some(carried) = &mut self.carried {
            // The link queues packets that it cannot send yet; places at the far end bound the
            // queue.
            let mut bytes = bytes.to_vec();
            bytes.resize(bytes.len() + longer, 0);
            carried.send(schedule, (controller, port), usize::from(is_get), (bound, bytes));
            return None;
        }
        let bytes = (bytes.len() + longer) as u64;
        let (now, module) = (schedule.now(), config.nic.module());
        let passage = links.transmit((controller, port), bytes, (now + module, tail));
        // Slower wires hold up the crossbar: no buffer is between the two.
        self.crossbars[controller].hold(schedule, output, passage.left, module);
        let head = config.nic.edge(passage.arrives);
        self.arrives(schedule, bound, far, head);
        Some((far.0, head))
    }

    /// A packet has crossed: returns the node whose input has room now, if the input is a node's. A
    /// link sends the credit back.
    pub fn crossed(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        controller: usize,
        input: usize,
        output: usize,
    ) -> Option<usize> {
        let channel = self.crossbars[controller].crossed(schedule, input, output);
        let Some(port) = self.link_port(input) else {
            return Some(controller * self.nodes + input);
        };
        let links = self.links.as_ref()?;
        let (near, near_port) = links.far_end(controller, port)?;
        self.returning += 1;
        schedule.after(
            links.latency,
            NicEvent::Credited {
                controller: near as u8,
                output: self.crossbar_port(near_port) as u8,
                channel: channel? as u8,
            },
        );
        None
    }

    /// A credit for a place at the far end of a link has arrived.
    pub fn credited(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        controller: usize,
        output: usize,
        channel: usize,
    ) {
        self.returning -= 1;
        self.crossbars[controller].credit_returned(schedule, output, channel);
    }

    /// A place of `node`'s receive buffer is free again.
    pub fn credit_returned(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        node: usize,
        class: usize,
    ) {
        let (controller, output) = self.place(node);
        self.crossbars[controller].credit_returned(schedule, output, class);
    }

    /// The name of each output, and how long it was busy.
    pub fn busy(&self, mut tell: impl FnMut(String, Span)) {
        for (controller, crossbar) in self.crossbars.iter().enumerate() {
            for (output, server) in crossbar.outputs.iter().enumerate() {
                let busy = server.busy();
                match self.link_port(output).zip(self.links.as_ref()) {
                    None => tell(
                        format!("crossbar output of node {}", controller * self.nodes + output),
                        busy,
                    ),
                    Some((port, links)) => {
                        let Some((far, _)) = links.far_end(controller, port) else { continue };
                        let wires = match &self.carried {
                            Some(carried) => carried.busy((controller, port)),
                            None => links.wires(controller, port).server.busy(),
                        };
                        let busy = busy.max(wires);
                        tell(format!("link from controller {controller} to {far}"), busy);
                    }
                }
            }
        }
    }

    /// The printed name of a channel of a node's input.
    pub fn channel_name(&self, node: usize, channel: usize) -> String {
        self.name(node / self.nodes, node % self.nodes, channel)
    }

    fn name(&self, controller: usize, input: usize, channel: usize) -> String {
        match self.links {
            None => format!("channel {channel} of input {input}"),
            Some(_) => format!("channel {channel} of input {input} of controller {controller}"),
        }
    }

    /// Adds the waits of packets in front of channels; `kind` names a packet.
    pub fn waits(&self, waits: &mut Waits, kind: impl Fn(PacketHandle) -> &'static str) {
        for (controller, crossbar) in self.crossbars.iter().enumerate() {
            for (input, channel, bound, has_credit) in crossbar.waiting() {
                if has_credit {
                    continue;
                }
                let output = usize::from(bound.output);
                let far = self
                    .link_port(output)
                    .zip(self.links.as_ref())
                    .and_then(|(port, links)| links.far_end(controller, port));
                let holder = match far {
                    None => format!("receive buffer of node {}", bound.to),
                    Some((far, port)) => {
                        self.name(far, self.crossbar_port(port), bound.credit_class.into())
                    }
                };
                let resource = format!("a place for the {} in front", kind(bound.packet));
                waits.add(self.name(controller, input, channel), holder, resource);
            }
        }
    }

    /// Checks Little's law on every channel, and that no credit of a link is lost.
    ///
    /// # Errors
    /// The violated law.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        self.crossbars.iter().try_for_each(|crossbar| crossbar.audit(now))?;
        let Some(links) = &self.links else { return Ok(()) };
        let channels = self.dateline_classes * (self.data_channels + usize::from(self.get_channel));
        let under_way = self.carried.as_ref().map_or(0, CarriedLinks::under_way);
        let (mut rooms, mut known) = (0, self.returning + under_way);
        for (controller, crossbar) in self.crossbars.iter().enumerate() {
            for port in 1..links.topology().ports(controller).len() as u8 {
                let Some((far, far_port)) = links.far_end(controller, port) else { continue };
                for channel in 0..channels {
                    let left = crossbar.credits_behind(self.crossbar_port(port))[channel] as u64;
                    let input = self.crossbar_port(far_port);
                    rooms += self.link_packets as u64;
                    known += left + self.crossbars[far].inside(input, channel);
                }
            }
        }
        match rooms == known {
            true => Ok(()),
            false => Err(Imbalance {
                queue: "links between controllers".to_owned(),
                law: "each place is free, taken, or being told of",
                details: format!("{known} are, of {rooms}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::config::LinksConfig;
    use crate::network::Shape;

    /// Canary: the audit finds a credit lost on a link, and one too many.
    #[test]
    fn lost_credits_are_found() {
        let mut config = Config::prototype();
        let topology = Shape::Ring { routers: 4 };
        let latency = config.pcie.latency;
        config.links = Some(LinksConfig { topology, channel_packets: 8, latency });
        let mut controllers = Controllers::new(&config, &mut Random::new(1)).unwrap();
        controllers.audit(Time::ZERO).unwrap();
        controllers.returning += 1;
        controllers.audit(Time::ZERO).unwrap_err();
        controllers.returning = 0;
        controllers.link_packets += 1;
        controllers.audit(Time::ZERO).unwrap_err();
    }
}
