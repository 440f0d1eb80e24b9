import Devices
import Model

/// One client's conversation: takes its bytes, says what is to be done, and words the answers. No I/O.
///
/// Requests are dealt with one at a time and in order: what is to be done for one is reported back (`dialled`,
/// `answered`, `welcome`) before the next is taken.
struct UsbmuxServerSession: Sendable {
    enum Step: Hashable, Sendable {
        /// Send this, and go on.
        case send([UInt8])
        /// Dial, then report with `dialled(_:)`; if it went well, what follows the answer is the phone's stream.
        case dial(NumberedDevice, port: UInt16)
        /// Ask usbmuxd, then report with `answered(_:)`.
        case ask([UInt8], name: String)
        /// Send `welcome(_:)`, then `news(_:)` of each change; whatever the client sends now ends it.
        case listen(ListenerInfo)
        /// Hang up.
        case close
    }

    private var decoder = UsbmuxFrameDecoder(from: .client)
    private var dialect = UsbmuxServerResponse.Dialect.binary
    /// Of the request that is being dealt with.
    private var tag: UInt32 = 0

    /// How many more bytes to read at most; what a client sends behind a Connect is not the session's.
    var missing: Int { decoder.missing }

    mutating func append(_ bytes: some Collection<UInt8>) { decoder.append(bytes) }

    /// What the next request asks for; nil when bytes of it are missing.
    /// - Throws: What the property list encoder throws.
    mutating func step(seeing view: UsbmuxServerSnapshot) throws -> Step? {
        let frame: UsbmuxFrame?
        do {
            frame = try decoder.nextFrame()
        } catch {
            // Nothing that follows can be told apart any more. usbmuxd hangs up as well.
            return .close
        }
        guard let frame else { return nil }
        tag = frame.header.tag
        if frame.header.version <= 1, frame.header.kind == 8 { dialect = .propertyList }
        switch UsbmuxServerRequest(frame) {
        case .listen(let program): return .listen(program)
        case .listDevices: return .send(try answer(.devices(view.phones.phones)))
        case .listListeners: return .send(try answer(.listeners(view.listeners)))
        case .connect(let deviceID, let port):
            guard let phone = view.phones.phone(deviceID) else { return .send(try answer(.result(.badDevice))) }
            // No app can listen there, and usbmuxd says so.
            guard port != 0 else { return .send(try answer(.result(.refused))) }
            return .dial(phone, port: port)
        case .foreign(let propertyList, let name): return .ask(propertyList, name: name)
        case .wrong(let result): return .send(try answer(.result(result)))
        }
    }

    /// The answer to a Connect; nil is a stream. After a failure the client may ask again.
    func dialled(_ failure: DialError?) throws -> [UInt8] {
        try answer(.result(failure.map { Self.result(for: $0.reason) } ?? .ok))
    }

    /// The answer to what usbmuxd was asked; nil when there was none.
    ///
    /// Then it is "refused": 2 would be read as ENOENT by whoever asked for a pairing record, and begin a new pairing.
    func answered(_ body: UsbmuxMessage.Body?) throws -> [UInt8] {
        switch body {
        case .propertyList(let bytes): try answer(.passed(bytes))
        case .result(let result): try answer(.result(result))
        case nil: try answer(.result(.refused))
        }
    }

    /// The answer to Listen, and every phone that is there.
    func welcome(_ phones: [NumberedDevice]) throws -> [UInt8] {
        try phones.reduce(try answer(.result(.ok))) { try $0 + news(.attached($1)) }
    }

    func news(_ change: DeviceChange) throws -> [UInt8] {
        try UsbmuxServerResponse.change(change).encoded(tag: 0, in: dialect)
    }

    private func answer(_ answer: UsbmuxServerResponse) throws -> [UInt8] { try answer.encoded(tag: tag, in: dialect) }

    /// In usbmuxd's words. It has two for a Connect that failed, and libusbmuxd knows no other: a phone that is not there,
    /// and everything else, which may go better next time.
    private static func result(for reason: DialError.Reason) -> UsbmuxResult {
        switch reason {
        case .deviceAbsent, .usbmuxdAbsent: .badDevice
        case .refused, .timedOut, .unreachable, .noRoute, .limit, .forbidden, .foreignUser, .browser, .cut, .failed:
            .refused
        }
    }
}
