#include "CDashboard.h"

// SwiftPM compiles C11, in which clang knows #embed as an extension.
#pragma clang diagnostic ignored "-Wc23-extensions"

// Each file of Page/ has an array and a line in the table. A test compares the table with the folder. The stylesheet has
// two source files, because none may exceed 400 lines.

static const unsigned char access_js[] = {
#embed "Page/access.js"
};
static const unsigned char activity_detail_js[] = {
#embed "Page/activity-detail.js"
};
static const unsigned char activity_overview_js[] = {
#embed "Page/activity-overview.js"
};
static const unsigned char activity_js[] = {
#embed "Page/activity.js"
};
static const unsigned char agents_js[] = {
#embed "Page/agents.js"
};
static const unsigned char app_css[] = {
#embed "Page/app.css"
,
#embed "Page/views.css"
};
static const unsigned char app_js[] = {
#embed "Page/app.js"
};
static const unsigned char bench_js[] = {
#embed "Page/bench.js"
};
static const unsigned char connect_js[] = {
#embed "Page/connect.js"
};
static const unsigned char consent_html[] = {
#embed "Page/consent.html"
};
static const unsigned char consent_js[] = {
#embed "Page/consent.js"
};
static const unsigned char device_js[] = {
#embed "Page/device.js"
};
static const unsigned char dom_js[] = {
#embed "Page/dom.js"
};
static const unsigned char endpoint_cards_js[] = {
#embed "Page/endpoint-cards.js"
};
static const unsigned char endpoint_js[] = {
#embed "Page/endpoint.js"
};
static const unsigned char feed_worker_js[] = {
#embed "Page/feed-worker.js"
};
static const unsigned char feed_js[] = {
#embed "Page/feed.js"
};
static const unsigned char filter_js[] = {
#embed "Page/filter.js"
};
static const unsigned char gesture_js[] = {
#embed "Page/gesture.js"
};
static const unsigned char icon_svg[] = {
#embed "Page/icon.svg"
};
static const unsigned char index_html[] = {
#embed "Page/index.html"
};
static const unsigned char invites_js[] = {
#embed "Page/invites.js"
};
static const unsigned char leases_js[] = {
#embed "Page/leases.js"
};
static const unsigned char pages_js[] = {
#embed "Page/pages.js"
};
static const unsigned char parts_js[] = {
#embed "Page/parts.js"
};
static const unsigned char problems_js[] = {
#embed "Page/problems.js"
};
static const unsigned char result_js[] = {
#embed "Page/result.js"
};
static const unsigned char rows_js[] = {
#embed "Page/rows.js"
};
static const unsigned char schema_js[] = {
#embed "Page/schema.js"
};
static const unsigned char screen_js[] = {
#embed "Page/screen.js"
};
static const unsigned char session_js[] = {
#embed "Page/session.js"
};
static const unsigned char states_js[] = {
#embed "Page/states.js"
};
static const unsigned char store_js[] = {
#embed "Page/store.js"
};
static const unsigned char toolform_js[] = {
#embed "Page/toolform.js"
};
static const unsigned char tools_js[] = {
#embed "Page/tools.js"
};
static const unsigned char tunnels_js[] = {
#embed "Page/tunnels.js"
};
static const unsigned char use_js[] = {
#embed "Page/use.js"
};
static const unsigned char wall_js[] = {
#embed "Page/wall.js"
};

#define FILE(name, bytes) {name, bytes, sizeof(bytes)}

static const CDashboardFile files[] = {
    FILE("access.js", access_js),
    FILE("activity-detail.js", activity_detail_js),
    FILE("activity-overview.js", activity_overview_js),
    FILE("activity.js", activity_js),
    FILE("agents.js", agents_js),
    FILE("app.css", app_css),
    FILE("app.js", app_js),
    FILE("bench.js", bench_js),
    FILE("connect.js", connect_js),
    FILE("consent.html", consent_html),
    FILE("consent.js", consent_js),
    FILE("device.js", device_js),
    FILE("dom.js", dom_js),
    FILE("endpoint-cards.js", endpoint_cards_js),
    FILE("endpoint.js", endpoint_js),
    FILE("feed-worker.js", feed_worker_js),
    FILE("feed.js", feed_js),
    FILE("filter.js", filter_js),
    FILE("gesture.js", gesture_js),
    FILE("icon.svg", icon_svg),
    FILE("index.html", index_html),
    FILE("invites.js", invites_js),
    FILE("leases.js", leases_js),
    FILE("pages.js", pages_js),
    FILE("parts.js", parts_js),
    FILE("problems.js", problems_js),
    FILE("result.js", result_js),
    FILE("rows.js", rows_js),
    FILE("schema.js", schema_js),
    FILE("screen.js", screen_js),
    FILE("session.js", session_js),
    FILE("states.js", states_js),
    FILE("store.js", store_js),
    FILE("toolform.js", toolform_js),
    FILE("tools.js", tools_js),
    FILE("tunnels.js", tunnels_js),
    FILE("use.js", use_js),
    FILE("wall.js", wall_js),
};

const CDashboardFile *CDashboard_files(size_t *count) {
    *count = sizeof(files) / sizeof(files[0]);
    return files;
}
