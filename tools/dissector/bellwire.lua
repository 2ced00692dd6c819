-- Wireshark dissector of Bellwire's frames (PROTOCOL.md; crates/wire/src/frame).
--
-- Use it for one run:   tshark -X lua_script:tools/dissector/bellwire.lua -r capture.pcapng
-- Install it:           copy it into the folder that Wireshark shows under
--                       About > Folders > Personal Lua Plugins
--
-- Ethernet frames of type 0x88B5 and UDP ports 49664 to 49919 are Bellwire's if they begin with
-- 0xB1.

local bellwire = Proto("bellwire", "Bellwire")

local ETHERTYPE, UDP_PORT_BASE = 0x88b5, 49664
local MAGIC, HEADER, CHECK, OVERHEAD = 0xb1, 32, 4, 36

local kinds = {
    [1] = "Open", [2] = "Accept", [3] = "Refuse", [4] = "Data", [5] = "Acknowledge",
    [6] = "Close", [7] = "Unknown", [8] = "Seek", [9] = "Here", [10] = "Challenge",
}
local section_kinds = {
    [1] = "Requests", [2] = "Responses", [3] = "News", [4] = "Received", [5] = "Part",
}
local packet_kinds = {
    [1] = "Send", [2] = "Offer", [3] = "Grant", [4] = "Data", [5] = "Done", [6] = "Put", [7] = "Get",
    [8] = "Atomic", [9] = "Event", [10] = "Connect", [11] = "Accept", [12] = "Reject", [13] = "Disconnect",
}
local news_kinds = { [0] = "closed", [1] = "open", [2] = "stopped", [3] = "tell me yours" }
local refusals = { [1] = "no common version", [2] = "a demanded feature is missing", [3] = "not here", [4] = "full", [5] = "the node is elsewhere" }
local closings = { [1] = "done", [2] = "the protocol was broken" }

local f = {}
local function field(name, make, text, ...)
    f[name] = make("bellwire." .. name, text, ...)
end

field("kind", ProtoField.uint8, "Kind", base.DEC, kinds, 0x0f)
field("flags.answer", ProtoField.bool, "Acknowledge at once", 8, nil, 0x10)
field("flags.lose", ProtoField.bool, "An earlier frame is missing (LOSE)", 8, nil, 0x20)
field("function", ProtoField.uint8, "Destination function")
field("from", ProtoField.uint8, "Source function")
field("length", ProtoField.uint16, "Length")
field("held_back", ProtoField.uint16, "Acknowledgement held back (64 ns)")
field("token", ProtoField.uint64, "Token", base.HEX)
field("sequence", ProtoField.uint32, "Sequence number")
field("acknowledged", ProtoField.uint32, "Expected next")
field("credit.requests", ProtoField.uint32, "Credit of requests")
field("credit.responses", ProtoField.uint32, "Credit of responses")
field("check", ProtoField.uint32, "CRC-32C", base.HEX)
field("check.status", ProtoField.uint8, "CRC-32C status", base.DEC, { [0] = "wrong", [1] = "right" })

field("section", ProtoField.uint8, "Section", base.DEC, section_kinds)
field("section.continues", ProtoField.bool, "The first packet began in an earlier frame", 8, nil, 0x01)
field("section.unfinished", ProtoField.bool, "The last packet ends in a later frame", 8, nil, 0x02)
field("section.length", ProtoField.uint16, "Section length")
field("packet", ProtoField.uint8, "Packet", base.DEC, packet_kinds)
field("packet.shape", ProtoField.uint8, "Shape", base.HEX)
field("packet.flags", ProtoField.uint8, "Flags", base.HEX)
field("packet.aux", ProtoField.uint16, "Aux", base.HEX)
field("packet.length", ProtoField.uint32, "Payload bytes")
field("packet.destination", ProtoField.uint32, "Destination queue pair")
field("packet.source", ProtoField.uint32, "Source queue pair")
field("packet.argument", ProtoField.uint64, "Argument", base.HEX)
field("packet.payload", ProtoField.bytes, "Payload")
field("packet.piece", ProtoField.bytes, "Piece of a packet")
field("news", ProtoField.uint8, "News", base.DEC, news_kinds)
field("news.queue_pair", ProtoField.uint32, "Queue pair")
field("received.repeated", ProtoField.uint32, "Frames that came more than once")
field("received.bitmap", ProtoField.bytes, "Frames that came early")
field("part.offset", ProtoField.uint16, "Offset of the part")
field("part.total", ProtoField.uint16, "Bytes of the whole")
field("part.bytes", ProtoField.bytes, "Part")

