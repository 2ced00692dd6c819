/* Threads and processes that share the library; the effects of a fork and of a kill. */
#include "calls.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct pair shared;
#define THREADS 4
static VIP_VI_HANDLE near_vi[THREADS], far_vi[THREADS];
static int posted_again[THREADS];

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *echo_thread(void *number)
{
	int i = (int)(intptr_t)number;
	VIP_DESCRIPTOR *done;
	for (int round = 0; round < 100; round++) {
		MUST(VipRecvWait(far_vi[i], TIMEOUT_MS, &done));
		WANT(done == &shared.b.descriptors[i]);
		WANT(shared.b.receive[64 * i] == (unsigned char)(round + i));
		done->CS.Status = 0;
		MUST(VipPostRecv(far_vi[i], done, shared.b.handle));
		__atomic_store_n(&posted_again[i], round + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *send_thread(void *number)
{
	int i = (int)(intptr_t)number;
	VIP_DESCRIPTOR *done;
	for (int round = 0; round < 100; round++) {
		VIP_DESCRIPTOR *d = fill(&shared.a, i, shared.a.send + 64 * i, 8);
		shared.a.send[64 * i] = round + i;
		/* A message that overtakes the next receive would end the connection. */
		while (__atomic_load_n(&posted_again[i], __ATOMIC_ACQUIRE) < round)
			sleep_ms(1);
		MUST(VipPostSend(near_vi[i], d, shared.a.handle));
		MUST(VipSendWait(near_vi[i], TIMEOUT_MS, &done));
	}
	return NULL;
}

static void *waiting_thread(void *vi)
{
	VIP_DESCRIPTOR *done;
	double before = cpu_seconds();
	EXPECT(VipRecvWait(vi, 400, &done), VIP_TIMEOUT);
	/* The thread slept: a spinning thread would have used most of 400 ms. */
	WANT(cpu_seconds() - before < 0.2);
	return NULL;
}

static void *interrupted_thread(void *vi)
{
	VIP_DESCRIPTOR *done;
	EXPECT(VipRecvWait(vi, VIP_INFINITE, &done), VIP_INVALID_PARAMETER);
	return NULL;
}

/* Several threads wait at one NIC, each at its VI. Waiting sleeps, and closing ends all waits. */
void threads(void)
{
	pthread_t senders[THREADS], receivers[THREADS], waiter, last;
	VIP_VI_ATTRIBUTES attributes = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, NULL, VIP_FALSE, VIP_FALSE };

	open_pair(&shared, 4096);
	for (int i = 0; i < THREADS; i++) {
		attributes.Ptag = shared.a.ptag;
		MUST(VipCreateVi(shared.a.nic, &attributes, NULL, NULL, &near_vi[i]));
		attributes.Ptag = shared.b.ptag;
		MUST(VipCreateVi(shared.b.nic, &attributes, NULL, NULL, &far_vi[i]));
		shared.a.vi = near_vi[i];
		shared.b.vi = far_vi[i];
		post_receive(&shared.b, i, shared.b.receive + 64 * i, 64);
		connect_pair(&shared);
	}
	for (int i = 0; i < THREADS; i++) {
		WANT(!pthread_create(&receivers[i], NULL, echo_thread, (void *)(intptr_t)i));
		WANT(!pthread_create(&senders[i], NULL, send_thread, (void *)(intptr_t)i));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(senders[i], NULL);
		pthread_join(receivers[i], NULL);
	}
	WANT(!pthread_create(&waiter, NULL, waiting_thread, near_vi[0]));
	pthread_join(waiter, NULL);
	WANT(!pthread_create(&last, NULL, interrupted_thread, near_vi[1]));
	sleep_ms(50);
	MUST(VipCloseNic(shared.a.nic));
	pthread_join(last, NULL);
	MUST(VipCloseNic(shared.b.nic));
}

/* The table of registered memory is mapped read-only. A forked child is told that the parent's NIC
 * is not its own. */
void table(void)
{
	struct pair p;
	char line[512];
	unsigned char *start = NULL;
	int mappings = 0, status;
	FILE *maps;

	open_pair(&p, 4096);
	maps = fopen("/proc/self/maps", "r");
	WANT(maps);
	while (fgets(line, sizeof line, maps)) {
		unsigned long from;
		char rights[8];
		if (strstr(line, "bellwire-rmmt") && sscanf(line, "%lx-%*x %7s", &from, rights) == 2) {
			WANT(strcmp(rights, "r--s") == 0);
			start = (unsigned char *)from;
			mappings++;
		}
	}
	fclose(maps);
	WANT(mappings == 2); /* one for each NIC */
	pid_t child = fork();
	if (child == 0) {
		*(volatile unsigned char *)start = 1;
		_exit(0);
	}
	WANT(waitpid(child, &status, 0) == child);
	WANT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	child = fork();
	if (child == 0) {
		VIP_DESCRIPTOR *done;
		EXPECT(VipRecvDone(p.a.vi, &done), VIP_INVALID_PARAMETER);
		EXPECT(VipCloseNic(p.a.nic), VIP_INVALID_PARAMETER);
		_exit(0);
	}
	WANT(waitpid(child, &status, 0) == child);
	WANT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
}

/* A child, forked while its parent has a NIC, opens its own. When it is killed, the parent is told,
 * and its posted descriptors come back. */
void death(void)
{
	struct endpoint e, child;
	VIP_DESCRIPTOR *done;
	char name[64];
	int status;

	open_endpoint(&e, device, 4096);
	MUST(VipErrorCallback(e.nic, &error_count, on_error));
	post_receive(&e, 0, e.receive, 64);
	post_receive(&e, 1, e.receive, 64);
	own_name(&e, name, sizeof name);
	pid_t pid = fork();
	if (pid == 0) {
		open_endpoint(&child, device, 4096);
		call(&child, name, "calls");
		post_send(&child, 0, child.send, 8);
		MUST(VipSendWait(child.vi, TIMEOUT_MS, &done));
		raise(SIGKILL);
	}
	serve(&e, "calls");
	MUST(VipRecvWait(e.vi, TIMEOUT_MS, &done)); /* what the child sent before has arrived */
	want_error(e.vi, VIP_ERROR_CONN_LOST);
	WANT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	EXPECT(VipRecvWait(e.vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
	WANT(done == &e.descriptors[1] && (done->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_DESC_FLUSHED_ERROR);
	WANT(state_of(&e) == VIP_STATE_ERROR);
	close_endpoint(&e);
}
