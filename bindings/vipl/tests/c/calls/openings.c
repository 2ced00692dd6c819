/* Several openings of one device, in one program and in two: discriminators tell them apart,
 * whichever opening a client names. */
#include "calls.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct wait {
	struct endpoint *endpoint;
	const char *discriminator;
	long after_ms;
	int wanted;
};

/* Waits as `wanted` says, and accepts. */
static void *wait_thread(void *argument)
{
	struct wait *wait = argument;
	struct endpoint *e = wait->endpoint;
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE connection;
	char name[64];

	own_name(e, name, sizeof name);
	make_address(e->nic, name, wait->discriminator, &local);
	sleep_ms(wait->after_ms);
	EXPECT(VipConnectWait(e->nic, &local.net, TIMEOUT_MS, &remote.net, &theirs, &connection), wait->wanted);
	if (wait->wanted == VIP_SUCCESS)
		MUST(VipConnectAccept(connection, e->vi));
	return NULL;
}

static VIP_RETURN ask(struct endpoint *e, const char *host, const char *discriminator, VIP_ULONG timeout_ms)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;

	make_address(e->nic, host, "", &local);
	make_address(e->nic, host, discriminator, &remote);
	return VipConnectRequest(e->vi, &local.net, &remote.net, timeout_ms, &theirs);
}

/* Sends one message, and ends the connection of both. */
static void use_and_end(struct endpoint *from, struct endpoint *to)
{
	VIP_DESCRIPTOR *done;

	post_receive(to, 0, to->receive, 8);
	post_send(from, 0, from->send, 8);
	MUST(VipRecvWait(to->vi, TIMEOUT_MS, &done));
	MUST(VipSendWait(from->vi, TIMEOUT_MS, &done));
	MUST(VipDisconnect(from->vi));
	while (state_of(to) == VIP_STATE_CONNECTED)
		sleep_ms(1);
	MUST(VipDisconnect(to->vi));
}

