import SwiftProtobuf

/// The state of a watch on all keys with a prefix.
struct EtcdWatch {
    /// The number of progress requests without a response after which the watch fails.
    static let silenceLimit = 3

    private let range: EtcdKeyRange
    /// The revision of the last changes.
    private var revision: Int64
    private var unansweredRequests = 0

    init(prefix: String, after revision: Int64) {
        range = EtcdKeyRange(prefix: prefix)
        self.revision = revision
    }

    /// The first request of the stream.
    var creation: EtcdWatchRequest {
        .with {
            $0.createRequest.key = range.key
            $0.createRequest.rangeEnd = range.end
            $0.createRequest.startRevision = revision + 1
        }
    }

    /// Returns the next progress request. Called at regular intervals.
    ///
    /// - Throws: `TeamStoreError.unreachable` if the server has not answered for several intervals.
    mutating func progressRequest() throws(TeamStoreError) -> EtcdWatchRequest {
        guard unansweredRequests < Self.silenceLimit else {
            throw .unreachable(reason: "the server stopped to answer")
        }
        unansweredRequests += 1
        return .with { $0.progressRequest = EtcdWatchProgressRequest() }
    }

    /// Returns the changes of a response, each revision once.
    ///
    /// - Throws: `TeamStoreError` if the server has ended the watch.
    mutating func receive(_ response: EtcdWatchResponse) throws(TeamStoreError) -> [TeamStoreChanges] {
        let isProgress = unansweredRequests > 0 && !response.created && response.events.isEmpty
        unansweredRequests = 0
        if response.canceled { throw Self.error(response) }
        // The servers have another history, for example that of a backup. A server that lags is listed once more.
        if isProgress, response.header.revision < revision { throw .compacted }
        var all: [TeamStoreChanges] = []
        var index = response.events.startIndex
        while index < response.events.endIndex {
            let revision = response.events[index].kv.modRevision
            let changes = response.events[index...].prefix { $0.kv.modRevision == revision }
            index = changes.endIndex
            guard revision > self.revision else { continue }
            self.revision = revision
            all.append(TeamStoreChanges(changes: changes.map(\.change), revision: revision))
        }
        return all
    }

    private static func error(_ response: EtcdWatchResponse) -> TeamStoreError {
        if response.compactRevision > 0 { return .compacted }
        let reason = response.cancelReason
        return reason.contains("permission denied") ? .denied(reason: reason) : .unreachable(reason: reason)
    }
}

extension EtcdEvent {
    var change: TeamStoreChanges.Change { type == .delete ? .delete(key: kv.entry.key) : .put(kv.entry) }
}
