import Model

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
