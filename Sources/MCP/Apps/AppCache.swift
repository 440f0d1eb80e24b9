import Crypto
import JSON
package import Model

/// What is known of all apps, in the broker's memory and behind it on the disk.
actor AppCache {
    private let memory: any AppCacheStorage
    private var records: [EndpointID: CachedApp] = [:]
    private var unsaved: Set<EndpointID> = []
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(_ memory: any AppCacheStorage) { self.memory = memory }

    /// What is known of an app; an empty record when nothing is.
    func record(of id: EndpointID) async -> CachedApp {
        if let record = records[id] { return record }
        let recalled = await memory.recall(id).flatMap(CachedApp.init) ?? CachedApp()
        // Somebody may have been told more meanwhile.
        let record = records[id] ?? recalled
        records[id] = record
        return record
    }

    /// Changes what is known of an app; whether something is different by it, is said by the change, and handed on.
    @discardableResult
    func update(_ id: EndpointID, _ change: @Sendable (inout CachedApp) -> Bool) async -> Bool {
        var record = await record(of: id)
        guard change(&record) else { return false }
        records[id] = record
        unsaved.insert(id)
        wake.yield()
        return true
    }

    func forget(_ id: EndpointID) async {
        records[id] = nil
        unsaved.remove(id)
        await memory.forget(id)
    }

    /// Writes what changes until the task is cancelled.
    func run() async {
        for await _ in wakes { await save() }
    }

    /// Writes what is not written yet.
    func save() async {
        while let id = unsaved.popFirst() {
            if let text = records[id]?.text { await memory.keep(text, of: id) }
        }
    }
}

/// What is known of one app, for the time that it is away.
struct CachedApp: Hashable, Sendable {
    /// A list of more bytes is not kept.
    static let listLimit = 2 * 1_048_576

    private(set) var info: JSONObject?
    private(set) var capabilities: JSONObject = [:]
    private(set) var instructions: String?
    /// Results by method (`tools/list` and the like) as JSON texts: as trees, a hundred apps would take 15 MB.
    private(set) var lists: [String: String] = [:]
    /// How many tools the list has; nil while there is none.
    private(set) var toolCount: Int?
    /// SHA-256 of the list of tools, and of the list that somebody looked at last.
    private(set) var digest: String?
    private(set) var pin: String?
    private(set) var traits: [String: ToolAnnotations] = [:]

    init() {}

    /// Other tools than at the time when somebody last looked.
    var hasChanged: Bool { pin != nil && digest != pin }

    /// - Returns: False when that was known.
    mutating func note(_ met: ServerInfo) -> Bool {
        guard info != met.info || capabilities != met.capabilities || instructions != met.instructions else {
            return false
        }
        (info, capabilities, instructions) = (met.info, met.capabilities, met.instructions)
        return true
    }

    /// - Returns: False when the list is as it was.
    mutating func note(_ list: JSONObject, of method: String) -> Bool {
        let text = JSON.object(list).text
        guard lists[method] != text, text.utf8.count <= Self.listLimit else { return false }
        lists[method] = text
        if method == Self.tools { describe(list) }
        return true
    }

    static let tools = "tools/list"

    /// Somebody looks at the list of tools as it is.
    ///
    /// - Returns: False when nothing changes by it.
    mutating func look() -> Bool {
        guard pin != digest else { return false }
        pin = digest
        return true
    }

    /// The list as it was heard last; nil when it never was.
    func list(of method: String) -> JSONObject? {
        lists[method].flatMap { try? JSON(parsing: $0) }?.object
    }

    private mutating func describe(_ list: JSONObject) {
        let tools = list["tools"] ?? []
        toolCount = tools.array?.count
        digest = SHA256.hash(data: tools.bytes).reduce(into: "") { text, byte in
            text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
        // The first list is what everything later is compared with.
        if pin == nil { pin = digest }
        traits = ToolAnnotations.all(in: list)
    }
}

/// As it is kept.
extension CachedApp {
    /// Nil when the text is not one that `text` made.
    init?(_ text: String) {
        guard let kept = (try? JSON(parsing: text))?.object else { return nil }
        info = kept["info"]?.object
        capabilities = kept["capabilities"]?.object ?? [:]
        instructions = kept["instructions"]?.string
        pin = kept["pin"]?.string
        for list in kept["lists"]?.object?.members ?? [] {
            lists[list.name] = list.value.text
            if list.name == Self.tools, let object = list.value.object { describe(object) }
        }
    }

    var text: String {
        var kept: JSONObject = ["capabilities": .object(capabilities)]
        kept["info"] = info.map { .object($0) }
        kept["instructions"] = instructions.map { .string($0) }
        kept["pin"] = pin.map { .string($0) }
        var all = JSONObject()
        for method in lists.keys.sorted() { all[method] = list(of: method).map { .object($0) } }
        kept["lists"] = .object(all)
        return JSON.object(kept).text
    }
}

/// Keeps what is known of apps between two runs of the broker: one text for each.
package protocol AppCacheStorage: Sendable {
    /// What was kept last; nil when nothing was, or when it cannot be read.
    func recall(_ id: EndpointID) async -> String?
    /// Replaces what is kept. What cannot be written is reported there, and lost.
    func keep(_ text: String, of id: EndpointID) async
    func forget(_ id: EndpointID) async
}
