/* Connected endpoints between two processes: a refused request, an accepted one, one to nobody, an
 * orderly end and a sudden one. Prints "good", or the fault. */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <sys/wait.h>

static struct fi_info *hints, *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_ep *ep;
static char in[100000], out[100000];

/* The next event, which must be about `fid` and carry `words`; returns its info, if it has one. */
static struct fi_info *event(uint32_t wanted, void *fid, const char *words, int line)
{
	static char room[sizeof(struct fi_eq_cm_entry) + 256];
	struct fi_eq_cm_entry entry;
	uint32_t event;
	ssize_t got = fi_eq_sread(eq, &event, room, sizeof room, 30000, 0);
	must(got, "an event", line);
	memcpy(&entry, room, sizeof entry);
	same(event, wanted, "the event", line);
	same(entry.fid == fid, 1, "what it is about", line);
	same(got, sizeof entry + strlen(words), "its length", line);
	SAME(memcmp(room + sizeof entry, words, strlen(words)), 0);
	return entry.info;
}

#define next_event(wanted, fid, words) event(wanted, fid, words, __LINE__)

static void next_refusal(const char *words)
{
	struct fi_eq_err_entry failed = { 0 };
	char room[256];
	uint32_t event;
	SAME(fi_eq_sread(eq, &event, room, sizeof room, 60000, 0), -FI_EAVAIL);
	SAME(fi_eq_readerr(eq, &failed, FI_PEEK), sizeof failed);
	SAME(failed.err, FI_ECONNREFUSED);
	SAME(failed.fid == &ep->fid, 1);
	SAME(failed.err_data_size, strlen(words));
	SAME(memcmp(failed.err_data, words, strlen(words)), 0);
	/* Also into a buffer of the program. */
	memset(&failed, 0, sizeof failed);
	failed.err_data = room;
	failed.err_data_size = 3;
	SAME(fi_eq_readerr(eq, &failed, 0), sizeof failed);
	SAME(failed.err_data_size, strlen(words) < 3 ? strlen(words) : 3);
	SAME(memcmp(room, words, failed.err_data_size), 0);
}

static struct fi_cq_tagged_entry next(void)
{
	struct fi_cq_tagged_entry entry;
	SAME(fi_cq_sread(cq, &entry, 1, NULL, 30000), 1);
	return entry;
}

static void open_endpoint(struct fi_info *info)
{
	MUST(fi_endpoint(domain, info, &ep, NULL));
	MUST(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	SAME(fi_enable(ep), -FI_ENOEQ);
	MUST(fi_ep_bind(ep, &eq->fid, 0));
	MUST(fi_enable(ep));
}

static void open_all(void)
{
	struct fi_eq_attr events = { .wait_obj = FI_WAIT_UNSPEC };
	hints = fi_allocinfo();
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("bellwire");
	/* There is one peer, so selection by source is not offered. */
	hints->caps = FI_MSG | FI_SOURCE;
	SAME(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	SAME(info->next == NULL, 1);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_eq_open(fabric, &events, &eq, NULL));
}

static void open_queue(struct fi_info *info)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_cq_open(domain, &queue, &cq, NULL));
}

static void close_endpoint(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry failed;
	MUST(fi_close(&ep->fid));
	/* Cancelled receives do not matter here. */
	while (fi_cq_read(cq, &entry, 1) == -FI_EAVAIL)
		MUST(fi_cq_readerr(cq, &failed, 0));
}

