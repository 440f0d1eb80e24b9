#include "CDashboard.h"

// SwiftPM compiles C11, in which clang knows #embed as an extension.
#pragma clang diagnostic ignored "-Wc23-extensions"

// Each file of Page/ has an array and a line in the table. A test compares the table with the folder.

#if __has_embed("Page/access.js")
static const unsigned char access_js[] = {
#embed "Page/access.js"
};
#endif
#if __has_embed("Page/activity-detail.js")
static const unsigned char activity_detail_js[] = {
#embed "Page/activity-detail.js"
};
#endif
#if __has_embed("Page/activity-overview.js")
static const unsigned char activity_overview_js[] = {
#embed "Page/activity-overview.js"
};
#endif
#if __has_embed("Page/activity.js")
static const unsigned char activity_js[] = {
#embed "Page/activity.js"
};
#endif
#if __has_embed("Page/agents.js")
static const unsigned char agents_js[] = {
#embed "Page/agents.js"
};
#endif
#if __has_embed("Page/app.css")
static const unsigned char app_css[] = {
#embed "Page/app.css"
};
#endif
#if __has_embed("Page/app.js")
static const unsigned char app_js[] = {
#embed "Page/app.js"
};
#endif
#if __has_embed("Page/bench.js")
static const unsigned char bench_js[] = {
#embed "Page/bench.js"
};
#endif
#if __has_embed("Page/connect.js")
static const unsigned char connect_js[] = {
#embed "Page/connect.js"
};
#endif
#if __has_embed("Page/device.js")
static const unsigned char device_js[] = {
#embed "Page/device.js"
};
#endif
#if __has_embed("Page/dom.js")
static const unsigned char dom_js[] = {
#embed "Page/dom.js"
};
#endif
#if __has_embed("Page/endpoint-cards.js")
static const unsigned char endpoint_cards_js[] = {
#embed "Page/endpoint-cards.js"
};
#endif
#if __has_embed("Page/endpoint.js")
static const unsigned char endpoint_js[] = {
#embed "Page/endpoint.js"
};
#endif
#if __has_embed("Page/feed-worker.js")
static const unsigned char feed_worker_js[] = {
#embed "Page/feed-worker.js"
};
#endif
#if __has_embed("Page/feed.js")
static const unsigned char feed_js[] = {
#embed "Page/feed.js"
};
#endif
#if __has_embed("Page/filter.js")
static const unsigned char filter_js[] = {
#embed "Page/filter.js"
};
#endif
#if __has_embed("Page/gesture.js")
static const unsigned char gesture_js[] = {
#embed "Page/gesture.js"
};
#endif
#if __has_embed("Page/icon.svg")
static const unsigned char icon_svg[] = {
#embed "Page/icon.svg"
};
#endif
#if __has_embed("Page/index.html")
static const unsigned char index_html[] = {
#embed "Page/index.html"
};
#endif
#if __has_embed("Page/invites.js")
static const unsigned char invites_js[] = {
#embed "Page/invites.js"
};
#endif
#if __has_embed("Page/leases.js")
static const unsigned char leases_js[] = {
#embed "Page/leases.js"
};
#endif
#if __has_embed("Page/parts.js")
static const unsigned char parts_js[] = {
#embed "Page/parts.js"
};
#endif
#if __has_embed("Page/problems.js")
static const unsigned char problems_js[] = {
#embed "Page/problems.js"
};
#endif
#if __has_embed("Page/result.js")
static const unsigned char result_js[] = {
#embed "Page/result.js"
};
#endif
#if __has_embed("Page/rows.js")
static const unsigned char rows_js[] = {
#embed "Page/rows.js"
};
#endif
#if __has_embed("Page/schema.js")
static const unsigned char schema_js[] = {
#embed "Page/schema.js"
};
#endif
#if __has_embed("Page/screen.js")
static const unsigned char screen_js[] = {
#embed "Page/screen.js"
};
#endif
#if __has_embed("Page/session.js")
static const unsigned char session_js[] = {
#embed "Page/session.js"
};
#endif
#if __has_embed("Page/states.js")
static const unsigned char states_js[] = {
#embed "Page/states.js"
};
#endif
#if __has_embed("Page/store.js")
static const unsigned char store_js[] = {
#embed "Page/store.js"
};
#endif
#if __has_embed("Page/toolform.js")
static const unsigned char toolform_js[] = {
#embed "Page/toolform.js"
};
#endif
#if __has_embed("Page/tools.js")
static const unsigned char tools_js[] = {
#embed "Page/tools.js"
};
#endif
#if __has_embed("Page/tunnels.js")
static const unsigned char tunnels_js[] = {
#embed "Page/tunnels.js"
};
#endif
#if __has_embed("Page/use.js")
static const unsigned char use_js[] = {
#embed "Page/use.js"
};
#endif
#if __has_embed("Page/views.css")
static const unsigned char views_css[] = {
#embed "Page/views.css"
};
#endif
#if __has_embed("Page/wall.js")
static const unsigned char wall_js[] = {
#embed "Page/wall.js"
};
#endif

