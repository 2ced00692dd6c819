/* Shared by our test programs: calls that must succeed, numbers that must be equal, and one end of
 * a conversation. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MUST(what) must((what), #what, __LINE__)
#define SAME(a, b) same((long long)(a), (long long)(b), #a, __LINE__)

static void must(long result, const char *what, int line)
{
	if (result < 0) {
		printf("line %d: %s: %s\n", line, what, fi_strerror((int)-result));
		exit(1);
	}
}

static void same(long long a, long long b, const char *what, int line)
{
	if (a != b) {
		printf("line %d: %s is %lld, not %lld\n", line, what, a, b);
		exit(1);
	}
}
