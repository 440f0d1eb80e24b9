import Glibc
import SystemIO

/// Speaks usbmuxd's protocol over a connected, non-blocking socket, whose owner outlives it.
///
/// Takes exactly the bytes of the messages that it returns: what follows the answer to a Connect stays in the socket.
struct UsbmuxConnection: Sendable {
    let number: CInt
    private var decoder = UsbmuxFrameDecoder()

    /// A connection carries one request here, so the tag only has to be another than the 0 of what comes unasked.
    private static let tag: UInt32 = 1

    init(over number: CInt) { self.number = number }

    /// Sends a request and waits for its answer. There is no deadline here: the caller has one, and cancels.
    /// - Throws: `UsbmuxError`, also for every result that is not "ok"; `CancellationError`.
    mutating func ask(_ request: UsbmuxRequest) async throws -> UsbmuxReply {
        let body = try request.message(tag: Self.tag).body
        let reply = try UsbmuxReply(await exchange(body, for: request.name))
        if case .result(let result) = reply, result != .ok {
            throw UsbmuxError.result(result, request: request.name)
        }
        return reply
    }

    /// Sends a request that somebody else wrote and waits for its answer, whatever it says.
    /// - Throws: `UsbmuxError`, also when the answer is to another request; `CancellationError`.
    mutating func exchange(_ body: UsbmuxMessage.Body, for request: String) async throws -> UsbmuxMessage {
        try await send(UsbmuxMessage(tag: Self.tag, body: body).encoded, for: request)
        let message = try await receive(for: request)
        if case .result(.badVersion) = message.body { throw UsbmuxError.result(.badVersion, request: request) }
        guard message.tag == Self.tag else {
            throw UsbmuxError.garbled("an answer with tag \(message.tag) to a request with tag \(Self.tag)")
        }
        return message
    }

    /// The next message; `request` is what to call the conversation in an error.
    mutating func receive(for request: String) async throws -> UsbmuxMessage {
        while true {
            if let message = try decoder.next() { return message }
            // In pieces, so that memory grows only with what really comes.
            let room = min(decoder.missing, 64 << 10)
            var failure: CInt = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                let received = recv(number, buffer.baseAddress, room, 0)
                count = max(0, received)
                if received < 0 { failure = errno }
            }
            switch failure {
            case 0 where bytes.isEmpty, ECONNRESET, EPIPE: throw UsbmuxError.closed(request: request)
            case 0: decoder.append(bytes)
            case EAGAIN: try await Poller.shared.wait(for: .readable, of: number)
            case EINTR: continue
            default: throw UsbmuxError.failed(call: "reading from usbmuxd", words: SocketError.words(for: failure))
            }
        }
    }

    private func send(_ bytes: [UInt8], for request: String) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if sent >= 0 {
                rest = rest.dropFirst(sent)
                continue
            }
            switch errno {
            case EAGAIN: try await Poller.shared.wait(for: .writable, of: number)
            case EINTR: continue
            case EPIPE, ECONNRESET: throw UsbmuxError.closed(request: request)
            default: throw UsbmuxError.failed(call: "writing to usbmuxd", words: SocketError.words(for: errno))
            }
        }
    }
}
