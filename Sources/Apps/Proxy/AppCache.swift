import Crypto
package import Model

/// The cached descriptions and lists of all apps, in memory and on disk.
actor AppCache {
    private let storage: any AppCacheStorage
    private var records: [EndpointID: CachedApp] = [:]
    private var unsaved: Set<EndpointID> = []
    private let (saveRequests, saveRequest) = AsyncStream.makeStream(
        of: Void.self,
        bufferingPolicy: .bufferingNewest(1)
    )

    init(_ storage: any AppCacheStorage) { self.storage = storage }

    /// Returns the cached record of an app, or an empty record.
    func record(of id: EndpointID) async -> CachedApp {
        if let record = records[id] { return record }
        let loaded = await storage.load(id).flatMap(CachedApp.init) ?? CachedApp()
        // Another task may have loaded or changed the record during the load.
        let record = records[id] ?? loaded
        records[id] = record
        return record
    }

    /// Changes an app's record. The closure returns whether the record changed; that value is returned.
    @discardableResult
    func update(_ id: EndpointID, _ change: @Sendable (inout CachedApp) -> Bool) async -> Bool {
        var record = await record(of: id)
        guard change(&record) else { return false }
        records[id] = record
        unsaved.insert(id)
        saveRequest.yield()
        return true
    }

    func remove(_ id: EndpointID) async {
        records[id] = nil
        unsaved.remove(id)
        await storage.delete(id)
    }

    /// Saves changed records until the task is cancelled.
    func run() async {
        for await _ in saveRequests { await save() }
    }

    /// Saves all changed records now.
    func save() async {
        while let id = unsaved.popFirst() {
            if let text = records[id]?.text { await storage.save(text, of: id) }
        }
    }
}

/// The cached description and lists of one app, served while the app is offline.
struct CachedApp: Hashable, Sendable {
    /// The size limit of a cached list in bytes. A larger list is not cached.
    static let listLimit = 2 * 1_048_576

    private(set) var info: JSONObject?
    private(set) var capabilities: JSONObject = [:]
    private(set) var instructions: String?
    /// Results by method (`tools/list` etc.) as JSON text. Parsed, the lists of a hundred apps would take 15 MB.
    private(set) var lists: [String: String] = [:]
    /// The methods of the lists that this run of the broker has found changed. They are not stored.
    private(set) var changedMethods: Set<String> = []
    /// The number of tools in the list; nil without a list.
    private(set) var toolCount: Int?
    /// SHA-256 of the tool list, and of the tool list that a client last fetched.
    private(set) var digest: String?
    private(set) var lastSeenDigest: String?
    private var annotations: [[UInt8]: ToolAnnotations] = [:]
    /// The `inputSchema` of each tool as JSON text, so that a call parses one schema and not the list.
    private var schemas: [[UInt8]: String] = [:]

    init() {}

    /// Indicates whether the tools changed since a client last fetched them.
    var hasChanged: Bool { lastSeenDigest != nil && digest != lastSeenDigest }

    /// Records the server's description.
    ///
    /// - Returns: False if nothing changed.
    mutating func record(_ server: ServerInfo) -> Bool {
        guard info != server.info || capabilities != server.capabilities || instructions != server.instructions else {
            return false
        }
        (info, capabilities, instructions) = (server.info, server.capabilities, server.instructions)
        return true
    }

    /// Records a list.
    ///
    /// - Returns: False if the list is unchanged or too large.
    mutating func record(_ list: JSONObject, of method: String) -> Bool {
        let text = JSON.object(list).text
        guard lists[method] != text, text.utf8.count <= Self.listLimit else { return false }
        if lists[method] != nil { changedMethods.insert(method) }
        lists[method] = text
        if method == Self.tools { summarizeTools(list) }
        return true
    }

    static let tools = "tools/list"

    /// Records that a client has fetched the current tool list.
    ///
    /// - Returns: False if nothing changed.
    mutating func markSeen() -> Bool {
        guard lastSeenDigest != digest else { return false }
        lastSeenDigest = digest
        return true
    }

    /// Returns the last list of a method; nil if the app has never been listed.
    func list(of method: String) -> JSONObject? {
        lists[method].flatMap(Self.parsed)?.object
    }

    private mutating func summarizeTools(_ list: JSONObject) {
        let tools = list["tools"] ?? []
        toolCount = tools.array?.count
        digest = SHA256.hash(data: tools.bytes).reduce(into: "") { text, byte in
            text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
        // Later lists are compared with the first one.
        if lastSeenDigest == nil { lastSeenDigest = digest }
        annotations = ToolAnnotations.all(in: list)
        schemas = [:]
        for tool in tools.array ?? [] {
            guard let name = tool["name"]?.string, let schema = tool["inputSchema"] else { continue }
            schemas[Array(name.utf8)] = schema.text
        }
    }

    /// Returns the schema of a tool's arguments; nil if the app does not list the tool.
    func schema(of tool: String) -> JSON? { schemas[Array(tool.utf8)].flatMap(Self.parsed) }

    /// Parses a text of this type, which may be as deep as the message of an app.
    private static func parsed(_ text: String) -> JSON? {
        try? JSON(parsing: text.utf8, maxDepth: JSON.maxBrokerDepth)
    }

    /// Returns the annotations of a tool; nil for a tool that is not listed, or that has none. Names are compared as
    /// bytes: two tools may have names that Swift's strings treat as equal.
    func annotations(of tool: String) -> ToolAnnotations? { annotations[Array(tool.utf8)] }
}

/// The stored form.
extension CachedApp {
    /// Reads a stored record; nil if the text was not made by `text`.
    init?(_ text: String) {
        guard let stored = Self.parsed(text)?.object else { return nil }
        info = stored["info"]?.object
        capabilities = stored["capabilities"]?.object ?? [:]
        instructions = stored["instructions"]?.string
        lastSeenDigest = stored["lastSeenDigest"]?.string
        for list in stored["lists"]?.object?.members ?? [] {
            lists[list.name] = list.value.text
            if list.name == Self.tools, let object = list.value.object { summarizeTools(object) }
        }
    }

    var text: String {
        var stored: JSONObject = ["capabilities": .object(capabilities)]
        stored["info"] = info.map { .object($0) }
        stored["instructions"] = instructions.map { .string($0) }
        stored["lastSeenDigest"] = lastSeenDigest.map { .string($0) }
        var all = JSONObject()
        for method in lists.keys.sorted() { all[method] = list(of: method).map { .object($0) } }
        stored["lists"] = .object(all)
        return JSON.object(stored).text
    }
}

/// Stores the cached records of apps between two runs of Patchbay: one text for each app.
package protocol AppCacheStorage: Sendable {
    /// Returns the stored text; nil if there is none or if reading fails.
    func load(_ id: EndpointID) async -> String?
    /// Replaces the stored text. The implementation logs a failed write, and the text is lost.
    func save(_ text: String, of id: EndpointID) async
    func delete(_ id: EndpointID) async
}
