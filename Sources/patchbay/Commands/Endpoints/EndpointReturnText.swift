import Model

/// The steps that bring an endpoint back that no source reports.
enum EndpointReturnText {
    /// Returns the next steps; nil for an endpoint that a source reports, or that is blocked.
    static func text(_ endpoint: Endpoint) -> String? {
        guard endpoint.state == .offline, endpoint.sources.isEmpty else { return nil }
        let app = endpoint.registered == true ? "start the app, which registers itself again" : "start the app"
        let place =
            switch (endpoint.location.udid, endpoint.location.machine) {
            case (_?, _?): "with its phone on a cable or in this network"
            case (_?, nil): "with its phone plugged in (`patchbay devices`)"
            case (nil, _): "in a network of this machine"
            }
        // The tokens of apps on Android phones are read from the log.
        let hasNewToken = endpoint.kind == .appreveal && endpoint.location.udid?.platform != .android
        let token = hasNewToken ? "; a new launch has a new token: `patchbay secret set \(endpoint.id)`" : ""
        return "\(app), \(place); it keeps its ID\(token)"
    }
}
