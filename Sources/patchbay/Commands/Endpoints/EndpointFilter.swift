import Model

/// Selects endpoints for `patchbay list`. Nil selects all.
struct EndpointFilter {
    var state: Endpoint.State?
    var kind: String?
    var app: String?
    /// A phone: the beginning of its name or of its UDID.
    var device: String?
    var host: HostName?

    /// True if some endpoints may not match.
    var isActive: Bool { state != nil || kind != nil || app != nil || device != nil || host != nil }

    /// Returns true for a matching endpoint, and for an endpoint that matched before its last change.
    func matches(_ endpoint: Endpoint, wasShown: Bool = false) -> Bool {
        (app.map(endpoint.isApp) ?? true) && (host == nil || endpoint.host?.name == host)
            && (kind == nil || endpoint.kind.text == kind?.lowercased()) && (device.map { isOn($0, endpoint) } ?? true)
            && (state == nil || endpoint.state == state || wasShown)
    }

    private func isOn(_ device: String, _ endpoint: Endpoint) -> Bool {
        if DeviceSelector.isBeginning(device, of: endpoint.location.deviceName) { return true }
        let phones = [endpoint.location.udid] + endpoint.shownRoutes.map(\.route.udid)
        return phones.contains { DeviceSelector.matches(device, $0) }
    }
}

extension EndpointList {
    func filtered(by filter: EndpointFilter) -> EndpointList {
        EndpointList(revision: revision, endpoints: endpoints.filter { filter.matches($0) })
    }
}
