/// One client of the stand-in for usbmuxd, up to the moment when its socket becomes a stream to an app.
struct MuxConversation {
    enum Step: Hashable {
        /// More bytes are needed.
        case wait
        case answer([UInt8])
        /// The answer is the last message; what follows belongs to the app.
        case open(App, answer: [UInt8])
        /// Nothing that usbmuxd would understand.
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

    /// What to do about what was received; asked again until it says `wait`.
    mutating func next() -> Step {
        guard received.count >= MuxMessage.headerSize else { return .wait }
        let length = MuxMessage.length(of: received)
        guard length >= MuxMessage.headerSize, length < 1 << 16 else { return .leave }
        guard received.count >= length else { return .wait }
        let tag = MuxMessage.tag(of: received)
        let body = Array(received[MuxMessage.headerSize..<length])
        received.removeFirst(length)
        let text = String(decoding: body, as: UTF8.self)
        if text.contains("<string>Connect</string>") { return connect(body, tag) }
        if text.contains("<string>ListDevices</string>") { return .answer(MuxMessage.list(udid, tag: tag)) }
        if text.contains("<string>ReadBUID</string>") { return .answer(MuxMessage.buid(tag: tag)) }
        if text.contains("<string>Listen</string>") {
            return .answer(MuxMessage.result(0, tag: tag) + MuxMessage.attached(udid))
        }
        return .answer(MuxMessage.result(1, tag: tag))
    }

    private func connect(_ body: [UInt8], _ tag: Int) -> Step {
        // The port travels in network order (usbmuxd's client.c).
        let port = MuxMessage.number("PortNumber", in: body).flatMap(UInt16.init(exactly:))?.byteSwapped
        guard let app = port.flatMap({ apps[$0] }) else { return .answer(MuxMessage.result(3, tag: tag)) }
        return .open(app, answer: MuxMessage.result(0, tag: tag))
    }
}
