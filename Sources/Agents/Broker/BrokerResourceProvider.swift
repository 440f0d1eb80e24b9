import AccessControl
import Apps
import FoundationEssentials
import Model
import Registry

/// The endpoint list, the devices and the logs of apps as resources. Clients can subscribe to the lists.
struct BrokerResourceProvider: Sendable {
    let directory: EndpointDirectory
    let devices: any DeviceListing
    /// Nil if no log is read.
    let logs: PhoneLogService?

    /// The maximum number of lines of a log, and of its bytes.
    private static let logLines = 500
    private static let logBytes = 64 << 10

    /// Returns a page of the resources that the principal may see.
    func page(_ params: JSONObject, for principal: Principal) async throws(RPCError) -> JSONObject {
        guard principal.may(.registryRead) else { return ["resources": []] }
        let cursor = try Self.cursor(params)
        let endpoints = await directory.listed(visibleTo: principal).filter { $0.id.text > cursor }
        var resources = cursor.isEmpty ? [BrokerResource.endpoints.json] : []
        if cursor.isEmpty, principal.canSeeAllEndpoints { resources.append(BrokerResource.devices.json) }
        let page = endpoints.prefix(EndpointDirectory.pageSize)
        for endpoint in page {
            resources.append(BrokerResource.endpoint(endpoint.id).json)
            if endpoint.approval == .approved, logs?.hasLog(of: endpoint, for: principal) == true {
                resources.append(BrokerResource.log(endpoint.id).json)
            }
        }
        var result: JSONObject = ["resources": .array(resources)]
        if page.count < endpoints.count { result["nextCursor"] = page.last.map { .string($0.id.text) } }
        return result
    }

    /// Returns the content of a resource.
    func read(_ params: JSONObject, for principal: Principal) async throws(RPCError) -> JSONObject {
        guard let uri = params["uri"]?.string else { throw .invalidParams("uri must be a string") }
        guard let resource = BrokerResource(uri), principal.may(.registryRead) else {
            throw await notFound(uri, for: principal)
        }
        let json: JSON
        switch resource {
        case .endpoints:
            let revision = JSON.number(JSONNumber(await directory.revision))
            let summaries = await directory.summaries(of: await directory.listed(visibleTo: principal))
            json = ["revision": revision, "endpoints": .array(summaries.map { .object($0.json) })]
        case .endpoint(let id):
            guard let endpoint = await directory.endpoint(id, visibleTo: principal) else {
                throw await notFound(uri, for: principal)
            }
            json = await details(of: endpoint)
        case .devices:
            guard principal.canSeeAllEndpoints else { throw .resourceNotFound(uri) }
            json = Self.json(ListResponse(await devices.devices()))
        case .log(let id):
            guard let endpoint = await directory.endpoint(id, visibleTo: principal), endpoint.approval == .approved
            else { throw await notFound(uri, for: principal) }
            let text = try await log(of: endpoint, for: principal)
            return ["contents": [["uri": .string(uri), "mimeType": .string(resource.type), "text": .string(text)]]]
        }
        return [
            "contents": [["uri": .string(uri), "mimeType": "application/json", "text": .string(json.text)]]
        ]
    }

    /// Returns the newest lines of an app's log.
    private func log(of endpoint: Endpoint, for principal: Principal) async throws(RPCError) -> String {
        guard let logs else { throw .invalidParams("this broker reads no logs of phones") }
        if let host = endpoint.id.host {
            throw .invalidParams("the log of \(endpoint.id) is read on its host \(host): patchbay log \(endpoint.id)")
        }
        do {
            var lines = try await logs.open(endpoint, lines: Self.logLines, for: principal).past.map(\.description)[...]
            var bytes = lines.reduce(0) { $0 + $1.utf8.count + 1 }
            while bytes > Self.logBytes, let first = lines.popFirst() { bytes -= first.utf8.count + 1 }
            return lines.map { $0 + "\n" }.joined()
        } catch let problem as Problem {
            throw .invalidParams(problem.detail + (problem.hint.map { "; try: \($0)" } ?? ""))
        } catch { throw .internalError("\(error)") }
    }

    /// Rejects subscriptions to resources that do not exist or that the principal may not see.
    func validateSubscription(_ params: JSONObject, for principal: Principal) async throws(RPCError) {
        guard let uri = params["uri"]?.string else { throw .invalidParams("uri must be a string") }
        guard principal.may(.registryRead) else { throw .resourceNotFound(uri) }
        switch BrokerResource(uri) {
        case .endpoints?: return
        case .endpoint(let id)?: if await directory.endpoint(id, visibleTo: principal) != nil { return }
        case .devices?: if principal.canSeeAllEndpoints { return }
        case .log?: throw .invalidParams("a log has no subscriptions; read it again")
        case nil: break
        }
        throw await notFound(uri, for: principal)
    }

