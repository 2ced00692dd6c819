/* Two ends of UCX that find each other by address and port, which UCX does by librdmacm. Each
   message comes back, and every byte is checked.

   ucp_sockets server -p PORT
   ucp_sockets client ADDRESS -p PORT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #condition); \
            exit(1); \
        } \
    } while (0)

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_conn_request_h asked;
static int lost;

static const size_t LENGTHS[] = { 0, 1, 8, 1000, 8192, 100000, 1 << 20 };
enum { COUNT = sizeof LENGTHS / sizeof LENGTHS[0], ROUNDS = 20, TAG = 77, END = 1 << 20 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void progress(double until)
{
    ucp_worker_progress(worker);
    CHECK(now() < until);
}

static void wait_for(ucs_status_ptr_t request)
{
    double until = now() + 60;
    CHECK(!UCS_PTR_IS_ERR(request));
    if (!request)
        return;
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
        progress(until);
    ucp_request_free(request);
    CHECK(status == UCS_OK);
}

static unsigned char byte(size_t at, size_t round, int seed)
{
    return (unsigned char)(at * 7 + at / 4096 + round * 13 + (size_t)seed);
}

static void on_request(ucp_conn_request_h request, void *none)
{
    (void)none;
    asked = request;
}

static void on_error(void *none, ucp_ep_h ep, ucs_status_t status)
{
    (void)none;
    (void)ep;
    (void)status;
    lost = 1;
}

static void start(void)
{
    ucp_config_t *config;
    CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK);
    ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG };
    CHECK(ucp_init(&params, config, &context) == UCS_OK);
    ucp_config_release(config);
    ucp_worker_params_t how = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                .thread_mode = UCS_THREAD_MODE_SINGLE };
    CHECK(ucp_worker_create(context, &how, &worker) == UCS_OK);
}

static ucp_ep_h connected(ucp_ep_params_t params)
{
    ucp_ep_h ep;
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = on_error;
    CHECK(ucp_ep_create(worker, &params, &ep) == UCS_OK);
    return ep;
}

static const ucp_request_param_t PLAIN;

static void send_one(ucp_ep_h ep, unsigned char *bytes, size_t length, size_t round, int seed)
{
    for (size_t at = 0; at < length; at++)
        bytes[at] = byte(at, round, seed);
    wait_for(ucp_tag_send_nbx(ep, bytes, length, TAG, &PLAIN));
}

static void receive_one(unsigned char *bytes, size_t length, size_t round, int seed)
{
    memset(bytes, 0, length);
    wait_for(ucp_tag_recv_nbx(worker, bytes, length, TAG, (ucp_tag_t)-1, &PLAIN));
    for (size_t at = 0; at < length; at++)
        CHECK(bytes[at] == byte(at, round, seed));
}

static void exchange(ucp_ep_h ep, int is_client)
{
    unsigned char *bytes = malloc(END);
    CHECK(bytes);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            if (is_client)
                send_one(ep, bytes, LENGTHS[i], round, 1);
            else
                receive_one(bytes, LENGTHS[i], round, 1);
            if (is_client)
                receive_one(bytes, LENGTHS[i], round, 2);
            else
                send_one(ep, bytes, LENGTHS[i], round, 2);
        }
    }
    free(bytes);
}

int main(int count, char **arguments)
{
    CHECK(count >= 4);
    int is_client = !strcmp(arguments[1], "client");
    CHECK(count == 4 + is_client && !strcmp(arguments[2 + is_client], "-p"));
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(arguments[3 + is_client])) };
    if (is_client)
        CHECK(inet_pton(AF_INET, arguments[2], &address.sin_addr) == 1);
    ucs_sock_addr_t at = { (struct sockaddr *)&address, sizeof address };
    start();
    ucp_ep_h ep;
    ucp_listener_h listener = NULL;
    if (is_client) {
        ucp_ep_params_t params = {
            .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
            .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
            .sockaddr = at,
        };
        ep = connected(params);
    } else {
        ucp_listener_params_t params = {
            .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
            .sockaddr = at,
            .conn_handler = { on_request, NULL },
        };
        CHECK(ucp_listener_create(worker, &params, &listener) == UCS_OK);
        double until = now() + 60;
        while (!asked)
            progress(until);
        ucp_ep_params_t accepted = { .field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
                                     .conn_request = asked };
        ep = connected(accepted);
    }
    exchange(ep, is_client);
    /* What carried it, for the test to look at. */
    ucp_ep_print_info(ep, stdout);
    if (is_client) {
        ucp_request_param_t flush = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = 0 };
        wait_for(ucp_ep_close_nbx(ep, &flush));
    } else {
        double until = now() + 60;
        while (!lost)
            progress(until);
        ucp_request_param_t force = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                      .flags = UCP_EP_CLOSE_FLAG_FORCE };
        wait_for(ucp_ep_close_nbx(ep, &force));
        ucp_listener_destroy(listener);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    return 0;
}
