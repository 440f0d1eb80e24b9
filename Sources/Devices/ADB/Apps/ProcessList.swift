/// Reads the lists of the service `track-app` of Android 12 and later: four hexadecimal digits of a length, and a
/// protobuf message (AOSP app_processes.proto). The phone sends a list at each start and end of a debuggable app.
///
/// Only the process IDs are used. Apps report the other values themselves.
enum ProcessList {
    /// The number of processes that are read. A phone runs a few debuggable apps.
    static let limit = 64

    /// Returns the process IDs of a message, sorted; nil for a damaged message.
    static func processIDs(in message: [UInt8]) -> [UInt32]? {
        var ids: Set<UInt32> = []
        guard
            read(
                message[...],
                { number, value in
                    guard number == 1, case .bytes(let entry) = value, ids.count < limit else { return true }
                    return read(entry) { number, value in
                        if number == 1, case .varint(let id) = value, let id = UInt32(exactly: id), id > 1 {
                            ids.insert(id)
                        }
                        return true
                    }
                }
            )
        else { return nil }
        return ids.sorted()
    }

    private enum Value {
        case varint(UInt64)
        case bytes(ArraySlice<UInt8>)
    }

    /// Calls `field` for each field of a message (protobuf encoding). Returns false for a damaged one, or if `field` does.
    private static func read(_ message: ArraySlice<UInt8>, _ field: (UInt64, Value) -> Bool) -> Bool {
        var rest = message
        while !rest.isEmpty {
            guard let key = varint(&rest) else { return false }
            let value: Value
            switch key & 7 {
            case 0:
                guard let number = varint(&rest) else { return false }
                value = .varint(number)
            case 2:
                guard let count = varint(&rest), count <= UInt64(rest.count) else { return false }
                value = .bytes(rest.prefix(Int(count)))
                rest = rest.dropFirst(Int(count))
            default: return false
            }
            guard field(key >> 3, value) else { return false }
        }
        return true
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
        }
        return nil
    }
}
