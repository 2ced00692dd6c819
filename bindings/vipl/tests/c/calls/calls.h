/* Shared by the cases: checks, two connected end points, and asynchronous errors. */
#ifndef CALLS_H
#define CALLS_H

#include "example.h"
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define WANT(condition)                                                                                                   \
	do {                                                                                                              \
		if (!(condition)) {                                                                                       \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                           \
			exit(1);                                                                                          \
		}                                                                                                         \
	} while (0)
#define EXPECT(call, code)                                                                                                \
	do {                                                                                                              \
		int returned_ = (call);                                                                                   \
		if (returned_ != (code)) {                                                                                \
			fprintf(stderr, "%s:%d: %s returned %d, not %s\n", __FILE__, __LINE__, #call, returned_, #code);  \
			exit(1);                                                                                          \
		}                                                                                                         \
	} while (0)

/* A handle that was never made; an address where nothing is. */
#define BAD ((void *)(uintptr_t)0x1234560)

/* The device under test. */
extern const char *device;

/* ---- Two end points, connected --------------------------------------------------------------- */

struct pair {
	struct endpoint a, b;
};

void open_pair(struct pair *p, size_t bytes);
/* `a` waits, `b` asks. */
void connect_pair(struct pair *p);
/* Gives a VI another reliability level. */
void set_level(struct endpoint *e, VIP_RELIABILITY_LEVEL level);
VIP_VI_STATE state_of(struct endpoint *e);
void post_receive(struct endpoint *e, int number, void *bytes, size_t length);
void post_send(struct endpoint *e, int number, void *bytes, size_t length);
void sleep_ms(long ms);

/* ---- Errors that come by themselves ---------------------------------------------------------- */

/* Guards what handlers write. */
extern pthread_mutex_t told;
extern int error_count;
extern VIP_ERROR_DESCRIPTOR last_error;

/* A handler that counts; its context is &error_count. */
void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error);
/* Waits until a handler was called with `code` for `vi`. */
void want_error(VIP_VI_HANDLE vi, VIP_ERROR_CODE code);

/* ---- Cases ----------------------------------------------------------------------------------- */

void objects(void);
void misuse(void);
void messages(void);
void rdma(void);
void queues(void);
void handlers(void);
void errors(void);
void connections(void);
void openings(void);
void programs(void);
void threads(void);
void table(void);
void death(void);

#endif
