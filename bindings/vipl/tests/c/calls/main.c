/* Every function of the library from C, used correctly and wrongly: one file for each object.
 * Usage: calls CASE DEVICE */
#include "calls.h"

const char *device;

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "objects", objects },     { "misuse", misuse },           { "messages", messages }, { "rdma", rdma },
		{ "queues", queues },       { "handlers", handlers },       { "errors", errors },
		{ "connections", connections }, { "threads", threads },     { "table", table },       { "death", death },
		{ "openings", openings },   { "programs", programs },
	};

	device = argc == 3 ? argv[2] : "shm:calls";
	for (size_t i = 0; argc >= 2 && i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: %s CASE [DEVICE]\n", argv[0]);
	return 2;
}

/* ---- Two end points, connected --------------------------------------------------------------- */

static void *serve_thread(void *endpoint)
{
	serve(endpoint, "calls");
	return NULL;
}

void connect_pair(struct pair *p)
{
	pthread_t server;
	char name[64];
	own_name(&p->a, name, sizeof name);
	WANT(!pthread_create(&server, NULL, serve_thread, &p->a));
	call(&p->b, name, "calls");
	pthread_join(server, NULL);
}

void open_pair(struct pair *p, size_t bytes)
{
	open_endpoint(&p->a, device, bytes);
	open_endpoint(&p->b, device, bytes);
}

void set_level(struct endpoint *e, VIP_RELIABILITY_LEVEL level)
{
	VIP_VI_ATTRIBUTES attributes;
	VIP_VI_STATE state;
	VIP_BOOLEAN sends, receives;
	MUST(VipQueryVi(e->vi, &state, &attributes, &sends, &receives));
	attributes.ReliabilityLevel = level;
	if (level == VIP_SERVICE_UNRELIABLE)
		attributes.EnableRdmaRead = VIP_FALSE;
	MUST(VipSetViAttributes(e->vi, &attributes));
}

VIP_VI_STATE state_of(struct endpoint *e)
{
	VIP_VI_ATTRIBUTES attributes;
	VIP_VI_STATE state;
	VIP_BOOLEAN sends, receives;
	MUST(VipQueryVi(e->vi, &state, &attributes, &sends, &receives));
	return state;
}

void post_receive(struct endpoint *e, int number, void *bytes, size_t length)
{
	MUST(VipPostRecv(e->vi, fill(e, number, bytes, length), e->handle));
}

void post_send(struct endpoint *e, int number, void *bytes, size_t length)
{
	MUST(VipPostSend(e->vi, fill(e, number, bytes, length), e->handle));
}

void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

/* ---- Errors that come by themselves ---------------------------------------------------------- */

pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER;
int error_count;
VIP_ERROR_DESCRIPTOR last_error;

void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	pthread_mutex_lock(&told);
	WANT(context == (void *)&error_count);
	last_error = *error;
	error_count++;
	pthread_mutex_unlock(&told);
}

void want_error(VIP_VI_HANDLE vi, VIP_ERROR_CODE code)
{
	for (int waited = 0; waited < 20000; waited += 5) {
		pthread_mutex_lock(&told);
		if (error_count > 0 && last_error.ViHandle == vi && last_error.ErrorCode == code) {
			pthread_mutex_unlock(&told);
			return;
		}
		pthread_mutex_unlock(&told);
		sleep_ms(5);
	}
	fprintf(stderr, "no error %d (%d told, the last %d)\n", code, error_count, last_error.ErrorCode);
	exit(1);
}
