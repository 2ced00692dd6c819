// What proofs see of the blocks inside.
localparam int unsigned PlacesF = 2 ** PortWidth;
localparam int unsigned PioBits = $clog2(Depth > 1 ? Depth : 2);
localparam int unsigned DmaBits = $clog2(Landing > 1 ? Landing : 2);

logic [Words-1:0][Width-1:0] f_data;
logic [Words-1:0][TicketWidth+AddressWidth:0] f_links;
logic [PioBits:0] f_pio_fresh, f_pio_written, f_pio_read;
logic [DmaBits:0] f_dma_fresh, f_dma_written, f_dma_read;
logic [2**PioBits-1:0][AddressWidth-1:0] f_pio_words;
logic [2**DmaBits-1:0][AddressWidth-1:0] f_dma_words;
logic [2*PlacesF-1:0][AddressWidth-1:0] f_tails;
logic [2*PlacesF-1:0][AddressWidth:0] f_heads;
logic [PlacesF-1:0][TicketWidth-1:0] f_rung, f_left, f_tickets;
logic [PlacesF-1:0] f_eligible, f_by_dma;
