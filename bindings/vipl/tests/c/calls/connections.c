/* Connections: how they begin, are refused, and end. */
#include "calls.h"

/* Without a receive, a reliable connection ends with its error, and an unreliable VI drops the
 * message. A receive that is too short: length error. A receive with too little memory: protection
 * error. A peer that ends: connection lost. */
void errors(void)
{
	struct pair p;
	VIP_DESCRIPTOR *done;

	open_pair(&p, 4096);
	MUST(VipErrorCallback(p.b.nic, &error_count, on_error));
	connect_pair(&p);
	post_send(&p.a, 0, p.a.send, 8);
	want_error(p.b.vi, VIP_ERROR_RECVQ_EMPTY);
	WANT(last_error.NicHandle == p.b.nic && last_error.ResourceCode == VIP_RESOURCE_VI);
	WANT(state_of(&p.b) == VIP_STATE_ERROR);
	post_receive(&p.b, 1, p.b.receive, 64);
	EXPECT(VipRecvDone(p.b.vi, &done), VIP_DESCRIPTOR_ERROR);
	while (state_of(&p.a) == VIP_STATE_CONNECTED)
		sleep_ms(1);
	MUST(VipDisconnect(p.a.vi));
	MUST(VipDisconnect(p.b.vi));
	while (VipSendDone(p.a.vi, &done) != VIP_NOT_DONE)
		;

	error_count = 0;
	post_receive(&p.b, 1, p.b.receive, 4);
	connect_pair(&p);
	post_send(&p.a, 0, p.a.send, 8);
	EXPECT(VipRecvWait(p.b.vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
	WANT((done->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_LENGTH_ERROR);
	while (state_of(&p.a) == VIP_STATE_CONNECTED)
		sleep_ms(1);
	MUST(VipDisconnect(p.a.vi));
	MUST(VipDisconnect(p.b.vi));
	while (VipSendDone(p.a.vi, &done) != VIP_NOT_DONE)
		;

	/* A receive past the end of its region can use the registered part. */
	for (int more = 0; more < 2; more++) {
		size_t last = p.b.bytes - 8;
		post_receive(&p.b, 1, p.b.receive + last, 64);
		connect_pair(&p);
		memset(p.a.send, 7 + more, 16);
		post_send(&p.a, 0, p.a.send, 8 + more);
		EXPECT(VipRecvWait(p.b.vi, TIMEOUT_MS, &done), more ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS);
		if (more)
			WANT((done->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_PROTECTION_ERROR);
		else
			WANT(done->CS.Length == 8 && p.b.receive[last] == 7 && p.b.receive[last + 7] == 7);
		MUST(VipDisconnect(p.a.vi));
		while (state_of(&p.b) == VIP_STATE_CONNECTED)
			sleep_ms(1);
		MUST(VipDisconnect(p.b.vi));
		while (VipSendDone(p.a.vi, &done) != VIP_NOT_DONE)
			;
	}

	set_level(&p.a, VIP_SERVICE_UNRELIABLE);
	set_level(&p.b, VIP_SERVICE_UNRELIABLE);
	connect_pair(&p);
	p.a.send[0] = 1;
	post_send(&p.a, 0, p.a.send, 8);
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
	for (int i = 0; i < 50; i++) {
		WANT(state_of(&p.b) == VIP_STATE_CONNECTED);
		sleep_ms(1);
	}
	p.a.send[8] = 2;
	post_receive(&p.b, 2, p.b.receive, 64);
	post_send(&p.a, 0, p.a.send + 8, 8);
	MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
	WANT(p.b.receive[0] == 2); /* the first one was dropped */

	error_count = 0;
	MUST(VipCloseNic(p.a.nic));
	want_error(p.b.vi, VIP_ERROR_CONN_LOST);
	WANT(state_of(&p.b) == VIP_STATE_ERROR);
	MUST(VipErrorCallback(p.b.nic, NULL, NULL));
	MUST(VipCloseNic(p.b.nic));
}

static void *reject_thread(void *endpoint)
{
	struct endpoint *e = endpoint;
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE connection;

	make_address(e->nic, "0.0", "no", &local);
	MUST(VipConnectWait(e->nic, &local.net, TIMEOUT_MS, &remote.net, &theirs, &connection));
	WANT(remote.net.DiscriminatorLen == 2 && memcmp(remote.net.HostAddress + 6, "me", 2) == 0);
	WANT(theirs.ReliabilityLevel == VIP_SERVICE_UNRELIABLE && theirs.EnableRdmaWrite);
	/* Levels differ: this VI cannot accept it, and the request stays. */
	EXPECT(VipConnectAccept(connection, e->vi), VIP_INVALID_RELIABILITY_LEVEL);
	MUST(VipConnectReject(connection));
	EXPECT(VipConnectReject(connection), VIP_INVALID_PARAMETER);
	EXPECT(VipConnectAccept(connection, e->vi), VIP_INVALID_PARAMETER);
	return NULL;
}

/* Rejection, time-outs, and two peers that ask each other. */
void connections(void)
{
	struct pair p;
	union address a, b, nobody;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE connection;
	pthread_t server;
	char name[64];

	open_pair(&p, 4096);
	own_name(&p.a, name, sizeof name);
	make_address(p.a.nic, name, "nobody listens here", &nobody);
	EXPECT(VipConnectWait(p.a.nic, &nobody.net, 30, &b.net, &theirs, &connection), VIP_TIMEOUT);
	make_address(p.b.nic, name, "me", &b);
	EXPECT(VipConnectRequest(p.b.vi, &b.net, &nobody.net, 100, &theirs), VIP_TIMEOUT);
	WANT(state_of(&p.b) == VIP_STATE_IDLE);
	b.net.HostAddressLen = 0;
	EXPECT(VipConnectRequest(p.b.vi, &b.net, &b.net, 100, &theirs), VIP_INVALID_PARAMETER);
	b.net.HostAddressLen = 6;

	set_level(&p.b, VIP_SERVICE_UNRELIABLE);
	WANT(!pthread_create(&server, NULL, reject_thread, &p.a));
	make_address(p.b.nic, name, "no", &a);
	EXPECT(VipConnectRequest(p.b.vi, &b.net, &a.net, TIMEOUT_MS, &theirs), VIP_REJECT);
	pthread_join(server, NULL);
	WANT(state_of(&p.b) == VIP_STATE_IDLE && state_of(&p.a) == VIP_STATE_IDLE);

	/* Peer to peer, whichever comes first. The end points' names are also exchanged, so that both
	 * roles are played. */
	set_level(&p.b, VIP_SERVICE_RELIABLE_DELIVERY);
	make_address(p.a.nic, name, "left", &a);
	own_name(&p.b, name, sizeof name);
	make_address(p.b.nic, name, "right", &b);
	for (int round = 0; round < 4; round++) {
		struct endpoint *first = round % 2 ? &p.a : &p.b, *second = round % 2 ? &p.b : &p.a;
		union address *own = round % 2 ? &a : &b, *far = round % 2 ? &b : &a;
		MUST(VipConnectPeerRequest(first->vi, &own->net, &far->net, TIMEOUT_MS));
		EXPECT(VipConnectPeerDone(first->vi, &theirs), VIP_NOT_DONE);
		EXPECT(VipConnectPeerRequest(first->vi, &own->net, &far->net, TIMEOUT_MS), VIP_INVALID_STATE);
		WANT(state_of(first) == VIP_STATE_CONNECT_PENDING);
		if (round == 3) {
			/* The program gives up. */
			MUST(VipDisconnect(first->vi));
			WANT(state_of(first) == VIP_STATE_IDLE);
			/* No peer of that name asks. */
			own->net.DiscriminatorLen = 3;
			MUST(VipConnectPeerRequest(second->vi, &far->net, &own->net, 100));
			EXPECT(VipConnectPeerWait(second->vi, &theirs), VIP_TIMEOUT);
			WANT(state_of(second) == VIP_STATE_IDLE);
			break;
		}
		MUST(VipConnectPeerRequest(second->vi, &far->net, &own->net, TIMEOUT_MS));
		MUST(VipConnectPeerWait(second->vi, &theirs));
		WANT(theirs.ReliabilityLevel == VIP_SERVICE_RELIABLE_DELIVERY);
		int returned;
		while ((returned = VipConnectPeerDone(first->vi, &theirs)) == VIP_NOT_DONE)
			sleep_ms(1);
		WANT(returned == VIP_SUCCESS);
		VIP_DESCRIPTOR *done;
		post_receive(second, 0, second->receive, 8);
		post_send(first, 0, first->send, 8);
		MUST(VipRecvWait(second->vi, TIMEOUT_MS, &done));
		MUST(VipSendWait(first->vi, TIMEOUT_MS, &done));
		MUST(VipDisconnect(first->vi));
		while (state_of(second) == VIP_STATE_CONNECTED)
			sleep_ms(1);
		MUST(VipDisconnect(second->vi));
	}
	EXPECT(VipConnectPeerRequest(p.a.vi, &b.net, &b.net, 100), VIP_SUCCESS);
	EXPECT(VipConnectPeerWait(p.a.vi, &theirs), VIP_TIMEOUT);
	own_name(&p.a, name, sizeof name);
	make_address(p.a.nic, name, "same", &a);
	EXPECT(VipConnectPeerRequest(p.a.vi, &a.net, &a.net, 100), VIP_INVALID_PARAMETER);
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
}
