/* The command line of the examples: one side in a process, or both in the threads of one (as the
 * model needs).
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "example.h"
#include <pthread.h>

static struct sides the_sides;
static const char *the_device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t known = PTHREAD_COND_INITIALIZER;
static char server_host[64];

static void print_host(const char *host)
{
	printf("host %s\n", host);
	fflush(stdout);
}

static void tell_host(const char *host)
{
	pthread_mutex_lock(&lock);
	snprintf(server_host, sizeof server_host, "%s", host);
	pthread_cond_signal(&known);
	pthread_mutex_unlock(&lock);
}

static void *server_thread(void *unused)
{
	(void)unused;
	the_sides.server(the_device, tell_host);
	return NULL;
}

int run_sides(int argc, char **argv, struct sides sides)
{
	pthread_t server;

	the_sides = sides;
	the_device = argc > 2 ? argv[2] : NULL;
	if (argc >= 2 && strcmp(argv[1], "server") == 0) {
		sides.server(the_device, print_host);
	} else if (argc == 4 && strcmp(argv[1], "client") == 0) {
		sides.client(the_device, argv[3]);
	} else if (argc >= 2 && strcmp(argv[1], "both") == 0) {
		if (pthread_create(&server, NULL, server_thread, NULL))
			return 1;
		pthread_mutex_lock(&lock);
		while (!server_host[0])
			pthread_cond_wait(&known, &lock);
		pthread_mutex_unlock(&lock);
		sides.client(the_device, server_host);
		pthread_join(server, NULL);
	} else {
		fprintf(stderr, "usage: %s server|both [DEVICE]\n       %s client DEVICE HOST\n", argv[0], argv[0]);
		return 2;
	}
	return 0;
}
