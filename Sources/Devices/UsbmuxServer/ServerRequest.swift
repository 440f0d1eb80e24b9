import FoundationEssentials

/// A client's request, parsed as usbmuxd 1.1.1 does (`client_command` in client.c).
///
/// Deviations: a body that is not an XML property list or has no MessageType gets "bad command". usbmuxd does not
/// respond, and the client waits forever. An invalid port gets the same; usbmuxd dials its lower 16 bits.
enum UsbmuxServerRequest: Hashable, Sendable {
    case listen(ListenerInfo)
    case listDevices
    case listListeners
    /// `port` is in host byte order.
    case connect(deviceID: UInt32, port: UInt16)
    /// A request that usbmuxd itself has to answer: the unchanged property list and its MessageType.
    case forwarded([UInt8], name: String)
    /// An invalid request and its result.
    case invalid(UsbmuxResult)

    init(_ frame: UsbmuxFrame) {
        guard frame.header.version <= 1 else {
            self = .invalid(.badVersion)
            return
        }
        // The message kind decides, not the version, as in usbmuxd.
        switch frame.header.kind {
        case 2 where frame.body.count >= 8:
            // struct usbmuxd_connect_request: the device ID, and the port in network byte order.
            let port = UInt16(truncatingIfNeeded: UsbmuxHeader.word(at: 4, of: frame.body))
            self = .connect(deviceID: UsbmuxHeader.word(at: 0, of: frame.body), port: UInt16(bigEndian: port))
        case 3: self = .listen(ListenerInfo(name: "unknown", bundleID: nil, libraryVersion: 0))
        case 8: self = Self.read(frame.body)
        default: self = .invalid(.badCommand)
        }
    }

    private static func read(_ body: [UInt8]) -> UsbmuxServerRequest {
        guard (try? PropertyListValidator.validate(body)) != nil,
            let list = try? PropertyListDecoder().decode(RequestList.self, from: Data(body))
        else { return .invalid(.badCommand) }
        switch list.type {
        case "Listen":
            return .listen(
                ListenerInfo(
                    name: list.program ?? "unknown",
                    bundleID: list.bundle,
                    libraryVersion: list.libraryVersion ?? 0
                )
            )
        case "ListDevices": return .listDevices
        case "ListListeners": return .listListeners
        case "Connect":
            guard list.hasDeviceID else { return .invalid(.badDevice) }
            guard let port = list.port.flatMap({ UInt16(exactly: $0) }) else { return .invalid(.badCommand) }
            // An ID outside the range of UInt32 is treated as 0, which no device has.
            let deviceID = list.deviceID.flatMap { UInt32(exactly: $0) } ?? 0
            return .connect(deviceID: deviceID, port: UInt16(bigEndian: port))
        case let name: return .forwarded(body, name: name)
        }
    }
}

/// The keys of a request's property list that usbmuxd reads.
private struct RequestList: Decodable {
    let type: String
    let hasDeviceID: Bool
    let deviceID: Int?
    let port: Int?
    let program: String?
    let bundle: String?
    let libraryVersion: Int?

    private enum Keys: String, CodingKey {
        case type = "MessageType"
        case deviceID = "DeviceID"
        case port = "PortNumber"
        case program = "ProgName"
        case bundle = "BundleID"
        case libraryVersion = "kLibUSBMuxVersion"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: Keys.self)
        type = try keys.decode(String.self, forKey: .type)
        hasDeviceID = keys.contains(.deviceID)
        deviceID = try? keys.decode(Int.self, forKey: .deviceID)
        port = try? keys.decode(Int.self, forKey: .port)
        program = try? keys.decode(String.self, forKey: .program)
        bundle = try? keys.decode(String.self, forKey: .bundle)
        libraryVersion = try? keys.decode(Int.self, forKey: .libraryVersion)
    }
}
