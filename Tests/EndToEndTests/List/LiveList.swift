import FoundationEssentials
import Model
import TestSupport

/// The broker's endpoint list, read from `patchbay watch --json`, with times.
struct LiveList {
    /// The line that matched.
    struct Moment: Sendable {
        let endpoint: Endpoint
        let time: ContinuousClock.Instant
        /// The index of the next line.
        let next: Int
    }

    private struct Told: Decodable {
        let endpoint: Endpoint?
        let endpoints: [Endpoint]?
    }

    let watch: Program

    init(of broker: RunningBroker) async throws {
        watch = try await broker.start("watch", "--json")
        try await watch.waitForLine("snapshot")
    }

    /// The index of the first future line.
    var now: Int { watch.transcript.soFar.count }

    /// Waits for the first endpoint after line `start` that matches.
    func first(
        _ promise: String,
        from start: Int = 0,
        within limit: Duration = eventLimit,
        where fits: @escaping @Sendable (Endpoint) -> Bool
    ) async throws -> Moment {
        let missing = { @Sendable [watch] in "\(promise): not told by\n\(watch.log)\n" }
        return try await withDeadline(limit, missing) { [watch] in
            var next = start
            for await line in watch.transcript.elements(from: start) {
                next += 1
                guard line.source == .output else { continue }
                let told = try JSONCoding.decoder().decode(Told.self, from: Data(line.text.utf8))
                let all = (told.endpoint.map { [$0] } ?? []) + (told.endpoints ?? [])
                if let endpoint = all.first(where: fits) {
                    return Moment(endpoint: endpoint, time: line.time, next: next)
                }
            }
            throw TestSupportError("watch ended: \(missing())")
        }
    }
}

extension RunningBroker {
    /// The endpoints of `patchbay list --json`.
    func endpoints() async throws -> [Endpoint] {
        let json = try await ask("list", "--json").joined()
        return try JSONCoding.decoder().decode(EndpointList.self, from: Data(json.utf8)).endpoints
    }
}
