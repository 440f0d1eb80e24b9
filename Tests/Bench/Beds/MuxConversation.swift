import TestSupport

/// The protocol state of one client of the usbmuxd stand-in, until its socket becomes a stream to an app.
struct MuxConversation {
    enum Step: Hashable {
        /// More bytes are needed.
        case wait
        case answer([UInt8])
        /// Sends the last response and connects the stream to an app.
        case open(App, answer: [UInt8])
        /// Closes the connection after an invalid message.
        case leave
    }

    private let udid: String
    private let apps: [UInt16: App]
    private var received: [UInt8] = []

    init(udid: String, apps: [UInt16: App]) {
        self.udid = udid
        self.apps = apps
    }

    mutating func append(_ bytes: ArraySlice<UInt8>) { received += bytes }

    /// Returns the next step for the received bytes; to be called until it returns `wait`.
    mutating func next() -> Step {
        guard received.count >= MuxMessage.headerSize else { return .wait }
        let length = MuxMessage.length(of: received)
        guard length >= MuxMessage.headerSize, length < 1 << 16 else { return .leave }
        guard received.count >= length else { return .wait }
        let tag = MuxMessage.tag(of: received)
        let body = Array(received[MuxMessage.headerSize..<length])
        received.removeFirst(length)
        switch MuxMessage.requestType(of: body) {
        case "Connect": return connect(body, tag)
        case "ListDevices": return .answer(MuxMessage.propertyList(MuxMessage.list([record]), tag: tag))
        case "ReadBUID": return .answer(MuxMessage.buid(tag: tag))
        case "Listen": return .answer(MuxMessage.result(0, tag: tag) + MuxMessage.propertyList(record, tag: 0))
        default: return .answer(MuxMessage.result(1, tag: tag))
        }
    }

    private var record: String { MuxMessage.attached(1, udid) }

    private func connect(_ body: [UInt8], _ tag: UInt32) -> Step {
        // The port is in network byte order (usbmuxd's client.c).
        let port = MuxMessage.number("PortNumber", in: body).flatMap(UInt16.init(exactly:))?.byteSwapped
        guard let app = port.flatMap({ apps[$0] }) else { return .answer(MuxMessage.result(3, tag: tag)) }
        return .open(app, answer: MuxMessage.result(0, tag: tag))
    }
}
