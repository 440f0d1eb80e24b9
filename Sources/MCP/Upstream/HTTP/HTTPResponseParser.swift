/// Takes the bytes of an HTTP/1.1 stream apart into an answer's head, body and end, however they are cut (RFC 9112).
///
/// Without I/O: whoever reads the stream gives it bytes, and asks for what they made. Strict where a lenient reader would
/// see another body than the server meant: lengths that contradict each other are refused.
struct HTTPResponseParser: Sendable {
    enum Event: Hashable, Sendable {
        case head(HTTPResponseHead)
        case body(ArraySlice<UInt8>)
        case end
    }

    private enum State: Hashable, Sendable {
        case head
        case length(left: Int)
        case chunkSize
        case chunk(left: Int)
        /// The line break behind a chunk.
        case chunkEnd
        case trailers
        /// RFC 9112, section 6.3, item 8: the body is what comes until the end of the stream.
        case untilEnd
        case over
    }

    /// The most bytes that a head, a chunk's size or the trailers may take.
    static let headLimit = 64 * 1_024
    private static let lineBreak: [UInt8] = [0x0D, 0x0A]

    private var state = State.head
    private var buffer: [UInt8] = []
    private var place = 0
    /// The server closes the stream after this answer.
    private(set) var isLastAnswer = false

    /// Whether the answer is complete, nothing follows it, and the stream may be used for another one.
    var mayGoOn: Bool { state == .over && !isLastAnswer && place == buffer.count }

    mutating func append(_ bytes: some Sequence<UInt8>) {
        if place > 0 {
            buffer.removeFirst(place)
            place = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// What comes next; nil when that needs more bytes, or when everything has come.
    mutating func next() throws(HTTPParseError) -> Event? {
        while true {
            switch state {
            case .head:
                guard let head = try head() else { return nil }
                // Section 15.2 of RFC 9110: any number of interim answers may come before the real one.
                if (100..<200).contains(head.status) {
                    guard head.status != 101 else { throw .malformed("another protocol than HTTP") }
                    continue
                }
                isLastAnswer = head.isLast
                state = try Self.framing(of: head)
                if state == .untilEnd { isLastAnswer = true }
                return .head(head)
            case .length(0):
                state = .over
                return .end
            case .length(let left):
                guard let part = take(atMost: left) else { return nil }
                state = .length(left: left - part.count)
                return .body(part)
            case .chunkSize:
                guard let line = try line() else { return nil }
                let size = try Self.chunkSize(line)
                state = size == 0 ? .trailers : .chunk(left: size)
            case .chunk(0):
                state = .chunkEnd
            case .chunk(let left):
                guard let part = take(atMost: left) else { return nil }
                state = .chunk(left: left - part.count)
                return .body(part)
            case .chunkEnd:
                guard let line = try line() else { return nil }
                guard line.isEmpty else { throw .malformed("a chunk of another length than it says") }
                state = .chunkSize
            case .trailers:
                guard let line = try line() else { return nil }
                if line.isEmpty {
                    state = .over
                    return .end
                }
            case .untilEnd:
                return take(atMost: .max).map(Event.body)
            case .over:
                return nil
            }
        }
    }

    /// The stream has ended: says whether the answer has, too.
    mutating func finish() throws(HTTPParseError) {
        guard state == .untilEnd || state == .over else { throw .unfinished }
        state = .over
    }

    private mutating func take(atMost count: Int) -> ArraySlice<UInt8>? {
        guard place < buffer.count else { return nil }
        let part = buffer[place..<min(buffer.count, place + min(count, buffer.count))]
        place = part.endIndex
        return part
    }

    private mutating func head() throws(HTTPParseError) -> HTTPResponseHead? {
        var start = place
        while let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
            let after = buffer[(end + 1)...]
            let gap = after.first == 0x0A ? 1 : after.starts(with: Self.lineBreak) ? 2 : 0
            if gap > 0 {
                guard end - place <= Self.headLimit else { throw .malformed("a head of more than 64 KiB") }
                let head = try HTTPResponseHead(parsing: buffer[place..<end])
                place = end + 1 + gap
                return head
            }
            start = end + 1
        }
        // Something else than HTTP is told from it by its first letters, and not when its 64 KiB are full.
        let shown = buffer[place...].prefix(5)
        guard "HTTP/".utf8.starts(with: shown) else { throw .notHTTP }
        guard buffer.count - place <= Self.headLimit else { throw .malformed("a head of more than 64 KiB") }
        return nil
    }

    /// A line without its break.
    private mutating func line() throws(HTTPParseError) -> ArraySlice<UInt8>? {
        guard let end = buffer[place...].firstIndex(of: UInt8(ascii: "\n")) else {
            guard buffer.count - place <= Self.headLimit else { throw .malformed("a line of more than 64 KiB") }
            return nil
        }
        let line = buffer[place..<end]
        place = end + 1
        return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    }

    /// RFC 9112, section 6.3.
    private static func framing(of head: HTTPResponseHead) throws(HTTPParseError) -> State {
        if head.status == 204 || head.status == 304 { return .length(left: 0) }
        let codings = head.values(of: "transfer-encoding")
        let lengths = Set(head.values(of: "content-length"))
        if !codings.isEmpty {
            guard codings.count == 1, codings[0].lowercased() == "chunked" else {
                throw .malformed("a transfer coding that was not asked for")
            }
            guard lengths.isEmpty else { throw .malformed("two lengths that contradict each other") }
            return .chunkSize
        }
        guard let length = lengths.first else { return .untilEnd }
        guard lengths.count == 1, let count = HTTPResponseHead.number(length.utf8) else {
            throw .malformed("a length that is none")
        }
        return .length(left: count)
    }

    /// Section 7.1: hexadecimal digits; extensions may follow and mean nothing to us.
    private static func chunkSize(_ line: ArraySlice<UInt8>) throws(HTTPParseError) -> Int {
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        guard (1...15).contains(digits.count),
            digits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let size = Int(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw .malformed("a chunk without a length") }
        return size
    }
}