field("open.version_low", ProtoField.uint8, "Lowest version")
field("open.version_high", ProtoField.uint8, "Highest version")
field("open.version", ProtoField.uint8, "Chosen version")
field("open.demanded", ProtoField.uint32, "Features demanded", base.HEX)
field("open.features", ProtoField.uint32, "Features", base.HEX)
field("open.packet_bytes", ProtoField.uint32, "Longest packet")
field("open.from_node", ProtoField.uint32, "Node that sends")
field("open.to_node", ProtoField.uint32, "Node that is meant")
field("open.from_function", ProtoField.uint8, "Function that sends")
field("open.to_function", ProtoField.uint8, "Function that is meant")
field("open.incarnation", ProtoField.uint64, "Incarnation")
field("open.opening", ProtoField.uint64, "Opening")
field("open.token", ProtoField.uint64, "Token for frames to the sender", base.HEX)
field("open.peer_incarnation", ProtoField.uint64, "Incarnation of the peer")
field("open.window", ProtoField.uint16, "Window (frames)")
field("open.frame_bytes", ProtoField.uint16, "Longest frame")
field("refuse.reason", ProtoField.uint8, "Reason", base.DEC, refusals)
field("refuse.version_low", ProtoField.uint8, "Lowest version")
field("refuse.version_high", ProtoField.uint8, "Highest version")
field("refuse.features", ProtoField.uint32, "Features", base.HEX)
field("refuse.token", ProtoField.uint64, "Token of the Open", base.HEX)
field("close.reason", ProtoField.uint8, "Reason", base.DEC, closings)
field("seek.from_node", ProtoField.uint32, "Node that sends")
field("seek.to_node", ProtoField.uint32, "Node that is meant")
field("seek.frame_bytes", ProtoField.uint32, "Longest frame")
field("seek.nonce", ProtoField.uint64, "Nonce", base.HEX)
field("challenge.cookie", ProtoField.uint64, "Cookie", base.HEX)

