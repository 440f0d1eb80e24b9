extension JSON {
    /// What has more bytes is read elsewhere: some milliseconds for each megabyte.
    private static let light = 64 * 1_024

    /// Reads a text of any size without keeping a thread from others that the task prefers to run on.
    ///
    /// - Throws: `JSONError`.
    package static func parse(_ bytes: [UInt8]) async throws(JSONError) -> JSON { try await parse(bytes[...]) { $0 } }

    /// The same, and changes what was read, in the same place.
    package static func parse(
        _ bytes: ArraySlice<UInt8>,
        _ change: @escaping @Sendable (JSON) -> JSON
    ) async throws(JSONError) -> JSON {
        guard bytes.count > light else { return change(try JSON(parsing: bytes)) }
        // A task of its own: `withTaskExecutorPreference` goes on where it is when an actor's turn came by way of the task
        // executor (Swift 6.3), which is an event loop's thread.
        return try await withTaskGroup(of: Result<JSON, JSONError>.self) { group in
            group.addTask(executorPreference: globalConcurrentExecutor) {
                Result { () throws(JSONError) in change(try JSON(parsing: bytes)) }
            }
            var parsed = Result<JSON, JSONError>.success(.null)
            for await result in group { parsed = result }
            return parsed
        }.get()
    }
}
