/// In JSON `{"device": {"udid": …, "port": …}}` or `{"endpoint": "<id>"}`.
extension TunnelTarget: Codable {
    private enum Keys: String, CodingKey { case device, endpoint }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        if let id = try container.decodeIfPresent(EndpointID.self, forKey: .endpoint) {
            self = .endpoint(id)
        } else {
            // A phone's port is written as a route over the cable is.
            let route = try container.decode(USBRoute.self, forKey: .device)
            self = .device(udid: route.udid, port: route.port)
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        switch self {
        case .device(let udid, let port): try container.encode(USBRoute(udid: udid, port: port), forKey: .device)
        case .endpoint(let id): try container.encode(id, forKey: .endpoint)
        }
    }
}
