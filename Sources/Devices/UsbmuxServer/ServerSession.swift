import Model

/// The protocol state machine of one client. Parses requests and encodes responses; does no I/O.
///
/// Requests are handled one at a time and in order. The caller reports the result of an action (`connectCompleted`,
/// `upstreamReplied`, `listenResponse`) before it asks for the next one.
struct UsbmuxServerSession: Sendable {
    enum Action: Hashable, Sendable {
        /// Send these bytes and continue.
        case send([UInt8])
        /// Dial, then call `connectCompleted(_:)`. After a success, the device's stream follows the response.
        case dial(NumberedDevice, port: UInt16)
        /// Forward the request to usbmuxd, then call `upstreamReplied(_:)`.
        case forward([UInt8], name: String)
        /// Send `listenResponse(_:)`, then `deviceEvent(_:)` for each change. Close the connection when the client
        /// sends anything.
        case listen(ListenerInfo)
        /// Close the connection.
        case close
    }

    private var decoder = UsbmuxFrameDecoder(forRequests: true)
    private var dialect = UsbmuxServerResponse.Dialect.binary
    /// Tag of the current request.
    private var tag: UInt32 = 0

    /// Maximum number of bytes to read next. Bytes after a Connect belong to the stream, not to the session.
    var bytesNeeded: Int { decoder.bytesNeeded }

    mutating func append(_ bytes: some Collection<UInt8>) { decoder.append(bytes) }

    /// Returns the action for the next request; nil when its bytes are incomplete.
    ///
    /// - Throws: An error of the property list encoder.
    mutating func nextAction(in snapshot: UsbmuxServerSnapshot) throws -> Action? {
        let frame: UsbmuxFrame?
        do {
            frame = try decoder.nextFrame()
        } catch {
            // The next message boundary is unknown, so the connection is closed, as in usbmuxd.
            return .close
        }
        guard let frame else { return nil }
        tag = frame.header.tag
        if frame.header.version <= 1, frame.header.kind == 8 { dialect = .propertyList }
        switch UsbmuxServerRequest(frame) {
        case .listen(let program): return .listen(program)
        case .listDevices: return .send(try encode(.devices(snapshot.devices.devices)))
        case .listListeners: return .send(try encode(.listeners(snapshot.listeners)))
        case .connect(let deviceID, let port):
            guard let device = snapshot.devices.device(deviceID) else { return .send(try encode(.result(.badDevice))) }
            // No app can listen on port 0. usbmuxd responds with the same result.
            guard port != 0 else { return .send(try encode(.result(.refused))) }
            return .dial(device, port: port)
        case .forwarded(let propertyList, let name): return .forward(propertyList, name: name)
        case .invalid(let result): return .send(try encode(.result(result)))
        }
    }

    /// Returns the response to Connect; a nil `failure` means success. After a failure the client may send another
    /// request.
    func connectCompleted(_ failure: DialError?) throws -> [UInt8] {
        try encode(.result(failure.map { Self.result(for: $0.reason) } ?? .ok))
    }

    /// Returns the response to a forwarded request; a nil body means that usbmuxd did not answer.
    ///
    /// In that case the result is "refused" (3). libusbmuxd reads result 2 as ENOENT; a client that asked for a pairing
    /// record would start a new pairing.
    func upstreamReplied(_ body: UsbmuxMessage.Body?) throws -> [UInt8] {
        switch body {
        case .propertyList(let bytes): try encode(.forwarded(bytes))
        case .result(let result): try encode(.result(result))
        case nil: try encode(.result(.refused))
        }
    }

    /// Returns the response to Listen, followed by an attach event for every device.
    func listenResponse(_ devices: [NumberedDevice]) throws -> [UInt8] {
        try devices.reduce(try encode(.result(.ok))) { try $0 + deviceEvent(.attached($1)) }
    }

    func deviceEvent(_ change: DeviceChange) throws -> [UInt8] {
        try UsbmuxServerResponse.change(change).encoded(tag: 0, in: dialect)
    }

    private func encode(_ response: UsbmuxServerResponse) throws -> [UInt8] {
        try response.encoded(tag: tag, in: dialect)
    }

    /// Maps a dial error to usbmuxd's result. libusbmuxd knows two for a failed Connect: the device is absent, or any
    /// other failure, which a retry may fix.
    private static func result(for reason: DialError.Reason) -> UsbmuxResult {
        switch reason {
        case .deviceAbsent, .usbmuxdAbsent: .badDevice
        case .refused, .timedOut, .unreachable, .noRoute, .limit, .forbidden, .foreignUser, .leased, .browser,
            .linkLost, .failed:
            .refused
        }
    }
}