static void close_all(void)
{
	MUST(fi_close(&cq->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&eq->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void client(int from)
{
	struct sockaddr_in server, nobody, name;
	size_t length = sizeof name;
	SAME(read(from, &server, sizeof server), sizeof server);
	open_all();
	open_queue(info);
	open_endpoint(info);
	SAME(fi_getpeer(ep, &name, &length), -FI_ENOTCONN);
	SAME(fi_connect(ep, &server, out, 100000), -FI_EINVAL);
	SAME(fi_accept(ep, NULL, 0), -FI_EOPBADSTATE);
	/* Refused, then refused because nobody listens. */
	MUST(fi_connect(ep, &server, "first", 5));
	SAME(fi_send(ep, out, 1, NULL, 0, out), -FI_ENOTCONN);
	next_refusal("go away");
	nobody = server;
	nobody.sin_port = htons(49664 + (ntohs(server.sin_port) - 49664 + 100) % 255);
	MUST(fi_connect(ep, &nobody, NULL, 0));
	next_refusal("");
	/* Accepted. */
	MUST(fi_recv(ep, in, sizeof in, NULL, 0, in));
	MUST(fi_trecv(ep, in, sizeof in, NULL, 0, 7, 0, in));
	MUST(fi_connect(ep, &server, "second", 6));
	next_event(FI_CONNECTED, ep, "welcome");
	SAME(fi_connect(ep, &server, NULL, 0), -FI_EISCONN);
	MUST(fi_getpeer(ep, &name, &length));
	SAME(memcmp(&name, &server, sizeof name), 0);
	memset(out, 'c', sizeof out);
	MUST(fi_send(ep, out, 10, NULL, 0, out));
	SAME(next().op_context == out, 1);
	struct fi_cq_tagged_entry entry = next();
	SAME(entry.len, sizeof in);
	SAME(in[sizeof in - 1], 's');
	/* A message sent before the end arrives before the end. */
	MUST(fi_send(ep, "the last", 9, NULL, 0, out));
	SAME(next().op_context == out, 1);
	MUST(fi_shutdown(ep, 0));
	next_event(FI_SHUTDOWN, ep, "");
	SAME(fi_shutdown(ep, 0), -FI_ENOTCONN);
	SAME(fi_send(ep, out, 1, NULL, 0, out), -FI_ENOTCONN);
	/* The remaining receive comes back. */
	struct fi_cq_err_entry failed = { 0 };
	SAME(fi_cq_sread(cq, &entry, 1, NULL, 30000), -FI_EAVAIL);
	SAME(fi_cq_readerr(cq, &failed, 0), 1);
	SAME(failed.err, FI_ECANCELED);
	close_endpoint();
	SAME(read(from, in, 1), 1);
	/* Closed without shutdown, and killed; each once the other side knows of the connection. */
	for (int sudden = 0; sudden < 2; sudden++) {
		open_endpoint(info);
		MUST(fi_recv(ep, in, sizeof in, NULL, 0, in));
		MUST(fi_connect(ep, &server, sudden ? "fourth" : "third", sudden ? 6 : 5));
		next_event(FI_CONNECTED, ep, "");
		SAME(next().op_context == in, 1);
		if (sudden)
			kill(getpid(), SIGKILL);
		close_endpoint();
		SAME(read(from, in, 1), 1);
	}
}

/* A request with these words. */
static struct fi_info *request(struct fid_pep *pep, const char *words)
{
	struct fi_info *asked = next_event(FI_CONNREQ, pep, words);
	SAME(asked->ep_attr->type, FI_EP_MSG);
	SAME(asked->handle != NULL, 1);
	return asked;
}

int main(void)
{
	int way[2], status;
	SAME(pipe(way), 0);
	pid_t child = fork();
	if (!child) {
		client(way[0]);
		return 1;
	}
	struct fid_pep *pep;
	struct sockaddr_in name;
	size_t length = sizeof name, words = 0, room = sizeof words;
	open_all();
	MUST(fi_passive_ep(fabric, info, &pep, NULL));
	SAME(fi_listen(pep), -FI_ENOEQ);
	MUST(fi_pep_bind(pep, &eq->fid, 0));
	MUST(fi_listen(pep));
	MUST(fi_getname(&pep->fid, &name, &length));
	SAME(fi_setname(&pep->fid, &name, length), -FI_EOPBADSTATE);
	MUST(fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &words, &room));
	SAME(words >= 64, 1);
	SAME(write(way[1], &name, sizeof name), sizeof name);

	struct fi_info *asked = request(pep, "first");
	MUST(fi_reject(pep, asked->handle, "go away", 7));
	/* It has been answered already. */
	SAME(fi_reject(pep, asked->handle, "go away", 7), -FI_EINVAL);
	fi_freeinfo(asked);

	asked = request(pep, "second");
	open_queue(asked);
	open_endpoint(asked);
	MUST(fi_recv(ep, in, sizeof in, NULL, 0, in));
	MUST(fi_accept(ep, "welcome", 7));
	next_event(FI_CONNECTED, ep, "");
	SAME(fi_accept(ep, NULL, 0), -FI_EOPBADSTATE);
	struct sockaddr_in own, theirs;
	MUST(fi_getname(&ep->fid, &own, &length));
	MUST(fi_getpeer(ep, &theirs, &length));
	SAME(memcmp(&own, &name, sizeof own), 0);
	SAME(memcmp(&theirs, asked->dest_addr, sizeof theirs), 0);
	fi_freeinfo(asked);
	SAME(next().len, 10);
	SAME(in[9], 'c');
	MUST(fi_recv(ep, in, sizeof in, NULL, 0, in));
	memset(out, 's', sizeof out);
	MUST(fi_send(ep, out, sizeof out, NULL, 0, out));
	for (int at = 0; at < 2; at++) {
		struct fi_cq_tagged_entry entry = next();
		if (entry.op_context == in) {
			SAME(entry.len, 9);
			SAME(strcmp(in, "the last"), 0);
		}
	}
	next_event(FI_SHUTDOWN, ep, "");
	close_endpoint();
	/* Events of different endpoints have no order, so the client continues only when this one is
	 * done. */
	SAME(write(way[1], "", 1), 1);

	for (int sudden = 0; sudden < 2; sudden++) {
		asked = request(pep, sudden ? "fourth" : "third");
		open_endpoint(asked);
		fi_freeinfo(asked);
		MUST(fi_accept(ep, NULL, 0));
		next_event(FI_CONNECTED, ep, "");
		MUST(fi_send(ep, "now", 4, NULL, 0, out));
		SAME(next().op_context == out, 1);
		next_event(FI_SHUTDOWN, ep, "");
		close_endpoint();
		SAME(write(way[1], "", 1), 1);
	}
	SAME(waitpid(child, &status, 0), child);
	SAME(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, 1);
	SAME(fi_close(&eq->fid), -FI_EBUSY);
	MUST(fi_close(&pep->fid));
	close_all();
	puts("good");
	return 0;
}
