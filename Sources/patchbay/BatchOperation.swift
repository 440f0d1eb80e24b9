import Client

/// The same done to several things: where one of them fails, the others are still done.
enum BatchOperation {
    /// Does it to each in turn.
    ///
    /// - Throws: What the only refusal was; a `CLIError` with all of them where there were several. Anything but a refusal
    ///   of the broker ends the series at once.
    static func run(_ ids: [String], _ step: (String) async throws -> Void) async throws {
        var refusals: [ClientError] = []
        for id in ids {
            do {
                try await step(id)
            } catch let error as ClientError {
                guard case .refused = error else { throw error }
                refusals.append(error)
            }
        }
        guard refusals.count > 1 else {
            if let only = refusals.first { throw only }
            return
        }
        let numbers = Set(refusals.map { ExitStatus(for: $0) })
        throw CLIError(
            status: numbers.count == 1 ? ExitStatus(for: refusals[0]) : .error,
            message: "\(refusals.count) of \(ids.count) could not be done",
            candidates: refusals.map(\.description),
            remedy: refusals[0].remedy
        )
    }
}