    /// Returns the error for a resource that does not exist, with the nearest one that the principal may read.
    private func notFound(_ uri: String, for principal: Principal) async -> RPCError {
        guard principal.may(.registryRead), uri.utf8.count <= 100 else { return .resourceNotFound(uri) }
        let ids = await directory.listed(visibleTo: principal).filter { $0.approval == .approved }.map(\.id)
        let uris = [BrokerResource.endpoints.uri] + ids.map { BrokerResource.endpoint($0).uri }
        let near = uris.min { SimilarNameFinder.distance($0, uri) < SimilarNameFinder.distance($1, uri) }
        guard let near, SimilarNameFinder.distance(near, uri) <= 3 else { return .resourceNotFound(uri) }
        return .resourceNotFound(uri, suggestion: "; did you mean \(near)? resources/list lists those there are")
    }

    /// Returns the summary of an endpoint. For an approved endpoint, adds its approved routes and the facts that they
    /// report.
    private func details(of endpoint: Endpoint) async -> JSON {
        var json = await directory.summaries(of: [endpoint]).first?.json ?? [:]
        guard endpoint.approval == .approved else { return .object(json) }
        json["reason"] = endpoint.reason.map(JSON.string)
        json["routes"] = Self.json(endpoint.approvedRoutes)
        json["hostRoutes"] = endpoint.hostRoutes.map { Self.json($0.filter(\.isApproved)) }
        json["txt"] = Self.json(endpoint.txt)
        json["firstSeenAt"] = .string(JSONCoding.text(of: endpoint.firstSeenAt))
        json["lastSeenAt"] = endpoint.lastSeenAt.map { .string(JSONCoding.text(of: $0)) }
        return .object(json)
    }

    private static func cursor(_ params: JSONObject) throws(RPCError) -> String {
        guard let cursor = params["cursor"] else { return "" }
        guard let text = cursor.string, EndpointID(text) != nil else { throw .invalidParams("unknown cursor") }
        return text
    }

    private static func json(_ value: some Encodable) -> JSON {
        (try? JSONCoding.encoder().encode(value)).flatMap { try? JSON(parsing: $0) } ?? .null
    }
}

/// A resource at `/mcp`, identified by its URI.
enum BrokerResource: Hashable, Sendable {
    case endpoints
    case endpoint(EndpointID)
    case devices
    /// The newest lines of an app's log, as text.
    case log(EndpointID)

    private static let endpointPrefix = "patchbay://endpoint/"
    private static let logSuffix = "/log"

    init?(_ uri: String) {
        switch uri {
        case "patchbay://endpoints": self = .endpoints
        case "patchbay://devices": self = .devices
        default:
            let isLog = uri.hasSuffix(Self.logSuffix)
            let text = uri.dropFirst(Self.endpointPrefix.count).dropLast(isLog ? Self.logSuffix.utf8.count : 0)
            guard uri.hasPrefix(Self.endpointPrefix), let id = EndpointID(text) else { return nil }
            self = isLog ? .log(id) : .endpoint(id)
        }
    }

    var uri: String {
        switch self {
        case .endpoints: "patchbay://endpoints"
        case .endpoint(let id): Self.endpointPrefix + id.text
        case .devices: "patchbay://devices"
        case .log(let id): Self.endpointPrefix + id.text + Self.logSuffix
        }
    }

    /// The media type of the content.
    var type: String { if case .log = self { "text/plain" } else { "application/json" } }

    var json: JSON {
        let name =
            switch self {
            case .endpoints: "endpoints"
            case .endpoint(let id): id.text
            case .devices: "devices"
            case .log(let id): "log of \(id)"
            }
        return ["uri": .string(uri), "name": .string(name), "mimeType": .string(type)]
    }

    static let templates: JSON = [
        ["uriTemplate": "patchbay://endpoint/{id}", "name": "endpoint", "mimeType": "application/json"],
        [
            "uriTemplate": "patchbay://endpoint/{id}/log", "name": "log", "mimeType": "text/plain",
            "description": "What an app on an Android phone logged: its newest 500 lines",
        ],
        [
            "uriTemplate": "patchbay://artifact/{sha}", "name": "artifact",
            "description": "Content too large for a result; kept for an hour",
        ],
    ]
}
