/* Calls that are not offered fail by their errno, each time, and nothing else happens. */
#include "pair.h"

int main(void)
{
    struct side sides[2];
    struct how how = USUAL;
    how.type = IBV_QPT_UD;
    make_pair(sides, how);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        CHECK(!ibv_reg_dmabuf_mr(sides[0].pd, 0, 64, 0, 0, 0) && errno == EOPNOTSUPP);
        errno = 0;
        CHECK(!ibv_import_dm(sides[0].context, 1) && errno == EOPNOTSUPP);
    }
    /* A descriptor of something else names no context. */
    CHECK(!ibv_import_device(0) && errno == EOPNOTSUPP);
    struct ibv_xrcd_init_attr xrcd = { 0 };
    CHECK(!ibv_open_xrcd(sides[0].context, &xrcd) && errno == EOPNOTSUPP);
    CHECK(!ibv_reg_mr(sides[0].pd, sides[0].memory, 64, IBV_ACCESS_ON_DEMAND) && errno == EOPNOTSUPP);
    struct ibv_device_attr_ex attr;
    CHECK(!ibv_query_device_ex(sides[0].context, NULL, &attr) && attr.phys_port_cnt_ex == 1);
    CHECK(attr.odp_caps.general_caps == 0 && attr.tso_caps.max_tso == 0);
    close_pair(sides);
    return 0;
}
