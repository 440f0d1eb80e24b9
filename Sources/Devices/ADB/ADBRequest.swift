package import Model

/// The adb server's number of one attachment of a phone (`transport_id` of the device list); at least 1.
///
/// A cable and an emulator get a new number at each attachment. A phone over TCP keeps its number through an outage,
/// and another phone at the same address may then have it. So compare the phone's serial at each return.
package struct ADBTransportID: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let number: UInt64

    /// Parses decimal digits. Returns nil for other text, and for 0, which adb uses for "any".
    package init?(_ text: some StringProtocol) {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt64(text), number > 0 else {
            return nil
        }
        self.number = number
    }

    package var description: String { String(number) }

    package static func < (one: ADBTransportID, other: ADBTransportID) -> Bool { one.number < other.number }
}

/// A request to the adb server, or to the phone to which the server switched the connection (AOSP services.txt).
///
/// The server reads one request after its answer to the one before. Requests that are sent together are lost.
package struct ADBRequest: Hashable, Sendable {
    /// The name of a service of the server or the phone, such as `host:devices-l`.
    package let service: String

    /// The longest request that adb servers accept: 64 KiB - 1, because the length has four digits.
    private static let limit = 0xFFFF

    private init(_ service: String) {
        precondition(service.utf8.count <= Self.limit)
        self.service = service
    }

    /// The version of the server, in one text of four hexadecimal digits.
    package static let version = ADBRequest("host:version")
    /// The list of devices, in one text.
    package static let devices = ADBRequest("host:devices-l")
    /// The list of devices now and at each change, each time in one text.
    package static let trackDevices = ADBRequest("host:track-devices-l")
    /// Switches the connection to a phone, which gets the next request.
    package static func transport(_ id: ADBTransportID) -> ADBRequest { ADBRequest("host:transport-id:\(id)") }
    /// Opens a stream to a socket of the phone.
    ///
    /// A port has only digits: the phone itself would connect to another machine for `tcp:PORT:HOST`.
    package static func open(_ socket: DeviceSocket) -> ADBRequest {
        switch socket {
        case .port(let port): ADBRequest("tcp:\(port)")
        case .abstract(let name): ADBRequest("\(AbstractSocketName.adbPrefix)\(name)")
        }
    }
    /// Makes a port of the phone lead to a port on the server's loopback. The phone's own answer follows that of the
    /// server.
    package static func openReverse(_ port: UInt16, to localPort: UInt16) -> ADBRequest {
        ADBRequest("reverse:forward:tcp:\(port);tcp:\(localPort)")
    }
    /// Closes such a port of the phone. The phone's own answer follows that of the server.
    package static func closeReverse(_ port: UInt16) -> ADBRequest { ADBRequest("reverse:killforward:tcp:\(port)") }
    /// The list of such ports of the phone, in one text (`ADBReversePorts`).
    package static let listReverse = ADBRequest("reverse:list-forward")
    /// Runs a command of the phone's shell. Its output, also that of errors, follows the answer until the end of the
    /// stream.
    package static func shell(_ command: String) -> ADBRequest { ADBRequest("shell:\(command)") }
    /// Runs a command of the phone's shell, whose outputs follow in packets (`ShellPacketDecoder`).
    package static func shellWithPackets(_ command: String) -> ADBRequest { ADBRequest("shell,v2:\(command)") }
    /// The processes of debuggable apps now and at each change, each time in one text (`ProcessList`).
    package static let trackApps = ADBRequest("track-app")

    /// The request on the wire: four hexadecimal digits of the length, and the text.
    package var encoded: [UInt8] {
        let text = Array(service.utf8)
        let digits = String(text.count, radix: 16)
        return Array((String(repeating: "0", count: 4 - digits.count) + digits).utf8) + text
    }
}
