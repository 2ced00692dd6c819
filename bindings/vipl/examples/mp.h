/* A small message-passing layer over VIPL: ranks, tags, collectives. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What it has to add to VIA is what every such layer added: VIA wants a receive for each message before it comes, so short messages are
 * paid for with credits that the receiver gives back; long ones are written by RDMA once the receiver has named the place. */
#ifndef MP_H
#define MP_H

#include <stddef.h>

#define MP_ANY (-1)
#define MP_RANKS 16

/* Connects `count` ranks. Rank r opens the device `device` and is found as host `host`; both have one %d, for the rank. */
void mp_open(int rank, int count, const char *device, const char *host);
void mp_close(void);

/* Sends when the bytes may be used again; messages between two ranks with one tag are received in order. */
void mp_send(int to, int tag, const void *bytes, size_t length);
/* Receives; returns the length, and if asked who sent and with which tag. A message longer than `room` ends the program. */
size_t mp_receive(int from, int tag, void *bytes, size_t room, int *source, int *its_tag);

void mp_barrier(void);
void mp_broadcast(int root, void *bytes, size_t length);
/* Everybody gets the sums. */
void mp_sum(double *values, int count);

#endif