local all = {}
for _, entry in pairs(f) do
    all[#all + 1] = entry
end
bellwire.fields = all

local damaged = ProtoExpert.new("bellwire.damaged", "The check value is wrong", expert.group.CHECKSUM, expert.severity.ERROR)
local malformed = ProtoExpert.new("bellwire.malformed", "The frame breaks the format", expert.group.MALFORMED, expert.severity.ERROR)
local lose = ProtoExpert.new("bellwire.lose", "An earlier frame is missing", expert.group.SEQUENCE, expert.severity.NOTE)
bellwire.experts = { damaged, malformed, lose }

-- CRC-32C (Castagnoli, reflected), one byte at a time.
local table_of_crc = {}
for index = 0, 255 do
    local value = index
    for _ = 1, 8 do
        local carry = bit.band(value, 1) == 1
        value = bit.rshift(value, 1)
        if carry then
            value = bit.bxor(value, 0x82f63b78)
        end
    end
    table_of_crc[index] = value
end

local function crc32c(bytes)
    local value = 0xffffffff
    for index = 0, bytes:len() - 1 do
        local place = bit.band(bit.bxor(value, bytes:get_index(index)), 0xff)
        value = bit.bxor(bit.rshift(value, 8), table_of_crc[place])
    end
    -- The library's numbers have a sign.
    return bit.bxor(value, 0xffffffff) % 0x100000000
end

-- Adds one packet's header and payload to the tree. Returns its end, or nil if it goes on after
-- `stop`.
local function packet(buffer, at, stop, tree)
    if stop - at < 2 then return nil end
    local shape = buffer(at + 1, 1):uint()
    local has_flags, has_aux = bit.band(shape, 1), bit.band(bit.rshift(shape, 1), 1)
    local length_bytes = ({ [0] = 0, 1, 2, 4 })[bit.band(bit.rshift(shape, 2), 3)]
    local pair_bytes = ({ [0] = 0, 1, 2, 4 })[bit.band(bit.rshift(shape, 4), 3)]
    local argument_bytes = ({ [0] = 0, 2, 4, 8 })[bit.rshift(shape, 6)]
    local header = 2 + has_flags + 2 * has_aux + length_bytes + 2 * pair_bytes + argument_bytes
    if stop - at < header then return nil end
    local length_at = at + 2 + has_flags + 2 * has_aux
    local length = length_bytes > 0 and buffer(length_at, length_bytes):le_uint() or 0
    if stop - at < header + length then return nil end

    local branch = tree:add(f["packet"], buffer(at, 1))
    branch:set_len(header + length)
    branch:add(f["packet.shape"], buffer(at + 1, 1))
    if has_flags == 1 then branch:add(f["packet.flags"], buffer(at + 2, 1)) end
    if has_aux == 1 then branch:add_le(f["packet.aux"], buffer(at + 2 + has_flags, 2)) end
    if length_bytes > 0 then
        branch:add_le(f["packet.length"], buffer(length_at, length_bytes))
    else
        branch:add(f["packet.length"], 0):set_generated()
    end
    local next_at = length_at + length_bytes
    if pair_bytes > 0 then
        branch:add_le(f["packet.destination"], buffer(next_at, pair_bytes))
        branch:add_le(f["packet.source"], buffer(next_at + pair_bytes, pair_bytes))
    end
    next_at = next_at + 2 * pair_bytes
    if argument_bytes > 0 then branch:add_le(f["packet.argument"], buffer(next_at, argument_bytes)) end
    if length > 0 then branch:add(f["packet.payload"], buffer(at + header, length)) end
    return at + header + length
end

local function packets(buffer, at, stop, flags, branch)
    -- A packet that began in an earlier frame has no header here. Only that frame tells its end.
    if bit.band(flags, 1) == 1 then
        branch:add(f["packet.piece"], buffer(at, stop - at))
        return 0
    end
    local count = 0
    while at < stop do
        local past = packet(buffer, at, stop, branch)
        if not past then
            branch:add(f["packet.piece"], buffer(at, stop - at))
            return count
        end
        at, count = past, count + 1
    end
    return count
end

-- Adds the sections; returns what to say of them in the list of frames.
local function sections(buffer, at, stop, tree)
    local says = {}
    while at < stop do
        if stop - at < 4 then
            tree:add_proto_expert_info(malformed)
            break
        end
        local kind, flags = buffer(at, 1):uint(), buffer(at + 1, 1):uint()
        local length = buffer(at + 2, 2):le_uint()
        local past = at + 4 + length
        if past > stop or not section_kinds[kind] then
            tree:add_proto_expert_info(malformed)
            break
        end
        local branch = tree:add(f["section"], buffer(at, 1))
        branch:set_len(4 + length)
        branch:add(f["section.continues"], buffer(at + 1, 1))
        branch:add(f["section.unfinished"], buffer(at + 1, 1))
        branch:add_le(f["section.length"], buffer(at + 2, 2))
        local inside = at + 4
        if kind <= 2 then
            local count = packets(buffer, inside, past, flags, branch)
            says[#says + 1] = string.format("%s: %d packets, %d bytes", section_kinds[kind], count, length)
        elseif kind == 3 then
            for place = inside, past - 5, 5 do
                branch:add(f["news"], buffer(place, 1))
                branch:add_le(f["news.queue_pair"], buffer(place + 1, 4))
            end
            says[#says + 1] = "News"
        elseif kind == 4 and length >= 4 then
            branch:add_le(f["received.repeated"], buffer(inside, 4))
            if length > 4 then branch:add(f["received.bitmap"], buffer(inside + 4, length - 4)) end
            says[#says + 1] = "Received"
        elseif kind == 5 and length >= 4 then
            branch:add_le(f["part.offset"], buffer(inside, 2))
            branch:add_le(f["part.total"], buffer(inside + 2, 2))
            if length > 4 then branch:add(f["part.bytes"], buffer(inside + 4, length - 4)) end
            says[#says + 1] = "Part"
        end
        at = past
    end
    return table.concat(says, ", ")
end

-- Bodies of fixed length: what is where.
local bodies = {
    open = {
        { "open.version_low", 0, 1 }, { "open.version_high", 1, 1 }, { "open.version", 2, 1 },
        { "open.demanded", 4, 4 }, { "open.features", 8, 4 }, { "open.packet_bytes", 12, 4 },
        { "open.from_node", 16, 4 }, { "open.to_node", 20, 4 },
        { "open.from_function", 24, 1 }, { "open.to_function", 25, 1 },
        { "open.incarnation", 32, 8 }, { "open.opening", 40, 8 }, { "open.token", 48, 8 },
        { "open.peer_incarnation", 56, 8 }, { "open.window", 64, 2 }, { "open.frame_bytes", 66, 2 },
    },
    refuse = {
        { "refuse.reason", 0, 1 }, { "refuse.version_low", 1, 1 }, { "refuse.version_high", 2, 1 },
        { "refuse.features", 4, 4 }, { "refuse.token", 8, 8 },
    },
    close = { { "close.reason", 0, 1 } },
    seek = {
        { "seek.from_node", 0, 4 }, { "seek.to_node", 4, 4 }, { "seek.frame_bytes", 8, 4 }, { "seek.nonce", 16, 8 },
    },
    challenge = { { "challenge.cookie", 0, 8 } },
}
local body_of = {
    [1] = "open", [2] = "open", [3] = "refuse", [6] = "close", [8] = "seek", [9] = "seek", [10] = "challenge",
}
local body_bytes = { open = 72, refuse = 16, close = 1, seek = 24, challenge = 8 }

function bellwire.dissector(buffer, pinfo, root)
    if buffer:len() < OVERHEAD or buffer(0, 1):uint() ~= MAGIC then return 0 end
    local length = buffer(4, 2):le_uint()
    if length < OVERHEAD or length > buffer:len() then return 0 end
    pinfo.cols.protocol = "Bellwire"

    local kind, flags = bit.band(buffer(1, 1):uint(), 0x0f), bit.rshift(buffer(1, 1):uint(), 4)
    local tree = root:add(bellwire, buffer(0, length))
    tree:add(f["kind"], buffer(1, 1))
    tree:add(f["flags.answer"], buffer(1, 1))
    tree:add(f["flags.lose"], buffer(1, 1))
    tree:add(f["function"], buffer(2, 1))
    tree:add(f["from"], buffer(3, 1))
    tree:add_le(f["length"], buffer(4, 2))
    tree:add_le(f["held_back"], buffer(6, 2))
    tree:add_le(f["token"], buffer(8, 8))
    tree:add_le(f["sequence"], buffer(16, 4))
    tree:add_le(f["acknowledged"], buffer(20, 4))
    tree:add_le(f["credit.requests"], buffer(24, 4))
    tree:add_le(f["credit.responses"], buffer(28, 4))

    local stop, says = length - CHECK, ""
    local body = body_of[kind]
    if kind == 4 or kind == 5 then
        says = sections(buffer, HEADER, stop, tree)
    elseif body and stop - HEADER == body_bytes[body] then
        for _, entry in ipairs(bodies[body]) do
            tree:add_le(f[entry[1]], buffer(HEADER + entry[2], entry[3]))
        end
    elseif body then
        tree:add_proto_expert_info(malformed)
    end
    if bit.band(flags, 2) ~= 0 then tree:add_proto_expert_info(lose) end

    local check = buffer(stop, CHECK)
    tree:add_le(f["check"], check)
    local is_right = check:le_uint() == crc32c(buffer(0, stop):bytes())
    tree:add(f["check.status"], is_right and 1 or 0):set_generated()
    if not is_right then tree:add_proto_expert_info(damaged) end

    pinfo.cols.info = string.format(
        "%s seq=%u ack=%u%s%s%s", kinds[kind] or "?", buffer(16, 4):le_uint(), buffer(20, 4):le_uint(),
        bit.band(flags, 2) ~= 0 and " LOSE" or "", says ~= "" and " " .. says or "", is_right and "" or " [damaged]")
    return length
end

DissectorTable.get("ethertype"):add(ETHERTYPE, bellwire)
for port = UDP_PORT_BASE, UDP_PORT_BASE + 255 do
    DissectorTable.get("udp.port"):add(port, bellwire)
end
