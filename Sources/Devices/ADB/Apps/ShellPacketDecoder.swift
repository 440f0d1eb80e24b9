/// Splits the bytes of the service `shell,v2` into its outputs (AOSP shell_protocol.h).
///
/// A packet is a byte that names the output, four bytes of a length in little-endian order, and so many bytes. The
/// decoder keeps none of them, whatever length a packet claims.
struct ShellPacketDecoder: Sendable {
    enum Event: Hashable, Sendable {
        case output([UInt8])
        case error([UInt8])
        case exit(UInt8)
    }

    private static let headerLength = 5

    private var header: [UInt8] = []
    private var remaining: UInt32 = 0

    /// Reads received bytes. Returns the parts of the outputs in them, in order. Packets of other outputs are ignored.
    mutating func read(_ bytes: [UInt8]) -> [Event] {
        var events: [Event] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard remaining > 0 else {
                let missing = Self.headerLength - header.count
                if missing == 0 { header = [] }
                let part = rest.prefix(missing == 0 ? Self.headerLength : missing)
                header += part
                rest = rest.dropFirst(part.count)
                if header.count == Self.headerLength {
                    remaining = header.dropFirst().reversed().reduce(0) { $0 << 8 | UInt32($1) }
                }
                continue
            }
            let part = Array(rest.prefix(Int(min(remaining, UInt32(Int32.max)))))
            rest = rest.dropFirst(part.count)
            remaining -= UInt32(part.count)
            switch header[0] {
            case 1: events.append(.output(part))
            case 2: events.append(.error(part))
            case 3: events.append(.exit(part[0]))
            default: break
            }
        }
        return events
    }
}
