import SystemIO

/// Speaks usbmuxd's protocol over a connected, non-blocking socket. The caller owns the socket.
///
/// Reads exactly the bytes of the returned messages. Bytes after the reply to a Connect stay in the socket.
struct UsbmuxConnection: Sendable {
    private let stream: ByteStream
    private var decoder = UsbmuxFrameDecoder()

    /// A connection carries one request, so the tag only has to differ from 0, the tag of unsolicited messages.
    static let tag: UInt32 = 1

    init(over number: CInt) { stream = ByteStream(over: number, to: "usbmuxd") }

    /// Sends a request and waits for the reply. Has no timeout: the caller sets one and cancels.
    ///
    /// - Throws: `UsbmuxError`, also for every result other than "ok"; `CancellationError`.
    mutating func request(_ request: UsbmuxRequest) async throws -> UsbmuxReply {
        let reply = try UsbmuxReply(await exchange(request.message, for: request.name))
        if case .result(let result) = reply, result != .ok {
            throw UsbmuxError.result(result, request: request.name)
        }
        return reply
    }

    /// Sends a message and waits for the reply, whatever its content.
    ///
    /// - Throws: `UsbmuxError`, also if the reply belongs to another request; `CancellationError`.
    mutating func exchange(_ message: UsbmuxMessage, for request: String) async throws -> UsbmuxMessage {
        do {
            try await stream.send(message.encoded)
        } catch let failure as ByteStream.Failure {
            throw UsbmuxError(failure, during: request)
        }
        let reply = try await receive(for: request)
        if reply.body == .result(.badVersion) { throw UsbmuxError.result(.badVersion, request: request) }
        guard reply.tag == message.tag else {
            throw UsbmuxError.malformedMessage("an answer with tag \(reply.tag) to a request with tag \(message.tag)")
        }
        return reply
    }

    /// Receives the next message. `request` names the request in errors.
    mutating func receive(for request: String) async throws -> UsbmuxMessage {
        while true {
            if let message = try decoder.next() { return message }
            // Receive in chunks of 64 KiB, so that memory grows only with bytes that really arrive.
            let room = min(decoder.bytesNeeded, 64 << 10)
            do {
                decoder.append(try await stream.receive(atMost: room))
            } catch let failure as ByteStream.Failure {
                throw UsbmuxError(failure, during: request)
            }
        }
    }
}

extension UsbmuxError {
    fileprivate init(_ failure: ByteStream.Failure, during request: String) {
        switch failure {
        case .closed: self = .closed(request: request)
        case .failed(let call, let errno): self = .failed(call: call, message: SocketError.message(for: errno))
        }
    }
}
