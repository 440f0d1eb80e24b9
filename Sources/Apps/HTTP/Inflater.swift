import CZlib

/// Decodes a body in the content codings gzip and deflate (RFC 9110, section 8.4.1), in steps of bounded size.
///
/// The first bytes decide: gzip (RFC 1952), zlib (RFC 1950) or, for deflate, the bare data (RFC 1951) that some servers
/// send. A body that is declared as gzip and is not compressed passes unchanged, because proxies decode bodies and keep
/// the header. The caller limits the total size.
///
/// `@unchecked` because zlib's stream is C. The decoder of one response owns the object and uses it in one task.
package final class Inflater: @unchecked Sendable {
    /// The content codings. The raw values are those of HTTP.
    package enum Coding: String, Sendable {
        case gzip
        case deflate
    }

    private enum State {
        case undecided
        case unchanged
        case inflating
        /// The end of a gzip member. Another one may follow (RFC 1952, section 2.2).
        case memberEnd
        /// Further bytes are ignored.
        case over
    }

    /// The maximum number of bytes of one step. It bounds what a decompression bomb can use before the caller's limit.
    package static let step = 64 * 1_024
    private static let damaged = ExchangeError.invalid("a body that is no valid gzip or deflate")
    private static let gzipMark: [UInt8] = [0x1F, 0x8B]

    private let coding: Coding
    // zlib keeps the address of its stream.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var state = State.undecided
    private var isInitialized = false
    private var input: [UInt8] = []
    private var position = 0
    /// Indicates whether the last step filled its buffer, so that zlib may hold more output.
    private var hasOutput = false

    package init(_ coding: Coding) {
        self.coding = coding
        stream.initialize(to: z_stream())
    }

    deinit {
        if isInitialized { inflateEnd(stream) }
        stream.deallocate()
    }

    /// Adds bytes as they were received.
    package func append(_ bytes: ArraySlice<UInt8>) {
        input.removeFirst(position)
        position = 0
        input += bytes
    }

    /// Decodes the next bytes.
    ///
    /// - Returns: At most `step` bytes, or all bytes of a body that is not compressed; nil if more bytes are needed.
    /// - Throws: `ExchangeError`.
    package func next() throws(ExchangeError) -> [UInt8]? {
        while true {
            switch state {
            case .undecided:
                guard input.count - position >= 2 else { return nil }
                try decide()
            case .unchanged: return takeInput()
            case .inflating:
                guard position < input.count || hasOutput else { return nil }
                let output = try inflateStep()
                if !output.isEmpty { return output }
            case .memberEnd:
                guard position < input.count else { return nil }
                guard coding == .gzip, input[position] == Self.gzipMark[0] else {
                    state = .over
                    continue
                }
                inflateReset(stream)
                state = .inflating
            case .over:
                position = input.count
                return nil
            }
        }
    }

    /// Ends the body.
    ///
    /// - Returns: The rest of a body that is too short to be compressed.
    /// - Throws: `ExchangeError.interrupted`.
    package func finish() throws(ExchangeError) -> [UInt8]? {
        if state == .inflating { throw .interrupted }
        return state == .undecided ? takeInput() : nil
    }

    private func takeInput() -> [UInt8]? {
        defer { position = input.count }
        return position < input.count ? Array(input[position...]) : nil
    }

    private func decide() throws(ExchangeError) {
        let (first, second) = (input[position], input[position + 1])
        // RFC 1950, section 2.2: the method 8, and a check of both bytes.
        let isZlib = first & 0x0F == 8 && (Int(first) << 8 | Int(second)) % 31 == 0
        let windowBits: CInt
        if [first, second] == Self.gzipMark {
            windowBits = MAX_WBITS + 16
        } else if isZlib {
            windowBits = MAX_WBITS
        } else if coding == .deflate {
            windowBits = -MAX_WBITS
        } else {
            state = .unchanged
            return
        }
        guard CZlib_inflate_init(stream, windowBits) == Z_OK else { throw Self.damaged }
        (isInitialized, state) = (true, .inflating)
    }

    private func inflateStep() throws(ExchangeError) -> [UInt8] {
        var status: CInt = Z_OK
        let output = [UInt8](unsafeUninitializedCapacity: Self.step) { output, count in
            input.withUnsafeMutableBufferPointer { input in
                stream.pointee.next_in = input.baseAddress.map { $0 + position }
                stream.pointee.avail_in = CUnsignedInt(input.count - position)
                stream.pointee.next_out = output.baseAddress
                stream.pointee.avail_out = CUnsignedInt(output.count)
                status = inflate(stream, Z_NO_FLUSH)
                position = input.count - Int(stream.pointee.avail_in)
                count = output.count - Int(stream.pointee.avail_out)
            }
        }
        hasOutput = output.count == Self.step
        switch status {
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: (state, hasOutput) = (.memberEnd, false)
        default: throw Self.damaged
        }
        return output
    }
}
