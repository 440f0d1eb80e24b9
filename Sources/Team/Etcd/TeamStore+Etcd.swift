import FoundationEssentials
import SwiftProtobuf

extension EtcdKeyValue {
    var entry: TeamStoreEntry { TeamStoreEntry(key: String(decoding: key, as: UTF8.self), value: Array(value)) }
}

extension EtcdRangeResponse {
    /// - Throws: `TeamStoreError.failed` for a revision that no watch can follow.
    func list() throws(TeamStoreError) -> TeamStoreList {
        let revision = header.revision
        guard (0..<Int64.max).contains(revision) else { throw .failed(reason: "etcd sent the revision \(revision)") }
        return TeamStoreList(entries: kvs.map(\.entry), revision: revision)
    }
}

extension TeamStoreCondition {
    var comparison: EtcdCompare {
        .with { comparison in
            comparison.result = .equal
            switch self {
            case .absent(let key):
                // A key that does not exist has the create revision 0.
                comparison.target = .create
                comparison.key = EtcdKeyRange(key: key).key
                comparison.createRevision = 0
            case .equals(let key, let value):
                comparison.target = .value
                comparison.key = EtcdKeyRange(key: key).key
                comparison.value = Data(value)
            }
        }
    }
}

extension TeamStoreWrite {
    var operation: EtcdRequestOp {
        switch self {
        case .put(let key, let value, let sessionLease):
            .with {
                $0.requestPut.key = EtcdKeyRange(key: key).key
                $0.requestPut.value = Data(value)
                $0.requestPut.lease = sessionLease ?? 0
            }
        case .delete(let key): Self.deletion(EtcdKeyRange(key: key))
        case .deleteAll(let prefix): Self.deletion(EtcdKeyRange(prefix: prefix))
        }
    }

    private static func deletion(_ range: EtcdKeyRange) -> EtcdRequestOp {
        .with {
            $0.requestDeleteRange.key = range.key
            $0.requestDeleteRange.rangeEnd = range.end
        }
    }
}
