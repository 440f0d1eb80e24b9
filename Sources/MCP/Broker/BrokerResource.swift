import JSON
import Model

/// What can be read at `/mcp`, by its address.
enum BrokerResource: Hashable, Sendable {
    case endpoints
    case endpoint(EndpointID)
    case devices

    private static let endpointPrefix = "patchbay://endpoint/"

    init?(_ uri: String) {
        switch uri {
        case "patchbay://endpoints": self = .endpoints
        case "patchbay://devices": self = .devices
        default:
            guard uri.hasPrefix(Self.endpointPrefix), let id = EndpointID(uri.dropFirst(Self.endpointPrefix.count))
            else {
                return nil
            }
            self = .endpoint(id)
        }
    }

    var uri: String {
        switch self {
        case .endpoints: "patchbay://endpoints"
        case .endpoint(let id): Self.endpointPrefix + id.text
        case .devices: "patchbay://devices"
        }
    }

    var json: JSON {
        let name =
            switch self {
            case .endpoints: "endpoints"
            case .endpoint(let id): id.text
            case .devices: "devices"
            }
        return ["uri": .string(uri), "name": .string(name), "mimeType": "application/json"]
    }

    static let templates: JSON = [
        ["uriTemplate": "patchbay://endpoint/{id}", "name": "endpoint", "mimeType": "application/json"],
        [
            "uriTemplate": "patchbay://artifact/{sha}", "name": "artifact",
            "description": "What was too large for a result; kept for an hour",
        ],
    ]
}
