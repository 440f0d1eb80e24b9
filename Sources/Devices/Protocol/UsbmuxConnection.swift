import Glibc
import SystemIO

/// Speaks usbmuxd's protocol over a connected, non-blocking socket. The caller owns the socket.
///
/// Reads exactly the bytes of the returned messages. Bytes after the reply to a Connect stay in the socket.
struct UsbmuxConnection: Sendable {
    let number: CInt
    private var decoder = UsbmuxFrameDecoder()

    /// A connection carries one request, so the tag only has to differ from 0, the tag of unsolicited messages.
    private static let tag: UInt32 = 1

    init(over number: CInt) { self.number = number }

    /// Sends a request and waits for the reply. Has no timeout: the caller sets one and cancels.
    ///
    /// - Throws: `UsbmuxError`, also for every result other than "ok"; `CancellationError`.
    mutating func request(_ request: UsbmuxRequest) async throws -> UsbmuxReply {
        let body = try request.message(tag: Self.tag).body
        let reply = try UsbmuxReply(await exchange(body, for: request.name))
        if case .result(let result) = reply, result != .ok {
            throw UsbmuxError.result(result, request: request.name)
        }
        return reply
    }

    /// Sends a property list written by another client and waits for the reply, whatever its content.
    ///
    /// - Throws: `UsbmuxError`, also if the reply belongs to another request; `CancellationError`.
    mutating func exchange(_ body: UsbmuxMessage.Body, for request: String) async throws -> UsbmuxMessage {
        try await send(UsbmuxMessage(tag: Self.tag, body: body).encoded, for: request)
        let message = try await receive(for: request)
        if case .result(.badVersion) = message.body { throw UsbmuxError.result(.badVersion, request: request) }
        guard message.tag == Self.tag else {
            throw UsbmuxError.malformedMessage("an answer with tag \(message.tag) to a request with tag \(Self.tag)")
        }
        return message
    }

    /// Receives the next message. `request` names the request in errors.
    mutating func receive(for request: String) async throws -> UsbmuxMessage {
        while true {
            if let message = try decoder.next() { return message }
            // Receive in chunks of 64 KiB, so that memory grows only with bytes that really arrive.
            let room = min(decoder.bytesNeeded, 64 << 10)
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
            default: throw UsbmuxError.failed(call: "reading from usbmuxd", message: SocketError.message(for: failure))
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
            default: throw UsbmuxError.failed(call: "writing to usbmuxd", message: SocketError.message(for: errno))
            }
        }
    }
}
