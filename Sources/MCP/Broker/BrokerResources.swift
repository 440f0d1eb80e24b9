import FoundationEssentials
import JSON
import Model
import Registry

/// The list as resources, which clients can subscribe to.
extension BrokerMCPServer {
    func resources(_ params: JSONObject, _ caller: AgentCaller) async throws(RPCError) -> JSONObject {
        guard caller.may(.registryRead) else { return ["resources": []] }
        let cursor = try Self.cursor(params)
        let endpoints = await registry.endpoints.filter { caller.sees($0) && $0.id.text > cursor }
        var resources = cursor.isEmpty ? [BrokerResource.endpoints.json] : []
        if cursor.isEmpty, caller.seesAll { resources.append(BrokerResource.devices.json) }
        resources += endpoints.prefix(Self.pageSize).map { BrokerResource.endpoint($0.id).json }
        var result: JSONObject = ["resources": .array(resources)]
        if endpoints.count > Self.pageSize { result["nextCursor"] = .string(endpoints[Self.pageSize - 1].id.text) }
        return result
    }

    func read(_ params: JSONObject, _ caller: AgentCaller) async throws(RPCError) -> JSONObject {
        guard let uri = params["uri"]?.string else { throw .invalidParams("uri must be a text") }
        guard let resource = BrokerResource(uri), caller.may(.registryRead) else { throw .unknownResource(uri) }
        let json: JSON
        switch resource {
        case .endpoints:
            let revision = JSON.number(JSONNumber(Int(clamping: await registry.revision)))
            let rows = await rows(await seen(by: caller))
            json = ["rev": revision, "endpoints": .array(rows.map { .object($0.json) })]
        case .endpoint(let id):
            guard let endpoint = await seen(by: caller).first(where: { $0.id == id }) else {
                throw .unknownResource(uri)
            }
            json = await details(of: endpoint)
        case .devices:
            guard caller.seesAll else { throw .unknownResource(uri) }
            json = Self.json(DeviceList(devices: await phones.list()))
        }
        return [
            "contents": [["uri": .string(uri), "mimeType": "application/json", "text": .string(json.text)]]
        ]
    }

    /// Nobody is left to wait for news of what is not there, or not for it.
    func checkSubscription(_ params: JSONObject, _ caller: AgentCaller) async throws(RPCError) {
        guard let uri = params["uri"]?.string else { throw .invalidParams("uri must be a text") }
        guard caller.may(.registryRead) else { throw .unknownResource(uri) }
        switch BrokerResource(uri) {
        case .endpoints?: return
        case .endpoint(let id)?: if await seen(by: caller).contains(where: { $0.id == id }) { return }
        case .devices?: if caller.seesAll { return }
        case nil: break
        }
        throw .unknownResource(uri)
    }

    /// The row; of an approved endpoint also its approved routes and the facts that they report.
    private func details(of endpoint: Endpoint) async -> JSON {
        var json = await rows([endpoint]).first?.json ?? [:]
        guard endpoint.approval == .approved else { return .object(json) }
        json["reason"] = endpoint.reason.map(JSON.string)
        json["routes"] = Self.json(endpoint.approvedRoutes)
        json["txt"] = Self.json(endpoint.txt)
        json["since"] = .string(JSONCoding.text(of: endpoint.since))
        json["lastSeen"] = endpoint.lastSeen.map { .string(JSONCoding.text(of: $0)) }
        return .object(json)
    }

    private static func cursor(_ params: JSONObject) throws(RPCError) -> String {
        guard let cursor = params["cursor"] else { return "" }
        guard let text = cursor.string, EndpointID(text) != nil else { throw .invalidParams("no list has that cursor") }
        return text
    }

    private static func json(_ value: some Encodable) -> JSON {
        (try? JSONCoding.encoder().encode(value)).flatMap { try? JSON(parsing: $0) } ?? .null
    }
}

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