#define FILE(name, bytes) {name, bytes, sizeof(bytes)}

static const CDashboardFile files[] = {
#if __has_embed("Page/access.js")
    FILE("access.js", access_js),
#endif
#if __has_embed("Page/activity-detail.js")
    FILE("activity-detail.js", activity_detail_js),
#endif
#if __has_embed("Page/activity-overview.js")
    FILE("activity-overview.js", activity_overview_js),
#endif
#if __has_embed("Page/activity.js")
    FILE("activity.js", activity_js),
#endif
#if __has_embed("Page/agents.js")
    FILE("agents.js", agents_js),
#endif
#if __has_embed("Page/app.css")
    FILE("app.css", app_css),
#endif
#if __has_embed("Page/app.js")
    FILE("app.js", app_js),
#endif
#if __has_embed("Page/bench.js")
    FILE("bench.js", bench_js),
#endif
#if __has_embed("Page/connect.js")
    FILE("connect.js", connect_js),
#endif
#if __has_embed("Page/device.js")
    FILE("device.js", device_js),
#endif
#if __has_embed("Page/dom.js")
    FILE("dom.js", dom_js),
#endif
#if __has_embed("Page/endpoint-cards.js")
    FILE("endpoint-cards.js", endpoint_cards_js),
#endif
#if __has_embed("Page/endpoint.js")
    FILE("endpoint.js", endpoint_js),
#endif
#if __has_embed("Page/feed-worker.js")
    FILE("feed-worker.js", feed_worker_js),
#endif
#if __has_embed("Page/feed.js")
    FILE("feed.js", feed_js),
#endif
#if __has_embed("Page/filter.js")
    FILE("filter.js", filter_js),
#endif
#if __has_embed("Page/gesture.js")
    FILE("gesture.js", gesture_js),
#endif
#if __has_embed("Page/icon.svg")
    FILE("icon.svg", icon_svg),
#endif
#if __has_embed("Page/index.html")
    FILE("index.html", index_html),
#endif
#if __has_embed("Page/invites.js")
    FILE("invites.js", invites_js),
#endif
#if __has_embed("Page/leases.js")
    FILE("leases.js", leases_js),
#endif
#if __has_embed("Page/parts.js")
    FILE("parts.js", parts_js),
#endif
#if __has_embed("Page/problems.js")
    FILE("problems.js", problems_js),
#endif
#if __has_embed("Page/result.js")
    FILE("result.js", result_js),
#endif
#if __has_embed("Page/rows.js")
    FILE("rows.js", rows_js),
#endif
#if __has_embed("Page/schema.js")
    FILE("schema.js", schema_js),
#endif
#if __has_embed("Page/screen.js")
    FILE("screen.js", screen_js),
#endif
#if __has_embed("Page/session.js")
    FILE("session.js", session_js),
#endif
#if __has_embed("Page/states.js")
    FILE("states.js", states_js),
#endif
#if __has_embed("Page/store.js")
    FILE("store.js", store_js),
#endif
#if __has_embed("Page/toolform.js")
    FILE("toolform.js", toolform_js),
#endif
#if __has_embed("Page/tools.js")
    FILE("tools.js", tools_js),
#endif
#if __has_embed("Page/tunnels.js")
    FILE("tunnels.js", tunnels_js),
#endif
#if __has_embed("Page/use.js")
    FILE("use.js", use_js),
#endif
#if __has_embed("Page/views.css")
    FILE("views.css", views_css),
#endif
#if __has_embed("Page/wall.js")
    FILE("wall.js", wall_js),
#endif
    {"", (const unsigned char *)"", 0},
};

const CDashboardFile *CDashboard_files(size_t *count) {
    *count = sizeof(files) / sizeof(files[0]) - 1;
    return files;
}
