/// One metric of the broker, as `/metrics` exposes it.
package struct MetricDefinition: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// A number that only grows. Its name ends with `_total`.
        case counter
        /// A number that goes up and down.
        case gauge
        /// The distribution of durations in seconds; with the upper bounds of its buckets in ascending order.
        case histogram([Double])
    }

    /// The name in Prometheus, and the label of the metric in swift-metrics.
    package let name: String
    package let kind: Kind
    /// One sentence without a full stop.
    package let help: String
    /// The names of the labels.
    package let labels: [String]

    private init(_ name: String, _ kind: Kind, _ help: String, labels: [String] = []) {
        self.name = name
        self.kind = kind
        self.help = help
        self.labels = labels
    }

    package static let build = Self("patchbay_build_info", .gauge, "The version of the broker", labels: ["version"])
    package static let start = Self("patchbay_start_time_seconds", .gauge, "The start of the broker as Unix time")
    package static let endpoints = Self("patchbay_endpoints", .gauge, "Endpoints by state", labels: ["state"])
    package static let devices = Self("patchbay_devices", .gauge, "Attached devices")
    package static let tunnels = Self("patchbay_tunnels", .gauge, "Tunnels")
    package static let streams = Self("patchbay_streams", .gauge, "Open streams through the API")
    package static let leases = Self("patchbay_leases", .gauge, "Leases")
    package static let sources = Self(
        "patchbay_source_healthy",
        .gauge,
        "1 if a source of endpoints works, such as Avahi (bonjour) or usbmuxd, and 0 if it does not",
        labels: ["source"]
    )
    package static let degraded = Self(
        "patchbay_degraded",
        .gauge,
        "1 if a part of the broker does not work, or works only in part, and 0 if it works or is turned off",
        labels: ["part"]
    )
    package static let certificateEnd = Self(
        "patchbay_remote_certificate_end_seconds",
        .gauge,
        "The end of a certificate of the remote listener as Unix time; configured is the owner's own",
        labels: ["certificate"]
    )
    package static let storageProblems = Self(
        "patchbay_storage_problems",
        .gauge,
        "Files of the state directory that cannot be written"
    )
    package static let relayedBytes = Self(
        "patchbay_relayed_bytes_total",
        .counter,
        "Bytes through tunnels and streams; up is to the app",
        labels: ["direction"]
    )
    package static let connections = Self(
        "patchbay_connections_total",
        .counter,
        "Connections through tunnels and streams"
    )
    package static let connectionFailures = Self(
        "patchbay_connection_failures_total",
        .counter,
        "Connections through tunnels and streams that were refused or failed, by reason",
        labels: ["reason"]
    )
    package static let refusals = Self(
        "patchbay_refusals_total",
        .counter,
        "Requests to the API that were refused or failed, by the code of the problem",
        labels: ["reason"]
    )
    package static let limits = Self(
        "patchbay_limits_reached_total",
        .counter,
        "Requests and connections beyond a limit",
        labels: ["limit"]
    )
    package static let calls = Self(
        "patchbay_call_duration_seconds",
        .histogram([0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]),
        "Calls of apps by result, with the time of waiting for the app",
        labels: ["result"]
    )
    package static let holds = Self(
        "patchbay_call_hold_seconds",
        .histogram([0.1, 0.5, 1, 2.5, 5, 10, 20, 60]),
        "Time that calls waited for an app that was not reachable"
    )
    package static let hostRequests = Self(
        "patchbay_host_requests_total",
        .counter,
        "Requests to the brokers of other hosts of the team, by result",
        labels: ["result"]
    )
    package static let droppedHostHeaders = Self(
        "patchbay_dropped_host_headers_total",
        .counter,
        "Headers and media types of other hosts' responses that no client gets",
        labels: ["host"]
    )

    /// Every metric, in the order of their names.
    package static let all = [
        build, start, endpoints, devices, tunnels, streams, leases, sources, degraded, certificateEnd, storageProblems,
        relayedBytes, connections, connectionFailures, refusals, limits, calls, holds, hostRequests, droppedHostHeaders,
    ].sorted { $0.name < $1.name }
}
