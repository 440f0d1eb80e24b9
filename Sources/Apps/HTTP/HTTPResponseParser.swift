/// Parses an HTTP/1.1 byte stream into head, body and end of a response (RFC 9112).
///
/// Performs no I/O: the caller appends bytes and reads events. Rejects contradictory lengths, because a lenient parser
/// would see another body than the server meant.
package struct HTTPResponseParser: Sendable {
    package enum Event: Hashable, Sendable {
        case head(HTTPResponseHead)
        case body(ArraySlice<UInt8>)
        case end
    }

    private enum State: Hashable, Sendable {
        case head
        case length(left: Int)
        case chunkSize
        case chunk(left: Int)
        /// The line break after a chunk.
        case chunkEnd
        case trailers
        /// RFC 9112, section 6.3, item 8: the body extends to the end of the stream.
        case untilEnd
        case over
    }

    /// The size limit of a head, a chunk size line or a trailer line, in bytes.
    static let headLimit = 64 * 1_024
    private static let lineBreak: [UInt8] = [0x0D, 0x0A]

    /// Indicates whether the request asks for another protocol, whose bytes are then the body of a response 101.
    private let mayUpgrade: Bool
    private var state = State.head
    private var buffer: [UInt8] = []
    private var position = 0
    /// Indicates whether the server closes the stream after this response.
    package private(set) var isLastResponse = false

    /// Indicates whether the response is complete, no bytes follow, and the stream may be used for another request.
    package var isReusable: Bool { state == .over && !isLastResponse && position == buffer.count }

    package init(mayUpgrade: Bool = false) { self.mayUpgrade = mayUpgrade }

    package mutating func append(_ bytes: some Sequence<UInt8>) {
        if position > 0 {
            buffer.removeFirst(position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Returns the next event; nil if more bytes are needed or the response is complete.
    package mutating func next() throws(ExchangeError) -> Event? {
        while true {
            switch state {
            case .head:
                guard let head = try head() else { return nil }
                // RFC 9110, section 15.2: any number of interim responses may precede the final one.
                if (100..<200).contains(head.status) {
                    guard head.status == 101 else { continue }
                    guard mayUpgrade else { throw .invalid("another protocol than HTTP") }
                    (state, isLastResponse) = (.untilEnd, true)
                    return .head(head)
                }
                isLastResponse = head.closesConnection
                state = try Self.framing(of: head)
                if state == .untilEnd { isLastResponse = true }
                return .head(head)
            case .length(0):
                state = .over
                return .end
            case .length(let left):
                guard let part = read(atMost: left) else { return nil }
                state = .length(left: left - part.count)
                return .body(part)
            case .chunkSize:
                guard let line = try line() else { return nil }
                let size = try Self.chunkSize(line)
                state = size == 0 ? .trailers : .chunk(left: size)
            case .chunk(0):
                state = .chunkEnd
            case .chunk(let left):
                guard let part = read(atMost: left) else { return nil }
                state = .chunk(left: left - part.count)
                return .body(part)
            case .chunkEnd:
                guard let line = try line() else { return nil }
                guard line.isEmpty else { throw .invalid("a chunk of the wrong length") }
                state = .chunkSize
            case .trailers:
                guard let line = try line() else { return nil }
                if line.isEmpty {
                    state = .over
                    return .end
                }
            case .untilEnd:
                return read(atMost: .max).map(Event.body)
            case .over:
                return nil
            }
        }
    }

    /// Handles the end of the stream; throws if the response is incomplete.
    mutating func finish() throws(ExchangeError) {
        guard state == .untilEnd || state == .over else { throw .interrupted }
        state = .over
    }

    private mutating func read(atMost count: Int) -> ArraySlice<UInt8>? {
        guard position < buffer.count else { return nil }
        let part = buffer[position..<min(buffer.count, position + min(count, buffer.count))]
        position = part.endIndex
        return part
    }

    private mutating func head() throws(ExchangeError) -> HTTPResponseHead? {
        var start = position
        while let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
            let after = buffer[(end + 1)...]
            let gap = after.first == 0x0A ? 1 : after.starts(with: Self.lineBreak) ? 2 : 0
            if gap > 0 {
                guard end - position <= Self.headLimit else { throw .invalid("a head larger than 64 KiB") }
                let head = try HTTPResponseHead(parsing: buffer[position..<end])
                position = end + 1 + gap
                return head
            }
            start = end + 1
        }
        // Another protocol is detected by its first bytes, before 64 KiB have arrived.
        let shown = buffer[position...].prefix(5)
        guard "HTTP/".utf8.starts(with: shown) else { throw .notHTTP }
        guard buffer.count - position <= Self.headLimit else { throw .invalid("a head larger than 64 KiB") }
        return nil
    }

    /// Returns a line without its line break.
    private mutating func line() throws(ExchangeError) -> ArraySlice<UInt8>? {
        guard let end = buffer[position...].firstIndex(of: UInt8(ascii: "\n")) else {
            guard buffer.count - position <= Self.headLimit else { throw .invalid("a line longer than 64 KiB") }
            return nil
        }
        let line = buffer[position..<end]
        position = end + 1
        return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    }

    /// RFC 9112, section 6.3.
    private static func framing(of head: HTTPResponseHead) throws(ExchangeError) -> State {
        if head.status == 204 || head.status == 304 { return .length(left: 0) }
        let codings = head.values(of: "transfer-encoding")
        let lengths = Set(head.values(of: "content-length"))
        if !codings.isEmpty {
            guard codings.count == 1, codings[0].lowercased() == "chunked" else {
                throw .invalid("an unsupported transfer coding")
            }
            guard lengths.isEmpty else { throw .invalid("contradictory lengths") }
            return .chunkSize
        }
        guard let length = lengths.first else { return .untilEnd }
        guard lengths.count == 1, let count = HTTPResponseHead.number(length.utf8) else {
            throw .invalid("an invalid length")
        }
        return .length(left: count)
    }

    /// RFC 9112, section 7.1: hexadecimal digits; extensions are ignored.
    private static func chunkSize(_ line: ArraySlice<UInt8>) throws(ExchangeError) -> Int {
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        guard (1...15).contains(digits.count),
            digits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let size = Int(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw .invalid("a chunk without a length") }
        return size
    }
}
