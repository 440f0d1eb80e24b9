import FoundationEssentials

/// A key of etcd, or all keys with a prefix: the keys from `key` up to, but not including, `end`.
struct EtcdKeyRange: Hashable, Sendable {
    let key: Data
    /// Empty for a single key.
    let end: Data

    init(key: String) {
        self.key = Data(key.utf8)
        end = Data()
    }

    init(prefix: String) {
        // The byte 0 stands for all keys after `key` (`range_end` in etcd's rpc.proto).
        guard !prefix.isEmpty else {
            key = Data([0])
            end = Data([0])
            return
        }
        key = Data(prefix.utf8)
        // The end is the prefix with its last byte plus one. UTF-8 has no byte 0xff.
        var bytes = Array(prefix.utf8)
        bytes[bytes.count - 1] += 1
        end = Data(bytes)
    }
}
