/* A small message-passing layer over VIPL: ranks, tags, collectives.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * VIA needs a posted receive for each message before it arrives. So a short message costs a credit,
 * which the receiver gives back; a long message goes by RDMA write once the receiver has named the
 * place. */
#ifndef MP_H
#define MP_H

#include <stddef.h>

#define MP_ANY (-1)
#define MP_RANKS 16

/* Connects `count` ranks. Rank r opens `device` and is reachable as `host`; both contain one %d for
 * the rank. */
void mp_open(int rank, int count, const char *device, const char *host);
void mp_close(void);

/* Returns when the bytes may be used again. Messages between two ranks with one tag arrive in
 * order. */
void mp_send(int to, int tag, const void *bytes, size_t length);
/* Receives, and returns the length. `source` and `its_tag`, if not NULL, get the sender and its
 * tag. A message longer than `room` ends the program. */
size_t mp_receive(int from, int tag, void *bytes, size_t room, int *source, int *its_tag);

void mp_barrier(void);
void mp_broadcast(int root, void *bytes, size_t length);
/* Every rank gets the sums. */
void mp_sum(double *values, int count);

#endif