/* A client names the host by its first opening; the server waits at the second. */
void openings(void)
{
	struct endpoint first, second, client;
	char host[64], own[64];
	pthread_t server;

	open_endpoint(&first, device, 4096);
	open_endpoint(&second, device, 4096);
	open_endpoint(&client, device, 4096);
	own_name(&first, host, sizeof host);
	own_name(&second, own, sizeof own);

	/* The wait begins before or after the request. No call uses the first opening. */
	for (int round = 0; round < 6; round++) {
		struct wait wait = { &second, "second", round % 2 ? 0 : 30, VIP_SUCCESS };
		WANT(!pthread_create(&server, NULL, wait_thread, &wait));
		sleep_ms(round % 2 ? 30 : 0);
		EXPECT(ask(&client, round < 4 ? host : own, "second", TIMEOUT_MS), VIP_SUCCESS);
		pthread_join(server, NULL);
		use_and_end(&client, &second);
	}

	/* A request without a waiter is not redirected: neither to another end point's waiter nor to one
	 * that has passed. */
	EXPECT(ask(&client, host, "second", 100), VIP_TIMEOUT);

	/* Both wait, each for its own discriminator. */
	struct wait waits[2] = { { &first, "one", 0, VIP_SUCCESS }, { &second, "two", 0, VIP_SUCCESS } };
	pthread_t servers[2];
	for (int i = 0; i < 2; i++)
		WANT(!pthread_create(&servers[i], NULL, wait_thread, &waits[i]));
	EXPECT(ask(&client, own, "one", TIMEOUT_MS), VIP_SUCCESS);
	pthread_join(servers[0], NULL);
	use_and_end(&client, &first);
	EXPECT(ask(&client, host, "two", TIMEOUT_MS), VIP_SUCCESS);
	pthread_join(servers[1], NULL);
	use_and_end(&client, &second);

	/* Peers at later openings that name each other by the host. */
	for (int round = 0; round < 4; round++) {
		struct endpoint *early = round % 2 ? &second : &client, *late = round % 2 ? &client : &second;
		union address a, b;
		VIP_VI_ATTRIBUTES theirs;
		make_address(early->nic, host, round < 2 ? "left" : "right", &a);
		make_address(late->nic, host, round < 2 ? "right" : "left", &b);
		MUST(VipConnectPeerRequest(early->vi, &a.net, &b.net, TIMEOUT_MS));
		sleep_ms(10 * round);
		MUST(VipConnectPeerRequest(late->vi, &b.net, &a.net, TIMEOUT_MS));
		MUST(VipConnectPeerWait(early->vi, &theirs));
		MUST(VipConnectPeerWait(late->vi, &theirs));
		use_and_end(early, late);
	}

	/* The second opening is closed while it waits: clients no longer find it. */
	struct wait broken = { &second, "broken", 0, VIP_INVALID_PARAMETER };
	WANT(!pthread_create(&server, NULL, wait_thread, &broken));
	sleep_ms(50);
	MUST(VipCloseNic(second.nic));
	pthread_join(server, NULL);
	EXPECT(ask(&client, host, "broken", 200), VIP_TIMEOUT);

	/* The first opening is closed and reopened while another waits. One that begins to wait behind
	 * the closing is found: on a busy machine its thread may be as late as that, and gets longer. */
	open_endpoint(&second, device, 4096);
	struct wait lasting = { &second, "lasting", 0, VIP_SUCCESS };
	for (int before = 20;; before *= 2) {
		WANT(!pthread_create(&server, NULL, wait_thread, &lasting));
		sleep_ms(before);
		MUST(VipCloseNic(first.nic));
		VIP_RETURN found = ask(&client, host, "lasting", 200);
		if (found == VIP_TIMEOUT)
			break;
		EXPECT(found, VIP_SUCCESS);
		WANT(before < 10000);
		pthread_join(server, NULL);
		use_and_end(&client, &second);
		open_endpoint(&first, device, 4096);
	}
	open_endpoint(&first, device, 4096);
	own_name(&first, own, sizeof own);
	WANT(strcmp(own, host) == 0);
	EXPECT(ask(&client, host, "lasting", TIMEOUT_MS), VIP_SUCCESS);
	pthread_join(server, NULL);
	use_and_end(&client, &second);
	MUST(VipCloseNic(second.nic));
	MUST(VipCloseNic(first.nic));
	MUST(VipCloseNic(client.nic));
}

/* Two programs of one host. The program with the first opening is idle; the other one waits. Once
 * it is killed, clients find nobody. Over shared memory the client uses the host's name, because
 * each process has a number of its own. */
void programs(void)
{
	struct endpoint first, client, other;
	char host[64], byte;
	int ready[2], status;
	pid_t pid;

	open_endpoint(&first, device, 4096);
	own_name(&first, host, sizeof host);
	if (strncmp(device, "shm", 3) == 0)
		strcpy(host, "localhost");
	WANT(pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		VIP_DESCRIPTOR *done;
		open_endpoint(&other, device, 4096);
		post_receive(&other, 0, other.receive, 8);
		serve(&other, "other program");
		MUST(VipRecvWait(other.vi, TIMEOUT_MS, &done));
		WANT(write(ready[1], "1", 1) == 1);
		serve(&other, "never asked");
		exit(1);
	}
	open_endpoint(&client, device, 4096);
	MUST(ask(&client, host, "other program", TIMEOUT_MS));
	post_send(&client, 0, client.send, 8);
	WANT(read(ready[0], &byte, 1) == 1);
	MUST(VipDisconnect(client.vi));
	sleep_ms(20); /* it waits again */
	kill(pid, SIGKILL);
	WANT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	EXPECT(ask(&client, host, "never asked", 200), VIP_TIMEOUT);
	MUST(VipCloseNic(first.nic));
	MUST(VipCloseNic(client.nic));
}
